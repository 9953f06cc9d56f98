"""Gaussian-process regression: length, size and noise are found by the gradient of the marginal
likelihood, and their errors by its Hessian.

The likelihood is written once, over a Cholesky factor. What it stands for: geomstats writes its
linear algebra once per framework (`geomstats/_backend/{numpy,autograd,pytorch}/linalg.py`), and
DeepXDE draws Gaussian random fields over NumPy's Cholesky factor only (`deepxde.data.GRF`), where
no gradient reaches the length.
"""

from __future__ import annotations

import math

from pictures import GREY, Plot
from running import main, numbers

import isomorph as iso

TRUE = {"size": 0.0, "length": 0.0, "noise": -1.5}  # logarithms: what the data is drawn from
GUESS = {"size": 0.7, "length": -0.7, "noise": -0.5}


def kernel(p, a, b):
    """The covariance of the function at places a [n] and b [m]."""
    xp = iso.namespace(a, b)
    apart = iso.cdist(a[:, None], b[:, None], metric="sqeuclidean")
    return xp.exp(2 * p["size"] - apart / 2 * xp.exp(-2 * p["length"]))


def factor(p, x):
    """The Cholesky factor of the covariance of the data, noise included, for `cho_solve`."""
    xp = iso.namespace(x)
    noise = xp.exp(2 * p["noise"]) * xp.eye(x.shape[0], dtype=x.dtype)
    return iso.linalg.cho_factor(kernel(p, x, x) + noise, lower=True)


def misfit(p, x, y):
    """−log p(y | x): half the squared length of y, half the log-determinant, and a constant."""
    xp = iso.namespace(y)
    low = factor(p, x)
    length = xp.vecdot(y, iso.linalg.cho_solve(low, y)) / 2
    return length + xp.sum(xp.log(xp.linalg.diagonal(low[0]))) + y.shape[0] / 2 * math.log(math.tau)


def predicted(p, x, y, new):
    """Mean and standard deviation of the function at new places."""
    xp = iso.namespace(x)
    low, across = factor(p, x), kernel(p, x, new)
    mean = xp.vecdot(across, iso.linalg.cho_solve(low, y)[:, None], axis=0)
    known = xp.sum(iso.linalg.solve_triangular(low[0], across, lower=True) ** 2, axis=0)
    return mean, xp.sqrt(xp.exp(2 * p["size"]) - known)


def drawn(points):
    """Places, with a gap in the middle, and noisy values of a function drawn from the process."""
    places, values = iso.random.split(iso.random.key(1))
    x = iso.random.uniform(places, points, maxval=8.0)
    xp = iso.namespace(x)
    x = xp.sort(xp.where(x > 4.0, x + 2.0, x))
    p = {name: xp.asarray(value, dtype=x.dtype) for name, value in TRUE.items()}
    return x, xp.matmul(factor(p, x)[0], iso.random.normal(values, points))


def run(backend, quick=False, compiled=True):
    points, steps = (20, 25) if quick else (80, 200)
    with iso.use_backend(backend, dtype="float64"):
        x, y = drawn(points)
        new = iso.linspace(0.0, 10.0, 101)
        p = {name: iso.asarray(value) for name, value in GUESS.items()}
    step = iso.train_step(
        misfit, iso.optimizers.adam(iso.optimizers.cosine(0.15, steps)), compiled=compiled
    )
    state, values = step.init(p), []
    for _ in range(steps):
        state, value = step(state, x, y)
        values.append(numbers(value))
    p = state.model
    mean, deviation = predicted(p, x, y, new)
    found = {name: p[name] for name in TRUE} | {"misfit": misfit(p, x, y)}
    data = {"x": x, "y": y, "new": new, "mean": mean, "deviation": deviation}
    data |= {"found": found, "errors": errors(p, x, y)}
    return {"values": values, **numbers(data)}


def errors(p, x, y):
    """Standard errors of the logarithms: the diagonal of the inverse Hessian of the misfit."""
    xp = iso.namespace(x)
    flat = lambda v: misfit({name: v[i] for i, name in enumerate(TRUE)}, x, y)
    hessian = iso.hessian(flat)(xp.stack([p[name] for name in TRUE]))
    return xp.sqrt(xp.linalg.diagonal(xp.linalg.inv(hessian)))


def picture(result):
    new, mean, wide = result["new"], result["mean"], 2 * result["deviation"]
    plot = Plot("Gaussian-process regression with a gap in the data", (0, 10), (-3, 3), "x", "y")
    plot.band(new, mean - wide, mean + wide, name="two standard deviations")
    plot.line(new, mean, name="mean").points(result["x"], result["y"], GREY, "data")
    return plot.svg()


if __name__ == "__main__":
    main(__doc__, run, picture, "gaussian_process.svg")
