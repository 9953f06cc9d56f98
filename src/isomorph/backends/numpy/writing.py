"""New arrays aligned for the processor, and an optimizer step that overwrites its own arrays. The
step works piece by piece, so that a piece stays in the cache during a dozen operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

from ...meanings.adam import AdamStep

PIECE = 1 << 15  # elements in one piece
OFTEN = 16  # steps from one check for denormal numbers to the next
LINE = 64  # bytes in a cache line


def empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """`np.empty`, but a large array begins at a cache line. NumPy's own begin 16 bytes after one,
    and writing to them takes twice as long.
    """
    n = prod(shape)
    if n < PIECE >> 3:
        return np.empty(shape, dtype)
    size = n * np.dtype(dtype).itemsize
    raw = np.empty(size + LINE, np.uint8)
    start = -raw.ctypes.data % LINE
    return raw[start : start + size].view(dtype).reshape(shape)


def without_denormals(x: Any) -> Any:
    """`x`, a moment of an optimizer, with denormal numbers set to 0. Moments whose gradient stays 0
    decay to denormal numbers, with which many processors compute forty times slower. Steps that
    small make no difference, except in float16, which is left as it is.
    """
    if type(x) is not np.ndarray or x.dtype not in (np.float32, np.float64):
        return x
    small = np.abs(x) < np.finfo(x.dtype).tiny
    return np.where(small, x.dtype.type(0), x) if small.any() else x


def _before_decay(dtype: Any, beta: float) -> float:
    """The size below which a moment may become denormal before the next check."""
    return float(np.finfo(dtype).tiny) / max(beta, 0.5) ** OFTEN


def are_apart(arrays: Iterable[Any], others: Iterable[Any]) -> bool:
    """See `Backend.are_apart`."""
    first, second = (set(map(_memory, part)) for part in (arrays, others))
    return None not in first | second and first.isdisjoint(second)


def _memory(x: Any) -> int | None:
    """What is equal for arrays that share memory; None if that is not known."""
    while type(x) is np.ndarray and x.base is not None:
        x = x.base
    return id(x) if isinstance(x, np.ndarray | np.generic) else None


def adam(rows: Sequence[tuple], numbers: AdamStep, owned: bool) -> list[tuple] | None:
    """See `Backend.write_adam`. Returns None, and does nothing, if an array may not be overwritten,
    or is not a plain NumPy array that is contiguous and writeable.
    """
    step, lr, beta1, beta2, epsilon, decay = numbers
    plain = all(type(x) is np.ndarray for row in rows for x in row)  # not inside a vmap
    if not owned or not plain or not isinstance(step, int) or not isinstance(lr, float):
        return None
    if not all(x.flags.carray for w, _, m, v in rows for x in (w, m, v)):
        return None
    # the step is rate · m / (fix · √v + ε); `fix` is divided out of both sides of the fraction
    clears = step % OFTEN == 0
    rate, fix = lr / (1 - beta1**step), (1 - beta2**step) ** -0.5
    rate, epsilon = rate / fix, epsilon / fix
    for w, g, m, v in rows:
        flat = [x.reshape(-1) for x in (w, np.ascontiguousarray(g), m, v)]
        scratch = empty((min(PIECE, flat[0].size),), flat[0].dtype)
        for start in range(0, flat[0].size, PIECE):
            w, g, m, v = (x[start : start + PIECE] for x in flat)
            s = scratch[: w.size]
            m *= beta1
            m += np.multiply(g, 1 - beta1, out=s)
            v *= beta2
            np.square(g, out=s)
            s *= 1 - beta2
            v += s
            if clears and m.dtype != np.float16:
                m[np.abs(m, out=s) < _before_decay(m.dtype, beta1)] = 0
                v[v < _before_decay(m.dtype, beta2)] = 0
            np.sqrt(v, out=s)
            s += epsilon
            np.divide(m, s, out=s)
            s *= rate
            if decay:
                w *= 1 - lr * decay
            w -= s
    return [(w, m, v) for w, _, m, v in rows]
