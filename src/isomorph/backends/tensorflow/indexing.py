"""NumPy's indexing, and functional updates through an index.

tf.Tensor supports only slices. Basic indices become one StridedSlice; masks and integer arrays
become one gather of their axes. An update finds the flat positions of the elements through the same
index, so both have the same meaning.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from .. import affine
from ..repeating import multiplied
from .dtypes import cast, tensor
from .elementwise import maximum, minimum
from .kernels import Eager, ops, recorded
from .manipulation import (
    broadcast_arrays,
    flat,
    ints,
    is_checked,
    joined,
    places_in,
    rank_of,
    shape_of,
    size_of,
    sizes,
    take,
)

INDEX = (int, np.integer)
HOWS = ("set", "add", "multiply", "min", "max")


def index_get(x: Any, index: Any) -> tf.Tensor:
    """`x[index]` as in NumPy, for every kind of index."""
    items = _items(x, index)
    if not any(_is_array(item) for item in items):
        return _slice(x, items)
    if len(items) == rank_of(x) and isinstance(index, tf.Tensor) and index.dtype is not tf.bool:
        return take(x, index, axis=0)
    return _gather(x, items)


def distance(start: Any, stop: Any) -> int | None:
    """`Backend.distance`. A graph shows how `start` and `stop` were computed."""
    same = lambda x, y: (
        x is y or (isinstance(x, tf.Tensor) and y is not None and x.ref() == y.ref())
    )
    return affine.distance(start, stop, _step, same)


def _step(x: Any) -> tuple[Any, int] | None:
    if not isinstance(x, tf.Tensor) or type(x) is Eager or not x.dtype.is_integer:
        return None
    op = x.op
    if op.type in ("Identity", "Cast"):
        return op.inputs[0], 0
    if op.type not in ("Add", "AddV2", "Sub"):
        return None
    left, right = op.inputs
    number = tf.get_static_value(right)
    if number is None and op.type != "Sub":
        left, number = right, tf.get_static_value(left)
    if number is None or number.shape != ():
        return None
    return left, -int(number) if op.type == "Sub" else int(number)


# Reading an index.


def _items(x: Any, index: Any) -> list[Any]:
    """The index item by item, one for every axis of `x`, with None between them."""
    rank = rank_of(x)
    items = [_item(item) for item in (index if isinstance(index, tuple) else (index,))]
    used = sum(_consumed(item) for item in items)
    if sum(item is Ellipsis for item in items) > 1:
        raise IndexError(f"index: needed at most one ellipsis, got {index}")
    if used > rank:
        raise IndexError(f"index: needed at most {rank} indices, got {used}")
    place = next((i for i, item in enumerate(items) if item is Ellipsis), len(items))
    # An ellipsis of no axes still separates two arrays.
    items[place : place + 1] = [slice(None)] * (rank - used) or [Ellipsis]
    return items


def _item(item: Any) -> Any:
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if isinstance(item, INDEX) and not isinstance(item, (bool, np.bool_)):
        return int(item)
    if isinstance(item, list):  # an empty list is an empty integer index, not floats
        item = np.array(item) if item else np.zeros(0, np.int64)
    item = tensor(item)
    if item.dtype is not tf.bool and not item.dtype.is_integer:
        raise IndexError(f"index: needed integers, slices or booleans, got {item.dtype.name}")
    return item


def _is_array(item: Any) -> bool:
    """Whether it is an advanced index in NumPy's sense. A 0-d integer acts like a number."""
    return isinstance(item, tf.Tensor) and (item.dtype is tf.bool or rank_of(item) > 0)


def _is_whole(item: Any) -> bool:
    """Whether it is the slice `:`. Not by ==, because a slice may hold tensors."""
    return isinstance(item, slice) and item.start is item.stop is item.step is None


def _consumed(item: Any) -> int:
    """How many axes of the array it consumes."""
    if item is None or item is Ellipsis:
        return 0
    return rank_of(item) if isinstance(item, tf.Tensor) and item.dtype is tf.bool else 1


