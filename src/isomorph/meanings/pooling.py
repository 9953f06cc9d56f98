"""Pooling."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

from .shapes import Pairs, Sizes


class PoolPlan(NamedTuple):
    """The settings of a pooling."""

    window: Sizes
    strides: Sizes
    pads: Pairs
    size: Sizes  # of the result
    first: bool  # x and the result are [batch, channels, *sizes], else [batch, *sizes, channels]
    largest: bool  # the maximum of each window, else the mean
    counts_pads: bool = False  # whether padding counts in the mean, as zeros


def pool(xp: Any, x: Any, plan: PoolPlan) -> Any:
    window, strides, pads, size, first, largest, counts_pads = plan
    start = 2 if first else 1
    shape = tuple(x.shape)
    around = [(0, 0)] * len(shape)
    around[start : start + len(pads)] = pads
    padded = any(low or high for low, high in pads)
    if largest:
        full = xp.pad(x, around, constant_values=-xp.inf) if padded else x
        return xp.max(xp.stack(_windows(full, window, strides, size, start)), axis=0)
    full = xp.pad(x, around) if padded else x
    total = xp.sum(xp.stack(_windows(full, window, strides, size, start)), axis=0)
    if counts_pads or not padded:
        n = 1
        for w in window:
            n *= w
        return total / n
    ones = xp.ones((1, *shape[1:]), dtype=x.dtype, device=xp.device_of(x))
    seen = xp.stack(_windows(xp.pad(ones, around), window, strides, size, start))
    return total / xp.sum(seen, axis=0)


def adaptive_pool(xp: Any, x: Any, size: Sizes, first: bool, largest: bool) -> Any:
    reduce = xp.max if largest else xp.mean
    for axis, wanted in enumerate(size, 2 if first else 1):
        n = x.shape[axis]
        parts = []
        for i in range(wanted):
            low, high = i * n // wanted, -(-(i + 1) * n // wanted)
            index = (*(slice(None),) * axis, slice(low, high), ...)
            parts.append(reduce(x[index], axis=axis))
        x = xp.stack(parts, axis=axis)
    return x


def _windows(x: Any, window: Sizes, strides: Sizes, size: Sizes, start: int) -> list[Any]:
    """One array for each position in the window, with the element at that position of every
    window.
    """
    found = []
    for place in product(*map(range, window)):
        cuts = [slice(p, p + (n - 1) * s + 1, s) for p, n, s in zip(place, size, strides)]
        found.append(x[(*(slice(None),) * start, *cuts, ...)])
    return found
