"""Shapes: reshape, join, move and repeat, and taking elements by integer indices.

Sizes and axes are passed to TensorFlow as small NumPy integer arrays, never as tuples: converting a
tuple costs an eager call 30 µs, an array 5. That is why these functions are faster than the public
ones. A size that is not known before the graph runs (a batch size) is read from the tensor itself.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from operator import index
from typing import Any, NoReturn

import numpy as np
import tensorflow as tf

from ..edges import check_mode
from .dtypes import astype, cast, is_tensor, promote_all, tensor
from .kernels import Eager, ops

Axes = int | Sequence[int]
# TensorFlow's exceptions for bad shapes and dtypes, eager or traced. Hot functions call first, and
# examine the arguments only for an error message.
Wrong = (tf.errors.InvalidArgumentError, ValueError, TypeError)


# Sizes and axes, also for the other modules.


class AxisError(ValueError, IndexError):
    """An axis that the array does not have; NumPy's error has both base classes too."""


def rank_of(x: Any) -> int:
    rank = x.shape.rank
    if rank is None:
        raise ValueError("array: needed a known number of dimensions, got a tensor without one")
    return rank


def axis_of(function: str, axis: Any, rank: int) -> int:
    """`axis` as a number that is not negative."""
    try:
        place = index(axis)
    except TypeError:
        raise TypeError(f"{function}: needed an integer axis, got {axis!r}") from None
    if not -rank <= place < rank:
        raise AxisError(
            f"{function}: needed an axis in [{-rank}, {rank}), got {axis} for {rank} dimensions"
        )
    return place + rank if place < 0 else place


def axes_of(function: str, axes: Axes | None, rank: int) -> list[int]:
    """Any number of axes, not negative, each at most once; None means all of them."""
    if axes is None:
        return list(range(rank))
    if not isinstance(axes, (tuple, list)):
        return [axis_of(function, axes, rank)]
    places = [axis_of(function, axis, rank) for axis in axes]
    if len(set(places)) < len(places):
        raise ValueError(f"{function}: needed every axis once, got {tuple(axes)}")
    return places


def ints(values: Sequence[int]) -> np.ndarray:
    return np.array(values, np.int32)


def scalar(value: float, dtype: tf.DType) -> np.ndarray:
    return np.array(value, dtype.as_numpy_dtype)


def sizes(function: str, shape: Any) -> Any:
    """A shape as an integer vector; sizes may be tensors, but not None."""
    if isinstance(shape, tf.Tensor):
        return shape
    if isinstance(shape, (int, np.integer)):
        shape = (shape,)
    try:
        return np.array([index(n) for n in shape], np.int32)
    except (TypeError, NotImplementedError, AttributeError):
        pass  # a symbolic size
    if not builtins.all(isinstance(n, (int, np.integer, tf.Tensor)) for n in shape):
        raise TypeError(f"{function}: needed integer sizes, got {tuple(shape)}")
    return tf.stack([tf.cast(n, tf.int32) for n in shape])


def size_of(x: Any, axis: int) -> Any:
    """The size along `axis`: an int if it is known, else a tensor."""
    size = x.shape[axis]
    return tf.shape(x)[axis] if size is None else size


def shape_of(x: Any) -> list[Any]:
    """All sizes: ints if they are known, else tensors."""
    known = x.shape.as_list()
    if None not in known:
        return known
    actual = tf.shape(x)
    return [actual[i] if n is None else n for i, n in enumerate(known)]


def last(x: Any, axis: int, rank: int) -> Any:
    """`x` with `axis` moved to the end; `unlast` moves it back."""
    if axis == rank - 1:
        return x
    return ops.Transpose(x=x, perm=ints([*range(axis), *range(axis + 1, rank), axis]))


def unlast(x: Any, axis: int, rank: int) -> Any:
    if axis == rank - 1:
        return x
    return ops.Transpose(x=x, perm=ints([*range(axis), rank - 1, *range(axis, rank - 1)]))


def flat(x: Any) -> tf.Tensor:
    return ops.Reshape(tensor=x, shape=ints([-1]))


def _wrong(function: str, needed: str, *arrays: Any) -> NoReturn:
    shapes = " and ".join(str(tuple(x.shape)) for x in arrays)
    raise ValueError(f"{function}: needed {needed}, got {shapes}") from None


# The shape of one array.


