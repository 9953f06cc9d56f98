"""Factorisations in NumPy, and by SciPy's LAPACK where SciPy is installed."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np


def pivoted(a: np.ndarray) -> tuple[Any, Any]:
    """`Backend.pivoted`, in place: each column costs a few calls for the whole batch. So does each
    matrix with LAPACK, which is used for finite matrices unless they are many small ones.
    """
    whole = np.array(a)
    *batch, m, n = whole.shape
    x: Any = whole.reshape(-1, m, n)
    order = np.tile(np.arange(m), (len(x), 1))
    few = 0 < len(x) <= 4 * min(m, n)
    if few and x.dtype.char in "fdFD" and np.isfinite(x).all() and (lapack := _lapack()):
        factor = getattr(lapack, {"f": "s", "d": "d", "F": "c", "D": "z"}[x.dtype.char] + "getrf")
        for i in range(len(x)):
            x[i], exchanged, _ = factor(x[i])
            rows = list(range(m))
            for row, other in enumerate(exchanged.tolist()):
                rows[row], rows[other] = rows[other], rows[row]
            order[i] = rows
        return whole, order.reshape(*batch, m)
    each = np.arange(len(x))
    for k in range(min(m, n) if x.size else 0):
        column = x[:, k:, k]
        size = np.abs(column.real) + np.abs(column.imag) if x.dtype.kind == "c" else np.abs(column)
        best = k + np.argmax(size, 1)
        for rows in (x, order):
            kept = rows[each, best]  # a copy
            rows[each, best] = rows[:, k]
            rows[:, k] = kept
        pivot = x[:, k, k]
        x[:, k + 1 :, k] /= np.where(pivot == 0, np.ones_like(pivot), pivot)[:, None]
        x[:, k + 1 :, k + 1 :] -= x[:, k + 1 :, k, None] * x[:, k, None, k + 1 :]
    return whole, order.reshape(*batch, m)


def eig(a: Any) -> tuple[Any, Any]:
    values, vectors = np.linalg.eig(a)
    kind = np.result_type(values, np.complex64)
    return values.astype(kind), vectors.astype(kind)


@cache
def _lapack() -> Any:
    return import_module("scipy.linalg.lapack") if find_spec("scipy") else None
