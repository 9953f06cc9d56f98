"""One example of each function, layer and optimizer of isomorph for which one example is enough,
with the same in plain NumPy.

Each example is tested on every backend: its values and gradients (`test_examples.py`), compiled
(`core/compiled_table.py`), under every framework's own transforms (`borders/`), and at zero and on
empty arrays (`backends/edge_layers.py`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Function(NamedTuple):
    """A function of isomorph, called with arrays of some shapes."""

    call: Callable[..., Any]  # takes isomorph and the arrays
    shapes: tuple[tuple[int, ...], ...]
    wanted: Callable[..., Any]  # takes float64 NumPy arrays; as simple as possible


class Layer(NamedTuple):
    """A module, called with an array of some shape."""

    make: Callable[[Any], Any]  # takes isomorph
    shape: tuple[int, ...]
    wanted: Callable[[dict, np.ndarray], np.ndarray]  # takes the variables and the array


class Pair(NamedTuple):
    """An optimizer."""

    make: Callable[[Any], Any]  # takes isomorph.optimizers
    wanted: Callable[[np.ndarray, list[np.ndarray]], np.ndarray]  # takes a parameter and gradients


def rms(x, axis=-1, epsilon=1e-6):
    return x / np.sqrt(np.mean(x * x, axis=axis, keepdims=True) + epsilon)


def responses(x, size, alpha, beta, k):
    """`iso.local_response_norm` over the last axis."""
    windows = [(max(i - size // 2, 0), i + (size + 1) // 2) for i in range(x.shape[-1])]
    sums = [np.sum(x[..., low:high] ** 2, axis=-1) for low, high in windows]
    return x / (k + alpha / size * np.stack(sums, axis=-1)) ** beta


def descended(w, gradients):
    for g in gradients:
        w = w - 0.1 * g
    return w


FUNCTIONS = {
    "local_response_norm": Function(
        lambda iso, x: iso.local_response_norm(x, 3, alpha=0.9, beta=0.6, k=1.5), ((2, 2, 6),),
        lambda x: responses(x, 3, 0.9, 0.6, 1.5)),
    "rms_norm": Function(lambda iso, x, w: iso.rms_norm(x, weight=w), ((4, 5), (5,)),
                         lambda x, w: rms(x) * w),
}  # fmt: skip

LAYERS = {
    "LocalResponseNorm": Layer(
        lambda iso: iso.LocalResponseNorm(4, alpha=0.9, k=2.0, data_format="channel_first"),
        (2, 6, 2),
        lambda v, x: np.moveaxis(responses(np.moveaxis(x, 1, -1), 4, 0.9, 0.75, 2.0), -1, 1),
    ),
    "RMSNorm": Layer(lambda iso: iso.RMSNorm(6), (4, 6), lambda v, x: rms(x) * v["w"]),
}

PAIRS = {
    "sgd": Pair(lambda o: o.sgd(0.1), descended),
}


def parts(xp, x, shapes):
    """Arrays of the given shapes from the numbers of `x`, one after the other. At its end, start
    again with scaled values.
    """
    flat, place, scale, found = xp.reshape(x, (-1,)), 0, 1.0, []
    for shape in shapes:
        pieces, n = [], int(np.prod(shape))
        while n:
            m = min(n, flat.shape[0] - place)
            pieces.append(flat[place : place + m] * scale)
            place, n = place + m, n - m
            if place == flat.shape[0]:
                place, scale = 0, scale * 0.7
        found.append(xp.reshape(xp.concat(pieces), shape))
    return found
