"""Solvers that capture values which are mapped or differentiated: the derivatives of implicit
functions through `vmap`, to second order, against closed forms.
"""

import numpy as np
import pytest

import isomorph as iso
from isomorph.frontends.jax import lax
from oracles import kind_of, numpy_of

V = np.linspace(1.0, 3.0, 7)


def divided(xp):
    """a², the solution of x / a = a; its solver captures a."""
    return lambda a: lax.custom_linear_solve(
        lambda x: x / a, a, lambda matvec, b: b * a, symmetric=True
    )


def quotient(xp):
    """sin(a) / a; its solvers use matvec only."""
    once = lambda matvec, b: b / matvec(xp.ones_like(b))
    return lambda a: lax.custom_linear_solve(lambda x: x * a, xp.sin(a), once, once)


def root(xp):
    """a^⅓, the root of x³ = a; its solver captures a."""
    return lambda a: lax.custom_root(
        lambda x: x * x * x - a, xp.ones_like(a), lambda f, x: xp.exp(xp.log(a) / 3),
        lambda line, y: y / line(xp.ones_like(y)),
    )  # fmt: skip


# name -> the function, its values, first and second derivatives
SOLUTIONS = {
    "divided": (divided, V**2, 2 * V, 2 + 0 * V),
    "quotient": (
        quotient,
        np.sin(V) / V,
        np.cos(V) / V - np.sin(V) / V**2,
        -np.sin(V) / V - 2 * np.cos(V) / V**2 + 2 * np.sin(V) / V**3,
    ),
    "root": (root, V ** (1 / 3), V ** (-2 / 3) / 3, -2 / 9 * V ** (-5 / 3)),
}
total = lambda func: lambda v: iso.namespace(v).sum(func(v))
ones = lambda v: iso.namespace(v).ones_like(v)
# name -> the order of the derivative, and how a function of one number is taken over all
TRANSFORMS = {
    "vmap": (0, iso.vmap),
    "grad of vmap": (1, lambda f: iso.grad(total(iso.vmap(f)))),
    "vmap of grad": (1, lambda f: iso.vmap(iso.grad(f))),
    "jvp of vmap": (1, lambda f: lambda v: iso.jvp(iso.vmap(f), (v,), (ones(v),))[1]),
    "vmap of grad of grad": (2, lambda f: iso.vmap(iso.grad(iso.grad(f)))),
    "grad of grad of vmap": (2, lambda f: iso.grad(total(iso.grad(total(iso.vmap(f)))))),
    "grad of vmap of grad": (2, lambda f: iso.grad(total(iso.vmap(iso.grad(f))))),
    "hvp of vmap": (2, lambda f: lambda v: iso.hvp(total(iso.vmap(f)), (v,), (ones(v),))[0]),
    "vmap of hvp": (2, lambda f: iso.vmap(lambda a: iso.hvp(f, (a,), (ones(a),))[0])),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("solution", SOLUTIONS)
def test_solvers_that_capture_mapped_values(backend, xp, solution, transform, compiled):
    make, *wanted = SOLUTIONS[solution]
    order, taken = TRANSFORMS[transform]
    func = taken(make(xp))
    v = iso.convert(V, backend)
    found = (iso.jit(func) if compiled else func)(v)
    assert kind_of(found) == backend
    assert type(found) is type(v)
    np.testing.assert_allclose(numpy_of(found), wanted[order], rtol=1e-9, atol=1e-12)
