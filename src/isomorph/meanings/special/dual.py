"""Numbers that carry derivatives: a formula or a loop written for them gives the values of a
function, or the values together with derivatives with respect to parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class Dual:
    """An array with its derivatives, of which there may be none."""

    def __init__(self, value: Any, slopes: Sequence[Any] = ()):
        self.value, self.slopes = value, tuple(slopes)

    def __add__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            return Dual(
                self.value + other.value, [a + b for a, b in zip(self.slopes, other.slopes)]
            )
        return Dual(self.value + other, self.slopes)

    def __neg__(self) -> Dual:
        return Dual(-self.value, [-a for a in self.slopes])

    def __sub__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            return Dual(
                self.value - other.value, [a - b for a, b in zip(self.slopes, other.slopes)]
            )
        return Dual(self.value - other, self.slopes)

    def taken_from(self, other: Any) -> Dual:
        """An array minus this; the arrays' own operators do not know this class."""
        return Dual(other - self.value, [-a for a in self.slopes])

    def __mul__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            x, y = self.value, other.value
            slopes = [a * y + x * b for a, b in zip(self.slopes, other.slopes)]
            return Dual(x * y, slopes)
        return Dual(self.value * other, [a * other for a in self.slopes])

    def __truediv__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            found = self.value / other.value
            slopes = [(a - found * b) / other.value for a, b in zip(self.slopes, other.slopes)]
            return Dual(found, slopes)
        return Dual(self.value / other, [a / other for a in self.slopes])

    def under(self, other: Any) -> Dual:
        """An array divided by this."""
        found = other / self.value
        return Dual(found, [-found * b / self.value for b in self.slopes])

    def scaled(self, factor: Any, logs: Sequence[Any]) -> Dual:
        """Multiplied by `factor`, whose logarithm has the derivatives `logs`."""
        value = self.value * factor
        return Dual(value, [a * factor + value * d for a, d in zip(self.slopes, logs)])

    def parts(self) -> tuple[Any, ...]:
        return (self.value, *self.slopes)


def chosen(xp: Any, where: Any, x: Dual, y: Dual) -> Dual:
    """`x` where the condition holds, else `y`."""
    return Dual(
        xp.where(where, x.value, y.value),
        [xp.where(where, a, b) for a, b in zip(x.slopes, y.slopes)],
    )


def converged(
    xp: Any, step: Callable[..., tuple[Dual, ...]], state: Sequence[Dual], limit: int
) -> Dual:
    """The last of `state`, a sum, after `state = step(k, *state)` for k = 1, 2, …, until the one
    before it, its last change, is small everywhere, derivatives included; at most `limit` times.
    """
    size = len(state[0].parts())
    eps = float(xp.finfo(state[0].value.dtype).eps) / 2
    duals = lambda flat: [Dual(flat[i], flat[i + 1 : i + size]) for i in range(0, len(flat), size)]

    def goes_on(k: Any, *flat: Any) -> Any:
        *_, change, total = duals(flat)
        far = xp.asarray(False, device=xp.device_of(k))
        for d, t in zip(change.parts(), total.parts()):
            far = xp.logical_or(far, xp.any(xp.abs(d) > eps * xp.abs(t)))
        return xp.logical_and(far, k < limit)

    def body(k: Any, *flat: Any) -> tuple[Any, ...]:
        k = k + 1
        return (k, *(part for dual in step(k, *duals(flat)) for part in dual.parts()))

    first = state[0].value
    k = xp.zeros((), dtype=first.dtype, device=xp.device_of(first))
    flat = xp.while_loop(goes_on, body, (k, *(part for dual in state for part in dual.parts())))
    return duals(flat[1:])[-1]
