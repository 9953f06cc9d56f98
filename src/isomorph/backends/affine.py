"""How far apart two numbers of a traced program are: both are followed back to one number, over
what has been added on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# What a backend tells of a number: None where it comes from elsewhere, else the number it is made
# of and how much was added.
Step = Callable[[Any], "tuple[Any, int] | None"]


def distance(start: Any, stop: Any, step: Step, same: Callable[[Any, Any], bool]) -> int | None:
    first, low = _origin(start, step)
    last, high = _origin(stop, step)
    return high - low if same(first, last) else None


def constant_difference(start: tuple[tuple, Any], stop: tuple[tuple, Any]) -> int | None:
    """How far apart the numbers of all examples are, where that is one distance; each comes with
    what maps it, which must be the same.
    """
    (maps, low), (others, high) = start, stop
    if not maps or maps != others or low is None or high is None or low.shape != high.shape:
        return None
    apart = high - low
    first = int(apart.reshape(-1)[0]) if apart.shape != () and 0 not in apart.shape else None
    return first if first is not None and bool((apart == first).all()) else None


def _origin(x: Any, step: Step) -> tuple[Any, int]:
    total = 0
    for _ in range(100):
        found = step(x)
        if found is None:
            break
        x, more = found
        total += more
    return x, total
