"""Updates of a part of an array that return a new array. The array may be traced or not."""

from __future__ import annotations

from typing import Any

import numpy

from .adding import takes_once
from .levels import newest
from .mapped import Mapped, Unbatchable, batched, getitem
from .storage import AT as IN_PLACE
from .tape import primitive, rule
from .traced import concrete, plain

np: Any = numpy  # its type stubs do not know traced values
MANY = 1000  # mapped positions that are compared with each other
AT = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}

IN_PLACE |= {
    np.add: lambda x, i, v: updated(x, i, v, "add"),
    np.subtract: lambda x, i, v: updated(x, i, np.negative(v), "add"),
    np.multiply: lambda x, i, v: updated(x, i, v, "multiply"),
    np.minimum: lambda x, i, v: updated(x, i, v, "min"),
    np.maximum: lambda x, i, v: updated(x, i, v, "max"),
}


def updated(x: Any, index: Any, value: Any, how: str) -> Any:
    """A copy of `x` with `x[index]` set to `value`, or combined with it."""
    top = newest((x, index, value))
    if type(top) is Mapped:
        return batched(top.tape, updated, (x, index, value, how), {})
    if top is not None:
        index = concrete(index)
        if how == "add":
            return added(x, value, index)
        if how == "set":
            return replaced(x, value, index)
        if takes_once(index):
            return replaced(x, AT[how](getitem(x, index), value), index)
        where = getitem(np.arange(x.size).reshape(x.shape), index)
        turns = _in_turns if type(where) is not Mapped else _in_mapped_turns
        return turns(x, value, where, AT[how])
    return replaced(x, value, index) if how == "set" else combined(x, value, index, AT[how])


@primitive
def replaced(x: Any, value: Any, index: Any) -> Any:
    y = np.array(x)
    y[index] = value
    return y


def combined(x: Any, value: Any, index: Any, ufunc: numpy.ufunc) -> Any:
    y = np.array(x)
    if takes_once(index):
        y[index] = ufunc(y[index], value)
    else:
        ufunc.at(y, index, value)
    return y


@primitive
def added(x: Any, value: Any, index: Any) -> Any:
    return combined(x, value, index, np.add)


@rule(replaced)
def _replaced(y, x, value, index):
    kept = replaced(np.ones(y.shape, bool), False, index)
    to_x = lambda g: np.where(kept, g, 0.0)
    if takes_once(index):
        return to_x, lambda g: getitem(g, index)
    where = getitem(np.arange(y.size).reshape(y.shape), index)
    turns = np.arange(where.size).reshape(where.shape)
    last = replaced(np.zeros(y.size, int), turns, where)
    stays = getitem(last, where) == turns  # if a position is set twice, the last value counts
    return to_x, lambda g: np.where(stays, getitem(g, index), 0.0)


@rule(added)
def _added(y, x, value, index):
    return lambda g: g, lambda g: getitem(g, index)


def _in_turns(x: Any, value: Any, where: Any, ufunc: numpy.ufunc) -> Any:
    """`x` combined with `value` at the flat positions `where`, which may repeat. This is done in
    several turns, each of which has every position at most once.
    """
    flat, value = np.reshape(x, -1), np.reshape(np.broadcast_to(value, where.shape), -1)
    where = where.reshape(-1)
    order = np.argsort(where, kind="stable")
    first = np.searchsorted(where[order], where[order])
    turn = np.empty_like(where)
    turn[order] = np.arange(where.size) - first  # how often the position occurred before
    for i in range(int(turn.max(initial=-1)) + 1):
        spots = np.flatnonzero(turn == i)
        places = where[spots]
        flat = replaced(flat, ufunc(flat[places], value[spots]), places)
    return np.reshape(flat, x.shape)


def _in_mapped_turns(x: Any, value: Any, where: Any, ufunc: numpy.ufunc) -> Any:
    """The same for positions that differ from example to example. In each turn, positions that are
    not due write to a place beyond the end.
    """
    value = np.ravel(np.broadcast_to(value, where.shape))
    size, where = x.size, np.ravel(where)
    if where.size > MANY:
        raise Unbatchable(where.tape, "iso.at(x)[i].multiply, min or max at many mapped positions")
    turn = np.sum(np.tril(where[:, None] == where, -1), -1)  # how often it occurred before
    flat = np.concatenate([np.ravel(x), np.zeros(1, x.dtype)])
    for i in range(int(plain(turn).max(initial=-1)) + 1):
        places = np.where(turn == i, where, size)
        flat = replaced(flat, ufunc(getitem(flat, places), value), places)
    return np.reshape(flat[:size], x.shape)
