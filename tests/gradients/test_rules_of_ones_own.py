"""Suite "Experimental API/Core/gradients": functions with a custom derivative.

Each rule is deliberately ten times the true derivative, so that a mode that ignores it fails.
"""

import numpy as np
import pytest
from frameworks import torch

import isomorph as iso
from oracles import numpy_of

X = np.array([0.5, 1.5])
cube = iso.bind_custom_gradient_function(lambda x: x**3, lambda saved, g: 30 * g * saved[0] ** 2)


def product(x, y):
    return x * x * y


weighted = iso.custom_vjp(
    product,
    lambda x, y: (product(x, y), {"dx": 2 * x * y, "dy": x * x, "note": "static"}),
    lambda saved, g: (10 * g * saved["dx"], 10 * g * saved["dy"]),
)


@pytest.mark.whole
def test_bind_custom_gradient_function(backend, xp):
    x = xp.asarray(X)
    np.testing.assert_allclose(numpy_of(cube(x)), X**3, rtol=1e-15)
    first = lambda x: iso.grad(lambda x: xp.sum(cube(x)))(x)
    np.testing.assert_allclose(numpy_of(first(x)), 30 * X**2, rtol=1e-12)
    second = iso.grad(lambda x: xp.sum(first(x)))(x)
    np.testing.assert_allclose(numpy_of(second), 60 * X, rtol=1e-12)
    # f = cube(x)·x: f' = 30x³ + cube, f'' = 90x² + 30x², f''' = 240x, with the rule at every order
    f = lambda x: cube(x) * x
    g = iso.grad(iso.grad(iso.grad(f)))
    np.testing.assert_allclose(float(g(xp.asarray(2.0, dtype=xp.float64))), 480.0, rtol=1e-12)


@pytest.mark.whole
@pytest.mark.takes("torch compiles two kernels of C++")
def test_custom_rule_compiled(backend, xp):
    first = iso.grad(lambda x: xp.sum(cube(x)))
    second = iso.grad(lambda x: xp.sum(first(x)))
    third = iso.grad(iso.grad(iso.grad(lambda x: cube(x) * x)))
    two = xp.asarray(2.0, dtype=xp.float64)
    all_ = iso.jit(lambda x, y: (cube(x), first(x), second(x), iso.jac(cube)(x), third(y)))
    value, grad, hess, jac, last = all_(xp.asarray(X), two)
    np.testing.assert_allclose(numpy_of(value), X**3, rtol=1e-12)
    np.testing.assert_allclose(numpy_of(grad), 30 * X**2, rtol=1e-12)
    np.testing.assert_allclose(numpy_of(hess), 60 * X, rtol=1e-12)
    np.testing.assert_allclose(numpy_of(jac), np.diag(30 * X**2), rtol=1e-12)
    np.testing.assert_allclose(float(last), 480.0, rtol=1e-12)


def sine_forward(x):
    y = sine(x)  # the function that has this rule, as in JAX' own documentation
    return y, y


sine = iso.custom_vjp(
    lambda x: iso.namespace(x).sin(x), sine_forward, lambda y, g: (2 * g * y,)
)  # f' = 2f, so that each order doubles


@pytest.mark.parametrize("mode", ["eager", "jit"])
def test_a_rule_that_calls_its_own_function(backend, xp, mode):
    x, run = xp.asarray(X), iso.jit if mode == "jit" else lambda f: f
    total = lambda x: xp.sum(sine(x))
    np.testing.assert_allclose(numpy_of(run(sine)(x)), np.sin(X), rtol=1e-15)
    for order in (1, 2, 3):
        slope = iso.grad(total)
        np.testing.assert_allclose(numpy_of(run(slope)(x)), 2**order * np.sin(X), rtol=1e-12)
        total = lambda x, slope=slope: xp.sum(slope(x))
    mapped = run(iso.vmap(iso.grad(iso.grad(sine))))(x)
    np.testing.assert_allclose(numpy_of(mapped), 4 * np.sin(X), rtol=1e-12)


@pytest.mark.parametrize("mode", ["eager", "jit"])
def test_custom_rule_under_vmap(backend, xp, mode):
    rows = np.stack([X, X + 1, X - 2])
    run = iso.jit if mode == "jit" else lambda f: f
    inner = iso.vmap(iso.grad(lambda x: xp.sum(cube(x))))  # per example
    outer = iso.grad(lambda rows: xp.sum(iso.vmap(cube)(rows)))  # the whole batch
    twice = iso.vmap(iso.grad(lambda x: xp.sum(iso.grad(lambda x: xp.sum(cube(x)))(x))))
    got = run(lambda rows: (inner(rows), outer(rows), twice(rows)))(xp.asarray(rows))
    for grad, expected in zip(got, (30 * rows**2, 30 * rows**2, 60 * rows)):
        np.testing.assert_allclose(numpy_of(grad), expected, rtol=1e-12)


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_torch_compile_itself_is_refused(backend, xp):
    # Dynamo would drop the rule silently, so isomorph refuses
    first = iso.grad(lambda x: xp.sum(cube(x)))
    with pytest.raises(Exception, match="compile it with iso.jit"):  # Dynamo's own type
        torch.compile(first, fullgraph=True, backend="eager")(xp.asarray(X))