def reshape(x: Any, /, shape: tuple[int, ...], *, copy: bool | None = None) -> tf.Tensor:
    """`x` in another shape. One size may be None (an unknown batch size), like -1."""
    if isinstance(shape, (tuple, list, tf.TensorShape)) and None in shape:
        shape = tuple(-1 if n is None else n for n in shape)
    try:
        return ops.Reshape(tensor=x, shape=sizes("reshape", shape))
    except Wrong:
        _wrong("reshape", f"as many elements as {shape}", x)


def broadcast_to(x: Any, /, shape: tuple[int, ...]) -> tf.Tensor:
    try:
        return ops.BroadcastTo(input=x, shape=sizes("broadcast_to", shape))
    except Wrong:
        _wrong("broadcast_to", f"a shape that broadcasts to {shape}", x)


def broadcast_arrays(*arrays: Any) -> list[tf.Tensor]:
    shape = common_shape("broadcast_arrays", *arrays)
    return [ops.BroadcastTo(input=x, shape=shape) for x in arrays]


def common_shape(function: str, *arrays: Any, without: int = 0) -> Any:
    """The shape these arrays broadcast to, as an integer vector, leaving out the last `without`
    axes.
    """
    shapes = [x.shape[: rank_of(x) - without] for x in arrays]
    if not builtins.all(shape.is_fully_defined() for shape in shapes):
        first, *others = [tf.shape(x)[: rank_of(x) - without] for x in arrays]
        for other in others:
            first = tf.broadcast_dynamic_shape(first, other)
        return first
    try:
        return ints(np.broadcast_shapes(*map(tuple, shapes)))
    except ValueError:
        _wrong(function, "shapes that broadcast together", *arrays)


def expand_dims(x: Any, /, axis: int) -> tf.Tensor:
    try:
        return ops.ExpandDims(input=x, axis=axis)
    except Wrong:
        axis_of("expand_dims", axis, rank_of(x) + 1)
        raise


def squeeze(x: Any, /, axis: Axes) -> tf.Tensor:
    places = axes_of("squeeze", axis, rank_of(x))
    if builtins.any(x.shape[i] not in (1, None) for i in places):
        _wrong("squeeze", f"size 1 along axis {axis}", x)
    # Squeeze reads an empty list as "every axis of size 1".
    return ops.Squeeze(input=x, axis=places) if places else tensor(x)


def flip(x: Any, /, *, axis: Axes | None = None) -> tf.Tensor:
    return ops.ReverseV2(tensor=x, axis=ints(axes_of("flip", axis, rank_of(x))))


def permute_dims(x: Any, /, axes: tuple[int, ...]) -> tf.Tensor:
    rank = rank_of(x)
    places = axes_of("permute_dims", tuple(axes), rank)
    if len(places) != rank:
        raise ValueError(f"permute_dims: needed {rank} axes, got {tuple(axes)}")
    return ops.Transpose(x=x, perm=ints(places))


def moveaxis(x: Any, source: Axes, destination: Axes, /) -> tf.Tensor:
    rank = rank_of(x)
    start, end = axes_of("moveaxis", source, rank), axes_of("moveaxis", destination, rank)
    if len(start) != len(end):
        raise ValueError(f"moveaxis: needed as many places as axes, got {source}, {destination}")
    order = [i for i in range(rank) if i not in start]
    for to, axis in sorted(zip(end, start, strict=True)):
        order.insert(to, axis)
    return ops.Transpose(x=x, perm=ints(order))


def roll(x: Any, /, shift: Axes, *, axis: Axes | None = None) -> tf.Tensor:
    if axis is None:
        if isinstance(shift, (tuple, list)):
            shift = builtins.sum(shift)
        return ops.Reshape(
            tensor=ops.Roll(input=flat(x), shift=shift, axis=0), shape=ops.Shape(input=x)
        )
    rank = rank_of(x)
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = [axis_of("roll", each, rank) for each in given]  # an axis given twice is rolled twice
    shifts = shift if isinstance(shift, (tuple, list)) else [shift] * len(axes)
    if len(axes) == 1:
        axes = axes * len(shifts)
    if len(shifts) != len(axes):
        raise ValueError(f"roll: needed one shift per axis, got {shift} for axes {axis}")
    return ops.Roll(input=x, shift=sizes("roll", shifts), axis=ints(axes))


