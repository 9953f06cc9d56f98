"""Bits of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.dispatch import backend_of, dtype_of

if TYPE_CHECKING:
    from ..types.array_types import A


def logical_right_shift(x: A, n: Any, /) -> A:
    """The bits of integers moved to the right by `n`, with zeros moved in on the left, also for
    negative numbers. 0 if `n` is not in 0 … bits - 1. One of the two may be a Python integer; it
    gets the dtype of the other.

    >>> iso.logical_right_shift(np.array([-1, 8], dtype=np.int8), 1)
    array([127,   4], dtype=int8)
    """
    xp: Any = backend_of(x, n)
    for z in (x, n):
        is_array = hasattr(z, "dtype")
        if type(z) is not int and not (is_array and xp.isdtype(z.dtype, "integral")):
            came = dtype_of(z) if is_array else repr(z)
            raise TypeError(f"logical_right_shift: needed integers, got {came}")
    if type(x) is int:
        least, most = (int(end) for end in (xp.iinfo(n.dtype).min, xp.iinfo(n.dtype).max))
        if not least <= x <= most:
            raise ValueError(
                f"logical_right_shift: needed an integer of {dtype_of(n)}, got {x}; give an array"
            )
        x = xp.full_like(n, x)
    limits = xp.iinfo(x.dtype)
    if type(n) is int:
        n = xp.full_like(x, n if 0 <= n < limits.bits else 127)
    some = xp.logical_and(n >= 0, n < limits.bits)
    by = xp.astype(xp.where(some, n, xp.zeros_like(n)), x.dtype)
    moved = xp.bitwise_right_shift(x, by)
    if int(limits.min) < 0:  # the sign was copied into the n highest bits
        signs = xp.bitwise_right_shift(xp.full_like(by, int(limits.min)), by)
        copies = xp.bitwise_left_shift(signs, xp.ones_like(signs))
        moved = xp.bitwise_and(moved, xp.bitwise_invert(copies))
    return xp.where(some, moved, xp.zeros_like(moved))
