"""Discrete distributions of one variable. The gradient is that of the parameters."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy
import scipy.special
import scipy.stats

from ...backends.numpy.traced import concrete
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
    ways = special.gammaln(n + 1.0) - special.gammaln(k + 1.0) - special.gammaln(n - k + 1.0)
    return np.where(
        concrete(k) > concrete(n), -np.inf, ways + special.xlogy(k, p) + special.xlog1py(n - k, -p)
    )


def _binom_tail(k: Any, n: Any, p: Any) -> Any:
    """The probability of more than k successes."""
    k = np.floor(k)
    over = concrete(k) >= concrete(n)
    return np.where(over, 0.0, special.betainc(k + 1, np.where(over, 1, n - k), p))


def _geom_tail(k: Any, p: Any) -> Any:
    return np.exp(np.floor(k) * np.log1p(-p))


poisson = _make(
    "poisson", 0.0,
    logpmf=lambda k, mu: special.xlogy(k, mu) - special.gammaln(k + 1.0) - mu,
    cdf=lambda k, mu: special.pdtr(np.floor(k), mu),
    sf=lambda k, mu: special.pdtrc(np.floor(k), mu),
)  # fmt: skip
binom = _make(
    "binom", 0.0,
    logpmf=_binom_logpmf,
    cdf=lambda k, n, p: 1 - _binom_tail(k, n, p),
    sf=_binom_tail,
)  # fmt: skip
bernoulli = _make(
    "bernoulli", 0.0, 1.0,
    logpmf=lambda k, p: special.xlogy(k, p) + special.xlog1py(1 - k, -p),
    cdf=lambda k, p: np.where(k < 1, 1 - p, 1.0),
    sf=lambda k, p: np.where(k < 1, p, 0.0),
)  # fmt: skip
geom = _make(
    "geom", 1.0,
    logpmf=lambda k, p: special.xlog1py(k - 1, -p) + np.log(p),
    cdf=lambda k, p: 1 - _geom_tail(k, p),
    sf=_geom_tail,
    logsf=lambda k, p: np.floor(k) * np.log1p(-p),
)  # fmt: skip
nbinom = _make(
    "nbinom", 0.0,
    logpmf=lambda k, n, p: (
        special.gammaln(n + k) - special.gammaln(k + 1.0) - special.gammaln(n)
        + n * np.log(p) + special.xlog1py(k, -p)
    ),
    cdf=lambda k, n, p: special.betainc(n, np.floor(k) + 1, p),
    sf=lambda k, n, p: special.betainc(np.floor(k) + 1, n, 1 - p),
)  # fmt: skip
