"""Functions with a custom backward rule, of mapped values that an older tape differentiates: the
rule of one example becomes a rule of all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy

from .mapped import Map, Mapped, Unbatchable, is_mapped, running, value_of

np: Any = numpy  # its type stubs do not know mapped values


class Held:
    """The array of a mapped value among the residuals of a custom rule."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value


class Inside:
    """What a rule of an inner map holds among the residuals of a rule of an outer one; `rebuilt`
    makes it again from its array.
    """

    __slots__ = ("rebuilt", "value")

    def __init__(self, rebuilt: Callable[[Any], Any], value: Any):
        self.rebuilt, self.value = rebuilt, value


class CustomRule:
    """A custom rule of one example, as a rule of the arrays of all examples of the map `outer`;
    `mapped` says which arguments have the axis of examples. Each call is a map of its own, because
    the backward rule runs later, perhaps inside newer transforms.
    """

    def __init__(self, outer: Map, bound: Any, mapped: list[bool]):
        self.outer, self.size, self.bound, self.mapped = outer, outer.size, bound, mapped

    def _lifted(self, over: Map, values: Sequence[Any]) -> list[Any]:
        return [Mapped(x, over) if each else x for x, each in zip(values, self.mapped)]

    def func(self, *values: Any) -> tuple:
        over = Map(self.size)
        with running(over):
            outs = self.bound.func(*self._lifted(over, values))
            return tuple(value_of(over, y) for y in outs)

    def fwd(self, *values: Any) -> tuple[tuple, Any]:
        over = Map(self.size)
        try:
            with running(over):
                outs, residuals = self.bound.fwd(*self._lifted(over, values))
                return tuple(value_of(over, y) for y in outs), _put_down(over, residuals)
        except Unbatchable as stop:  # then the outer map runs row by row
            raise Unbatchable(self.outer, stop.what) if stop.over is over else stop from None

    def bwd(self, residuals: Any, upstream: tuple, values: tuple) -> tuple:
        over = Map(self.size)
        with running(over):
            gs = tuple(Mapped(g, over) for g in upstream)
            grads = self.bound.bwd(
                _taken_up(over, residuals), gs, tuple(self._lifted(over, values))
            )
            return tuple(self._whole(over, g, each) for g, each in zip(grads, self.mapped))

    def _whole(self, over: Map, g: Any, each: bool) -> Any:
        if g is None or each:
            return None if g is None else value_of(over, g)
        return np.sum(g.value, 0) if is_mapped(over, g) else g * self.size


def _put_down(over: Map, nest: Any) -> Any:
    if type(nest) in (list, tuple):
        return type(nest)(_put_down(over, x) for x in nest)
    if type(nest) is Held:
        return Inside(Held, _put_down(over, nest.value))
    if type(nest) is Inside:
        return Inside(partial(Inside, nest.rebuilt), _put_down(over, nest.value))
    return Held(nest.value) if is_mapped(over, nest) else nest


def _taken_up(over: Map, nest: Any) -> Any:
    if type(nest) in (list, tuple):
        return type(nest)(_taken_up(over, x) for x in nest)
    if type(nest) is Inside:
        return nest.rebuilt(_taken_up(over, nest.value))
    return Mapped(nest.value, over) if type(nest) is Held else nest


def custom_mapped(over: Map, custom: Callable, bound: Any, arrays: Sequence[Any]) -> tuple:
    """A function with a custom rule, of mapped values that are differentiated by older tapes."""
    mapped = [is_mapped(over, x) for x in arrays]
    values = [x.value if each else x for x, each in zip(arrays, mapped)]
    return tuple(Mapped(y, over) for y in custom(CustomRule(over, bound, mapped), *values))
