"""Checks of integers that select rows or classes."""

from __future__ import annotations

from typing import Any


def strays(xp: Any, name: str, numbers: Any, size: int, what: str) -> Any:
    """Check that `numbers`, for example labels, are within 0 … `size` - 1.

    If they can be read without waiting for a device, a number outside raises, and the result is
    None. Otherwise the result says which numbers are outside; the caller makes their results NaN.
    """
    inside = xp.is_inside(numbers, size)
    if inside is None:
        low = numbers < 0
        # if the dtype is too narrow for `size`, no number can be too large
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
