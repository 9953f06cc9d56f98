"""Means that carry their total and count, so that means of parts of unequal size can be combined
exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from .dispatch import NUMBERS, dtype_of, find_backend


class Mean(NamedTuple):
    """A mean, as a total and the count to divide it by. A loss or a metric returns it instead of a
    scalar when batches, or parts of a batch, have unequal weight.

    `total` is a floating-point array without axes, `count` a number or such an array, a constant to
    differentiation. Several are combined as Σ totals / Σ counts; one with count 0 adds nothing, and
    if all counts are 0 the mean is NaN. The losses of isomorph return one with
    `reduction="counted"`. `mean * number` and `mean + number` scale and shift the mean. A Mean is a
    nest of two arrays, also for the frameworks' own transforms.

    >>> labels = np.array([0, 3, -1])
    >>> loss = iso.cross_entropy(np.zeros((3, 4)), labels, ignore_index=-1, reduction="counted")
    >>> float(loss.count), float(loss.value)
    (2.0, 1.3862943611198906)
    """

    total: Any
    count: Any

    @property
    def value(self) -> Any:
        """total / count; NaN where the count is 0."""
        xp = find_backend(self.total)
        if xp is None:
            return self.total / self.count if self.count else math.nan
        value, counts = divided(xp, self)
        return value if counts is None else xp.where(counts, value, xp.full_like(value, math.nan))

    # Without these a tuple would be repeated and joined.

    def __mul__(self, factor: Any) -> Mean:  # pyright: ignore[reportIncompatibleMethodOverride]
        _check_term("*", factor)
        return Mean(self.total * factor, self.count)

    def __add__(self, term: Any) -> Mean:  # pyright: ignore[reportIncompatibleMethodOverride]
        _check_term("+", term)
        is_array = find_backend(self.count) is not None and find_backend(self.total) is not None
        count = like(self.count, self.total) if is_array else self.count
        return Mean(self.total + term * count, self.count)

    __rmul__, __radd__ = __mul__, __add__  # pyright: ignore[reportAssignmentType]
    __array_ufunc__ = None  # so that `np.float64(2) * mean` calls __rmul__


def divided(xp: Any, mean: Mean) -> tuple[Any, Any]:
    """The value of a mean (some finite number if its count is 0), and whether the count is not 0,
    as an array; None if that is known without computing.
    """
    total, count = wide(xp, mean.total), mean.count
    if type(count) in NUMBERS and count:
        return total / count, None
    count = like(count, total)
    counts = count != 0
    return total / xp.where(counts, count, xp.ones_like(count)), counts


def wide(xp: Any, x: Any) -> Any:
    """The array for sums and counts, as float32 if it is narrower: float16 ends at 65504, bfloat16
    cannot hold 257.
    """
    usual = x.dtype in (xp.float32, xp.float64) or xp.is_complex(x.dtype)
    return x if usual else xp.astype(xp.asarray(x), xp.float32)


def like(x: Any, total: Any) -> Any:
    """A number, or an array without axes, as a constant of the backend and dtype of `total`."""
    xp: Any = find_backend(total)
    if find_backend(x) is None:
        return xp.zeros_like(total) + x
    x = xp.stop_gradient(x, False)
    return x if x.dtype == total.dtype else xp.astype(xp.asarray(x), total.dtype)


def check_mean(name: str, mean: Mean, numbers: bool = False) -> None:
    """Raise unless total and count are arrays without axes, or numbers if `numbers` is true."""
    for what, x in zip(mean._fields, mean):
        xp: Any = find_backend(x)
        plain = numbers or what == "count"
        if xp is None:
            if plain and type(x) in NUMBERS[:-1]:
                continue
            got = f"a {type(x).__name__}"
        elif len(x.shape):
            got = f"one of shape {tuple(x.shape)}"
        elif xp.is_complex(x.dtype):
            got = dtype_of(x)
        else:
            continue
        needed = "a number or an array" if plain else "an array"
        raise TypeError(f"{name}: needed {needed} without axes as {what} of a Mean, got {got}")


@dataclass
class Running:
    """A running mean, in plain numbers."""

    total: float = 0.0
    count: float = 0.0

    def add(self, total: float, count: float) -> None:
        if count:  # with count 0 the total may be anything
            self.total, self.count = self.total + total, self.count + count

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else math.nan


def _check_term(sign: str, x: Any) -> None:
    if type(x) not in NUMBERS and (find_backend(x) is None or len(x.shape)):
        fix = "; use their .value, or add totals and counts" if isinstance(x, Mean) else ""
        raise TypeError(
            f"Mean: needed a number or an array without axes for {sign}, got a "
            f"{type(x).__name__}{fix}"
        )
