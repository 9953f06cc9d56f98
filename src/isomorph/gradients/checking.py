"""Compare derivatives with finite differences, for users who test their own functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core import tree
from ..core.dispatch import check_callable
from .calls import arguments, settle
from .transforms import grad

if TYPE_CHECKING:
    from ..core.contract import Contract

# Five-point differences: steps (-2, -1, 1, 2) with these weights. The error is of order step⁴,
# rounding of order eps / step: both are small at step = eps^(1/5).
STENCIL = ((-2.0, 1 / 12), (-1.0, -2 / 3), (1.0, 2 / 3), (2.0, -1 / 12))


def check_gradients(
    func: Callable[..., Any],
    *args: Any,
    order: int = 2,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Compare the derivatives of `func` up to `order` with central differences; raise if they
    differ.

    `func` takes nests of floating-point arrays and returns such a nest; all outputs are summed with
    fixed weights. Real and imaginary parts of complex numbers are varied, and summed, one by one:
    the gradient is df/dx + i df/dy, as in `grad`. The message names the argument, leaf and index
    with the largest error, and its size.

    Every element is varied, so give small arrays, in float64 where the framework has it. The
    default tolerances are a hundred times the expected error of the differences in the arrays'
    dtype.

    >>> iso.check_gradients(lambda x: np.sin(x) * x, np.array([0.5, 1.5]))
    >>> wrong = iso.bind_custom_gradient_function(np.sin, lambda saved, g: g)
    >>> iso.check_gradients(wrong, np.array([0.0, 1.0]))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    AssertionError: check_gradients: order 1, argument 0, index (1,): differences of values give ...
    """
    check_callable("check_gradients", func)
    if not isinstance(order, int) or order < 1:
        raise ValueError(f"check_gradients: needed an order of at least 1, got {order!r}")
    leaves, form = tree.flatten(args)
    where = tuple(range(len(args)))
    backend, leaves = settle("check_gradients", leaves, lambda: arguments(args, where), args)

    def total(*leaves: Any) -> Any:
        return _weighted(backend, tree.flatten(func(*tree.unflatten(form, leaves)))[0])

    names = arguments(args, where)
    for depth in range(1, order + 1):
        gradient = grad(total, tuple(range(len(leaves))))
        _compare(backend, depth, total, gradient, leaves, names, rtol, atol)
        total = _contracted(backend, gradient)


def _contracted(backend: Contract, gradient: Callable[..., Any]) -> Callable[..., Any]:
    """A function that computes a scalar from the gradient. Checking its gradient checks the next
    order.
    """
    return lambda *leaves: _weighted(backend, gradient(*leaves))


def _weighted(xp: Contract, arrays: Any) -> Any:
    """The sum of all elements, each with its own weight between 1/2 and 3/2."""
    parts = []
    real = [part for y in arrays for part in _parts(xp, y)]
    for k, y in enumerate(real):
        flat = xp.reshape(y, (-1,))
        place = xp.arange(flat.shape[0], dtype=flat.dtype, device=xp.device_of(flat))
        parts.append(xp.sum(flat * (1 + xp.sin(place * 1.7 + (k + 1)) / 2)))
    return sum(parts[1:], parts[0])


def _parts(xp: Contract, y: Any) -> tuple[Any, ...]:
    """Real and imaginary part, or a real array as it is."""
    return (xp.real(y), xp.imag(y)) if xp.is_complex(y.dtype) else (y,)


def _compare(
    xp: Contract,
    order: int,
    total: Callable[..., Any],
    gradient: Callable[..., Any],
    leaves: tuple,
    names: list[str],
    rtol: float | None,
    atol: float | None,
) -> None:
    found = gradient(*leaves)
    misses = []
    for i, (x, g) in enumerate(zip(leaves, found)):
        values, derivative = xp.to_numpy(x), xp.to_numpy(g)
        turns = {" real part": 1.0, " imaginary part": 1j} if xp.is_complex(x.dtype) else {"": 1.0}
        eps = float(xp.finfo(x.dtype).eps)
        step = eps**0.2

        def at(moved: Any, i: int = i) -> float:
            moved = xp.from_numpy(moved, xp.placement(leaves[i]))
            changed = xp.astype(moved, leaves[i].dtype)
            return float(xp.to_numpy(total(*leaves[:i], changed, *leaves[i + 1 :])))

        size = abs(at(values)) + 1.0
        near = 100 * size * eps / step if atol is None else atol
        slope = 100 * eps / step if rtol is None else rtol
        for index in _indices(values.shape):
            for part, turn in turns.items():
                expected = 0.0
                for offset, weight in STENCIL:
                    moved = values.copy()
                    moved[index] += moved.dtype.type(offset * step * turn)
                    expected += weight * at(moved)
                expected /= step
                got = float(derivative[index].real if turn == 1.0 else derivative[index].imag)
                off = abs(got - expected)
                if not off <= near + slope * abs(expected):
                    misses.append((off, names[i], f"{index}{part}", expected, got))
    if misses:
        off, name, index, expected, got = max(misses, key=lambda miss: miss[0])
        raise AssertionError(
            f"check_gradients: order {order}, {name}, index {index}: differences of values give "
            f"{expected:.9g}, the derivative is {got:.9g}, off by {off:.3g}; "
            f"{len(misses)} elements are off"
        )


def _indices(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    out: list[tuple[int, ...]] = [()]
    for n in shape:
        out = [(*index, i) for index in out for i in range(n)]
    return out
