"""Discrete distributions of one variable. The gradient is that of the parameters."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy
import scipy.special
import scipy.stats

from ...backends.numpy.traced import concrete
from . import tails
from .distribution import Distribution, Formula

__all__ = [
    "bernoulli",
    "binom",
    "geom",
    "nbinom",
    "poisson",
]

np: Any = numpy  # its type stubs do not know traced values
theirs: Any = scipy.stats
special: Any = scipy.special


def _make(name: str, low: float, high: float = inf, **formulas: Formula) -> Distribution:
    return Distribution(getattr(theirs, name), low, high, formulas)


def _binom_logpmf(k: Any, n: Any, p: Any) -> Any:
    over = k > concrete(n)
    most = np.where(over, 0.0, k)
    ways = special.gammaln(n + 1.0) - special.gammaln(most + 1.0) - special.gammaln(n - most + 1.0)
    y = ways + special.xlogy(most, p) + special.xlog1py(n - most, -p)
    return np.where(over, -np.inf, y)


def _binom(every: float, inside: Formula) -> Formula:
    """A function that is `every` where k counts all outcomes. `inside` has the arguments of the
    incomplete beta function that is the probability of more than k successes.
    """

    def formula(k: Any, n: Any, p: Any) -> Any:
        k = np.floor(k)
        over = k >= concrete(n)
        a, b = np.where(over, 1.0, k + 1), np.where(over, 1.0, n - k)
        return np.where(over, every, inside(a, b, p))

    return formula


poisson = _make(
    "poisson", 0.0,
    logpmf=lambda k, mu: special.xlogy(k, mu) - special.gammaln(k + 1.0) - mu,
    cdf=lambda k, mu: special.gammaincc(np.floor(k) + 1, mu),
    sf=lambda k, mu: special.gammainc(np.floor(k) + 1, mu),
    logcdf=lambda k, mu: tails.log_gammaincc(np.floor(k) + 1, mu),
    logsf=lambda k, mu: tails.log_gammainc(np.floor(k) + 1, mu),
)  # fmt: skip
binom = _make(
    "binom", 0.0,
    logpmf=_binom_logpmf,
    cdf=_binom(1.0, lambda a, b, p: special.betainc(b, a, 1 - p)),
    sf=_binom(0.0, lambda a, b, p: special.betainc(a, b, p)),
    logcdf=_binom(0.0, lambda a, b, p: tails.log_betainc(b, a, 1 - p, p)),
    logsf=_binom(-inf, lambda a, b, p: tails.log_betainc(a, b, p, 1 - p)),
)  # fmt: skip
bernoulli = _make(
    "bernoulli", 0.0, 1.0,
    logpmf=lambda k, p: special.xlogy(k, p) + special.xlog1py(1 - k, -p),
    cdf=lambda k, p: np.where(k < 1, 1 - p, 1.0),
    sf=lambda k, p: np.where(k < 1, p, 0.0),
    logcdf=lambda k, p: np.where(k < 1, np.log1p(-np.where(k < 1, p, 0.5)), 0.0),
    logsf=lambda k, p: np.where(k < 1, np.log(np.where(k < 1, p, 0.5)), -np.inf),
)  # fmt: skip
geom = _make(
    "geom", 1.0,
    logpmf=lambda k, p: special.xlog1py(k - 1, -p) + np.log(p),
    cdf=lambda k, p: -np.expm1(special.xlog1py(np.floor(k), -p)),
    sf=lambda k, p: np.exp(special.xlog1py(np.floor(k), -p)),
    logsf=lambda k, p: special.xlog1py(np.floor(k), -p),
)  # fmt: skip
nbinom = _make(
    "nbinom", 0.0,
    logpmf=lambda k, n, p: (
        special.gammaln(n + k) - special.gammaln(k + 1.0) - special.gammaln(n)
        + n * np.log(p) + special.xlog1py(k, -p)
    ),
    cdf=lambda k, n, p: special.betainc(n, np.floor(k) + 1, p),
    sf=lambda k, n, p: special.betainc(np.floor(k) + 1, n, 1 - p),
    logcdf=lambda k, n, p: tails.log_betainc(n, np.floor(k) + 1, p, 1 - p),
    logsf=lambda k, n, p: tails.log_betainc(np.floor(k) + 1, n, 1 - p, p),
)  # fmt: skip
