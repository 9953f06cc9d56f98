"""Layers as one operation of the tape each. They need few passes over memory, and keep few arrays
for the backward pass.

Each is `layer(composed, *arrays, …)`. `composed` is the formula over the array API. It is used if
the arrays are differentiated more than once, or are not plain arrays of float32 or float64. A
backward function is linear in `g` and holds the other arrays as constants; if `g` is traced, it
uses only operations that the tape can differentiate.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi, prod, sqrt
from typing import Any

import numpy

from .levels import LIFTED
from .tape import Tape, recorded
from .traced import Traced
from .writing import PIECE, empty

np: Any = numpy  # its type stubs do not know traced values
ndarray = numpy.ndarray
KINDS = (np.dtype(np.float32), np.dtype(np.float64))
INTEGERS = {np.dtype(np.float32): np.int32, np.dtype(np.float64): np.int64}


def fused(forward: Callable, composed: Callable, *arrays: Any) -> Any:
    """The y of `forward(*arrays) -> (y, backs)`, as a traced value if one of the arrays is traced.
    `backs` is a tuple with one backward function per array, or one function for all. An array may
    be None.
    """
    tape: Tape | None = None
    values = list(arrays)
    for i, a in enumerate(arrays):
        if type(a) is Traced:
            if tape is not None and a.tape is not tape:
                return composed(*arrays)
            tape, values[i] = a.tape, a.value
    dtype = values[0].dtype
    if dtype not in KINDS:
        return composed(*arrays)
    for x in values:
        if x is not None and (type(x) is not ndarray or x.dtype != dtype):
            return composed(*arrays)
    if tape is None:
        return forward(*values)[0]
    values = [tape.hold(x) if x is a else x for x, a in zip(values, arrays)]
    return recorded(tape, arrays, *forward(*values))


def relu(composed: Callable, x: Any) -> Any:
    return fused(_relu, composed, x)


def _relu(x: ndarray) -> tuple[ndarray, tuple]:
    y = np.maximum(x, 0)

    def back(g: Any) -> Any:
        off = y <= 0  # False where y is NaN: there the gradient passes
        if type(g) in LIFTED:
            return np.where(off, 0.0, g)
        bits = INTEGERS[g.dtype]  # keep all bits of g or none: np.where costs ten times as much
        return np.bitwise_and(g.view(bits), off.view(np.int8) - np.int8(1)).view(g.dtype)

    return y, (back,)


def gelu(composed: Callable, x: Any) -> Any:
    """`gelu` with the tanh approximation."""
    return fused(_gelu if type(x) is Traced else _gelu_alone, composed, x)


A, C = 0.044715, sqrt(2 / pi)  # gelu(x) = x·½(1 + tanh(C (x + A x³)))
WIDE = 100.0  # beyond this tanh is ±1, and below this no power overflows


def _gelu_alone(x: ndarray) -> tuple[ndarray, tuple]:
    y = empty(x.shape, x.dtype)
    for x_, y_, s in pieces(x, y):
        np.clip(x_, -WIDE, WIDE, out=y_)
        np.square(y_, out=s)
        _share(y_, s, s)
        np.maximum(x_, -WIDE, out=y_)  # x itself would give -inf · 0 = NaN
        y_ *= s
    return y, ()


def _gelu(x: ndarray) -> tuple[ndarray, tuple]:
    """`gelu` and its derivative. The derivative is computed in the forward pass, while its parts
    are available, and stored instead of x. With t the tanh, it is
    ½(1 + t) + ½ x (1 − t²) C (1 + 3 A x²); with h = ½(1 + t), that is
    h + 2 x h (1 − h) C (1 + 3 A x²).
    """
    y, d = empty(x.shape, x.dtype), empty(x.shape, x.dtype)
    for x_, y_, d_, s, h in pieces(x, y, d):
        np.clip(x_, -WIDE, WIDE, out=d_)
        np.square(d_, out=s)
        _share(d_, s, h)
        np.maximum(x_, -WIDE, out=y_)
        y_ *= h
        s *= 6 * A * C
        s += 2 * C
        s *= d_
        s *= h
        np.subtract(1, h, out=d_)
        d_ *= s
        d_ += h
    return y, (lambda g: product(g, d),)


def _share(x: ndarray, square: ndarray, out: ndarray) -> None:
    """Write ½(1 + tanh(C (x + A x³))) into `out`."""
    np.multiply(square, A * C, out=out)
    out += C
    out *= x
    np.tanh(out, out=out)
    out *= 0.5
    out += 0.5


def pieces(x: ndarray, *outs: ndarray) -> Any:
    """Yield, piece by piece: the piece of `x`, the piece of each of `outs`, and as many scratch
    arrays of that length as there are `outs`.
    """
    flat = [x.reshape(-1), *(y.reshape(-1) for y in outs)]
    free = [empty((min(PIECE, x.size),), x.dtype) for _ in outs]
    for i in range(0, x.size, PIECE):
        n = min(PIECE, x.size - i)
        yield *(y[i : i + n] for y in flat), *(y[:n] for y in free)


def product(a: Any, b: Any) -> Any:
    """The product of `a` and `b`, element by element."""
    plain = type(a) is type(b) is ndarray and a.shape == b.shape and a.dtype == b.dtype
    return np.multiply(a, b, out=empty(a.shape, a.dtype)) if plain else a * b


def softmax(composed: Callable, x: Any, axis: int) -> Any:
    """`softmax`; along any axis except the last, the formula is used."""
    if not x.ndim or axis not in (-1, x.ndim - 1) or not x.shape[axis]:
        return composed(x)
    return fused(_softmax, composed, x)


def _softmax(x: ndarray) -> tuple[ndarray, tuple]:
    y = np.subtract(x, row_maxima(x), out=empty(x.shape, x.dtype))
    to_weights(y)

    def back(g: Any) -> Any:
        d = product(g, y)
        along = np.vecdot(g, y)[..., None]
        return d - along * y if type(d) in LIFTED else np.subtract(d, along * y, out=d)

    return y, (back,)


def to_weights(y: ndarray) -> None:
    """Replace each number by its exponential, divided by the sum of its row. The numbers must be
    <= 0.
    """
    np.exp(y, out=y)
    y /= row_sums(y)


def row_maxima(x: ndarray) -> ndarray:
    """`np.max(x, -1, keepdims=True)`; finding the position first is faster."""
    return np.take_along_axis(x, np.argmax(x, axis=-1, keepdims=True), -1)


def row_sums(x: ndarray) -> ndarray:
    """`np.sum(x, -1, keepdims=True)`; for short rows a product with ones is faster."""
    if x.shape[-1] > 1024:  # for longer rows, a product is less exact than NumPy's pairwise sum
        return np.sum(x, axis=-1, keepdims=True)
    return (x @ np.ones(x.shape[-1], x.dtype))[..., None]


def linear_at_once(x: Any, weight: Any, bias: Any) -> Any:
    """`linear` of plain matrices that are seen to fit; else None."""
    if not (type(x) is type(weight) is ndarray and x.ndim == weight.ndim == 2):
        return None
    dtype, (out, into) = x.dtype, weight.shape
    if dtype is not weight.dtype or dtype not in KINDS or x.shape[1] != into:
        return None
    if bias is None:
        return x @ weight.T
    if type(bias) is not ndarray or bias.dtype is not dtype or bias.shape != (out,):
        return None
    y = x @ weight.T
    y += bias
    return y


def linear(composed: Callable, x: Any, weight: Any, bias: Any) -> Any:
    if weight.ndim == 2:
        return fused(_linear, composed, x, weight, bias)
    return composed(x, weight, bias)


def _linear(x: ndarray, w: ndarray, b: Any) -> tuple[ndarray, tuple]:
    shape, rows = x.shape, prod(x.shape[:-1])
    x = x.reshape(rows, shape[-1])
    y = x @ w.T
    if b is not None:
        y += b
    flat = lambda g: np.reshape(g, (rows, w.shape[0]))
    backs = (
        lambda g: np.reshape(flat(g) @ w, shape),
        lambda g: flat(g).T @ x,
        lambda g: np.sum(flat(g), axis=0),
    )
    return y.reshape(*shape[:-1], w.shape[0]), backs


def layer_norm(
    composed: Callable, x: Any, weight: Any, bias: Any, axes: tuple, epsilon: float
) -> Any:
    last = axes == tuple(range(x.ndim - len(axes), x.ndim))
    n = prod(x.shape[i] for i in axes)
    if not last or not n:
        return composed(x, weight, bias)

    def forward(x: ndarray, w: Any, b: Any) -> tuple[ndarray, Callable]:
        shape, sizes = x.shape, x.shape[x.ndim - len(axes) :]
        x = x.reshape(-1, n)
        x = np.subtract(x, np.mean(x, axis=-1, keepdims=True), out=empty(x.shape, x.dtype))
        inverse = np.vecdot(x, x)[:, None]
        inverse *= 1 / n
        inverse += epsilon
        inverse = 1 / np.sqrt(inverse)
        x *= inverse
        y = np.multiply(x, 1 if w is None else w.reshape(-1), out=empty(x.shape, x.dtype))
        if b is not None:
            y += b.reshape(-1)

        def back(g: Any) -> tuple:
            g = np.reshape(g, (-1, n))
            by_w = None if w is None else np.reshape(np.sum(g * x, axis=0), sizes)
            by_b = None if b is None else np.reshape(np.sum(g, axis=0), sizes)
            d = g if w is None else g * w.reshape(-1)
            along = np.vecdot(d, x)[:, None] / n
            if type(d) in LIFTED:
                d = (d - np.mean(d, axis=-1, keepdims=True) - x * along) * inverse
                return np.reshape(d, shape), by_w, by_b
            d = d - row_sums(d) / n
            d -= x * along
            d *= inverse
            return d.reshape(shape), by_w, by_b

        return y.reshape(shape), back

    return fused(forward, composed, x, weight, bias)


def attention(composed: Callable, q: Any, k: Any, v: Any, scale: Any, is_causal: bool) -> Any:
    """Attention with no mask or with the causal one. If the leading axes differ, the formula is
    used.
    """
    one = q.shape[:-2] == k.shape[:-2] == v.shape[:-2]
    if not one or type(scale) is not float or not k.shape[-2]:
        return composed(q, k, v)

    def forward(q: ndarray, k: ndarray, v: ndarray) -> tuple[ndarray, Callable]:
        p = (q * scale) @ turned(k)
        if is_causal:
            later = np.triu(np.full(p.shape[-2:], -np.inf, p.dtype), 1)
            if np.isfinite(p).all():
                p += later
            else:  # replaced, not added to: a NaN or inf must not reach earlier queries
                np.copyto(p, -np.inf, where=later < 0)
        p -= row_maxima(p)
        to_weights(p)
        y = p @ v

        def back(g: Any) -> tuple:
            d = g @ turned(v)
            along = np.vecdot(g, y)[..., None]
            if type(d) in LIFTED:
                d = (d - along) * p * scale
            else:
                d -= along
                d *= p
                d *= scale
            return d @ k, turned(d) @ q, turned(p) @ g

        return y, back

    return fused(forward, composed, q, k, v)


def turned(x: Any) -> Any:
    return np.swapaxes(x, -1, -2)


def label_scores(composed: Callable, logits: Any, labels: Any, axis: int) -> Any:
    """log softmax(logits) at the labels, along the last axis."""
    last = axis in (-1, logits.ndim - 1) and logits.shape[-1] > 0
    if not last or type(labels) is not ndarray:
        return composed(logits)
    labels = labels.astype(np.intp)[..., None]  # a copy: the backward pass reads it again

    def forward(x: ndarray) -> tuple[ndarray, tuple]:
        x = np.subtract(x, row_maxima(x), out=empty(x.shape, x.dtype))
        at = np.take_along_axis(x, labels, -1)[..., 0]
        np.exp(x, out=x)
        total = row_sums(x)[..., 0]

        def back(g: Any) -> Any:
            d = x * (-g / total)[..., None]
            if type(d) in LIFTED:
                here = np.zeros(x.shape, x.dtype)
                np.put_along_axis(here, labels, 1.0, -1)
                return d + here * g[..., None]
            there = np.take_along_axis(d, labels, -1)
            np.put_along_axis(d, labels, there + g[..., None], -1)
            return d

        return at - np.log(total), (back,)

    return fused(forward, composed, logits)
