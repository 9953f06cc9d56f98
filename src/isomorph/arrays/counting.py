"""Sums, extremes and counts by number: bins, segments and one-hot rows. Numbers that are out of
range are left out, eager and compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.default_backend import floating, home
from ..core.dispatch import backend_of, find_backend
from ..core.dtypes import index_dtype, promoted, returned, widened
from ..meanings.shapes import shape_of
from .arguments import (
    array,
    floats,
    integers,
    limits,
    places,
    real,
    size,
)
from .ordering import bisected

if TYPE_CHECKING:
    from ..types.array_types import A
    from ..typing import DType


def segment_sum(x: A, ids: Any, n: int) -> A:
    """The sums of those rows of x [rows, ...] that have the same number in ids [rows]: [n, ...].

    Rows whose number is not in 0 … n - 1 are left out.

    >>> iso.segment_sum(np.array([1.0, 2.0, 3.0]), np.array([0, 1, 0]), 2)
    array([4., 2.])
    """
    xp, x, ids, n = _segments("segment_sum", x, ids, n)
    return _summed(xp, x, ids, n)


def segment_mean(x: A, ids: Any, n: int) -> A:
    """The means of rows with the same number, see `segment_sum`; 0 where there are none.

    >>> iso.segment_mean(np.array([1.0, 2.0, 3.0]), np.array([0, 1, 0]), 3)
    array([2., 2., 0.])
    """
    xp, x, ids, n = _segments("segment_mean", x, ids, n)
    x = floats(xp, x)
    wide = widened(xp, x)
    counts = _summed(xp, xp.ones_like(ids), ids, n)
    counts = xp.astype(xp.maximum(counts, xp.ones_like(counts)), wide.dtype)
    return returned(xp, _summed(xp, wide, ids, n) / _rows(xp, counts, wide), x.dtype)


def segment_max(x: A, ids: Any, n: int) -> A:
    """The largest elements of rows with the same number, see `segment_sum`; where there are none,
    the least number of the dtype, -inf for floats. Equal elements share the gradient.

    >>> iso.segment_max(np.array([1.0, 2.0, 3.0]), np.array([0, 1, 0]), 2)
    array([3., 2.])
    """
    return _extreme("segment_max", x, ids, n, False)


def segment_min(x: A, ids: Any, n: int) -> A:
    """The smallest elements of rows with the same number, see `segment_sum`; where there are none,
    the greatest number of the dtype, inf for floats. Equal elements share the gradient.

    >>> iso.segment_min(np.array([1.0, 2.0, 3.0]), np.array([0, 1, 0]), 2)
    array([1., 2.])
    """
    return _extreme("segment_min", x, ids, n, True)


def segment_softmax(x: A, ids: Any, n: int) -> A:
    """The softmax over those rows of x [rows, ...] that have the same number in ids [rows], in
    the shape of `x`; 0 in rows whose number is not in 0 … n - 1.

    >>> iso.segment_softmax(np.array([0.0, 5.0, 0.0]), np.array([0, 1, 0]), 2)
    array([0.5, 1. , 0.5])
    """
    xp, x, ids, n = _segments("segment_softmax", x, ids, n)
    x = floats(xp, real("segment_softmax", xp, x))
    if n == 0 or not x.shape[0]:
        return xp.zeros_like(x)
    dtype, x = x.dtype, widened(xp, x)
    top = _combined(xp, xp.stop_gradient(x, False), ids, n, False)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    inside = _rows(xp, xp.logical_and(ids >= 0, ids < n), x)
    sure = xp.clip(ids, 0, n - 1)
    powers = xp.exp(xp.where(inside, x - xp.take(top, sure, axis=0), xp.zeros_like(x)))
    powers = xp.where(inside, powers, xp.zeros_like(powers))
    totals = _summed(xp, powers, ids, n)
    # a row without any weight has no softmax; of an empty segment nobody asks
    totals = xp.where(totals == 0, xp.full_like(totals, float("nan")), totals)
    totals = xp.where(inside, xp.take(totals, sure, axis=0), xp.ones_like(powers))
    return returned(xp, powers / totals, dtype)


def bincount(x: A, weights: Any = None, *, minlength: int = 0, length: int | None = None) -> A:
    """How often each of the numbers 0, 1, 2 … occurs in a vector of integers, or the sums of
    `weights` at these places.

    The result is as long as the largest number needs, and at least `minlength`. In a compiled
    program that is not known: give `length`, and numbers that are not below it are left out, as
    are negative ones. Without `length`, a negative number raises.

    >>> iso.bincount(np.array([0, 2, 2]), minlength=4)
    array([1, 0, 2, 0])
    """
    xp: Any = backend_of(x) if weights is None else backend_of(x, weights)
    numbers = integers("bincount", "x", xp, x)
    if len(numbers.shape) != 1:
        raise ValueError(f"bincount: needed a vector, got shape {tuple(x.shape)}")
    least = size("bincount", "minlength", minlength)
    n = size("bincount", "length", length) if length is not None else _longest(xp, numbers, least)
    return _counted("bincount", xp, numbers, weights, n)


def histogram(
    x: A,
    bins: Any = 10,
    range: tuple[Any, Any] | None = None,
    weights: Any = None,
    density: bool = False,
) -> tuple[A, A]:
    """How many elements, or what sum of `weights`, fall into each bin; and the edges of the bins.

    `bins` is a number of equal bins, or a sorted vector of edges. Equal bins cover `range`, or the
    elements from the least to the greatest. A bin has its left edge; the last has both. Elements
    outside, and NaN, are left out; but NaN without a `range` makes all edges NaN and counts 0.
    With `density`, the counts are divided by their sum and by the widths.

    >>> iso.histogram(np.array([1.0, 2.0, 2.5]), bins=2, range=(1.0, 3.0))
    (array([1, 2]), array([1., 2., 3.]))
    """
    xp: Any = backend_of(*(y for y in (x, bins, weights) if find_backend(y) is not None))
    shape_of("histogram", "x", x)
    real("histogram", xp, x)
    values, edges = promoted(xp, *_edges(xp, xp.reshape(floats(xp, x), (-1,)), bins, range))
    n = edges.shape[0] - 1
    if weights is not None:
        if tuple(weights.shape) != tuple(x.shape):
            raise ValueError(
                f"histogram: needed one weight for each element, shape {tuple(x.shape)}, got "
                f"{tuple(weights.shape)}"
            )
        weights = xp.reshape(weights, (-1,))
    fixed, ends = xp.stop_gradient(values, False), xp.stop_gradient(edges, False)
    at = bisected(xp, ends, fixed, "right") - 1
    at = xp.where(fixed == ends[-1], xp.full_like(at, n - 1), at)
    counts = _summed(xp, xp.ones_like(at) if weights is None else weights, at, n)
    if density:
        dtype = edges.dtype if weights is None else floats(xp, counts).dtype
        ends = widened(xp, edges)
        if weights is None:
            counts = xp.astype(counts, ends.dtype)
        else:
            counts = _summed(xp, widened(xp, floats(xp, weights)), at, n)
        widths = xp.astype(ends[1:] - ends[:-1], counts.dtype)
        counts = returned(xp, counts / xp.astype(xp.sum(counts), counts.dtype) / widths, dtype)
    return counts, edges


def one_hot(x: A, n: int, /, *, dtype: DType | None = None) -> A:
    """Rows of `n` numbers with a 1 at the place that each integer of `x` names, [..., n]; rows of
    zeros for integers that are not in 0 … n - 1. The dtype is that of `iso.zeros`.

    >>> iso.one_hot(np.array([1, 3]), 3)
    array([[0., 1., 0.],
           [0., 0., 0.]], dtype=float32)
    """
    xp: Any = backend_of(x)
    numbers = integers("one_hot", "x", xp, x)
    wanted = floating(home(xp.name)) if dtype is None else xp.dtype(dtype)
    columns = places(xp, size("one_hot", "n", n), x)
    return xp.astype(xp.expand_dims(numbers, axis=-1) == columns, wanted)


def _segments(name: str, x: Any, ids: Any, n: Any) -> tuple[Any, Any, Any, int]:
    xp: Any = backend_of(x, ids)
    ids, shape = integers(name, "ids", xp, ids), shape_of(name, "x", x)
    if len(ids.shape) != 1 or not shape or shape[0] != ids.shape[0]:
        raise ValueError(
            f"{name}: needed a number for each row of x, shape {tuple(shape)[:1]}, got shape "
            f"{tuple(ids.shape)}"
        )
    return xp, x, ids, size(name, "n", n)


def _rows(xp: Any, x: Any, like: Any) -> Any:
    """A vector with axes behind it, so that it fits the rows of another array."""
    return xp.reshape(x, (-1, *(1 for _ in like.shape[1:])))


def _summed(xp: Any, x: Any, ids: Any, n: int) -> Any:
    """The sums of rows by number; other numbers count for a row that is cut off."""
    ids = xp.where(xp.logical_and(ids >= 0, ids < n), ids, xp.full_like(ids, n))
    wide = widened(xp, x)
    none = xp.zeros((n + 1, *x.shape[1:]), dtype=wide.dtype, device=xp.device_of(x))
    return returned(xp, xp.index_update(none, ids, wide, "add")[:n, ...], x.dtype)


def _combined(xp: Any, x: Any, ids: Any, n: int, least: bool) -> Any:
    """The extremes of rows by number, for `x` that is not differentiated; NaN is left out."""
    start = limits(xp, x.dtype)[1 if least else 0]
    if xp.is_float(x.dtype):
        x = xp.where(xp.isnan(x), xp.full_like(x, start), x)
    ids = xp.where(xp.logical_and(ids >= 0, ids < n), ids, xp.full_like(ids, n))
    none = xp.full((n + 1, *x.shape[1:]), start, dtype=x.dtype, device=xp.device_of(x))
    return xp.index_update(none, ids, x, "min" if least else "max")[:n, ...]


def _extreme(name: str, x: Any, ids: Any, n: int, least: bool) -> Any:
    xp, x, ids, n = _segments(name, x, ids, n)
    real(name, xp, x)
    fixed = xp.stop_gradient(x, False)
    found = _combined(xp, fixed, ids, n, least)
    if not xp.is_float(x.dtype) or n == 0 or not x.shape[0]:
        return found
    sure = xp.clip(ids, 0, n - 1)
    hit = xp.logical_and(
        _rows(xp, xp.logical_and(ids >= 0, ids < n), x), fixed == xp.take(found, sure, axis=0)
    )
    hits = _summed(xp, xp.astype(hit, index_dtype(xp)), ids, n)
    wide, none = widened(xp, x), xp.zeros_like(x)
    ties = xp.astype(xp.maximum(hits, xp.ones_like(hits)), wide.dtype)
    shared = xp.where(hit, wide, xp.zeros_like(wide)) / xp.take(ties, sure, axis=0)
    shared = returned(xp, _summed(xp, shared, ids, n), x.dtype)
    # the value is the element itself; its derivative is that of the mean of equal elements
    finite = xp.isfinite(found)
    safe = xp.where(finite, shared, xp.zeros_like(shared))
    exact = xp.where(finite, found + (safe - xp.stop_gradient(safe, False)), shared)
    exact = xp.where(hits > 0, exact, found)
    return exact + _summed(xp, xp.where(xp.isnan(x), x, none), ids, n)


def _longest(xp: Any, x: Any, least: int) -> int:
    if not x.shape[0]:
        return least
    ends = xp.stack([xp.min(x), xp.max(x)])
    values = xp.at_hand(ends)
    if values is None and xp.is_tracing([x]):
        raise TypeError(
            "bincount: needed length=, as the result of a compiled program cannot depend on values"
        )
    low, high = (values if values is not None else xp.values(ends)).tolist()
    if low < 0:
        raise ValueError(f"bincount: needed integers of at least 0, got {low}")
    return max(least, high + 1)


def _counted(name: str, xp: Any, x: Any, weights: Any, n: int) -> Any:
    if weights is None:
        return _summed(xp, xp.ones_like(x), x, n)
    if find_backend(weights) is None or tuple(weights.shape) != tuple(x.shape):
        came = tuple(weights.shape) if hasattr(weights, "shape") else type(weights).__name__
        raise ValueError(f"{name}: needed one weight for each element, got {came}")
    return _summed(xp, floats(xp, weights), x, n)


def _edges(xp: Any, x: Any, bins: Any, range: Any) -> tuple[Any, Any]:
    if find_backend(bins) is not None and getattr(bins, "shape", ()):
        edges = floats(xp, real("histogram", xp, bins))
        if len(edges.shape) != 1 or edges.shape[0] < 2:
            raise ValueError(
                f"histogram: needed at least two edges in a vector, got shape {tuple(bins.shape)}"
            )
        return x, edges
    n = size("histogram", "bins", bins, 1)
    if range is not None:
        low, high = (array(xp, end, x) for end in range)
    elif x.shape[0]:
        low, high = xp.min(x), xp.max(x)
    else:
        low, high = (xp.asarray(end, dtype=x.dtype, device=xp.device_of(x)) for end in (0.0, 1.0))
    low, high = promoted(xp, floats(xp, low), floats(xp, high))
    dtype, low, high = low.dtype, widened(xp, low), widened(xp, high)
    same = low == high
    half = xp.where(same, xp.full_like(low, 0.5), xp.zeros_like(low))
    low, high = low - half, high + half
    # as NumPy computes them, to the last digit: elements may lie on edges
    i = xp.arange(n + 1, dtype=low.dtype, device=xp.device_of(low))
    return x, returned(xp, xp.where(i < n, low + i * ((high - low) / n), high), dtype)
