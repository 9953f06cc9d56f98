"""Sums, products, extremes and what is made of them."""

import numpy as np

from ..tape import constant, composed, concrete, record, rule
from .elementwise import conj, nonzero
from .shaping import axes_of

constant(
    np.argmax, np.argmin, np.argsort, np.argpartition, np.nanargmax, np.nanargmin, np.all, np.any,
    np.count_nonzero, np.nonzero, np.flatnonzero, np.argwhere, np.searchsorted, np.digitize, np.lexsort,
    np.histogram, np.bincount, np.isin,
)  # fmt: skip


def widen(g, axis, keepdims, shape):
    """The gradient of a reduction, with the reduced axes back as ones."""
    if keepdims or np.ndim(g) == len(shape):
        return g
    axes = axes_of(axis, len(shape))
    return np.reshape(g, tuple(1 if i in axes else n for i, n in enumerate(shape)))


def counted(axis, shape):
    n = 1
    for i in axes_of(axis, len(shape)):
        n *= shape[i]
    return n


@rule(np.sum)
def sum_(y, a, axis=None, dtype=None, out=None, keepdims=False):
    shape = a.shape
    return (lambda g: np.broadcast_to(widen(g, axis, keepdims, shape), shape),)


@rule(np.mean)
def mean(y, a, axis=None, dtype=None, out=None, keepdims=False):
    shape = a.shape
    n = counted(axis, shape)
    return (lambda g: np.broadcast_to(widen(g / n, axis, keepdims, shape), shape),)


@rule(np.max, np.min)
def extreme(y, a, axis=None, out=None, keepdims=False):
    shape = a.shape
    hit = concrete(a) == widen(concrete(y), axis, keepdims, shape)
    ties = np.sum(hit, axis=axis, keepdims=True)  # ties share

    def back(g):
        g = widen(g, axis, keepdims, shape)
        return np.where(hit, g / ties if g.dtype.itemsize > 4 else g / ties.astype(g.dtype), 0.0)

    return (back,)