def _beyond(x: Any, items: list[Any]) -> str:
    """The error for an index outside an array, or whose parts do not fit together."""
    shown = [item.numpy().tolist() if isinstance(item, Eager) else item for item in items]
    return (
        f"at(x)[index]: needed an index within {tuple(x.shape)}, in shapes that fit together, got "
        f"{shown}"
    )


# Basic indices.


def _slice(x: Any, items: list[Any]) -> tf.Tensor:
    try:
        return ops.StridedSlice(input=x, **_strides(items))
    except (tf.errors.InvalidArgumentError, ValueError):
        if any(isinstance(item, slice) and item.step == 0 for item in items):
            raise ValueError("at(x)[index]: slice step cannot be zero") from None
        raise IndexError(_beyond(x, items)) from None


def _strides(items: list[Any]) -> dict[str, Any]:
    """A basic index for StridedSlice: three vectors, and bits for what they cannot express."""
    begin, end, step = [], [], []
    masks = dict.fromkeys(("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask"), 0)
    items = [item for item in items if item is not Ellipsis]
    for bit, item in ((1 << i, item) for i, item in enumerate(items)):
        start, stop, stride = 0, 0, 1
        if item is None:
            masks["new_axis_mask"] |= bit
        elif isinstance(item, slice):
            start, stop, stride = item.start, item.stop, item.step
            masks["begin_mask"] |= bit * (start is None)
            masks["end_mask"] |= bit * (stop is None)
            stride = 1 if stride is None else stride
        else:
            start, stop = item, item + 1
            masks["shrink_axis_mask"] |= bit
        begin.append(0 if start is None else start)
        end.append(0 if stop is None else stop)
        step.append(stride)
    vectors = {"begin": begin, "end": end, "strides": step}
    return {name: sizes("index", values) for name, values in vectors.items()} | masks


# Arrays in the index.


def _gather(x: Any, items: list[Any]) -> tf.Tensor:
    """Slice what can be sliced, then gather the axes of arrays."""
    basic: list[Any] = []  # the sliced part; each entry is one axis of the slice
    arrays: list[tuple[int, tf.Tensor]] = []  # an axis, and the indices to take along it
    spots = []
    for spot, item in enumerate(items):
        if item is Ellipsis:
            continue
        if item is None or isinstance(item, slice):
            basic.append(item)
            continue
        spots.append(spot)
        axis = len(basic)
        if isinstance(item, tf.Tensor) and item.dtype is tf.bool:
            basic += [slice(None)] * rank_of(item) or [None]  # a 0-d mask keeps or drops a new axis
            arrays += enumerate(_mask(x, item, _axis(items, spot)), axis)
        else:
            basic.append(slice(None))
            places = tf.convert_to_tensor(item, dtype_hint=tf.int64)
            arrays.append((axis, places_in(places, size_of(x, _axis(items, spot)))))
    if not all(_is_whole(item) for item in basic):
        x = _slice(x, basic)
    together = spots[-1] - spots[0] == len(spots) - 1
    try:
        return _take(x, arrays, together)
    except tf.errors.InvalidArgumentError:
        raise IndexError(_beyond(x, items)) from None


def _axis(items: list[Any], spot: int) -> int:
    """The first axis of the array for the item at `spot`."""
    return sum(_consumed(item) for item in items[:spot])


def _mask(x: Any, mask: tf.Tensor, axis: int) -> list[tf.Tensor]:
    """The places where a mask is true, one array per axis."""
    rank = rank_of(mask)
    if rank == 0:
        return [flat(ops.Where(condition=flat(mask)))]
    if not mask.shape.is_compatible_with(x.shape[axis : axis + rank]):
        got = f"{tuple(mask.shape)} for an array of {tuple(x.shape)}"
        raise IndexError(f"index: needed a mask with the shape of the axes it covers, got {got}")
    return ops.Unpack(value=ops.Where(condition=mask), num=rank, axis=1)


