"""A binned likelihood fit as in particle physics: how strong is a signal on top of a background
that is only known up to two systematic errors? The errors come from the Hessian, and the profile of
the likelihood is computed for all strengths at once by `iso.vmap`.

Expected counts are strength·signal + background, where the background has an unknown size (a
factor) and an unknown slope. Each unknown is a number with a unit normal constraint, as in
HistFactory.

What it stands for: pyhf writes Poisson and normal densities once per framework
(`pyhf/tensor/{numpy,jax,tensorflow,pytorch}_backend.py`), and so the function that a minimizer
calls with its gradient (`wrap_objective` in `pyhf/optimize/opt_{numpy,jax,tflow,pytorch}.py`); its
errors come from MINUIT.
"""

from __future__ import annotations

import math

from pictures import GREEN, GREY, Plot
from running import main, numbers

import isomorph as iso

NAMES = ("strength", "size", "slope")
BINS, TRUE = 20, (1.0, 0.5, -0.5)


def expected(theta):
    """The counts that are expected in the bins, for strength, size and slope."""
    xp = iso.namespace(theta)
    x = xp.linspace(0.025, 0.975, BINS, dtype=theta.dtype)
    signal = 40.0 * xp.exp(-(((x - 0.6) / 0.08) ** 2) / 2)
    background = 200.0 * xp.exp(-2.0 * x)
    size = xp.exp(math.log(1.1) * theta[1])  # one standard deviation is 10 %
    slope = 1 + 0.1 * theta[2] * (2 * x - 1)  # one standard deviation is 10 % at the ends
    return theta[0] * signal + size * slope * background


def misfit(theta, counts):
    """−log of the likelihood: Poisson in each bin, unit normal constraints on size and slope."""
    xp = iso.namespace(theta)
    rates = expected(theta)
    poisson = xp.sum(rates - iso.special.xlogy(counts, rates) + iso.special.gammaln(counts + 1))
    return poisson + xp.sum(theta[1:] ** 2) / 2 + math.log(math.tau)


def newton(func, theta, rounds=8):
    """The minimum of a function of a vector, by Newton's method."""
    xp = iso.namespace(theta)
    step = lambda _, at: at - xp.linalg.solve(iso.hessian(func)(at), iso.grad(func)(at))
    return iso.fori_loop(0, rounds, step, theta)


def fit(counts):
    """The best parameters, and their covariance: the inverse of the Hessian."""
    xp = iso.namespace(counts)
    start = xp.asarray([0.5, 0.0, 0.0], dtype=counts.dtype)
    best = newton(lambda theta: misfit(theta, counts), start)
    return best, xp.linalg.inv(iso.hessian(misfit)(best, counts))


def profile(strength, counts, start):
    """The misfit at a strength, with size and slope at their best for it."""
    xp = iso.namespace(counts)
    at = lambda rest: misfit(xp.concat([strength[None], rest]), counts)
    return at(newton(at, start, 5))


def run(backend, quick=False, compiled=True):
    jit = iso.jit if compiled else lambda func: func
    with iso.use_backend(backend, dtype="float64") as xp:
        rates = expected(iso.asarray(TRUE))
        counts = xp.astype(iso.random.poisson(iso.random.key(0), rates), rates.dtype)
        strengths = iso.linspace(0.0, 2.0, 5 if quick else 41)
    best, covariance = jit(fit)(counts)
    errors = xp.sqrt(xp.linalg.diagonal(covariance))
    curve = iso.vmap(profile, (0, None, None))
    above = 2 * (jit(curve)(strengths, counts, best[1:]) - misfit(best, counts))
    significance = xp.sqrt(above[0])  # of a strength of 0
    found = {name: best[i] for i, name in enumerate(NAMES)}
    found |= {"error": errors[0], "significance": significance}
    found |= {"p-value": iso.special.ndtr(-significance)}
    data = {"theta": best, "covariance": covariance, "counts": counts, "rates": expected(best)}
    return numbers({"found": found, **data, "strengths": strengths, "above": above})


def picture(result):
    strengths, best, error = result["strengths"], result["theta"][0], result["found"]["error"]
    plot = Plot(
        "The profile of the likelihood", (0, 2), (0, 12),
        "strength of the signal", "twice the misfit above its least",
    )  # fmt: skip
    inside = result["above"] <= 12
    plot.line(strengths[inside], result["above"][inside], name="profile")
    near = strengths[abs(strengths - best) < 3.4 * error]
    plot.line(near, ((near - best) / error) ** 2, GREEN, "parabola of the Hessian", "5 4")
    return plot.line([0, 2], [1, 1], GREY, "one standard error", "2 3", 1.5).svg()


if __name__ == "__main__":
    main(__doc__, run, picture, "likelihood.svg")
