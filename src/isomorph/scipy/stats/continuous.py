"""Continuous distributions of one variable: the logarithm of the density, and what is needed for
the derivatives in shape parameters and for the values in far tails.
"""

from __future__ import annotations

from math import inf, log, pi, sqrt
from typing import Any

import numpy
import scipy.special
import scipy.stats

from ...backends.numpy.traced import concrete
from . import tails
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


def _make(
    name: str, low: float = -inf, high: float = inf, values: dict[str, Formula] | None = None,
    **formulas: Formula,
) -> Distribution:  # fmt: skip
    return Distribution(getattr(theirs, name), low, high, formulas, values)


def _sides(z: Any) -> tuple[Any, Any, Any]:
    """Where z is positive, its positive part, and its negative part."""
    right = concrete(z) > 0
    return right, np.where(right, z, 0.0), np.where(right, 0.0, z)


def _laplace_logcdf(z: Any) -> Any:
    right, above, below = _sides(z)
    return np.where(right, np.log1p(-0.5 * np.exp(-above)), below - log(2))


def _mirrored(z: Any, tail: Any, log_tail: Any = None) -> Any:
    """The distribution function of a symmetric distribution, or its logarithm. `tail` is the share
    beyond |z| on one side.
    """
    right = concrete(z) > 0
    if log_tail is None:
        return np.where(right, 1 - tail, tail)
    return np.where(right, np.log1p(-np.where(right, tail, 0.0)), np.where(right, 0.0, log_tail))


def _student(z: Any, df: Any) -> tuple[Any, Any, Any, Any]:
    """The arguments of the incomplete beta function that is twice the tail of Student's t."""
    return 0.5 * df, 0.5, df / (df + z * z), z * z / (df + z * z)


def _student_tail(z: Any, df: Any) -> Any:
    middle = concrete(z) == 0  # one half on each side, whatever df is
    a, b, x, rest = _student(np.where(middle, 1.0, np.clip(z, -1e150, 1e150)), df)
    far = concrete(x) < 0.5
    twice = np.where(
        far,
        special.betainc(a, b, np.where(far, x, 0.25)),
        special.betaincc(b, a, np.where(far, 0.25, rest)),
    )
    return np.where(middle, 0.5, 0.5 * twice)


def _student_logcdf(z: Any, df: Any) -> Any:
    size = np.abs(concrete(z))
    middle, wide = size == 0, size > 1e100  # the square may overflow: the leading term is enough
    logs = 0.5 * df * np.log(df) - df * np.log(np.abs(np.where(wide, z, 1.0))) - np.log(0.5 * df)
    far = logs - special.betaln(0.5 * df, 0.5)
    near = tails.log_betainc(*_student(np.where(wide | middle, 1.0, z), df))
    tail = log(0.5) + np.where(middle, 0.0, np.where(wide, far, near))
    return _mirrored(z, _student_tail(z, df), tail)


def _ratio(z: Any, m: Any, n: Any) -> tuple[Any, Any, Any, Any]:
    """The arguments of the incomplete beta function that is the distribution function of F."""
    whole = m * z + n
    return 0.5 * m, 0.5 * n, m * z / whole, n / whole


def _ratio_logpdf(z: Any, m: Any, n: Any) -> Any:
    return (
        0.5 * m * np.log(m)
        + 0.5 * n * np.log(n)
        + special.xlogy(0.5 * m - 1, z)
        - 0.5 * (m + n) * np.log(n + m * z)
        - special.betaln(0.5 * m, 0.5 * n)
    )


def _ratio_cdf(z: Any, m: Any, n: Any) -> Any:
    a, b, x, _ = _ratio(z, m, n)
    return special.betainc(a, b, x)


def _ratio_logsf(z: Any, m: Any, n: Any) -> Any:
    wide = concrete(z) > 1e100  # squares may overflow; only the leading term is left
    a, b, x, rest = _ratio(np.where(wide, 1.0, z), m, n)
    logs = b * (np.log(n) - np.log(m) - np.log(np.where(wide, z, 1.0))) - np.log(b)
    return np.where(wide, logs - special.betaln(a, b), tails.log_betainc(b, a, rest, x))


