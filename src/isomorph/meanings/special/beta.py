"""The beta function and what is made of it: quotients of gamma functions that do not lose digits by
the difference of two large logarithms.
"""

from __future__ import annotations

import math
from typing import Any

from .gamma import (
    HALF_LOG_TAU,
    LARGE,
    SLOPES,
    STIRLING,
    digamma,
    gamma,
    stirling,
    zeta,
)
from .series import cos_pi, log1p, log1p_minus, pick, sin_pi, total
from .smooth import long_smooth

SHIFT = 10  # steps of the recurrence before Stirling's series is used


def _power_differences(u: Any, v: Any, count: int) -> list[Any]:
    """(v^m − u^m) / (v − u) for m = 1, 2, … count."""
    found, power = [u * 0 + 1], v
    for _ in range(count - 1):
        found.append(u * found[-1] + power)
        power = power * v
    return found


def _shifted(xp: Any, a: Any) -> tuple[Any, Any]:
    """Whether `a` is below Stirling's range, and a number that is not, an integer above `a`."""
    low = a < LARGE
    return low, xp.where(low, a + SHIFT, a)


def rise_remainder(xp: Any, a: Any, b: Any) -> Any:
    """log Γ(a + b) − log Γ(a) − b·log a for a >= LARGE and b >= 0."""
    ratio, end = b / a, a + b
    found = _power_differences(1 / a, 1 / end, 2 * len(STIRLING) - 1)[::2]
    rest = -ratio / end * sum(c * x for c, x in zip(STIRLING[::-1], found[::-1]))
    return (end - 0.5) * log1p_minus(xp, ratio) + ratio * (b - 0.5) + rest


def log_rise(xp: Any, a: Any, b: Any) -> Any:
    """log Γ(a + b) − log Γ(a) for a > 0 and b >= 0, with all digits where b is small."""
    low, z = _shifted(xp, a)
    rise = b * xp.log(z) + rise_remainder(xp, z, b)
    # log ∏ (1 + b/(a + k)), with the product minus 1, a sum of positive terms
    near, steps = pick(xp, low, a, 1.0), xp.zeros_like(a)
    for k in range(SHIFT - 1, -1, -1):
        factor = b / (near + k)
        steps = steps + (factor + steps * factor)
    return xp.where(low, rise - log1p(xp, steps), rise)


@long_smooth(
    lambda xp, _, a, b: zeta(xp, xp.full_like(a, 2.0), a + b) - zeta(xp, xp.full_like(a, 2.0), a),
    lambda xp, _, a, b: zeta(xp, xp.full_like(a, 2.0), a + b),
)
def digamma_rise(xp: Any, a: Any, b: Any) -> Any:
    """ψ(a + b) − ψ(a), with all digits where b is small beside a positive a."""
    right = xp.logical_and(a > 0, b > 0)
    start, rise = pick(xp, right, a, 1.0), pick(xp, right, b, 1.0)
    low, z = _shifted(xp, start)
    ratio, end = rise / z, z + rise
    u, v = 1 / z, 1 / end
    found = _power_differences(u, v, 2 * len(SLOPES))[1::2]
    rest = ratio / end * (0.5 + sum(c * x for c, x in zip(SLOPES[::-1], found[::-1])))
    near = pick(xp, low, start, 1.0)
    steps = xp.zeros_like(a)
    for k in range(SHIFT - 1, -1, -1):
        steps = steps + rise / (near + k) / (near + k + rise)
    found = log1p(xp, ratio) + rest
    found = xp.where(low, found + steps, found)
    return xp.where(right, found, digamma.kernel(xp, a + b) - digamma.kernel(xp, a))


def log_beta_large(xp: Any, low: Any, high: Any) -> Any:
    """log B for two numbers >= LARGE, the smaller one first."""
    both = low + high
    ends = stirling(low) + (stirling(high) - stirling(both))
    found = -(low - 0.5) * log1p(xp, high / low) - (high - 0.5) * log1p(xp, low / high)
    return (found - 0.5 * xp.log(both)) + (HALF_LOG_TAU + ends)


def has_gammas(xp: Any, a: Any, b: Any) -> Any:
    """Whether Γ(a + b) does not overflow, for positive numbers."""
    return a + b < (170 if a.dtype == xp.float64 else 33)


