"""Searching, sorting and sets.

TensorFlow sorts with TopK, which fails if a NaN is among the floats and negates to reverse the
order, so values are first mapped to integers in the same order, with NaN last. Sets are read off
the sorted values, which gives NumPy's order.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import tensorflow as tf

from .dtypes import (
    default_complex,
    default_float,
    default_index,
    default_int,
    is_tensor,
    promote,
    refuse,
    tensor,
)
from .kernels import ops
from .manipulation import Axes, axis_of, flat, ints, last, rank_of, scalar, size_of, unlast
from .statistics import nonempty, reduced, truth

BITS = {tf.float32: tf.int32, tf.float64: tf.int64}


# Searching.


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> tf.Tensor:
    return _arg("argmax", ops.ArgMax, x, axis, keepdims)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> tf.Tensor:
    return _arg("argmin", ops.ArgMin, x, axis, keepdims)


def _arg(function: str, kernel: Any, x: Any, axis: int | None, keepdims: bool) -> tf.Tensor:
    if x.dtype.is_complex:
        refuse(function, "a real number dtype", x)
    rank = rank_of(x)
    nonempty(function, x, reduced(function, x, axis))
    if axis is None:
        place = _place(kernel, flat(x), 0)
        return ops.Reshape(tensor=place, shape=ints([1] * rank)) if keepdims else place
    axis = axis_of(function, axis, rank)
    place = _place(kernel, x, axis)
    return ops.ExpandDims(input=place, axis=axis) if keepdims else place


def _place(kernel: Any, x: Any, axis: int) -> tf.Tensor:
    """The position of the extreme; the first NaN, which the kernel ignores, is both."""
    place = kernel(input=x, dimension=axis)
    if not x.dtype.is_floating:
        return place
    unknown = ops.IsNan(x=x)
    first = ops.ArgMax(input=unknown, dimension=axis)
    return ops.SelectV2(condition=ops.Any(input=unknown, axis=axis), t=first, e=place)


def count_nonzero(x: Any, /, *, axis: Axes | None = None, keepdims: bool = False) -> tf.Tensor:
    ones = tf.cast(truth(x), default_int)
    return ops.Sum(input=ones, axis=reduced("count_nonzero", x, axis), keep_dims=keepdims)


def nonzero(x: Any, /) -> tuple[tf.Tensor, ...]:
    rank = rank_of(x)
    if rank == 0:
        raise ValueError("nonzero: needed at least one dimension, got a 0-d array")
    return tuple(ops.Unpack(value=ops.Where(condition=x), num=rank, axis=1))


def searchsorted(
    x1: Any, x2: Any, /, *, side: str = "left", sorter: Any | None = None
) -> tf.Tensor:
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: needed side 'left' or 'right', got {side!r}")
    if rank_of(x1) != 1:
        raise ValueError(f"searchsorted: needed a 1-d x1, got shape {tuple(x1.shape)}")
    if sorter is not None:
        x1 = ops.GatherV2(params=x1, indices=sorter, axis=0)
    x1, x2 = (_key(x) for x in promote(x1, x2, "searchsorted"))
    kernel = ops.LowerBound if side == "left" else ops.UpperBound
    places = kernel(
        sorted_inputs=ops.ExpandDims(input=x1, axis=0),
        values=ops.Reshape(tensor=x2, shape=ints([1, -1])),
        out_type=default_index,
    )
    return ops.Reshape(tensor=places, shape=ops.Shape(input=x2))


def where(condition: Any, x1: Any, x2: Any, /) -> tf.Tensor:
    if type(x2) is float and is_tensor(x1) and x1.dtype.is_floating:
        if x2 == 0 and math.copysign(1.0, x2) < 0:  # the kernel's cache confuses -0.0 with 0.0
            x2 = scalar(x2, x1.dtype)
    elif not is_tensor(x1) and not is_tensor(x2):
        x1, x2 = _scalars(x1, x2)
    elif not (is_tensor(x1) and x1.dtype is getattr(x2, "dtype", None)):
        x1, x2 = promote(x1, x2, "where")
    try:
        return ops.SelectV2(condition=condition, t=x1, e=x2)
    except tf.errors.InvalidArgumentError:
        if condition.dtype is not tf.bool:
            refuse("where", "a boolean condition", condition)
        shapes = ", ".join(str(tuple(x.shape)) for x in (condition, tensor(x1), tensor(x2)))
        raise ValueError(f"where: needed shapes that broadcast together, got {shapes}") from None


def _scalars(*values: Any) -> list[tf.Tensor]:
    """Python numbers without an array: the default dtype of the highest kind among them."""
    for kind, dtype in ((complex, default_complex), (float, default_float)):
        if any(isinstance(value, kind) for value in values):
            return [tf.constant(value, dtype) for value in values]
    boolean = all(isinstance(value, bool) for value in values)
    return [tf.constant(value, tf.bool if boolean else default_int) for value in values]


# Sorting.


def argsort(
    x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> tf.Tensor:
    axis = axis_of("argsort", axis, rank_of(x))
    if x.dtype.is_complex:
        refuse("argsort", "a real number dtype", x)
    order = _order(last(x, axis, rank_of(x)), descending)
    return unlast(tf.cast(order, default_index), axis, rank_of(x))


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> tf.Tensor:
    rank = rank_of(x)
    axis = axis_of("sort", axis, rank)
    if x.dtype.is_complex:
        refuse("sort", "a real number dtype", x)
    x = last(tensor(x), axis, rank)
    out = tf.gather(x, _order(x, descending), batch_dims=rank - 1, axis=rank - 1)
    return unlast(out, axis, rank)


def _order(x: Any, descending: bool = False) -> tf.Tensor:
    """The indices that sort the last axis, equal elements in their order; int32."""
    key = _key(x)
    if not descending:
        key = ops.Invert(x=key)  # reverses the order of integers without overflow
    return ops.TopKV2(input=key, k=size_of(key, -1)).indices


def _key(x: Any) -> tf.Tensor:
    """Integers in the order of `x`: the bits of a float, reversed for negative ones, NaN last."""
    if x.dtype is tf.bool or x.dtype is tf.uint16:  # TopK has no kernel for these, or XLA has none
        return tf.cast(x, tf.int32)
    if not x.dtype.is_floating:
        return x
    if x.dtype not in BITS:
        x = tf.cast(x, tf.float32)
    dtype = BITS[x.dtype]
    bits = ops.Bitcast(input=x, type=dtype)
    # The smallest integer minus the bits of a negative float: decreasing in them, and 0 for -0.0.
    bits = ops.SelectV2(condition=bits < 0, t=scalar(dtype.min, dtype) - bits, e=bits)
    return ops.SelectV2(condition=ops.IsNan(x=x), t=scalar(dtype.max, dtype), e=bits)


# Sets.


class UniqueAll(NamedTuple):
    values: tf.Tensor
    indices: tf.Tensor
    inverse_indices: tf.Tensor
    counts: tf.Tensor


class UniqueCounts(NamedTuple):
    values: tf.Tensor
    counts: tf.Tensor


class UniqueInverse(NamedTuple):
    values: tf.Tensor
    inverse_indices: tf.Tensor


def unique_all(x: Any, /) -> UniqueAll:
    order, ordered, starts = _runs(x)
    first = tf.boolean_mask(order, starts)
    values = tf.boolean_mask(ordered, starts)
    return UniqueAll(values, first, _inverse(x, order, starts), _counts(starts))


def unique_counts(x: Any, /) -> UniqueCounts:
    _, ordered, starts = _runs(x)
    return UniqueCounts(tf.boolean_mask(ordered, starts), _counts(starts))


def unique_inverse(x: Any, /) -> UniqueInverse:
    order, ordered, starts = _runs(x)
    return UniqueInverse(tf.boolean_mask(ordered, starts), _inverse(x, order, starts))


def unique_values(x: Any, /) -> tf.Tensor:
    _, ordered, starts = _runs(x)
    return tf.boolean_mask(ordered, starts)


def _runs(x: Any) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The indices that sort the elements, the sorted elements, and where new values start."""
    x = flat(x)
    if x.dtype.is_complex:  # by the real part, then by the imaginary part
        order = _order(tf.math.imag(x))
        order = tf.gather(order, _order(tf.gather(tf.math.real(x), order)))
    else:
        order = _order(x)
    ordered = tf.gather(x, order)
    changes = ops.NotEqual(x=ordered[1:], y=ordered[:-1])  # each NaN is a separate value
    first = tf.ones_like(ordered[:1], tf.bool)
    return tf.cast(order, default_index), ordered, ops.ConcatV2(values=[first, changes], axis=0)


def _counts(starts: tf.Tensor) -> tf.Tensor:
    places = flat(ops.Where(condition=starts))
    ends = ops.ConcatV2(values=[places[1:], tf.shape(starts, tf.int64)], axis=0)
    return tf.cast((ends - places)[: tf.size(places)], default_int)


def _inverse(x: Any, order: tf.Tensor, starts: tf.Tensor) -> tf.Tensor:
    runs = ops.Cumsum(x=tf.cast(starts, default_index), axis=0) - 1
    places = tf.scatter_nd(order[:, None], runs, tf.shape(order, default_index))
    return ops.Reshape(tensor=places, shape=ops.Shape(input=x))
