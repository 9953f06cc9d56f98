"""A number of places of an axis from an unknown start, in a traced program.

Composed of gathers and selections, which every compiler takes for any start, and which have
gradients. A window outside the axis reads NaN (for integers the nearest elements) and writes
nothing.
"""

from __future__ import annotations

from typing import Any


def placed(xp: Any, start: Any, length: int, size: int) -> tuple[Any, Any]:
    """The start, not negative and moved inside the axis, and whether it had to be moved."""
    if length > size:
        raise IndexError(f"at(x)[index]: needed at most {size} places, got {length}")
    start = xp.astype(start, xp.asarray(0).dtype)
    first = xp.where(start < 0, start + size, start)
    inside = xp.clip(first, 0, size - length)
    return inside, first == inside


def read(xp: Any, x: Any, start: Any, length: int, axis: int) -> Any:
    """`x` along `axis` from `start` on, `length` places."""
    start, fits = placed(xp, start, length, x.shape[axis])
    steps = xp.arange(length, dtype=start.dtype, device=xp.device_of(start))
    part = xp.take(x, steps + start, axis=axis)
    return xp.where(fits, part, xp.nan * xp.ones_like(part)) if xp.is_float(x.dtype) else part


def written(xp: Any, x: Any, part: Any, start: Any, axis: int) -> Any:
    """A copy of `x` with `part` along `axis` from `start` on."""
    size, length = x.shape[axis], part.shape[axis]
    start, fits = placed(xp, start, length, size)
    place = xp.arange(size, dtype=start.dtype, device=xp.device_of(start)) - start
    here = (place >= 0) & (place < length) & fits
    if length != 1:
        part = xp.take(part, xp.clip(place, 0, max(length - 1, 0)), axis=axis)
    rest = (1,) * (len(x.shape) - axis - 1)
    return xp.where(xp.reshape(here, (size, *rest)), part, x) if length else x
