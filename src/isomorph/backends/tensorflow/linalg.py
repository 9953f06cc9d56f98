"""Determinants, inverses, solutions and norms; products are in `matrices`, decompositions in
`decompositions`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import tensorflow as tf
from numpy.linalg import LinAlgError

from .decompositions import cholesky as cholesky
from .decompositions import eigh as eigh
from .decompositions import eigvalsh as eigvalsh
from .decompositions import qr as qr
from .decompositions import svd as svd
from .decompositions import svdvals as svdvals
from .dtypes import DType, cast, finfo, promote, real_of, tensor
from .kernels import ops, recorded
from .manipulation import Axes, Wrong, common_shape, rank_of, scalar, shape_of, size_of, sizes
from .matrices import adjoint, inexact, matmul, mismatch, square
from .matrices import cross as cross
from .matrices import einsum as einsum
from .matrices import matrix_transpose as matrix_transpose
from .matrices import outer as outer
from .matrices import tensordot as tensordot
from .matrices import vecdot as vecdot
from .statistics import conj, reduced, root, truth
from .statistics import max as _max
from .statistics import min as _min
from .statistics import sum as _sum

float32 = tf.float32


class SignLog(NamedTuple):
    sign: tf.Tensor
    logabsdet: tf.Tensor


def matrix_power(x: Any, n: int, /) -> tf.Tensor:
    x = square("matrix_power", x)
    if n < 0:
        x, n = inv(x), -n
    out = None
    while n:
        if n & 1:
            out = x if out is None else matmul(out, x)
        n >>= 1
        x = matmul(x, x) if n else x
    if out is None:
        return tf.eye(size_of(x, -1), batch_shape=shape_of(x)[:-2], dtype=x.dtype)
    return tf.convert_to_tensor(out)


# Diagonals and determinants.


def diagonal(x: Any, /, *, offset: int = 0) -> tf.Tensor:
    if rank_of(x) < 2:
        raise ValueError(f"diagonal: needed at least 2 dimensions, got {tuple(x.shape)}")
    rows, columns = x.shape[-2:]
    if rows is not None and columns is not None and not -rows < offset < columns:
        # The kernel refuses a diagonal outside the matrix, and any diagonal of an empty one.
        return tf.zeros(sizes("diagonal", [*shape_of(x)[:-2], 0]), x.dtype)
    return tf.linalg.diag_part(x, k=offset)


def trace(x: Any, /, *, offset: int = 0, dtype: DType | None = None) -> tf.Tensor:
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def det(x: Any, /) -> tf.Tensor:
    x = square("det", x)
    out = ops.MatrixDeterminant(input=x)
    return _det(tensor(x)) if recorded(out) else out


def slogdet(x: Any, /) -> SignLog:
    x = square("slogdet", x)
    if x.dtype.is_complex:
        return SignLog(*_complex_slogdet(tensor(x)))
    return SignLog(*ops.LogMatrixDeterminant(input=x))


@tf.custom_gradient
def _det(x: tf.Tensor) -> Any:
    """The determinant, with our own gradient. TensorFlow's does not conjugate a complex
    determinant, and needs an inverse, which a singular matrix does not have.
    """
    value: Any = ops.MatrixDeterminant(input=x)

    def pullback(upstream: tf.Tensor) -> tf.Tensor:
        singular = _is_singular(x, value)[..., None, None]

        def any_singular(x: tf.Tensor) -> tuple:
            safe = tf.where(singular, tf.eye(size_of(x, -1), dtype=x.dtype), x)
            return (tf.where(singular, conj(_cofactors(x)), _regular(safe)),)

        (found,) = _either(tf.reduce_any(singular), any_singular, lambda x: (_regular(x),), x)
        return _times(upstream, found)

    return value, pullback


def _regular(x: tf.Tensor) -> tf.Tensor:
    """The gradient of the determinant of an invertible matrix."""
    return _times(conj(_det(x)), adjoint(inv(x)))


def _either(condition: tf.Tensor, yes: Any, no: Any, *arrays: tf.Tensor) -> tuple:
    """`yes(*arrays)` if `condition`, else `no(*arrays)`.

    `tf.cond` builds the gradients of both branches in advance if a graph may be differentiated
    twice. If a gradient contains such a choice again, this never ends. Here a gradient is built
    only when it is needed.
    """

    @tf.custom_gradient
    def chosen(*arrays: tf.Tensor) -> Any:
        held = [tf.stop_gradient(x) for x in arrays]
        outs = tf.cond(condition, lambda: yes(*held), lambda: no(*held))

        def pullback(*upstream: tf.Tensor) -> tuple:
            back = lambda func: (
                lambda *both: _pulled(func, both[: len(arrays)], both[len(arrays) :])
            )
            return _either(condition, back(yes), back(no), *arrays, *upstream)

        return outs, pullback

    return chosen(*arrays)


def _pulled(func: Any, arrays: tuple, upstream: tuple) -> tuple:
    arrays = tuple(tf.identity(x) for x in arrays)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(arrays)
        outs = list(func(*arrays))
    none = tf.UnconnectedGradients.ZERO
    return tuple(tape.gradient(outs, arrays, list(upstream), unconnected_gradients=none))


def _is_singular(x: tf.Tensor, value: Any) -> Any:
    """Which matrices are singular in floating point."""
    zero = ops.Equal(x=value, y=scalar(0, x.dtype))
    safe = tf.where(zero[..., None, None], tf.eye(size_of(x, -1), dtype=x.dtype), x)
    safe = tf.stop_gradient(safe)
    size = lambda y: ops.Max(input=ops.Sum(input=tf.abs(y), axis=-2), axis=-1)
    condition = size(safe) * size(inv(safe)) * tf.cast(size_of(x, -1), real_of(x.dtype))
    far = ops.Greater(x=condition, y=scalar(1 / finfo(x.dtype).eps, condition.dtype))
    return ops.LogicalOr(x=zero, y=far)


def _cofactors(x: tf.Tensor) -> tf.Tensor:
    """The signed minors: determinants without an element's row and column."""
    if x.shape[-1] in (0, 1):
        return tf.ones_like(x)
    n = size_of(x, -1)
    places, rest = tf.range(n), tf.range(tf.maximum(n, 1) - 1)
    rest += tf.cast(rest >= places[:, None], rest.dtype)  # row i has all numbers except i
    minors = tf.gather(tf.gather(x, rest, axis=-1), rest, axis=-3)
    signs = cast(1 - 2 * ((places[:, None] + places) % 2), x.dtype)
    return signs * _det(tf.einsum("...irjc->...ijrc", minors))