# Repetition.


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> tf.Tensor:
    if axis is None:
        x, axis = flat(x), 0
    rank = rank_of(x)
    axis = axis_of("repeat", axis, rank)
    if isinstance(repeats, (int, np.integer)) or getattr(repeats, "shape", (0,)) == ():
        shape = shape_of(x)
        wide = [*shape[: axis + 1], repeats, *shape[axis + 1 :]]
        shape[axis] = shape[axis] * repeats
        x = ops.BroadcastTo(
            input=ops.ExpandDims(input=x, axis=axis + 1), shape=sizes("repeat", wide)
        )
        return ops.Reshape(tensor=x, shape=sizes("repeat", shape))
    size, counts = size_of(x, axis), tf.get_static_value(repeats)
    if counts is None or not isinstance(size, int):
        places = tf.repeat(tf.range(size), repeats)
    elif counts.shape not in ((size,), (1,)):
        raise ValueError(f"repeat: needed {size} repeats along axis {axis}, got {counts.shape}")
    else:
        places = np.repeat(np.arange(size), counts)  # known now: XLA needs the size of the result
    return ops.GatherV2(params=x, indices=places, axis=axis)


def tile(x: Any, repetitions: tuple[int, ...], /) -> tf.Tensor:
    rank, times = rank_of(x), list(repetitions)
    if len(times) > rank:
        missing = [1] * (len(times) - rank)
        x = ops.Reshape(tensor=x, shape=sizes("tile", [*missing, *shape_of(x)]))
    times = [1] * (rank - len(times)) + times
    if x.dtype is tf.uint16:  # Tile has no CPU kernel for it
        return tf.cast(
            ops.Tile(input=tf.cast(x, tf.int32), multiples=sizes("tile", times)), x.dtype
        )
    return ops.Tile(input=x, multiples=sizes("tile", times))


def pad(x: Any, widths: Any, mode: str = "constant", constant_values: Any = 0) -> tf.Tensor:
    """`x` with a border of one value; `widths` as in np.pad: n, (n, m) or pairs."""
    check_mode(mode)
    try:
        borders = np.broadcast_to(np.array(widths, np.int32), (rank_of(x), 2))
    except ValueError:
        raise ValueError(f"pad: needed n, (n, m) or one pair per axis, got {widths}") from None
    if is_tensor(constant_values):
        value = astype(constant_values, x.dtype)
    elif isinstance(constant_values, (int, float)) and constant_values == 0:
        return ops.Pad(input=x, paddings=borders)
    else:
        value = scalar(constant_values, x.dtype)
    if len(value.shape) > 0:
        _wrong("pad", "a 0-d constant_values", value)
    # PadV2 gives its constant no gradient, and TensorFlow's vectorized_map assumes that it is 0.
    kept = ops.Pad(input=ops.Fill(dims=ops.Shape(input=x), value=True), paddings=borders)
    return ops.SelectV2(condition=kept, t=ops.Pad(input=x, paddings=borders), e=value)


# Several arrays.


def _alike(function: str, arrays: Any) -> Any:
    """The arrays with the same dtype."""
    if len(arrays) == 0:
        raise ValueError(f"{function}: needed at least one array, got none")
    dtype = arrays[0].dtype
    for x in arrays:
        if x.dtype is not dtype:
            return promote_all(*arrays, function=function)
    return arrays


def joined(arrays: Any, axis: int) -> tf.Tensor:
    """Arrays of the same dtype joined along an axis. If rows of the result are gathered, its
    gradient consists of indexed slices, whose sizes XLA loses when they are split: in a graph a
    reshape to the same shape makes it dense.
    """
    out = ops.ConcatV2(values=arrays, axis=axis)
    return out if type(out) is Eager else ops.Reshape(tensor=out, shape=tf.shape(out))


def concat(arrays: Any, /, *, axis: int | None = 0) -> tf.Tensor:
    arrays = _alike("concat", arrays)
    if axis is None:
        arrays, axis = [flat(x) for x in arrays], 0
    if len(arrays) == 1:  # ConcatV2 refuses a single array
        axis_of("concat", axis, rank_of(arrays[0]))
        return tf.identity(arrays[0])
    try:
        return joined(arrays, axis)
    except Wrong:
        axis_of("concat", axis, rank_of(arrays[0]))
        _wrong("concat", f"equal shapes except along axis {axis}", *arrays)


def stack(arrays: Any, /, *, axis: int = 0) -> tf.Tensor:
    arrays = _alike("stack", arrays)
    try:
        return ops.Pack(values=arrays, axis=axis)
    except Wrong:
        axis_of("stack", axis, rank_of(arrays[0]) + 1)
        _wrong("stack", "arrays of the same shape", *arrays)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[tf.Tensor, ...]:
    axis = axis_of("unstack", axis, rank_of(x))
    size = x.shape[axis]
    if size is None:
        raise ValueError(f"unstack: needed a known size along axis {axis}, got {x.shape}")
    return tuple(ops.Unpack(value=x, num=size, axis=axis))


