"""What to write instead, added to errors of the frameworks that users of all four meet.

The error stays the framework's own, of its type, so that whoever catches it still does; our
sentence is the last of its message.
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
    "isomorph: a mask that is computed inside of the function decides how large the result is, and "
    "that is not known while it is traced; write xp.where(mask, new, x), which keeps the shape"
)
LEAVES = (
    "isomorph: a value was given to NumPy, or put into an array of NumPy's, where a function is "
    "traced or differentiated, and its gradient would be lost; write iso.at(a)[i].set(x) with an "
    "array of x's own framework, and the functions of iso.namespace(x)"
)


def add(error: BaseException, *sentences: str) -> None:
    """Put sentences at the end of an error's message, once."""
    for sentence in sentences:
        if sentence not in str(error):
            error.args = (f"{str(error).rstrip()}\n{sentence}", *error.args[1:])


def explained(xp: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """`func`, of whose errors the backend says what to write instead."""

    @wraps(func)
    def call(*args: Any, **kw: Any) -> Any:
        try:
            return func(*args, **kw)
        except Exception as error:
            xp.explain(error)
            raise

    return call
