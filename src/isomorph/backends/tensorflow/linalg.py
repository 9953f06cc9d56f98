"""Products of matrices and the linear algebra extension.

TensorFlow's kernels multiply 32 and 64 bit integers only; the others go through those and wrap
around as they would have. Decompositions come back in the order the standard names them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from string import ascii_letters
from typing import Any, NamedTuple

import tensorflow as tf

from .dtypes import DType, cast, finfo, promote, promote_all, real_of, refuse, tensor
from .kernels import ops, recorded
from .manipulation import (
    Axes,
    Wrong,
    axes_of,
    axis_of,
    common_shape,
    ints,
    last,
    rank_of,
    scalar,
    shape_of,
    size_of,
    sizes,
)
from .statistics import conj, reduced, root, truth
from .statistics import max as _max
from .statistics import min as _min
from .statistics import sum as _sum

float32 = tf.float32
MULTIPLIED = (tf.float32, tf.float64, tf.complex64, tf.complex128, tf.int32, tf.int64)
MULTIPLIED_HALF = (tf.float16, tf.bfloat16)


class Eigh(NamedTuple):
    eigenvalues: tf.Tensor
    eigenvectors: tf.Tensor


class QR(NamedTuple):
    Q: tf.Tensor
    R: tf.Tensor


class SignLog(NamedTuple):
    sign: tf.Tensor
    logabsdet: tf.Tensor


class SVD(NamedTuple):
    U: tf.Tensor
    S: tf.Tensor
    Vh: tf.Tensor


def _operands(function: str, *arrays: Any) -> tuple[list[Any], DType]:
    """The arrays with one dtype the kernels multiply, and the dtype the result has."""
    first, *others = arrays
    if any(x.dtype is not first.dtype for x in others):
        arrays = tuple(promote_all(*arrays, function=function))
    dtype = arrays[0].dtype
    if dtype in MULTIPLIED or dtype in MULTIPLIED_HALF:
        return list(arrays), dtype
    if dtype is tf.bool:
        refuse(function, "numbers", *arrays)
    return [cast(x, tf.int32 if dtype.size < 4 else tf.int64) for x in arrays], dtype


def _inexact(function: str, x: Any, dimensions: int = 2) -> Any:
    if not (x.dtype is float32 or x.dtype.is_floating or x.dtype.is_complex):
        refuse(function, "a floating dtype", x)
    if rank_of(x) < dimensions:
        raise ValueError(f"{function}: needed at least {dimensions} dimensions, got {x.shape}")
    return x


def _square(function: str, x: Any) -> Any:
    _inexact(function, x)
    rows, columns = x.shape[-2], x.shape[-1]
    if rows != columns and rows is not None and columns is not None:
        raise ValueError(f"{function}: needed square matrices, got shape {tuple(x.shape)}")
    return x


def _mismatch(function: str, x1: Any, x2: Any) -> ValueError:
    shapes = f"{tuple(x1.shape)} and {tuple(x2.shape)}"
    return ValueError(f"{function}: needed shapes that fit together, got {shapes}")


# Products.


def matmul(x1: Any, x2: Any, /) -> tf.Tensor:
    dtype = x1.dtype
    if dtype is not float32 or x2.dtype is not float32:
        (x1, x2), dtype = _operands("matmul", x1, x2)
    rank1, rank2 = x1.shape.rank, x2.shape.rank
    try:
        if rank1 == 2 and rank2 == 2:
            out = ops.MatMul(a=x1, b=x2)
        elif rank1 and rank2 and rank1 > 1 and rank2 > 1:
            out = ops.BatchMatMulV2(x=x1, y=x2)
        else:
            out = _matmul_vectors(x1, x2)
    except Wrong:
        raise _mismatch("matmul", x1, x2) from None
    return out if out.dtype is dtype else cast(out, dtype)


def _matmul_vectors(x1: Any, x2: Any) -> tf.Tensor:
    """A vector is a row on the left, a column on the right; its axis goes."""
    gone = []
    if rank_of(x1) == 0 or rank_of(x2) == 0:
        raise ValueError("0-d")
    if rank_of(x2) == 1:
        x2 = ops.ExpandDims(input=x2, axis=1)
        gone.append(-1)
    if rank_of(x1) == 1:
        x1 = ops.ExpandDims(input=x1, axis=0)
        gone.append(-2)
    return ops.Squeeze(input=ops.BatchMatMulV2(x=x1, y=x2), axis=gone)


def matrix_transpose(x: Any, /) -> tf.Tensor:
    rank = rank_of(x)
    if rank < 2:
        raise ValueError(f"matrix_transpose: needed at least 2 dimensions, got {tuple(x.shape)}")
    return ops.Transpose(x=x, perm=ints([*range(rank - 2), rank - 1, rank - 2]))


def _adjoint(x: Any) -> tf.Tensor:
    return conj(matrix_transpose(x))


def tensordot(
    x1: Any, x2: Any, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> tf.Tensor:
    rank1, rank2 = rank_of(x1), rank_of(x2)
    if isinstance(axes, int):
        axes = tuple(range(rank1 - axes, rank1)), tuple(range(axes))
    axes1, axes2 = (
        axes_of("tensordot", tuple(given), rank)
        for given, rank in zip(axes, (rank1, rank2), strict=True)
    )
    if len(axes1) != len(axes2):
        raise ValueError(f"tensordot: needed as many axes of both, got {axes}")
    letters = ascii_letters[:rank1]
    other = list(ascii_letters[rank1 : rank1 + rank2])
    for i, j in zip(axes1, axes2, strict=True):
        other[j] = letters[i]
    free = [c for i, c in enumerate(letters) if i not in axes1]
    free += [c for j, c in enumerate(other) if j not in axes2]
    (x1, x2), dtype = _operands("tensordot", x1, x2)
    return cast(_einsum(f"{letters},{''.join(other)}->{''.join(free)}", x1, x2), dtype)


def _einsum(equation: str, *operands: Any) -> tf.Tensor:
    try:
        # The kernel takes one or two arrays; tf.einsum plans the order of more.
        if len(operands) > 2:
            return tf.einsum(equation, *operands)
        return ops.Einsum(inputs=operands, equation=equation)
    except Wrong as wrong:
        shapes = ", ".join(str(tuple(x.shape)) for x in operands)
        message = f"einsum: needed sizes that fit {equation!r}, got {shapes}"
        raise ValueError(message) from wrong


def einsum(equation: str, *operands: Any) -> tf.Tensor:
    """Sums of products, np.einsum's strings: `einsum("ij,jk->ik", a, b)` is a matrix product."""
    arrays, dtype = _operands("einsum", *operands)
    equation = equation.replace(" ", "")
    if "->" not in equation:  # np.einsum's rule: the letters that occur once, in order
        letters = equation.replace(".", "").replace(",", "")
        once = sorted(c for c in set(letters) if letters.count(c) == 1)
        equation += "->" + "..." * ("..." in equation) + "".join(once)
    return cast(_einsum(equation, *arrays), dtype)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> tf.Tensor:
    x1, x2 = promote(x1, x2, "vecdot")
    x1, x2 = (last(x, axis_of("vecdot", axis, rank_of(x)), rank_of(x)) for x in (x1, x2))
    if x1.shape[-1] != x2.shape[-1] and None not in (x1.shape[-1], x2.shape[-1]):
        raise _mismatch("vecdot", x1, x2)  # the axis that is summed does not broadcast
    try:
        return ops.Sum(input=ops.Mul(x=conj(x1), y=x2), axis=-1)
    except Wrong:
        raise _mismatch("vecdot", x1, x2) from None


