"""Gradients of `iso.linalg`: against central differences, compiled, and of the second order."""

from functools import cache

import numpy as np
import pytest
import scipy.linalg
from frameworks import jax
from linalg_cases import (
    CASES,
    GENERAL,
    A,
    L,
    differences,
    numpy_namespace,
    quick,
    symmetric,
    total,
    values,
    weighed,
)

import isomorph as iso

# Each kind of rule and of loop once, in one program: compiling takes long, above all on torch.
COMPILED = ("solve_triangular", "lu", "expm", "sqrtm", "logdet", "toeplitz")
MORE = (
    "solve_triangular, C", "cho_solve", "lstsq, tall", "lu, tall", "logm", "polar, tall",
    "solve_sylvester", "eig", "kron", "block_diag",
)  # fmt: skip


@cache
def by_differences(name):
    """NumPy's values are those of SciPy (test_linalg_values); the error is about 1e-9."""
    return differences(total(numpy_namespace(), name), CASES[name].arrays)


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_differences(backend, xp, name):
    arrays = CASES[name].arrays
    wanted = by_differences(name)
    places = tuple(range(len(arrays)))
    grad = quick(backend, iso.grad(total(xp, name), argnums=places))
    found = grad(*map(xp.asarray, arrays))
    for got, want, x in zip(found, wanted, arrays):
        assert values(got).dtype == x.dtype
        np.testing.assert_allclose(values(got), want, rtol=1e-6, atol=1e-7)


@pytest.mark.takes("XLA compiles it")
@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
def test_a_program_computes_the_same(backend, xp):
    check_program(xp, COMPILED)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
@pytest.mark.parametrize("name", MORE)
def test_programs_of_other_functions(backend, xp, name):
    check_program(xp, [name])


def check_program(xp, names):
    """One program for these functions, with their gradients."""
    sizes = [len(CASES[name].arrays) for name in names]
    arrays = [xp.asarray(x) for name in names for x in CASES[name].arrays]

    def parts(*arrays):
        ends = np.cumsum([0, *sizes])
        return [total(xp, n)(*arrays[ends[i] : ends[i + 1]]) for i, n in enumerate(names)]

    def both(*arrays):
        grads = iso.grad(lambda *a: sum(parts(*a)), argnums=tuple(range(len(arrays))))
        return parts(*arrays), grads(*arrays)

    wanted, found = both(*arrays), iso.jit(both)(*arrays)
    for i in (0, 1):
        for got, want in zip(found[i], wanted[i]):
            # the same kernels, in another order: a few hundred roundings
            np.testing.assert_allclose(values(got), values(want), rtol=1e-11, atol=1e-12)


SECOND = ("expm", "solve_triangular", "cho_solve", "logdet", "sqrtm", "polar", "solve_sylvester")


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives(backend, xp, name):
    """The gradient of a gradient along a direction, against differences of first gradients."""
    arrays = [x[:1] for x in CASES[name].arrays]
    directions = [np.cos(np.arange(x.size)).reshape(x.shape) for x in arrays]
    places = tuple(range(len(arrays)))

    def slope(xp, *arrays):
        grads = iso.grad(total(xp, name), argnums=places)(*arrays)
        return sum(xp.sum(g * xp.asarray(d)) for g, d in zip(grads, directions))

    at_numpy = lambda *arrays: slope(numpy_namespace(), *arrays)
    grad = quick(backend, iso.grad(lambda *a: slope(xp, *a), argnums=places))
    found = grad(*map(xp.asarray, arrays))
    for got, want in zip(found, differences(at_numpy, arrays)):  # again an error of about 1e-9
        np.testing.assert_allclose(values(got), want, rtol=1e-6, atol=1e-7)


def test_mapped_functions(backend, xp):
    """`vmap` over the batch is the batch itself."""
    arrays = [xp.asarray(x) for x in CASES["cho_solve"].arrays]
    together = lambda a, b: (
        L.cho_solve(L.cho_factor(symmetric(xp, a)), b), L.expm(a), L.lu(a)[1], L.polar(a)[0],
        L.lstsq(a, b).x, L.logdet(a),
    )  # fmt: skip
    mapped = quick(backend, iso.vmap(together))
    for got, want in zip(mapped(*arrays), quick(backend, together)(*arrays)):
        np.testing.assert_allclose(values(got), values(want), rtol=1e-12, atol=1e-13)
    slope = lambda a: iso.grad(lambda a: weighed(xp, L.expm(a)))(a)
    rows = [values(quick(backend, slope)(arrays[0][i])) for i in range(2)]
    mapped = quick(backend, iso.vmap(slope))
    np.testing.assert_allclose(values(mapped(arrays[0])), rows, rtol=1e-12, atol=1e-13)


@pytest.mark.takes("JAX compiles each operation")
@pytest.mark.parametrize("backend", ["jax"], indirect=True)
def test_forward_mode_is_ours(backend, xp):
    """JAX's own forward mode says that it has no rule; ours, and reverse mode twice, do."""
    a, along = xp.asarray(GENERAL[0]), xp.asarray(A[0])
    roots = iso.jvp(L.sqrtm, (a,), (along,))[1]
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(L.sqrtm, (a,), (along,))
    with pytest.raises(TypeError, match="forward-mode"):
        jax.hessian(lambda a: xp.sum(L.expm(a)))(a)
    # the derivative x of a root r solves r x + x r = along
    root = scipy.linalg.sqrtm(GENERAL[0])
    want = scipy.linalg.solve_sylvester(root, root, A[0])
    np.testing.assert_allclose(values(roots), want, rtol=1e-11, atol=1e-12)
