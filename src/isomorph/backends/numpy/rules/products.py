"""Matrix products and contractions."""

import numpy as np

from ..tape import composed, rule
from .elementwise import conj


def adjoint(x):
    """The conjugate transpose of the last two axes."""
    return np.swapaxes(conj(x), -1, -2)


def gram(a, g):
    """adjoint(a) @ g summed over the leading axes, as one matrix product instead of a stack of them."""
    return adjoint(np.reshape(a, (-1, a.shape[-1]))) @ np.reshape(g, (-1, g.shape[-1]))


@rule(np.matmul, np.linalg.matmul)
def matmul(y, a, b):
    if a.ndim == 1 and b.ndim == 1:
        return lambda g: g * conj(b), lambda g: g * conj(a)
    if b.ndim == 1:
        return lambda g: g[..., None] * conj(b), lambda g: gram(a, g[..., None])[:, 0]
    if a.ndim == 1:
        # the tape sums over the stack
        return lambda g: np.sum(conj(b) * g[..., None, :], -1), lambda g: conj(a)[:, None] * g[..., None, :]
    if b.ndim == 2:
        return lambda g: g @ adjoint(b), lambda g: gram(a, g)
    return lambda g: g @ adjoint(b), lambda g: adjoint(a) @ g


@composed(np.dot)
def dot(a, b, out=None):
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return np.multiply(a, b)
    if np.ndim(b) <= 2:
        return np.matmul(a, b)
    return np.tensordot(a, b, (-1, -2))
