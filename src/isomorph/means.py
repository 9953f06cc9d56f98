"""Means that know what they are means of: parts of unequal size make one mean of all only by their
totals and their counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from .dispatch import NUMBERS, dtype_of, find_backend


class Mean(NamedTuple):
    """A mean as a total and the count it is to be divided by: what a loss or a metric returns in
    place of a scalar where parts of a batch, or batches, count unequally.

    `total` is a floating-point array without axes, `count` a number or such an array, a constant to
    differentiation. Parts become one mean by Σ totals / Σ counts; one whose count is 0 adds
    nothing, and where all are 0 the mean is NaN. The losses of isomorph give one with
    `reduction="counted"`; `mean * number` and `mean + number` are the means of what is scaled and
    shifted so. A nest of two arrays, also to the frameworks' own transforms.

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

    # A tuple would be repeated and joined.

    def __mul__(self, factor: Any) -> Mean:  # pyright: ignore[reportIncompatibleMethodOverride]
        _check_term("*", factor)
        return Mean(self.total * factor, self.count)

    def __add__(self, term: Any) -> Mean:  # pyright: ignore[reportIncompatibleMethodOverride]
        _check_term("+", term)
        is_array = find_backend(self.count) is not None and find_backend(self.total) is not None
        count = like(self.count, self.total) if is_array else self.count
        return Mean(self.total + term * count, self.count)

    __rmul__, __radd__ = __mul__, __add__  # pyright: ignore[reportAssignmentType]
    __array_ufunc__ = None  # a NumPy number before it leaves the operation to it


def divided(xp: Any, mean: Mean) -> tuple[Any, Any]:
    """The value of a mean, some finite number where its count is 0, and whether that is not 0:
    None where no program has to ask.
    """
    total, count = wide(xp, mean.total), mean.count
    if type(count) in NUMBERS and count:
        return total / count, None
    count = like(count, total)
    counts = count != 0
    return total / xp.where(counts, count, xp.ones_like(count)), counts


def wide(xp: Any, x: Any) -> Any:
    """An array that can be summed and counted with, in float32 if it is narrower: those end at
    65504 or know no 257.
    """
    usual = x.dtype in (xp.float32, xp.float64) or xp.is_complex(x.dtype)
    return x if usual else xp.astype(xp.asarray(x), xp.float32)


def like(x: Any, total: Any) -> Any:
    """A number, or an array without axes, as a constant of the kind and dtype of a total."""
    xp: Any = find_backend(total)
    if find_backend(x) is None:
        return xp.zeros_like(total) + x
    x = xp.stop_gradient(x, False)
    return x if x.dtype == total.dtype else xp.astype(xp.asarray(x), total.dtype)


def check_mean(name: str, mean: Mean, numbers: bool = False) -> None:
    """Refuse what is no mean of arrays without axes; its total may be a number if `numbers` may."""
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
    """A mean of what is met one after the other, in plain numbers."""

    total: float = 0.0
    count: float = 0.0

    def add(self, total: float, count: float) -> None:
        if count:  # else the total may be anything
            self.total, self.count = self.total + total, self.count + count

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else math.nan


def _check_term(sign: str, x: Any) -> None:
    if type(x) not in NUMBERS and (find_backend(x) is None or len(x.shape)):
        fix = "; by their values, or as one total and one count" if isinstance(x, Mean) else ""
        raise TypeError(
            f"Mean: needed a number or an array without axes for {sign}, got a "
            f"{type(x).__name__}{fix}"
        )
