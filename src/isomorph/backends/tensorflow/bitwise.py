"""Functions of bits and booleans: bitwise kernels take no bool, logical ones nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from .dtypes import INTEGER, bool, promote, refuse
from .kernels import ops

Binary = Callable[[Any, Any], tf.Tensor]


def _xor(x: Any, y: Any) -> tf.Tensor:
    return ops.NotEqual(x=x, y=y)


def _bitwise(
    name: str, kernel: Callable[..., Any], logical: Callable[..., Any], doc: str
) -> Binary:
    def function(x1: Any, x2: Any, /) -> tf.Tensor:
        x1, x2 = promote(x1, x2, name)
        if x1.dtype is bool:
            return logical(x=x1, y=x2)
        if x1.dtype not in INTEGER:
            refuse(name, "an integer or bool dtype", x1)
        return kernel(x=x1, y=x2)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


bitwise_and = _bitwise("bitwise_and", ops.BitwiseAnd, ops.LogicalAnd, "The bits set in both.")
bitwise_or = _bitwise("bitwise_or", ops.BitwiseOr, ops.LogicalOr, "The bits set in either.")
bitwise_xor = _bitwise("bitwise_xor", ops.BitwiseXor, _xor, "The bits set in one of both.")


def bitwise_invert(x: Any, /) -> tf.Tensor:
    """Every bit inverted."""
    dtype = getattr(x, "dtype", None)
    if dtype is bool:
        return ops.LogicalNot(x=x)
    if dtype not in INTEGER:
        refuse("bitwise_invert", "an integer or bool dtype", x)
    return ops.Invert(x=x)


def bitwise_left_shift(x1: Any, x2: Any, /) -> tf.Tensor:
    """The bits shifted up by x2 places. (TensorFlow limits the shift to less than the width.)"""
    x1, x2, gone = _shift("bitwise_left_shift", x1, x2)
    return tf.where(gone, tf.zeros((), x1.dtype), ops.LeftShift(x=x1, y=x2))


def bitwise_right_shift(x1: Any, x2: Any, /) -> tf.Tensor:
    """The bits shifted down by x2 places, keeping the sign."""
    x1, x2, gone = _shift("bitwise_right_shift", x1, x2)
    out = ops.RightShift(x=x1, y=x2)
    if x1.dtype.min < 0:  # a shift by one less than the width already leaves only the sign
        return out
    return tf.where(gone, tf.zeros((), x1.dtype), out)


def _shift(name: str, x1: Any, x2: Any) -> tuple[Any, Any, tf.Tensor]:
    """The operands, and where the shift is at least the width of the dtype."""
    x1, x2 = promote(x1, x2, name)
    if x1.dtype not in INTEGER:
        refuse(name, "an integer dtype", x1)
    return x1, x2, ops.GreaterEqual(x=x2, y=tf.constant(8 * x1.dtype.size, x1.dtype))


def _logical(name: str, kernel: Callable[..., Any], doc: str) -> Binary:
    def function(x1: Any, x2: Any, /) -> tf.Tensor:
        x1, x2 = promote(x1, x2, name)
        if x1.dtype is not bool:
            refuse(name, "bool tensors", x1)
        return kernel(x=x1, y=x2)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


logical_and = _logical("logical_and", ops.LogicalAnd, "Whether both are true.")
logical_or = _logical("logical_or", ops.LogicalOr, "Whether either is true.")
logical_xor = _logical("logical_xor", _xor, "Whether one of both is true.")


def logical_not(x: Any, /) -> tf.Tensor:
    """Whether x is false."""
    if getattr(x, "dtype", None) is not bool:
        refuse("logical_not", "a bool tensor", x)
    return ops.LogicalNot(x=x)
