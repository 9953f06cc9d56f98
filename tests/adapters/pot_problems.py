"""Problems of POT on four frameworks by our backend, against POT's own NumPy backend and central
differences of it. Run as a program it solves them with TensorFlow, which POT asks for a change of
the whole process, and prints the results as JSON.
"""

import json
import sys
from functools import cache
from pathlib import Path

import numpy as np
import ot

import isomorph as iso

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "adapters"))
import pot_backend

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(6, 2)), rng.normal(size=(5, 2)) + 1
A, B = np.full(6, 1 / 6), np.array([0.1, 0.3, 0.2, 0.15, 0.25])
COST = ((X[:, None] - Y[None]) ** 2).sum(-1)
LINE, OTHER = rng.normal(size=7), rng.normal(size=7) + 0.5
ROOT = rng.normal(size=(3, 3))
SPREAD = ROOT.T @ ROOT + 2 * np.eye(3)
PLANE = ((X[:, None] - X[None]) ** 2).sum(-1)
BINS = rng.random((8, 3)) + 0.1
BINS /= BINS.sum(0)
GRID = (np.arange(8.0)[:, None] - np.arange(8.0)) ** 2 / 64


def spread(x):
    """A positive definite matrix for every x."""
    xp = iso.namespace(x)
    return xp.matmul(x, xp.permute_dims(x, (1, 0))) + xp.eye(3, dtype=x.dtype)


FEW = {"numItermax": 20, "stopThr": 0.0, "warn": False}  # as many steps on every framework


# Each has a function of `like`, which makes an array from NumPy's, and of the array that varies.
PROBLEMS = {
    "emd2": (lambda like, x: ot.emd2(like(A), like(B), x), COST),
    "sinkhorn2": (lambda like, x: ot.sinkhorn2(like(A), like(B), x, 2.0, **FEW), COST),
    "sinkhorn_log": (
        lambda like, x: ot.bregman.sinkhorn_log(like(A), like(B), x, 1.0, **FEW)[0, 0],
        COST,
    ),
    "unbalanced": (
        lambda like, x: ot.unbalanced.mm_unbalanced2(like(A), like(B), x, 0.7, numItermax=10),
        COST,
    ),
    "dist": (lambda like, x: ot.dist(x, like(Y), metric="euclidean")[2, 3], X),
    "wasserstein_1d": (lambda like, x: ot.wasserstein_1d(x, like(OTHER), p=2), LINE),
    "sliced": (
        lambda like, x: ot.sliced_wasserstein_distance(
            x, like(Y), like(A), like(B), projections=like(np.eye(2))
        ),
        X,
    ),
    "bures": (
        lambda like, x: ot.gaussian.bures_wasserstein_distance(
            like(np.zeros(3)), like(np.ones(3)), spread(x), like(SPREAD)
        ),
        ROOT,
    ),
    "barycenter": (
        lambda like, x: ot.bregman.barycenter(x, like(GRID), 0.05, **FEW)[3],
        BINS,
    ),
    "gromov": (
        lambda like, x: ot.gromov.entropic_gromov_wasserstein2(
            x, like(COST @ COST.T / 50), like(A), like(A), epsilon=2.0, max_iter=3, **FEW
        ),
        PLANE,
    ),
}


@cache
def own_result(name):
    """Value and gradient by POT's own backend for NumPy."""
    problem, x = PROBLEMS[name]
    value = lambda x: float(problem(np.asarray, x))
    grad = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[i] = 1e-6
        grad[i] = (value(x + step) - value(x - step)) / 2e-6
    return value(x), grad


def our_result(framework, name):
    """Value and gradient by our backend, once it is installed."""
    problem, x = PROBLEMS[name]
    like = lambda array: iso.convert(array, framework)
    value, grad = iso.value_and_grad(lambda x: problem(like, x))(like(x))
    return float(iso.to_numpy(value)), iso.to_numpy(grad).tolist()


if __name__ == "__main__":
    from tensorflow.experimental.numpy import experimental_enable_numpy_behavior

    experimental_enable_numpy_behavior()  # POT's code uses x.reshape and x.T
    pot_backend.install()
    print("RESULTS " + json.dumps({name: our_result("tensorflow", name) for name in PROBLEMS}))
