"""Functions that only move numbers: their derivative moves them back."""

from functools import partial
from typing import Any

import numpy as np

from ..buffers import made
from ..tape import composed, constant, rule, scatter
from ..traced import TRACED, concrete, no_rule, record

constant(
    np.shape, np.ndim, np.size, np.result_type, np.can_cast, np.common_type, np.iscomplexobj,
    np.isrealobj,
    np.shares_memory, np.may_share_memory,
    np.isscalar, np.array_repr, np.array_str, np.array2string, np.min_scalar_type,
    np.save, np.savetxt, np.savez, np.savez_compressed,
)  # fmt: skip


def _like(func, *args, **kw):
    """A new array like a traced one, to which traced numbers can be written."""
    return made(func(*map(concrete, args), **kw))


TRACED |= {func: partial(_like, func) for func in (np.zeros_like, np.ones_like, np.empty_like)}


def arrayed(x):
    """`x` itself if it is an array; a number or a list as an array."""
    return x if hasattr(x, "dtype") else np.asarray(x)


def axes_of(axis, ndim):
    """An axis argument as a tuple of non-negative ints; None means all."""
    if axis is None:
        return tuple(range(ndim))
    return tuple(i % ndim for i in (axis if isinstance(axis, (tuple, list)) else (axis,)))


def layout(a, order) -> Any:
    """The memory order, "C" or "F", that "A" or "K" means for this array. It must be fixed here,
    because the gradient may have another memory layout."""
    if order not in ("A", "K"):
        return order
    flags = concrete(a).flags
    if flags.c_contiguous or (not flags.f_contiguous and order == "A"):
        return "C"
    if flags.f_contiguous:
        return "F"
    raise NotImplementedError(
        "numpy.ravel with order='K': needed a contiguous array, got another; use order='C'"
    )


@rule(np.reshape)
def reshape(y, a, shape, order="C", *, copy=None):
    old, order = a.shape, layout(a, order)
    return (lambda g: np.reshape(g, old, order=order),)


@rule(np.ravel)
def ravel(y, a, order="C"):
    return reshape(y, a, -1, order)


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
    return (lambda g: g,)  # the tape sums it over the broadcast axes


@rule(np.flip)
def flip(y, m, axis=None):
    return (lambda g: np.flip(g, axis),)


@rule(np.roll)
def roll(y, a, shift, axis=None):
    back = -np.asarray(shift)
    return (lambda g: np.roll(g, tuple(back) if back.ndim else int(back), axis),)


@rule(np.real)
def real(y, val):
    return (lambda g: g,)


@rule(np.imag)
def imag(y, val):
    return (lambda g: g * 1j,)


def converted(x, dtype):
    return x.astype(dtype)


@rule(converted)
def _converted(y, x, dtype):
    return (lambda g: g,)  # the tape casts it back


@composed(np.astype)
def astype(x, dtype, /, *, copy=True, device=None):
    if np.dtype(dtype).kind not in "fc":
        return concrete(x).astype(dtype)
    if not copy and x.dtype == dtype:
        return x
    return record(converted, x, np.dtype(dtype))


@rule(np.copy)
def copy(y, a, order="K", subok=False):
    return (lambda g: g,)


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
    axis %= a.ndim
    if np.size(repeats) != 1:
        return np.take(a, np.repeat(np.arange(a.shape[axis]), repeats), axis)
    n = int(np.reshape(repeats, ()))
    if n == 1:
        return np.copy(a)
    before, after = a.shape[: axis + 1], a.shape[axis + 1 :]
    wide = np.broadcast_to(np.expand_dims(a, axis + 1), (*before, n, *after))
    return np.reshape(wide, (*before[:-1], before[-1] * n, *after))


def padded(array, pad_width, **kw):
    return np.pad(array, pad_width, "constant", **kw)


@rule(padded)
def _padded(y, array, pad_width, **kw):
    inner = tuple(slice(low, low + n) for (low, _), n in zip(pad_width, array.shape))
    return (lambda g: g[inner],)


