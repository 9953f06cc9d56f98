"""Products of matrices, and checks of arguments for all linear algebra.

TensorFlow's kernels multiply only 32- and 64-bit integers; other integers are computed in these and
wrap around in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters
from typing import Any

import tensorflow as tf

from .dtypes import DType, cast, promote, promote_all, refuse
from .kernels import ops
from .manipulation import Wrong, axes_of, axis_of, ints, last, rank_of
from .statistics import conj

float32 = tf.float32
MULTIPLIED = (tf.float32, tf.float64, tf.complex64, tf.complex128, tf.int32, tf.int64)
MULTIPLIED_HALF = (tf.float16, tf.bfloat16)


def _operands(function: str, *arrays: Any) -> tuple[list[Any], DType]:
    """The arrays with a common dtype that the kernels multiply, and the dtype of the result."""
    first, *others = arrays
    if any(x.dtype is not first.dtype for x in others):
        arrays = tuple(promote_all(*arrays, function=function))
    dtype = arrays[0].dtype
    if dtype in MULTIPLIED or dtype in MULTIPLIED_HALF:
        return list(arrays), dtype
    if dtype is tf.bool:
        refuse(function, "numbers", *arrays)
    return [cast(x, tf.int32 if dtype.size < 4 else tf.int64) for x in arrays], dtype


def inexact(function: str, x: Any, dimensions: int = 2) -> Any:
    if not (x.dtype is float32 or x.dtype.is_floating or x.dtype.is_complex):
        refuse(function, "a floating dtype", x)
    if rank_of(x) < dimensions:
        raise ValueError(f"{function}: needed at least {dimensions} dimensions, got {x.shape}")
    return x


def square(function: str, x: Any) -> Any:
    inexact(function, x)
    rows, columns = x.shape[-2], x.shape[-1]
    if rows != columns and rows is not None and columns is not None:
        raise ValueError(f"{function}: needed square matrices, got shape {tuple(x.shape)}")
    return x


def mismatch(function: str, x1: Any, x2: Any) -> ValueError:
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
        raise mismatch("matmul", x1, x2) from None
    return out if out.dtype is dtype else cast(out, dtype)


def _matmul_vectors(x1: Any, x2: Any) -> tf.Tensor:
    """A vector is a row on the left, a column on the right; its axis is removed."""
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


def adjoint(x: Any) -> tf.Tensor:
    return conj(matrix_transpose(x))


def tensordot(
    x1: Any, x2: Any, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> tf.Tensor:
    rank1, rank2 = rank_of(x1), rank_of(x2)
    if isinstance(axes, int):
        axes = tuple(range(rank1 - axes, rank1)), tuple(range(axes))
    axes1, axes2 = (
        axes_of("tensordot", (given,) if isinstance(given, int) else tuple(given), rank)
        for given, rank in zip(axes, (rank1, rank2), strict=True)
    )
    if len(axes1) != len(axes2):
        raise ValueError(f"tensordot: needed as many axes for both arrays, got {axes}")
    for i, j in zip(axes1, axes2, strict=True):  # the kernel would broadcast an axis of one
        m, n = x1.shape[i], x2.shape[j]
        if m != n and None not in (m, n):
            raise mismatch("tensordot", x1, x2)
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
        fewer, arrays = _without_ones(equation, operands)
        if fewer != equation:
            return _einsum(fewer, *arrays)
        shapes = ", ".join(str(tuple(x.shape)) for x in operands)
        message = f"einsum: needed sizes that fit {equation!r}, got {shapes}"
        raise ValueError(message) from wrong


def _without_ones(equation: str, operands: Any) -> tuple[str, list[tf.Tensor]]:
    """The equation and operands without axes of size 1 that broadcast against other operands: the
    kernel does not broadcast.
    """
    given, arrow, result = equation.partition("->")
    terms = given.split(",")
    if len(terms) != len(operands) or any(x.shape.rank is None for x in operands):
        return equation, list(operands)
    named = [_named_axes(term, x.shape.rank) for term, x in zip(terms, operands)]
    wide = {
        letter
        for axes, x in zip(named, operands)
        for letter, axis in axes
        if x.shape[axis] not in (1, None)
    }
    arrays = []
    for i, (axes, x) in enumerate(zip(named, operands)):
        ones = [(letter, axis) for letter, axis in axes if letter in wide and x.shape[axis] == 1]
        for letter in {letter for letter, _ in ones}:
            if all(x.shape[axis] == 1 for other, axis in axes if other == letter):
                terms[i] = terms[i].replace(letter, "")
        gone = [axis for letter, axis in ones if letter not in terms[i]]
        arrays.append(ops.Squeeze(input=x, axis=gone) if gone else x)
    return ",".join(terms) + arrow + result, arrays


def _named_axes(term: str, rank: int) -> list[tuple[str, int]]:
    """The letters of an array with their axes; those after an ellipsis count from the end."""
    front, _, back = term.partition("...")
    if len(front) + len(back) > rank:
        return []
    places = [*range(len(front)), *range(rank - len(back), rank)]
    return list(zip(front + back, places))


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
        raise mismatch("vecdot", x1, x2)  # the axis that is summed does not broadcast
    try:
        return ops.Sum(input=ops.Mul(x=conj(x1), y=x2), axis=-1)
    except Wrong:
        raise mismatch("vecdot", x1, x2) from None


def outer(x1: Any, x2: Any, /) -> tf.Tensor:
    if rank_of(x1) != 1 or rank_of(x2) != 1:
        raise ValueError(f"outer: needed two vectors, got {tuple(x1.shape)}, {tuple(x2.shape)}")
    x1, x2 = promote(x1, x2, "outer")
    return ops.Mul(x=ops.ExpandDims(input=x1, axis=1), y=x2)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> tf.Tensor:
    x1, x2 = promote(x1, x2, "cross")
    axis1, axis2 = axis_of("cross", axis, rank_of(x1)), axis_of("cross", axis, rank_of(x2))
    if x1.shape[axis1] not in (3, None) or x2.shape[axis2] not in (3, None):
        raise mismatch("cross", x1, x2)
    a, b, c = ops.Unpack(value=x1, num=3, axis=axis1)
    d, e, f = ops.Unpack(value=x2, num=3, axis=axis2)
    out = [b * f - c * e, c * d - a * f, a * e - b * d]
    return ops.Pack(values=out, axis=axis if axis < 0 else max(axis1, axis2))
