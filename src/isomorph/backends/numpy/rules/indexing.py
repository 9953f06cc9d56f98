"""Reading parts of an array, and functions that select or replace parts. The gradient of x[index]
is kept as a gradient and its index (`At`) until the gradient of the whole x is needed."""

from typing import Any

import numpy as np

from ..adding import At
from ..levels import LIFTED
from ..nested import gathered, holds_traced
from ..tape import composed, constant, rule, scatter
from ..traced import concrete, getitem, plain, target
from .shaping import arrayed

constant(
    np.ravel_multi_index, np.unravel_index, np.diag_indices_from, np.tril_indices_from,
    np.triu_indices_from,
)  # fmt: skip


@composed(np.ix_)
def ix_(*args):
    grid = np.ix_(*map(concrete, args))  # a traced argument need not be an index
    return tuple(
        np.reshape(a, p.shape) if type(a) in LIFTED else p for a, p in zip(args, grid)
    )  # fmt: skip


@rule(getitem)
def _getitem(y, x, index):
    return (lambda g: At(g, index),)


@rule(scatter)
def _scatter(y, g, index, shape):
    return (lambda h: getitem(h, index),)


@composed(np.take)
def take(a, indices, axis=None, out=None, mode="raise"):
    indices = arrayed(concrete(indices))
    a = arrayed(a)
    if axis is None:
        a, axis = np.ravel(a), 0
    if mode != "raise":
        n = a.shape[axis]
        indices = indices % n if mode == "wrap" else np.clip(indices, 0, n - 1)
    return a[(slice(None),) * (axis % a.ndim) + (indices,)]


@composed(np.take_along_axis)
def take_along_axis(arr, indices, axis=-1):
    indices = arrayed(concrete(indices))
    if axis is None:
        return np.ravel(arr)[indices]
    axis %= arr.ndim
    grid: list = list(np.ogrid[tuple(slice(n) for n in arr.shape)])
    grid[axis] = indices  # along the other axes, NumPy broadcasts `arr` and `indices`
    return arr[tuple(grid)]


@composed(np.delete)
def delete(arr, obj, axis=None):
    if axis is None:
        arr, axis = np.ravel(arr), 0
    return np.take(arr, np.delete(np.arange(arr.shape[axis]), concrete(obj)), axis)


@composed(np.compress)
def compress(condition, a, axis=None, out=None):
    return np.take(a, np.flatnonzero(concrete(condition)), axis)


@composed(np.extract)
def extract(condition, arr):
    return np.ravel(arr)[np.flatnonzero(concrete(condition))]


@composed(np.trim_zeros)
def trim_zeros(filt, trim="fb", axis=None):
    places = np.argwhere(concrete(filt))
    axes = range(filt.ndim) if axis is None else [i % filt.ndim for i in np.atleast_1d(axis)]
    index = [slice(None)] * filt.ndim
    for i in axes:
        low, high = (places[:, i].min(), places[:, i].max() + 1) if len(places) else (0, 0)
        index[i] = slice(low if "f" in trim.lower() else 0, high if "b" in trim.lower() else None)
    return filt[tuple(index)]


@composed(np.select)
def select(condlist, choicelist, default=0):
    out = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist)):
        out = np.where(condition, choice, out)
    return out


@composed(np.choose)
def choose(a, choices, out=None, mode="raise"):
    choices = [arrayed(c) for c in choices]
    a, n = arrayed(concrete(a)), len(choices)
    given = plain(a)
    if mode == "raise" and np.any((given < 0) | (given >= n)):
        raise ValueError(
            f"numpy.choose: needed indices from 0 to {n - 1}, got {given.min()} to {given.max()}"
        )
    a = a % n if mode == "wrap" else np.clip(a, 0, n - 1)
    return np.select([a == i for i in range(n)], choices)


