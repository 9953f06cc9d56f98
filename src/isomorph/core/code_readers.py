"""What to tell compilers that read Python code (torch's Dynamo) about a function that they cannot
or should not read: its result is a constant of the program, or another function to read instead.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CellType
from typing import Any

Func = Callable[..., Any]
EMPTY = CellType()  # a cell of a closure without a value; it is equal to others without one
TOLD: list[tuple[Func, Func | None]] = []
READERS: list[Callable[[Func, Func | None], None]] = []


def constant(func: Func) -> Func:
    """`func`, called while a program is traced; its result becomes a constant of the program."""
    return read_as(func, None)


def read_as(func: Func, instead: Func | None) -> Func:
    """`func`, for which the compiler reads the equivalent `instead`; with None it calls `func`."""
    TOLD.append((func, instead))
    for tell in READERS:
        tell(func, instead)
    return func


def reader(tell: Callable[[Func, Func | None], None]) -> Callable[[Func, Func | None], None]:
    """Register a backend's way to tell its compiler about these functions, past and future."""
    READERS.append(tell)
    for func, instead in TOLD:
        tell(func, instead)
    return tell
