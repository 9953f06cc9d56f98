"""Factorisations that TensorFlow has and the namespace has not. `tf.linalg.lu` is not used, because
it refuses singular matrices.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from numpy.linalg import LinAlgError

from .dtypes import tensor
from .kernels import ops
from .manipulation import Wrong
from .matrices import matrix_transpose


def solve_triangular(a: Any, b: Any, lower: bool, trans: str, unit: bool) -> tf.Tensor:
    a, b = tensor(a), tensor(b)
    if unit:  # the kernel always reads the diagonal
        a = tf.linalg.set_diag(a, tf.ones_like(tf.linalg.diag_part(a)))
    if trans == "T" and a.dtype.is_complex:
        a, lower, trans = matrix_transpose(a), not lower, "N"
    try:
        return tf.linalg.triangular_solve(a, b, lower=lower, adjoint=trans != "N")
    except Wrong:
        raise LinAlgError(
            "linalg.solve_triangular: needed a diagonal without zeros, got a zero"
        ) from None


def eig(a: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """Eigenvalues, and eigenvectors of the length 1 whose largest element is real. The kernel
    returns other phases.
    """
    a = tensor(a)
    kind = tf.complex128 if a.dtype in (tf.float64, tf.complex128) else tf.complex64
    values, vectors = ops.Eig(input=a, Tout=kind, compute_v=True)
    if 0 in a.shape:
        return values, vectors
    size = tf.abs(vectors)
    at = tf.expand_dims(tf.argmax(size, -2), -2)
    rows = tf.range(tf.shape(at, out_type=at.dtype)[-1])
    largest = tf.cast(tf.equal(rows[:, None], at), kind)
    top = tf.reduce_sum(vectors * largest, -2, keepdims=True)
    return values, vectors * tf.math.conj(tf.math.sign(top))