@tf.custom_gradient
def _complex_slogdet(x: tf.Tensor) -> Any:
    """The sign and the logarithm of a complex determinant. The sign has a gradient here, because a
    complex sign changes with the matrix; TensorFlow gives it none.
    """

    def pullback(to_sign: tf.Tensor, to_log: tf.Tensor) -> tf.Tensor:
        turn = tf.math.imag(to_sign * conj(_complex_slogdet(x)[0]))
        return _times(tf.complex(to_log, turn), adjoint(inv(x)))

    sign, log = ops.LogMatrixDeterminant(input=x)
    return (sign, tf.math.real(log)), pullback


def _times(number: tf.Tensor, matrix: tf.Tensor) -> tf.Tensor:
    return ops.Mul(x=tf.expand_dims(tf.expand_dims(number, -1), -1), y=matrix)


# Solving.


def inv(x: Any, /) -> tf.Tensor:
    try:
        return tf.linalg.inv(x)
    except Wrong:
        square("inv", x)
        raise LinAlgError("inv: needed invertible matrices, got a singular one") from None


def solve(x1: Any, x2: Any, /) -> tf.Tensor:
    if x1.dtype is float32 is x2.dtype and x1.shape.rank == 2 == x2.shape.rank:
        return _solve(x1, x2)
    x1, x2 = promote(square("solve", x1), inexact("solve", x2, 1), "solve")
    vector = rank_of(x2) == 1
    if vector:
        x2 = ops.ExpandDims(input=x2, axis=1)
    if x1.shape[:-2] != x2.shape[:-2] or not x1.shape[:-2].is_fully_defined():
        batch = common_shape("solve", x1, x2, without=2)  # the kernel does not broadcast
        x1 = ops.BroadcastTo(input=x1, shape=tf.concat([batch, tf.shape(x1)[-2:]], 0))
        x2 = ops.BroadcastTo(input=x2, shape=tf.concat([batch, tf.shape(x2)[-2:]], 0))
    out = _solve(x1, x2)
    return ops.Squeeze(input=out, axis=[-1]) if vector else out


def _solve(x1: Any, x2: Any) -> tf.Tensor:
    try:
        return tf.linalg.solve(x1, x2)
    except Wrong:
        if square("solve", x1).shape[-1] != x2.shape[-2]:
            raise mismatch("solve", x1, x2) from None
        raise LinAlgError("solve: needed invertible matrices, got a singular one") from None


