"""Logistic functions, products with logarithms that are 0 where the factor is 0, entropies, and
sinc.
"""

from __future__ import annotations

import math
from typing import Any

from .series import log1p, polynomial
from .smooth import smooth


def _expit_slope(xp: Any, y: Any, x: Any) -> Any:
    return y * expit(xp, -x)  # y·(1 − y) would lose the digits of 1 − y


@smooth(_expit_slope)
def expit(xp: Any, x: Any) -> Any:
    return xp.sigmoid(x)


@smooth(lambda xp, _, x: expit(xp, -x))
def log_expit(xp: Any, x: Any) -> Any:
    return xp.where(x < 0, x, xp.zeros_like(x)) - xp.log1p(xp.exp(-xp.abs(x)))


@smooth(lambda xp, _, p: 1 / (p * (1 - p)))
def logit(xp: Any, p: Any) -> Any:
    s = 2 * (p - 0.5)  # exact around ½, where the logarithm of the quotient would not be
    close = xp.abs(s) < 0.4
    s = xp.where(close, s, xp.zeros_like(s))
    return xp.where(close, log1p(xp, s) - log1p(xp, -s), xp.log(p / (1 - p)))


def _divisor(xp: Any, x: Any, y: Any) -> Any:
    """y, but infinite where both x and y are 0, so that quotients are 0 there."""
    return xp.where((x == 0) & (y == 0), xp.full_like(y, xp.inf), y)


@smooth(
    lambda xp, _, x, y: 1 / _divisor(xp, x, y),
    lambda xp, quotient, x, y: -quotient / _divisor(xp, x, y),
)
def over(xp: Any, x: Any, y: Any) -> Any:
    """x / y, but 0 where both are 0. Its derivative in x is 1 / y, also where only x is 0."""
    return x / _divisor(xp, x, y)


def log_unless(xp: Any, x: Any, y: Any) -> Any:
    """log y, but 0 where both x and y are 0."""
    return xp.log(xp.where((x == 0) & (y == 0), xp.ones_like(y), y))


def log1p_unless(xp: Any, x: Any, y: Any) -> Any:
    """log(1 + y), but 0 where both x and 1 + y are 0."""
    return xp.log1p(xp.where((x == 0) & (y == -1), xp.zeros_like(y), y))


@smooth(lambda xp, _, x, y: log_unless(xp, x, y), lambda xp, _, x, y: over(xp, x, y))
def xlogy(xp: Any, x: Any, y: Any) -> Any:
    zero = (x == 0) & ~xp.isnan(y)
    return xp.where(zero, xp.zeros_like(x), x * xp.log(xp.where(zero, xp.ones_like(y), y)))


@smooth(
    lambda xp, _, x, y: log1p_unless(xp, x, y),
    lambda xp, _, x, y: over(xp, x, 1 + y),
)
def xlog1py(xp: Any, x: Any, y: Any) -> Any:
    zero = (x == 0) & ~xp.isnan(y)
    return xp.where(zero, xp.zeros_like(x), x * xp.log1p(xp.where(zero, xp.zeros_like(y), y)))


@smooth(lambda xp, _, x: -xp.log(x) - 1)
def entr(xp: Any, x: Any) -> Any:
    inside = xp.where(x > 0, x, xp.ones_like(x))
    edge = xp.where(x == 0, xp.zeros_like(x), -xp.inf * xp.ones_like(x))
    return xp.where(xp.isnan(x), x, xp.where(x > 0, -inside * xp.log(inside), edge))


# differentiating the quotient would give 0·∞ where it overflows
@smooth(lambda xp, _, x, y: 1 / x, lambda xp, _, x, y: -1 / y)
def log_ratio(xp: Any, x: Any, y: Any) -> Any:
    """log(x / y) of positive numbers; the quotient may overflow, and may be close to 1."""
    quotient = x / y
    near = (quotient > 0.5) & (quotient < 2)
    close = log1p(xp, xp.where(near, (x - y) / y, xp.zeros_like(x)))
    inside = (quotient > 0) & (quotient < xp.inf)
    plain = xp.log(xp.where(inside, quotient, xp.ones_like(x)))
    return xp.where(near, close, xp.where(inside, plain, xp.log(x) - xp.log(y)))


