"""TensorFlow. The array API namespace is our own, in the modules beside this one: no public library has one."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from ..base import Backend
from . import creation, dtypes, elementwise, fft, linalg, manipulation, searching, statistics


class TensorFlow(Backend):
    name = "tensorflow"
    arrays = (tf.Tensor, tf.Variable, tf.IndexedSlices)


backend = TensorFlow(
    dtypes, creation, elementwise, manipulation, searching, statistics, linalg, linalg=[linalg], fft=[fft]
)
