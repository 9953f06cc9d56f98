"""Factorisations in plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np


def pivoted(a: np.ndarray) -> tuple[Any, Any]:
    """`Backend.pivoted`, in place: each column costs a few calls for the whole batch."""
    whole = np.array(a)
    *batch, m, n = whole.shape
    x: Any = whole.reshape(-1, m, n)
    order = np.tile(np.arange(m), (len(x), 1))
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