@composed(np.pad)
def pad(array, pad_width, mode="constant", **kw):
    if isinstance(pad_width, dict):
        every = [pad_width.get(i, pad_width.get(i - array.ndim, 0)) for i in range(array.ndim)]
        pad_width = [(w, w) if np.ndim(w) == 0 else w for w in every]
    widths = np.broadcast_to(pad_width, (array.ndim, 2)).tolist()
    if mode in ("constant", "empty"):
        return record(padded, array, widths, **kw)
    if (
        mode not in ("edge", "reflect", "symmetric", "wrap")
        or kw.get("reflect_type", "even") != "even"
    ):
        no_rule(np.pad, f" with mode={mode!r}")
    for axis, width in enumerate(widths):
        if any(width):
            # type: ignore
            array = np.take(array, np.pad(np.arange(array.shape[axis]), width, mode), axis)
    return array


@composed(np.rollaxis)
def rollaxis(a, axis, start=0):
    axis %= a.ndim
    start = start + a.ndim if start < 0 else start
    return np.moveaxis(a, axis, start - 1 if axis < start else start)


@rule(np.rot90)
def rot90(y, m, k=1, axes=(0, 1)):
    return (lambda g: np.rot90(g, -k, axes),)


# fmt: off
TRACED |= {
    np.fliplr: lambda m: m[:, ::-1],
    np.flipud: lambda m: m[::-1],
    np.resize: lambda a, new_shape: np.reshape(
        np.ravel(a)[np.arange(np.prod(new_shape, dtype=int)) % max(a.size, 1)], new_shape),
    np.broadcast_arrays: lambda *args, subok=False: tuple(
        np.broadcast_to(a, np.broadcast_shapes(*map(np.shape, args))) for a in args),
}
# fmt: on


def _atleast(n, front):
    """`np.atleast_1d` and so on: `front` says how many of the missing axes are added before the
    array's own; the others are added after them."""

    def at_least(*arys):
        out = []
        for a in map(arrayed, arys):
            missing = max(n - a.ndim, 0)
            lead = front(a.ndim, missing)
            out.append(
                np.reshape(a, (1,) * lead + a.shape + (1,) * (missing - lead)) if missing else a
            )
        return out[0] if len(out) == 1 else tuple(out)

    return at_least


TRACED[np.atleast_1d] = _atleast(1, lambda ndim, missing: missing)
TRACED[np.atleast_2d] = _atleast(2, lambda ndim, missing: missing)
TRACED[np.atleast_3d] = _atleast(3, lambda ndim, missing: min(missing, 1) if ndim < 2 else 0)


@composed(np.meshgrid)
def meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    n = len(xi)
    first = [1, 0, *range(2, n)] if indexing == "xy" and n > 1 else range(n)
    grid = [
        np.reshape(x, tuple(-1 if i == place else 1 for i in range(n)))
        for place, x in zip(first, map(arrayed, xi))
    ]
    return tuple(grid) if sparse else np.broadcast_arrays(*grid)


def diagonal_slice(rows, columns, offset):
    """The slice that selects a diagonal in a matrix that is flattened to one axis."""
    length = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    start = offset if offset >= 0 else -offset * columns
    return slice(start, start + length * (columns + 1), columns + 1) if length else slice(0, 0)


@rule(np.diagonal)
def diagonal(y, a, offset=0, axis1=0, axis2=1):
    *batch, rows, columns = np.moveaxis(concrete(a), (axis1, axis2), (-2, -1)).shape
    at = (Ellipsis, diagonal_slice(rows, columns, offset))

    def back(g):
        flat = scatter(g, at, (*batch, rows * columns))
        return np.moveaxis(np.reshape(flat, (*batch, rows, columns)), (-2, -1), (axis1, axis2))

    return (back,)


@composed(np.diag)
def diag(v, k=0):
    if v.ndim == 2:
        return np.diagonal(v, k)
    if v.ndim != 1:
        raise ValueError(f"numpy.diag: needed 1 or 2 dimensions, got shape {v.shape}")
    n = v.shape[0] + abs(k)
    return np.reshape(scatter(v, diagonal_slice(n, n, k), (n * n,)), (n, n))


TRACED[np.diagflat] = lambda v, k=0: np.diag(np.ravel(v), k)


@composed(np.trace)
def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    return np.sum(np.diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


TRACED[np.linalg.diagonal] = lambda x, /, *, offset=0: np.diagonal(x, offset, -2, -1)
TRACED[np.linalg.trace] = lambda x, /, *, offset=0, dtype=None: np.trace(x, offset, -2, -1, dtype)
