"""Derivatives of SciPy's special ufuncs, found by their names. SciPy is not a dependency and is not
imported here. A rule is registered when its ufunc is first called on a traced value.
"""

import sys
from inspect import Parameter, Signature, signature
from math import log, pi, sqrt

import numpy as np

from ..tape import elementwise
from ..traced import LATE, TRACED, concrete, no_rule
from .elementwise import conj, nonzero


def special(name):
    return getattr(sys.modules["scipy.special"]._ufuncs, name)


def ratio(a, b):
    """a / b, but 0 where a is 0."""
    return a / np.where(concrete(a) == 0, 1.0, b)


def safe(test, at, b):
    """`b`, but 1 where `b` equals `at` and `test` is 0, so that its logarithm is 0 there."""
    return np.where((concrete(test) == 0) & (concrete(b) == at), 1.0, b)


def slope(y, a):
    """y / a, where y is a Bessel function of order one at a; its limit 1/2 at a = 0."""
    return np.where(concrete(a) == 0, 0.5, y / nonzero(a))


# One partial derivative per argument, as a function of the output `y` and the arguments `a`, `b`.
# fmt: off
PARTIALS = {
    "erf":       [lambda a: 2 / sqrt(pi) * np.exp(-a * a)],
    "erfc":      [lambda a: -2 / sqrt(pi) * np.exp(-a * a)],
    "erfcx":     [lambda y, a: 2 * a * y - 2 / sqrt(pi)],
    "erfinv":    [lambda y: sqrt(pi) / 2 * np.exp(y * y)],
    "erfcinv":   [lambda y: -sqrt(pi) / 2 * np.exp(y * y)],
    "ndtr":      [lambda a: 1 / sqrt(2 * pi) * np.exp(-0.5 * a * a)],
    "log_ndtr":  [lambda y, a: np.exp(-0.5 * a * a - y - 0.5 * log(2 * pi))],
    "ndtri":     [lambda y: sqrt(2 * pi) * np.exp(0.5 * y * y)],
    "expit":     [lambda y: y * (1 - y)],
    "log_expit": [lambda a: special("expit")(-a)],
    "logit":     [lambda a: 1 / (a * (1 - a))],
    "gammaln":   [lambda a: special("psi")(a)],
    "loggamma":  [lambda a: special("psi")(a)],
    "gamma":     [lambda y, a: y * special("psi")(a)],
    "psi":       [lambda a: special("_zeta")(2.0, a)],
    "_zeta":     [lambda a, b: no_rule(special("_zeta"), " in its first argument"),
                  lambda a, b: -a * special("_zeta")(a + 1.0, b)],
    "xlogy":     [lambda a, b: np.log(safe(a, 0, b)), lambda a, b: ratio(a, b)],
    "xlog1py":   [lambda a, b: np.log(safe(a, 0, 1 + b)), lambda a, b: ratio(a, 1 + b)],
    "entr":      [lambda a: -np.log(a) - 1],
    "rel_entr":  [lambda a, b: np.log(a / b) + 1, lambda a, b: -a / b],
    "kl_div":    [lambda a, b: np.log(a / b), lambda a, b: 1 - a / b],
    "i0":        [lambda a: special("i1")(a)],
    "i1":        [lambda y, a: special("i0")(a) - slope(y, a)],
    "j0":        [lambda a: -special("j1")(a)],
    "j1":        [lambda y, a: special("j0")(a) - slope(y, a)],
    "cosm1":     [lambda a: -np.sin(a)],
}
# fmt: on


def _pullback(derivative):
    """A partial as `elementwise` takes it: its parameters are `g` and those of `derivative`."""

    def partial(g, *saved):
        return g * conj(derivative(*saved))

    names = ["g", *signature(derivative).parameters]
    # type: ignore
    partial.__signature__ = Signature([Parameter(n, Parameter.POSITIONAL_ONLY) for n in names])
    return partial


def _late(ufunc):
    """Register the rule for a ufunc of SciPy and return it; None if the ufunc is not SciPy's."""
    if getattr(sys.modules.get("scipy.special._ufuncs"), ufunc.__name__, None) is not ufunc:
        return None
    elementwise(ufunc, *map(_pullback, PARTIALS[ufunc.__name__]))
    return TRACED[ufunc]


LATE |= dict.fromkeys(PARTIALS, _late)
