"""Continuous distributions of one variable: the logarithm of the density, and the distribution
function where its formula is differentiable.
"""

from __future__ import annotations

from math import inf, log, pi, sqrt
from typing import Any

import numpy
import scipy.special
import scipy.stats

from ...backends.numpy.traced import concrete
from .distribution import Distribution, Formula

__all__ = [
    "beta",
    "cauchy",
    "chi2",
    "expon",
    "f",
    "gamma",
    "gennorm",
    "gompertz",
    "gumbel_l",
    "gumbel_r",
    "halfcauchy",
    "halfnorm",
    "invgamma",
    "invgauss",
    "laplace",
    "logistic",
    "lognorm",
    "norm",
    "pareto",
    "powerlaw",
    "rayleigh",
    "skewnorm",
    "t",
    "uniform",
    "vonmises",
    "weibull_min",
]

np: Any = numpy  # its type stubs do not know traced values
theirs: Any = scipy.stats
special: Any = scipy.special
TINY = 5e-324  # the support of distributions whose formula fails at 0


def _make(name: str, low: float = -inf, high: float = inf, **formulas: Formula) -> Distribution:
    return Distribution(getattr(theirs, name), low, high, formulas)


def _sides(z: Any) -> tuple[Any, Any, Any]:
    """Where z is positive, its positive part, and its negative part."""
    right = concrete(z) > 0
    return right, np.where(right, z, 0.0), np.where(right, 0.0, z)


def _laplace_cdf(z: Any) -> Any:
    right, above, below = _sides(z)
    return np.where(right, 1 - 0.5 * np.exp(-above), 0.5 * np.exp(below))


def _laplace_ppf(q: Any) -> Any:
    right = concrete(q) > 0.5
    return np.where(
        right, -np.log(2 * np.where(right, 1 - q, 0.5)), np.log(2 * np.where(right, 0.5, q))
    )


def _ratio_logpdf(z: Any, m: Any, n: Any) -> Any:
    return (
        0.5 * m * np.log(m)
        + 0.5 * n * np.log(n)
        + special.xlogy(0.5 * m - 1, z)
        - 0.5 * (m + n) * np.log(n + m * z)
        - special.betaln(0.5 * m, 0.5 * n)
    )


HALF_LOG = 0.5 * log(2 * pi)
ROOT = sqrt(2)

