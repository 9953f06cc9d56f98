"""The error functions, logistic functions and entropies: arguments and true values."""

import mpmath
import numpy as np
from mpmath import mpf

from .measuring import EDGES, Case, around, line, pairs, sizes

ALL = np.concatenate(
    [line(-40, 40, 1500), sizes(), -sizes(), around(0, 0.84375, 1.25, 2.857), EDGES]
)
CLOSE = sizes(-15, -1, 200)
BELOW_ONE = np.concatenate(
    [line(-1, 1, 1501), sizes(-300, -1), -sizes(-300, -1), around(0.5), 1 - CLOSE, CLOSE - 1,
     [2.0, -2.0], EDGES]
)  # fmt: skip
CHANCES = np.abs(BELOW_ONE)
PLUS = np.concatenate([line(0.01, 5, 200), sizes(-100, 100, 200), [1.0]])


def infinite(f, low, high, far=1e4):
    """`f`, which has the given values beyond -far and far, and NaN at NaN."""

    def exact(x):
        if mpmath.isnan(x):
            return x
        if abs(x) > far:
            return mpf(low if x < 0 else high)
        return f(x)

    return exact


def erfcx(x):
    if x > 200:  # e^(x²) is too large: the asymptotic series
        u = 1 / (2 * x * x)
        return (1 - u + 3 * u**2 - 15 * u**3 + 105 * u**4 - 945 * u**5) / x / mpmath.sqrt(mpmath.pi)
    return mpf("inf") if x < -30 else mpmath.exp(x * x) * mpmath.erfc(x)


def log_ndtr(x):
    if x > 200:
        return mpf(0)
    if x < -4:
        return mpmath.log(erfcx(-x / mpmath.sqrt(2)) / 2) - x * x / 2
    return mpmath.log1p(-mpmath.erfc(x / mpmath.sqrt(2)) / 2)


def erfinv(x):
    if mpmath.isnan(x) or abs(x) > 1:
        return mpf("nan")
    return mpf("inf") * mpmath.sign(x) if abs(x) == 1 else mpmath.erfinv(x)


def ndtri(p):
    if mpmath.isnan(p) or p < 0 or p > 1:
        return mpf("nan")
    if p in (0, 1):
        return mpf("-inf") if p == 0 else mpf("inf")
    return inverse(p if p < 0.5 else 1 - p) * (1 if p < 0.5 else -1)


def inverse(p):
    """The quantile of p < ½, by Newton's method on the logarithm of the distribution function."""
    guess = -mpmath.sqrt(-2 * mpmath.log(2 * p)) if p < 0.4 else mpf(0)
    goal = mpmath.log(p)
    for _ in range(60):
        value = mpmath.log(mpmath.erfc(-guess / mpmath.sqrt(2)) / 2)
        slope = mpmath.exp(-guess * guess / 2 - value) / mpmath.sqrt(2 * mpmath.pi)
        step = (value - goal) / slope
        guess -= step
        if abs(step) < mpf(10) ** -35 * (abs(guess) + mpf(10) ** -20):
            break
    return guess


def log_expit(x):
    return -mpmath.log1p(mpmath.exp(-x)) if abs(x) < 1e4 else min(x, mpf(0))


def logit(p):
    if mpmath.isnan(p) or p < 0 or p > 1:
        return mpf("nan")
    return mpf("-inf") if p == 0 else mpf("inf") if p == 1 else mpmath.log(p / (1 - p))


def xlogy(x, y):
    if mpmath.isnan(x) or mpmath.isnan(y):
        return mpf("nan")
    if x == 0:
        return mpf(0)
    return mpf("nan") if y < 0 else x * mpmath.log(y) if y > 0 else -x * mpf("inf")


def xlog1py(x, y):
    return mpf(0) if x == 0 and not mpmath.isnan(y) else _xlog1py(x, y)


def _xlog1py(x, y):
    if mpmath.isnan(x) or mpmath.isnan(y) or y < -1:
        return mpf("nan")
    return -x * mpf("inf") if y == -1 else x * mpmath.log1p(y)


def rel_entr(x, y):
    if mpmath.isnan(x) or mpmath.isnan(y):
        return mpf("nan")
    if x > 0 and y > 0:
        return x * (mpmath.log(x) - mpmath.log(y))
    return mpf(0) if x == 0 and y >= 0 else mpf("inf")


def kl_div(x, y):
    if mpmath.isnan(x) or mpmath.isnan(y):
        return mpf("nan")
    if x > 0 and y > 0:
        return x * (mpmath.log(x) - mpmath.log(y)) - x + y
    return y if x == 0 and y >= 0 else mpf("inf")


def entr(x):
    return x if mpmath.isnan(x) else -x * mpmath.log(x) if x > 0 else mpf(0 if x == 0 else "-inf")


def finite_pairs(low, high):
    """Pairs of positive numbers; infinite ones give inf - inf, which SciPy decides case by case."""
    x, y = pairs(PLUS[(low < PLUS) & (high > PLUS)], PLUS[(low < PLUS) & (high > PLUS)])
    some = np.isfinite(x) & np.isfinite(y)
    return x[some], y[some]


CASES = {
    "erf": Case(lambda: (ALL,), infinite(mpmath.erf, -1, 1)),
    "erfc": Case(lambda: (ALL,), infinite(mpmath.erfc, 2, 0)),
    "erfcx": Case(lambda: (ALL,), infinite(erfcx, "inf", 0, 1e308)),
    "erfinv": Case(lambda: (BELOW_ONE,), erfinv),
    "ndtr": Case(lambda: (ALL,), infinite(lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2, 0, 1)),
    "log_ndtr": Case(lambda: (ALL,), infinite(log_ndtr, "-inf", 0, 1.8e154)),
    "ndtri": Case(lambda: (CHANCES,), ndtri, 1.0),
    "expit": Case(lambda: (ALL,), infinite(lambda x: 1 / (1 + mpmath.exp(-x)), 0, 1)),
    "log_expit": Case(lambda: (ALL,), log_expit),
    "logit": Case(lambda: (CHANCES,), logit, 1.0),
    "xlogy": Case(lambda: finite_pairs(1e-100, 1e100), xlogy, 1.0),
    "xlog1py": Case(lambda: finite_pairs(1e-100, 1e100), xlog1py),
    "entr": Case(lambda: (np.concatenate([sizes(-300, 250), line(-5, 5, 1500), EDGES]),),
                 entr, 1.0),
    "rel_entr": Case(lambda: finite_pairs(1e-100, 1e100), rel_entr, 1.0),
    "kl_div": Case(lambda: finite_pairs(1e-5, 1e5), kl_div, 1.0),
    "sinc": Case(lambda: (np.concatenate([line(-40, 40, 2000), sizes(-300, 3), EDGES[:1]]),),
                 mpmath.sincpi, 1.0),
}  # fmt: skip
