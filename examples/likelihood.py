"""A binned likelihood fit as in particle physics: how strong is a signal on top of a background
that is only known up to two systematic errors? The errors come from the Hessian, and the profile of
the likelihood is computed for all strengths at once by `iso.vmap`.

Expected counts are strength·signal + background, where the background has an unknown size (a
factor) and an unknown slope. Each unknown is a number with a unit normal constraint, as in
HistFactory.

What it stands for: pyhf writes Poisson and normal densities once per framework
(`pyhf/tensor/{numpy,jax,tensorflow,pytorch}_backend.py`), and so the function that a minimizer
calls with its gradient (`wrap_objective` in `pyhf/optimize/opt_{jax,tflow,pytorch}.py`; that of
`opt_numpy.py` refuses gradients). Its errors come from MINUIT.
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


def newton(func, x, *rest):
    """One step of Newton's method towards the least func(x, *rest); the inverse Hessian and the
    value before the step.
    """
    xp = iso.namespace(x)
    value, slope = iso.value_and_grad(func)(x, *rest)
    inverse = xp.linalg.inv(iso.hessian(func)(x, *rest))
    return x - xp.matmul(inverse, slope), inverse, value


def constrained(unknown, strength, counts):
    """The misfit at a given strength, as a function of size and slope."""
    return misfit(iso.namespace(unknown).concat([strength[None], unknown]), counts)


def run(backend, quick=False, compiled=True):
    jit = iso.jit if compiled else lambda func: func
    with iso.use_backend(backend, dtype="float64") as xp:
        rates = expected(iso.asarray(TRUE))
        counts = xp.astype(iso.random.poisson(iso.random.key(0), rates), rates.dtype)
        strengths = iso.linspace(0.0, 2.0, 5 if quick else 41)
        best = iso.asarray([0.5, 0.0, 0.0])
    step = jit(lambda theta, counts: newton(misfit, theta, counts))
    for _ in range(8):
        best, covariance, least = step(best, counts)
    # the same for size and slope alone, at all strengths at once
    step = jit(iso.vmap(lambda *given: newton(constrained, *given), (0, 0, None)))
    unknown = xp.broadcast_to(best[1:], (strengths.shape[0], 2))
    for _ in range(7):
        unknown, _, values = step(unknown, strengths, counts)
    above = 2 * (values - least)
    error, significance = xp.sqrt(covariance[0, 0]), xp.sqrt(above[0])  # above a strength of 0
    found = {name: best[i] for i, name in enumerate(NAMES)}
    found |= {"error": error, "significance": significance}
    found |= {"p-value": iso.special.ndtr(-significance)}
    data = {"theta": best, "covariance": covariance, "counts": counts}
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
