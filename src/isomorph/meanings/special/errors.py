"""The error function's family, and the normal distribution.

Tails are quotients of polynomials in 1/x², by Sun's fdlibm (s_erf.c), with e^(−x²) computed from an
x that is split in two: rounding x² would cost as many digits as x² has.
"""

from __future__ import annotations

import math
from typing import Any

from ..random import middle, outer
from .series import log1p, polynomial
from .smooth import smooth

# Coefficients of numerators and denominators, the lowest power first, for |x| below 0.84375, 1.25,
# 1/0.35 and 28.
SMALL = (
    (1.28379167095512558561e-01, -3.25042107247001499370e-01, -2.84817495755985104766e-02,
     -5.77027029648944159157e-03, -2.37630166566501626084e-05),
    (1.0, 3.97917223959155352819e-01, 6.50222499887672944485e-02, 5.08130628187576562776e-03,
     1.32494738004321644526e-04, -3.96022827877536812320e-06),
)  # fmt: skip
NEAR_ONE = (
    (-2.36211856075265944077e-03, 4.14856118683748331666e-01, -3.72207876035701323847e-01,
     3.18346619901161753674e-01, -1.10894694282396677476e-01, 3.54783043256182359371e-02,
     -2.16637559486879084300e-03),
    (1.0, 1.06420880400844228286e-01, 5.40397917702171048937e-01, 7.18286544141962662868e-02,
     1.26171219808761642112e-01, 1.36370839120290507362e-02, 1.19844998467991074170e-02),
)  # fmt: skip
MIDDLE = (
    (-9.86494403484714822705e-03, -6.93858572707181764372e-01, -1.05586262253232909814e01,
     -6.23753324503260060396e01, -1.62396669462573470355e02, -1.84605092906711035994e02,
     -8.12874355063065934246e01, -9.81432934416914548592e00),
    (1.0, 1.96512716674392571292e01, 1.37657754143519042600e02, 4.34565877475229228821e02,
     6.45387271733267880336e02, 4.29008140027567833386e02, 1.08635005541779435134e02,
     6.57024977031928170135e00, -6.04244152148580987438e-02),
)  # fmt: skip
LARGE = (
    (-9.86494292470009928597e-03, -7.99283237680523006574e-01, -1.77579549177547519889e01,
     -1.60636384855821916062e02, -6.37566443368389627722e02, -1.02509513161107724954e03,
     -4.83519191608651397019e02),
    (1.0, 3.03380607434824582924e01, 3.25792512996573918826e02, 1.53672958608443695994e03,
     3.19985821950859553908e03, 2.55305040643316442583e03, 4.74528541206955367215e02,
     -2.24409524465858183362e01),
)  # fmt: skip
AT_ONE = 8.45062911510467529297e-01  # erf(1), rounded to float32
FIRST, SECOND, THIRD, LAST = 0.84375, 1.25, 1 / 0.35, 28.0  # where another formula begins
# The asymptotic series of √π·x·erfcx(x) in 1/(2x²): (−1)ⁿ·(2n − 1)!!
SERIES = tuple((-1.0) ** n * math.prod(range(1, 2 * n, 2)) for n in range(16))
ROOT_PI, ROOT_TWO = math.sqrt(math.pi), math.sqrt(2.0)
DENSITY = 1 / math.sqrt(2 * math.pi)  # of the normal distribution at 0


def ratio(table: tuple, s: Any) -> Any:
    """A quotient of polynomials."""
    above, below = (polynomial(c, s) for c in table)
    return above / below


def _between(xp: Any, x: Any, low: float, high: float) -> Any:
    """`x` where it is between two numbers, and one of these elsewhere; also for NaN."""
    return xp.where(x > low, xp.where(x < high, x, high * xp.ones_like(x)), low * xp.ones_like(x))


def square_exp(xp: Any, x: Any, factor: float) -> Any:
    """e^(factor·x²) for |x| < 64 and a factor of ±1 or ±½, with a relative error of a few ulps."""
    steps = 4096.0 if x.dtype == xp.float64 else 32.0
    high = xp.round(x * steps) / steps  # its square is exact
    power = xp.exp(factor * high * high)
    return power * (1 + xp.expm1(factor * (x - high) * (x + high)))  # two exp would be joined


def _scaled_tail(xp: Any, x: Any) -> Any:
    """erfc(x)·e^(x²) for x between `SECOND` and `LAST`."""
    s = 1 / (x * x)
    found = xp.where(x < THIRD, ratio(MIDDLE, s), ratio(LARGE, s))
    return xp.exp(found - 0.5625) / x


