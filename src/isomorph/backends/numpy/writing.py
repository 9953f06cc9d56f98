"""An optimizer's step written over arrays that nobody else holds, a piece at a time: a piece stays
in the cache while a dozen operations go over it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

PIECE = 1 << 14  # numbers


def adam(
    ws: Sequence[Any], gs: Sequence[Any], ms: Sequence[Any], vs: Sequence[Any],
    step: int, lr: float, beta1: float, beta2: float, epsilon: float, decay: float,
) -> bool:  # fmt: skip
    """Adam with decoupled decay; False if some array cannot be written to as it lies."""
    for x in (*ws, *ms, *vs):
        if type(x) is not np.ndarray or not x.flags.carray:
            return False
    rate, fix = lr / (1 - beta1**step), (1 - beta2**step) ** -0.5
    for arrays in zip(ws, map(np.ascontiguousarray, gs), ms, vs):
        flat = [x.reshape(-1) for x in arrays]
        scratch = np.empty(min(PIECE, flat[0].size), flat[0].dtype)
        for start in range(0, flat[0].size, PIECE):
            w, g, m, v = (x[start : start + PIECE] for x in flat)
            s = scratch[: w.size]
            m *= beta1
            m += np.multiply(g, 1 - beta1, out=s)
            v *= beta2
            np.multiply(g, g, out=s)
            s *= 1 - beta2
            v += s
            np.sqrt(v, out=s)
            s *= fix
            s += epsilon
            np.divide(m, s, out=s)
            s *= rate
            if decay:
                w *= 1 - lr * decay
            w -= s
    return True
