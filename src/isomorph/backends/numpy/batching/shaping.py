"""Functions that only move numbers."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from operator import index
from typing import Any

import numpy

from ..mapped import Map, Mapped, is_mapped, rowwise, rule, value_of
from ..rules.shaping import padded
from ..rules.windows import overlapped

np: Any = numpy  # its type stubs do not know mapped values


def place(axis: Any, ndim: int) -> int:
    """An axis of one example, as an axis of all examples."""
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(int(axis), ndim)
    return int(axis) % ndim + 1


def places(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes of one example, None for all, as axes of all examples."""
    if axis is None:
        return tuple(range(1, ndim + 1))
    try:
        return (place(index(axis), ndim),)
    except TypeError:  # several of them: a tuple, list, range or array
        return tuple(place(i, ndim) for i in axis)


def flat(x: Any) -> Any:
    """All examples, each with one axis."""
    return np.reshape(x.value, (x.tape.size, x.size))


@rule(np.reshape)
def reshape(over: Map, func: Callable, a: Any, shape: Any, order: str = "C", **kw: Any) -> Any:
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if order == "F":
        return np.transpose(np.reshape(np.transpose(a), shape[::-1]))
    if order != "C" and a.ndim > 1:
        return rowwise(over, func, a, shape, order=order)
    if -1 in shape:
        known = prod(n for n in shape if n != -1)
        if shape.count(-1) > 1 or (known and a.size % known) or (not known and a.size):
            raise ValueError(f"cannot reshape array of size {a.size} into shape {shape}")
        shape = tuple(a.size // max(known, 1) if n == -1 else n for n in shape)
    if prod(shape) != a.size:
        raise ValueError(f"cannot reshape array of size {a.size} into shape {shape}")
    return Mapped(np.reshape(a.value, (over.size, *shape)), over)


@rule(np.ravel)
def ravel(over: Map, func: Callable, a: Any, order: str = "C") -> Any:
    if order == "C" or a.ndim < 2:
        return Mapped(flat(a), over)
    return np.reshape(a, -1, order="F") if order == "F" else rowwise(over, func, a, order)


@rule(np.squeeze)
def squeeze(over: Map, func: Callable, a: Any, axis: Any = None) -> Any:
    if axis is None:
        axis = tuple(i for i, n in enumerate(a.shape) if n == 1)
    return Mapped(np.squeeze(a.value, places(axis, a.ndim)), over)


@rule(np.expand_dims)
def expand_dims(over: Map, func: Callable, a: Any, axis: Any) -> Any:
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    return Mapped(np.expand_dims(a.value, places(axis, a.ndim + count)), over)


@rule(np.transpose, np.permute_dims)
def transpose(over: Map, func: Callable, a: Any, axes: Any = None) -> Any:
    axes = range(a.ndim)[::-1] if axes is None else axes
    if len(axes) != a.ndim:
        raise ValueError("axes don't match array")
    return Mapped(np.transpose(a.value, (0, *places(tuple(axes), a.ndim))), over)


@rule(np.matrix_transpose, np.linalg.matrix_transpose)
def matrix_transpose(over: Map, func: Callable, x: Any, /) -> Any:
    return swapaxes(over, func, x, -1, -2)


@rule(np.swapaxes)
def swapaxes(over: Map, func: Callable, a: Any, axis1: int, axis2: int) -> Any:
    return Mapped(np.swapaxes(a.value, place(axis1, a.ndim), place(axis2, a.ndim)), over)


@rule(np.moveaxis)
def moveaxis(over: Map, func: Callable, a: Any, source: Any, destination: Any) -> Any:
    source, destination = places(source, a.ndim), places(destination, a.ndim)
    return Mapped(np.moveaxis(a.value, source, destination), over)


@rule(np.broadcast_to)
def broadcast_to(over: Map, func: Callable, array: Any, shape: Any, subok: bool = False) -> Any:
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    value = array.value
    missing = len(shape) - array.ndim
    if missing < 0:
        raise ValueError("input operand has more dimensions than allowed by the axis remapping")
    wide = np.reshape(value, (over.size, *(1,) * missing, *array.shape)) if missing else value
    return Mapped(np.broadcast_to(wide, (over.size, *shape)), over)


@rule(np.flip)
def flip(over: Map, func: Callable, m: Any, axis: Any = None) -> Any:
    return Mapped(np.flip(m.value, places(axis, m.ndim)), over)


@rule(np.roll)
def roll(over: Map, func: Callable, a: Any, shift: Any, axis: Any = None) -> Any:
    if is_mapped(over, shift) or not is_mapped(over, a):
        return rowwise(over, func, a, shift, axis)
    if axis is None:
        return Mapped(np.reshape(np.roll(flat(a), shift, 1), a.value.shape), over)
    axis = places(axis, a.ndim) if isinstance(axis, (tuple, list)) else place(axis, a.ndim)
    return Mapped(np.roll(a.value, shift, axis), over)


@rule(np.tril, np.triu)
def triangle(over: Map, func: Callable, m: Any, k: int = 0) -> Any:
    return Mapped(func(m.value, k), over) if m.ndim > 1 else rowwise(over, func, m, k)


@rule(np.diagonal)
def diagonal(
    over: Map, func: Callable, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1
) -> Any:
    return Mapped(np.diagonal(a.value, offset, place(axis1, a.ndim), place(axis2, a.ndim)), over)


@rule(np.trace)
def trace(
    over: Map, func: Callable, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1,
    dtype: Any = None, out: Any = None,
) -> Any:  # fmt: skip
    axes = place(axis1, a.ndim), place(axis2, a.ndim)
    return Mapped(np.trace(a.value, offset, *axes, dtype), over)


@rule(np.tile)
def tile(over: Map, func: Callable, A: Any, reps: Any) -> Any:
    reps = tuple(reps) if np.ndim(reps) else (int(reps),)
    value = A.value
    if len(reps) > A.ndim:
        value = np.reshape(value, (over.size, *(1,) * (len(reps) - A.ndim), *A.shape))
    reps = (1,) * (value.ndim - 1 - len(reps)) + reps
    return Mapped(np.tile(value, (1, *reps)), over)


@rule(np.repeat)
def repeat(over: Map, func: Callable, a: Any, repeats: Any, axis: Any = None) -> Any:
    if not is_mapped(over, a) or is_mapped(over, repeats):
        return rowwise(over, func, a, repeats, axis)
    value = flat(a) if axis is None else a.value
    return Mapped(np.repeat(value, repeats, 1 if axis is None else place(axis, a.ndim)), over)


@rule(np.pad)
def pad(over: Map, func: Callable, array: Any, pad_width: Any, mode: Any = "constant",
        **kw: Any) -> Any:  # fmt: skip
    if (
        not is_mapped(over, array)
        or isinstance(pad_width, dict)
        or any(hasattr(v, "dtype") or type(v) in (list, tuple) for v in kw.values())
    ):  # numbers for each axis, or for each example
        return rowwise(over, func, array, pad_width, mode, **kw)
    widths = np.broadcast_to(pad_width, (array.ndim, 2)).tolist()
    return Mapped(np.pad(array.value, [(0, 0), *widths], mode, **kw), over)


@rule(padded)
def pad_constant(over: Map, func: Callable, array: Any, pad_width: Any, **kw: Any) -> Any:
    return pad(over, np.pad, array, pad_width, "constant", **kw)


@rule(np.rot90)
def rot90(over: Map, func: Callable, m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    return Mapped(np.rot90(m.value, k, places(tuple(axes), m.ndim)), over)


@rule(np.broadcast_arrays)
def broadcast_arrays(over: Map, func: Callable, *args: Any, subok: bool = False) -> tuple:
    shape = np.broadcast_shapes(*map(np.shape, args))
    return tuple(np.broadcast_to(a, shape) for a in args)


@rule(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    over: Map, func: Callable, x: Any, window_shape: Any, axis: Any = None, **kw: Any
) -> Any:
    window = tuple(window_shape) if np.ndim(window_shape) else (int(window_shape),)
    return Mapped(func(x.value, window, places(axis, x.ndim), **kw), over)


@rule(overlapped)
def overlapped_(
    over: Map, func: Callable, g: Any, window: Any, axes: Any, shape: tuple[int, ...]
) -> Any:
    shifted = tuple(i + 1 for i in axes)
    return Mapped(overlapped(value_of(over, g), window, shifted, (over.size, *shape)), over)
