"""Pooling, channels last, in TensorFlow: the mean by its kernel; the maximum by comparing slices,
because its kernel ignores NaN, and gives the gradient to only one of equal values.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
import tensorflow as tf

from .kernels import ops

Sizes = tuple[int, ...]


def mean(
    xp: Any, x: Any, window: Sizes, strides: Sizes, pads: tuple, size: Sizes, counts_pads: bool
) -> Any:
    n = len(window)
    full = _padded(xp, x, pads, 0)
    if n == 1:
        full, window, strides = tf.expand_dims(full, 1), (1, *window), (1, *strides)
    kernel = ops.AvgPool3D if n == 3 else ops.AvgPool
    word = "input" if n == 3 else "value"
    y = kernel(
        **{word: full}, ksize=[1, *window, 1], strides=[1, *strides, 1], padding="VALID"
    )  # fmt: skip
    y = tf.squeeze(y, 1) if n == 1 else y
    if full is x or counts_pads or not any(map(any, pads)):
        return y
    ones = np.pad(np.ones(x.shape[1:-1]), pads)
    seen = np.zeros(size)
    for index in _cuts(window[-n:], strides[-n:], size):
        seen += ones[index]
    return y * tf.constant(prod(window) / seen[..., None], x.dtype)


def largest(xp: Any, x: Any, window: Sizes, strides: Sizes, pads: tuple, size: Sizes) -> Any:
    """The maximum of each window. x is first split into phases; a phase has elements that are one
    stride apart. The elements at one position in all windows are then a block of one phase, which
    TensorFlow slices much faster.
    """
    n = len(window)
    blocks = [m + (w - 1) // s for m, w, s in zip(size, window, strides)]
    ends = [b * s - i - low for b, s, i, (low, _) in zip(blocks, strides, x.shape[1:-1], pads)]
    if min(ends) < 0:
        x = x[(slice(None), *(slice(min(e, 0) or None) for e in ends))]
    pads = tuple((low, max(e, 0)) for (low, _), e in zip(pads, ends))
    full = _padded(xp, x, pads, -np.inf)
    batch = -1 if x.shape[0] is None else x.shape[0]
    parts = [i for pair in zip(blocks, strides) for i in pair]
    phases = tf.transpose(
        tf.reshape(full, (batch, *parts, x.shape[-1])),
        (*range(2, 2 * n + 1, 2), 0, *range(1, 2 * n, 2), 2 * n + 1),
    )
    places = [
        (tuple(p % s for p, s in zip(place, strides)), [p // s for p, s in zip(place, strides)])
        for place in product(*map(range, window))
    ]

    def cut(phases: Any, phase: Sizes, starts: list[int]) -> Any:
        return phases[(*phase, slice(None), *(slice(a, a + m) for a, m in zip(starts, size)))]

    @tf.custom_gradient
    def run(phases: Any) -> tuple:
        y = cut(phases, *places[0])
        for place in places[1:]:
            y = _larger(y, cut(phases, *place))

        def back(grad: Any) -> Any:
            """The gradient for `phases`: the places with the maximum share `grad`."""
            same = [tf.cast(cut(phases, *place) == y, y.dtype) for place in places]
            share, found = grad / tf.add_n(same), {}
            if not tf.executing_eagerly():  # XLA compiles a product with a boolean as a selection
                share = tf.where(tf.math.is_nan(y), y, share)
                same = [tf.where(tf.math.is_nan(y), tf.ones_like(y), held) for held in same]
            for (phase, starts), held in zip(places, same):
                around = [(a, b - m - a) for a, b, m in zip(starts, blocks, size)]
                part = _padded(xp, share * held, tuple(around), 0)
                found.setdefault(phase, []).append(part)
            empty = [
                tf.zeros_like(next(iter(found.values()))[0])
            ]  # for elements outside all windows
            flat = [tf.add_n(found.get(phase, empty)) for phase in product(*map(range, strides))]
            return tf.reshape(tf.stack(flat), tf.shape(phases))

        return y, back

    return run(phases)


def _larger(a: Any, b: Any) -> Any:
    """The larger of two numbers; NaN if one is NaN, which XLA's maximum ignores."""
    if tf.executing_eagerly():
        return tf.maximum(a, b)
    return tf.where((b > a) | tf.math.is_nan(b), b, a)


def _padded(xp: Any, x: Any, pads: tuple, value: float) -> Any:
    if not any(map(any, pads)):
        return x
    return xp.pad(x, ((0, 0), *pads, (0, 0)), constant_values=value)


def _cuts(window: Sizes, strides: Sizes, size: Sizes) -> list[tuple[slice, ...]]:
    """For each position in the window, the slices with the elements there, for all windows."""
    return [
        tuple([slice(p, p + (n - 1) * s + 1, s) for p, n, s in zip(place, size, strides)])
        for place in product(*map(range, window))
    ]
