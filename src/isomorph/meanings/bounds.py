"""Integers that select rows or classes, and those outside the range."""

from __future__ import annotations

from typing import Any


def strays(xp: Any, name: str, numbers: Any, size: int, what: str) -> Any:
    """Which of `numbers`, for example labels, are outside 0 … `size` - 1; None if all are inside.

    If they can be read without waiting for a device, this raises instead; otherwise the caller
    makes their results NaN.
    """
    inside = xp.is_inside(numbers, size)
    if inside is None:
        low = numbers < 0
        # a narrow dtype may not hold the size: then no number is too large
        return low | (numbers >= size) if size <= xp.iinfo(numbers.dtype).max else low
    if not inside:
        refuse(xp, name, numbers, size, what)
    return None


def refuse(xp: Any, name: str, numbers: Any, size: int, what: str) -> None:
    """Raise if one of `numbers` is outside 0 … `size` - 1."""
    found = xp.values(numbers)
    wrong = found[(found < 0) | (found >= size)]
    if wrong.size:
        raise IndexError(
            f"{name}: needed {what} from 0 to {size - 1}, got {wrong.flat[0]}"
        ) from None
