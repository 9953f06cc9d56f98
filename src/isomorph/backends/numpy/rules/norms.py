"""Norms. At zero, where a norm has a kink, the gradient is 0, the middle of its subgradients."""

import numpy as np

from ..tape import composed, rule
from ..traced import TRACED, concrete, record
from .elementwise import nonzero
from .reductions import widen
from .shaping import arrayed, axes_of


def length(x, axis, keepdims):
    """The Euclidean norm over any axes, as NumPy computes it."""
    if axis == ():  # an array without axes
        return np.abs(x)
    if axis is None or isinstance(axis, int) or len(axes_of(axis, x.ndim)) <= 2:
        return np.linalg.norm(x, axis=axis, keepdims=keepdims)
    return np.linalg.vector_norm(x, axis=axis, keepdims=keepdims)


@rule(length)
def _length(y, x, axis, keepdims):
    shape = x.shape
    return (lambda g: widen(g / nonzero(y), axis, keepdims, shape) * x,)


def vector_norm(x, order, axis, keepdims):
    if order is None or order == 2:
        return record(length, x, axis, keepdims)
    size = np.abs(x)
    if order == np.inf:
        return np.max(size, axis, keepdims=keepdims)
    if order == -np.inf:
        return np.min(size, axis, keepdims=keepdims)
    if order == 0:
        return np.sum(concrete(size) != 0, axis=axis, keepdims=keepdims).astype(size.dtype)
    if order == 1:
        return np.sum(size, axis, keepdims=keepdims)
    total = np.sum(power(size, float(order)), axis, keepdims=keepdims)
    return power(total, 1 / order)


def power(x, exponent):
    """`x**exponent`, with the gradient 0 at x = 0, even where the true one is infinite."""
    zero = concrete(x) == 0
    at_zero = 0.0 if exponent > 0 else np.inf
    return np.where(zero, at_zero, np.where(zero, 1.0, x) ** exponent)


def matrix_norm(x, order, axis, keepdims):
    if order in (None, "fro", "f"):
        return record(length, x, axis, keepdims)
    row, column = axes_of(axis, x.ndim)
    y = other_norm(x, order, row, column, keepdims)
    return np.where(np.any(concrete(x) != 0, axis=(row, column), keepdims=keepdims), y, 0.0)


def other_norm(x, order, row, column, keepdims):
    if order in (1, -1, np.inf, -np.inf):
        along, over = (row, column) if abs(order) == 1 else (column, row)
        sums = np.sum(np.abs(x), along, keepdims=True)
        y = np.max(sums, over, keepdims=True) if order > 0 else np.min(sums, over, keepdims=True)
        return y if keepdims else np.squeeze(y, (row, column))
    s = np.linalg.svd(np.moveaxis(x, (row, column), (-2, -1)), compute_uv=False)
    if order == "nuc":
        y = np.sum(s, -1)
    elif order in (2, -2):
        y = np.max(s, -1) if order > 0 else np.min(s, -1)
    else:
        raise ValueError(
            f"numpy.linalg.norm: needed an order of a matrix norm in NumPy, got {order!r}"
        )
    return np.expand_dims(y, (min(row, column), max(row, column))) if keepdims else y


@composed(np.linalg.norm)
def norm(x, ord=None, axis=None, keepdims=False):
    if ord is None and axis is None:
        return record(length, x, None, keepdims)
    axis = tuple(range(x.ndim)) if axis is None else axis
    axes = axes_of(axis, x.ndim)
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ValueError(
                f"numpy.linalg.norm: needed a number as order of a vector norm, got {ord!r}"
            )
        return vector_norm(x, ord, axes[0], keepdims)
    if len(axes) == 2:
        return matrix_norm(x, ord, axes, keepdims)
    raise ValueError(f"numpy.linalg.norm: needed one or two axes, got {axes}")


TRACED |= {
    np.linalg.vector_norm: lambda x, /, *, axis=None, keepdims=False, ord=2: vector_norm(
        x, ord, axes_of(axis, x.ndim), keepdims
    ),
    np.linalg.matrix_norm: lambda x, /, *, keepdims=False, ord="fro": matrix_norm(
        x, ord, (-2, -1), keepdims
    ),
}


@composed(np.linalg.cond)
def cond(x, p=None):
    x = arrayed(x)
    if p in (None, 2, -2):
        s = np.linalg.svd(x, compute_uv=False)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return np.linalg.norm(x, p, (-2, -1)) * np.linalg.norm(np.linalg.inv(x), p, (-2, -1))
