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