def _positive(xp: Any, x: Any, y: Any, at_zero: Any, inside: Any) -> Any:
    """`inside` where x and y are positive, `at_zero` where x is 0, infinite elsewhere."""
    edge = xp.where((x == 0) & (y >= 0), at_zero, xp.inf * xp.ones_like(x))
    found = xp.where((x > 0) & (y > 0), inside, edge)
    return xp.where(xp.isnan(x) | xp.isnan(y), xp.nan * xp.ones_like(x), found)


@smooth(lambda xp, _, x, y: log_ratio(xp, x, y) + 1, lambda xp, _, x, y: -over(xp, x, y))
def rel_entr(xp: Any, x: Any, y: Any) -> Any:
    return _positive(xp, x, y, xp.zeros_like(x), x * log_ratio.kernel(xp, x, y))


@smooth(lambda xp, _, x, y: log_ratio(xp, x, y), lambda xp, _, x, y: 1 - over(xp, x, y))
def kl_div(xp: Any, x: Any, y: Any) -> Any:
    return _positive(xp, x, y, y, x * log_ratio.kernel(xp, x, y) - x + y)


# The Taylor coefficients of (sin(πx)/(πx))'/x in x².
SINC_SLOPE = tuple(
    (-1) ** n * 2 * n * math.pi ** (2 * n) / math.factorial(2 * n + 1) for n in range(1, 16)
)


def _sinc_slope(xp: Any, _: Any, x: Any) -> Any:
    near = xp.where(xp.abs(x) < 1, x, xp.zeros_like(x))
    series = polynomial(SINC_SLOPE, near * near)
    far = xp.where(xp.abs(x) < 1, xp.ones_like(x), x)
    turned = math.pi * far
    formula = (xp.cos(turned) - xp.sin(turned) / turned) / far
    return xp.where(xp.abs(x) < 1, near * series, formula)


@smooth(_sinc_slope)
def sinc(xp: Any, x: Any) -> Any:
    turned = math.pi * xp.where(x == 0, xp.ones_like(x), x)
    return xp.where(x == 0, xp.ones_like(x), xp.sin(turned) / turned)


@smooth(lambda xp, _, b, x: xp.exp(x), lambda xp, y, b, x: y)
def weighted_exp(xp: Any, b: Any, x: Any) -> Any:
    """b·eˣ, and 0 where b is 0, even if x is infinite."""
    return xp.where(b == 0, xp.zeros_like(x), b * xp.exp(x))


@smooth(lambda xp, _, x: 1 / x)
def quiet_log(xp: Any, x: Any) -> Any:
    """log(x), without a warning of NumPy where x is 0 or negative."""
    return xp.log(x)


def signed_logsumexp(xp: Any, x: Any, b: Any, axis: Any, keepdims: bool, signed: bool) -> Any:
    """log(Σ b·eˣ) of arrays of one shape and real dtype, or the logarithm of the size of the sum,
    and its sign.
    """
    if 0 in tuple(x.shape):  # an empty array has no maximum
        total = xp.sum(x * b, axis=axis, keepdims=True)
        top = xp.zeros_like(total)
    else:
        lowest = xp.full_like(x, -xp.inf)
        counted = xp.stop_gradient(xp.where(b == 0, lowest, x))
        top = xp.max(counted, axis=axis, keepdims=True)
        # where no term is left, the result does not depend on x: its slope is not 0 / 0
        x = xp.where(top == -xp.inf, xp.stop_gradient(x), x)
        top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
        total = xp.sum(weighted_exp(xp, b, x - top), axis=axis, keepdims=True)
    sign = xp.sign(xp.stop_gradient(total))
    size = quiet_log(xp, sign * total if signed else total) + top
    if not keepdims:
        size, sign = (_without_axes(xp, a, axis) for a in (size, sign))
    return (size, sign) if signed else size


def _without_axes(xp: Any, x: Any, axis: Any) -> Any:
    """`x` without these axes of one element; without all axes if None."""
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return xp.squeeze(x, axis=axes) if axes else x