def outer(x1: Any, x2: Any, /) -> tf.Tensor:
    if rank_of(x1) != 1 or rank_of(x2) != 1:
        raise ValueError(f"outer: needed two vectors, got {tuple(x1.shape)}, {tuple(x2.shape)}")
    x1, x2 = promote(x1, x2, "outer")
    return ops.Mul(x=ops.ExpandDims(input=x1, axis=1), y=x2)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> tf.Tensor:
    x1, x2 = promote(x1, x2, "cross")
    axis1, axis2 = axis_of("cross", axis, rank_of(x1)), axis_of("cross", axis, rank_of(x2))
    if x1.shape[axis1] not in (3, None) or x2.shape[axis2] not in (3, None):
        raise _mismatch("cross", x1, x2)
    a, b, c = ops.Unpack(value=x1, num=3, axis=axis1)
    d, e, f = ops.Unpack(value=x2, num=3, axis=axis2)
    out = [b * f - c * e, c * d - a * f, a * e - b * d]
    return ops.Pack(values=out, axis=axis if axis < 0 else max(axis1, axis2))


def matrix_power(x: Any, n: int, /) -> tf.Tensor:
    x = _square("matrix_power", x)
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
        # The kernel refuses a diagonal outside the matrix, and any of an empty one.
        return tf.zeros(sizes("diagonal", [*shape_of(x)[:-2], 0]), x.dtype)
    return tf.linalg.diag_part(x, k=offset)