def pinv(x: Any, /, *, rtol: Any = None) -> tf.Tensor:
    inexact("pinv", x)

    # Through the SVD the gradient would divide by differences of singular values, which vanish for
    # an identity; the gradient of the pseudo-inverse itself (Golub and Pereyra) does not.
    @tf.custom_gradient
    def inverse(x: tf.Tensor) -> Any:
        def pullback(upstream: tf.Tensor) -> tf.Tensor:
            p = pinv(x, rtol=rtol)
            ph, g = adjoint(p), adjoint(upstream)
            left = g - matmul(x, matmul(p, g))
            right = g - matmul(matmul(g, p), x)
            curve = matmul(left, matmul(p, ph)) + matmul(matmul(ph, p), right)
            return curve - matmul(ph, matmul(upstream, ph))

        u, s, vh = svd(x, full_matrices=False)
        kept = s > _cutoff(x, s, rtol)
        safe = ops.SelectV2(condition=kept, t=s, e=scalar(1, s.dtype))
        scale = ops.SelectV2(condition=kept, t=1 / safe, e=scalar(0, s.dtype))
        scale = cast(ops.ExpandDims(input=scale, axis=-2), x.dtype)
        return matmul(adjoint(vh) * scale, adjoint(u)), pullback

    return inverse(x)


def matrix_rank(x: Any, /, *, rtol: Any = None) -> tf.Tensor:
    s = svdvals(inexact("matrix_rank", x))
    return _sum(s > _cutoff(x, s, rtol), axis=-1)


def _cutoff(x: Any, s: tf.Tensor, rtol: Any) -> tf.Tensor:
    """The threshold below which a singular value counts as zero."""
    if rtol is None:
        widest = tf.maximum(size_of(x, -1), size_of(x, -2))
        rtol = tf.cast(widest, s.dtype) * finfo(s.dtype).eps
    rtol = tf.convert_to_tensor(rtol, dtype_hint=s.dtype)
    largest = ops.Max(input=s, axis=-1, keep_dims=True)  # of none: -inf, which keeps nothing
    return ops.ExpandDims(input=cast(rtol, s.dtype), axis=-1) * largest


# Norms.


def vector_norm(
    x: Any, /, *, axis: Axes | None = None, keepdims: bool = False, ord: float = 2
) -> tf.Tensor:
    axes = reduced("vector_norm", inexact("vector_norm", x, 0), axis)
    if ord == 2:
        square = ops.Square(x=x) if not x.dtype.is_complex else tf.math.real(x * tf.math.conj(x))
        return root(ops.Sum(input=square, axis=axes, keep_dims=keepdims))
    if ord == 0:
        return ops.Sum(input=cast(truth(x), real_of(x.dtype)), axis=axes, keep_dims=keepdims)
    size = tf.abs(x)
    if ord == 1:
        return ops.Sum(input=size, axis=axes, keep_dims=keepdims)
    if math.isinf(ord):
        return (_max if ord > 0 else _min)(size, axis=axis, keepdims=keepdims)
    return _power_norm(size, axes, keepdims, ord)


def _power_norm(size: tf.Tensor, axes: Any, keepdims: bool, ord: float) -> tf.Tensor:
    """The ord-th root of a sum of powers; zero elements, or a zero sum, have the gradient zero."""

    def power(x: tf.Tensor, exponent: float) -> tf.Tensor:
        at_zero = scalar(0 if exponent > 0 else math.inf, x.dtype)
        gone = ops.Equal(x=x, y=scalar(0, x.dtype))
        safe = ops.SelectV2(condition=gone, t=scalar(1, x.dtype), e=x)
        raised = ops.Pow(x=safe, y=scalar(exponent, x.dtype))
        return ops.SelectV2(condition=gone, t=at_zero, e=raised)

    return power(ops.Sum(input=power(size, ord), axis=axes, keep_dims=keepdims), 1 / ord)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: float | str | None = "fro") -> tf.Tensor:
    inexact("matrix_norm", x)
    if ord == "fro" or ord is None:
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    out = _other_norm(x, keepdims, ord)
    if not recorded(out):
        return out
    some = ops.Any(input=truth(x), axis=[-2, -1], keep_dims=keepdims)
    return tf.where(some, out, scalar(0, out.dtype))  # the gradient at zero is zero


def _other_norm(x: Any, keepdims: bool, ord: Any) -> tf.Tensor:
    if ord in (2, -2, "nuc"):
        s = svdvals(x)
        s = ops.ExpandDims(input=s, axis=-1) if keepdims else s
        axis = -2 if keepdims else -1
        reduce = {2: _max, -2: _min, "nuc": _sum}[ord]
        return reduce(s, axis=axis, keepdims=keepdims)
    if ord not in (1, -1, math.inf, -math.inf):
        raise ValueError(f"matrix_norm: needed 'fro', 'nuc', ±1, ±2 or ±inf, got {ord!r}")
    along = -2 if abs(ord) == 1 else -1
    sums = _sum(tf.abs(x), axis=along, keepdims=True)
    out = (_max if ord > 0 else _min)(sums, axis=-3 - along, keepdims=True)
    return out if keepdims else ops.Squeeze(input=out, axis=[-2, -1])
