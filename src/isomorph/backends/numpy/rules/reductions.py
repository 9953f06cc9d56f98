"""Sums, products, extremes and variances, whole or running."""

from typing import Any

import numpy as np

from ..tape import composed, constant, rule, scatter
from ..traced import TRACED, Traced, concrete, no_rule, plain
from .elementwise import conj
from .shaping import axes_of

constant(
    np.argmax, np.argmin, np.argsort, np.argpartition, np.nanargmax, np.nanargmin, np.all, np.any,
    np.count_nonzero, np.nonzero, np.flatnonzero, np.argwhere, np.searchsorted, np.digitize,
    np.lexsort, np.isin,
)  # fmt: skip


def widen(g, axis, keepdims, shape):
    """The gradient of a reduction, with the reduced axes restored with size 1."""
    if keepdims or np.ndim(g) == len(shape):
        return g
    axes = axes_of(axis, len(shape))
    return np.reshape(g, tuple(1 if i in axes else n for i, n in enumerate(shape)))


def counted(axis, shape):
    n = 1
    for i in axes_of(axis, len(shape)):
        n *= shape[i]
    return n


def counts(where, axis, shape, dtype):
    """How many elements each slice has: a number, or an array with reduced axes of size 1."""
    if where is True:
        return counted(axis, shape)
    return np.sum(np.broadcast_to(where, shape), axis=axis, keepdims=True).astype(dtype)


def to_float(dtype):
    """Raise for integer dtypes, which have no gradient."""
    if dtype is not None and np.dtype(dtype).kind not in "fc":
        raise NotImplementedError(
            f"a reduction with dtype={np.dtype(dtype)}: no derivative rule; use a float dtype"
        )


@rule(np.sum)
def sum_(y, a, axis=None, dtype=None, out=None, keepdims=False, initial=0, where=True):
    to_float(dtype)
    shape = a.shape
    if where is True:
        return (lambda g: np.broadcast_to(widen(g, axis, keepdims, shape), shape),)
    return (lambda g: np.where(where, widen(g, axis, keepdims, shape), 0.0),)


@rule(np.mean)
def mean(y, a, axis=None, dtype=None, out=None, keepdims=False, *, where=True):
    to_float(dtype)
    shape = a.shape
    n = counts(where, axis, shape, y.dtype)
    if where is True:
        return (lambda g: np.broadcast_to(widen(g / n, axis, keepdims, shape), shape),)
    n = np.maximum(n, 1)
    return (lambda g: np.where(where, widen(g, axis, keepdims, shape) / n, 0.0),)


@rule(np.max, np.min, np.amax, np.amin, np.nanmax, np.nanmin)
def extreme(y, a, axis=None, out=None, keepdims=False, initial=None, where=True):
    shape = a.shape
    found = widen(concrete(y), axis, keepdims, shape)
    hit = concrete(a) == found
    if where is not True:
        hit = hit & where
    ties = np.sum(hit, axis=axis, keepdims=True).astype(y.dtype)  # they share the gradient
    ties = np.maximum(ties, 1)
    if not plain(np.isnan(found)).any():
        return (lambda g: np.where(hit, widen(g, axis, keepdims, shape) / ties, 0.0),)

    unknown = np.isnan(found) & where  # if the extreme is NaN, so is the gradient of its slice

    def back(g):
        g = widen(g, axis, keepdims, shape)
        return np.where(unknown, np.nan, np.where(hit, g / ties, 0.0))

    return (back,)


@composed(np.ptp)
def ptp(a, axis=None, out=None, keepdims=False):
    return np.max(a, axis, keepdims=keepdims) - np.min(a, axis, keepdims=keepdims)


def others(x):
    """For each element along the last axis, the product of all the others. It is computed by a tree
    of products, without division. So zeros are not a special case, also in higher derivatives.
    """
    n = x.shape[-1]
    if n < 2:
        return np.ones_like(x)
    half = n // 2
    left, right, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    above = others(np.concatenate([left * right, rest], -1))
    pairs = above[..., :half]
    return np.concatenate([pairs * right, pairs * left, above[..., half:]], -1)


def along_lanes(func, x, axis):
    """Apply `func` over the given axes of x, joined into one axis. `func` works along the last axis
    and keeps the shape."""
    axes = axes_of(axis, x.ndim)
    last = tuple(range(-len(axes), 0))
    moved = np.moveaxis(x, axes, last)
    rest = moved.shape[: x.ndim - len(axes)]
    flat = np.reshape(moved, (*rest, counted(axis, x.shape)))
    return np.moveaxis(np.reshape(func(flat), moved.shape), last, axes)


@rule(np.prod)
def prod(y, a, axis=None, dtype=None, out=None, keepdims=False, initial=1, where=True):
    to_float(dtype)
    shape = a.shape

    def back(g):
        x = a if where is True else np.where(where, a, 1.0)
        d = widen(g, axis, keepdims, shape) * conj(initial * along_lanes(others, x, axis))
        return d if where is True else np.where(where, d, 0.0)

    return (back,)


@rule(np.cumsum)
def cumsum(y, a, axis=None, dtype=None, out=None):
    to_float(dtype)
    shape, along = a.shape, 0 if axis is None else axis

    def back(g):
        g = np.flip(np.cumsum(np.flip(g, along), along), along)
        return np.reshape(g, shape)

    return (back,)


