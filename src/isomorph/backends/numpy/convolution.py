"""Convolution in NumPy: windows of x laid out as rows of a matrix (im2col), times the filters.

The number ⟨conv(x, w), g⟩ is linear in x, in the filters w and in the cotangent g. Its derivatives
with respect to g, x and w are the three primitives here: `conv`, `back_x` and `back_w`. So the
derivatives of each are the other two, and all orders follow.

The matrix of windows is made in pieces: as many samples as fit into `PIECE` bytes, or, if one
sample does not fit, as many rows of its output as fit, at least one. All other arrays are as large
as the padded x or the result. Everything is computed with channels last. An x with channels first
is copied once, when it is padded anyway. Its result is a view of an array with channels last, which
the next convolution takes without a copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

import numpy
from numpy.lib.stride_tricks import as_strided

from ...meanings.conv_plan import Plan
from .rules.elementwise import conj
from .tape import primitive, rule

np: Any = numpy  # its type stubs do not know traced values
PIECE = 1 << 21  # bytes of windows made at a time, so that they fit into the cache of a core


@primitive
def conv(x: Any, w: Any, plan: Plan) -> Any:
    """The convolution of `x` with `w`, without bias."""
    x, w = _padded(_last(x, plan), plan), _filters(w, plan)
    k = w.shape[:-2]
    out = np.empty((x.shape[0], *plan.size, w.shape[-1]), x.dtype)
    if _is_depthwise(w, plan):
        shares = np.reshape(out, (*out.shape[:-1], plan.groups, w.shape[-1] // plan.groups))
        shares[...] = 0
        for i, (place, index) in product(range(len(x)), _places(k, plan)):
            shares[i] += x[i][index][..., None] * np.reshape(w[place], shares.shape[-2:])
    else:
        matrices = _matrices(w, plan)
        for rows, piece in _pieces(x, k, plan):
            np.matmul(rows, matrices, out=_grouped(out[piece], plan))
    return _as_given(out, plan)


@primitive
def back_x(g: Any, w: Any, plan: Plan, shape: tuple[int, ...]) -> Any:
    """The gradient of `conv` with respect to an x of that shape, for the cotangent `g`."""
    g, w = _contiguous(_last(g, plan)), _filters(w, plan)
    k = w.shape[:-2]
    shape = (shape[0], *shape[2:], shape[1]) if plan.first else shape
    sizes = _padded_sizes(shape[1:-1], plan)
    whole = np.zeros((shape[0], *sizes, shape[-1]), g.dtype)
    if _is_depthwise(w, plan):
        w = np.reshape(w, (*k, plan.groups, w.shape[-1] // plan.groups))
        shares = np.reshape(g, (*g.shape[:-1], *w.shape[-2:]))
        for i, (place, index) in product(range(len(g)), _places(k, plan)):
            whole[i][index] += np.sum(shares[i] * w[place], -1)
    else:
        matrices = np.swapaxes(_matrices(w, plan), -1, -2)
        windows, buffer = _windows(whole, k, plan), None
        for piece in _split(whole, k, plan):
            rows = _grouped(g[piece], plan)
            buffer = _room(buffer, (*rows.shape[:2], matrices.shape[-1]), g.dtype)
            parts = windows[(slice(None), *piece)]  # windows overlap: add one position at a time
            terms = np.reshape(np.matmul(rows, matrices, out=buffer), parts.shape)
            for place in product(*map(range, k)):
                at = (..., *place, slice(None))
                parts[at] += terms[at]
    inside, kept = _inside(shape[1:-1], sizes, plan)
    if all(a.stop - a.start == n for a, n in zip(kept, shape[1:-1])):
        x = _contiguous(whole[(slice(None), *inside)])
    else:  # the rest was cropped
        x = np.zeros(shape, g.dtype)
        x[(slice(None), *kept)] = whole[(slice(None), *inside)]
    return _as_given(x, plan)


@primitive
def back_w(x: Any, g: Any, plan: Plan, shape: tuple[int, ...]) -> Any:
    """The gradient of `conv` with respect to filters of that shape, for the cotangent `g`."""
    x, g = _padded(_last(x, plan), plan), _contiguous(_last(g, plan))
    out, fewer, k = shape[0], shape[1], shape[2:]
    if not plan.filters_first:
        out, fewer, k = shape[-1], shape[-2], shape[:-2]
    each = out // plan.groups
    if fewer == 1 and plan.groups > 1:
        w = np.zeros((*k, plan.groups, each), x.dtype)
        shares = np.reshape(g, (*g.shape[:-1], plan.groups, each))
        over = tuple(range(len(k)))
        for i, (place, index) in product(range(len(x)), _places(k, plan)):
            w[place] += np.sum(x[i][index][..., None] * shares[i], over)
        w = np.reshape(w, (*k, 1, out))
    else:
        total = np.zeros((plan.groups, prod(k) * fewer, each), x.dtype)
        for rows, piece in _pieces(x, k, plan):
            total += np.matmul(np.swapaxes(rows, -1, -2), _grouped(g[piece], plan))
        w = np.reshape(np.moveaxis(total, 0, 1), (*k, fewer, out))
    return np.transpose(w, (len(k) + 1, len(k), *range(len(k)))) if plan.filters_first else w


def transposed(x: Any, w: Any, plan: Plan) -> Any:
    """The transposed convolution, without bias. It is `back_x` of an ordinary convolution, whose
    filters, with channels last, are `[*k, out/groups, in]`.
    """
    w, each = (w, w.shape[1]) if plan.filters_first else (np.swapaxes(w, -1, -2), w.shape[-1])
    out = each * plan.groups
    shape = (x.shape[0], out, *plan.size) if plan.first else (x.shape[0], *plan.size, out)
    sizes = x.shape[2:] if plan.first else x.shape[1:-1]
    return back_x(x, w, plan._replace(size=sizes), shape)


def biased(y: Any, bias: Any, plan: Plan) -> Any:
    """`y`, which may be overwritten, plus the bias."""
    if bias is None:
        return y
    if plan.first:
        bias = np.reshape(bias, (-1, *(1,) * len(plan.size)))
    if type(y) is numpy.ndarray and type(bias) is numpy.ndarray:
        y += bias
        return y
    return y + bias


@rule(conv)
def _conv(y, x, w, plan):
    like_x, like_w = x.shape, w.shape
    return lambda g: back_x(g, conj(w), plan, like_x), lambda g: back_w(conj(x), g, plan, like_w)


@rule(back_x)
def _back_x(y, g, w, plan, shape):
    like = w.shape
    return lambda h: conv(h, conj(w), plan), lambda h: back_w(h, conj(g), plan, like)


@rule(back_w)
def _back_w(y, x, g, plan, shape):
    like = x.shape
    return lambda h: back_x(conj(g), h, plan, like), lambda h: conv(conj(x), h, plan)


def _last(x: Any, plan: Plan) -> Any:
    return np.moveaxis(x, 1, -1) if plan.first else x


def _as_given(x: Any, plan: Plan) -> Any:
    return np.moveaxis(x, -1, 1) if plan.first else x


def _contiguous(x: Any) -> Any:
    return np.ascontiguousarray(x)


def _filters(w: Any, plan: Plan) -> Any:
    """The filters as `[*k, in/groups, out]`."""
    return np.transpose(w, (*range(2, w.ndim), 1, 0)) if plan.filters_first else w


def _is_depthwise(w: Any, plan: Plan) -> bool:
    """Whether each channel is convolved on its own, which needs no matrix product."""
    return w.shape[-2] == 1 and plan.groups > 1


def _matrices(w: Any, plan: Plan) -> Any:
    """The filters as one matrix per group, `[groups, prod(k)·in/groups, out/groups]`."""
    rows, each = prod(w.shape[:-1]), w.shape[-1] // plan.groups
    return np.moveaxis(np.reshape(w, (rows, plan.groups, each)), 1, 0)


def _grouped(y: Any, plan: Plan) -> Any:
    """A view of a piece of the output as one matrix per group, `[groups, rows, out/groups]`."""
    each = y.shape[-1] // plan.groups
    return np.swapaxes(np.reshape(y, (prod(y.shape[:-1]), plan.groups, each)), 0, 1)


def _places(k: tuple[int, ...], plan: Plan) -> list[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Each position in the filter, and the slices of a padded sample that it is multiplied with."""
    found = []
    for place in product(*map(range, k)):
        starts = [i * d for i, d in zip(place, plan.dilations)]
        ends = [a + (size - 1) * s + 1 for a, size, s in zip(starts, plan.size, plan.strides)]
        found.append((place, tuple(map(slice, starts, ends, plan.strides))))
    return found


