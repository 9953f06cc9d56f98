"""Reductions and running sums: the raw kernels, with axes checked and the standard's dtypes.

Integers are summed in 64 bits, as in NumPy. Where TensorFlow's own gradient is wrong (a product
with zeros, to second order; a standard deviation at zero) it is corrected here.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import tensorflow as tf

from .dtypes import DType, cast, default_float, promote_all, refuse, tensor
from .kernels import Eager, ops
from .manipulation import (
    Axes,
    axes_of,
    axis_of,
    flat,
    ints,
    joined,
    last,
    pad,
    rank_of,
    scalar,
    size_of,
    unlast,
)

float32, float64 = tf.float32, tf.float64


def reduced(function: str, x: Any, axis: Axes | None) -> Any:
    """The axes to reduce, for the kernels: one integer, or a small integer array."""
    rank = rank_of(x)
    if type(axis) is int:
        if -rank <= axis < rank:
            return axis
        axis_of(function, axis, rank)
    return ints(axes_of(function, axis, rank))


def nonempty(function: str, x: Any, axes: Any) -> None:
    """Raise if there are no elements to choose from, as far as their number is known."""
    shape = x.shape.as_list()
    if 0 in shape and builtins.any(shape[i] == 0 for i in np.atleast_1d(axes)):
        raise ValueError(
            f"{function}: needed at least one element along the reduced axes, got shape "
            f"{tuple(shape)}"
        )


def _wide(x: Any, dtype: DType | None) -> Any:
    """`x` in the dtype of its sum: the requested one, else 64 bits for integers."""
    if dtype is not None:
        return cast(x, dtype)
    if x.dtype.is_integer or x.dtype is tf.bool:
        return cast(x, tf.uint64 if x.dtype.is_unsigned else tf.int64)
    return x


def _real(function: str, x: Any) -> None:
    if x.dtype.is_complex or x.dtype is tf.bool:
        refuse(function, "a real number dtype", x)


# Reductions.


def sum(
    x: Any, /, *, axis: Axes | None = None, dtype: DType | None = None, keepdims: bool = False
) -> tf.Tensor:
    if dtype is not None or (x.dtype is not float32 and x.dtype is not float64):
        x = _wide(x, dtype)
    return ops.Sum(input=x, axis=reduced("sum", x, axis), keep_dims=keepdims)


def mean(x: Any, /, *, axis: Axes | None = None, keepdims: bool = False) -> tf.Tensor:
    if x.dtype is not float32 and not (x.dtype.is_floating or x.dtype.is_complex):
        x = cast(x, default_float)
    return ops.Mean(input=x, axis=reduced("mean", x, axis), keep_dims=keepdims)


def max(x: Any, /, *, axis: Axes | None = None, keepdims: bool = False) -> tf.Tensor:
    return _extreme("max", ops.Max, x, axis, keepdims)


def min(x: Any, /, *, axis: Axes | None = None, keepdims: bool = False) -> tf.Tensor:
    return _extreme("min", ops.Min, x, axis, keepdims)


def _extreme(function: str, kernel: Any, x: Any, axis: Axes | None, keepdims: bool) -> tf.Tensor:
    if x.dtype is not float32:
        _real(function, x)
    axes = reduced(function, x, axis)
    nonempty(function, x, axes)
    if type(x) is Eager or not x.dtype.is_floating:
        return kernel(input=x, axis=axes, keep_dims=keepdims)
    # Compiled by XLA, Max and Min ignore NaN; the graph cannot know how it will be run. The factor
    # makes the gradient NaN too, for all elements next to a NaN.
    unknown, nan = ops.IsNan(x=x), scalar(np.nan, x.dtype)
    lost = ops.Any(input=unknown, axis=axes, keep_dims=True)
    x = ops.Mul(x=x, y=ops.SelectV2(condition=lost, t=nan, e=scalar(1, x.dtype)))
    out = kernel(input=x, axis=axes, keep_dims=keepdims)
    lost = ops.Any(input=unknown, axis=axes, keep_dims=keepdims)
    return ops.SelectV2(condition=lost, t=nan, e=out)


def var(
    x: Any, /, *, axis: Axes | None = None, correction: float = 0.0, keepdims: bool = False
) -> tf.Tensor:
    return _variance("var", x, axis, correction, keepdims)


def std(
    x: Any, /, *, axis: Axes | None = None, correction: float = 0.0, keepdims: bool = False
) -> tf.Tensor:
    return root(_variance("std", x, axis, correction, keepdims))


def _variance(
    function: str, x: Any, axis: Axes | None, correction: float, keepdims: bool
) -> tf.Tensor:
    _real(function, x)
    if not x.dtype.is_floating:
        x = cast(x, default_float)
    places = axes_of(function, axis, rank_of(x))
    axes = ints(places)
    away = ops.Sub(x=x, y=ops.Mean(input=x, axis=axes, keep_dims=True))
    square = ops.Square(x=away)
    if correction == 0:
        return ops.Mean(input=square, axis=axes, keep_dims=keepdims)
    total = ops.Sum(input=square, axis=axes, keep_dims=keepdims)
    count = tf.cast(1, x.dtype)
    for i in places:
        count *= tf.cast(size_of(x, i), x.dtype)
    left = count - correction
    return total / tf.where(left > 0, left, scalar(np.nan, x.dtype))  # of no elements: NaN


def root(x: tf.Tensor) -> tf.Tensor:
    """The square root with gradient zero at zero, like a norm, not the slope of sqrt."""
    zero = scalar(0, x.dtype)
    flat = ops.Equal(x=x, y=zero)
    safe = ops.SelectV2(condition=flat, t=scalar(1, x.dtype), e=x)
    return ops.SelectV2(condition=flat, t=zero, e=ops.Sqrt(x=safe))


def all(x: Any, /, *, axis: Axes | None = None, keepdims: bool = False) -> tf.Tensor:
    return ops.All(input=truth(x), axis=reduced("all", x, axis), keep_dims=keepdims)


def any(x: Any, /, *, axis: Axes | None = None, keepdims: bool = False) -> tf.Tensor:
    return ops.Any(input=truth(x), axis=reduced("any", x, axis), keep_dims=keepdims)


def conj(x: Any) -> Any:
    return ops.Conj(input=x) if x.dtype.is_complex else x


def truth(x: Any) -> Any:
    return x if x.dtype is tf.bool else ops.NotEqual(x=x, y=scalar(0, x.dtype))


# Products. TensorFlow's gradient of Cumprod divides by the elements and gives 0 where they are 0,
# and its gradient of Prod uses Cumprod: right once, wrong twice. Both have our own here.


def prod(
    x: Any, /, *, axis: Axes | None = None, dtype: DType | None = None, keepdims: bool = False
) -> tf.Tensor:
    x = _wide(x, dtype)
    rank = rank_of(x)
    places = axes_of("prod", axis, rank)
    if x.dtype.is_integer:
        return ops.Prod(input=x, axis=ints(places), keep_dims=keepdims)
    if rank > 1 and len(places) == rank:
        product = _product(flat(x), 0)
        return ops.Reshape(tensor=product, shape=ints([1] * rank if keepdims else []))
    for place in places:
        x = _product(x, place)
    return x if keepdims or not places else ops.Squeeze(input=x, axis=places)


def _product(x: Any, axis: int) -> Any:
    """The product along one axis, which is kept with size 1."""

    @tf.custom_gradient
    def product(x: tf.Tensor) -> Any:
        def pullback(upstream: tf.Tensor) -> tf.Tensor:
            y = last(x, axis, rank_of(x))
            others = _before(y) * _flipped(_before(_flipped(y)))
            return upstream * conj(unlast(others, axis, rank_of(x)))

        return ops.Prod(input=x, axis=axis, keep_dims=True), pullback

    return product(x)


def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: DType | None = None, include_initial: bool = False
) -> tf.Tensor:
    x, axis = _along("cumulative_prod", x, axis, dtype)
    if x.dtype.is_integer:
        out = cast(ops.Cumprod(x=_compiled(x), axis=axis), x.dtype)
    else:
        out = unlast(_running_product(last(x, axis, rank_of(x))), axis, rank_of(x))
    return _led(out, axis, 1) if include_initial else out


@tf.custom_gradient
def _running_product(x: tf.Tensor) -> Any:
    """The product of each element and those before it, along the last axis."""

    def pullback(upstream: tf.Tensor) -> tf.Tensor:
        y = conj(x)
        return _before(y) * _recurrence(_later(y, 1), upstream)

    return ops.Cumprod(x=x, axis=rank_of(x) - 1), pullback


def _before(x: Any) -> tf.Tensor:
    """The product of the elements before each, along the last axis."""
    led: Any = _led(x, rank_of(x) - 1, 1)
    return _running_product(led[..., :-1])


def _recurrence(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """s[i] = b[i] + a[i] s[i + 1] along the last axis, doubling the distance at each step."""

    def step(k: Any, a: tf.Tensor, b: tf.Tensor) -> tuple[Any, tf.Tensor, tf.Tensor]:
        return 2 * k, a * _later(a, k), b + a * _later(b, k)

    k, size = 1, size_of(b, -1)
    if isinstance(size, int):
        while k < size:
            k, a, b = step(k, a, b)
        return b
    return tf.while_loop(lambda k, a, b: k < size, step, (tf.constant(1), a, b))[2]


def _later(x: Any, k: Any) -> tf.Tensor:
    """The element `k` places later along the last axis, 0 beyond the end."""
    end = [[0, 0]] * (rank_of(x) - 1) + [[0, tf.minimum(k, size_of(x, -1))]]
    out = ops.Pad(input=x[..., k:], paddings=end if isinstance(k, int) else tf.stack(end))
    out.set_shape(x.shape)
    return out


def _flipped(x: tf.Tensor) -> tf.Tensor:
    return ops.ReverseV2(tensor=x, axis=ints([rank_of(x) - 1]))


# Along an axis.


def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: DType | None = None, include_initial: bool = False
) -> tf.Tensor:
    x, axis = _along("cumulative_sum", x, axis, dtype)
    if x.dtype.is_complex and not tf.executing_eagerly():  # XLA has no complex Cumsum
        parts = (ops.Cumsum(x=part, axis=axis) for part in (tf.math.real(x), tf.math.imag(x)))
        out = tf.complex(*parts)
    else:
        out = cast(ops.Cumsum(x=_compiled(x), axis=axis), x.dtype)
    return _led(out, axis, 0) if include_initial else out


def _along(function: str, x: Any, axis: int | None, dtype: DType | None) -> tuple[Any, int]:
    rank = rank_of(x)
    if axis is None:
        if rank != 1:
            raise ValueError(f"{function}: needed an axis for {rank} dimensions, got None")
        axis = 0
    return _wide(x, dtype), axis_of(function, axis, rank)


def _compiled(x: Any) -> Any:
    """`x` in a dtype in which XLA accumulates; other integers wrap around in 64 bits equally."""
    direct = x.dtype in (float32, float64, tf.int64, tf.int32) or not x.dtype.is_integer
    return x if direct else cast(x, tf.int64)


def _led(x: Any, axis: int, value: int) -> tf.Tensor:
    """`x` with one more element, `value`, in front along `axis`."""
    borders = np.zeros((rank_of(x), 2), np.int32)
    borders[axis, 0] = 1
    return pad(x, borders, constant_values=value)


def diff(
    x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None
) -> tf.Tensor:
    rank = rank_of(x)
    axis = axis_of("diff", axis, rank)
    if n < 0:
        raise ValueError(f"diff: needed n of at least 0, got {n}")
    if n == 0:
        return tensor(x)
    parts = [part for part in (prepend, x, append) if part is not None]
    if len(parts) > 1:
        x = joined(promote_all(*parts, function="diff"), axis)
    before: list[Any] = [slice(None)] * axis
    for _ in range(n):
        x, earlier = x[(*before, slice(1, None))], x[(*before, slice(None, -1))]
        x = ops.NotEqual(x=x, y=earlier) if x.dtype is tf.bool else ops.Sub(x=x, y=earlier)
    return tensor(x)
