"""Where a function writes its result: `out`, which may be given by position."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import signature


def out_by_name(func: Callable, args: tuple, kw: dict) -> tuple[tuple, dict]:
    """The arguments of a NumPy function with `out` and what comes after it as keywords."""
    place, names = _out_and_after(func)
    if len(args) <= place:
        return args, kw
    return args[:place], {**kw, **dict(zip(names, args[place:]))}


@cache
def _out_and_after(func: Callable) -> tuple[int, list[str]]:
    """The place of `out` among the arguments, and the names of the arguments from there on."""
    try:
        given = signature(func).parameters.values()
        names = [p.name for p in given if p.kind <= p.POSITIONAL_OR_KEYWORD]
    except (TypeError, ValueError):
        names = []
    place = names.index("out") if "out" in names else 99
    return place, names[place:]
