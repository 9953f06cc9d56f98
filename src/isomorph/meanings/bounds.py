"""Integers that choose rows or classes, and those that choose none."""

from __future__ import annotations

from typing import Any


def strays(xp: Any, name: str, numbers: Any, size: int, what: str) -> Any:
    """Which of `numbers`, labels or the like, are not from 0 to less than `size`: None if none is.

    Where they can be read without waiting for a device, those raise; the caller makes NaN of the
    others.
    """
    inside = xp.is_inside(numbers, size)
    if inside is None:
        low = numbers < 0
        # a narrow dtype may not hold the size: then nothing is too large
        return low | (numbers >= size) if size <= xp.iinfo(numbers.dtype).max else low
    if not inside:
        refuse(xp, name, numbers, size, what)
    return None


def refuse(xp: Any, name: str, numbers: Any, size: int, what: str) -> None:
    """Raise, if one of `numbers` is not from 0 to less than `size`."""
    found = xp.values(numbers)
    wrong = found[(found < 0) | (found >= size)]
    if wrong.size:
        raise IndexError(
            f"{name}: needed {what} from 0 to {size - 1}, got {wrong.flat[0]}"
        ) from None
