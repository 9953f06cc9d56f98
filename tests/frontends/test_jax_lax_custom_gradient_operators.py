"""Suite "Jax Frontend/jax_lax_custom_gradient_operators": JAX's signatures on arrays of every
backend. The oracle is native `jax.lax`, for values and gradients.
"""

import numpy as np
import pytest
from frameworks import enable_x64, jax, jnp

import isomorph as iso
from isomorph.frontends.jax import lax
from oracles import kind_of, numpy_of

X = np.array([0.5, 1.5, -2.0])
A = np.array([[3.0, 1.0, 0.5], [0.2, 2.0, 0.1], [0.3, 0.4, 4.0]])
S = A @ A.T  # symmetric positive definite
ROOTS = np.array([1.0, 1.3, 0.8])
modes = pytest.mark.parametrize("mode", ["eager", "jit"])


def run(mode, func):
    return iso.jit(func) if mode == "jit" else func


def expected(func, *args):
    """JAX's own result in float64."""
    with enable_x64(True):
        return jax.tree.map(np.asarray, func(*map(jnp.asarray, args)))


@pytest.mark.whole
@modes
def test_stop_gradient(backend, xp, mode):
    def ours(x):
        return xp.sum(xp.sin(lax.stop_gradient(x)) * x + lax.stop_gradient({"a": [x]})["a"][0] ** 2)

    def theirs(x):
        stop = jax.lax.stop_gradient
        return jnp.sum(jnp.sin(stop(x)) * x + stop({"a": [x]})["a"][0] ** 2)

    x = xp.asarray(X)
    weighted = lambda grad, f, xp: lambda x: xp.sum(grad(f)(x) * x)
    both = lambda x: (iso.value_and_grad(ours)(x), iso.grad(weighted(iso.grad, ours, xp))(x))
    (value, grad), second = run(mode, both)(x)
    value_, grad_ = expected(jax.value_and_grad(theirs), X)
    np.testing.assert_allclose(numpy_of(value), value_, rtol=1e-14)
    np.testing.assert_allclose(numpy_of(grad), grad_, rtol=1e-14)
    np.testing.assert_allclose(grad_, np.sin(X))  # not the derivative of the whole product
    second_ = expected(jax.grad(weighted(jax.grad, theirs, jnp)), X)
    np.testing.assert_allclose(numpy_of(second), second_, rtol=1e-14)


def test_stop_gradient_keeps_values_kinds_and_what_is_no_array(backend, xp):
    x = xp.asarray(X)
    i = xp.asarray([1, 2])
    out = lax.stop_gradient({"x": x, "i": i, "none": None, "word": "w", "n": 3})
    assert kind_of(out["x"]) == kind_of(x)
    np.testing.assert_array_equal(numpy_of(out["x"]), X)
    np.testing.assert_array_equal(numpy_of(out["i"]), [1, 2])
    assert (out["none"], out["word"], out["n"]) == (None, "w", 3)


def cube_root(xp, op):
    """The solution of x³ = a by Newton's method. The tangent system is diagonal: one product solves
    it.
    """

    def newton(f, x):
        for _ in range(2):  # every step multiplies the compile time of torch
            x = x - f(x) / (3 * x**2)
        return x

    def root(a):
        guess = xp.asarray(ROOTS ** (1 / 3) + 1e-4)
        return op(lambda x: x**3 - a, guess, newton, lambda g, y: y / g(xp.ones_like(y)))

    return root


@modes
def test_custom_root(backend, xp, mode):
    ours, theirs = cube_root(xp, lax.custom_root), cube_root(jnp, jax.lax.custom_root)
    a = xp.asarray(ROOTS)
    weighted = lambda root, xp: lambda a: xp.sum(root(a) ** 2 * a)
    first = iso.grad(weighted(ours, xp))
    second = iso.grad(lambda a: xp.sum(first(a)))
    value, grad, hess = run(mode, lambda a: (weighted(ours, xp)(a), first(a), second(a)))(a)
    value_, grad_ = expected(jax.value_and_grad(weighted(theirs, jnp)), ROOTS)
    np.testing.assert_allclose(numpy_of(value), value_, rtol=1e-12)
    np.testing.assert_allclose(numpy_of(grad), grad_, rtol=1e-12)
    np.testing.assert_allclose(grad_, 5 / 3 * ROOTS ** (2 / 3), rtol=1e-12)  # closed form
    np.testing.assert_allclose(numpy_of(hess), 10 / 9 * ROOTS ** (-1 / 3), rtol=1e-10)
    third = iso.grad(lambda a: xp.sum(second(a)))
    np.testing.assert_allclose(numpy_of(third(a)), -10 / 27 * ROOTS ** (-4 / 3), rtol=1e-10)


