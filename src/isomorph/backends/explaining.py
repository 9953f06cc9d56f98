"""Hints about what to write instead, added to errors of the frameworks.

The error keeps its type, so that existing handlers still catch it; our sentence is the end of its
message.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

DECIDES = (
    "isomorph: a value cannot decide which Python code runs while a function is traced; write "
    "iso.cond(pred, true_fun, false_fun, *operands), iso.while_loop or xp.where, or name the "
    "argument in iso.jit(..., static=)"
)
INDEX = (
    "isomorph: an array was used as a plain Python index or number; write iso.at(x)[i].get() to "
    "read, iso.at(x)[i].set(v) to assign, iso.fori_loop to count, or name the argument in "
    "iso.jit(..., static=)"
)
NUMBER = (
    "isomorph: a value cannot become a Python number while a function is traced; keep it as an "
    "array, or name the argument in iso.jit(..., static=)"
)

MASK = (
    "isomorph: a mask that the function computes decides the shape of the result, which is "
    "not known while it is traced; write xp.where(mask, new, x), which keeps the shape"
)
LEAVES = (
    "isomorph: a value was passed to NumPy, or put into a NumPy array, while a function is "
    "traced or differentiated, and its gradient would be lost; write iso.at(a)[i].set(x) with an "
    "array of x's own framework, and use the functions of iso.namespace(x)"
)

DEVICES = (
    "isomorph: the arrays of one call are on different devices; move them to one with "
    "iso.convert(x, backend, device=...)"
)


def add(error: BaseException, *sentences: str) -> None:
    """Append sentences to an error's message, once."""
    for sentence in sentences:
        if sentence not in str(error):
            error.args = (f"{str(error).rstrip()}\n{sentence}", *error.args[1:])


def explained(xp: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """`func`, to whose errors the backend adds what to write instead."""

    @wraps(func)
    def call(*args: Any, **kw: Any) -> Any:
        try:
            return func(*args, **kw)
        except Exception as error:
            xp.explain(error)
            raise

    return call
