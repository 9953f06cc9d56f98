"""Joining arrays into one, and splitting one into several."""

from itertools import accumulate, pairwise

import numpy as np

from ..tape import composed, rule
from ..traced import Traced, concrete, floating, record
from .shaping import arrayed


def joined(*arrays, axis=0):
    return np.concatenate(arrays, axis=axis)


@rule(joined)
def _joined(y, *arrays, axis=0):
    if axis is None:
        ends = list(accumulate(np.size(a) for a in arrays))
        shapes = [np.shape(a) for a in arrays]
        return tuple(
            lambda g, i=i, j=j, shape=shape: np.reshape(g[i:j], shape)
            for i, j, shape in zip([0, *ends], ends, shapes)
        )
    before = (slice(None),) * (axis % y.ndim)
    ends = list(accumulate(a.shape[axis] for a in arrays))
    return tuple(lambda g, i=i, j=j: g[(*before, slice(i, j))] for i, j in zip([0, *ends], ends))


@composed(np.concatenate)
def concatenate(arrays, /, axis=0, *, out=None, dtype=None, casting="same_kind"):
    floating("concatenate", dtype)
    y = record(joined, *items(arrays), axis=axis)
    return y if dtype is None else y.astype(dtype)


def stacked(*arrays, axis=0):
    return np.stack(arrays, axis=axis)


@rule(stacked)
def _stacked(y, *arrays, axis=0):
    before = (slice(None),) * (axis % y.ndim)
    return tuple(lambda g, i=i: g[(*before, i)] for i in range(len(arrays)))


@composed(np.stack)
def stack(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    floating("stack", dtype)
    y = record(stacked, *items(arrays), axis=axis)
    return y if dtype is None else y.astype(dtype)


def items(arrays):
    """The elements of a sequence, or of one traced array along its first axis, as arrays."""
    return [arrayed(a) for a in arrays]


@composed(np.vstack)
def vstack(tup, *, dtype=None, casting="same_kind"):
    return np.concatenate([np.atleast_2d(a) for a in tup], 0, dtype=dtype)


@composed(np.hstack)
def hstack(tup, *, dtype=None, casting="same_kind"):
    axis = 1 if np.ndim(tup[0]) > 1 else 0
    return np.concatenate([np.atleast_1d(a) for a in tup], axis, dtype=dtype)


@composed(np.dstack)
def dstack(tup):
    return np.concatenate([np.atleast_3d(a) for a in tup], 2)


@composed(np.column_stack)
def column_stack(tup):
    return np.concatenate([np.atleast_2d(a).T if np.ndim(a) < 2 else a for a in tup], 1)


@composed(np.unstack)
def unstack(x, /, *, axis=0):
    return tuple(np.moveaxis(x, axis, 0))


@composed(np.hsplit)
def hsplit(ary, indices_or_sections):
    return np.split(ary, indices_or_sections, 1 if ary.ndim > 1 else 0)


@composed(np.vsplit)
def vsplit(ary, indices_or_sections):
    return np.split(ary, indices_or_sections, 0)


@composed(np.dsplit)
def dsplit(ary, indices_or_sections):
    return np.split(ary, indices_or_sections, 2)


@composed(np.array_split)
def array_split(ary, indices_or_sections, axis=0):
    n = ary.shape[axis]
    if np.ndim(indices_or_sections):
        cuts = [0, *indices_or_sections, n]
    else:
        each, extra = divmod(n, int(indices_or_sections))
        cuts = [i * each + min(i, extra) for i in range(int(indices_or_sections) + 1)]
    before = (slice(None),) * (axis % ary.ndim)
    return [ary[(*before, slice(i, j))] for i, j in pairwise(cuts)]


@composed(np.split)
def split(ary, indices_or_sections, axis=0):
    if np.ndim(indices_or_sections) == 0 and ary.shape[axis] % indices_or_sections:
        raise ValueError(
            f"numpy.split: needed an axis that divides into {indices_or_sections} equal parts, "
            f"got one of length {ary.shape[axis]}"
        )
    return np.array_split(ary, indices_or_sections, axis)


@composed(np.append)
def append(arr, values, axis=None):
    if axis is None:
        return np.concatenate([np.ravel(arr), np.ravel(values)])
    return np.concatenate([arr, arrayed(values)], axis)


@composed(np.insert)
def insert(arr, obj, values, axis=None):
    arr, values = arrayed(arr), arrayed(values)
    if axis is None:
        arr, axis = np.ravel(arr), 0
    axis %= arr.ndim
    values = np.reshape(values, (1,) * (arr.ndim - values.ndim) + values.shape)
    n = arr.shape[axis]
    if isinstance(obj, slice):
        obj = np.arange(*obj.indices(n))
    elif hasattr(obj, "dtype") and obj.dtype.kind == "b":
        obj = np.flatnonzero(obj)
    if np.ndim(obj) == 0:  # then NumPy takes `values` as in a[:, i] = values
        values = np.moveaxis(values, 0, axis)
    count = values.shape[axis] if np.size(obj) == 1 else np.size(obj)
    shape = (*arr.shape[:axis], count, *arr.shape[axis + 1 :])
    if type(values) is Traced:
        floating("insert into an array of integers", arr.dtype)
    both = np.concatenate([arr, np.broadcast_to(values, shape).astype(arr.dtype)], axis)
    return np.take(both, np.insert(np.arange(n), concrete(obj), n + np.arange(count)), axis)


@composed(np.block)
def block(arrays):
    def depth(a):
        return 1 + max(map(depth, a)) if type(a) is list else 0

    def largest(a):
        return max(map(largest, a)) if type(a) is list else np.ndim(a)

    levels = depth(arrays)
    ndim = max(levels, largest(arrays))

    def build(a, axis):
        if type(a) is list:
            return np.concatenate([build(x, axis + 1) for x in a], axis)
        return np.reshape(a, (1,) * (ndim - np.ndim(a)) + np.shape(a))

    return build(arrays, -levels) if ndim else np.copy(arrays)
