"""Logarithms of the incomplete gamma and beta functions, where the functions themselves underflow,
and other help for the far tails of distributions.

They are made of functions with rules, so they can be differentiated in every argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import scipy.special

from ...backends.numpy.traced import concrete

np: Any = numpy  # its type stubs do not know traced values
special: Any = scipy.special

LEAST = 1e-280  # smaller numbers lose digits, or are 0
TERMS = 120  # of a continued fraction; below LEAST, far from the mode, some thirty are needed
NODES, WEIGHTS = numpy.polynomial.laguerre.laggauss(64)


def log_share(part: Any, rest: Any) -> Any:
    """The logarithm of `part`, where part + rest = 1, exact also where `rest` is tiny."""
    most = concrete(part) > 0.5
    return np.where(
        most, np.log1p(-np.where(most, rest, 0.0)), np.log(np.where(most, 1.0, part))
    )  # fmt: skip


def _or_tail(part: Any, rest: Any, tail: Callable[..., Any], *args: Any) -> Any:
    """`log_share`, but `tail(*args)` where the part is too small."""
    small = np.asarray(concrete(part) < LEAST)
    if not np.any(small):
        return log_share(part, rest)
    plain = [np.broadcast_to(np.asarray(concrete(a), float), small.shape) for a in args]
    if np.all(small):
        return tail(*args)
    # any place where the tail is regular will do for the others
    like = [a[small].flat[0] for a in plain]
    far = tail(*(np.where(small, a, b) for a, b in zip(args, like)))
    near = log_share(np.where(small, 0.25, part), np.where(small, 0.75, rest))
    return np.where(small, far, near)


def log_gammainc(a: Any, x: Any) -> Any:
    """The logarithm of P(a, x)."""
    return _or_tail(special.gammainc(a, x), special.gammaincc(a, x), _log_lower, a, x)


def log_gammaincc(a: Any, x: Any) -> Any:
    """The logarithm of Q(a, x)."""
    return _or_tail(special.gammaincc(a, x), special.gammainc(a, x), _log_upper, a, x)


def _log_lower(a: Any, x: Any) -> Any:
    fraction: Any = a + (2 * TERMS + 1)
    for n in range(TERMS, 0, -1):  # DLMF 8.9.1, from its end
        fraction = a + 2 * n - (a + n) * x / (a + (2 * n + 1) + (n + 1) * x / fraction)
    fraction = a - a * x / (a + 1 + x / fraction)
    return special.xlogy(a, x) - x - special.gammaln(a) - np.log(fraction)


def _log_upper(a: Any, x: Any) -> Any:
    fraction: Any = x + 2 * TERMS + 1 - a
    for n in range(TERMS, 0, -1):  # Legendre's, DLMF 8.9.2
        fraction = x + 2 * n - 1 - a - n * (n - a) / fraction
    return special.xlogy(a, x) - x - special.gammaln(a) - np.log(fraction)


def log_betainc(a: Any, b: Any, x: Any, rest: Any) -> Any:
    """The logarithm of I(a, b) at `x`, where x + rest = 1: the smaller of them is exact."""
    low = concrete(x) < 0.5
    x_low, rest_high = np.where(low, x, 0.25), np.where(low, 0.25, rest)
    part = np.where(low, special.betainc(a, b, x_low), special.betaincc(b, a, rest_high))
    other = np.where(low, special.betaincc(a, b, x_low), special.betainc(b, a, rest_high))
    return _or_tail(part, other, _log_beta, a, b, x, rest)


def _log_beta(a: Any, b: Any, x: Any, rest: Any) -> Any:
    fraction: Any = 1.0
    for n in range(TERMS, 0, -1):  # DLMF 8.17.22, from its end
        odd = -(a + n) * (a + b + n) * x / ((a + 2 * n) * (a + 2 * n + 1))
        even = n * (b - n) * x / ((a + 2 * n - 1) * (a + 2 * n))
        fraction = 1 + even / (1 + odd / fraction)
    fraction = 1 - (a + b) * x / (a + 1) / fraction
    logs = special.xlogy(a, x) + special.xlogy(b, rest)
    return logs - np.log(a) - special.betaln(a, b) - np.log(fraction)


def log_expm1_exp(z: Any) -> Any:
    """log(1 − exp(−exp(z))), which is z far to the left."""
    small = concrete(z) < -37
    middle = np.where(small, 0.0, z)
    return np.where(small, z, log_share(-np.expm1(-np.exp(middle)), np.exp(-np.exp(middle))))


def log1p_square(z: Any) -> Any:
    """log(1 + z²), without overflow."""
    wide = np.abs(concrete(z)) > 1e8
    return np.where(
        wide, 2 * np.log(np.abs(np.where(wide, z, 1.0))), np.log1p(np.where(wide, 0.0, z) ** 2)
    )


def skewnorm_logcdf(z: Any, a: Any, theirs: Any) -> Any:
    """SciPy's on plain arrays, but an integral of our own for the tail where that one cancels: for
    z = −h, exp(−h²(1 + a²)/2)/π times that of exp(−w)/(h² r (1 + r²)) with r² = a² + 2w/h², w > 0.
    """
    skewed = -a * z > 3
    h, slant = (np.where(skewed, np.abs(v), 2.0)[..., None] for v in (z, a))
    r = np.sqrt(slant * slant + 2 * NODES / (h * h))
    h, slant = h[..., 0], slant[..., 0]
    total = np.log(np.sum(WEIGHTS / (r * (1 + r * r)), -1))
    tail = -0.5 * h * h * (1 + slant * slant) - np.log(np.pi * h * h) + total
    own = np.where(z < 0, tail, np.log1p(-np.exp(tail)))
    return np.where(skewed, own, log_share(theirs.cdf(z, a), theirs.sf(z, a)))


def solved(log_share_of: Callable[[Any], Any], wanted: Any, low: float, sign: int) -> Any:
    """Where the logarithm of a share, a plain function that rises (`sign` 1) or falls (-1), is
    `wanted`: by bisection, for numbers above `low`.
    """
    above = np.ones_like(wanted)
    below = np.full_like(wanted, -1.0) if np.isinf(low) else above.copy()
    beyond = lambda x: sign * (log_share_of(x) - wanted) > 0
    for _ in range(1000):
        short = ~beyond(above)
        if not np.any(short):
            break
        above = np.where(short, 2 * above, above)
    for _ in range(1000):
        short = beyond(below)
        if not np.any(short):
            break
        step = 2 * below if np.isinf(low) else low + (below - low) / 2
        below = np.where(short, step, below)
    for _ in range(70):
        middle = (above + below) / 2
        over = beyond(middle)
        above, below = np.where(over, middle, above), np.where(over, below, middle)
    return (above + below) / 2