@smooth(lambda xp, _, x: -2 / ROOT_PI * xp.exp(-x * x))
def erfc(xp: Any, x: Any) -> Any:
    size = xp.abs(x)
    near = _between(xp, x, -FIRST, FIRST)
    curve = near * ratio(SMALL, near * near)
    first = xp.where(near < 0.25, 1 - (near + curve), 0.5 - (curve + (near - 0.5)))
    middle_ = AT_ONE + ratio(NEAR_ONE, _between(xp, size, FIRST, SECOND) - 1)
    second = xp.where(x < 0, 1 + middle_, 1 - middle_)
    far = _between(xp, size, SECOND, LAST)
    tail = square_exp(xp, far, -1.0) * _scaled_tail(xp, far)
    tail = xp.where(size < LAST, tail, xp.zeros_like(x))
    third = xp.where(x < 0, 2 - tail, tail)
    found = xp.where(size < FIRST, first, xp.where(size < SECOND, second, third))
    return xp.where(xp.isnan(x), x, found)


def _erfcx_slope(xp: Any, y: Any, x: Any) -> Any:
    """2·x·erfcx(x) − 2/√π; by its asymptotic series where the difference would cancel."""
    far = xp.where(x > 10, x, 10 * xp.ones_like(x))
    near = xp.where(x > 10, xp.zeros_like(x), x)
    u = 0.5 / far / far
    series = u * polynomial(SERIES[1:], u)
    return 2 / ROOT_PI * xp.where(x > 10, series, ROOT_PI * near * y - 1)


@smooth(_erfcx_slope)
def erfcx(xp: Any, x: Any) -> Any:
    size = xp.abs(x)
    near = _between(xp, x, -SECOND, SECOND)
    first = square_exp(xp, near, 1.0) * xp.special(erfc, near)
    second = _scaled_tail(xp, _between(xp, size, SECOND, LAST))
    far = xp.where(size > LAST, size, LAST * xp.ones_like(x))
    third = polynomial(SERIES[:6], 0.5 / far / far) / far / ROOT_PI
    positive = xp.where(size < LAST, second, third)
    power = square_exp(xp, _between(xp, size, SECOND, LAST), 1.0)
    power = xp.where(size < LAST, power, xp.inf * xp.ones_like(x))
    found = xp.where(size < SECOND, first, xp.where(x < 0, 2 * power - positive, positive))
    return xp.where(xp.isnan(x), x, found)


def quantile(xp: Any, q: Any, tail: Any) -> Any:
    """The inverse normal distribution function at q + ½; `tail` is ½ − |q|, with all its digits."""
    size = xp.abs(q)
    inner = xp.where(size <= 0.425, q, xp.zeros_like(q))
    outside = outer(xp, q, xp.where(tail > 0, tail, 0.05 * xp.ones_like(q)))
    found = xp.where(size <= 0.425, middle(inner), outside)
    end = xp.where(tail == 0, xp.inf * xp.ones_like(q), xp.nan * xp.ones_like(q))
    return xp.where(tail > 0, found, xp.where(q < 0, -end, end))


@smooth(lambda xp, y, x: ROOT_PI / 2 * xp.exp(y * y))
def erfinv(xp: Any, x: Any) -> Any:
    return quantile(xp, x / 2, (1 - xp.abs(x)) / 2) / ROOT_TWO


@smooth(lambda xp, _, x: DENSITY * xp.exp(-0.5 * x * x))
def ndtr(xp: Any, x: Any) -> Any:
    far = _between(xp, -x, SECOND * ROOT_TWO, LAST * ROOT_TWO)
    tail = 0.5 * square_exp(xp, far, -0.5) * _scaled_tail(xp, far / ROOT_TWO)
    tail = xp.where(x > -LAST * ROOT_TWO, tail, xp.zeros_like(x))
    return xp.where(x < -SECOND * ROOT_TWO, tail, 0.5 * xp.special(erfc, -x / ROOT_TWO))


@smooth(lambda xp, y, p: xp.exp(0.5 * y * y) / DENSITY)
def ndtri(xp: Any, p: Any) -> Any:
    return quantile(xp, p - 0.5, xp.where(p < 0.5, p, 1 - p))


def _log_ndtr_slope(xp: Any, _: Any, x: Any) -> Any:
    """The density over the distribution function, also where both are 0 in floating point."""
    zero = xp.zeros_like(x)
    below = 2 * DENSITY / erfcx(xp, -xp.where(x < 0, x, zero) / ROOT_TWO)
    above = xp.where(x < 0, zero, x)
    return xp.where(x < 0, below, DENSITY * xp.exp(-0.5 * above * above) / ndtr(xp, above))


@smooth(_log_ndtr_slope)
def log_ndtr(xp: Any, x: Any) -> Any:
    low = xp.where(x < -1, x, -xp.ones_like(x))
    below = xp.log(0.5 * xp.special(erfcx, -low / ROOT_TWO)) - 0.5 * low * low
    below = xp.where(xp.isinf(low), low, below)
    high = xp.where(x < -1, xp.zeros_like(x), x)
    above = log1p(xp, -xp.special(ndtr, -high))
    return xp.where(x < -1, below, above)
