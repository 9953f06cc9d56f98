"""Averages and covariances, in terms of sums and products."""

import numpy as np

from ..tape import composed
from ..traced import floating, plain
from .shaping import arrayed, axes_of


@composed(np.average)
def average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    a = arrayed(a)
    if weights is None:
        out = np.mean(a, axis, keepdims=keepdims)
        return (
            (out, np.broadcast_to(np.asarray(a.size / out.size, out.dtype), out.shape))
            if returned
            else out
        )
    w = arrayed(weights)
    if w.shape != a.shape:
        if axis is None:
            raise TypeError(
                f"numpy.average: needed axis=, as weights {w.shape} differ from data {a.shape}"
            )
        axes = axes_of(axis, a.ndim)
        w = np.transpose(w, np.argsort(axes))
        w = np.reshape(w, tuple(n if i in axes else 1 for i, n in enumerate(a.shape)))
        w = np.broadcast_to(w, a.shape)
    total = np.sum(w, axis, keepdims=keepdims)
    if np.any(plain(total) == 0):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    out = np.sum(a * w, axis, keepdims=keepdims) / total
    return (out, np.broadcast_to(total, out.shape)) if returned else out


@composed(np.cov)
def cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, *, dtype=None):
    floating("cov", dtype)

    def rows(x):
        x = arrayed(x)
        x = np.atleast_2d(x) if rowvar or x.ndim < 2 else x.T
        return x.astype(dtype or np.result_type(x.dtype, np.float64))

    x = rows(m) if y is None else np.concatenate([rows(m), rows(y)])
    f = 1 if fweights is None else fweights
    w = np.broadcast_to(f if aweights is None else f * arrayed(aweights), x.shape[1:])
    total = np.sum(w)
    if ddof is None:
        ddof = 0 if bias else 1
    lost = ddof if aweights is None else ddof * np.sum(w * arrayed(aweights)) / total
    x = x - np.sum(x * w, 1, keepdims=True) / total
    return np.squeeze(x @ np.conjugate((x * w).T) / (total - lost))


@composed(np.corrcoef)
def corrcoef(x, y=None, rowvar=True, *, dtype=None):
    c = np.cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    spread = np.sqrt(np.real(np.diagonal(c)))
    c = c / spread[:, None] / spread[None, :]
    if c.dtype.kind == "c":
        return c
    return np.clip(c, -1, 1)
