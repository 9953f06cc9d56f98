"""TensorFlow's namespace for the suite, with tensors whose `.shape` is a tuple.

The standard says that `x.shape` is a tuple, and the suite's own helpers (ndindex, Hypothesis)
refuse TensorFlow's `TensorShape` before any function is called. We do not change TensorFlow's
tensors for users, but our functions must still be tested. So here, and only in the process that
runs the suite, the shape of an eager tensor is a tuple that also has the attributes of TensorShape.
"""

import tensorflow as tf

from isomorph.core.dispatch import load

EagerTensor = type(tf.constant(0))
native = EagerTensor.shape


class Shape(tuple):
    """A tuple of sizes with the attributes of a TensorShape, which TensorFlow itself uses."""

    def __getitem__(self, index):
        found = super().__getitem__(index)
        return Shape(found) if isinstance(index, slice) else found

    def __getattr__(self, name):
        return getattr(tf.TensorShape(list(self)), name)


EagerTensor.shape = property(lambda x: Shape(native.__get__(x).as_list()))
xp = load("tensorflow").namespace
