"""What TensorFlow has of its own for layers."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from ..base import Backend


class Layers(Backend):
    """Methods of the TensorFlow backend."""

    def softplus(xp, x: Any) -> Any:
        return tf.math.softplus(x)

    def sigmoid(xp, x: Any) -> Any:
        return tf.math.sigmoid(x)

    def softmax(xp, x: Any, axis: int) -> Any:
        return tf.nn.softmax(x, axis)

    def log_softmax(xp, x: Any, axis: int) -> Any:
        return tf.nn.log_softmax(x, axis)

    def logsumexp(xp, x: Any, axis: Any, keepdims: bool) -> Any:
        return tf.reduce_logsumexp(x, axis, keepdims)
