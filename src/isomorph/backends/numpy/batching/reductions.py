"""Functions that work along axes: sums and extremes, sorting, differences, Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from ..mapped import METHODS, Map, Mapped, elementwise, is_mapped, rowwise, rule, spread, value_of
from ..rules.norms import length
from .shaping import flat, place, places

np: Any = numpy  # its type stubs do not know mapped values
BESIDE = ("where", "mean")  # arguments that broadcast with the array


@rule(
    np.sum, np.prod, np.mean, np.std, np.var, np.max, np.min, np.amax, np.amin, np.all, np.any,
    np.count_nonzero, np.ptp, np.nansum, np.nanprod, np.nanmean, np.nanstd, np.nanvar, np.nanmax,
    np.nanmin, np.median, np.nanmedian,
)  # fmt: skip
def reduced(over: Map, func: Callable, a: Any, axis: Any = None, *rest: Any, **kw: Any) -> Any:
    if not kw:
        return Mapped(func(value_of(over, a), places(axis, a.ndim), *rest), over)
    for word, x in kw.items():
        if word in BESIDE and is_mapped(over, x) and x.ndim <= a.ndim:
            kw[word] = spread(x.value, a.ndim)
        elif is_mapped(over, x) or (word in BESIDE and np.ndim(x) > a.ndim):
            return rowwise(over, func, a, axis, *rest, **kw)
    return Mapped(func(value_of(over, a), places(axis, a.ndim), *rest, **kw), over)


@rule(np.argmax, np.argmin, np.nanargmax, np.nanargmin)
def found(
    over: Map, func: Callable, a: Any, axis: Any = None, out: Any = None, *, keepdims: bool = False
) -> Any:
    if axis is not None:
        return Mapped(func(a.value, place(axis, a.ndim), keepdims=keepdims), over)
    y = func(flat(a), 1)
    return Mapped(np.reshape(y, (over.size, *(1,) * a.ndim)) if keepdims else y, over)


@rule(np.cumsum, np.cumprod, np.nancumsum, np.nancumprod)
def accumulated(over: Map, func: Callable, a: Any, axis: Any = None, *rest: Any, **kw: Any) -> Any:
    if axis is None:
        return Mapped(func(flat(a), 1, *rest, **kw), over)
    return Mapped(func(a.value, place(axis, a.ndim), *rest, **kw), over)


@rule(np.cumulative_sum, np.cumulative_prod)
def cumulative(over: Map, func: Callable, x: Any, /, *, axis: Any = None, **kw: Any) -> Any:
    if axis is None and x.ndim != 1:
        raise ValueError(f"{func.__name__}: needed axis= for shape {x.shape}")
    return Mapped(func(x.value, axis=1 if axis is None else place(axis, x.ndim), **kw), over)


@rule(np.sort, np.argsort)
def ordered(over: Map, func: Callable, a: Any, axis: Any = -1, *rest: Any, **kw: Any) -> Any:
    if axis is None:
        return Mapped(func(flat(a), 1, *rest, **kw), over)
    return Mapped(func(a.value, place(axis, a.ndim), *rest, **kw), over)


@rule(np.partition, np.argpartition)
def parted(
    over: Map, func: Callable, a: Any, kth: Any, axis: Any = -1, *rest: Any, **kw: Any
) -> Any:
    if axis is None:
        return Mapped(func(flat(a), kth, 1, *rest, **kw), over)
    return Mapped(func(a.value, kth, place(axis, a.ndim), *rest, **kw), over)


@rule(np.quantile, np.percentile, np.nanquantile, np.nanpercentile)
def quantile(over: Map, func: Callable, a: Any, q: Any, axis: Any = None, *rest: Any,
             **kw: Any) -> Any:  # fmt: skip
    if is_mapped(over, q) or kw.get("weights") is not None:
        return rowwise(over, func, a, q, axis, *rest, **kw)
    y = func(a.value, q, places(axis, a.ndim), *rest, **kw)
    return Mapped(np.moveaxis(y, np.ndim(q), 0), over)  # the axes of q come first


@rule(np.diff)
def diff(over: Map, func: Callable, a: Any, n: int = 1, axis: int = -1, **ends: Any) -> Any:
    if not is_mapped(over, a) or any(hasattr(x, "dtype") for x in ends.values()):
        return rowwise(over, func, a, n, axis, **ends)
    return Mapped(np.diff(a.value, n, place(axis, a.ndim), **ends), over)


@rule(np.unwrap)
def unwrap(
    over: Map, func: Callable, p: Any, discont: Any = None, axis: int = -1, **kw: Any
) -> Any:
    return Mapped(np.unwrap(p.value, discont, place(axis, p.ndim), **kw), over)


@rule(np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.fft.hfft, np.fft.ihfft)
def transformed(
    over: Map, func: Callable, a: Any, n: Any = None, axis: int = -1, norm: Any = None,
    out: Any = None,
) -> Any:  # fmt: skip
    return Mapped(func(a.value, n, place(axis, a.ndim), norm), over)


@rule(np.fft.fftn, np.fft.ifftn, np.fft.rfftn, np.fft.irfftn)
def transformed_all(
    over: Map, func: Callable, a: Any, s: Any = None, axes: Any = None, norm: Any = None,
    out: Any = None,
) -> Any:  # fmt: skip
    if axes is None and s is not None:
        axes = tuple(range(-len(s), 0))
    return Mapped(func(a.value, s, places(axes, a.ndim), norm), over)


@rule(np.fft.fft2, np.fft.ifft2, np.fft.rfft2, np.fft.irfft2)
def transformed_two(
    over: Map, func: Callable, a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None,
    out: Any = None,
) -> Any:  # fmt: skip
    return Mapped(func(a.value, s, places(axes, a.ndim), norm), over)


@rule(np.fft.fftshift, np.fft.ifftshift)
def shifted(over: Map, func: Callable, x: Any, axes: Any = None) -> Any:
    return Mapped(func(x.value, places(axes, x.ndim)), over)


@rule(np.searchsorted)
def searchsorted(over: Map, func: Callable, a: Any, v: Any, side: Any = "left",
                 sorter: Any = None) -> Any:  # fmt: skip
    if is_mapped(over, a) or is_mapped(over, sorter):
        return rowwise(over, func, a, v, side, sorter)
    return Mapped(np.searchsorted(a, v.value, side, sorter), over)


@rule(np.digitize)
def digitize(over: Map, func: Callable, x: Any, bins: Any, right: bool = False) -> Any:
    if is_mapped(over, bins):
        return rowwise(over, func, x, bins, right)
    return Mapped(np.digitize(x.value, bins, right), over)


@rule(np.isin)
def isin(over: Map, func: Callable, element: Any, test_elements: Any, **kw: Any) -> Any:
    if is_mapped(over, test_elements):
        return rowwise(over, func, element, test_elements, **kw)
    return Mapped(np.isin(element.value, test_elements, **kw), over)


@rule(length)
def euclidean(over: Map, func: Callable, x: Any, axis: Any, keepdims: bool) -> Any:
    y = (
        np.linalg.vector_norm(x.value, axis=places(axis, x.ndim), keepdims=keepdims)
        if axis != () and x.ndim
        else np.abs(x.value)
    )
    return Mapped(y, over)


# Their results differ in shape from example to example, or in what they decide by the values.
rule(
    np.unique, np.unique_all, np.unique_counts, np.unique_inverse, np.unique_values, np.union1d,
    np.intersect1d, np.setdiff1d, np.setxor1d, np.real_if_close, np.linalg.lstsq, np.bincount,
    np.histogram, np.ix_, np.trim_zeros, np.compress, np.extract, np.piecewise, np.roots,
)(rowwise)  # fmt: skip


def _reduce(over: Map, ufunc: Any, array: Any, axis: Any = 0, *rest: Any, **kw: Any) -> Any:
    if ufunc.nin != 2 or not is_mapped(over, array) or any(is_mapped(over, x) for x in kw.values()):
        return rowwise(over, ufunc.reduce, array, axis, *rest, **kw)
    return Mapped(ufunc.reduce(array.value, places(axis, array.ndim), *rest, **kw), over)


def _accumulate(over: Map, ufunc: Any, array: Any, axis: int = 0, *rest: Any, **kw: Any) -> Any:
    return Mapped(ufunc.accumulate(array.value, place(axis, array.ndim), *rest, **kw), over)


def _outer(over: Map, ufunc: Any, a: Any, b: Any, **kw: Any) -> Any:
    wide = np.reshape(a, np.shape(a) + (1,) * np.ndim(b))
    return elementwise(over, ufunc, wide, b, **kw)


def _reduceat(over: Map, ufunc: Any, array: Any, indices: Any, axis: int = 0, *rest: Any,
              **kw: Any) -> Any:  # fmt: skip
    if is_mapped(over, indices):
        return rowwise(over, ufunc.reduceat, array, indices, axis, *rest, **kw)
    return Mapped(ufunc.reduceat(array.value, indices, place(axis, array.ndim), *rest, **kw), over)


METHODS |= {
    "reduce": _reduce, "accumulate": _accumulate, "outer": _outer, "reduceat": _reduceat,
}  # fmt: skip
