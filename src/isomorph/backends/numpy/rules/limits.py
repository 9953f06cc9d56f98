"""Slopes of SciPy's functions at points where the usual formula is 0/0 or 0·∞, or loses its digits.

Formulas that frameworks share are in `meanings/special`; these are only needed for functions that
SciPy alone has.
"""

import sys
from functools import cache
from math import comb, factorial, pi, sqrt
from typing import Any

import numpy as np

from ....core.dispatch import load
from ....meanings.special.errors import SERIES
from ....meanings.special.series import polynomial
from ....meanings.special.smooth import Smooth
from ..traced import concrete


def special(name):
    return getattr(sys.modules["scipy.special"]._ufuncs, name)


def smooth(function, *args):
    """A `Smooth` function of arguments that broadcast; numbers count as arrays, and integers, such
    as the counts of a distribution, as floats of the dtype of the others.
    """
    xp: Any = load("numpy")
    arrays = [np.asarray(x) if isinstance(x, (int, float)) else x for x in args]
    kinds = [x.dtype for x in arrays if x.dtype.kind == "f"] or [np.dtype(float)]
    dtype = np.result_type(*kinds)
    arrays = [x if x.dtype.kind == "f" else x.astype(dtype) for x in arrays]
    return xp.smooth(function, tuple(np.broadcast_arrays(*arrays)))


@cache
def exp_moment(k):
    """∫ sᵏ·e^(t·s) ds from 0 to 1; its derivative in t is the next one. The first is (eᵗ − 1)/t."""
    series = [1 / (factorial(j) * (j + k + 1)) for j in range(28)]

    def kernel(xp, t):
        near = np.abs(t) < 2
        far = np.where(near, 2.0, t)
        found = np.expm1(far) / far
        for i in range(1, k + 1):
            found = (np.exp(far) - i * found) / far
        return np.where(near, polynomial(series, np.where(near, t, 0.0)), found)

    return Smooth(kernel, [lambda xp, _, t: exp_moment(k + 1)(xp, t)])


@cache
def log_moment(k):
    """∫ sᵏ/(1 + u·s)^(k + 1) ds from 0 to 1; its derivative in u is −(k + 1) times the next one.
    The first is log(1 + u)/u.
    """
    series = [(-1) ** j * comb(k + j, j) / (k + j + 1) for j in range(40)]

    def kernel(xp, u):
        near = np.abs(u) < 0.3
        far = np.where(near, 1.0, u)
        found = np.log1p(far) / far
        for i in range(1, k + 1):
            found = (found - 1 / (i * (1 + far) ** i)) / far
        return np.where(near, polynomial(series, np.where(near, u, 0.0)), found)

    return Smooth(kernel, [lambda xp, _, u: -(k + 1) * log_moment(k + 1)(xp, u)])


def boxcox_slope(a, b):
    """The derivative of (aᵇ − 1)/b for b."""
    logs = np.log(a)
    return logs * logs * smooth(exp_moment(1), b * logs)


def inv_boxcox_slope(y, a, b):
    """The derivative of y = (1 + a·b)^(1/b) for b."""
    return -y * a * a * smooth(log_moment(1), a * b)


def spence_slope(a):
    """log(a)/(1 − a), and −1 at 1."""
    if a.dtype.kind != "c":
        return -smooth(log_moment(0), a - 1)
    one = concrete(a) == 1
    return np.where(one, -1.0, np.log(a) / (1 - np.where(one, 0.5, a)))


def series_tail(u):
    """Σ (2n − 1)!!·uⁿ from n = 1, which is 2x·D(x) − 1 of Dawson's function for u = 1/(2x²)."""
    return u * polynomial([abs(c) for c in SERIES[1:]], u)


def dawsn_slope(y, a):
    """1 − 2·a·y; by the asymptotic series where this difference cancels."""
    if a.dtype.kind == "c":
        return 1 - 2 * a * y
    large = np.abs(concrete(a)) > 10
    far = np.where(large, a, 10.0)
    return np.where(large, -series_tail(0.5 / far / far), 1 - 2 * np.where(large, 0.0, a) * y)


def wofz_slope(y, a):
    """2i/√π − 2·a·y; by the asymptotic series where this difference cancels."""
    large = (np.abs(concrete(a)) > 10) & (np.imag(concrete(a)) >= 0)
    far = np.where(large, a, 10.0)
    near = 2j / sqrt(pi) - 2 * np.where(large, 0.0, a) * y
    return np.where(large, -2j / sqrt(pi) * series_tail(0.5 / far / far), near)


def cos_pi(a):
    """cos(π·a), exactly ±1 for integers."""
    return np.cos(pi * (a - 2 * np.round(np.real(concrete(a)) / 2)))


def rgamma_slope(y, a):
    """−y·ψ(a) of y = 1/Γ(a); left of ½ by reflection, because ψ has poles where y is 0."""
    left = np.real(concrete(a)) < 0.5
    turned, right = np.where(left, 1 - a, 1.0), np.where(left, 1.0, a)
    psi = special("psi")
    found = special("gamma")(turned) * cos_pi(a) - y * psi(turned)
    return np.where(left, found, -y * psi(right))


def is_pole(a):
    return (concrete(a) <= 0) & (np.floor(concrete(a)) == concrete(a))


def poch_slope(y, a, b):
    """The derivative of y = Γ(a + b)/Γ(a) for a. Where Γ(a) has a pole, ψ(a) is reflected; so is
    ψ(a + b) where that has one too, and both poles cancel.
    """
    pole, last = is_pole(a), is_pole(a + b)
    psi, gamma = special("psi"), special("gamma")
    plain = np.where(pole, 1.0, a)
    found = y * (psi(np.where(pole, 1.0, a + b)) - psi(plain))
    left = 1 - np.where(pole, a, 0.0)
    both, one = pole & last, pole & ~last
    end = np.where(both, 1 - a - b, np.where(one, a + b, 1.0))
    found = np.where(pole, y * (psi(end) - psi(left)), found)
    lead = gamma(np.where(one, a + b, 1.0)) * gamma(np.where(one, left, 1.0)) * cos_pi(a)
    return np.where(one, found + lead, found)


def _near(m):
    return np.abs(concrete(m)) < 0.5


def ellipk_slope(y, m, rest=None):
    """The derivative of K(m) = y; near 0 as a hypergeometric function, because the usual formula
    divides by m. `rest` is 1 − m, where it is known with more digits.
    """
    near = _near(m)
    far, other = np.where(near, 0.5, m), np.where(near, 0.5, 1 - m if rest is None else rest)
    found = (special("ellipe")(far) / other - y) / (2 * far)
    return np.where(near, pi / 8 * special("hyp2f1")(1.5, 1.5, 2.0, np.where(near, m, 0.0)), found)


def ellipe_slope(y, m):
    """The derivative of E(m) = y."""
    near = _near(m)
    far = np.where(near, 0.5, m)
    found = (y - special("ellipk")(far)) / (2 * far)
    return np.where(near, -pi / 8 * special("hyp2f1")(0.5, 1.5, 2.0, np.where(near, m, 0.0)), found)
