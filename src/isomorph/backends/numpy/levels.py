"""What the two transforms on NumPy share: `tape` differentiates, `mapped` adds an axis of examples.

Each call of a transform has a level; a later call has a higher one. A function called on values of
several transforms is handled by the newest of them, and its own values may belong to older ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

TRACED: dict[Callable, Callable] = {}  # a NumPy function -> its version for traced values
BATCHED: dict[Callable, Callable] = {}  # a function -> its version for mapped values
LIFTED: set[type] = set()  # the types of values of a transform
RUNNING: list[Any] = []  # the maps that run now, in all threads; mostly there are none
OPEN: list[Any] = []  # the tapes whose functions run now, in all threads
LEVELS = count()


def newest(args: Iterable[Any]) -> Any:
    """The value of the newest transform among `args`, or in lists and tuples among them; None if
    all are plain.
    """
    top, level = None, -1
    for a in args:
        kind = type(a)
        if kind in LIFTED:
            if a.tape.level > level:
                top, level = a, a.tape.level
        elif kind is tuple or kind is list:
            inner = newest(a)
            if inner is not None and inner.tape.level > level:
                top, level = inner, inner.tape.level
    return top
