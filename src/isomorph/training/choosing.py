"""Whether `compiled="auto"` compiles: where the steps asked for pay it back.

The choice goes by counts and sizes only, never by the clock or by what a cache holds, so that the
same call gives the same bits. `benchmarks/waits.py` measures what it is worth.
"""

from __future__ import annotations

from typing import Any, Literal

from ..core import tree
from ..core.dispatch import find_backend
from ..distribute.world import World
from .data import Arrays, Stream

Compiled = bool | Literal["auto"]


def check_compiled(name: str, compiled: Any) -> None:
    if type(compiled) is not bool and compiled != "auto":
        raise ValueError(f'{name}: needed compiled as True, False or "auto", got {compiled!r}')


def pays(nest: Any, calls: int | None, rows: int = 1, like: Any = None) -> bool:
    """Whether so many calls with the arrays of a nest, each of so many rows, are faster with
    compiling than without. None is an unknown number of calls. An array `like` tells the backend if
    the nest has no arrays.
    """
    arrays = [x for x in tree.flatten_whole(nest)[0] if find_backend(x) is not None]
    first = arrays[0] if arrays else like
    xp: Any = find_backend(first)
    price = None if xp is None else xp.price(first)
    if calls is None or price is None:
        return True
    count, numbers = len(arrays), rows * sum(map(size, arrays))
    saved = price.step + price.step_array * count + price.step_number * numbers
    return calls * saved > price.program + price.program_array * count


def chosen(
    compiled: Compiled, model: Any, data: Arrays | Stream, rows: int, world: World | None
) -> tuple[bool, bool]:
    """Whether the batches of one pass over the data are compiled, and a smaller last one."""
    if compiled != "auto":
        return compiled, True
    if world is not None:
        return True, True
    like = data.leaves[0] if isinstance(data, Arrays) else None
    return pays(model, data.batches, rows, like), pays(model, 1, rows, like)


def size(x: Any) -> int:
    n = 1
    for length in x.shape:
        n *= int(length)
    return n
