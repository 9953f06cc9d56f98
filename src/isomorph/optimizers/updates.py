"""The rules of Adam, LARS and LAMB, each for one array, written with the functions of `xp`. `Lift`
checks nests and applies a rule to them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .lifting import Lift, cast, number


def adam_numbers(
    lift: Lift, step: Any, beta1: float, beta2: float, epsilon: float, stop: bool
) -> list[list[Any]]:
    """The numbers for Adam's rule, for each array."""
    refuse_complex(lift)
    beta1 = number(lift.name, "beta1", beta1, below=1)
    beta2 = number(lift.name, "beta2", beta2, below=1)
    epsilon = number(lift.name, "epsilon", epsilon)
    numbers = [lift.constant(x) for x in (beta1, 1 - beta1, beta2, 1 - beta2, epsilon)]
    numbers += lift.corrections(step, beta1, beta2)
    if not stop:
        # Added to v̂, so that √v̂ has a finite gradient at 0: its root is a quarter of the last
        # digit of ε, too small to change √v̂ + ε.
        digit = lambda dtype: 2.0**-53 if dtype == lift.xp.float64 else 2.0**-24
        numbers.append(lift.each(lambda dtype: (epsilon * digit(dtype) / 4) ** 2))
    return numbers


def trust_ratio(lift: Lift, lr: Any, stop: bool) -> tuple[Callable[..., Any], list[Any]]:
    """The function that computes a trust ratio, and the learning rates to multiply by it."""
    if not stop:
        return smooth_ratio, lift.rates(lr)
    counts = lift.counts()
    return (counted_ratio if counts else plain_ratio), lift.rates(lr, plain=counts)


def refuse_complex(lift: Lift) -> None:
    for kind in lift.kinds:
        if lift.xp.isdtype(kind, "complex floating"):
            lift.refuse("real floating-point", kind)


# The rules, each for one array. Numbers with one value per array come last.


def descend_by_adam(
    xp: Any, w: Any, g: Any, m: Any, v: Any, lr: Any, *numbers: Any
) -> tuple[Any, Any, Any]:
    u, m, v = xp.adam(g, m, v, *numbers)
    return w - lr * u, m, v


def trusted(
    decay: float, cap: float | None, ratio: Callable[..., Any], xp: Any, w: Any, u: Any, lr: Any,
    eta: float = 1.0,
) -> Any:  # fmt: skip
    """A step with the length given by the trust ratio, lr·r·(u + λw)."""
    rate = lr * ratio(xp, w, u, decay, cap, eta)
    return rate * (u + decay * w if decay else u)


def lars(decay: float, ratio: Callable[..., Any], xp: Any, w: Any, g: Any, lr: Any) -> tuple[Any]:
    return (w - trusted(decay, None, ratio, xp, w, g, lr),)


def lamb(
    decay: float, cap: float, ratio: Callable[..., Any],
    xp: Any, w: Any, g: Any, m: Any, v: Any, lr: Any, *numbers: Any,
) -> tuple[Any, Any, Any]:  # fmt: skip
    u, m, v = xp.adam(g, m, v, *numbers)
    if decay:
        u = u + decay * w
    return w - trusted(0.0, cap, ratio, xp, w, u, lr), m, v


# Three ways to compute η‖w‖ / (‖u‖ + λ‖w‖), at most `cap`, and 1 if a norm is 0.


def smooth_ratio(xp: Any, w: Any, u: Any, decay: float, cap: float | None, eta: float) -> Any:
    """The ratio, with a gradient that is finite everywhere, because the branches that are not
    chosen are finite too.
    """

    def norm(x: Any) -> Any:
        square = xp.sum(xp.square(wide(xp, x)))
        some = square > 0
        return xp.where(some, xp.sqrt(xp.where(some, square, 1.0)), 0.0)

    a, b = norm(w), norm(u)
    known = xp.minimum(a, b) > 0
    return capped(xp, known, a / xp.where(known, b + decay * a, 1.0), cap, w.dtype, eta)


def plain_ratio(xp: Any, w: Any, u: Any, decay: float, cap: float | None, eta: float) -> Any:
    """The ratio where no gradient is needed, by the norm of a matrix, which is one operation on
    most frameworks.
    """

    def norm(x: Any) -> Any:
        x = wide(xp, x)
        return xp.linalg.matrix_norm(x if len(x.shape) == 2 else xp.reshape(x, (1, -1)))

    a, b = norm(w), norm(u)
    return capped(xp, xp.minimum(a, b) > 0, a / (b + decay * a if decay else b), cap, w.dtype, eta)


def counted_ratio(xp: Any, w: Any, u: Any, decay: float, cap: float | None, eta: float) -> Any:
    """The ratio as a Python number, for backends whose 0-d results are Python numbers: there 0-d
    arrays are five times slower.
    """
    if xp.is_local(w) or xp.is_local(u):  # traced or mapped values cannot become numbers
        return smooth_ratio(xp, w, u, decay, cap, eta)
    x, y = wide(xp, w).reshape(-1), wide(xp, u).reshape(-1)
    a, b = math.sqrt(xp.vecdot(x, x)), math.sqrt(xp.vecdot(y, y))
    if not (a > 0 and b > 0):
        return 1.0
    ratio = eta * a / (b + decay * a)
    return ratio if cap is None or not ratio > cap else cap


def capped(xp: Any, known: Any, ratio: Any, cap: float | None, dtype: Any, eta: float) -> Any:
    """`eta` times the ratio, at most `cap`, in that dtype; 1 where the ratio is not `known`."""
    if eta != 1:
        ratio = eta * ratio
    if cap is not None:
        ratio = xp.clip(ratio, None, cap)
    return cast(xp, xp.where(known, ratio, 1.0), dtype)


def wide(xp: Any, x: Any) -> Any:
    """`x` as it is summed in squares: in float32 if it has a narrower dtype, because the largest
    float16 is 65504.
    """
    return x if x.dtype in (xp.float32, xp.float64) else xp.astype(x, xp.float32)
