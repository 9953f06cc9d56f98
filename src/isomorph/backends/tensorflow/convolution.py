"""Convolution in TensorFlow, by the kernels that have a gradient of any order, also on a CPU. They
take channels last, one group or one per channel, and dilation without strides, which TensorFlow
rearranges itself.

Eagerly on a CPU, other cases are rearranged: groups are computed one by one, and arrays with
channels first are transposed. Dilation with strides is left to the composed formula. XLA supports
all cases.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from ...meanings.conv import dilated, last_filters, padded
from ...meanings.conv_plan import Plan
from . import dtypes
from .kernels import Eager, ops

KINDS = (tf.float16, tf.bfloat16, tf.float32, tf.float64)  # that have kernels


def takes(x: Any, plan: Plan) -> bool:
    """Whether TensorFlow's kernels can compute this convolution. For an empty batch the shape of
    their result is wrong, so this is left to the composed formula.
    """
    apart = max(plan.strides) == 1 or max(plan.dilations) == 1
    return apart and x.dtype in KINDS and x.shape[0] != 0


def conv(xp: Any, x: Any, w: Any, bias: Any, plan: Plan) -> Any:
    n = len(plan.size)
    x, w = dtypes.tensor(x), last_filters(xp, dtypes.tensor(w), plan)
    if plan.first:
        x = tf.transpose(x, (0, *range(2, n + 2), 1))
    if max(plan.x_dilations) > 1:
        x = dilated(xp, x, plan.x_dilations)
    if plan.groups == 1:
        y = _dense(xp, x, w, plan)
    elif w.shape[-2] == 1 and n < 3 and (n == 1 or plan.strides[0] == plan.strides[1]):
        y = _depthwise(xp, x, w, plan)
    else:
        shares = zip(tf.split(x, plan.groups, -1), tf.split(w, plan.groups, -1))
        y = tf.concat([_dense(xp, a, b, plan) for a, b in shares], -1)
    return _finished(y, bias, plan)


def transposed(xp: Any, x: Any, w: Any, bias: Any, plan: Plan) -> Any:
    """The transposed convolution, for one group, without dilation, and padding not negative."""
    n = len(plan.size)
    x, w = dtypes.tensor(x), dtypes.tensor(w)
    # to [*k, out, in], the filters of the convolution it is the gradient of
    order = (*range(2, n + 2), 1, 0) if plan.filters_first else (*range(n), n + 1, n)
    w = tf.transpose(w, order)
    if plan.first:
        x = tf.transpose(x, (0, *range(2, n + 2), 1))
    batch = tf.shape(x)[0] if x.shape[0] is None else x.shape[0]
    if n == 3:  # this kernel supports only two paddings: compute all and crop
        whole = [size + low + high for size, (low, high) in zip(plan.size, plan.pads)]
        y = ops.Conv3DBackpropInputV2(
            input_sizes=[batch, *whole, w.shape[-2]],
            filter=w,
            out_backprop=x,
            strides=[1, *plan.strides, 1],
            padding="VALID",
        )
        if whole != list(plan.size):
            y = padded(xp, y, tuple((-low, -high) for low, high in plan.pads))
    else:
        x, w, strides, pads = _planes(x, w, plan.strides, plan.pads)
        size = plan.size if n == 2 else (1, *plan.size)
        y = ops.Conv2DBackpropInput(
            input_sizes=[batch, *size, w.shape[-2]],
            filter=w,
            out_backprop=x,
            strides=[1, *strides, 1],
            **_padding(pads),
        )
        y = y if n == 2 else tf.squeeze(y, 1)
    return _finished(y, bias, plan)


def _dense(xp: Any, x: Any, w: Any, plan: Plan) -> Any:
    """One group, channels last."""
    n = len(plan.size)
    if max(plan.dilations) > 1:
        return tf.nn.convolution(padded(xp, x, plan.pads), w, 1, "VALID", None, plan.dilations)
    if n == 3:
        return ops.Conv3D(
            input=padded(xp, x, plan.pads), filter=w, strides=[1, *plan.strides, 1], padding="VALID"
        )
    x, pads = _uncropped(xp, x, plan.pads)
    x, w, strides, pads = _planes(x, w, plan.strides, pads)
    x, word = _framed(x, w, strides, pads)
    y = ops.Conv2D(input=x, filter=w, strides=[1, *strides, 1], padding=word)
    return y if n == 2 else tf.squeeze(y, 1)


def _depthwise(xp: Any, x: Any, w: Any, plan: Plan) -> Any:
    """One group per channel, channels last, one or two axes."""
    n, channels = len(plan.size), plan.groups
    w = tf.reshape(w, (*w.shape[:n], channels, w.shape[-1] // channels))
    dilation = plan.dilations if n == 2 else (1, *plan.dilations)
    # a graph in which a bias follows the kernel with explicit padding aborts the process: Grappler
    # fuses the two and forgets the padding
    if max(dilation) > 1 or type(x) is not Eager:
        x, pads = padded(xp, x, plan.pads), ((0, 0),) * n
    else:
        x, pads = _uncropped(xp, x, plan.pads)
    x, w, strides, pads = _planes(x, w, plan.strides, pads)
    if max(dilation) > 1:
        y = tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "VALID", None, dilation)
    else:
        strides = (strides[-1], strides[-1])  # for an axis of size 1 any stride will do
        x, word = _framed(x, w, strides, pads)
        y = ops.DepthwiseConv2dNative(
            input=x, filter=w, strides=[1, *strides, 1], padding=word
        )  # fmt: skip
    return y if n == 2 else tf.squeeze(y, 1)


def _uncropped(xp: Any, x: Any, pads: tuple) -> tuple[Any, tuple]:
    """`x`, cropped where padding is negative, and the padding that is left."""
    if min(map(min, pads)) >= 0:
        return x, pads
    x = padded(xp, x, tuple((min(low, 0), min(high, 0)) for low, high in pads))
    return x, tuple((max(low, 0), max(high, 0)) for low, high in pads)


def _planes(x: Any, w: Any, strides: tuple, pads: tuple) -> tuple[Any, Any, tuple, tuple]:
    """One axis, as the second of two."""
    if len(strides) == 2:
        return x, w, strides, pads
    return tf.expand_dims(x, 1), tf.expand_dims(w, 0), (1, *strides), ((0, 0), *pads)


def _framed(x: Any, w: Any, strides: tuple, pads: tuple) -> tuple[Any, str]:
    """`x`, padded unless one of TensorFlow's words describes the padding, and that word: gradients
    with explicit padding take twice as long.
    """
    if not any(map(any, pads)):
        return x, "VALID"
    for size, k, s, (low, high) in zip(x.shape[1:-1], w.shape, strides, pads):
        total = max((-(-size // s) - 1) * s + k - size, 0)
        if (low, high) != (total // 2, total - total // 2):
            return ops.Pad(input=x, paddings=[(0, 0), *pads, (0, 0)]), "VALID"
    return x, "SAME"


def _padding(pads: tuple) -> dict[str, Any]:
    if not any(map(any, pads)):
        return {"padding": "VALID"}
    each = [0, 0, *(i for pair in pads for i in pair), 0, 0]
    return {"padding": "EXPLICIT", "explicit_paddings": each}


def _finished(y: Any, bias: Any, plan: Plan) -> Any:
    """`y` plus the bias, with the channels where `plan` wants them."""
    if bias is not None:
        y = y + dtypes.tensor(bias)
    return tf.transpose(y, (0, y.ndim - 1, *range(1, y.ndim - 1))) if plan.first else y
