"""Convolution and polynomials given by their coefficients, highest power first."""

from typing import Any

import numpy as np

from ..tape import composed, rule
from ..traced import concrete, no_rule, record
from .elementwise import conj
from .shaping import arrayed


def convolved(a, v):
    return np.convolve(a, v)


@rule(convolved)
def _convolved(y, a, v):
    return lambda g: np.correlate(g, v, "valid"), lambda g: np.correlate(g, a, "valid")


@composed(np.convolve)
def convolve(a, v, mode="full"):
    a, v = np.atleast_1d(a), np.atleast_1d(v)
    n, m = len(a), len(v)
    full = record(convolved, a, v)
    if mode == "full":
        return full
    length = max(n, m) if mode == "same" else max(n, m) - min(n, m) + 1
    start = (min(n, m) - 1) // 2 if mode == "same" else min(n, m) - 1
    return full[start : start + length]


@composed(np.correlate)
def correlate(a, v, mode: Any = "valid"):
    a, v = np.atleast_1d(a), np.atleast_1d(v)
    if mode == "same" and len(a) < len(
        v
    ):  # NumPy swaps the two, which moves the middle if the length is even
        return conj(np.convolve(v, conj(a)[::-1], mode))[::-1]
    return np.convolve(a, conj(v)[::-1], mode)


@composed(np.polyval)
def polyval(p, x):
    p, x = arrayed(p), arrayed(x)
    y = np.zeros_like(concrete(x))
    for coefficient in p:
        y = y * x + coefficient
    return y


@composed(np.vander)
def vander(x, N=None, increasing=False):
    n = len(x) if N is None else N
    x = x.astype(np.result_type(x.dtype, int))  # as NumPy does
    columns = [np.ones_like(x)]
    while len(columns) < n:
        columns.append(columns[-1] * x)
    columns = columns[:n]
    return np.stack(columns if increasing else columns[::-1], -1)


@composed(np.polymul)
def polymul(a1, a2):
    return np.convolve(a1, a2)


def _aligned(a1, a2):
    a1, a2 = np.atleast_1d(a1), np.atleast_1d(a2)
    n = max(len(a1), len(a2))
    return [np.pad(a, (n - len(a), 0)) for a in (a1, a2)]


@composed(np.polyadd)
def polyadd(a1, a2):
    a1, a2 = _aligned(a1, a2)
    return a1 + a2


@composed(np.polysub)
def polysub(a1, a2):
    a1, a2 = _aligned(a1, a2)
    return a1 - a2


@composed(np.polyder)
def polyder(p, m=1):
    for _ in range(m):
        p = p[:-1] * np.arange(len(p) - 1, 0, -1)
    return p


@composed(np.polyint)
def polyint(p, m=1, k=None):
    constants = np.zeros(m) if k is None else np.broadcast_to(k, (m,))
    for i in range(m):
        p = np.concatenate([p / np.arange(len(p), 0, -1), constants[i : i + 1]])
    return p


@composed(np.polyfit)
def polyfit(x, y, deg, rcond=None, full=False, w=None, cov=False):
    if full or cov:
        no_rule(np.polyfit, " with full= or cov=")
    matrix, right = np.vander(arrayed(x), int(deg) + 1), arrayed(y)
    if w is not None:
        w = arrayed(w)
        matrix, right = matrix * w[:, None], right * (w if right.ndim == 1 else w[:, None])
    scale = np.sqrt(np.sum(concrete(matrix) ** 2, 0))
    rcond = len(x) * np.finfo(matrix.dtype).eps if rcond is None else rcond
    solution = np.linalg.lstsq(matrix / scale, right, rcond)[0]
    return (solution.T / scale).T


@composed(np.poly)
def poly(seq_of_zeros):
    zeros = np.linalg.eigvals(seq_of_zeros) if np.ndim(seq_of_zeros) == 2 else seq_of_zeros
    p = np.ones(1, zeros.dtype)
    for i in range(len(zeros)):
        p = np.convolve(p, np.stack([np.ones_like(zeros[i]), -zeros[i]]))
    return p


@composed(np.roots)
def roots(p):
    places = np.flatnonzero(concrete(p))
    if not len(places):
        return np.array([])
    n = places[-1] - places[0]
    if not n:
        return np.zeros(len(p) - 1 - places[-1], p.dtype)
    p, trailing = p[places[0] : places[-1] + 1], len(p) - 1 - places[-1]
    below = np.eye(n, k=-1, dtype=p.dtype)[1:]
    found = np.linalg.eigvals(np.concatenate([-p[None, 1:] / p[0], below]))
    return np.concatenate([found, np.zeros(trailing, found.dtype)])
