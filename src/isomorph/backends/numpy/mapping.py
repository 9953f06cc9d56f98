"""`vmap` on NumPy: the function runs once on mapped values. If it does something that is not
possible for all examples at once, it runs once for each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from .holding import memory
from .mapped import Map, Mapped, Unbatchable, is_mapped, note_whole, running
from .storage import apart
from .traced import Traced

np: Any = numpy  # its type stubs do not know mapped values
PIECE = 32  # rows at a time of a Jacobian


def batch(func: Callable[..., tuple], rows: tuple) -> tuple:
    """The results of `func` for all rows of some arrays; raises if it needs one row at a time."""
    over = Map(rows[0].shape[0])
    with running(over):
        outs = func(*[Mapped(x, over) for x in rows])
        return _handed_out(over, outs, rows)


def vmap(by_rows: Callable, func: Callable[..., tuple], rows: tuple) -> tuple:
    """`batch`, or `by_rows` if that is not possible. After an error, rows are tried too: then its
    message shows the shapes of one example.
    """
    if not rows[0].shape[0]:
        return by_rows(func, *rows)
    over = Map(rows[0].shape[0])
    kind = reason = ""
    try:
        with running(over):
            outs = func(*[Mapped(_seen(x), over) for x in rows])
            return _handed_out(over, outs, rows)
    except Unbatchable as stop:
        if stop.over is not over:
            raise
        note_whole(stop.what)
    except Exception as error:
        kind, reason = type(error).__name__, f": {error}"
    found = by_rows(func, *[np.copy(x) for x in rows])
    if reason:  # the rows raised no error
        note_whole(kind, reason)
    return found


def _seen(x: Any) -> Any:
    """An argument as a view: what writes into it runs row by row, so that it is written once."""
    return x[...] if type(x) is Traced else x


def map_rows(by_rows: Callable, func: Callable[..., tuple], rows: tuple) -> tuple:
    """`vmap` of a pullback, some rows at a time: each needs memory like one backward pass."""
    size = rows[0].shape[0]
    if size < 2:
        return by_rows(func, *rows)
    found = []
    for start in range(0, size, PIECE):
        part = tuple(x[start : start + PIECE] for x in rows)
        try:
            found.append(batch(func, part))
        except Unbatchable as stop:
            note_whole(stop.what)
            return by_rows(func, *rows)
        except Exception:  # the same error, with the shapes of one row
            return by_rows(func, *rows)
    return found[0] if len(found) == 1 else tuple(map(np.concatenate, zip(*found)))


def _handed_out(over: Map, outs: tuple, rows: tuple) -> tuple:
    """The results for the caller: arrays of their own."""
    found, seen = [], {id(memory(x)) for x in rows}
    for y in outs:
        if is_mapped(over, y):
            y = y.value
            if y.shape[0] != over.size:
                raise ValueError(f"vmap: needed {over.size} examples, got shape {y.shape}")
        else:
            y = y if hasattr(y, "dtype") else np.asarray(y)
            y = np.broadcast_to(y, (over.size, *y.shape))
        if type(y) is numpy.ndarray and not y.flags.owndata:
            y = y.copy()
        found.append(apart(y, seen))
    return tuple(found)