def later(x, d):
    """x[i + d] along the last axis, with zeros past the end."""
    return np.pad(x[..., d:], [(0, 0)] * (x.ndim - 1) + [(0, min(d, x.shape[-1]))])


def carried(g, x):
    """The s with s[i] = g[i] + x[i + 1] s[i + 1] along the last axis. It is computed in steps of
    doubled length, without division, so zeros in x are not a special case."""
    s, step, d = g, later(x, 1), 1
    while d < x.shape[-1]:
        s, step, d = s + step * later(s, d), step * later(step, d), 2 * d
    return s


@rule(np.cumprod)
def cumprod(y, a, axis=None, dtype=None, out=None):
    to_float(dtype)
    shape = a.shape

    def back(g):
        along = -1 if axis is None else axis
        x = np.moveaxis(a if axis is not None else np.ravel(a), along, -1)
        before = np.moveaxis(y, along, -1)[..., :-1]
        before = np.concatenate(
            [np.ones_like(x[..., :1]), before], -1
        )  # the product of the elements before
        d = conj(before) * carried(np.moveaxis(g, along, -1), conj(x))
        return np.reshape(np.moveaxis(d, -1, along), shape)

    return (back,)


def _cumulative(func, first):
    def cumulative(x, /, *, axis=None, dtype=None, out=None, include_initial=False):
        if axis is None:
            if x.ndim != 1:
                raise ValueError(f"numpy.cumulative_*: needed axis= for shape {x.shape}")
            axis = 0
        y = func(x, axis, dtype)
        if not include_initial:
            return y
        start = (*y.shape[: axis % y.ndim], 1, *y.shape[axis % y.ndim + 1 :])
        return np.concatenate([np.full(start, first, y.dtype), y], axis)

    return cumulative


TRACED[np.cumulative_sum] = _cumulative(np.cumsum, 0)
TRACED[np.cumulative_prod] = _cumulative(np.cumprod, 1)


def freedom(where, axis, shape, dtype, lost):
    """The divisor of a variance in each slice, that is, the number of elements minus `lost`; NaN if
    it is 0 or negative."""
    n = counts(where, axis, shape, dtype) - lost
    return np.where(n > 0, n, np.nan).astype(dtype)


def deviations(a, axis, mean, where):
    """Each element minus the mean of its slice; 0 where `where` is False."""
    if mean is None:
        wide = np.result_type(a.dtype, np.float32)  # a mean in half precision is too coarse
        kept = a if where is True else np.where(where, a, 0.0)
        mean = np.mean(kept, axis, wide, keepdims=True, where=where)
    return a - mean if where is True else np.where(where, a - mean, 0.0)


@rule(np.var)
def var(
    y, a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, mean=None,
    correction=None,
):  # fmt: skip
    to_float(dtype)
    shape = a.shape
    n = freedom(where, axis, shape, y.dtype, ddof if correction is None else correction)
    return (lambda g: widen(g, axis, keepdims, shape) * 2 / n * deviations(a, axis, mean, where),)


@rule(np.std)
def std(
    y, a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, mean=None,
    correction=None,
):  # fmt: skip
    to_float(dtype)
    shape = a.shape
    n = freedom(where, axis, shape, y.dtype, ddof if correction is None else correction)

    def back(g):
        d = deviations(a, axis, mean, where)
        spread = widen(y, axis, keepdims, shape)
        # Equal numbers have zero spread, up to the rounding of their mean, which NumPy computes in
        # float32 or wider. There the gradient is 0, like that of |x| at 0.
        center = np.fmax.reduce(np.abs(concrete(a - d)), axis, keepdims=True, initial=0)
        flat = concrete(spread) <= 8 * np.finfo(np.result_type(y, np.float32)).eps * center
        slope = np.where(flat, 0.0, 1 / np.where(flat, 1.0, spread))
        return widen(g, axis, keepdims, shape) / n * d * slope

    return (back,)


def _nan(maker):
    """The rule of a reduction that ignores NaN, made from the rule of the usual one."""

    def nan_maker(y, a, *args, where=True, **kw):
        return maker(y, a, *args, where=~np.isnan(concrete(a)) & where, **kw)

    return nan_maker


rule(np.nansum)(_nan(sum_))
rule(np.nanmean)(_nan(mean))
rule(np.nanprod)(_nan(prod))
rule(np.nanvar)(_nan(var))
rule(np.nanstd)(_nan(std))


@composed(np.nancumsum)
def nancumsum(a, axis=None, dtype=None, out=None):
    return np.cumsum(np.where(np.isnan(concrete(a)), 0.0, a), axis, dtype)


@composed(np.nancumprod)
def nancumprod(a, axis=None, dtype=None, out=None):
    return np.cumprod(np.where(np.isnan(concrete(a)), 1.0, a), axis, dtype)


@composed(np.bincount)
def bincount(x, /, weights=None, minlength=0):
    x = np.asarray(concrete(x))
    if weights is None:
        return np.bincount(x, minlength=minlength)
    return scatter(weights.astype(np.float64), x, (max(int(x.max(initial=-1)) + 1, minlength),))


@composed(np.histogram)
def histogram(a, bins: Any = 10, range=None, density=None, weights: Any = None):
    """Counts are constant. Weights, and edges computed from the data, are not: these raise."""
    if type(weights) is Traced or type(bins) is Traced or (np.ndim(bins) == 0 and range is None):
        no_rule(np.histogram, " with traced weights, or without bins= given as plain edges")
    return np.histogram(concrete(a), bins, range, density=density, weights=weights)
