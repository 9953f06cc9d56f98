"""Derivatives of SciPy's special ufuncs, found by their names. SciPy is not a dependency and is not
imported here. A rule is registered when its ufunc is first called on a traced value.

An order, a shape parameter or a count has no rule where the table has None: a traced one raises.
Functions that `iso.special` has too get their derivatives from there, if their arguments are real.
"""

import sys
from inspect import Parameter, Signature, signature
from math import log, pi, sqrt
from typing import Any

import numpy as np

from ....core.dispatch import load
from ....meanings.special import beta, errors, incomplete, incomplete_beta, logarithms
from ..tape import constant, elementwise, rule
from ..traced import LATE, TRACED, concrete
from .elementwise import conj, nonzero
from .limits import (
    boxcox_slope,
    dawsn_slope,
    ellipe_slope,
    ellipk_slope,
    inv_boxcox_slope,
    poch_slope,
    rgamma_slope,
    smooth,
    special,
    spence_slope,
    wofz_slope,
)


def by_formula(function, place, y, *args):
    """The derivative of y, a function of `iso.special`, in the argument number `place`."""
    xp: Any = load("numpy")
    arrays = [x if hasattr(x, "dtype") else np.asarray(x) for x in args]
    arrays = [x if x.dtype == y.dtype else xp.astype(x, y.dtype) for x in arrays]
    with np.errstate(all="ignore"):  # of branches that are not taken
        return function.slope(xp, place, y, tuple(np.broadcast_arrays(*arrays)))


def formulas(function, complex_too=()):
    """The partial derivatives of a function of `iso.special`; `complex_too` has those that complex
    numbers need.
    """

    def one(i):
        def chosen(y, *args):
            if complex_too and y.dtype.kind == "c":
                return complex_too[i](y, *args)
            return by_formula(function, i, y, *args)

        return [
            lambda y, a: chosen(y, a), lambda y, a, b: chosen(y, a, b),
            lambda y, a, b, c: chosen(y, a, b, c),
        ][len(function.partials) - 1]  # fmt: skip

    return [one(i) for i in range(len(function.partials))]


def slope(y, a):
    """y / a, where y is a Bessel function of order one at a; its limit 1/2 at a = 0."""
    return np.where(concrete(a) == 0, 0.5, y / nonzero(a))


def power_density(a, x):
    """The derivative of gammainc(a, x) for x."""
    return smooth(incomplete.gamma_density, a, x)


def beta_density(a, b, x):
    """The derivative of betainc(a, b, x) for x."""
    return smooth(incomplete_beta.beta_density, a, b, x)


def student_density(df, t):
    """The derivative of stdtr(df, t) for t."""
    return np.exp(
        -0.5 * (df + 1) * np.log1p(t * t / df) - 0.5 * np.log(df) - special("betaln")(0.5 * df, 0.5)
    )


def ratio_density(m, n, x):
    """The derivative of fdtr(m, n, x) for x."""
    scaled = m * x / (m * x + n)
    return beta_density(0.5 * m, 0.5 * n, scaled) * m * n / (m * x + n) ** 2


def counted(k, m):
    """The probability of k events, if m are expected."""
    k = np.floor(k)
    return np.exp(special("xlogy")(k, m) - m - special("gammaln")(k + 1.0))


def steps(name, v, x, sign):
    """Half of f(v - 1, x) + sign f(v + 1, x), for a Bessel function f of order v."""
    return 0.5 * (special(name)(v - 1, x) + sign * special(name)(v + 1, x))


def psi(x):
    return special("psi")(x)


