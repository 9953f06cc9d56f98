"""The difference of two integers of a traced program: both are traced back to their origin, adding
up the constants on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# What a backend knows about a number: the number it was computed from and the constant that was
# added, or None.
Step = Callable[[Any], "tuple[Any, int] | None"]


def distance(start: Any, stop: Any, step: Step, same: Callable[[Any, Any], bool]) -> int | None:
    first, low = _origin(start, step)
    last, high = _origin(stop, step)
    return high - low if same(first, last) else None


def constant_difference(start: tuple[tuple, Any], stop: tuple[tuple, Any]) -> int | None:
    """The difference of two batched integers, if it is the same for all examples; `maps` are the
    `vmap` levels of each, which must be equal.
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