def _take(x: Any, arrays: list[tuple[int, tf.Tensor]], together: bool) -> tf.Tensor:
    """Gather along one or several axes. If the arrays are adjacent their axes stay there, otherwise
    they go to the front: NumPy's rule."""
    if len(arrays) == 1:
        ((axis, places),) = arrays
        return ops.GatherV2(params=x, indices=places, axis=axis)
    axes = [axis for axis, _ in arrays]
    others = [axis for axis in range(rank_of(x)) if axis not in axes]
    x = ops.Transpose(x=x, perm=ints(axes + others))
    places = broadcast_arrays(*(tf.cast(places, tf.int64) for _, places in arrays))
    out = ops.GatherNd(params=x, indices=ops.Pack(values=places, axis=-1))
    if not together or axes[0] == 0:
        return out
    new, kept = list(range(rank_of(places[0]))), range(rank_of(places[0]), rank_of(out))
    order = [*kept[: axes[0]], *new, *kept[axes[0] :]]
    return ops.Transpose(x=out, perm=ints(order))


# Updates.


def index_update(xp: Any, x: Any, index: Any, value: Any, how: str) -> tf.Tensor:
    """A copy of `x` in which `x[index]` is set to, or combined with, `value`.

    Positions that occur twice are combined twice (np.add.at); `set` keeps the last value.
    """
    if how not in HOWS:
        raise ValueError(f"index_update: needed how to be one of {', '.join(HOWS)}, got {how!r}")
    x = tensor(x)
    value = _value(x, value, how)
    items = _items(x, index)
    try:
        return _updated(xp, x, items, value, how)
    except tf.errors.InvalidArgumentError:
        raise IndexError(_beyond(x, items)) from None


def _updated(xp: Any, x: tf.Tensor, items: list[Any], value: tf.Tensor, how: str) -> tf.Tensor:
    if not any(_is_array(item) for item in items):
        return _update_slice(xp, x, items, value, how)
    first, *rest = items
    rows = _is_array(first) and first.dtype is not tf.bool
    if rows and all(item is Ellipsis or _is_whole(item) for item in rest):
        # not element by element
        return _scatter(xp, x, places_in(first, size_of(x, 0)), value, how)
    flattened = _scatter(xp, flat(x), _positions(x, items), value, how)
    return ops.Reshape(tensor=flattened, shape=ops.Shape(input=x))


def _value(x: tf.Tensor, value: Any, how: str) -> tf.Tensor:
    value = tf.convert_to_tensor(value, dtype_hint=x.dtype)
    lost = value.dtype.is_complex and not x.dtype.is_complex
    if how != "set" and value.dtype.is_floating:  # only an assignment cuts fractions off
        lost = not (x.dtype.is_floating or x.dtype.is_complex)
    if lost:
        kinds = f"{x.dtype.name}, got {value.dtype.name}"
        raise TypeError(
            f"index_update: needed a value that fits into {kinds}; convert one of the two"
        )
    if x.dtype.is_complex and how in ("min", "max"):
        raise TypeError(f"index_update: needed real numbers for {how}, got {x.dtype.name}")
    return cast(value, x.dtype)


def _combined(old: tf.Tensor, value: tf.Tensor, how: str) -> tf.Tensor:
    if how == "set":
        return value
    if old.dtype is tf.bool:  # NumPy's arithmetic of booleans
        return old | value if how in ("add", "max") else old & value
    if how in ("min", "max"):
        return (minimum if how == "min" else maximum)(old, value)
    return (ops.AddV2 if how == "add" else ops.Mul)(x=old, y=value)


def _fit(value: tf.Tensor, target: list[Any]) -> tf.Tensor:
    """`value` broadcast to the shape of its place; extra leading axes of size 1 are removed."""
    spare = rank_of(value) - len(target)
    if spare > 0:
        value = ops.Squeeze(input=value, axis=list(range(spare)))
    try:
        return ops.BroadcastTo(input=value, shape=sizes("index_update", target))
    except (tf.errors.InvalidArgumentError, ValueError):
        shapes = f"{tuple(target)}, got {tuple(value.shape)}"
        raise ValueError(f"at(x)[index]: needed a value that broadcasts to {shapes}") from None


