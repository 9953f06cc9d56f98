"""Optimal transport between two clouds of points: Sinkhorn's method, differentiated through its
loop, beside an exact solver of SciPy, which becomes a function of all four frameworks by
`iso.host_function` and gets its gradient by one line.

The points of a disc flow onto a ring along the gradient of Sinkhorn's cost; the exact cost says how
far they still have to go. The table shows how Sinkhorn's cost approaches the exact one.

What it stands for: POT wraps every operation once per framework (five classes in `ot.backend`).
`ot.emd2` leaves the framework for a solver of NumPy arrays and hands gradients back by
`set_gradients`, a method of each class, which has none for NumPy; Sinkhorn's loop is
`ot.bregman.sinkhorn_log`.
"""

from __future__ import annotations

import math

import numpy as np
from pictures import GREY, ORANGE, Plot
from running import main, numbers
from scipy.optimize import linear_sum_assignment

import isomorph as iso

EPSILONS = (1.0, 0.3, 0.1, 0.03)


def costs(x, y):
    return iso.cdist(x, y, metric="sqeuclidean")


def sinkhorn(c, epsilon, rounds):
    """Sinkhorn's plan [n, m] for costs c and equal weights, with the logarithms of its factors."""
    xp = iso.namespace(c)
    n, m = c.shape

    def round(_, factors):
        f, g = factors
        f = math.log(1 / n) - iso.logsumexp(g[None, :] - c / epsilon, axis=1)
        g = math.log(1 / m) - iso.logsumexp(f[:, None] - c / epsilon, axis=0)
        return f, g

    start = xp.zeros(n, dtype=c.dtype), xp.zeros(m, dtype=c.dtype)
    f, g = iso.fori_loop(0, rounds, round, start)
    return xp.exp(f[:, None] + g[None, :] - c / epsilon)


def sinkhorn_cost(x, y, epsilon, rounds):
    """What Sinkhorn's plan costs; `iso.grad` goes through all rounds."""
    c = costs(x, y)
    return iso.namespace(x).sum(sinkhorn(c, epsilon, rounds) * c)


def assignment(c):
    """The best plan for as many points here as there, by SciPy: one partner for each."""
    plan = np.zeros_like(c)
    plan[linear_sum_assignment(c)] = 1 / len(c)
    return plan


# The least cost as a function of c. Its gradient is the best plan, by the envelope theorem.
least_cost = iso.host_function(
    lambda c: np.sum(assignment(c) * c),
    vjp=lambda saved, upstream: upstream * assignment(saved[0]),
    like=lambda c: c[0, 0],
)


def exact_cost(x, y):
    return least_cost(costs(x, y))


def clouds(n):
    """A disc of n points, and as many points on a ring around it."""
    radius, angle = iso.random.split(iso.random.key(0))
    r = iso.random.uniform(radius, n)
    a = 2 * math.pi * iso.random.uniform(angle, n)
    xp = iso.namespace(r)
    b = iso.linspace(0.0, 2 * math.pi * (1 - 1 / n), n)
    circle = lambda r, a: xp.stack([r * xp.cos(a), r * xp.sin(a)], axis=-1)
    return circle(0.6 * xp.sqrt(r), a), circle(1.5, b)


def run(backend, quick=False, compiled=True):
    n, rounds, steps = (12, 10, 4) if quick else (60, 100, 40)
    with iso.use_backend(backend, dtype="float64"):
        x, y = clouds(n)
        epsilons = iso.asarray(EPSILONS)
    jit = iso.jit if compiled else lambda func: func
    slope = jit(iso.grad(lambda x, y: sinkhorn_cost(x, y, 0.1, rounds)))
    exact = jit(iso.value_and_grad(exact_cost))
    many = 10 if quick else 1000  # a small epsilon needs many rounds
    entropic = iso.vmap(lambda epsilon: sinkhorn_cost(x, y, epsilon, many))
    least, exact_slope = exact(x, y)
    table = numbers(entropic(epsilons))
    paths = [x]
    for _ in range(steps):
        # a point weighs 1/n: n/2 times its slope is its way to where its partners are, on average
        x = x - 0.1 * n / 2 * slope(x, y)
        paths.append(x)
    left = exact(x, y)[0]
    found = {"exact": numbers(least), "exact, after the flow": numbers(left)}
    found |= {f"epsilon {e:g}": float(cost) for e, cost in zip(EPSILONS, table)}
    paths = np.stack([numbers(x) for x in paths])
    data = numbers({"y": y, "slope": exact_slope})
    return {"found": found, "table": table, "paths": paths, **data}


def picture(result):
    paths, y = result["paths"], result["y"]
    plot = Plot("A disc flows onto a ring", (-2.4, 2.4), (-1.8, 1.8), width=560, height=460)
    for i in range(paths.shape[1]):
        plot.line(paths[::4, i, 0], paths[::4, i, 1], "#9ec5fe", width=1)
    plot.points(*paths[0].T, GREY, "start", 2).points(*y.T, ORANGE, "ring", 4)
    return plot.points(*paths[-1].T, "#1f6feb", "end", 2.5).svg()


if __name__ == "__main__":
    main(__doc__, run, picture, "sinkhorn.svg")
