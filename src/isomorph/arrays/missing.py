"""Reductions that leave NaN out, and NaN replaced. No gradient flows to a NaN."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.dispatch import backend_of
from ..core.dtypes import index_dtype, returned, widened
from .arguments import axes_of, axis_of, floats, real
from .ordering import Method, ranked

if TYPE_CHECKING:
    from ..types.array_types import A, Axes


def nansum(x: A, /, *, axis: Axes = None, keepdims: bool = False) -> A:
    """The sum of all elements that are not NaN; 0 if there are none.

    >>> iso.nansum(np.array([1.0, np.nan, 2.0]))
    np.float64(3.0)
    """
    xp: Any = backend_of(x)
    return xp.sum(_filled(xp, x, 0), axis=axis, keepdims=keepdims)


def nanprod(x: A, /, *, axis: Axes = None, keepdims: bool = False) -> A:
    """The product of all elements that are not NaN; 1 if there are none.

    >>> iso.nanprod(np.array([3.0, np.nan, 2.0]))
    np.float64(6.0)
    """
    xp: Any = backend_of(x)
    return xp.prod(_filled(xp, x, 1), axis=axis, keepdims=keepdims)


def nanmean(x: A, /, *, axis: Axes = None, keepdims: bool = False) -> A:
    """The mean of all elements that are not NaN; NaN if there are none. Integers give floats.

    >>> iso.nanmean(np.array([1.0, np.nan, 2.0]))
    array(1.5)
    """
    xp: Any = backend_of(x)
    x = floats(xp, x)
    wide = widened(xp, x)
    total = xp.sum(_filled(xp, wide, 0), axis=axis, keepdims=keepdims)
    return returned(xp, _over(xp, total, _count(xp, wide, axis, keepdims)), x.dtype)


def nanvar(x: A, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> A:
    """The variance of all elements that are not NaN: the sum of squared distances from their
    mean, divided by their number less `correction`; NaN if that is not positive.

    >>> iso.nanvar(np.array([1.0, np.nan, 3.0]))
    array(1.)
    """
    xp: Any = backend_of(x)
    x = floats(xp, x)
    kept, x = xp.finfo(x.dtype).dtype, widened(xp, x)
    some = _count(xp, x, axis, True) > 0
    mean: Any = nanmean(x, axis=axis, keepdims=True)
    away = _filled(xp, x, 0) - xp.where(some, mean, xp.zeros_like(mean))
    away = xp.where(xp.isnan(x), xp.zeros_like(away), away)
    squares = xp.real(away * xp.conj(away)) if xp.is_complex(x.dtype) else away * away
    total = xp.sum(squares, axis=axis, keepdims=keepdims)
    return returned(xp, _over(xp, total, _count(xp, x, axis, keepdims) - correction), kept)


def nanstd(x: A, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> A:
    """The square root of `nanvar`. Where it is 0, the gradient is 0.

    >>> iso.nanstd(np.array([1.0, np.nan, 3.0]))
    array(1.)
    """
    xp: Any = backend_of(x)
    x = floats(xp, x)
    wide = widened(xp, x)  # the square may be too large for half precision
    squared: Any = nanvar(wide, axis=axis, correction=correction, keepdims=keepdims)
    some = squared != 0
    root = xp.sqrt(xp.where(some, squared, xp.ones_like(squared)))
    root = xp.where(some, root, xp.zeros_like(root))
    return returned(xp, root, xp.finfo(x.dtype).dtype)


def nanmin(x: A, /, *, axis: Axes = None, keepdims: bool = False) -> A:
    """The smallest element that is not NaN; NaN if there are none. Equal ones share the gradient.

    >>> iso.nanmin(np.array([2.0, np.nan, 1.0]))
    array(1.)
    """
    return _extreme("nanmin", x, axis, keepdims, True)


def nanmax(x: A, /, *, axis: Axes = None, keepdims: bool = False) -> A:
    """The largest element that is not NaN; NaN if there are none. Equal ones share the gradient.

    >>> iso.nanmax(np.array([2.0, np.nan, 1.0]))
    array(2.)
    """
    return _extreme("nanmax", x, axis, keepdims, False)


def nanmedian(x: A, /, *, axis: Axes = None, keepdims: bool = False) -> A:
    """The median of all elements that are not NaN; NaN if there are none.

    >>> iso.nanmedian(np.array([3.0, np.nan, 1.0, 4.0]))
    array(3.)
    """
    return ranked("nanmedian", x, 0.5, axis, keepdims, "linear", True)


def nanquantile(
    x: A, q: Any, /, *, axis: Axes = None, keepdims: bool = False, method: Method = "linear"
) -> A:
    """`quantile` of all elements that are not NaN; NaN if there are none.

    >>> iso.nanquantile(np.array([3.0, np.nan, 1.0]), 0.25)
    array(1.5)
    """
    return ranked("nanquantile", x, q, axis, keepdims, method, True)


def nanargmin(x: A, /, *, axis: int | None = None, keepdims: bool = False) -> A:
    """Where the smallest element is that is not NaN, the first of equal ones; -1 if all are NaN.

    >>> iso.nanargmin(np.array([2.0, np.nan, 1.0]))
    array(2)
    """
    return _place("nanargmin", x, axis, keepdims, True)


def nanargmax(x: A, /, *, axis: int | None = None, keepdims: bool = False) -> A:
    """Where the largest element is that is not NaN, the first of equal ones; -1 if all are NaN.

    >>> iso.nanargmax(np.array([2.0, np.nan, 1.0]))
    array(0)
    """
    return _place("nanargmax", x, axis, keepdims, False)


def nan_to_num(
    x: A, /, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> A:
    """`x` with numbers for NaN and for infinities; None is the largest number of the dtype, or
    the smallest. Both parts of complex numbers are replaced. No gradient flows to what is replaced.

    >>> iso.nan_to_num(np.array([1.0, np.nan, -np.inf]), neginf=-9.0)
    array([ 1.,  0., -9.])
    """
    xp: Any = backend_of(x)
    if not xp.is_float(x.dtype):
        return x
    if xp.is_complex(x.dtype):
        real, imaginary = (_replaced(xp, f(x), nan, posinf, neginf) for f in (xp.real, xp.imag))
        return xp.astype(real, x.dtype) + 1j * xp.astype(imaginary, x.dtype)
    return _replaced(xp, x, nan, posinf, neginf)


def _replaced(xp: Any, x: Any, nan: float, posinf: float | None, neginf: float | None) -> Any:
    most = float(xp.finfo(x.dtype).max)
    y = xp.where(xp.isnan(x), xp.full_like(x, nan), x)
    y = xp.where(x == float("inf"), xp.full_like(x, most if posinf is None else posinf), y)
    return xp.where(x == -float("inf"), xp.full_like(x, -most if neginf is None else neginf), y)


def _filled(xp: Any, x: Any, value: float) -> Any:
    """`x` with a number for NaN."""
    if not xp.is_float(x.dtype):
        return x
    return xp.where(xp.isnan(x), xp.full_like(x, value), x)


def _count(xp: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    """How many elements are not NaN, in the dtype of the real parts of `x`."""
    there = xp.astype(xp.logical_not(xp.isnan(x)), index_dtype(xp))
    count = xp.sum(there, axis=axis, keepdims=keepdims)
    return xp.astype(count, xp.finfo(x.dtype).dtype)


def _over(xp: Any, total: Any, count: Any) -> Any:
    """total / count, NaN where the count is not positive."""
    none = count <= 0
    mean = total / xp.astype(xp.where(none, xp.ones_like(count), count), total.dtype)
    return xp.where(none, xp.full_like(mean, float("nan")), mean)


def _extreme(name: str, x: Any, axis: Any, keepdims: bool, least: bool) -> Any:
    xp: Any = backend_of(x)
    real(name, xp, x)
    reduce = xp.min if least else xp.max
    if any(x.shape[i] == 0 for i in axes_of(name, x, axis)):
        raise ValueError(f"{name}: needed at least one element, got shape {tuple(x.shape)}")
    if not xp.is_float(x.dtype):
        return reduce(x, axis=axis, keepdims=keepdims)
    found = reduce(_filled(xp, x, float("inf" if least else "-inf")), axis=axis, keepdims=keepdims)
    nothing = xp.all(xp.isnan(x), axis=axis, keepdims=keepdims)
    return xp.where(nothing, xp.full_like(found, float("nan")), found)


def _place(name: str, x: Any, axis: Any, keepdims: bool, least: bool) -> Any:
    xp: Any = backend_of(x)
    real(name, xp, x)
    if axis is not None:
        axis_of(name, x, axis)
    if any(x.shape[i] == 0 for i in axes_of(name, x, axis)):
        raise ValueError(f"{name}: needed at least one element, got shape {tuple(x.shape)}")
    find = xp.argmin if least else xp.argmax
    if not xp.is_float(x.dtype):
        return find(x, axis=axis, keepdims=keepdims)
    x = xp.stop_gradient(x, False)
    missing = xp.isnan(x)
    place = find(_filled(xp, x, float("inf" if least else "-inf")), axis=axis, keepdims=keepdims)
    # an infinity that is there comes before one that stands for NaN
    endless = float("inf" if least else "-inf")
    there = xp.logical_and(x == endless, xp.logical_not(missing))
    only = xp.all(xp.logical_or(missing, there), axis=axis, keepdims=keepdims)
    first = xp.argmax(xp.astype(there, index_dtype(xp)), axis=axis, keepdims=keepdims)
    place = xp.where(only, first, place)
    nothing = xp.all(missing, axis=axis, keepdims=keepdims)
    return xp.where(nothing, xp.full_like(place, -1), place)
