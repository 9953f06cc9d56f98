"""Products with a weight matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.dispatch import BACKENDS, backend_of, dtype_of
from ..meanings.shapes import remembered

if TYPE_CHECKING:
    from ..types.array_types import A, Shaped


def linear(x: A, weight: Shaped, /, *, bias: Shaped | None = None) -> A:
    """x·Wᵀ + b: `x` is `[*outer, *inner, in]`, `weight` `[*outer, out, in]`, `bias` `[*outer,
    out]`; the result `[*outer, *inner, out]`.

    >>> iso.linear(np.array([1.0, 2.0]), np.array([[1.0, 1.0], [0.0, 3.0]]), bias=np.ones(2))
    array([4., 7.])
    """
    kind = type(x)
    xp: Any = BACKENDS.get(kind)
    alike = type(weight) is kind and (bias is None or type(bias) is kind)
    if xp is None or not alike or xp.has_devices():  # else it is known already
        xp = backend_of(x, weight, bias)
    try:
        y = xp.linear_at_once(x, weight, bias)
        if y is not None:
            return y
        _FITS(x.shape, weight.shape, None if bias is None else bias.shape)
    except AttributeError:
        if all(a is None or hasattr(a, "shape") for a in (x, weight, bias)):
            raise
        # a number instead of an array
        kinds = " and ".join(type(a).__name__ for a in (x, weight, bias))
        raise TypeError(f"linear: needed arrays as x, weight and bias, got {kinds}") from None
    dtype = x.dtype
    if weight.dtype != dtype or (bias is not None and bias.dtype != dtype):
        found = [dtype_of(a) for a in (x, weight, bias) if a is not None]
        if len({*found}) > 1:  # the same dtype may have another byte order
            words = ", ".join(found)
            raise TypeError(f"linear: needed x, weight and bias of the same dtype, got {words}")
    return xp.linear(x, weight, bias)


def _fits(shape: Any, matrix: Any, bias: Any) -> None:
    """Raise if the shapes do not fit."""
    shape, matrix = tuple(shape), tuple(matrix)
    n = len(matrix) - 2
    if n < 0 or len(shape) <= n or shape[:n] != matrix[:n] or shape[-1] != matrix[-1]:
        raise ValueError(
            "linear: needed x [*outer, *inner, in] and weight [*outer, out, in], got "
            f"{list(shape)} and {list(matrix)}"
        )
    if bias is not None and tuple(bias) != matrix[:-1]:
        raise ValueError(
            f"linear: needed bias [*outer, out], {list(matrix[:-1])}, got {list(bias)}"
        )


_FITS = remembered(_fits)
