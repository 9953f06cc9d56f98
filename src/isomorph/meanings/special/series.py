"""Small functions that special functions are made of: polynomials, sines of multiples of π, and
exponentials and logarithms near 1, where those of some compilers lose digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


def polynomial(coefficients: Sequence[float], x: Any) -> Any:
    """A polynomial; the lowest power comes first."""
    if len(coefficients) == 1:
        return x * 0 + coefficients[0]
    total = x * coefficients[-1] + coefficients[-2]
    for c in coefficients[-3::-1]:
        total = total * x + c
    return total


def pick(xp: Any, where: Any, x: Any, otherwise: float) -> Any:
    """`x` where it is wanted, and a harmless number elsewhere."""
    return xp.where(where, x, xp.full_like(x, otherwise))


def sin_pi(xp: Any, x: Any) -> Any:
    """sin(π·x), exactly 0 for integers."""
    part = x - 2 * xp.round(x / 2)  # exact
    half = xp.where(part > 0.5, 1 - part, xp.where(part < -0.5, -1 - part, part))
    return xp.sin(math.pi * half)


def cos_pi(xp: Any, x: Any) -> Any:
    """cos(π·x), exactly ±1 for integers."""
    return xp.cos(math.pi * (x - 2 * xp.round(x / 2)))


def pi_cot_pi(xp: Any, x: Any) -> Any:
    """π/tan(π·x), where x is not an integer."""
    part = x - xp.round(x)
    size = xp.abs(part)
    steep = size < 0.25
    found = xp.where(
        steep,
        math.pi / xp.tan(math.pi * pick(xp, steep, size, 0.25)),
        math.pi * xp.tan(math.pi * (0.5 - pick(xp, xp.logical_not(steep), size, 0.5))),
    )
    return xp.where(part < 0, -found, found)


# The series of (atanh(s)/s - 1)/s² in s², up to s = 1/3.
ATANH = tuple(1.0 / (2 * k + 3) for k in range(16))


def log1p_minus(xp: Any, x: Any) -> Any:
    """log(1 + x) − x for x > −1, with a relative error of a few ulps."""
    near = xp.logical_and(x > -0.5, x < 1)
    small = pick(xp, near, x, 0.5)
    s = small / (2 + small)
    square = s * s
    series = s * (2 * square * polynomial(ATANH, square) - small)
    far = xp.where(near, xp.full_like(x, 1.0), x)
    return xp.where(near, series, xp.log(1 + far) - far)


def log1p(xp: Any, x: Any) -> Any:
    """log(1 + x) for x > −1, also where a compiler's own loses two digits."""
    near = xp.logical_and(x > -0.5, x < 1)
    small = pick(xp, near, x, 0.5)
    s = small / (2 + small)
    square = s * s
    series = 2 * s + 2 * s * square * polynomial(ATANH, square)
    far = xp.where(near, xp.full_like(x, 1.0), x)
    return xp.where(near, series, xp.log(1 + far))


EXPM1 = tuple(1.0 / math.factorial(k) for k in range(1, 15))


def expm1(xp: Any, x: Any) -> Any:
    """e^x − 1. That of one compiler subtracts 1 and loses all digits near 0."""
    near = xp.abs(x) < 0.5
    small = pick(xp, near, x, 0.25)
    return xp.where(near, small * polynomial(EXPM1, small), xp.exp(x) - 1)


def product(xp: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """x·y as the sum of two numbers, the second being the rounding error of the first.

    The digits are split in a way that stays right if a compiler fuses a product and a sum: every
    product but the first is exact.
    """
    first = x * y
    (a, b), (c, d) = split(xp, x), split(xp, y)
    return first, ((a * c - first) + a * d + b * c) + b * d


def split(xp: Any, x: Any) -> tuple[Any, Any]:
    """The upper and the lower half of the digits of x, which must not be huge."""
    big = x * (2.0**27 if x.dtype == xp.float64 else 2.0**12)
    high = (big + x) - big
    return high, x - high


def total(x: Any, y: Any) -> tuple[Any, Any]:
    """x + y as the sum of two numbers, the second being the rounding error of the first."""
    first = x + y
    rest = first - x
    return first, (x - (first - rest)) + (y - rest)
