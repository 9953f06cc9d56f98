"""Reading and replacing parts of arrays, by indices that are the same for all examples or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

from ....core.dispatch import load
from ..holding import snapshot
from ..mapped import (
    Map,
    Mapped,
    Unbatchable,
    getitem,
    is_mapped,
    rowwise,
    rule,
    spread,
    value_of,
)  # fmt: skip
from ..tape import scatter
from ..traced import concrete
from ..updating import added, replaced, updated
from .shaping import flat, place

np: Any = numpy  # its type stubs do not know mapped values


class Place(NamedTuple):
    """An index of one example, as an index of all examples. What it selects has the axis of the
    examples at `batch`, and the axes of index arrays, `axes` of them, at `first`; in one example
    they are at `wanted`.
    """

    at: tuple
    batch: int = 0
    axes: int = 0
    first: int = 0
    wanted: int = 0

    def shown(self, y: Any) -> Any:
        """What was selected, as all examples."""
        y = np.moveaxis(y, self.batch, 0) if self.batch else y
        return self._moved(y, self.first, self.wanted)

    def hidden(self, y: Any) -> Any:
        """The inverse of `shown`."""
        y = self._moved(y, self.wanted, self.first)
        return np.moveaxis(y, 0, self.batch) if self.batch else y

    def _moved(self, y: Any, start: int, stop: int) -> Any:
        if start == stop or not self.axes:
            return y
        each = range(self.axes)
        return np.moveaxis(y, [start + i for i in each], [stop + i for i in each])


def items_of(index: Any) -> list[Any]:
    items = list(index) if type(index) is tuple else [index]
    items = [load("numpy").asarray(i) if type(i) is list else i for i in items]
    return [concrete(i) for i in items]


def is_basic(i: Any) -> bool:
    return i is None or i is Ellipsis or isinstance(i, slice)


SIMPLE = {int, slice, type(None), type(Ellipsis)}


def is_simple(index: Any) -> bool:
    """Whether an index has no arrays, so that it means the same after the axis of examples."""
    if type(index) is tuple:
        return all([type(i) in SIMPLE for i in index])  # noqa: C419 (faster)
    return type(index) in SIMPLE


def placed(over: Map, index: Any, with_examples: bool) -> Place:
    """Where an index without an ellipsis is among all examples; `with_examples` says whether the
    array has their axis. NumPy puts the axes of index arrays first if other indices separate them.
    """
    items = items_of(index)
    rich = [n for n, i in enumerate(items) if not is_basic(i)]
    ranks = [np.ndim(items[n]) for n in rich]
    for n in rich:
        kind = getattr(items[n], "dtype", np.dtype(int)).kind
        if type(items[n]) is bool or (kind == "b" and (is_mapped(over, items[n]))):
            raise Unbatchable(over, "x[mask] with a mapped mask, whose result differs in shape")
        if kind == "b":
            ranks = [r if m != n else 1 for r, m in zip(ranks, rich)]
    arrays = any(ranks)
    together = not rich or rich == list(range(rich[0], rich[-1] + 1))
    count = max(ranks, default=0)
    if not any(is_mapped(over, items[n]) for n in rich):
        if not arrays or together:
            return Place((slice(None), *items))
        return Place((slice(None), *items), batch=count)
    before = sum(1 for i in items[: rich[0]] if i is not Ellipsis)
    wanted = before if together else 0
    values = [spread(i.value, count) if is_mapped(over, i) else i for i in items]
    if with_examples:
        examples = np.arange(over.size).reshape(over.size, *(1,) * count)
        return Place((examples, *values), 0, count, 1, 1 + wanted)
    return Place(tuple(values), wanted)


def full_index(index: Any, ndim: int) -> tuple:
    """An index with its ellipsis written out as slices. An ellipsis for no axes stays, because it
    separates index arrays all the same.
    """
    items = items_of(index)
    dots = [n for n, i in enumerate(items) if i is Ellipsis]
    if not dots:
        return tuple(items)
    used = sum(
        np.ndim(i) if getattr(i, "dtype", None) == np.bool else 1
        for i in items
        if i is not None and i is not Ellipsis
    )
    (n,) = dots
    axes = (slice(None),) * (ndim - used) or (Ellipsis,)
    return (*items[:n], *axes, *items[n + 1 :])


def _check(index: tuple, ndim: int) -> None:
    used = sum(
        np.ndim(i) if getattr(i, "dtype", None) == np.bool else 1
        for i in index
        if i is not None and i is not Ellipsis
    )
    if used > ndim:
        raise IndexError(f"too many indices for array: array is {ndim}-dimensional")


@rule(getitem)
def read(over: Map, func: Callable, x: Any, index: Any) -> Any:
    mapped = is_mapped(over, x)
    if mapped and is_simple(index):
        both = (slice(None), *index) if type(index) is tuple else (slice(None), index)
        return _read(over, x.value[both])
    index = full_index(index, x.ndim)
    _check(index, x.ndim)
    where = placed(over, index, mapped)
    return _read(over, where.shown(getitem(x.value if mapped else x, where.at)))


def _read(over: Map, y: Any) -> Mapped:
    """What was read. With one number for each example it is no view, as NumPy's numbers are not."""
    if y.ndim == 1:
        y = y.copy() if type(y) is numpy.ndarray else snapshot(y)
    return Mapped(y, over)


