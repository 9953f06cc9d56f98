"""TensorFlow's kernels as plain functions.

`tf.raw_ops` puts a wrapper around each kernel that only refuses arguments without a name, and costs
an eager call up to a tenth of its time. Here are the functions underneath; they are called with
names all the same.
"""

from __future__ import annotations

from inspect import unwrap
from types import SimpleNamespace
from typing import Any

import tensorflow as tf

ops: Any = SimpleNamespace(
    **{name: unwrap(op) for name, op in vars(tf.raw_ops).items() if callable(op)}
)

# The type of a tensor that has its values. What an op gives is one exactly where it ran at once:
# looking at the type of a result is cheaper than asking tf.executing_eagerly() before.
Eager: Any = tf.__internal__.EagerTensor  # pyright: ignore[reportAttributeAccessIssue]

try:
    from tensorflow.python.eager.record import should_record_backprop
except ImportError:  # an internal name
    should_record_backprop = None


def recorded(out: Any) -> bool:
    """Whether what an op gave may be differentiated: a tape saw it, or it is part of a graph.

    Only then is a kernel whose own derivative is wrong replaced by one composed with another.
    """
    if should_record_backprop is None or type(out) is not Eager:
        return True
    return should_record_backprop([out])
