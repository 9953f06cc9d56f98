"""TensorFlow's own functions for layers; cases without a kernel are left to `super()`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from ...meanings.bounds import strays
from ...meanings.loss import reduced
from ...meanings.norm import BatchNormPlan, moved
from ...meanings.pooling import PoolPlan
from ..composed import Backend
from . import compiling, dtypes, factors, pooling
from .kernels import Eager, ops
from .manipulation import axes_of, is_checked, signed

KINDS = (tf.float32, tf.float64, tf.float16, tf.bfloat16)  # that have kernels
NARROW = (tf.float32, tf.float16, tf.bfloat16)  # constants of some kernels have float32's digits


class Layers(Backend):
    """Methods of the TensorFlow backend."""

    def solve_triangular(xp, a: Any, b: Any, lower: bool, trans: str, unit: bool) -> Any:
        return factors.solve_triangular(a, b, lower, trans, unit)

    def eig(xp, a: Any) -> tuple:
        return factors.eig(a)

    def linear(xp, x: Any, weight: Any, bias: Any) -> Any:
        x, weight = dtypes.tensor(x), dtypes.tensor(weight)
        shape = [-1 if n is None else n for n in x.shape]
        plain = x.dtype is weight.dtype and x.dtype in KINDS and shape.count(-1) < 2
        if weight.ndim != 2 or len(shape) < 2 or not plain:
            return super().linear(x, weight, bias)
        rows = x if len(shape) == 2 else ops.Reshape(tensor=x, shape=[-1, shape[-1]])
        y = ops.MatMul(a=rows, b=weight, transpose_b=True)
        if bias is not None:
            y = y + bias
        return y if len(shape) == 2 else ops.Reshape(tensor=y, shape=[*shape[:-1], y.shape[-1]])

    def thirds(xp, x: Any) -> Any:
        return tf.split(x, 3, -1)  # its gradient is one array, not a sum of three

    def relu(xp, x: Any) -> Any:
        return tf.nn.relu(x) if x.dtype in KINDS else super().relu(x)

    def leaky_relu(xp, x: Any, alpha: float) -> Any:
        return tf.nn.leaky_relu(x, alpha) if x.dtype in NARROW else super().leaky_relu(x, alpha)

    def elu(xp, x: Any, alpha: float) -> Any:
        return tf.nn.elu(x) if alpha == 1 and x.dtype in KINDS else super().elu(x, alpha)

    def softplus(xp, x: Any) -> Any:
        return tf.math.softplus(x)

    def sigmoid(xp, x: Any) -> Any:
        return tf.math.sigmoid(x)

    def softmax(xp, x: Any, axis: int) -> Any:
        _check_axis("softmax", x, axis)
        y = tf.nn.softmax(x, axis)
        if y.dtype == tf.float64 or compiling.by_xla():
            return y
        # the kernels for narrow floats give zeros next to a NaN: this is 0, or NaN for the whole
        # row
        total = ops.Sum(input=y, axis=axis, keep_dims=True)
        return ops.AddV2(x=y, y=ops.Sub(x=total, y=total))

    def log_softmax(xp, x: Any, axis: int) -> Any:
        _check_axis("log_softmax", x, axis)
        return tf.nn.log_softmax(x, axis)

    def logsumexp(xp, x: Any, axis: Any, keepdims: bool) -> Any:
        _check_axis("logsumexp", x, axis)
        return tf.reduce_logsumexp(x, axis, keepdims)

    def batch_norm(
        xp,
        x: Any,
        mean: Any,
        variance: Any,
        weight: Any,
        bias: Any,
        plan: BatchNormPlan,
    ) -> tuple[Any, Any, Any]:
        training, momentum, epsilon, channel = plan
        x, known = dtypes.tensor(x), None not in tuple(x.shape)
        narrow = all(p is None or p.dtype is tf.float32 for p in (x, weight, bias))
        number = isinstance(epsilon, (int, float)) and epsilon > 0
        fits = training and known and narrow and number and channel == x.ndim - 1
        # XLA computes the variance as E[x²] − E[x]², which loses all digits if the mean is large
        if not (fits and compiling.by_kernels(x)) or tf.config.list_physical_devices("GPU"):
            return super().batch_norm(x, mean, variance, weight, bias, plan)
        size = x.shape[-1]
        y, centre, spread, *_ = ops.FusedBatchNormV3(
            x=ops.Reshape(tensor=x, shape=[1, 1, -1, size]),
            scale=tf.ones(size) if weight is None else dtypes.tensor(weight),
            offset=tf.zeros(size) if bias is None else dtypes.tensor(bias),
            mean=tf.zeros(0),
            variance=tf.zeros(0),
            epsilon=epsilon,
            is_training=True,
        )
        y = ops.Reshape(tensor=y, shape=x.shape)
        return y, moved(xp, mean, centre, momentum), moved(xp, variance, spread, momentum)

    def cross_entropy(
        xp,
        logits: Any,
        labels: Any,
        axis: int,
        smoothing: float,
        ignored: int | None,
        reduction: str,
    ) -> Any:
        logits = dtypes.tensor(logits)
        fits = logits.ndim - 1 == axis > 0 and not smoothing and ignored is None
        if not (fits and logits.dtype in KINDS and labels.dtype in (tf.int32, tf.int64)):
            return super().cross_entropy(logits, labels, axis, smoothing, ignored, reduction)
        lost = None
        if tf.inside_function():  # XLA would give NaN, but without XLA the kernel fails
            lost = strays(xp, "cross_entropy", labels, logits.shape[-1], "labels")
            labels = tf.where(lost, tf.zeros_like(labels), labels)
        try:
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        except tf.errors.InvalidArgumentError:  # if it runs eagerly; GPUs give NaN
            strays(xp, "cross_entropy", labels, logits.shape[-1], "labels")
            raise
        if lost is not None:  # a factor, so that the gradient of its row is NaN too
            each = each * tf.where(lost, tf.cast(xp.nan, each.dtype), tf.ones_like(each))
        return reduced(xp, each, reduction)

    def is_inside(xp, x: Any, size: int) -> bool | None:
        x = dtypes.tensor(x)
        if type(x) is not Eager or tf.inside_function() or not x.device.endswith("CPU:0"):
            return None
        values = x.numpy()
        return not values.size or bool(values.min() >= 0 and values.max() < size)

    def take_rows(xp, weight: Any, ids: Any) -> Any:
        weight, ids = dtypes.tensor(weight), dtypes.tensor(ids)
        places = signed(ids)
        if not is_checked(weight):
            n = weight.shape[0]
            edge = n if xp.is_float(weight.dtype) else 0  # the other end for indices out of bounds
            places = tf.where(places < 0, tf.cast(edge, places.dtype), places)
            return xp.take(weight, places, axis=0)
        try:
            return ops.GatherV2(params=weight, indices=places, axis=0)
        except tf.errors.InvalidArgumentError:
            strays(xp, "embedding", ids, weight.shape[0], "ids")
            raise

    def pool(xp, x: Any, plan: PoolPlan) -> Any:
        window, strides, pads, size, first, largest, counts_pads = plan
        x = dtypes.tensor(x)
        deep = len(window) == 3 and not largest and x.dtype is not tf.float32  # no kernel
        if x.dtype not in KINDS or len(window) > 3 or x.shape[0] == 0 or deep:
            return super().pool(x, plan)
        n = len(window)
        x = tf.transpose(x, (0, *range(2, n + 2), 1)) if first else x
        if largest:
            y = pooling.largest(xp, x, window, strides, pads, size)
        else:
            y = pooling.mean(xp, x, window, strides, pads, size, counts_pads)
        return tf.transpose(y, (0, n + 1, *range(1, n + 1))) if first else y


def _check_axis(name: str, x: Any, axis: Any) -> None:
    rank = x.shape.rank
    if rank is not None:
        axes_of(name, axis, rank)
