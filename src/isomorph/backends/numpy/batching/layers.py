"""Convolution: examples are folded into the samples, or, if each has filters of its own, into the
groups of channels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from ....meanings.conv_plan import Plan
from ..convolution import back_w, back_x, conv
from ..mapped import Map, Mapped, is_mapped, rule, value_of

np: Any = numpy  # its type stubs do not know mapped values


def _samples(x: Any) -> Any:
    """All examples as more samples."""
    return np.reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))


def _examples(over: Map, x: Any) -> Any:
    return Mapped(np.reshape(x, (over.size, x.shape[0] // over.size, *x.shape[1:])), over)


def _channels(x: Any, plan: Plan) -> Any:
    """All examples as more channels."""
    axis = 1 if plan.first else x.ndim - 2
    x = np.moveaxis(x, 0, axis)
    return np.reshape(x, (*x.shape[:axis], x.shape[axis] * x.shape[axis + 1], *x.shape[axis + 2 :]))


def _apart(over: Map, x: Any, plan: Plan) -> Any:
    """The inverse of `_channels`."""
    axis = 1 if plan.first else x.ndim - 1
    n = x.shape[axis]
    x = np.reshape(x, (*x.shape[:axis], over.size, n // over.size, *x.shape[axis + 1 :]))
    return Mapped(np.moveaxis(x, axis, 0), over)


def _filters(w: Any, plan: Plan) -> Any:
    """The filters of all examples as those of more output channels."""
    if plan.filters_first:
        return np.reshape(w, (w.shape[0] * w.shape[1], *w.shape[2:]))
    w = np.moveaxis(w, 0, -2)
    return np.reshape(w, (*w.shape[:-2], w.shape[-2] * w.shape[-1]))


def _filters_apart(over: Map, w: Any, plan: Plan) -> Any:
    if plan.filters_first:
        return Mapped(np.reshape(w, (over.size, w.shape[0] // over.size, *w.shape[1:])), over)
    w = np.reshape(w, (*w.shape[:-1], over.size, w.shape[-1] // over.size))
    return Mapped(np.moveaxis(w, -2, 0), over)


def _grouped(over: Map, plan: Plan) -> Plan:
    return plan._replace(groups=plan.groups * over.size)


def _more_channels(over: Map, shape: tuple[int, ...], plan: Plan) -> tuple[int, ...]:
    axis = 1 if plan.first else len(shape) - 1
    return (*shape[:axis], shape[axis] * over.size, *shape[axis + 1 :])


def _more_filters(over: Map, shape: tuple[int, ...], plan: Plan) -> tuple[int, ...]:
    if plan.filters_first:
        return (shape[0] * over.size, *shape[1:])
    return (*shape[:-1], shape[-1] * over.size)


@rule(conv)
def convolved(over: Map, func: Callable, x: Any, w: Any, plan: Plan) -> Any:
    if not is_mapped(over, w):
        return _examples(over, conv(_samples(x.value), w, plan))
    x, w = _channels(value_of(over, x), plan), _filters(w.value, plan)
    return _apart(over, conv(x, w, _grouped(over, plan)), plan)


@rule(back_x)
def pulled_to_x(
    over: Map, func: Callable, g: Any, w: Any, plan: Plan, shape: tuple[int, ...]
) -> Any:
    if not is_mapped(over, w):
        wide = (shape[0] * over.size, *shape[1:])
        return _examples(over, back_x(_samples(g.value), w, plan, wide))
    g, w = _channels(value_of(over, g), plan), _filters(w.value, plan)
    wide = _more_channels(over, shape, plan)
    return _apart(over, back_x(g, w, _grouped(over, plan), wide), plan)


@rule(back_w)
def pulled_to_filters(
    over: Map, func: Callable, x: Any, g: Any, plan: Plan, shape: tuple[int, ...]
) -> Any:
    x, g = (_channels(value_of(over, a), plan) for a in (x, g))
    wide = _more_filters(over, shape, plan)
    return _filters_apart(over, back_w(x, g, _grouped(over, plan), wide), plan)
