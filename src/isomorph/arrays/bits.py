"""Bits of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..dispatch import backend_of, dtype_of, find_backend

if TYPE_CHECKING:
    from ..array_types import A


def logical_right_shift(x: A, n: Any, /) -> A:
    """The bits of integers moved to the right by `n`, with zeros moved in on the left, also for
    negative numbers. 0 if `n`, an integer or an integer array, is not in 0 … bits - 1.

    >>> iso.logical_right_shift(np.array([-1, 8], dtype=np.int8), 1)
    array([127,   4], dtype=int8)
    """
    xp: Any = backend_of(x, n)
    for z in (x, n):
        if find_backend(z) is not None and not xp.isdtype(z.dtype, "integral"):
            raise TypeError(f"logical_right_shift: needed integers, got {dtype_of(z)}")
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
