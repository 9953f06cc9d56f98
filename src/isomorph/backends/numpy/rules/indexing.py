"""Reading and functionally writing parts of an array. A gradient at an index stays one (`At`) until it is needed whole."""

import numpy as np

from ..tape import At, composed, concrete, getitem, rule, scatter


@rule(getitem)
def _getitem(y, x, index):
    return (lambda g: At(g, index),)


@rule(scatter)
def _scatter(y, g, index, shape):
    return (lambda h: h[index],)


@composed(np.take)
def take(a, indices, axis=None, out=None, mode="raise"):
    indices = np.asarray(concrete(indices))
    if axis is None:
        return np.ravel(a)[indices]
    if mode != "raise":
        n = a.shape[axis]
        indices = indices % n if mode == "wrap" else np.clip(indices, 0, n - 1)
    return a[(slice(None),) * (axis % a.ndim) + (indices,)]


@composed(np.take_along_axis)
def take_along_axis(arr, indices, axis=-1):
    indices = np.asarray(concrete(indices))
    if axis is None:
        return np.ravel(arr)[indices]
    axis %= arr.ndim
    grid = list(np.ogrid[tuple(slice(n) for n in indices.shape)])
    for i, n in enumerate(arr.shape):
        if n == 1:
            grid[i] = np.zeros_like(grid[i])  # NumPy broadcasts the array along the other axes
    grid[axis] = indices
    return arr[tuple(grid)]
