"""Joining arrays, of which some may be the same for all examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from ..mapped import Map, Mapped, rule, value_of
from ..rules.joining import joined, stacked
from .shaping import place

np: Any = numpy  # its type stubs do not know mapped values


@rule(np.concatenate)
def concatenate(
    over: Map, func: Callable, arrays: Any, /, axis: Any = 0, *, out: Any = None, **kw: Any
) -> Any:
    values = [value_of(over, a) for a in arrays]
    if axis is None:
        values, axis = [np.reshape(v, (over.size, -1)) for v in values], 0
    ndim = values[0].ndim - 1
    if not ndim:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    return Mapped(np.concatenate(values, place(axis, ndim), **kw), over)


@rule(joined)
def join(over: Map, func: Callable, *arrays: Any, axis: Any = 0) -> Any:
    return concatenate(over, func, arrays, axis=axis)


@rule(np.stack)
def stack(over: Map, func: Callable, arrays: Any, axis: int = 0, out: Any = None, **kw: Any) -> Any:
    values = [value_of(over, a) for a in arrays]
    return Mapped(np.stack(values, place(axis, values[0].ndim), **kw), over)


@rule(stacked)
def pile(over: Map, func: Callable, *arrays: Any, axis: int = 0) -> Any:
    return stack(over, func, arrays, axis)