def trace(x: Any, /, *, offset: int = 0, dtype: DType | None = None) -> tf.Tensor:
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def det(x: Any, /) -> tf.Tensor:
    x = _square("det", x)
    out = ops.MatrixDeterminant(input=x)
    return _det(tensor(x)) if recorded(out) else out


def slogdet(x: Any, /) -> SignLog:
    x = _square("slogdet", x)
    if x.dtype.is_complex:
        return SignLog(*_complex_slogdet(tensor(x)))
    return SignLog(*ops.LogMatrixDeterminant(input=x))


@tf.custom_gradient
def _det(x: tf.Tensor) -> Any:
    """TensorFlow's own gradient does not conjugate a complex determinant, and needs an inverse."""
    value: Any = ops.MatrixDeterminant(input=x)
    singular = ops.Equal(x=value, y=scalar(0, x.dtype))[..., None, None]

    def regular(x: tf.Tensor) -> tf.Tensor:
        return _times(conj(_det(x)), _adjoint(inv(x)))

    def both() -> tf.Tensor:
        safe = tf.where(singular, tf.eye(size_of(x, -1), dtype=x.dtype), x)
        return tf.where(singular, conj(_cofactors(x)), regular(safe))

    def pullback(upstream: tf.Tensor) -> tf.Tensor:
        return _times(upstream, tf.cond(tf.reduce_any(singular), both, lambda: regular(x)))

    return value, pullback


def _cofactors(x: tf.Tensor) -> tf.Tensor:
    """The determinants of what is left without an element's row and column, signed."""
    places, rest = tf.range(size_of(x, -1)), tf.range(size_of(x, -1) - 1)
    rest += tf.cast(rest >= places[:, None], rest.dtype)  # in row i all numbers but i
    minors = tf.gather(tf.gather(x, rest, axis=-1), rest, axis=-3)
    signs = cast(1 - 2 * ((places[:, None] + places) % 2), x.dtype)
    return signs * _det(tf.einsum("...irjc->...ijrc", minors))


@tf.custom_gradient
def _complex_slogdet(x: tf.Tensor) -> Any:
    """TensorFlow gives the sign no gradient; a complex one turns with the matrix."""

    def pullback(to_sign: tf.Tensor, to_log: tf.Tensor) -> tf.Tensor:
        turn = tf.math.imag(to_sign * conj(_complex_slogdet(x)[0]))
        return _times(tf.complex(to_log, turn), _adjoint(inv(x)))

    sign, log = ops.LogMatrixDeterminant(input=x)
    return (sign, tf.math.real(log)), pullback


def _times(number: tf.Tensor, matrix: tf.Tensor) -> tf.Tensor:
    return ops.Mul(x=tf.expand_dims(tf.expand_dims(number, -1), -1), y=matrix)


