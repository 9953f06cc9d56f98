"""Medians, quantiles, the largest elements, running extremes, and the search in sorted rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from ..core.dispatch import backend_of, find_backend
from ..core.dtypes import index_dtype, promoted, returned, widened
from ..meanings.shapes import shape_of
from .arguments import (
    axes_of,
    axis_of,
    floats,
    lanes,
    one_of,
    places,
    real,
    size,
)

if TYPE_CHECKING:
    from ..types.array_types import A, Axes

T = TypeVar("T")
METHODS = ("linear", "lower", "higher", "nearest", "midpoint")
Method: TypeAlias = Literal["linear", "lower", "higher", "nearest", "midpoint"]


class TopK(NamedTuple, Generic[T]):
    """The largest elements, and where they are."""

    values: T
    indices: T


def median(x: A, /, *, axis: Axes = None, keepdims: bool = False) -> A:
    """The median along an axis, several axes, or of all elements; NaN where there is a NaN.

    The gradient goes to the element in the middle, or half to each of two. Integers give floats.

    >>> iso.median(np.array([[3.0, 1.0, 2.0, 9.0]]), axis=1)
    array([2.5])
    """
    return ranked("median", x, 0.5, axis, keepdims, "linear", False)


def quantile(
    x: A, q: Any, /, *, axis: Axes = None, keepdims: bool = False, method: Method = "linear"
) -> A:
    """The value below which a fraction `q` of the elements lies; NaN where there is a NaN.

    `q` is a number, a list of numbers, or an array; its axes come first in the result. An array
    is not checked: outside of 0 … 1 it gives NaN. Between two elements, `method` interpolates,
    or takes the lower, the higher, the nearest or the middle. Gradients flow to `x`, and to an
    array `q` with the method linear. Numbers and lists do not change the dtype; an array does.

    >>> iso.quantile(np.array([1.0, 2.0, 4.0]), [0.25, 0.5], axis=0)
    array([1.5, 2. ])
    """
    return ranked("quantile", x, q, axis, keepdims, method, False)


def top_k(x: A, k: int, /, *, axis: int = -1) -> TopK[A]:
    """The `k` largest elements along an axis, the largest first, as `values` and `indices`.

    Of equal elements the first comes first; NaN counts as the largest.

    >>> iso.top_k(np.array([1.0, 3.0, 2.0]), 2).values
    array([3., 2.])
    """
    xp: Any = backend_of(x)
    real("top_k", xp, x)
    place = axis_of("top_k", x, axis)
    count, there = size("top_k", "k", k), x.shape[place]
    if there is not None and count > there:
        raise ValueError(f"top_k: needed at most {there} elements of axis {axis}, got k = {k}")
    rows = xp.moveaxis(x, place, -1)
    order = xp.argsort(xp.stop_gradient(rows, False), axis=-1, descending=True, stable=True)
    order = xp.astype(order[..., :count], index_dtype(xp))
    values = xp.take_along_axis(rows, order, axis=-1)
    return TopK(xp.moveaxis(values, -1, place), xp.moveaxis(order, -1, place))


def cumulative_max(x: A, /, *, axis: int | None = None) -> A:
    """The largest element so far along an axis, which may be left out for a vector.

    The gradient goes to the place of that element, of equal ones to the first. After a NaN all
    are NaN.

    >>> iso.cumulative_max(np.array([1.0, 3.0, 2.0]))
    array([1., 3., 3.])
    """
    return _running("cumulative_max", x, axis, False)


def cumulative_min(x: A, /, *, axis: int | None = None) -> A:
    """The smallest element so far along an axis; see `cumulative_max`.

    >>> iso.cumulative_min(np.array([2.0, 3.0, 1.0]))
    array([2., 2., 1.])
    """
    return _running("cumulative_min", x, axis, True)


def searchsorted(x: A, values: Any, /, side: Literal["left", "right"] = "left") -> A:
    """Where `values` belong in the sorted rows of `x`: the number of elements that are smaller,
    with side "right" smaller or equal. NaN counts as larger than any number, as in sorting.

    A vector `x` takes values of any shape. Otherwise all axes but the last are rows, and must be
    the same in `x` [..., n] and `values` [..., m]; the result is [..., m].

    >>> iso.searchsorted(np.array([[1, 2, 3], [2, 4, 6]]), np.array([[2], [5]]))
    array([[1],
           [2]])
    """
    xp: Any = backend_of(x, values)
    one_of("searchsorted", "side", side, ("left", "right"))
    shape_of("searchsorted", "x", x)
    values = xp.weak(values, [x]) if find_backend(values) is None else values
    x, values = promoted(xp, real("searchsorted", xp, x), real("searchsorted", xp, values))
    x, values = xp.stop_gradient(x, False), xp.stop_gradient(values, False)
    outer = tuple(x.shape)[:-1]
    if not x.shape or (outer and outer != tuple(values.shape)[:-1]):
        raise ValueError(
            "searchsorted: needed sorted rows [..., n] and values [..., m], got shapes "
            f"{tuple(x.shape)} and {tuple(values.shape)}"
        )
    if not outer:
        flat = bisected(xp, x, xp.reshape(values, (-1,)), side)
        return xp.reshape(flat, tuple(values.shape))
    return bisected(xp, x, values, side)


def bisected(xp: Any, x: Any, values: Any, side: str) -> Any:
    return xp.bisected(x, values, side, index_dtype(xp))


def _running(name: str, x: Any, axis: int | None, least: bool) -> Any:
    xp: Any = backend_of(x)
    real(name, xp, x)
    if axis is None and len(x.shape) != 1:
        raise ValueError(f"{name}: needed an axis for shape {tuple(x.shape)}, got None")
    place = axis_of(name, x, 0 if axis is None else axis)
    rows = xp.moveaxis(x, place, -1)
    n = rows.shape[-1]
    best, where = xp.stop_gradient(rows, False), xp.broadcast_to(places(xp, n, x), rows.shape)
    step = 1
    while step < n:  # the best of twice as many elements each time
        earlier, its = best[..., :-step], where[..., :-step]
        later = best[..., step:]
        stays = earlier <= later if least else earlier >= later
        if xp.is_float(x.dtype):
            stays = xp.logical_or(stays, xp.isnan(earlier))
        best = xp.concat([best[..., :step], xp.where(stays, earlier, later)], axis=-1)
        where = xp.concat([where[..., :step], xp.where(stays, its, where[..., step:])], axis=-1)
        step *= 2
    return xp.moveaxis(xp.take_along_axis(rows, where, axis=-1), -1, place)


# Quantiles, of all elements or of those that are numbers.


def ranked(name: str, x: Any, q: Any, axis: Any, keepdims: bool, method: str, skip: bool) -> Any:
    """`quantile`; with `skip`, NaN is left out."""
    one_of(name, "method", method, METHODS)
    known = isinstance(q, (int, float)) or not hasattr(q, "shape")
    xp: Any = backend_of(x) if known else backend_of(x, q)
    shape_of(name, "x", x)
    real(name, xp, x)
    axes = axes_of(name, x, axis)
    if any(x.shape[i] == 0 for i in axes):
        raise ValueError(f"{name}: needed at least one element, got shape {tuple(x.shape)}")
    if method in ("linear", "midpoint"):
        x = floats(xp, x)
    rows = lanes(xp, x, axes)
    fractions = _known(name, q) if known else _unknown(name, xp, q)
    dtype = x.dtype
    if not known and method in ("linear", "midpoint"):
        dtype = xp.result_type(x, fractions)
    if not skip or not xp.is_float(x.dtype):
        found = _of_all(xp, rows, fractions, method)
    else:
        found = _of_numbers(xp, rows, fractions, method)
    outer = () if isinstance(fractions, float) else _outer(fractions)
    inner = tuple(rows.shape)[:-1]
    if keepdims:
        inner = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    return xp.reshape(xp.moveaxis(returned(xp, found, dtype), -1, 0), (*outer, *inner))


def _outer(fractions: Any) -> tuple:
    return (len(fractions),) if isinstance(fractions, list) else tuple(fractions.shape)


def _known(name: str, q: Any) -> float | list[float]:
    """One fraction, or a list of them, checked."""
    numbers = q if isinstance(q, Sequence) else (q,)
    if not all(isinstance(p, (int, float)) and not isinstance(p, bool) for p in numbers):
        raise TypeError(f"{name}: needed q as a number, a list of numbers or an array, got {q!r}")
    if not all(0 <= p <= 1 for p in numbers):
        raise ValueError(f"{name}: needed q from 0 to 1, got {q!r}")
    return [float(p) for p in q] if isinstance(q, Sequence) else float(q)


def _unknown(name: str, xp: Any, q: Any) -> Any:
    q = floats(xp, real(name, xp, q))
    return xp.where(xp.logical_and(q >= 0, q <= 1), q, xp.full_like(q, float("nan")))


def _of_all(xp: Any, rows: Any, fractions: Any, method: str) -> Any:
    """The quantiles of rows [..., n], as [..., number of fractions]."""
    n = rows.shape[-1]
    ordered = xp.sort(rows, axis=-1)
    if isinstance(fractions, (float, list)):
        given = fractions if isinstance(fractions, list) else [fractions]
        parts = []
        for p in given:
            at = p * (n - 1)
            low, high = _ends(at, method)
            lower, higher = ordered[..., low : low + 1], ordered[..., high : high + 1]
            parts.append(_between(xp, lower, higher, _part(at, low, high, method)))
        empty = xp.zeros((*rows.shape[:-1], 0), dtype=rows.dtype, device=xp.device_of(rows))
        parts = [returned(xp, part, rows.dtype) for part in parts]
        found = xp.concat(parts, axis=-1) if parts else empty
    else:
        at = _fine(xp, rows, xp.reshape(fractions, (-1,))) * (n - 1)
        found = _picked(xp, ordered, at, method)
    if not xp.is_float(rows.dtype):
        return found
    unknown = xp.any(xp.isnan(rows), axis=-1, keepdims=True)
    return found + xp.astype(_lost(xp, rows, unknown), found.dtype)


def _of_numbers(xp: Any, rows: Any, fractions: Any, method: str) -> Any:
    """The same without NaN."""
    missing = xp.isnan(rows)
    ordered = xp.sort(rows, axis=-1)
    count = xp.sum(xp.astype(xp.logical_not(missing), index_dtype(xp)), axis=-1, keepdims=True)
    if isinstance(fractions, (float, list)):
        given = fractions if isinstance(fractions, list) else [fractions]
        # as exact as the places that Python computes for rows without NaN, if there is float64
        wide = xp.float64 if index_dtype(xp) == xp.int64 else xp.float32
        fractions = xp.asarray(given, dtype=wide, device=xp.device_of(rows))
    fractions = _fine(xp, rows, xp.reshape(fractions, (-1,)))
    last = xp.maximum(count - 1, xp.zeros_like(count))
    found = _picked(xp, ordered, fractions * xp.astype(last, fractions.dtype), method)
    nothing = xp.broadcast_to(count == 0, found.shape)
    return xp.where(nothing, xp.full_like(found, float("nan")), found)


def _fine(xp: Any, rows: Any, fractions: Any) -> Any:
    """Fractions in a dtype that tells places apart: the wider of both, at least float32."""
    both = widened(xp, rows[..., :1]), widened(xp, fractions)
    return xp.astype(fractions, xp.result_type(*both)) if xp.is_float(rows.dtype) else both[1]


def _lost(xp: Any, rows: Any, unknown: Any) -> Any:
    """NaN, with NaN as gradient, where a row is unknown; 0 elsewhere."""
    times = xp.where(unknown, xp.full_like(rows[..., :1], float("nan")), 0.0)
    return xp.sum(xp.where(unknown, rows, xp.zeros_like(rows)), axis=-1, keepdims=True) * times


def _ends(at: float, method: str) -> tuple[int, int]:
    low = int(at)
    high = low if at == low else low + 1
    if method == "nearest":
        low = high = round(at)
    return (low, low) if method == "lower" else (high, high) if method == "higher" else (low, high)


def _part(at: float, low: int, high: int, method: str) -> float | None:
    if low == high:
        return None
    return 0.5 if method == "midpoint" else at - low


def _picked(xp: Any, ordered: Any, at: Any, method: str) -> Any:
    """The elements of sorted rows at fractional places, which may differ from row to row."""
    fixed = xp.stop_gradient(at, False)
    known = xp.logical_not(xp.isnan(fixed))
    sure = xp.where(known, fixed, xp.zeros_like(fixed))
    shape = (*ordered.shape[:-1], at.shape[-1])

    def pick(place: Any) -> Any:
        place = xp.broadcast_to(xp.astype(place, index_dtype(xp)), shape)
        return xp.take_along_axis(ordered, place, axis=-1)

    if method in ("lower", "higher", "nearest"):
        found = pick({"lower": xp.floor, "higher": xp.ceil, "nearest": xp.round}[method](sure))
    else:
        part = at - xp.floor(sure)
        if method == "midpoint":
            part = xp.where(fixed == xp.floor(sure), 0.0, xp.full_like(sure, 0.5))
        lower, higher = pick(xp.floor(sure)), pick(xp.ceil(sure))
        lower, higher, part = promoted(xp, lower, higher, xp.where(known, part, 0.0))
        found = _between(xp, lower, higher, part)
    if not xp.is_float(found.dtype):
        return found
    return xp.where(xp.broadcast_to(known, shape), found, xp.full_like(found, float("nan")))


def _between(xp: Any, lower: Any, higher: Any, part: Any) -> Any:
    """`lower` and `higher`, weighted with 1 - part and part; exact at both ends, and where an
    element is infinite.
    """
    if part is None:
        return lower
    lower, higher = widened(xp, lower), widened(xp, higher)
    endless = xp.logical_or(xp.isinf(lower), xp.isinf(higher))
    none = xp.zeros_like(lower)
    low, high = xp.where(endless, none, lower), xp.where(endless, none, higher)
    apart = 0.5 * high - 0.5 * low  # the whole distance may be infinite
    part = part + none if isinstance(part, float) else part
    twice = 2 * xp.where(part < 0.5, part, part - 1)
    near = xp.where(part < 0.5, low, high) + apart * twice
    far = lower * (1 - part) + xp.where(part > 0, higher, none) * part
    far = xp.where(endless, far, none)
    return xp.where(endless, far, near)