def _ratio_isf(q: Any, m: Any, n: Any) -> Any:
    rest = special.betaincinv(0.5 * n, 0.5 * m, q)
    # q near 1 has a `rest` near 1
    return np.where(rest < 0.5, n * (1 - rest) / (m * rest), theirs.f.isf(q, m, n))


def _halfcauchy_ppf(q: Any) -> Any:
    return np.where(q > 0.5, 1 / np.tan(pi / 2 * (1 - q)), np.tan(pi / 2 * q))


def _halfcauchy_isf(q: Any) -> Any:
    return np.where(q > 0.5, np.tan(pi / 2 * (1 - q)), 1 / np.tan(pi / 2 * q))


def _halfnorm_logsf(z: Any) -> Any:
    near = concrete(z) < 1
    far = log(2) + special.log_ndtr(-z)
    return np.where(near, np.log1p(-special.erf(np.where(near, z, 0.0) / ROOT)), far)


def _gennorm_cdf(z: Any, b: Any, is_log: bool = False) -> Any:
    """Or its logarithm. One half at 0, whatever b is."""
    middle = concrete(z) == 0
    a, x = 1 / b, np.abs(np.where(middle, 1.0, z)) ** b
    tail = np.where(middle, 0.5, 0.5 * special.gammaincc(a, x))
    if not is_log:
        return _mirrored(z, tail)
    return _mirrored(z, tail, log(0.5) + np.where(middle, 0.0, tails.log_gammaincc(a, x)))


def _invgauss_falls(z: Any, mu: Any) -> tuple[Any]:
    return (log(2) - 2 * np.log(mu) + 2 / mu + special.log_ndtr(-(z / mu + 1) / np.sqrt(z)),)


def _invgauss_quantile(name: str, q: Any, mu: Any) -> Any:
    """SciPy's, and a search of our own where that one fails."""
    y = getattr(theirs.invgauss, name)(q, mu)
    share, sign = (theirs.invgauss.logcdf, 1) if name == "ppf" else (theirs.invgauss.logsf, -1)
    return _checked(lambda z, mu: share(z, mu), sign, 0.0, q, y, mu)


def _skewnorm_falls(z: Any, a: Any) -> tuple[Any]:
    return (-0.5 * z * z * (1 + a * a) - np.log(pi * (1 + a * a)),)


def _skewnorm_logcdf(z: Any, a: Any) -> Any:
    return tails.skewnorm_logcdf(z, a, theirs.skewnorm)


def _skewnorm_cdf(z: Any, a: Any) -> Any:
    y = theirs.skewnorm.cdf(z, a)
    return np.where(y < 0.1, np.exp(_skewnorm_logcdf(z, a)), y)


def _skewnorm_ppf(q: Any, a: Any) -> Any:
    return _checked(_skewnorm_logcdf, 1, -inf, q, theirs.skewnorm.ppf(q, a), a)


def _checked(log_share: Formula, sign: int, low: float, q: Any, y: Any, shape: Any) -> Any:
    """The quantile `y`, searched for again where its share is not `q`."""
    wanted = np.log(q)
    given = (q > 0) & (q < 1) & np.isfinite(wanted)
    close = np.abs(log_share(np.where(given, y, 1.0), shape) - wanted) < 1e-12 * (1 - wanted)
    again = given & ~close
    if not np.any(again):
        return y
    y, shape = np.array(y, float), np.broadcast_to(shape, np.shape(q))
    at = shape[again]
    y[again] = tails.solved(lambda z: log_share(z, at), wanted[again], low, sign)
    return y


HALF_LOG = 0.5 * log(2 * pi)
ROOT = sqrt(2)