@composed(np.piecewise)
def piecewise(x, condlist, funclist: Any, *args, **kw):
    masks = np.asarray(concrete(condlist), bool)
    masks = [masks] if masks.ndim == x.ndim else list(masks)
    if len(masks) == len(funclist) - 1:  # the last function is for the rest
        masks.append(~np.any(masks, axis=0))
    free, out = np.full(x.shape, True), np.zeros_like(concrete(x))
    for mask, func in zip(reversed(masks), reversed(funclist)):  # a later condition wins
        here, free = mask & free, free & ~mask
        if callable(func):
            if here.any():  # each function gets its own part only
                part: Any = func(x[here], *args, **kw)
                out = out + scatter(part.astype(x.dtype), here, x.shape)
        else:
            out = np.where(here, func, out)
    return out


@composed(np.apply_along_axis)
def apply_along_axis(func1d, axis, arr, *args, **kw):
    lanes = np.moveaxis(arr, axis, -1)
    outer = lanes.shape[:-1]
    out = np.stack([func1d(lanes[i], *args, **kw) for i in np.ndindex(outer)])
    out = np.reshape(out, outer + out.shape[1:])
    inner = range(len(outer), out.ndim)
    axis %= arr.ndim
    return np.moveaxis(out, tuple(inner), tuple(axis + i for i in range(len(inner))))


@composed(np.apply_over_axes)
def apply_over_axes(func, a, axes):
    for axis in np.atleast_1d(axes):
        reduced = func(a, int(axis))
        a = reduced if reduced.ndim == a.ndim else np.expand_dims(reduced, int(axis))
    return a


# What writes into its first argument.


def _spots(a, places, mode="raise"):
    """The index of places that are counted through all elements."""
    places, size = np.ravel(np.asarray(concrete(places))), a.size
    if mode == "raise" and np.any((places < -size) | (places >= size)):
        raise IndexError(f"numpy.put: needed places below {size}, got {places.tolist()}")
    places = np.clip(places, 0, size - 1) if mode == "clip" else places % size
    return np.unravel_index(places, a.shape)


def _as_many(v, n):
    v = np.ravel(gathered(v) if holds_traced(v) else arrayed(v))
    return v if v.size == n else np.resize(v, n)


@composed(np.put)
def put(a, ind, v, mode="raise"):
    a = a if a.ndim else a[None]
    where = _spots(a, ind, mode)
    if where[0].size:
        target(a, v)[where] = _as_many(v, where[0].size)


@composed(np.place)
def place(arr, mask, vals):
    mask = np.reshape(np.asarray(concrete(mask), bool), arr.shape)
    if mask.any():
        target(arr, vals)[mask] = _as_many(vals, np.count_nonzero(mask))


@composed(np.putmask)
def putmask(a, mask, values):
    mask = np.reshape(np.asarray(concrete(mask), bool), a.shape)
    target(a, values)[mask] = np.reshape(_as_many(values, a.size), a.shape)[mask]


@composed(np.copyto)
def copyto(dst, src, casting: Any = "same_kind", where=True):
    src, mask = arrayed(src), concrete(where)
    if not np.can_cast(src.dtype, dst.dtype, casting):
        raise TypeError(f"numpy.copyto: cannot cast from {src.dtype} to {dst.dtype} with {casting}")
    new = np.broadcast_to(src, dst.shape)
    target(dst, src)[...] = new if mask is True else np.where(mask, new, dst)


@composed(np.put_along_axis)
def put_along_axis(arr, indices, values, axis):
    indices = arrayed(concrete(indices))
    if axis is None:
        put(arr, indices, values)
        return
    axis %= arr.ndim
    grid: list = list(np.ogrid[tuple(slice(n) for n in arr.shape)])
    grid[axis] = indices
    target(arr, values)[tuple(grid)] = values


@composed(np.fill_diagonal)
def fill_diagonal(a, val, wrap=False):
    if a.ndim < 2 or (a.ndim > 2 and len(set(a.shape)) > 1):
        raise ValueError(f"numpy.fill_diagonal: needed equal sizes or a matrix, got {a.shape}")
    step = a.shape[1] + 1 if a.ndim == 2 else 1 + int(np.cumprod(a.shape[:-1]).sum())
    end = None if wrap or a.ndim > 2 else a.shape[1] * a.shape[1]
    put(a, np.arange(a.size)[:end:step], val)