def _windows(x: Any, k: tuple[int, ...], plan: Plan) -> Any:
    """A view of all windows of a padded x, `[groups, batch, *sizes, *k, in/groups]`."""
    each = x.shape[-1] // plan.groups
    batch, *axes, channel = x.strides
    strides = [a * s for a, s in zip(axes, plan.strides)]
    strides += [a * d for a, d in zip(axes, plan.dilations)]
    return as_strided(
        x,
        (plan.groups, x.shape[0], *plan.size, *k, each),
        (each * channel, batch, *strides, channel),
    )


def _split(x: Any, k: tuple[int, ...], plan: Plan) -> list[tuple[slice, slice]]:
    """Slices of the samples and of the first axis of the output. Together they cover the output,
    and the windows of each pair fit into `PIECE` bytes, if those of one row do.
    """
    row = prod(plan.size[1:]) * prod(k) * x.shape[-1] * x.itemsize
    samples, height = max(1, PIECE // (row * plan.size[0])), max(1, PIECE // row)
    return [
        (slice(i, i + samples), slice(j, j + height))
        for i in range(0, x.shape[0], samples)
        for j in range(0, plan.size[0], height)
    ]


def _pieces(x: Any, k: tuple[int, ...], plan: Plan) -> Iterator[tuple[Any, tuple[slice, ...]]]:
    """Yield, piece by piece, the windows of a padded x as rows `[groups, rows, prod(k)·in/groups]`,
    and where the piece is in the output. All pieces use the same memory.
    """
    if prod(k) == prod(plan.strides) == plan.groups == 1 and x.flags.c_contiguous:
        yield np.reshape(x, (1, prod(x.shape[:-1]), x.shape[-1])), (slice(None),)
        return
    windows, buffer = _windows(x, k, plan), None
    for piece in _split(x, k, plan):
        part = windows[(slice(None), *piece)]
        count = prod(part.shape[1 : len(k) + 2])
        shape = plan.groups, count, prod(part.shape[len(k) + 2 :])
        buffer = _room(buffer, shape, x.dtype)
        np.copyto(np.reshape(buffer, part.shape), part)
        yield buffer, piece


def _room(buffer: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """The buffer, if it has that shape; else a new array."""
    return buffer if buffer is not None and buffer.shape == shape else np.empty(shape, dtype)


def _padded(x: Any, plan: Plan) -> Any:
    """`x` with zeros between its elements and around it, channels last in memory."""
    sizes = _padded_sizes(x.shape[1:-1], plan)
    if sizes == x.shape[1:-1] and not any(map(any, plan.pads)):
        return x if x.strides[-1] == x.itemsize else _contiguous(x)
    whole = np.zeros((x.shape[0], *sizes, x.shape[-1]), x.dtype)
    inside, kept = _inside(x.shape[1:-1], sizes, plan)
    whole[(slice(None), *inside)] = x[(slice(None), *kept)]
    return whole


def _padded_sizes(sizes: tuple[int, ...], plan: Plan) -> tuple[int, ...]:
    return tuple(
        (n - 1) * e + 1 + low + high
        for n, e, (low, high) in zip(sizes, plan.x_dilations, plan.pads)
    )


def _inside(
    sizes: tuple[int, ...], padded: tuple[int, ...], plan: Plan
) -> tuple[list[slice], list[slice]]:
    """Where x is in the padded array, and which part of x is there: all that is not cropped."""
    inside, kept = [], []
    for n, size, e, (low, _) in zip(sizes, padded, plan.x_dilations, plan.pads):
        start = -(min(low, 0) // e)
        stop = max(start, min(n, (size - 1 - low) // e + 1))
        kept.append(slice(start, stop))
        first = low + start * e
        inside.append(slice(first, first + max(0, (stop - start - 1) * e + 1), e))
    return inside, kept
