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

from .private import ALL

ops: Any = SimpleNamespace(
    **{name: unwrap(op) for name, op in vars(tf.raw_ops).items() if callable(op)}
)

# The type of a tensor that has its values. What an op gives is one exactly where it ran at once:
# looking at the type of a result is cheaper than asking tf.executing_eagerly() before.
Eager: Any = ALL.first("EagerTensor") or type(tf.constant(0))

# The question whether a tape is recording what becomes of tensors: it has no public name.
should_record: Any = ALL.first("should_record_backprop", "should_record_of_c")


def is_watched(x: Any) -> bool:
    """Whether a gradient tape is recording what becomes of the tensor `x`. A version of TensorFlow
    that cannot be asked is taken to record everything: nothing is computed or handed out then that
    a gradient would miss.
    """
    return should_record is None or bool(should_record([x]))


def recorded(out: Any) -> bool:
    """Whether what an op gave may be differentiated: a tape saw it, or it is part of a graph.

    Only then is a kernel whose own derivative is wrong replaced by one composed with another.
    """
    if should_record is None or type(out) is not Eager:  # as `is_watched`, without its call
        return True
    return should_record([out])
