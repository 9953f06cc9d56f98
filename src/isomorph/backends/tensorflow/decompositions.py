"""Matrix decompositions. Their parts come in the order that the standard says.

Where a matrix must be Hermitian, the lower triangle is read, as in NumPy, and the gradient is
Hermitian. TensorFlow's own derivatives treat the vectors of equal eigenvalues or singular values as
constant, and its derivative of a complex singular value decomposition is wrong when it is
differentiated again. So both decompositions have derivatives of our own: NaN where vectors have no
derivative, and finite for the values alone.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import tensorflow as tf
from numpy.linalg import LinAlgError

from .dtypes import cast, real_of, tensor
from .kernels import Eager, ops, recorded
from .manipulation import Wrong, scalar, size_of
from .matrices import adjoint, inexact, matmul, square
from .statistics import conj


class Eigh(NamedTuple):
    eigenvalues: tf.Tensor
    eigenvectors: tf.Tensor


class QR(NamedTuple):
    Q: tf.Tensor
    R: tf.Tensor


class SVD(NamedTuple):
    U: tf.Tensor
    S: tf.Tensor
    Vh: tf.Tensor


def cholesky(x: Any, /, *, upper: bool = False) -> tf.Tensor:
    """The Cholesky factor. A matrix that is not positive definite raises if the kernel runs eagerly
    on a CPU; otherwise its triangle is NaN.
    """
    x = adjoint(square("cholesky", x)) if upper else x
    try:
        lower = tf.linalg.cholesky(x)
    except Wrong:
        square("cholesky", x)
        raise LinAlgError("cholesky: needed positive definite matrices") from None
    if type(lower) is not Eager and lower.dtype.is_complex:
        lower = _complex_cholesky(tensor(x))
    if type(lower) is not Eager or not lower.device.endswith("CPU:0"):
        lower = tf.linalg.band_part(lower, -1, 0)  # if it fails, the rest is undefined
    elif 0 not in x.shape and _fails(x, lower):
        raise LinAlgError("cholesky: needed positive definite matrices, got one that is not")
    return adjoint(lower) if upper else lower


@tf.custom_gradient
def _complex_cholesky(x: tf.Tensor) -> Any:
    """The lower Cholesky factor of complex matrices, with our own gradient. XLA leaves imaginary
    parts on the diagonal, which are removed here; TensorFlow's gradient would read them.
    """

    def pullback(grad: tf.Tensor) -> tf.Tensor:
        lower = _complex_cholesky(x)
        inner = tf.linalg.band_part(matmul(adjoint(lower), grad), -1, 0)
        half = tf.linalg.diag_part(inner) * scalar(0.5, x.dtype)
        inner = tf.linalg.set_diag(inner, half)
        right = tf.linalg.triangular_solve(lower, inner, adjoint=True)
        both = adjoint(tf.linalg.triangular_solve(lower, adjoint(right), adjoint=True))
        return (both + adjoint(both)) * scalar(0.5, x.dtype)

    lower = tf.linalg.cholesky(x)
    diagonal = cast(tf.math.real(tf.linalg.diag_part(lower)), x.dtype)
    return tf.linalg.band_part(tf.linalg.set_diag(lower, diagonal), -1, 0), pullback


def _fails(x: Any, lower: Any) -> bool:
    """Whether a matrix was not positive definite: then its factor is NaN from the first element
    on, though the first element of the matrix is not.
    """
    corner = lower[..., 0, 0]
    lost = ops.LogicalAnd(
        x=ops.NotEqual(x=corner, y=corner), y=ops.Equal(x=x[..., 0, 0], y=x[..., 0, 0])
    )
    return bool(tf.reduce_any(lost))


def qr(x: Any, /, *, mode: str = "reduced") -> QR:
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: needed mode 'reduced' or 'complete', got {mode!r}")
    return QR(*ops.Qr(input=inexact("qr", x), full_matrices=mode == "complete"))


# Hermitian matrices.


def eigh(x: Any, /) -> Eigh:
    x = _hermitian(tensor(square("eigh", x)))
    return Eigh(*(_eigh(x) if recorded(x) else _pairs(x)))


def eigvalsh(x: Any, /) -> tf.Tensor:
    x = _hermitian(tensor(square("eigvalsh", x)))
    return _eigh(x)[0] if recorded(x) else _pairs(x, vectors=False)[0]


@tf.custom_gradient
def _hermitian(x: tf.Tensor) -> Any:
    """The Hermitian matrix with the lower triangle of `x`."""

    def pullback(grad: tf.Tensor) -> tf.Tensor:
        return (grad + adjoint(grad)) * scalar(0.5, grad.dtype)

    diagonal = tf.linalg.diag_part(x)
    if x.dtype.is_complex:
        diagonal = cast(tf.math.real(diagonal), x.dtype)
    below = tf.linalg.set_diag(tf.linalg.band_part(x, -1, 0), tf.zeros_like(diagonal))
    return tf.linalg.set_diag(below + adjoint(below), diagonal), pullback


def _pairs(x: tf.Tensor, vectors: bool = True) -> tuple[tf.Tensor, ...]:
    """Eigenvalues and eigenvectors. For complex matrices, XLA's vectors are right, but its values
    are not: it reads two real numbers as one complex number. So in a graph the values are computed
    again from the vectors. Matrices that are not finite give NaN, where the eager kernel raises.
    """
    if not tf.executing_eagerly():
        values, found = ops.SelfAdjointEigV2(input=_safe(x), compute_v=True)
        if x.dtype.is_complex:
            values = ops.Sum(input=conj(found) * matmul(x, found), axis=-2)
        return _but_finite(x, cast(values, real_of(x.dtype)), found)
    try:
        values, found = ops.SelfAdjointEigV2(input=x, compute_v=vectors)
    except tf.errors.InvalidArgumentError:
        return _but_finite(x, *_pairs(_safe(x), True))
    return cast(values, real_of(x.dtype)), found


def _is_finite(x: tf.Tensor) -> tf.Tensor:
    """Which matrices are finite, as [..., 1, 1]."""
    return tf.reduce_all(tf.math.is_finite(tf.abs(x)), (-2, -1), keepdims=True)


def _safe(x: tf.Tensor) -> tf.Tensor:
    """`x` with a unit matrix in place of each matrix that is not finite."""
    return tf.where(_is_finite(x), x, tf.eye(size_of(x, -1), dtype=x.dtype))


def _but_finite(x: tf.Tensor, values: tf.Tensor, *vectors: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """The results, but NaN for matrices of `x` that are not finite."""
    finite = _is_finite(x)
    values = tf.where(tf.squeeze(finite, -1), values, scalar(math.nan, values.dtype))
    return values, *(tf.where(finite, y, scalar(math.nan, y.dtype)) for y in vectors)


@tf.custom_gradient
def _eigh(x: tf.Tensor) -> Any:
    def pullback(to_values: tf.Tensor, to_vectors: tf.Tensor) -> tf.Tensor:
        values, vectors = _eigh(x)
        turn = _off_diagonal(matmul(adjoint(vectors), to_vectors))
        turn = _over(turn, _gaps(values, x.dtype))
        inner = tf.linalg.diag(cast(to_values, x.dtype)) + turn
        return matmul(matmul(vectors, inner), adjoint(vectors))

    return _pairs(x), pullback


@tf.custom_gradient
def _over(grad: tf.Tensor, size: tf.Tensor) -> Any:
    """`grad / size`, element by element; zeros if all of `grad` is zero, even where `size` is zero.

    It is linear in `grad`, and is differentiated as a linear function even where `grad` is zero,
    because a jvp needs that derivative.
    """
    used = tf.reduce_any(ops.NotEqual(x=grad, y=scalar(0, grad.dtype)))
    out = tf.where(used, grad / size, scalar(0, grad.dtype))

    def pullback(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        by_size = _over(conj(_over(grad, size)) * upstream, conj(size))
        return _over(upstream, conj(size)), -by_size

    return out, pullback


def _gaps(x: tf.Tensor, dtype: Any) -> tf.Tensor:
    """x[j] - x[i]; 1 on the diagonal."""
    gaps = ops.ExpandDims(input=x, axis=-2) - ops.ExpandDims(input=x, axis=-1)
    return cast(tf.linalg.set_diag(gaps, tf.ones_like(x)), dtype)


def _off_diagonal(x: tf.Tensor) -> tf.Tensor:
    return tf.linalg.set_diag(x, tf.zeros_like(tf.linalg.diag_part(x)))


# Singular values.


def svd(x: Any, /, *, full_matrices: bool = True) -> SVD:
    x = tensor(inexact("svd", x))
    if recorded(x):
        s, u, v = _svd(x, full_matrices)
    else:
        s, u, v = ops.Svd(input=x, full_matrices=full_matrices)
    return SVD(u, cast(s, real_of(x.dtype)), adjoint(v))


def svdvals(x: Any, /) -> tf.Tensor:
    x = tensor(inexact("svdvals", x))
    s = _svd(x, False)[0] if recorded(x) else ops.Svd(input=x, compute_uv=False)[0]
    return cast(s, real_of(x.dtype))


def _svd(x: tf.Tensor, full_matrices: bool) -> Any:
    """The singular value decomposition, with our own gradient. Vectors that it does not determine
    are differentiated for one fixed choice, which is correct for every result that does not depend
    on the choice. By convention the phase belongs to u.
    """

    @tf.custom_gradient
    def parts(x: tf.Tensor) -> Any:
        def pullback(to_s: tf.Tensor, to_u: tf.Tensor, to_v: tf.Tensor) -> tf.Tensor:
            s, u, v = _svd(x, full_matrices)
            s = cast(s, real_of(x.dtype))
            u, to_u = _narrow(u, to_u, s)
            v, to_v = _narrow(v, to_v, s)
            gaps = _gaps(s * s, x.dtype)
            row = cast(ops.ExpandDims(input=s, axis=-2), x.dtype)
            column = cast(ops.ExpandDims(input=s, axis=-1), x.dtype)
            by_u, by_v = matmul(adjoint(u), to_u), matmul(adjoint(v), to_v)
            turn_u, turn_v = by_u - adjoint(by_u), by_v - adjoint(by_v)
            inner = _over(_off_diagonal(turn_u), gaps) * row
            inner = inner + column * _over(_off_diagonal(turn_v), gaps)
            inner = inner + tf.linalg.diag(cast(to_s, x.dtype))
            if x.dtype.is_complex:
                phase = _over(tf.linalg.diag_part(turn_u), 2 * cast(s, x.dtype))
                inner = inner + tf.linalg.diag(phase)
            grad = matmul(matmul(u, inner), adjoint(v))
            if u.shape[-2] != s.shape[-1]:
                outside = to_u - matmul(u, by_u)
                grad = grad + matmul(_over(outside, row + tf.zeros_like(u)), adjoint(v))
            if v.shape[-2] != s.shape[-1]:
                outside = to_v - matmul(v, by_v)
                grad = grad + matmul(u, adjoint(_over(outside, row + tf.zeros_like(v))))
            return grad

        return _svd_parts(x, full_matrices), pullback

    return parts(x)


def _svd_parts(x: tf.Tensor, full_matrices: bool) -> tuple:
    """The singular value decomposition by TensorFlow's kernel. In a graph the results for matrices
    that are not finite are set to NaN, because XLA would return vectors for them.
    """
    if tf.executing_eagerly():
        return tuple(ops.Svd(input=x, full_matrices=full_matrices))
    return _but_finite(x, *ops.Svd(input=x, full_matrices=full_matrices))


def _narrow(full: Any, grad: Any, s: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The first vectors, as many as there are singular values, and the gradient for them. It
    includes the gradient of the other vectors, which must stay orthogonal to the first and turn
    with them.
    """
    k = s.shape[-1]
    first, rest = full[..., :k], full[..., k:]
    if full.shape[-1] == k:
        return full, grad
    return first, grad[..., :k] - matmul(rest, matmul(adjoint(grad[..., k:]), first))
