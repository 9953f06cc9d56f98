"""TensorFlow. The array API namespace is our own, in the modules beside this one: no public library
has one.
"""

from __future__ import annotations

import tensorflow as tf

from ..base import Backend
from . import (
    bitwise,
    creation,
    dtypes,
    elementwise,
    fft,
    indexing,
    linalg,
    manipulation,
    searching,
    statistics,
)


class TensorFlow(Backend):
    name = "tensorflow"
    arrays = (tf.Tensor, tf.Variable, tf.IndexedSlices)

    def vjp(xp, func, leaves, once=False):
        # A copy of each leaf: watching one tensor twice would give the sum of both gradients to
        # each.
        leaves = [tf.identity(x) for x in leaves]
        with tf.GradientTape(persistent=not once, watch_accessed_variables=False) as tape:
            tape.watch(leaves)
            outs, aux = func(*leaves)

        def pullback(cotangents):
            grads = tape.gradient(
                list(outs),
                leaves,
                list(cotangents),
                unconnected_gradients=tf.UnconnectedGradients.ZERO,
            )
            return tuple(tf.convert_to_tensor(g) for g in grads)  # gather gives IndexedSlices

        return outs, pullback, aux

    def custom_call(xp, rule, arrays):
        @tf.custom_gradient
        def call(*arrays):
            outs, residuals = rule.fwd(*arrays)
            return outs, lambda *upstream: rule.bwd(residuals, upstream, arrays)

        return call(*(tf.convert_to_tensor(x) for x in arrays))

    def map_rows(xp, pullback, rows):
        if rows.shape[0] == 0:
            return super().map_rows(pullback, rows)
        return tf.vectorized_map(pullback, rows)

    def stop_gradient(xp, x, preserve_type=True):
        stopped = tf.stop_gradient(x)
        if preserve_type and isinstance(x, tf.Variable):
            return tf.Variable(stopped, trainable=x.trainable)
        return stopped

    def to_numpy(xp, x):
        return tf.convert_to_tensor(x).numpy()

    def from_numpy(xp, x, device=None):
        with tf.device(device):
            return tf.convert_to_tensor(x)

    def devices(xp):
        return [d.name.removeprefix("/physical_device:") for d in tf.config.list_physical_devices()]

    def index_get(xp, x, index):
        return indexing.index_get(x, index)

    def index_update(xp, x, index, value, how):
        return indexing.index_update(x, index, value, how)

    def is_float(xp, dtype):
        return dtype.is_floating or dtype.is_complex

    def narrow(xp, name):
        return {"float16": tf.float16, "bfloat16": tf.bfloat16}.get(name)


backend = TensorFlow(
    dtypes,
    creation,
    elementwise,
    bitwise,
    manipulation,
    searching,
    statistics,
    linalg,
    linalg=[linalg],
    fft=[fft],
)