# Solving.


def inv(x: Any, /) -> tf.Tensor:
    try:
        return tf.linalg.inv(x)
    except Wrong:
        _square("inv", x)
        raise ValueError("inv: needed invertible matrices, got a singular one") from None


def solve(x1: Any, x2: Any, /) -> tf.Tensor:
    if x1.dtype is float32 is x2.dtype and x1.shape.rank == 2 == x2.shape.rank:
        return _solve(x1, x2)
    x1, x2 = promote(_square("solve", x1), _inexact("solve", x2, 1), "solve")
    vector = rank_of(x2) == 1
    if vector:
        x2 = ops.ExpandDims(input=x2, axis=1)
    if x1.shape[:-2] != x2.shape[:-2] or not x1.shape[:-2].is_fully_defined():
        batch = common_shape("solve", x1[..., 0, 0], x2[..., 0, 0])  # the kernel broadcasts nothing
        x1 = ops.BroadcastTo(input=x1, shape=tf.concat([batch, tf.shape(x1)[-2:]], 0))
        x2 = ops.BroadcastTo(input=x2, shape=tf.concat([batch, tf.shape(x2)[-2:]], 0))
    out = _solve(x1, x2)
    return ops.Squeeze(input=out, axis=[-1]) if vector else out


def _solve(x1: Any, x2: Any) -> tf.Tensor:
    try:
        return tf.linalg.solve(x1, x2)
    except Wrong:
        if _square("solve", x1).shape[-1] != x2.shape[-2]:
            raise _mismatch("solve", x1, x2) from None
        raise ValueError("solve: needed invertible matrices, got a singular one") from None


def pinv(x: Any, /, *, rtol: Any = None) -> tf.Tensor:
    _inexact("pinv", x)

    # Through the SVD the gradient would divide by differences of singular values, which vanish for
    # an identity; the gradient of the pseudo-inverse itself (Golub and Pereyra) does not.
    @tf.custom_gradient
    def inverse(x: tf.Tensor) -> Any:
        def pullback(upstream: tf.Tensor) -> tf.Tensor:
            p = pinv(x, rtol=rtol)
            ph, g = _adjoint(p), _adjoint(upstream)
            left = g - matmul(x, matmul(p, g))
            right = g - matmul(matmul(g, p), x)
            curve = matmul(left, matmul(p, ph)) + matmul(matmul(ph, p), right)
            return curve - matmul(ph, matmul(upstream, ph))

        u, s, vh = svd(x, full_matrices=False)
        kept = s > _cutoff(x, s, rtol)
        safe = ops.SelectV2(condition=kept, t=s, e=scalar(1, s.dtype))
        scale = ops.SelectV2(condition=kept, t=1 / safe, e=scalar(0, s.dtype))
        scale = cast(ops.ExpandDims(input=scale, axis=-2), x.dtype)
        return matmul(_adjoint(vh) * scale, _adjoint(u)), pullback

    return inverse(x)


def matrix_rank(x: Any, /, *, rtol: Any = None) -> tf.Tensor:
    s = svdvals(_inexact("matrix_rank", x))
    return _sum(s > _cutoff(x, s, rtol), axis=-1)


def _cutoff(x: Any, s: tf.Tensor, rtol: Any) -> tf.Tensor:
    """The size below which a singular value counts as zero."""
    if rtol is None:
        widest = tf.maximum(size_of(x, -1), size_of(x, -2))
        rtol = tf.cast(widest, s.dtype) * finfo(s.dtype).eps
    rtol = tf.convert_to_tensor(rtol, dtype_hint=s.dtype)
    largest = ops.Max(input=s, axis=-1, keep_dims=True)  # of none: -inf, which keeps nothing
    return ops.ExpandDims(input=cast(rtol, s.dtype), axis=-1) * largest


# Decompositions.


def cholesky(x: Any, /, *, upper: bool = False) -> tf.Tensor:
    try:
        lower = tf.linalg.cholesky(x)
    except Wrong:
        _square("cholesky", x)
        raise ValueError("cholesky: needed positive definite matrices") from None
    return _adjoint(lower) if upper else lower


