"""TensorFlow. The array API namespace is our own, in the modules beside this one: no public library
has one.
"""

from __future__ import annotations

import numpy as np
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
from .kernels import Eager

try:
    from tensorflow.python.eager.record import should_record_backprop
except ImportError:  # an internal name
    should_record_backprop = None


class TensorFlow(Backend):
    name = "tensorflow"
    arrays = (tf.Tensor, tf.Variable, tf.IndexedSlices)

    def vjp(xp, func, leaves, once=False):
        # A copy of each leaf: watching one tensor twice would give the sum of both gradients to
        # each.
        leaves = [tf.identity(dtypes.tensor(x)) for x in leaves]
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
            return tuple(dtypes.tensor(g) for g in grads)  # gather gives IndexedSlices

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
        values = dtypes.tensor(x)
        if not isinstance(values, Eager):
            raise TypeError(
                "to_numpy: needed a tensor that has its values, got a symbolic one; call it "
                "outside of tf.function"
            )
        if _is_watched(values):
            kind = ", preserve_type=False" if isinstance(x, tf.Variable) else ""
            raise TypeError(
                f"to_numpy: needed a tensor no tape is watching, got {values.dtype.name} of shape "
                f"{tuple(values.shape)} under differentiation; its gradient would be lost; use "
                f"iso.stop_gradient(x{kind}) first"
            )
        if values.dtype is tf.string:
            return np.asarray(values.numpy(), object)
        if values.dtype in HANDLES:
            raise TypeError(f"to_numpy: needed numbers or strings, got {values.dtype.name}")
        return np.asarray(values.numpy())  # a 0-d tensor gives a scalar

    def lend(xp, x):
        x = dtypes.tensor(x)
        # DLPack ends the process on strings; what is symbolic or watched, to_numpy speaks about.
        if x.dtype not in dtypes.ANY or not isinstance(x, Eager) or _is_watched(x):
            return None
        return x

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


HANDLES = (tf.resource, tf.variant)  # they stand for something NumPy has no values of


def _is_watched(x: tf.Tensor) -> bool:
    """Whether a gradient tape is recording what becomes of `x`.

    TensorFlow says so only inside; a version that has moved it is taken to watch nothing, and then
    arrays leave without their gradient as they do by `x.numpy()`.
    """
    return bool(should_record_backprop([x])) if should_record_backprop else False


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