# One partial derivative per argument, as a function of the output `y` and the arguments `a`, `b`
# and `c`.
# fmt: off
PARTIALS = {
    "erf":       [lambda a: 2 / sqrt(pi) * np.exp(-a * a)],
    "erfc":      [lambda a: -2 / sqrt(pi) * np.exp(-a * a)],
    "erfi":      [lambda a: 2 / sqrt(pi) * np.exp(a * a)],
    "erfcx":     formulas(errors.erfcx, [lambda y, a: 2 * a * y - 2 / sqrt(pi)]),
    "erfinv":    [lambda y: sqrt(pi) / 2 * np.exp(y * y)],
    "erfcinv":   [lambda y: -sqrt(pi) / 2 * np.exp(y * y)],
    "dawsn":     [lambda y, a: dawsn_slope(y, a)],
    "wofz":      [lambda y, a: wofz_slope(y, a)],
    "ndtr":      [lambda a: 1 / sqrt(2 * pi) * np.exp(-0.5 * a * a)],
    "log_ndtr":  formulas(errors.log_ndtr, [
                  lambda y, a: np.exp(-0.5 * a * a - y - 0.5 * log(2 * pi))]),
    "ndtri":     [lambda y: sqrt(2 * pi) * np.exp(0.5 * y * y)],
    "ndtri_exp": [lambda y, a: sqrt(2 * pi) * np.exp(0.5 * y * y + a)],
    "expit":     formulas(logarithms.expit),
    "log_expit": [lambda a: special("expit")(-a)],
    "logit":     [lambda a: 1 / (a * (1 - a))],
    "expm1":     [lambda y: y + 1],
    "log1p":     [lambda a: 1 / (1 + a)],
    "exp2":      [lambda y: log(2) * y],
    "exp10":     [lambda y: log(10) * y],
    "cbrt":      [lambda y: 1 / (3 * y * y)],
    "sindg":     [lambda a: pi / 180 * special("cosdg")(a)],
    "cosdg":     [lambda a: -pi / 180 * special("sindg")(a)],
    "tandg":     [lambda y: pi / 180 * (1 + y * y)],
    "cotdg":     [lambda y: -pi / 180 * (1 + y * y)],
    "cosm1":     [lambda a: -np.sin(a)],
    "gammaln":   [lambda a: psi(a)],
    "loggamma":  [lambda a: psi(a)],
    "gamma":     [lambda y, a: y * psi(a)],
    "rgamma":    [lambda y, a: rgamma_slope(y, a)],
    "psi":       [lambda a: special("_zeta")(2.0, a)],
    "_zeta":     [None, lambda a, b: -a * special("_zeta")(a + 1.0, b)],
    "beta":      formulas(beta.beta),
    "betaln":    formulas(beta.betaln),
    "binom":     formulas(beta.binom),
    "poch":      [lambda y, a, b: poch_slope(y, a, b), lambda y, a, b: y * psi(a + b)],
    "gammainc":     formulas(incomplete.gammainc),
    "gammaincc":    formulas(incomplete.gammaincc),
    "gammaincinv":  [None, lambda y, a: 1 / power_density(a, y)],
    "gammainccinv": [None, lambda y, a: -1 / power_density(a, y)],
    "betainc":      formulas(incomplete_beta.betainc),
    "betaincc":     [lambda a, b, c: -smooth(incomplete_beta.betainc_slope_a, a, b, c),
                     lambda a, b, c: -smooth(incomplete_beta.betainc_slope_b, a, b, c),
                     lambda a, b, c: -beta_density(a, b, c)],
    "betaincinv":   [None, None, lambda y, a, b: 1 / beta_density(a, b, y)],
    "betainccinv":  [None, None, lambda y, a, b: -1 / beta_density(a, b, y)],
    "stdtr":     [None, lambda a, b: student_density(a, b)],
    "stdtrit":   [None, lambda y, a: 1 / student_density(a, y)],
    "chdtr":     [None, lambda a, b: 0.5 * power_density(0.5 * a, 0.5 * b)],
    "chdtrc":    [None, lambda a, b: -0.5 * power_density(0.5 * a, 0.5 * b)],
    "fdtr":      [None, None, lambda a, b, c: ratio_density(a, b, c)],
    "fdtrc":     [None, None, lambda a, b, c: -ratio_density(a, b, c)],
    "pdtr":      [None, lambda a, b: -counted(a, b)],
    "pdtrc":     [None, lambda a, b: counted(a, b)],
    "xlogy":     formulas(logarithms.xlogy, [
                  lambda y, a, b: logarithms.log_unless(np, a, b),
                  lambda y, a, b: logarithms.over.kernel(np, a, b)]),
    "xlog1py":   formulas(logarithms.xlog1py, [
                  lambda y, a, b: logarithms.log1p_unless(np, a, b),
                  lambda y, a, b: logarithms.over.kernel(np, a, 1 + b)]),
    "entr":      formulas(logarithms.entr),
    "rel_entr":  formulas(logarithms.rel_entr),
    "kl_div":    formulas(logarithms.kl_div),
    "huber":     [lambda a, b: np.where(np.abs(b) <= a, 0.0, np.abs(b) - a),
                  lambda a, b: np.clip(b, -a, a)],
    "pseudo_huber": [lambda a, b: 2 * a * (np.hypot(1, b / a) - 1) - b * b / a / np.hypot(1, b / a),
                     lambda a, b: b / np.hypot(1, b / a)],
    "boxcox":    [lambda a, b: a ** (b - 1.0), lambda a, b: boxcox_slope(a, b)],
    "inv_boxcox": [lambda y, a, b: y ** (1 - b), lambda y, a, b: inv_boxcox_slope(y, a, b)],
    "exp1":      [lambda a: -np.exp(-a) / a],
    "expi":      [lambda a: np.exp(a) / a],
    "expn":      [None, lambda a, b: -special("expn")(a - 1, b)],
    "spence":    [lambda a: spence_slope(a)],
    "ellipk":    [lambda y, a: ellipk_slope(y, a)],
    "ellipkm1":  [lambda y, a: -ellipk_slope(y, 1 - a, a)],
    "ellipe":    [lambda y, a: ellipe_slope(y, a)],
    "ellipkinc": [lambda a, b: 1 / np.sqrt(1 - b * np.sin(a) ** 2), None],
    "ellipeinc": [lambda a, b: np.sqrt(1 - b * np.sin(a) ** 2), None],
    "hyp0f1":    [None, lambda a, b: special("hyp0f1")(a + 1, b) / a],
    "hyp1f1":    [None, None, lambda a, b, c: a / b * special("hyp1f1")(a + 1, b + 1, c)],
    "hyp2f1":    [None, None, None, lambda a, b, c, d:
                  a * b / c * special("hyp2f1")(a + 1, b + 1, c + 1, d)],
    "_lambertw": [lambda y: 1 / (np.exp(y) * (1 + y)), None, None],
    "i0":        [lambda a: special("i1")(a)],
    "i1":        [lambda y, a: special("i0")(a) - slope(y, a)],
    "i0e":       [lambda y, a: special("i1e")(a) - np.sign(a) * y],
    "i1e":       [lambda y, a: special("i0e")(a) - np.sign(a) * y - slope(y, a)],
    "k0":        [lambda a: -special("k1")(a)],
    "k1":        [lambda y, a: -special("k0")(a) - y / a],
    "k0e":       [lambda y, a: y - special("k1e")(a)],
    "k1e":       [lambda y, a: y - special("k0e")(a) - y / a],
    "j0":        [lambda a: -special("j1")(a)],
    "j1":        [lambda y, a: special("j0")(a) - slope(y, a)],
    "y0":        [lambda a: -special("y1")(a)],
    "y1":        [lambda y, a: special("y0")(a) - y / a],
    "iv":        [None, lambda a, b: steps("iv", a, b, 1)],
    "ive":       [None, lambda y, a, b: steps("ive", a, b, 1) - np.sign(np.real(b)) * y],
    "jv":        [None, lambda a, b: steps("jv", a, b, -1)],
    "yv":        [None, lambda a, b: steps("yv", a, b, -1)],
    "yn":        [None, lambda a, b: steps("yn", a, b, -1)],
    "kv":        [None, lambda a, b: -steps("kv", a, b, 1)],
    "kve":       [None, lambda y, a, b: y - steps("kve", a, b, 1)],
}
# fmt: on
CONSTANT = ("gammasgn", "round")