norm = _make("norm", logpdf=lambda z: -0.5 * z * z - HALF_LOG)
gamma = _make(
    "gamma", 0.0,
    logpdf=lambda z, a: special.xlogy(a - 1, z) - z - special.gammaln(a),
    cdf=lambda z, a: special.gammainc(a, z),
    sf=lambda z, a: special.gammaincc(a, z),
    logcdf=lambda z, a: tails.log_gammainc(a, z),
    logsf=lambda z, a: tails.log_gammaincc(a, z),
)  # fmt: skip
beta = _make(
    "beta", 0.0, 1.0,
    logpdf=lambda z, a, b: (
        special.xlogy(a - 1, z) + special.xlog1py(b - 1, -z) - special.betaln(a, b)
    ),
    cdf=lambda z, a, b: special.betainc(a, b, z),
    sf=lambda z, a, b: special.betaincc(a, b, z),
    logcdf=lambda z, a, b: tails.log_betainc(a, b, z, 1 - z),
    logsf=lambda z, a, b: tails.log_betainc(b, a, 1 - z, z),
)  # fmt: skip
t = _make(
    "t",
    logpdf=lambda z, df: (
        -0.5 * (df + 1) * tails.log1p_square(z / np.sqrt(df))
        - 0.5 * np.log(df)
        - special.betaln(0.5 * df, 0.5)
    ),
    cdf=lambda z, df: _mirrored(z, _student_tail(z, df)),
    sf=lambda z, df: _mirrored(-z, _student_tail(z, df)),
    logcdf=_student_logcdf,
    logsf=lambda z, df: _student_logcdf(-z, df),
)
chi2 = _make(
    "chi2", 0.0,
    logpdf=lambda z, df: (
        special.xlogy(0.5 * df - 1, z) - 0.5 * z - special.gammaln(0.5 * df) - 0.5 * df * log(2)
    ),
    cdf=lambda z, df: special.gammainc(0.5 * df, 0.5 * z),
    sf=lambda z, df: special.gammaincc(0.5 * df, 0.5 * z),
    logcdf=lambda z, df: tails.log_gammainc(0.5 * df, 0.5 * z),
    logsf=lambda z, df: tails.log_gammaincc(0.5 * df, 0.5 * z),
)  # fmt: skip
f = _make(
    "f", 0.0,
    values={"isf": _ratio_isf},
    logpdf=_ratio_logpdf,
    cdf=_ratio_cdf,
    sf=lambda z, m, n: np.exp(_ratio_logsf(z, m, n)),
    logcdf=lambda z, m, n: tails.log_betainc(*_ratio(z, m, n)),
    logsf=_ratio_logsf,
)  # fmt: skip
expon = _make("expon", 0.0, logpdf=lambda z: -z)
laplace = _make(
    "laplace",
    logpdf=lambda z: -np.abs(z) - log(2),
    logcdf=_laplace_logcdf,
    logsf=lambda z: _laplace_logcdf(-z),
)
logistic = _make("logistic", logpdf=lambda z: special.log_expit(z) + special.log_expit(-z))
lognorm = _make(
    "lognorm", TINY,
    logpdf=lambda z, s: -0.5 * (np.log(z) / s) ** 2 - np.log(s * z) - HALF_LOG,
    cdf=lambda z, s: special.ndtr(np.log(z) / s),
    sf=lambda z, s: special.ndtr(-np.log(z) / s),
    logcdf=lambda z, s: special.log_ndtr(np.log(z) / s),
    logsf=lambda z, s: special.log_ndtr(-np.log(z) / s),
)  # fmt: skip
uniform = _make("uniform", 0.0, 1.0, logpdf=lambda z: 0.0 * z)
cauchy = _make("cauchy", logpdf=lambda z: -log(pi) - tails.log1p_square(z))
halfcauchy = _make(
    "halfcauchy", 0.0,
    values={"isf": _halfcauchy_isf, "ppf": _halfcauchy_ppf},
    logpdf=lambda z: log(2 / pi) - tails.log1p_square(z),
)  # fmt: skip
halfnorm = _make(
    "halfnorm", 0.0,
    values={"ppf": lambda q: ROOT * special.erfinv(q)},
    logpdf=lambda z: 0.5 * log(2 / pi) - 0.5 * z * z,
    logsf=_halfnorm_logsf,
)  # fmt: skip
rayleigh = _make("rayleigh", 0.0, logpdf=lambda z: np.log(z) - 0.5 * z * z)
weibull_min = _make(
    "weibull_min", 0.0,
    logpdf=lambda z, c: np.log(c) + special.xlogy(c - 1, z) - z**c,
    cdf=lambda z, c: -np.expm1(-(z**c)),
    sf=lambda z, c: np.exp(-(z**c)),
    logsf=lambda z, c: -(z**c),
)  # fmt: skip
pareto = _make(
    "pareto", 1.0,
    values={"cdf": lambda z, b: -np.expm1(-b * np.log(z))},
    logpdf=lambda z, b: np.log(b) - (b + 1) * np.log(z),
    cdf=lambda z, b: -np.expm1(-b * np.log(z)),
    sf=lambda z, b: z ** (-b),
    logsf=lambda z, b: -b * np.log(z),
)  # fmt: skip
powerlaw = _make(
    "powerlaw", 0.0, 1.0,
    logpdf=lambda z, a: np.log(a) + special.xlogy(a - 1, z),
    cdf=lambda z, a: z**a,
    logcdf=lambda z, a: special.xlogy(a, z),
)  # fmt: skip
gumbel_r = _make(
    "gumbel_r",
    logpdf=lambda z: -z - np.exp(-z),
    logsf=lambda z: tails.log_expm1_exp(-z),
)
gumbel_l = _make(
    "gumbel_l",
    logpdf=lambda z: z - np.exp(z),
    logcdf=tails.log_expm1_exp,
)
gompertz = _make(
    "gompertz", 0.0,
    logpdf=lambda z, c: np.log(c) + z - c * np.expm1(z),
    cdf=lambda z, c: -np.expm1(-c * np.expm1(z)),
    sf=lambda z, c: np.exp(-c * np.expm1(z)),
    logsf=lambda z, c: -c * np.expm1(z),
)  # fmt: skip
invgamma = _make(
    "invgamma", TINY,
    logpdf=lambda z, a: -(a + 1) * np.log(z) - special.gammaln(a) - 1 / z,
    cdf=lambda z, a: special.gammaincc(a, 1 / z),
    sf=lambda z, a: special.gammainc(a, 1 / z),
    logcdf=lambda z, a: tails.log_gammaincc(a, 1 / z),
    logsf=lambda z, a: tails.log_gammainc(a, 1 / z),
)  # fmt: skip
invgauss = _make(
    "invgauss", TINY,
    values={
        "ppf": lambda q, mu: _invgauss_quantile("ppf", q, mu),
        "isf": lambda q, mu: _invgauss_quantile("isf", q, mu),
        "logcdf": theirs.invgauss.logcdf,
        "logsf": theirs.invgauss.logsf,
    },
    logpdf=lambda z, mu: -HALF_LOG - 1.5 * np.log(z) - ((z - mu) / mu) ** 2 / (2 * z),
    falls=_invgauss_falls,
)  # fmt: skip
gennorm = _make(
    "gennorm",
    logpdf=lambda z, b: np.log(0.5 * b) - special.gammaln(1 / b) - np.abs(z) ** b,
    cdf=_gennorm_cdf,
    sf=lambda z, b: _gennorm_cdf(-z, b),
    logcdf=lambda z, b: _gennorm_cdf(z, b, True),
    logsf=lambda z, b: _gennorm_cdf(-z, b, True),
)
skewnorm = _make(
    "skewnorm",
    values={
        "cdf": _skewnorm_cdf,
        "sf": lambda z, a: _skewnorm_cdf(-z, -a),
        "logcdf": _skewnorm_logcdf,
        "logsf": lambda z, a: _skewnorm_logcdf(-z, -a),
        "ppf": _skewnorm_ppf,
        "isf": lambda q, a: -_skewnorm_ppf(q, -a),
    },
    logpdf=lambda z, a: log(2) - HALF_LOG - 0.5 * z * z + special.log_ndtr(a * z),
    falls=_skewnorm_falls,
)
vonmises = _make(
    "vonmises",
    logpdf=lambda z, k: k * special.cosm1(z) - log(2 * pi) - np.log(special.i0e(k)),
)
