"""Adding up gradients in the backward pass: parts of an array, shapes that were broadcast, and sums
that are changed in place.
"""

from __future__ import annotations

from typing import Any

import numpy

from .levels import LIFTED
from .mapped import Mapped

np: Any = numpy  # its type stubs do not know traced values
ndarray = numpy.ndarray


class At:
    """A gradient that is zero except at `index`."""

    __slots__ = ("g", "index")

    def __init__(self, g, index):
        self.g, self.index = g, index


class Slot:
    """The gradient of one output of a function that has several."""

    __slots__ = ("g", "place")

    def __init__(self, place, g):
        self.place, self.g = place, g


def add_at(buffer: ndarray, index: Any, g: Any) -> None:
    """`buffer[index] += g`; a position that occurs twice in `index` gets both values."""
    if takes_once(index):
        buffer[index] += g
    else:
        np.add.at(buffer, index, g)


def add_mapped_at(buffer: Any, part: At) -> bool:
    """`buffer[index] += g` for all examples, if the index is a simple one."""
    index = part.index if type(part.index) is tuple else (part.index,)
    simple = all(i is None or i is Ellipsis or isinstance(i, (int, slice)) for i in index)
    if simple:
        buffer.value[(slice(None), *index)] += part.g.value
    return simple


def can_take(held: Any, d: Any) -> bool:
    """Whether a sum that was made in the backward pass can be changed in place to add `d`."""
    if type(d) not in LIFTED:
        return type(held) not in LIFTED
    same = type(held) is type(d) is Mapped and held.tape is d.tape
    return same and type(held.value) is type(d.value) is ndarray


def takes_once(index: Any) -> bool:
    """Whether an index is certain to select each position at most once: it consists of integers,
    slices, None and Ellipsis, or is one boolean mask.
    """
    if type(index) is tuple:
        return all(map(_is_single, index))
    return _is_single(index) or getattr(index, "dtype", None) == np.bool


def _is_single(i: Any) -> bool:
    if i is None or i is Ellipsis or isinstance(i, (int, slice, np.integer)):
        return True
    return getattr(i, "ndim", None) == 0 and i.dtype.kind in "iu"


def unbroadcast(g: Any, shape: tuple[int, ...]) -> Any:
    """The gradient `g` for an argument of that shape: summed over the axes along which the argument
    was broadcast, or broadcast itself if a rule returned a smaller array.
    """
    if g.ndim > len(shape):
        g = np.sum(g, axis=tuple(range(g.ndim - len(shape))))
    skip = len(shape) - g.ndim
    axes = tuple(i for i, n in enumerate(g.shape) if n != 1 and shape[skip + i] == 1)
    if axes:
        g = np.sum(g, axis=axes, keepdims=True)
    return g if g.shape == shape else np.broadcast_to(g, shape)


def cast(g: Any, dtype: numpy.dtype) -> Any:
    """The gradient, cast to the dtype of its array; if that is real, only the real part."""
    if g.dtype.kind == "c" and dtype.kind != "c":
        g = np.real(g)
    return g.astype(dtype)