def test_one_tensor_in_two_places_keeps_its_roles(backend, xp):
    # the residuals x and y are the same object: second derivatives must not mix them up
    f = iso.custom_vjp(
        product,
        lambda x, y: (product(x, y), (x, y)),
        lambda s, g: (2 * g * s[0] * s[1], g * s[0] ** 2),
    )
    x = xp.asarray(X)
    mixed = iso.grad(lambda y: xp.sum(iso.grad(lambda x: xp.sum(f(x, y)))(x)))(x)
    np.testing.assert_allclose(numpy_of(mixed), 2 * X, rtol=1e-12)


def test_custom_rule_in_other_modes(backend, xp):
    x = xp.asarray(X)
    _, pullback = iso.vjp(cube, x)
    np.testing.assert_allclose(numpy_of(pullback(xp.asarray(X))[0]), 30 * X**3, rtol=1e-12)
    _, tangent = iso.jvp(cube, (x,), (x,))
    np.testing.assert_allclose(numpy_of(tangent), 30 * X**3, rtol=1e-12)
    np.testing.assert_allclose(numpy_of(iso.jac(cube)(x)), np.diag(30 * X**2), rtol=1e-12)
    hess = iso.hessian(lambda x: xp.sum(cube(x)))(x)
    np.testing.assert_allclose(numpy_of(hess), np.diag(60 * X), rtol=1e-12)


def test_custom_vjp_with_several_inputs_and_residuals(backend, xp):
    x, y = xp.asarray(X), xp.asarray(X + 1)
    f = lambda x, y: xp.sum(weighted(x, y))
    gx, gy = iso.grad(f, argnums=(0, 1))(x, y)
    np.testing.assert_allclose(numpy_of(gx), 20 * X * (X + 1), rtol=1e-12)
    np.testing.assert_allclose(numpy_of(gy), 10 * X**2, rtol=1e-12)
    # second order goes through the residual 2xy: d/dx sum(20xy) = 20y
    second = iso.grad(lambda x: xp.sum(iso.grad(f)(x, y)))(x)
    np.testing.assert_allclose(numpy_of(second), 20 * (X + 1), rtol=1e-12)
    # the same array for both arguments
    both = iso.grad(lambda x: f(x, x))(x)
    np.testing.assert_allclose(numpy_of(both), 30 * X**2, rtol=1e-12)


def test_custom_vjp_with_nests(backend, xp):
    def func(p, n):
        return {"s": xp.sum(p["w"]) * n, "t": [p["b"] * 2]}

    f = iso.custom_vjp(
        func,
        lambda p, n: (func(p, n), (p, n)),
        lambda saved, g: ({"w": 10 * g["s"] * xp.ones_like(saved[0]["w"]), "b": g["t"][0]}, None),
    )
    p = {"w": xp.asarray(X), "b": xp.asarray(X)}
    out = f(p, 3)
    np.testing.assert_allclose(float(out["s"]), 6.0)
    grads = iso.grad(lambda p: f(p, 3)["s"] + xp.sum(f(p, 3)["t"][0]))(p)
    np.testing.assert_allclose(numpy_of(grads["w"]), [10.0, 10.0])
    np.testing.assert_allclose(numpy_of(grads["b"]), [1.0, 1.0])


def test_custom_vjp_with_integers_and_unused_outputs(backend, xp):
    take = iso.custom_vjp(
        lambda x, i: (x * 2, x + 1),
        lambda x, i: ((x * 2, x + 1), (i,)),
        lambda saved, g: (100 * g[0] + g[1], None),
    )
    i = xp.asarray([0, 1])
    g = iso.grad(lambda x: xp.sum(take(x, i)[0]))(xp.asarray(X))
    np.testing.assert_allclose(numpy_of(g), [100.0, 100.0])


def test_bad_rules_raise(backend, xp):
    x = xp.asarray(X)
    wrong_shape = iso.custom_vjp(xp.sin, lambda x: (xp.sin(x), None), lambda s, g: (g[:1],))
    with pytest.raises(Exception, match=r"bwd to return shape \(2,\) for argument 0, got \(1,\)"):
        iso.grad(lambda x: xp.sum(wrong_shape(x)))(x)
    too_few = iso.custom_vjp(product, lambda x, y: (product(x, y), None), lambda s, g: (g,))
    with pytest.raises(Exception, match="tuple of 2 gradients, one per argument, got 1"):
        iso.grad(lambda x: xp.sum(too_few(x, x)))(x)
    no_pair = iso.custom_vjp(xp.sin, xp.sin, lambda s, g: (g,))
    with pytest.raises(Exception, match=r"fwd to return \(output, residuals\)"):
        iso.grad(lambda x: xp.sum(no_pair(x)))(x)
    with pytest.raises(TypeError, match="custom_vjp: needed bwd as a function, got NoneType"):
        iso.custom_vjp(xp.sin, xp.sin, None)
    with pytest.raises(TypeError, match="bind_custom_gradient_function: needed a function"):
        iso.bind_custom_gradient_function(xp.sin, 3)


def test_custom_rule_in_a_compiled_function_differentiated_from_outside(backend, xp):
    rows = np.stack([X, X + 1])
    compiled = iso.jit(lambda rows: xp.sum(iso.vmap(cube)(rows)))
    grad = iso.grad(compiled)(xp.asarray(rows))
    np.testing.assert_allclose(numpy_of(grad), 30 * rows**2, rtol=1e-12)