def qr(x: Any, /, *, mode: str = "reduced") -> QR:
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: needed mode 'reduced' or 'complete', got {mode!r}")
    return QR(*ops.Qr(input=_inexact("qr", x), full_matrices=mode == "complete"))


def eigh(x: Any, /) -> Eigh:
    x = _hermitian("eigh", x)
    if x.dtype.is_complex and not tf.executing_eagerly():
        return Eigh(*_eigh_traced(x))
    values, vectors = ops.SelfAdjointEigV2(input=x)
    return Eigh(cast(values, real_of(x.dtype)), vectors)


def eigvalsh(x: Any, /) -> tf.Tensor:
    x = _hermitian("eigvalsh", x)
    if x.dtype.is_complex and not tf.executing_eagerly():
        return _eigh_traced(x)[0]
    values, _ = ops.SelfAdjointEigV2(input=x, compute_v=False)
    return cast(values, real_of(x.dtype))


@tf.custom_gradient
def _eigh_traced(x: tf.Tensor) -> Any:
    """Complex matrices in a graph: compiled by XLA, the kernel's vectors are right, but its values
    are real numbers labelled complex, two read as one. They are found again from the vectors."""

    def pullback(to_values: tf.Tensor, to_vectors: tf.Tensor) -> tf.Tensor:
        values, vectors = _eigh_traced(x)
        gaps = ops.ExpandDims(input=values, axis=-2) - ops.ExpandDims(input=values, axis=-1)
        turn = cast(tf.math.reciprocal_no_nan(gaps), x.dtype) * matmul(
            _adjoint(vectors), to_vectors
        )
        inner = tf.linalg.diag(cast(to_values, x.dtype)) + turn
        return matmul(matmul(vectors, inner), _adjoint(vectors))

    _, vectors = ops.SelfAdjointEigV2(input=x)
    values = ops.Sum(input=conj(vectors) * matmul(x, vectors), axis=-2)
    return (cast(values, real_of(x.dtype)), vectors), pullback


def _hermitian(function: str, x: Any) -> tf.Tensor:
    """The mean of `x` and its adjoint: the kernel reads one triangle, and so would the gradient."""
    x = _square(function, x)
    return (x + _adjoint(x)) * scalar(0.5, x.dtype)


def svd(x: Any, /, *, full_matrices: bool = True) -> SVD:
    s, u, v = ops.Svd(input=_inexact("svd", x), full_matrices=full_matrices)
    return SVD(u, cast(s, real_of(x.dtype)), _adjoint(v))


def svdvals(x: Any, /) -> tf.Tensor:
    s, _, _ = ops.Svd(input=_inexact("svdvals", x), compute_uv=False)
    return cast(s, real_of(x.dtype))


# Norms.


def vector_norm(
    x: Any, /, *, axis: Axes | None = None, keepdims: bool = False, ord: float = 2
) -> tf.Tensor:
    axes = reduced("vector_norm", _inexact("vector_norm", x, 0), axis)
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
    """The ord-th root of a sum of powers; elements, or a sum, of zero have the gradient zero."""

    def power(x: tf.Tensor, exponent: float) -> tf.Tensor:
        at_zero = scalar(0 if exponent > 0 else math.inf, x.dtype)
        gone = ops.Equal(x=x, y=scalar(0, x.dtype))
        safe = ops.SelectV2(condition=gone, t=scalar(1, x.dtype), e=x)
        raised = ops.Pow(x=safe, y=scalar(exponent, x.dtype))
        return ops.SelectV2(condition=gone, t=at_zero, e=raised)

    return power(ops.Sum(input=power(size, ord), axis=axes, keep_dims=keepdims), 1 / ord)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: float | str | None = "fro") -> tf.Tensor:
    _inexact("matrix_norm", x)
    if ord == "fro" or ord is None:
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
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