@modes
def test_custom_root_of_nests_with_aux(backend, xp, mode):
    # u + v = a, u - v = b: a nest of unknowns, and a solver that also returns its iteration count
    def problem(xp, op):
        def root(p):
            f = lambda x: {"u": x["u"] + x["v"] - p["a"], "v": x["u"] - x["v"] - p["b"]}

            def solve(f, x):
                r = f(x)
                half = lambda s, t: (s + t) / 2
                u = x["u"] - half(r["u"], r["v"])
                v = x["v"] - (r["u"] - r["v"]) / 2
                return {"u": u, "v": v}, xp.asarray(1.0)  # JAX needs floats

            def tangent(g, y):
                return {"u": (y["u"] + y["v"]) / 2, "v": (y["u"] - y["v"]) / 2}

            zero = xp.zeros_like(p["a"])
            return op(f, {"u": zero, "v": zero}, solve, tangent, has_aux=True)

        return root

    def loss(xp, op):
        def total(p):
            x, tries = problem(xp, op)(p)
            return xp.sum(x["u"] ** 3 + x["v"] ** 2), tries

        return total

    p = {"a": xp.asarray(X), "b": xp.asarray(X**2)}
    grads, tries = run(mode, iso.grad(loss(xp, lax.custom_root), has_aux=True))(p)
    theirs = lambda a, b: jax.grad(loss(jnp, jax.lax.custom_root), has_aux=True)({"a": a, "b": b})[
        0
    ]
    grads_ = expected(theirs, X, X**2)
    assert int(tries) == 1
    for key in "ab":
        np.testing.assert_allclose(numpy_of(grads[key]), grads_[key], rtol=1e-12)
    u, v = (X + X**2) / 2, (X - X**2) / 2
    np.testing.assert_allclose(grads_["a"], 1.5 * u**2 + v, rtol=1e-12)


def solver(xp, op, symmetric):
    def solve(a, b):
        dense = lambda f, b: xp.linalg.solve(a, b)  # captures a, through which no gradient flows
        turned = lambda f, b: xp.linalg.solve(xp.matrix_transpose(a), b)
        matvec = lambda x: xp.matmul(a, x)
        return op(matvec, b, dense, None if symmetric else turned, symmetric=symmetric)

    return solve


@modes
@pytest.mark.parametrize("symmetric", [False, True])
def test_custom_linear_solve(backend, xp, mode, symmetric):
    matrix = S if symmetric else A
    ours = solver(xp, lax.custom_linear_solve, symmetric)
    theirs = solver(jnp, jax.lax.custom_linear_solve, symmetric)
    loss = lambda solve, xp: lambda a, b: xp.sum(solve(a, b) ** 3)
    a, b = xp.asarray(matrix), xp.asarray(X)
    twice = lambda grad, f, xp: grad(lambda a, b: xp.sum(grad(f)(a, b) * xp.cos(a)))
    both = iso.value_and_grad(loss(ours, xp), (0, 1))
    second = twice(iso.grad, loss(ours, xp), xp)
    (value, (ga, gb)), hess = run(mode, lambda a, b: (both(a, b), second(a, b)))(a, b)
    value_, (ga_, gb_) = expected(jax.value_and_grad(loss(theirs, jnp), (0, 1)), matrix, X)
    np.testing.assert_allclose(numpy_of(value), value_, rtol=1e-12)
    np.testing.assert_allclose(numpy_of(ga), ga_, rtol=1e-11)
    np.testing.assert_allclose(numpy_of(gb), gb_, rtol=1e-11)
    x = np.linalg.solve(matrix, X)
    back = np.linalg.solve(matrix.T, 3 * x**2)
    np.testing.assert_allclose(gb_, back, rtol=1e-11)  # closed form
    np.testing.assert_allclose(ga_, -np.outer(back, x), rtol=1e-11)
    hess_ = expected(twice(jax.grad, loss(theirs, jnp), jnp), matrix, X)
    np.testing.assert_allclose(numpy_of(hess), hess_, rtol=1e-9)


