"""Checks of shapes and of arguments such as strides and padding, which have one value per axis.

Results are cached (`remembered`), because computing them costs more than a small layer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any, SupportsIndex

from ..core.code_readers import read_as

Pairs = tuple[tuple[int, int], ...]
Sizes = tuple[int, ...]

GENERAL = ("channel_last", "channel_first")


def remembered(make: Callable[..., Any], most: int = 4096) -> Callable[..., Any]:
    """A pure function that caches its results by its arguments.

    Not `functools.lru_cache`, because torch's compiler warns about it; that compiler reads `make`
    instead, where sizes may differ from call to call. Numbers in the arguments must be ints,
    because 1.0 would find the result for 1. A size without a value yet has no hash: then nothing is
    cached.
    """
    known: dict[tuple, Any] = {}

    def call(*args: Any) -> Any:
        try:
            found = known.get(args, known)
        except TypeError:
            return make(*args)
        if found is known:
            found = make(*args)
            if len(known) >= most:
                known.clear()
            known[args] = found
        return found

    return read_as(call, make)


def shape_of(name: str, word: str, x: Any) -> Any:
    """The shape of an argument that must be an array, unchanged."""
    try:
        return x.shape
    except AttributeError:
        raise TypeError(f"{name}: needed an array as {word}, got {type(x).__name__}") from None


def known(shape: Any) -> Sizes:
    """A shape for `reshape`: the size that is not known (None) becomes -1."""
    return tuple([-1 if n is None else n for n in shape])


def spread(name: str, word: str, value: Any, n: int) -> Sizes:
    """A positive int, or one per axis, as a tuple with one per axis."""
    if isinstance(value, int):
        if value > 0:
            return (int(value),) * n
    elif isinstance(value, Sequence) and not isinstance(value, str) and len(value) == n:
        try:
            found = tuple([int(index(i)) for i in value])
        except TypeError:
            found = (0,)
        if min(found) > 0:
            return found
    elif isinstance(value, SupportsIndex):
        return spread(name, word, index(value), n)
    raise ValueError(f"{name}: needed {word} as a positive int or {n} of them, got {value!r}")


def pairs(name: str, padding: Any, n: int) -> Any:
    """Padding as "SAME", "VALID" or (low, high) pairs."""
    if isinstance(padding, str):
        word = padding.upper()
        if word in ("SAME", "VALID"):
            return word
    elif isinstance(padding, int):
        return ((int(padding), int(padding)),) * n
    elif isinstance(padding, Sequence):
        each: Any = padding
        try:
            found = tuple([(index(low), index(high)) for low, high in each])
        except (TypeError, ValueError):  # not pairs, or not of ints
            found = ()
        if len(found) == n:
            return found
    raise ValueError(
        f'{name}: needed padding as "SAME", "VALID", an int or {n} (low, high) pairs, got '
        f"{padding!r}"
    )


def is_first(name: str, word: str, value: Any, formats: tuple[str, str]) -> bool:
    """Whether a format, one of a pair, is the one with channels first."""
    if value == formats[0]:
        return False
    if value == formats[1]:
        return True
    raise ValueError(f'{name}: needed {word} "{formats[0]}" or "{formats[1]}", got {value!r}')


def other_side(shape: Any, fits: bool, first: bool, formats: tuple[str, str] = GENERAL) -> str:
    """The end of an error message, if the channels of x seem to be on the other side; else "".
    They do if the shape `fits` with the channels there, and if they differ from the size beside.
    """
    beside = slice(-2, None) if first else slice(1, 3)
    if not fits or len(shape) < 3 or len(set(shape[beside])) < 2:
        return ""
    there, move = ("last", "-1, 1") if first else ("first", "1, -1")
    return (
        f"; x {list(shape)} looks as if its channels were {there}: write "
        f'data_format="{formats[0] if first else formats[1]}", or xp.moveaxis(x, {move})'
    )


def broadcast(*shapes: tuple) -> tuple | None:
    """The common shape that `shapes` broadcast to; None if there is none. A size that is not known
    (None) fits any size.
    """
    first = shapes[0]
    if all(s == first for s in shapes[1:]):
        return first
    out = []
    for i in range(1, max(map(len, shapes)) + 1):
        sizes = {s[-i] for s in shapes if len(s) >= i} - {1}
        known = sizes - {None}
        if len(known) > 1:
            return None
        out.append(next(iter(known or sizes), 1))
    return tuple(reversed(out))
