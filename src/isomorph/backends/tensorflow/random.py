"""Random draws in TensorFlow."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import tensorflow as tf

from .dtypes import tensor
from .kernels import Eager


def at_hand(x: Any) -> np.ndarray | None:
    x = tensor(x)
    # inside a graph, numbers drawn now would become constants
    return np.asarray(x.numpy()) if type(x) is Eager and not tf.inside_function() else None


def unpackable(x: Any) -> Any:
    """TensorFlow's tensors cannot be unpacked in a graph: this one can."""
    if type(x) is not Eager:
        x.__class__ = _unpackable(type(x))
    return x


@cache
def _unpackable(kind: type) -> type:
    return type(kind.__name__, (kind,), {"__iter__": lambda x: iter(tf.unstack(x))})


def sizes(x: Any, shape: tuple) -> tuple:
    """A shape, with tensors for sizes that only a running graph knows."""
    known = tf.shape(x, out_type=tf.int64)
    return tuple(known[i] if n is None else n for i, n in enumerate(shape))


def quick(key: Any, shape: tuple, dtype: Any, normal: bool) -> tf.Tensor:
    seed = tf.bitcast(tensor(key), tf.int32)
    draw = tf.random.stateless_normal if normal else tf.random.stateless_uniform
    return draw(shape, seed, dtype=dtype)
