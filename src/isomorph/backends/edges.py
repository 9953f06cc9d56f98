"""Edge cases in which frameworks differ and all our backends agree: infinities, and variances
without enough elements.
"""

from __future__ import annotations

from typing import Any


def is_left(shape: Any, axis: Any, correction: float) -> bool:
    """Whether a variance over `axis` has more elements than its correction subtracts; else it is
    NaN.
    """
    if axis is None:
        axis = range(len(shape))
    elif isinstance(axis, int):
        axis = (axis,)
    count = 1
    for i in axis:
        count *= shape[i]
    return count > correction


def check_mode(mode: str) -> None:
    """`pad` is defined for one mode; frameworks disagree on the others."""
    if mode != "constant":
        raise ValueError(f"pad: needed mode 'constant', got {mode!r}")


def logaddexp(xp: Any, a: Any, b: Any) -> Any:
    """log(eᵃ + eᵇ) of two real arrays of the same dtype. The gradient is their softmax, at
    infinities its limit: 1 for the greater, ½ for each of two equal ones.
    """
    swap = a < b
    high, low = xp.where(swap, b, a), xp.where(swap, a, b)
    equal = xp.isinf(high) & (high == low)
    gap = xp.where(equal, xp.zeros_like(low), low) - xp.where(equal, xp.zeros_like(high), high)
    return xp.where(equal, 0.5 * a + 0.5 * b, high + xp.log1p(xp.exp(gap)))