def by_gammas(xp: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """B of two positive numbers whose gamma functions do not overflow, and Γ of the first."""
    both, rest = total(low, high)
    first, second, third = xp.unstack(gamma.kernel(xp, xp.stack([low, high, both])))
    value = first * (second / third)
    # corrected for the rounding of the sum: `slope` is roughly ψ
    slope = xp.log(both + 1) - 0.5 / (both + 1) - 1 / both
    return value - value * (rest * slope), first


def _positive(xp: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """B(a, b) and its logarithm for positive numbers."""
    low, high = xp.minimum(a, b), xp.maximum(a, b)
    small = has_gammas(xp, low, high)
    large = xp.logical_and(low >= LARGE, xp.logical_not(small))
    middle = xp.logical_not(xp.logical_or(small, large))
    less = xp.where(large, xp.ones_like(a), low)
    value, first = by_gammas(xp, less, pick(xp, small, high, 10.0))
    rise = log_rise(xp, pick(xp, middle, high, 10.0), pick(xp, middle, low, 1.0))
    far = log_beta_large(xp, pick(xp, large, low, 10.0), pick(xp, large, high, 10.0))
    found = xp.where(small, value, xp.where(large, xp.exp(far), first * xp.exp(-rise)))
    logs = xp.log(xp.where(small, value, first))
    return found, xp.where(large, far, xp.where(small, logs, logs - rise))


def _is_whole(xp: Any, x: Any) -> Any:
    return xp.floor(x) == x


def _reduced(xp: Any, a: Any, b: Any) -> tuple[Any, Any, Any, Any]:
    """A factor f, whether there is a division, and positive p and q, such that B(a, b) is
    f·B(p, q) or f / B(p, q).
    """
    low, high = xp.minimum(a, b), xp.maximum(a, b)
    both, rest = total(low, high)
    one = xp.ones_like(a)
    negative = low <= 0
    # the sine of π times the sum, which is rounded
    turn = xp.where(negative, both, 0.5 * one)
    sine = sin_pi(xp, turn) + math.pi * rest * cos_pi(xp, turn)
    first = sin_pi(xp, pick(xp, negative, low, 0.5))
    second = sin_pi(xp, pick(xp, high <= 0, high, 0.5))
    pole = xp.logical_and(negative, _is_whole(xp, low))
    last = xp.logical_and(pole, xp.logical_and(_is_whole(xp, high), high > 0))
    last = xp.logical_and(last, both <= 0)  # finite, though Γ has a pole
    pole = xp.logical_or(xp.logical_and(high <= 0, _is_whole(xp, high)), pole)
    pole = xp.logical_and(pole, xp.logical_not(last))
    safe = pick(xp, first != 0, first, 1.0)
    beneath = pick(xp, second != 0, second, 1.0)
    signs = xp.where(xp.round(high / 2) * 2 == high, one, -one)
    factor = xp.where(
        high <= 0,
        math.pi * sine / safe / beneath / (1 - both),
        xp.where(both <= 0, sine / safe, math.pi / safe / pick(xp, high > 0, high, 1.0)),
    )
    factor = xp.where(last, signs, factor)
    divides = xp.logical_and(negative, xp.logical_or(high <= 0, both > 0))
    p = xp.where(divides, 1 - low, xp.where(negative, 1 - both, low))
    q = xp.where(high <= 0, 1 - high, xp.where(divides, both, high))
    factor = xp.where(negative, factor, one)
    return xp.where(pole, xp.full_like(a, xp.inf), factor), divides, p, q


def _ends(xp: Any, a: Any, b: Any, found: Any, least: float) -> Any:
    """`found`, with the values at infinite arguments, where the least one is `least`."""
    infinite = xp.logical_or(xp.isinf(a), xp.isinf(b))
    low = xp.minimum(a, b)
    end = xp.where(low > 0, xp.full_like(a, least), xp.full_like(a, xp.inf))
    if least == 0:  # not of the logarithm: the sign is that of Γ
        odd = xp.logical_and(xp.isfinite(low), xp.floor(low / 2) * 2 != xp.floor(low))
        odd = xp.logical_and(odd, xp.logical_not(_is_whole(xp, low)))
        end = xp.where(xp.logical_and(low < 0, odd), -end, end)
    found = xp.where(infinite, end, found)
    nan = xp.logical_or(xp.isnan(a), xp.isnan(b))
    nan = xp.logical_or(nan, xp.logical_and(a == xp.inf, b == xp.inf))
    return xp.where(nan, xp.full_like(a, xp.nan), found)


def _finite(xp: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Both arguments, or ones where they are not finite."""
    fine = xp.logical_and(xp.isfinite(a), xp.isfinite(b))
    return pick(xp, fine, a, 1.0), pick(xp, fine, b, 1.0)


def _values(xp: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """B(a, b), and the logarithm of its size."""
    factor, divides, p, q = _reduced(xp, *_finite(xp, a, b))
    value, logs = _positive(xp, p, q)
    end = xp.isinf(factor)
    finite = pick(xp, xp.logical_not(end), factor, 1.0)
    found = xp.where(divides, finite / value, finite * value)
    found = pick(xp, xp.logical_not(end), found, xp.inf)
    size = xp.log(xp.abs(factor))
    end = xp.isinf(size)
    total = pick(xp, xp.logical_not(end), size, 0.0) + xp.where(divides, -logs, logs)
    total = xp.where(end, size, total)
    info = xp.finfo(a.dtype)
    lost = xp.logical_or(value < float(info.smallest_normal) / float(info.eps), xp.isinf(value))
    extreme = xp.logical_and(lost, xp.logical_not(end))
    found = xp.where(extreme, xp.sign(factor) * xp.exp(total), found)
    return _ends(xp, a, b, found, 0.0), _ends(xp, a, b, total, -xp.inf)


@long_smooth(
    lambda xp, y, a, b: y * (digamma(xp, a) - digamma(xp, 1 - (a + b))),
    lambda xp, y, a, b: y * (digamma(xp, b) - digamma(xp, 1 - (a + b))),
)
def triple_gamma(xp: Any, a: Any, b: Any) -> Any:
    """Γ(a)·Γ(b)·Γ(1 − a − b) where a or b is negative and a + b < 1/2. It is π·B(a, b) over
    sin(π·(a + b)), which are 0 together.
    """
    low, high = xp.minimum(a, b), xp.maximum(a, b)
    both, rest = total(low, high)
    top = 1 - both
    value = _values(xp, high, top)[0] * (1 - rest * (xp.log(top) - 0.5 / top))
    sine = sin_pi(xp, low)
    return math.pi * value / pick(xp, sine != 0, sine, xp.nan)


def beta_slope(xp: Any, y: Any, a: Any, b: Any) -> Any:
    """The derivative in a of B(a, b), which is y. Where B may be 0, it is reflected: the digamma
    function of a + b has a pole there.
    """
    turned = xp.logical_and(xp.minimum(a, b) < 0, a + b < 0.5)
    direct = xp.logical_not(turned)
    p, q = pick(xp, direct, a, 1.0), pick(xp, direct, b, 1.0)
    found = -y * digamma_rise(xp, p, q)
    p, q = pick(xp, turned, a, -0.25), pick(xp, turned, b, 0.5)
    slope = y * (digamma(xp, p) - digamma(xp, 1 - (p + q)))
    slope = slope + triple_gamma(xp, p, q) * cos_pi(xp, p + q)
    return xp.where(turned, slope, found)


@long_smooth(beta_slope, lambda xp, y, a, b: beta_slope(xp, y, b, a))
def beta(xp: Any, a: Any, b: Any) -> Any:
    return _values(xp, a, b)[0]


@long_smooth(
    lambda xp, _, a, b: -digamma_rise(xp, a, b),
    lambda xp, _, a, b: -digamma_rise(xp, b, a),
)
def betaln(xp: Any, a: Any, b: Any) -> Any:
    return _values(xp, a, b)[1]


def _reflected_binom(xp: Any, n: Any, k: Any) -> tuple[Any, ...]:
    """Where n over k may be 0, it is B(n + 1, t)·sin(π·s) / π, with s = n − k + 1 and t = k − n, or
    s = k + 1 and t = −k. Returns where; where it is the first; the derivatives of B; and its
    products with the sine, and with the cosine.
    """
    top, first = n - k + 1, n - k < -0.5
    turned = xp.logical_or(first, k < -0.5)
    turn = pick(xp, turned, xp.where(first, top, k + 1), 0.25)
    a, b = pick(xp, turned, n + 1, 0.5), 1 - turn
    value = beta(xp, a, b)
    sine = sin_pi(xp, turn) / math.pi
    slopes = [beta_slope(xp, value, *x) * sine for x in ((a, b), (b, a))]
    return turned, first, *slopes, value * cos_pi(xp, turn)


def _digamma_step(xp: Any, low: Any, high: Any, step: Any) -> Any:
    """ψ(high) − ψ(low), with all digits for a small step between them."""
    up = step >= 0
    found = digamma_rise(xp, xp.where(up, low, high), xp.where(up, step, -step))
    return xp.where(up, found, -found)


def _binom_slope_n(xp: Any, y: Any, n: Any, k: Any) -> Any:
    turned, first, in_a, in_b, cosine = _reflected_binom(xp, n, k)
    direct = xp.logical_not(turned)
    high, low = pick(xp, direct, n + 1, 1.0), pick(xp, direct, n - k + 1, 1.0)
    found = y * _digamma_step(xp, low, high, pick(xp, direct, k, 0.0))
    return xp.where(turned, xp.where(first, in_a - in_b + cosine, in_a), found)


def _binom_slope_k(xp: Any, y: Any, n: Any, k: Any) -> Any:
    turned, first, _, in_b, cosine = _reflected_binom(xp, n, k)
    direct = xp.logical_not(turned)
    high, low = pick(xp, direct, n - k + 1, 1.0), pick(xp, direct, k + 1, 1.0)
    found = y * _digamma_step(xp, low, high, pick(xp, direct, (n - k) - k, 0.0))
    return xp.where(turned, xp.where(first, in_b - cosine, cosine - in_b), found)


@long_smooth(_binom_slope_n, _binom_slope_k)
def binom(xp: Any, n: Any, k: Any) -> Any:
    counts = xp.logical_and(_is_whole(xp, n), n > 0)
    turned = xp.logical_and(counts, xp.logical_and(k > n / 2, _is_whole(xp, k)))
    few = xp.where(turned, n - k, k)
    direct = xp.logical_and(_is_whole(xp, few), xp.logical_and(few >= 0, few < 20))
    few = pick(xp, direct, few, 0.0)
    value = xp.ones_like(n)
    for i in range(1, 20):
        value = xp.where(i <= few, value * (n - (few - i)) / i, value)
    fine = xp.logical_and(xp.isfinite(n), xp.isfinite(k))
    fine = xp.logical_and(fine, xp.logical_not(direct))
    p, q = pick(xp, fine, 1 + (n - k), 1.0), pick(xp, fine, 1 + k, 1.0)
    top = xp.where(fine, n + 1, 1.0)
    size, logs = _values(xp, p, q)
    extreme = xp.logical_and(xp.logical_and(p > 0, q > 0), xp.abs(logs) > 80)
    power = xp.exp(-logs - xp.log(pick(xp, extreme, top, 1.0)))
    found = xp.where(extreme, power, 1 / top / size)
    # beside a huge k, n is lost in n - k
    huge = xp.logical_and(fine, k > 1e8 * (1 + xp.abs(n)))
    far = pick(xp, huge, k, 1e10)
    some = xp.where(huge, n, xp.full_like(n, 0.5))
    whole = xp.floor(far)
    sine = sin_pi(xp, (far - whole) - some)
    sine = xp.where(xp.round(whole / 2) * 2 == whole, sine, -sine)
    ratio = gamma.kernel(xp, some + 1) / math.pi * (1 + some * (some + 1) / 2 / far)
    found = xp.where(huge, ratio * sine * (xp.pow(far, -some) / far), found)
    none = xp.logical_and(_is_whole(xp, k), k < 0)
    beyond = xp.logical_and(_is_whole(xp, n), xp.logical_and(n >= 0, k > n))
    none = xp.logical_or(none, xp.logical_and(beyond, _is_whole(xp, k)))
    none = xp.logical_or(none, k == -xp.inf)
    found = xp.where(direct, value, xp.where(none, xp.zeros_like(n), found))
    bad = xp.logical_not(xp.logical_or(fine, xp.logical_or(direct, none)))
    bad = xp.logical_or(bad, xp.logical_or(xp.isnan(n), xp.isnan(k)))
    bad = xp.logical_or(bad, xp.logical_and(n < 0, _is_whole(xp, n)))
    bad = xp.logical_or(bad, k == xp.inf)
    return xp.where(bad, xp.full_like(n, xp.nan), found)
