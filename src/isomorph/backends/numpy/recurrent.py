"""Recurrent layers as one operation of the tape each. A forward loop stores what the backward loop
reads; each step is a handful of NumPy calls on preallocated arrays.

Everything that does not depend on the previous step is computed for all steps at once. The backward
loop takes plain arrays only. If it is itself differentiated, the formula is used instead
(`Sequence.bwd`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...meanings.recurrent import joint, turned
from .levels import LIFTED
from .tape import custom, vjp
from .traced import Traced, is_traced


class Sequence:
    """A rule in the form that `tape.custom` takes. It is made of `forward(*arrays) -> (outs, kept)`
    and `back(kept, upstream, arrays) -> gradients` for plain arrays, and of
    `composed(*arrays) -> outs` for traced ones.
    """

    def __init__(self, forward: Callable, back: Callable, composed: Callable):
        self.forward, self.back, self.composed = forward, back, composed

    def func(self, *arrays: Any) -> tuple:
        if any(type(x) in LIFTED for x in arrays):
            return tuple(self.composed(*arrays))
        return self.forward(*arrays)[0]

    def fwd(self, *arrays: Any) -> tuple:
        if any(map(is_traced, arrays)):
            return (), ()  # `custom` then computes the outputs at the next lower level
        if any(type(x) in LIFTED for x in arrays):
            return tuple(self.composed(*arrays)), ()
        return self.forward(*arrays)

    def bwd(self, kept: Any, upstream: tuple, arrays: tuple) -> tuple:
        if not any(type(x) in LIFTED for x in (*upstream, *arrays)):
            return self.back(kept, upstream, arrays)
        _, pullback, _ = vjp(lambda *arrays: (self.composed(*arrays), ()), arrays)
        return pullback(upstream)


def _run(forward: Callable, back: Callable, composed: Callable, arrays: tuple) -> tuple:
    for tape in {a.tape for a in arrays if type(a) is Traced}:
        arrays = tuple(map(tape.hold, arrays))
    return custom(Sequence(forward, back, composed), *arrays)


def lstm(
    composed: Callable,
    x: Any,
    h: Any,
    c: Any,
    kernel: Any,
    recurrent: Any,
    bias: Any,
    recurrent_bias: Any,
    time_major: bool,
) -> tuple:
    """`Backend.lstm`."""

    def plain(*arrays: Any) -> tuple:
        return composed(*arrays, None, True)

    x = turned(np, x, time_major, -2, 0)
    bias = _given(joint(bias, recurrent_bias), kernel)
    hs, *last = _run(lstm_forward, lstm_back, plain, (x, h, c, kernel, recurrent, bias))
    return turned(np, hs, time_major, 0, -2), *last


def gru(
    composed: Callable,
    x: Any,
    h: Any,
    kernel: Any,
    recurrent: Any,
    bias: Any,
    recurrent_bias: Any,
    time_major: bool,
) -> tuple:
    """`Backend.gru`."""

    def plain(*arrays: Any) -> tuple:
        return composed(*arrays, True)

    x = turned(np, x, time_major, -2, 0)
    biases = _given(bias, kernel), _given(recurrent_bias, kernel)
    hs, *last = _run(gru_forward, gru_back, plain, (x, h, kernel, recurrent, *biases))
    return turned(np, hs, time_major, 0, -2), *last


def _given(bias: Any, kernel: Any) -> Any:
    return np.zeros(kernel.shape[1], kernel.dtype) if bias is None else bias


# Time is the first axis of all arrays: x is [time, *batch, in]. σ(x) = (1 + tanh(x/2)) / 2, so one
# tanh computes all four gates of an LSTM; for all gates except g, its input is halved before.


def lstm_forward(
    x: Any, h: Any, c: Any, kernel: Any, recurrent: Any, bias: Any
) -> tuple[tuple, tuple]:
    time, n = x.shape[0], recurrent.shape[0]
    half = np.full(4 * n, 0.5, x.dtype)
    half[2 * n : 3 * n] = 1.0
    recurrent = recurrent * half
    acts = _product(x, kernel * half)
    acts += bias * half
    hs, cs = np.empty((time, *h.shape), x.dtype), np.empty((time + 1, *h.shape), x.dtype)
    tops = np.empty_like(hs)
    cs[0] = c
    four = acts.reshape(*acts.shape[:-1], 4, n)
    pre, part = np.empty_like(acts[0]), np.empty_like(cs[0])
    for act, i, f, g, o, old, c, top, out in zip(
        acts,
        four[..., 0, :],
        four[..., 1, :],
        four[..., 2, :],
        four[..., 3, :],
        cs,
        cs[1:],
        tops,
        hs,
    ):
        np.matmul(h, recurrent, out=pre)
        act += pre
        np.tanh(act, out=act)
        act *= half
        act += 0.5
        g -= 0.5
        np.multiply(f, old, out=c)
        np.multiply(i, g, out=part)
        c += part
        np.tanh(c, out=top)
        h = np.multiply(o, top, out=out)
    return (hs, hs[-1].copy(), cs[-1].copy()), (four, cs, tops, hs)


def lstm_back(kept: tuple, upstream: tuple, arrays: tuple) -> tuple:
    four, cs, tops, hs = kept
    to_hs, to_h, to_c = upstream
    x, h, _, kernel, recurrent, _ = arrays
    n = recurrent.shape[0]
    i, f, g, o = (four[..., k, :] for k in range(4))
    # `slope`: the derivative of c (for the gate o, of h) by the input of each gate;
    # `inner`: the derivative of h by c
    slope = four * four
    np.subtract(four, slope, out=slope)  # σ' = σ − σ²
    slope[..., 0, :] *= g
    slope[..., 1, :] *= cs[:-1]
    np.multiply(g, g, out=slope[..., 2, :])
    np.subtract(1, slope[..., 2, :], out=slope[..., 2, :])
    slope[..., 2, :] *= i
    slope[..., 3, :] *= tops
    inner = tops * tops
    np.subtract(1, inner, out=inner)
    inner *= o
    turned = np.ascontiguousarray(recurrent.T)
    # the gradient of each gate overwrites its slope
    three, last = slope[..., :3, :], slope[..., 3, :]
    flat = slope.reshape(*slope.shape[:-2], 4 * n)
    dh, dc, part = np.array(to_h), np.array(to_c), np.empty_like(to_h)
    wide = dc[..., None, :]
    for ifg, end, row, move, keep, g in zip(
        three[::-1], last[::-1], flat[::-1], inner[::-1], f[::-1], to_hs[::-1]
    ):
        dh += g
        np.multiply(dh, move, out=part)
        dc += part
        ifg *= wide
        end *= dh
        np.matmul(row, turned, out=dh)
        dc *= keep
    rows = flat.reshape(-1, 4 * n)
    to_recurrent = _before(h, hs).T @ rows
    return _product(flat, kernel.T), dh, dc, _rows(x).T @ rows, to_recurrent, _total(rows)


def gru_forward(
    x: Any, h: Any, kernel: Any, recurrent: Any, bias: Any, recurrent_bias: Any
) -> tuple[tuple, tuple]:
    time, n = x.shape[0], recurrent.shape[0]
    half = np.full(3 * n, 0.5, x.dtype)
    half[2 * n :] = 1.0
    recurrent, recurrent_bias = recurrent * half, recurrent_bias * half
    acts = _product(x, kernel * half)
    acts += bias * half
    own = np.empty((time, *h.shape), x.dtype)  # the term of the gate n that r multiplies
    hs = np.empty_like(own)
    pre, part = np.empty_like(acts[0]), np.empty_like(own[0])
    for both, r, z, new, added, out in zip(
        acts[..., : 2 * n], acts[..., :n], acts[..., n : 2 * n], acts[..., 2 * n :], own, hs
    ):
        np.matmul(h, recurrent, out=pre)
        pre += recurrent_bias
        added[...] = pre[..., 2 * n :]
        both += pre[..., : 2 * n]
        np.tanh(both, out=both)
        both *= 0.5
        both += 0.5
        np.multiply(r, added, out=part)
        new += part
        np.tanh(new, out=new)
        np.subtract(h, new, out=part)
        part *= z
        h = np.add(part, new, out=out)
    return (hs, hs[-1].copy()), (acts, own, hs)


def gru_back(kept: tuple, upstream: tuple, arrays: tuple) -> tuple:
    acts, own, hs = kept
    to_hs, to_h = upstream
    x, h, kernel, recurrent, _, _ = arrays
    n = recurrent.shape[0]
    before = np.concatenate([h[None], hs[:-1]])
    r, z, new = acts[..., :n], acts[..., n : 2 * n], acts[..., 2 * n :]
    # the derivative of h (for r: of the input of n) by the input of each gate; later overwritten by
    # the gradient of that input
    d = np.empty_like(acts)
    np.multiply(own, r - r * r, out=d[..., :n])
    np.multiply(before - new, z - z * z, out=d[..., n : 2 * n])
    np.multiply(1 - z, 1 - new * new, out=d[..., 2 * n :])
    mine = np.empty_like(d)  # the gradients of the terms with h: the same, but n has the factor r
    turned = np.ascontiguousarray(recurrent.T)
    dh, back = np.array(to_h), np.empty_like(to_h)
    for row, added, gate, keep, g in zip(d[::-1], mine[::-1], r[::-1], z[::-1], to_hs[::-1]):
        dh += g
        dr, dz, dn = row[..., :n], row[..., n : 2 * n], row[..., 2 * n :]
        dn *= dh
        dz *= dh
        dr *= dn
        added[..., : 2 * n] = row[..., : 2 * n]
        np.multiply(dn, gate, out=added[..., 2 * n :])
        np.matmul(added, turned, out=back)
        dh *= keep
        dh += back
    rows, extra = _rows(d), _rows(mine)
    to_recurrent = _rows(before).T @ extra
    return (
        _product(d, kernel.T), dh, _rows(x).T @ rows, to_recurrent, _total(rows), _total(extra)
    )  # fmt: skip


def _rows(x: Any) -> Any:
    """All vectors of the last axis, as rows of one matrix."""
    return x.reshape(-1, x.shape[-1])


def _product(x: Any, weight: Any) -> Any:
    """x·W as one product of two matrices."""
    return (_rows(x) @ weight).reshape(*x.shape[:-1], weight.shape[-1])


def _before(h: Any, hs: Any) -> Any:
    """The state at the beginning of each step."""
    return _rows(np.concatenate([h[None], hs[:-1]]))


def _total(rows: Any) -> Any:
    return np.ones(rows.shape[0], rows.dtype) @ rows  # faster than a sum