def _update_slice(xp: Any, x: tf.Tensor, items: list[Any], value: tf.Tensor, how: str) -> tf.Tensor:
    old = _slice(x, items)
    value = _fit(_combined(old, value, how), shape_of(old))
    steps = (item.step for item in items if isinstance(item, slice))
    if not tf.executing_eagerly() and any(step not in (None, 1, -1) for step in steps):
        flattened = _scatter(xp, flat(x), _positions(x, items), value, "set")
        return ops.Reshape(tensor=flattened, shape=ops.Shape(input=x))  # XLA supports no other step
    set_in = lambda x, value: ops.TensorStridedSliceUpdate(input=x, value=value, **_strides(items))
    is_safe = value.shape.num_elements() == 1 or tf.get_static_value(value) is not None
    if tf.executing_eagerly() or is_safe:
        return set_in(x, value)
    # On a CPU, XLA may compute the value while it writes, from elements that it has overwritten.
    there = set_in(tf.zeros_like(x, tf.bool), tf.ones_like(value, tf.bool))
    return ops.SelectV2(condition=there, t=set_in(ops.ZerosLike(x=x), value), e=x)


def _positions(x: tf.Tensor, items: list[Any]) -> tf.Tensor:
    """The flat positions of the elements that `items` selects."""
    places = ops.Reshape(tensor=tf.range(tf.size(x, tf.int64)), shape=ops.Shape(input=x))
    advanced = any(_is_array(item) for item in items)
    return _gather(places, items) if advanced else _slice(places, items)


def _scatter(xp: Any, x: tf.Tensor, places: tf.Tensor, value: tf.Tensor, how: str) -> tf.Tensor:
    """`x` with its elements (its rows, if it has more axes) at `places` updated."""
    if x.dtype is tf.bool and how != "set":
        how = "max" if how in ("add", "max") else "min"
        x, value = tf.cast(x, tf.int32), tf.cast(value, tf.int32)
        return tf.cast(_scatter(xp, x, places, value, how), tf.bool)
    row = shape_of(x)[1:]
    value = _fit(value, [*shape_of(places), *row])
    value = ops.Reshape(tensor=value, shape=sizes("index_update", [_count(places), *row]))
    places = flat(places)
    if how == "multiply":
        if is_checked(x):
            ops.GatherV2(params=x, indices=places, axis=0)  # raises for indices out of bounds
        if (x.dtype.is_floating or x.dtype.is_complex) and (recorded(x) or recorded(value)):
            return multiplied(xp, x, value, places, tf.range(size_of(x, 0), dtype=places.dtype))
        factors = ops.UnsortedSegmentProd(
            data=value, segment_ids=places, num_segments=size_of(x, 0)
        )
        return ops.Mul(x=x, y=factors)
    if how == "set":
        return _replace(x, places, value)
    kernels = {"add": ops.TensorScatterAdd, "min": ops.TensorScatterMin}
    kernel = kernels.get(how, ops.TensorScatterMax)
    return kernel(tensor=x, indices=ops.ExpandDims(input=places, axis=1), updates=value)


def _count(x: tf.Tensor) -> Any:
    known = x.shape.num_elements()
    return tf.size(x) if known is None else known


def _replace(x: tf.Tensor, places: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
    """`x` with the rows at `places` set to `value`. If a place occurs twice, the last value wins,
    and only that value gets the gradient; TensorScatterUpdate does not define which one stays, and
    gives both the gradient. All rows are taken in one gather, from `value` and `x` joined.
    """
    count, rows = size_of(value, 0), size_of(x, 0)
    both = joined([value, x], 0)
    stay = tf.range(rows, dtype=tf.int64) - tf.cast(rows, tf.int64)  # negative: any value wins
    winner = ops.TensorScatterMax(
        tensor=stay,
        indices=ops.ExpandDims(input=places, axis=1),
        updates=tf.range(count, dtype=tf.int64),
    )
    total = tf.cast(rows, tf.int64) + tf.cast(count, tf.int64)
    return ops.GatherV2(params=both, indices=ops.FloorMod(x=winner, y=total), axis=0)
