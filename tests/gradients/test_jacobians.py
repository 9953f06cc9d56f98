"""Jacobians by rows and by columns, with and without the value."""

import numpy as np
import pytest
from frameworks import ours

import isomorph as iso
from oracles import numpy_of

X, Y = np.array([0.3, -1.2, 0.7]), np.array([[1.0, 2.0], [0.5, -0.4]])


def func(x, y):
    """Two outputs, with shapes (3, 2) and ()."""
    xp = iso.namespace(x["a"])
    grid = xp.sin(x["a"])[:, None] * y["b"][0]
    return grid, xp.sum(y["b"] * y["b"]) * x["a"][0]


def wanted():
    """By hand: the derivatives of both outputs with respect to x and y."""
    grid_x = np.einsum("i,ij,k->ikj", np.cos(X), np.eye(3), Y[0])
    grid_y = np.einsum("i,jk,l->ijlk", np.sin(X), np.eye(2), np.array([1.0, 0.0]))
    total_x = np.array([np.sum(Y * Y), 0.0, 0.0])
    return (grid_x, grid_y), (total_x, 2 * Y * X[0])


def given(xp):
    return {"a": xp.asarray(X)}, {"b": xp.asarray(Y)}


def check(found):
    for block, sure in zip(found, wanted(), strict=True):
        np.testing.assert_allclose(numpy_of(block[0]["a"]), sure[0], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(numpy_of(block[1]["b"]), sure[1], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["jac", "jacrev", "jacfwd"])
def test_by_rows_and_by_columns(backend, xp, name):
    check(getattr(iso, name)(func, (0, 1))(*given(xp)))


def test_compiled(backend, xp, monkeypatch):
    if backend == "torch":  # what Inductor makes of such graphs is tested in test_compiled_eager.py
        monkeypatch.setattr(ours("torch.private"), "inductor_compile", lambda graph, *_: graph)

    def every(x, y):
        names = ("jacrev", "jacfwd", "value_and_jac")
        return [getattr(iso, name)(func, (0, 1))(x, y) for name in names]

    rows, columns, (value, third) = iso.jit(every)(*given(xp))
    for found in (rows, columns, third):
        check(found)
    np.testing.assert_allclose(numpy_of(value[1]), np.sum(Y * Y) * X[0], rtol=1e-12)


def test_the_value_comes_of_one_run(backend, xp):
    calls = []

    def counted(x):
        calls.append(1)
        return x * x

    value, found = iso.value_and_jac(counted)(xp.asarray(X))
    assert len(calls) == 1
    np.testing.assert_allclose(numpy_of(value), X * X)
    np.testing.assert_allclose(numpy_of(found), np.diag(2 * X))


def test_aux_is_handed_out(backend, xp):
    with_aux = lambda x: (x**2, {"twice": 2 * x})
    x = xp.asarray(X)
    for name in ("jac", "jacrev", "jacfwd"):
        found, aux = getattr(iso, name)(with_aux, has_aux=True)(x)
        np.testing.assert_allclose(numpy_of(found), np.diag(2 * X))
        np.testing.assert_allclose(numpy_of(aux["twice"]), 2 * X)
    (value, aux), found = iso.value_and_jac(with_aux, has_aux=True)(x)
    np.testing.assert_allclose(numpy_of(found), np.diag(2 * X))
    np.testing.assert_allclose(numpy_of(value), X * X)
    np.testing.assert_allclose(numpy_of(aux["twice"]), 2 * X)


def test_columns_of_second_derivatives(backend, xp):
    """Forward over reverse is the Hessian; reverse over forward too."""
    cubes = lambda x: xp.sum(x**3) * x[0]
    sure = 3 * X**2 * np.eye(3)[:, :1] + 3 * X[:, None] ** 2 * np.eye(3)[:1]
    sure = sure + np.diag(6 * X * X[0])
    for second in (iso.jacfwd(iso.grad(cubes)), iso.jacrev(iso.jacfwd(cubes))):
        np.testing.assert_allclose(numpy_of(second(xp.asarray(X))), sure, rtol=1e-12, atol=1e-13)


def test_columns_use_custom_rules_and_allow_complex_outputs(backend, xp):
    tenfold = iso.custom_vjp(lambda x: x * x, lambda x: (x * x, x), lambda r, g: (20 * g * r,))
    found = iso.jacfwd(tenfold)(xp.asarray(X))
    np.testing.assert_allclose(numpy_of(found), np.diag(20 * X), rtol=1e-12)
    turned = iso.jacfwd(lambda x: xp.exp(1j * xp.astype(x, xp.complex128)))(xp.asarray(X))
    np.testing.assert_allclose(numpy_of(turned), np.diag(1j * np.exp(1j * X)), rtol=1e-12)
    with pytest.raises(TypeError, match="jacfwd: needed real inputs, got complex128; use iso.jvp"):
        iso.jacfwd(lambda z: z * z)(xp.asarray(X + 0j))
    with pytest.raises(TypeError, match="value_and_jac: needed real outputs"):
        iso.value_and_jac(lambda z: z * z)(xp.asarray(X + 0j))


def test_empty_inputs_and_outputs(backend, xp):
    x = xp.asarray(np.ones(0))
    assert tuple(iso.jacfwd(lambda x: xp.concat([x, xp.asarray(X)]))(x).shape) == (3, 0)
    assert tuple(iso.jacrev(lambda x: x[:0])(xp.asarray(X)).shape) == (0, 3)
    assert tuple(iso.jacfwd(lambda x: x[:0])(xp.asarray(X)).shape) == (0, 3)
