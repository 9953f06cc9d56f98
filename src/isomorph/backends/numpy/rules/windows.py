"""Sliding windows. The forward pass makes a view. The backward pass adds one slice of the gradient
for each position in the window.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ..tape import primitive, rule
from .shaping import axes_of


@primitive
def overlapped(g, window, axes, shape):
    """The sum of all windows, each added where it was taken from."""
    out = np.zeros(shape, g.dtype)
    for offset in np.ndindex(window):
        index = [slice(None)] * len(shape)
        part = g[(..., *offset)]
        for axis, start in zip(axes, offset):
            # an axis that is named twice has a window of windows
            first = (index[axis].start or 0) + start
            index[axis] = slice(first, first + part.shape[axis])
        out[tuple(index)] += part
    return out


@rule(overlapped)
def _overlapped(y, g, window, axes, shape):
    return (lambda h: sliding_window_view(h, window, axes),)


@rule(sliding_window_view)
def _sliding_window_view(y, x, window_shape, axis=None, *, subok=False, writeable=False):
    window = tuple(window_shape) if np.ndim(window_shape) else (int(window_shape),)
    shape, axes = x.shape, axes_of(axis, x.ndim)
    return (lambda g: overlapped(g, window, axes, shape),)
