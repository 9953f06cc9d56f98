"""What TensorFlow has of its own for layers."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from ..base import Backend
from .kernels import ops


class Layers(Backend):
    """Methods of the TensorFlow backend."""

    def softplus(xp, x: Any) -> Any:
        return tf.math.softplus(x)

    def sigmoid(xp, x: Any) -> Any:
        return tf.math.sigmoid(x)

    def softmax(xp, x: Any, axis: int) -> Any:
        y = tf.nn.softmax(x, axis)
        if y.dtype == tf.float64:
            return y
        # the kernels of fewer digits give zeros beside a NaN: this is 0, or NaN for the whole row
        total = ops.Sum(input=y, axis=axis, keep_dims=True)
        return ops.AddV2(x=y, y=ops.Sub(x=total, y=total))

    def log_softmax(xp, x: Any, axis: int) -> Any:
        return tf.nn.log_softmax(x, axis)

    def logsumexp(xp, x: Any, axis: Any, keepdims: bool) -> Any:
        return tf.reduce_logsumexp(x, axis, keepdims)
