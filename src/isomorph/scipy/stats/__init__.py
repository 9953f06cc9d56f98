"""`scipy.stats`: densities and distribution functions with gradients."""

from typing import Any

import scipy.stats as theirs

from .continuous import (
    beta,
    cauchy,
    chi2,
    expon,
    f,
    gamma,
    gennorm,
    gompertz,
    gumbel_l,
    gumbel_r,
    halfcauchy,
    halfnorm,
    invgamma,
    invgauss,
    laplace,
    logistic,
    lognorm,
    norm,
    pareto,
    powerlaw,
    rayleigh,
    skewnorm,
    t,
    uniform,
    vonmises,
    weibull_min,
)
from .discrete import bernoulli, binom, geom, nbinom, poisson
from .multivariate import dirichlet, multinomial, multivariate_normal


def __getattr__(name: str) -> Any:
    return getattr(theirs, name)


def __dir__() -> list[str]:
    return dir(theirs)
