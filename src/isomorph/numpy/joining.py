"""Joining arrays, some of which may be given as lists that hold traced values."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy

from ..backends.numpy.buffers import made
from ..backends.numpy.nested import gathered, holds_traced
from .creation import asarray

__all__ = [
    "append",
    "c_",
    "column_stack",
    "concat",
    "concatenate",
    "dstack",
    "hstack",
    "r_",
    "row_stack",
    "stack",
    "vstack",
]

np: Any = numpy  # its type stubs do not know traced values


def _joins(func: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's function of a sequence of arrays; an element may be a list that holds traced
    values.
    """

    @wraps(func)
    def join(arrays: Any, *args: Any, **kw: Any) -> Any:
        if isinstance(arrays, (list, tuple)):
            arrays = [gathered(a) if holds_traced(a) else a for a in arrays]
        return made(func(arrays, *args, **kw))

    return join


concatenate = _joins(np.concatenate)
concat = concatenate
stack = _joins(np.stack)
vstack = _joins(np.vstack)
row_stack = _joins(np.vstack)
hstack = _joins(np.hstack)
dstack = _joins(np.dstack)
column_stack = _joins(np.column_stack)


@wraps(np.append)
def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    arr = asarray(arr) if holds_traced(arr) else arr
    plain: Any = numpy.append
    return made(plain(arr, asarray(values) if holds_traced(values) else values, axis))


class _Joiner:
    """`numpy.r_` or `numpy.c_`, also of traced values. An array with fewer than `ndmin` axes gets
    axes of size 1; its own begin at the position `first`, or come last if that is -1.
    """

    def __init__(self, theirs: Any, axis: int, ndmin: int, first: int) -> None:
        self.theirs = theirs
        self.numbers = axis, ndmin, first

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if not any(map(holds_traced, parts)):
            return made(self.theirs[key])
        axis, ndmin, first = self.numbers
        if isinstance(parts[0], str):
            given = _directive(parts[0])
            axis, ndmin, first = (*given, *self.numbers[len(given) :])
            parts = parts[1:]
        return np.concatenate([_raised(part, ndmin, first) for part in parts], axis)

    def __len__(self) -> int:
        return 0


def _directive(word: str) -> list[int]:
    """The integers of the string that may come first in `r_[...]`."""
    try:
        return [int(n) for n in word.split(",")][:3]
    except ValueError:
        raise TypeError(
            f"isomorph.numpy.r_: needed a directive of integers for traced values, got {word!r}"
        ) from None


def _raised(part: Any, ndmin: int, first: int) -> Any:
    x = np.r_[part] if isinstance(part, slice) else asarray(part)
    if x.ndim == 0:
        return np.reshape(x, (1,) * ndmin)
    missing = ndmin - x.ndim
    if missing <= 0:
        return x
    start = first if first >= 0 else missing + 1 + first
    return np.reshape(x, (1,) * start + x.shape + (1,) * (missing - start))


r_ = _Joiner(np.r_, 0, 1, -1)
c_ = _Joiner(np.c_, -1, 2, 0)
