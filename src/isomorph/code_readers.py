"""What compilers that read Python code are told of a function that they cannot read, or should not:
that its result is a constant of the program, or what to read in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Func = Callable[..., Any]
TOLD: list[tuple[Func, Func | None]] = []
READERS: list[Callable[[Func, Func | None], None]] = []


def constant(func: Func) -> Func:
    """`func`, which is called while a program is made: it reads a context variable, say."""
    return read_as(func, None)


def read_as(func: Func, instead: Func | None) -> Func:
    """`func`, in whose place `instead` is read, which gives the same; None: it is called."""
    TOLD.append((func, instead))
    for tell in READERS:
        tell(func, instead)
    return func


def reader(tell: Callable[[Func, Func | None], None]) -> Callable[[Func, Func | None], None]:
    """Let a backend tell its compiler of these functions, and of those to come."""
    READERS.append(tell)
    for func, instead in TOLD:
        tell(func, instead)
    return tell