def test_custom_linear_solve_with_aux(backend, xp):
    def solve(f, b):
        return b / 4, {"steps": xp.asarray(3)}

    w = xp.asarray(4.0, dtype=xp.float64)

    def total(w, b):
        x, aux = lax.custom_linear_solve(lambda x: w * x, b, solve, symmetric=True, has_aux=True)
        return xp.sum(x**2), aux["steps"]

    (gw, gb), steps = iso.grad(total, (0, 1), has_aux=True)(w, xp.asarray(X))
    assert int(steps) == 3
    np.testing.assert_allclose(numpy_of(gb), 2 * X / 16, rtol=1e-12)
    np.testing.assert_allclose(float(gw), -2 * np.sum(X**2) / 64, rtol=1e-12)


def test_bad_input(backend, xp):
    x = xp.asarray(X)
    ident = lambda *a: a[-1]
    with pytest.raises(TypeError, match="custom_root: needed solve as a function, got NoneType"):
        lax.custom_root(ident, x, None, ident)
    with pytest.raises(TypeError, match="custom_root: needed at least one array"):
        lax.custom_root(ident, {}, ident, ident)
    with pytest.raises(
        TypeError, match="custom_linear_solve: needed matvec as a function, got int"
    ):
        lax.custom_linear_solve(3, x, ident)


@pytest.mark.parametrize("backend", ["numpy", "tensorflow", "torch"], indirect=True)
def test_a_solve_that_cannot_be_transposed_says_so(backend, xp):
    f = lambda b: xp.sum(lax.custom_linear_solve(lambda x: 2 * x, b, lambda f, b: b / 2))
    with pytest.raises(TypeError, match="needed transpose_solve or symmetric=True"):
        iso.grad(f)(xp.asarray(X))


@pytest.mark.parametrize("backend", ["numpy", "tensorflow", "torch"], indirect=True)
def test_an_equation_with_hidden_arrays_raises(backend, xp):
    hidden = {}
    f = eval("lambda x: x**3 - hidden['a']", {"hidden": hidden})

    def total(a):
        hidden["a"] = a
        guess = iso.stop_gradient(a, preserve_type=False)
        solve = lambda f, x: xp.asarray(ROOTS ** (1 / 3))  # never calls f
        return xp.sum(a) + xp.sum(lax.custom_root(f, guess, solve, lambda g, y: y) * a)

    with pytest.raises(TypeError, match="argument.*captured in its closure"):
        # a second level: without it nothing else in the call is differentiated
        iso.grad(lambda a: total(a) + xp.sum(lax.custom_root(
            lambda x: x - a, a, lambda f, x: f(x), lambda g, y: y)))(xp.asarray(ROOTS))  # fmt: skip


@pytest.mark.parametrize("backend", ["numpy", "tensorflow", "torch"], indirect=True)
def test_forms_that_do_not_fit_raise(backend, xp):
    b = xp.asarray(X)
    op = lax.custom_linear_solve
    ident = lambda f, b: b
    cases = [
        (
            TypeError,
            r"solve to return \(x, aux\)",
            lambda b: op(lambda x: x, b, ident, ident, has_aux=True)[0],
        ),
        (
            ValueError,
            "needed the result of solve, like b,",
            lambda b: op(lambda x: x, b, lambda f, b: b[:2], ident),
        ),
        (ValueError, r"needed matvec\(x\) as", lambda b: op(lambda x: {"a": x}, b, ident, ident)),
    ]
    for kind, match, call in cases:
        with pytest.raises(kind, match=match):
            iso.grad(lambda b, call=call: xp.sum(call(b)))(b)