@rule(scatter)
def put_into_zeros(over: Map, func: Callable, g: Any, index: Any, shape: tuple[int, ...]) -> Any:
    if is_simple(index):
        where = Place((slice(None), *index) if type(index) is tuple else (slice(None), index))
    else:
        where = placed(over, full_index(index, len(shape)), True)
    value = where.hidden(value_of(over, g))
    return Mapped(scatter(value, where.at, (over.size, *shape)), over)


def _parts(over: Map, x: Any, value: Any, index: Any) -> tuple[Any, Any, tuple]:
    """All examples of an array to update, of the new values, and the index."""
    index = full_index(index, x.ndim)
    _check(index, x.ndim)
    where = placed(over, index, True)
    whole = value_of(over, x)
    stand = np.broadcast_to(np.int8(0), x.shape)
    shown = tuple(np.zeros(i.shape, np.intp) if is_mapped(over, i) else i for i in index)
    shape = stand[shown].shape
    moved = where.batch or where.first != where.wanted
    if is_mapped(over, value) or moved or np.ndim(value) > len(shape) or where.axes:
        value = where.hidden(value_of(over, np.broadcast_to(value, shape)))
    return whole, value, where.at


@rule(updated)
def update(over: Map, func: Callable, x: Any, index: Any, value: Any, how: str) -> Any:
    whole, value, index = _parts(over, x, value, index)
    return Mapped(updated(whole, index, value, how), over)


@rule(replaced, added)
def replace(over: Map, func: Callable, x: Any, value: Any, index: Any) -> Any:
    whole, value, index = _parts(over, x, value, index)
    return Mapped(func(whole, value, index), over)


@rule(np.take)
def take(
    over: Map, func: Callable, a: Any, indices: Any, axis: Any = None, out: Any = None,
    mode: str = "raise",
) -> Any:  # fmt: skip
    if axis is None:
        a, axis = np.ravel(a), 0
    if not is_mapped(over, indices):
        indices = np.asarray(concrete(indices)) if type(indices) in (list, tuple) else indices
        y = np.take(a.value, indices, place(axis, a.ndim), mode=mode)
        return Mapped(y, over)
    if mode != "raise":
        n = a.shape[axis]
        indices = indices % n if mode == "wrap" else np.clip(indices, 0, n - 1)
    return read(over, getitem, a, (slice(None),) * (axis % a.ndim) + (indices,))


@rule(np.take_along_axis)
def take_along_axis(over: Map, func: Callable, arr: Any, indices: Any, axis: Any = -1) -> Any:
    if axis is None:
        return take(over, np.take, arr, indices)
    n = place(axis, np.ndim(arr))
    both = [x.value if is_mapped(over, x) else x[None] for x in (arr, indices)]
    return Mapped(np.take_along_axis(*both, n), over)


@rule(np.delete)
def delete(over: Map, func: Callable, arr: Any, obj: Any, axis: Any = None) -> Any:
    if is_mapped(over, obj):
        return rowwise(over, func, arr, obj, axis)
    value = flat(arr) if axis is None else arr.value
    return Mapped(np.delete(value, obj, 1 if axis is None else place(axis, arr.ndim)), over)


def _stops(over: Map, func: Callable, *args: Any, **kw: Any) -> Any:
    raise Unbatchable(over, f"numpy.{func.__name__}, which changes an array in place")


rule(np.copyto, np.put, np.place, np.putmask, np.put_along_axis, np.fill_diagonal)(_stops)