def _pullback(derivative):
    """A partial as `elementwise` takes it: its parameters are `g` and those of `derivative`."""

    def partial(g, *saved):
        return g * conj(derivative(*saved))

    names = ["g", *signature(derivative).parameters]
    # type: ignore
    partial.__signature__ = Signature([Parameter(n, Parameter.POSITIONAL_ONLY) for n in names])
    return partial


def _some(partials):
    """The rule of a ufunc of many arguments, or without a derivative for some of them."""

    def maker(y, *args):
        values = dict(zip("yabcd", (y, *args)))

        def back(derivative):
            picked = tuple(values[name] for name in signature(derivative).parameters)
            return lambda g: g * conj(derivative(*picked))

        return tuple(None if p is None else back(p) for p in partials)

    return maker


def _late(ufunc):
    """Register the rule for a ufunc of SciPy and return it; None if the ufunc is not SciPy's."""
    if getattr(sys.modules.get("scipy.special._ufuncs"), ufunc.__name__, None) is not ufunc:
        return None
    partials = PARTIALS.get(ufunc.__name__)
    if partials is None:
        constant(ufunc)
    elif None in partials or len(partials) > 2:
        rule(ufunc)(_some(partials))
    else:
        elementwise(ufunc, *map(_pullback, partials))
    return TRACED[ufunc]


LATE |= dict.fromkeys((*PARTIALS, *CONSTANT), _late)
