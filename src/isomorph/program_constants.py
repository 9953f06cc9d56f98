"""Functions whose results are constants of a program, for compilers that read Python code: they
call such a function, where reading it they would stop, at a context variable, or warn, of a cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FUNCTIONS: list[Callable[..., Any]] = []
MARKS: list[Callable[[Callable[..., Any]], None]] = []


def constant(func: Callable[..., Any]) -> Callable[..., Any]:
    """`func`, which is called while a program is made, and not a part of it."""
    FUNCTIONS.append(func)
    for mark in MARKS:
        mark(func)
    return func


def mark_constants(mark: Callable[[Callable[..., Any]], None]) -> None:
    """Let a backend mark these functions, those to come too, as its compiler wants them marked."""
    MARKS.append(mark)
    for func in FUNCTIONS:
        mark(func)
