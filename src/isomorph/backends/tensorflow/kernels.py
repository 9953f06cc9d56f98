"""TensorFlow's kernels as plain functions.

`tf.raw_ops` puts a wrapper around each kernel that only refuses arguments without a name, and costs
an eager call up to a tenth of its time. Here are the functions underneath; they are called with
names all the same.
"""

from __future__ import annotations

from importlib import import_module
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


def _question() -> Any:
    """What TensorFlow calls the question whether a tape is recording what becomes of tensors: it
    has no public name.
    """
    for module, name in (
        ("tensorflow.python.eager.record", "should_record_backprop"),
        ("tensorflow.python.pywrap_tfe", "TFE_Py_TapeSetShouldRecordBackprop"),
    ):
        try:
            return getattr(import_module(module), name)
        except (ImportError, AttributeError):  # moved
            continue
    return None


should_record: Any = _question()


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
