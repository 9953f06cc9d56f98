"""Functions that only move numbers about: their derivative moves them back."""

import numpy as np

from ..tape import constant, composed, concrete, record, rule

constant(
    np.shape, np.ndim, np.size, np.result_type, np.can_cast, np.common_type, np.iscomplexobj, np.isrealobj,
    np.zeros_like, np.ones_like, np.empty_like, np.full_like, np.shares_memory, np.may_share_memory,
    np.isscalar, np.array_repr, np.array_str, np.array2string, np.min_scalar_type,
)  # fmt: skip


def axes_of(axis, ndim):
    """An axis argument as a tuple of non-negative ints; None means all."""
    if axis is None:
        return tuple(range(ndim))
    return tuple(i % ndim for i in (axis if isinstance(axis, (tuple, list)) else (axis,)))


@rule(np.reshape, np.ravel)
def reshape(y, a, shape=None, order="C", **kw):
    old = a.shape
    return (lambda g: np.reshape(g, old, order=order),)


@rule(np.squeeze, np.expand_dims)
def squeeze(y, a, axis=None):
    old = a.shape
    return (lambda g: np.reshape(g, old),)


@rule(np.transpose)
def transpose(y, a, axes=None):
    back = None if axes is None else np.argsort([i % y.ndim for i in axes])
    return (lambda g: np.transpose(g, back),)


@rule(np.swapaxes)
def swapaxes(y, a, axis1, axis2):
    return (lambda g: np.swapaxes(g, axis1, axis2),)


@rule(np.moveaxis)
def moveaxis(y, a, source, destination):
    return (lambda g: np.moveaxis(g, destination, source),)


@rule(np.matrix_transpose, np.linalg.matrix_transpose)
def matrix_transpose(y, x):
    return (lambda g: np.matrix_transpose(g),)


@rule(np.broadcast_to)
def broadcast_to(y, array, shape, subok=False):
    return (lambda g: g,)  # the tape sums


@rule(np.flip)
def flip(y, m, axis=None):
    return (lambda g: np.flip(g, axis),)


@rule(np.roll)
def roll(y, a, shift, axis=None):
    back = -np.asarray(shift)
    return (lambda g: np.roll(g, tuple(back) if back.ndim else int(back), axis),)


@rule(np.astype)
def astype(y, x, dtype, **kw):
    return (lambda g: g,)  # the tape casts back


@composed(np.astype)
def astype_door(x, dtype, /, *, copy=True, device=None):
    if np.dtype(dtype).kind not in "fc":
        return np.astype(concrete(x), dtype)
    return record(np.astype, x, np.dtype(dtype))


@rule(np.copy)
def copy(y, a, order="K", subok=False):
    return (lambda g: g,)


def joined(*arrays, axis=0):
    return np.concatenate(arrays, axis=axis)


@rule(joined)
def _joined(y, *arrays, axis=0):
    if axis is None:
        ends = np.cumsum([np.size(a) for a in arrays])
        return tuple(
            lambda g, i=i, j=j, s=np.shape(a): np.reshape(g[i:j], s)
            for i, j, a in zip([0, *ends], ends, arrays)
        )
    before = (slice(None),) * (axis % y.ndim)
    ends = np.cumsum([a.shape[axis] for a in arrays])
    return tuple(lambda g, i=i, j=j: g[(*before, slice(i, j))] for i, j in zip([0, *ends], ends))


@composed(np.concatenate)
def concatenate(arrays, /, axis=0, *, out=None, dtype=None, casting="same_kind"):
    if out is not None:
        raise TypeError("numpy.concatenate: out= needed no traced operand, got one")
    y = record(joined, *_items(arrays), axis=axis)
    return y if dtype is None else np.astype(y, dtype)


def stacked(*arrays, axis=0):
    return np.stack(arrays, axis=axis)


@rule(stacked)
def _stacked(y, *arrays, axis=0):
    before = (slice(None),) * (axis % y.ndim)
    return tuple(lambda g, i=i: g[(*before, i)] for i in range(len(arrays)))


@composed(np.stack)
def stack(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    y = record(stacked, *_items(arrays), axis=axis)
    return y if dtype is None else np.astype(y, dtype)


def _items(arrays):
    """The arrays of a sequence, or of one traced array along its first axis."""
    return [a if hasattr(a, "dtype") else np.asarray(a) for a in arrays]


@rule(np.tril)
def tril(y, m, k=0):
    return (lambda g: np.tril(g, k),)


@rule(np.triu)
def triu(y, m, k=0):
    return (lambda g: np.triu(g, k),)


@rule(np.tile)
def tile(y, A, reps):
    reps = (reps,) if np.ndim(reps) == 0 else tuple(reps)
    old = A.shape
    long = (1,) * (len(reps) - len(old)) + old
    reps = (1,) * (len(long) - len(reps)) + reps
    split = [n for pair in zip(reps, long) for n in pair]
    return (
        lambda g: np.reshape(np.sum(np.reshape(g, split), tuple(range(0, 2 * len(long), 2))), old),
    )


@composed(np.repeat)
def repeat(a, repeats, axis=None):
    if axis is None:
        a, axis = np.ravel(a), 0
    return np.take(a, np.repeat(np.arange(a.shape[axis]), repeats), axis)


@rule(np.pad)
def pad(y, array, pad_width, mode="constant", **kw):
    if mode != "constant":
        raise NotImplementedError(f"numpy.pad with mode={mode!r}: no derivative rule; only mode='constant' has one")
    widths = np.broadcast_to(pad_width, (array.ndim, 2))
    inner = tuple(slice(low, low + n) for (low, _), n in zip(widths.tolist(), array.shape))
    return (lambda g: g[inner],)