norm = _make(
    "norm",
    logpdf=lambda z: -0.5 * z * z - HALF_LOG,
    cdf=lambda z: special.ndtr(z),
    sf=lambda z: special.ndtr(-z),
    logcdf=lambda z: special.log_ndtr(z),
    logsf=lambda z: special.log_ndtr(-z),
    ppf=lambda q: special.ndtri(q),
)
gamma = _make(
    "gamma", 0.0,
    logpdf=lambda z, a: special.xlogy(a - 1, z) - z - special.gammaln(a),
    cdf=lambda z, a: special.gammainc(a, z),
    sf=lambda z, a: special.gammaincc(a, z),
    ppf=lambda q, a: special.gammaincinv(a, q),
)  # fmt: skip
beta = _make(
    "beta", 0.0, 1.0,
    logpdf=lambda z, a, b: (
        special.xlogy(a - 1, z) + special.xlog1py(b - 1, -z) - special.betaln(a, b)
    ),
    cdf=lambda z, a, b: special.betainc(a, b, z),
    sf=lambda z, a, b: special.betainc(b, a, 1 - z),
    ppf=lambda q, a, b: special.betaincinv(a, b, q),
)  # fmt: skip
t = _make(
    "t",
    logpdf=lambda z, df: (
        -0.5 * (df + 1) * np.log1p(z * z / df) - 0.5 * np.log(df) - special.betaln(0.5 * df, 0.5)
    ),
    cdf=lambda z, df: special.stdtr(df, z),
    sf=lambda z, df: special.stdtr(df, -z),
    ppf=lambda q, df: special.stdtrit(df, q),
)
chi2 = _make(
    "chi2", 0.0,
    logpdf=lambda z, df: (
        special.xlogy(0.5 * df - 1, z) - 0.5 * z - special.gammaln(0.5 * df) - 0.5 * df * log(2)
    ),
    cdf=lambda z, df: special.chdtr(df, z),
    sf=lambda z, df: special.chdtrc(df, z),
    ppf=lambda q, df: 2 * special.gammaincinv(0.5 * df, q),
)  # fmt: skip
f = _make(
    "f", 0.0,
    logpdf=_ratio_logpdf,
    cdf=lambda z, m, n: special.fdtr(m, n, z),
    sf=lambda z, m, n: special.fdtrc(m, n, z),
)  # fmt: skip
expon = _make(
    "expon", 0.0,
    logpdf=lambda z: -z,
    cdf=lambda z: -np.expm1(-z),
    sf=lambda z: np.exp(-z),
    logsf=lambda z: -z,
    ppf=lambda q: -np.log1p(-q),
)  # fmt: skip
laplace = _make(
    "laplace",
    logpdf=lambda z: -np.abs(z) - log(2),
    cdf=_laplace_cdf,
    sf=lambda z: _laplace_cdf(-z),
    ppf=_laplace_ppf,
)
logistic = _make(
    "logistic",
    logpdf=lambda z: special.log_expit(z) + special.log_expit(-z),
    cdf=lambda z: special.expit(z),
    sf=lambda z: special.expit(-z),
    logcdf=lambda z: special.log_expit(z),
    logsf=lambda z: special.log_expit(-z),
    ppf=lambda q: special.logit(q),
)
lognorm = _make(
    "lognorm", TINY,
    logpdf=lambda z, s: -0.5 * (np.log(z) / s) ** 2 - np.log(s * z) - HALF_LOG,
    cdf=lambda z, s: special.ndtr(np.log(z) / s),
    sf=lambda z, s: special.ndtr(-np.log(z) / s),
    logcdf=lambda z, s: special.log_ndtr(np.log(z) / s),
    logsf=lambda z, s: special.log_ndtr(-np.log(z) / s),
    ppf=lambda q, s: np.exp(s * special.ndtri(q)),
)  # fmt: skip
uniform = _make(
    "uniform", 0.0, 1.0,
    logpdf=lambda z: 0.0 * z,
    cdf=lambda z: z,
    ppf=lambda q: q,
)  # fmt: skip
cauchy = _make(
    "cauchy",
    logpdf=lambda z: -log(pi) - np.log1p(z * z),
    cdf=lambda z: np.arctan2(1.0, -z) / pi,
    sf=lambda z: np.arctan2(1.0, z) / pi,
    ppf=lambda q: np.tan(pi * q - pi / 2),
)
halfcauchy = _make(
    "halfcauchy", 0.0,
    logpdf=lambda z: log(2 / pi) - np.log1p(z * z),
    cdf=lambda z: 2 / pi * np.arctan(z),
    sf=lambda z: 2 / pi * np.arctan2(1.0, z),
    ppf=lambda q: np.tan(pi / 2 * q),
)  # fmt: skip
halfnorm = _make(
    "halfnorm", 0.0,
    logpdf=lambda z: 0.5 * log(2 / pi) - 0.5 * z * z,
    cdf=lambda z: special.erf(z / ROOT),
    sf=lambda z: special.erfc(z / ROOT),
    ppf=lambda q: special.ndtri((1 + q) / 2),
)  # fmt: skip
rayleigh = _make(
    "rayleigh", 0.0,
    logpdf=lambda z: np.log(z) - 0.5 * z * z,
    cdf=lambda z: -np.expm1(-0.5 * z * z),
    sf=lambda z: np.exp(-0.5 * z * z),
    logsf=lambda z: -0.5 * z * z,
    ppf=lambda q: np.sqrt(-2 * np.log1p(-q)),
)  # fmt: skip
weibull_min = _make(
    "weibull_min", 0.0,
    logpdf=lambda z, c: np.log(c) + special.xlogy(c - 1, z) - z**c,
    cdf=lambda z, c: -np.expm1(-(z**c)),
    sf=lambda z, c: np.exp(-(z**c)),
    logsf=lambda z, c: -(z**c),
    ppf=lambda q, c: (-np.log1p(-q)) ** (1 / c),
)  # fmt: skip
pareto = _make(
    "pareto", 1.0,
    logpdf=lambda z, b: np.log(b) - (b + 1) * np.log(z),
    cdf=lambda z, b: 1 - z ** (-b),
    sf=lambda z, b: z ** (-b),
    logsf=lambda z, b: -b * np.log(z),
    ppf=lambda q, b: (1 - q) ** (-1 / b),
)  # fmt: skip
powerlaw = _make(
    "powerlaw", 0.0, 1.0,
    logpdf=lambda z, a: np.log(a) + special.xlogy(a - 1, z),
    cdf=lambda z, a: z**a,
    logcdf=lambda z, a: a * np.log(z),
    ppf=lambda q, a: q ** (1 / a),
)  # fmt: skip
gumbel_r = _make(
    "gumbel_r",
    logpdf=lambda z: -z - np.exp(-z),
    cdf=lambda z: np.exp(-np.exp(-z)),
    sf=lambda z: -np.expm1(-np.exp(-z)),
    logcdf=lambda z: -np.exp(-z),
    ppf=lambda q: -np.log(-np.log(q)),
)
gumbel_l = _make(
    "gumbel_l",
    logpdf=lambda z: z - np.exp(z),
    cdf=lambda z: -np.expm1(-np.exp(z)),
    sf=lambda z: np.exp(-np.exp(z)),
    logsf=lambda z: -np.exp(z),
    ppf=lambda q: np.log(-np.log1p(-q)),
)
gompertz = _make(
    "gompertz", 0.0,
    logpdf=lambda z, c: np.log(c) + z - c * np.expm1(z),
    cdf=lambda z, c: -np.expm1(-c * np.expm1(z)),
    sf=lambda z, c: np.exp(-c * np.expm1(z)),
    logsf=lambda z, c: -c * np.expm1(z),
    ppf=lambda q, c: np.log1p(-np.log1p(-q) / c),
)  # fmt: skip
invgamma = _make(
    "invgamma", TINY,
    logpdf=lambda z, a: -(a + 1) * np.log(z) - special.gammaln(a) - 1 / z,
    cdf=lambda z, a: special.gammaincc(a, 1 / z),
    sf=lambda z, a: special.gammainc(a, 1 / z),
    ppf=lambda q, a: 1 / special.gammainccinv(a, q),
)  # fmt: skip
invgauss = _make(
    "invgauss", TINY,
    logpdf=lambda z, mu: -HALF_LOG - 1.5 * np.log(z) - ((z - mu) / mu) ** 2 / (2 * z),
)  # fmt: skip
gennorm = _make(
    "gennorm",
    logpdf=lambda z, b: np.log(0.5 * b) - special.gammaln(1 / b) - np.abs(z) ** b,
)
skewnorm = _make(
    "skewnorm",
    logpdf=lambda z, a: log(2) - HALF_LOG - 0.5 * z * z + special.log_ndtr(a * z),
)
vonmises = _make(
    "vonmises",
    logpdf=lambda z, k: k * special.cosm1(z) - log(2 * pi) - np.log(special.i0e(k)),
)
