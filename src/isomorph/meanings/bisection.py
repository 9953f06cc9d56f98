"""Where numbers belong among sorted ones."""

from __future__ import annotations

from typing import Any


def bisected(xp: Any, x: Any, values: Any, side: str, dtype: Any) -> Any:
    """`searchsorted` by bisection, in as many steps as the number of elements has bits."""
    n = x.shape[-1]
    low = xp.zeros_like(values, dtype=dtype)
    high = xp.full_like(low, n)
    for _ in range(int(n).bit_length()):
        middle = (low + high) // 2
        found = xp.take_along_axis(x, xp.minimum(middle, xp.full_like(middle, n - 1)), axis=-1)
        if side == "left":
            goes_on = _less(xp, found, values)
        else:
            goes_on = xp.logical_not(_less(xp, values, found))
        goes_on = xp.logical_and(goes_on, low < high)
        high = xp.where(goes_on, high, middle)
        low = xp.where(goes_on, middle + 1, low)
    return low


def _less(xp: Any, x: Any, y: Any) -> Any:
    """Whether x < y, where NaN is larger than any number."""
    if not xp.is_float(x.dtype):
        return x < y
    return xp.logical_or(x < y, xp.logical_and(xp.isnan(y), xp.logical_not(xp.isnan(x))))
