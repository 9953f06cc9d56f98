"""TensorFlow's kernels as plain functions.

`tf.raw_ops` puts a wrapper around each kernel that only refuses positional arguments, and costs an
eager call up to a tenth of its time. These are the functions underneath; they are still called with
keyword arguments.
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

# The type of a tensor with values. The result of an op has it exactly if the op ran eagerly:
# checking the type of a result is cheaper than calling tf.executing_eagerly() before.
Eager: Any = ALL.first("EagerTensor") or type(tf.constant(0))

# Whether a tape records operations on tensors: there is no public function for it.
should_record: Any = ALL.first("should_record_backprop", "should_record_of_c")


def is_watched(*xs: Any) -> bool:
    """Whether a gradient tape records operations on one of the tensors. If a version of TensorFlow
    cannot tell, everything counts as recorded: then nothing is computed or returned whose gradient
    would be lost.
    """
    return should_record is None or bool(should_record(xs))


def recorded(out: Any) -> bool:
    """Whether the result of an op may be differentiated: a tape saw it, or it is part of a graph.

    Only then a kernel whose own derivative is wrong is replaced by a composed one.
    """
    if should_record is None or type(out) is not Eager:  # like `is_watched`, without the call
        return True
    return should_record([out])
