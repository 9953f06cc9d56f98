"""Recurrent layers: functions that carry a state from one step of a sequence to the next.

All products with the input are computed as one product before the loop, unless the backend computes
them faster step by step (`xp.has_quick_steps`). The loop is `xp.scan`, which compiles to one body,
not one per step, where the framework has such a loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.dispatch import backend_of
from ..meanings.shapes import remembered
from .attention import check_one_dtype

if TYPE_CHECKING:
    from ..types.array_types import A

WORDS = ("x", "init_h", "init_c", "kernel", "recurrent_kernel", "bias", "recurrent_bias")


def lstm_update(
    x: A,
    init_h: Any,
    init_c: Any,
    kernel: Any,
    recurrent_kernel: Any,
    /,
    *,
    bias: Any = None,
    recurrent_bias: Any = None,
    time_major: bool = False,
) -> tuple[A, tuple[A, A]]:
    """A long short-term memory over the steps of `x`: `(hs, (h, c))`, the outputs of all steps and
    the state after the last.

    `x` is `[*batch, time, in]`, `hs` `[*batch, time, out]`; with `time_major` both have time first.
    `init_h` and `init_c` are `[*batch, out]`, `kernel` `[in, 4·out]`, `recurrent_kernel`
    `[out, 4·out]`, both biases `[4·out]`. The four blocks are the gates i, f, g, o, side by side:
    c' = σ(f)·c + σ(i)·tanh(g), h' = σ(o)·tanh(c').

    >>> x, h, kernel = np.ones((5, 3)), np.zeros(2), np.zeros((3, 8))
    >>> hs, (h, c) = iso.lstm_update(x, h, h, kernel, np.zeros((2, 8)))
    >>> hs.shape
    (5, 2)
    """
    name = "lstm_update"
    xp = backend_of(x, init_h, init_c, kernel, recurrent_kernel, bias, recurrent_bias)
    _check(
        name, xp, 4, x, init_h, kernel, recurrent_kernel, bias, recurrent_bias, time_major, init_c
    )
    hs, h, c = xp.lstm(
        x, init_h, init_c, kernel, recurrent_kernel, bias, recurrent_bias, time_major
    )
    return hs, (h, c)


def gru_update(
    x: A,
    init_h: Any,
    kernel: Any,
    recurrent_kernel: Any,
    /,
    *,
    bias: Any = None,
    recurrent_bias: Any = None,
    time_major: bool = False,
) -> tuple[A, A]:
    """A gated recurrent unit over the steps of `x`: `(hs, h)`, the outputs of all steps and the
    last.

    Shapes are those of `lstm_update`, with three gates r, z, n side by side: h' = (1 − σ(z))·n +
    σ(z)·h, where n = tanh(x's part of n + σ(r)·(h's part of n)); `recurrent_bias` belongs to h's
    part.

    >>> hs, h = iso.gru_update(np.ones((5, 3)), np.ones(2), np.zeros((3, 6)), np.zeros((2, 6)))
    >>> h
    array([0.03125, 0.03125])
    """
    name = "gru_update"
    xp = backend_of(x, init_h, kernel, recurrent_kernel, bias, recurrent_bias)
    _check(name, xp, 3, x, init_h, kernel, recurrent_kernel, bias, recurrent_bias, time_major)
    return xp.gru(x, init_h, kernel, recurrent_kernel, bias, recurrent_bias, time_major)


# ---- checks --------------------------------------------------------------------------------------


def _check(
    name: str,
    xp: Any,
    gates: int,
    x: Any,
    h: Any,
    kernel: Any,
    recurrent: Any,
    bias: Any,
    recurrent_bias: Any,
    time_major: bool,
    c: Any = None,
) -> None:
    dtype, alike = x.dtype, True
    shapes: list[Any] = []
    for a in (x, h, c, kernel, recurrent, bias, recurrent_bias):
        if a is None:
            shapes.append(None)
        else:
            shapes.append(a.shape)
            alike = alike and a.dtype is dtype
    _FIT(name, gates, bool(time_major), *shapes)
    if not (alike and dtype is xp.float32):  # the usual case
        check_one_dtype(name, xp, WORDS, (x, h, c, kernel, recurrent, bias, recurrent_bias))


def _fit(
    name: str, gates: int, time_major: bool, x: Any, h: Any, c: Any,
    kernel: Any, recurrent: Any, bias: Any, recurrent_bias: Any,
) -> None:  # fmt: skip
    """Raise if the shapes do not fit."""
    shape = tuple(x)
    form = "[time, *batch, in]" if time_major else "[*batch, time, in]"
    if len(shape) < 2:
        raise ValueError(f"{name}: needed x {form}, got {list(shape)}")
    batch, time = (shape[1:-1], shape[0]) if time_major else (shape[:-2], shape[-2])
    if time == 0:
        raise ValueError(f"{name}: needed x {form} with at least one step, got {list(shape)}")
    matrix = tuple(recurrent)
    out = matrix[0] if len(matrix) == 2 else None
    if out is None or matrix[1] != gates * out:
        raise ValueError(f"{name}: needed recurrent_kernel [out, {gates}·out], got {list(matrix)}")
    _like(name, "kernel", f"[in, {gates}·out]", kernel, (shape[-1], gates * out))
    _like(name, "init_h", "[*batch, out]", h, (*batch, out))
    _like(name, "init_c", "[*batch, out]", c, (*batch, out))
    _like(name, "bias", f"[{gates}·out]", bias, (gates * out,))
    _like(name, "recurrent_bias", f"[{gates}·out]", recurrent_bias, (gates * out,))


_FIT = remembered(_fit)


def _like(name: str, word: str, form: str, found: Any, wanted: tuple) -> None:
    if found is None:
        return
    shape = tuple(found)
    if shape != wanted and (
        len(shape) != len(wanted)
        or any(a != b and None not in (a, b) for a, b in zip(shape, wanted))
    ):
        raise ValueError(f"{name}: needed {word} {form}, {list(wanted)}, got {list(shape)}")