# Taking by integer indices.


def signed(indices: Any) -> Any:
    """Indices as int32 or int64; a larger one is beyond any size."""
    dtype = indices.dtype
    if dtype is tf.int64 or dtype is tf.int32:
        return indices
    if not dtype.is_integer:
        raise TypeError(f"index: needed integers, got {dtype.name}")
    indices = cast(indices, tf.int64)
    if dtype is not tf.uint64:
        return indices
    return ops.SelectV2(condition=indices < 0, t=scalar(tf.int64.max, tf.int64), e=indices)


def places_in(indices: Any, size: Any) -> Any:
    """Indices that are not negative, as int32 or int64."""
    indices = signed(indices)
    size = tf.cast(size, indices.dtype)
    return ops.SelectV2(condition=indices < 0, t=ops.AddV2(x=indices, y=size), e=indices)


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> tf.Tensor:
    rank = rank_of(x)
    if axis is None:
        if rank != 1:
            raise ValueError(f"take: needed an axis for {rank} dimensions, got None")
        axis = 0
    axis = axis_of("take", axis, rank)
    size = size_of(x, axis)
    if not is_checked(x):
        places, inside = _bounded(x, indices, size)
        out = ops.GatherV2(params=x, indices=places, axis=axis)
        if inside is None:
            return out
        shape = [1] * axis + shape_of(inside) + [1] * (rank - axis - 1)
        inside = ops.Reshape(tensor=inside, shape=sizes("take", shape))
        return tf.where(inside, out, scalar(math.nan, x.dtype))
    if indices.dtype in (tf.int64, tf.int32):
        try:
            return ops.GatherV2(params=x, indices=indices, axis=axis)
        except tf.errors.InvalidArgumentError:
            pass  # a negative index, or one out of bounds
    try:
        return ops.GatherV2(params=x, indices=places_in(indices, size), axis=axis)
    except tf.errors.InvalidArgumentError:
        _beyond("take", indices, size)


def is_checked(x: Any) -> bool:
    """Whether gathering raises for indices out of bounds; on a GPU and with XLA it does not."""
    return tf.executing_eagerly() and x.device.endswith("CPU:0")


def _bounded(x: Any, indices: Any, size: Any) -> tuple[Any, Any]:
    """Indices that are not negative, those out of bounds moved to the edge; and which are inside,
    if the others can be NaN.
    """
    places = places_in(indices, size)
    near = tf.clip_by_value(places, 0, tf.cast(size, places.dtype) - 1)
    inexact = x.dtype.is_floating or x.dtype.is_complex
    return near, ops.Equal(x=places, y=near) if inexact else None


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> tf.Tensor:
    rank = rank_of(x)
    if rank_of(indices) != rank:
        _wrong("take_along_axis", "equally many dimensions", x, indices)
    axis = axis_of("take_along_axis", axis, rank)
    checked, inside, given = is_checked(x), None, indices
    if checked:
        indices = places_in(indices, size_of(x, axis))
    else:
        indices, inside = _bounded(x, indices, size_of(x, axis))
    indices = last(indices, axis, rank)
    x = last(x, axis, rank)
    if rank > 1 and not _same_batch(x, indices):
        batch = common_shape("take_along_axis", x, indices, without=1)
        x = ops.BroadcastTo(input=x, shape=tf.concat([batch, [size_of(x, -1)]], 0))
        count = [size_of(indices, -1)]
        indices = ops.BroadcastTo(input=indices, shape=tf.concat([batch, count], 0))
    try:
        out = tf.gather(x, indices, batch_dims=rank - 1, axis=rank - 1)
    except tf.errors.InvalidArgumentError:
        _beyond("take_along_axis", given, x.shape[-1])
    out = unlast(out, axis, rank)
    return out if inside is None else tf.where(inside, out, scalar(math.nan, x.dtype))


def _beyond(function: str, indices: Any, size: int) -> NoReturn:
    found = tensor(indices).numpy()
    wrong = found[(found < -size) | (found >= size)]
    raise IndexError(
        f"{function}: needed indices from {-size} to {size - 1}, got {wrong.flat[0]}"
    ) from None


def _same_batch(x: Any, y: Any) -> bool:
    batch = x.shape[:-1]
    return batch.is_fully_defined() and batch == y.shape[:-1]
