"""NumPy. Its namespace consists of NumPy's own functions; differentiation is ours (`tape`,
`rules`).
"""

from __future__ import annotations

import math

import numpy as np

from ...meanings.random import EDGE
from .. import random_words
from ..composed import Backend
from ..edges import check_mode, is_left
from ..explaining import INDEX, add
from . import batching as batching
from . import convolution, factors, fused, mapping, recurrent, special, writing
from . import rules as rules
from .buffers import Buffer
from .levels import LIFTED, newest
from .mapped import Mapped, all_examples, getitem, only_input, rowwise, wrapped
from .nested import gathered, holds_traced
from .storage import lent
from .tape import custom, vjp
from .traced import ASSIGN, LOST, READ_ONLY, Traced, concrete, is_traced, plain
from .updating import updated


class NumPy(Backend):
    name = "numpy"
    arrays = (np.ndarray, np.generic, Traced, Mapped, Buffer)
    refused = (np.matrix, np.ma.MaskedArray)  # their * is a matrix product; masks would be lost

    def vjp(xp, func, leaves, once=False, has_aux=True):
        return vjp(func, leaves)

    def vmap(xp, func, *rows):
        return mapping.vmap(super().map_rows, func, rows)

    def map_rows(xp, func, *rows):
        return mapping.map_rows(super().map_rows, func, rows)

    def custom_call(xp, rule, arrays):
        return custom(rule, *arrays)

    def special(xp, function, *arrays):
        return special.values(xp, function, arrays)

    def smooth(xp, function, arrays):
        return special.smooth(xp, function)(*arrays)

    def jit(xp, func, places=(), names=(), whole=None):
        return func  # there is no compiler

    def is_watched(xp, x):
        return is_traced(x)

    def is_local(xp, x):
        return type(x) in LIFTED

    def explain(xp, error):
        cause = error.__cause__
        if isinstance(error, ValueError) and type(cause) is TypeError and LOST in str(cause):
            add(error, ASSIGN)  # NumPy's own message speaks only of a sequence
        elif isinstance(error, TypeError) and "list indices must be" in str(error):
            add(error, INDEX)
        elif isinstance(error, ValueError) and "read-only" in str(error):
            add(error, READ_ONLY)

    def weak(xp, x, beside):
        return super().weak(x, beside)[()]  # a number, which `x += 1` rebinds

    def own(xp, x):
        return x.copy() if isinstance(x, np.ndarray) else x

    def draw(xp, meaning, key, start, shape, *args):
        top = newest((key, *args))
        if type(top) is Mapped:
            return rowwise(top.tape, xp.draw, meaning, key, start, shape, *args)
        drawn = random_words.blocks(meaning, xp, key, start, math.prod(shape), args)
        return drawn.reshape((*shape, *drawn.shape[1:]))

    def words(xp, key, counts):
        top = newest((key, counts))
        if type(top) is Mapped:
            return super().words(key, counts)
        return random_words.words(key, counts)

    def modulo(xp, first, second, span):
        if type(newest((first, second))) is Mapped:
            return super().modulo(first, second, span)
        return random_words.modulo(first, second, span)

    def order(xp, word):
        if type(newest((word,))) is Mapped:
            return super().order(word)
        return random_words.order(word)

    def probit(xp, q, tail):
        y = random_words.middle(q)
        rest = np.nonzero(np.abs(q) > EDGE)
        y[rest] = random_words.outer(q[rest], tail[rest])
        return y

    def without_denormals(xp, x):
        return writing.without_denormals(x)

    def write_adam(xp, rows, numbers, owned):
        return writing.adam(rows, numbers, owned)

    def are_apart(xp, arrays, others):
        return writing.are_apart(arrays, others)

    def expect_repeats(xp):
        # The C library of Linux returns freed memory to the system, and allocating it again costs
        # more than the computation. But it keeps up to twice the size of the largest array freed so
        # far, if that is no larger than this one. So one such array is made and freed.
        np.empty((1 << 25) - (1 << 13), np.uint8)

    def at_hand(xp, x):
        return None if type(x) in LIFTED and type(concrete(x)) is Mapped else x

    def is_inside(xp, x, size):
        x = plain(x)
        if x.dtype.kind == "i":  # one comparison is enough: viewed as unsigned, negatives are large
            unsigned = np.dtype(f"u{x.dtype.itemsize}")
            size = min(size, 1 << (8 * unsigned.itemsize - 1))
            x = x.view(unsigned.newbyteorder(x.dtype.byteorder))
        return not x.size or bool(x.max() < size)

    def quick(xp, key, shape, dtype, normal):
        if type(key) is Mapped:
            return rowwise(key.tape, xp.quick, key, shape, dtype, normal)
        source = np.random.default_rng(key)
        return (source.standard_normal if normal else source.random)(shape, dtype)

    def stop_gradient(xp, x, preserve_type=True):
        return lent(concrete(x), x.tape) if type(x) is Traced else concrete(x)

    def asarray(xp, obj, /, *, dtype=None, device=None, copy=None):
        """`np.asarray`, also for traced values and sequences of them."""
        if type(obj) in LIFTED:
            if dtype is not None and obj.dtype != dtype:
                return obj.astype(dtype)
            return np.copy(obj) if copy else obj
        if holds_traced(obj):
            return gathered(obj, dtype)
        return np.asarray(obj, dtype=dtype, device=device, copy=copy)

    def full(xp, shape, fill_value, *, dtype=None, device=None):
        """`np.full`, also of a traced value."""
        if type(fill_value) in LIFTED:
            return np.broadcast_to(xp.asarray(fill_value, dtype=dtype), shape)
        return np.full(shape, fill_value, dtype=dtype, device=device)

    def to_numpy(xp, x):
        return np.asarray(x)  # raises for a traced value

    def from_numpy(xp, x, device=None):
        return np.asarray(x, device=device)

    def lend(xp, x):
        # torch.from_dlpack aborts the process on negative strides; from_numpy shares memory too
        return None

    def borrow(xp, x):
        return None  # to_numpy shares memory too

    def is_tracing(xp, arrays):
        return False

    def device_of(xp, x):
        return "cpu"

    def devices(xp):
        return ["cpu"]

    # If only the input of a layer is mapped, the examples are more samples of one layer.

    def lstm(xp, *arrays):
        over = only_input(3, arrays)
        if over is not None and not arrays[-1]:
            return wrapped(over, xp.lstm(*all_examples(over, 3, arrays)))
        return recurrent.lstm(super().lstm, *arrays)

    def gru(xp, *arrays):
        over = only_input(2, arrays)
        if over is not None and not arrays[-1]:
            return wrapped(over, xp.gru(*all_examples(over, 2, arrays)))
        return recurrent.gru(super().gru, *arrays)

    def relu(xp, x):
        if type(x) is Mapped:
            return Mapped(xp.relu(x.value), x.tape)
        return fused.relu(super().relu, x)

    def gelu(xp, x, approximate):
        if type(x) is Mapped:
            return Mapped(xp.gelu(x.value, approximate), x.tape)
        if not approximate:
            return super().gelu(x, False)
        return fused.gelu(lambda x: super(NumPy, xp).gelu(x, True), x)

    def softmax(xp, x, axis):
        if type(x) is Mapped and x.ndim:
            return Mapped(xp.softmax(x.value, axis % x.ndim + 1), x.tape)
        return fused.softmax(lambda x: super(NumPy, xp).softmax(x, axis), x, axis)

    def linear(xp, x, weight, bias):
        over = only_input(1, (x, weight, bias))
        if over is not None and weight.ndim == 2:
            return Mapped(xp.linear(x.value, weight, bias), over)
        return fused.linear(super().linear, x, weight, bias)

    def linear_at_once(xp, x, weight, bias):
        return fused.linear_at_once(x, weight, bias)

    def layer_norm(xp, x, weight, bias, axes, epsilon):
        over = only_input(1, (x, weight, bias))
        if over is not None:
            axes = tuple(i % x.ndim + 1 for i in axes)
            return Mapped(xp.layer_norm(x.value, weight, bias, axes, epsilon), over)
        composed = lambda x, w, b: super(NumPy, xp).layer_norm(x, w, b, axes, epsilon)
        return fused.layer_norm(composed, x, weight, bias, axes, epsilon)

    def attention(xp, query, key, value, scale, mask, is_causal):
        over = only_input(3, (query, key, value, mask))
        if over is not None and mask is None and query.ndim == key.ndim == value.ndim:
            q, k, v = all_examples(over, 3, (query, key, value))
            return Mapped(xp.attention(q, k, v, scale, None, is_causal), over)
        composed = lambda q, k, v: super(NumPy, xp).attention(q, k, v, scale, mask, is_causal)
        if mask is not None:
            return composed(query, key, value)
        return fused.attention(composed, query, key, value, scale, is_causal)

    def label_scores(xp, logits, labels, axis):
        over = only_input(2, (logits, labels))
        if over is not None:
            logits, labels = all_examples(over, 2, (logits, labels))
            axis = axis + 1 if axis >= 0 else axis
            return Mapped(xp.label_scores(logits, labels, axis), over)
        composed = lambda x: super(NumPy, xp).label_scores(x, labels, axis)
        return fused.label_scores(composed, logits, labels, axis)

    def pivoted(xp, a):
        if type(a) is Mapped:
            return wrapped(a.tape, xp.pivoted(a.value))
        return factors.pivoted(a) if isinstance(a, np.ndarray) and a.size else super().pivoted(a)

    def solve_triangular(xp, a, b, lower, trans, unit):
        try:
            return super().solve_triangular(a, b, lower, trans, unit)
        except np.linalg.LinAlgError:
            pass  # a zero on the diagonal, or a NaN: some builds of LAPACK take it for one
        read = xp.tril(a, k=-unit) if lower else xp.triu(a, k=int(unit))
        finite = xp.all(xp.isfinite(read), axis=(-2, -1))[..., None, None]
        safe = xp.where(finite, read, xp.eye(a.shape[-1], dtype=a.dtype))
        x = super().solve_triangular(safe, b, lower, trans, unit)
        return xp.where(finite, x, xp.full_like(x, math.nan))

    # Some builds of LAPACK raise flags for a determinant that is neither infinite nor NaN.

    @np.errstate(all="ignore")
    def sqrtm(xp, a):
        return super().sqrtm(a)

    @np.errstate(all="ignore")
    def logm(xp, a):
        return super().logm(a)

    def host_call(xp, host, arrays):
        top = newest(arrays)
        if type(top) is Mapped:
            host_function = lambda *arrays: xp.host_call(host, arrays)
            host_function.__name__ = "iso.host_function"
            return rowwise(top.tape, host_function, *arrays)
        return super().host_call(host, arrays)

    def eig(xp, a):
        return factors.eig(a)

    def counter(xp, i, beside):
        return i  # not an integer array, which would widen the dtype of products

    def index_get(xp, x, index):
        return getitem(x, index)

    def index_update(xp, x, index, value, how):
        return updated(x, index, value, how)

    def is_float(xp, dtype):
        return dtype.kind in "fc" or dtype.name == "bfloat16"

    def is_complex(xp, dtype):
        return dtype.kind == "c"

    def dtype(xp, name):
        return np.dtype(super().dtype(name)) if name is not None else None

    def take(xp, x, indices, /, *, axis=None):
        """`np.take`, also at mapped indices, for which NumPy does not look."""
        if type(indices) in LIFTED and axis is None and x.ndim == 1:
            axis = 0
        if type(indices) in LIFTED and axis is not None:
            return getitem(x, (slice(None),) * (axis % x.ndim) + (concrete(indices),))
        return np.take(x, indices, axis=axis)

    def clip(xp, x, /, min=None, max=None):
        """`np.clip`, whose bounds may be given by name."""
        return np.clip(x, min, max)

    def pad(xp, x, widths, /, mode="constant", *, constant_values=0):
        """`np.pad` with a constant."""
        check_mode(mode)
        return np.pad(x, widths, constant_values=constant_values)

    def sort(xp, x, /, *, axis=-1, descending=False, stable=True):
        """`np.sort`, also `descending`, which older NumPy lacks."""
        if not descending:
            return np.sort(x, axis=axis, stable=stable)
        return np.take_along_axis(x, xp.argsort(x, axis=axis, descending=True), axis)

    def argsort(xp, x, /, *, axis=-1, descending=False, stable=True):
        """`np.argsort`, also `descending`, which older NumPy lacks; ties then keep their order."""
        if not descending:
            return np.argsort(x, axis=axis, stable=stable)
        turned = np.argsort(np.flip(x, axis), axis=axis, stable=True)
        return x.shape[axis] - 1 - np.flip(turned, axis)

    def var(xp, x, /, *, axis=None, correction=0.0, keepdims=False):
        """`np.var`, but NaN where it would divide by 0 or a negative number."""
        y = np.var(x, axis=axis, correction=correction, keepdims=keepdims)
        return y if correction == 0 or is_left(x.shape, axis, correction) else y * np.nan

    def std(xp, x, /, *, axis=None, correction=0.0, keepdims=False):
        """`np.std`, but NaN where it would divide by 0 or a negative number."""
        y = np.std(x, axis=axis, correction=correction, keepdims=keepdims)
        return y if correction == 0 or is_left(x.shape, axis, correction) else y * np.nan

    def logsumexp(xp, x, axis, keepdims):
        with np.errstate(divide="ignore"):  # log(0) is -inf, as it should be
            return super().logsumexp(x, axis, keepdims)

    def conv(xp, x, w, bias, plan):
        return convolution.biased(convolution.conv(x, w, plan), bias, plan)

    def conv_transpose(xp, x, w, bias, plan):
        return convolution.biased(convolution.transposed(x, w, plan), bias, plan)

    def narrow(xp, name):
        return np.float16 if name == "float16" else None

    if isinstance(np.count_nonzero(1), int):  # NumPy 2.1 returns an int if it counts all elements

        def count_nonzero(xp, x, /, *, axis=None, keepdims=False):
            found = np.count_nonzero(x, axis=axis, keepdims=keepdims)
            return np.int64(found) if isinstance(found, int) else found


backend = NumPy(np, special, linalg=[np.linalg], fft=[np.fft])
