"""Problems of pymanopt on four frameworks by our backend, against closed forms."""

import sys
from pathlib import Path

import numpy as np
import pymanopt
from pymanopt.manifolds import (
    Euclidean,
    Grassmann,
    Product,
    Sphere,
    Stiefel,
    SymmetricPositiveDefinite,
)
from pymanopt.optimizers import ConjugateGradient, TrustRegions

import isomorph as iso

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "adapters"))
from pymanopt_backend import function

rng = np.random.default_rng(0)
ROOT = rng.normal(size=(6, 6))
FORM = ROOT + ROOT.T
TABLE = np.outer(np.arange(5.0), np.arange(4.0)) + np.eye(5, 4)
SAMPLES = rng.normal(size=(40, 3)) @ np.diag([1.0, 2.0, 3.0])
VALUES = np.sort(np.linalg.eigvalsh(FORM))


def quotient(xp, given):
    return lambda x: -xp.sum(x * xp.matmul(given(FORM), x))


def low_rank(xp, given):
    return lambda u, v: xp.sum((xp.matmul(u, v) - given(TABLE)) ** 2)


def likelihood(xp, given):
    """Of the inverse of a covariance matrix; the sample covariance is the best one."""
    square = given(SAMPLES.T @ SAMPLES / len(SAMPLES))
    return lambda p: xp.sum(p * square) - xp.linalg.slogdet(p).logabsdet


def start(*shapes):
    """Matrices, with orthonormal columns where they are tall."""
    drawn = [np.random.default_rng(1).normal(size=shape) for shape in shapes]
    return [np.linalg.qr(x)[0] if x.shape[0] > x.shape[1] else x for x in drawn]


COVARIANCE = SAMPLES.T @ SAMPLES / len(SAMPLES)
# name: manifold, cost, starting point, optimizer, the least cost
PROBLEMS = {
    "subspace": (Grassmann(6, 2), quotient, start((6, 2))[0], TrustRegions, -VALUES[-2:].sum()),
    "sphere": (Sphere(6, 1), quotient, start((6, 1))[0], ConjugateGradient, -VALUES[-1]),
    "low_rank": (
        Product([Stiefel(5, 2), Euclidean(2, 4)]), low_rank, start((5, 2), (2, 4)), TrustRegions,
        (np.linalg.svd(TABLE)[1][2:] ** 2).sum(),
    ),
    "covariance": (
        SymmetricPositiveDefinite(3), likelihood, np.eye(3), TrustRegions,
        3 + np.linalg.slogdet(COVARIANCE)[1],
    ),
}  # fmt: skip


def least_cost(framework, name):
    """The least cost that an optimizer of pymanopt finds."""
    manifold, make, initial, optimizer, _ = PROBLEMS[name]
    given = lambda x: iso.convert(x, framework)
    inner = make(iso.namespace(given(FORM)), given)
    several = isinstance(manifold, Product)
    cost = (lambda u, v: inner(u, v)) if several else (lambda x: inner(x))
    problem = pymanopt.Problem(manifold, pymanopt_function(framework, manifold, several, cost))
    result = optimizer(verbosity=0, min_gradient_norm=1e-8).run(problem, initial_point=initial)
    return float(result.cost)


def pymanopt_function(framework, manifold, several, cost):
    """pymanopt reads the signature of a cost function, which must not have defaults."""
    if several:
        return function(framework)(manifold)(lambda u, v: cost(u, v))
    return function(framework)(manifold)(lambda x: cost(x))
