"""Suite "Functional API/Core/gradients": the mode, stop_gradient, execution with gradients, grad,
value_and_grad and jac. The optimizer rows stand beside, in test_optimizer_updates.py."""

import contextvars
import threading

import jax
import numpy as np
import pytest
import tensorflow as tf
import torch

import isomorph as iso
from isomorph.gradients.mode import variables
from oracles import central_gradient, kind_of, numpy_of

rng = np.random.default_rng(1)
M = rng.standard_normal((4, 3))
X = rng.uniform(0.5, 1.5, 3)


def compiled(backend, func):
    """`func` under the framework's own compiler; NumPy has none."""
    if backend == "jax":
        return jax.jit(func)
    if backend == "tensorflow":
        return tf.function(func, jit_compile=True, autograph=False)
    if backend == "torch":  # aot_eager traces whole graphs as inductor does, without its seconds
        return torch.compile(func, fullgraph=True, backend="aot_eager")
    return func


def test_with_grads(backend):
    assert iso.with_grads() is True
    assert iso.with_grads(with_grads=False) is False
    with iso.gradient_tracking(False):
        assert iso.with_grads() is False
        assert iso.with_grads(with_grads=True) is True
    for wrong in (1, "yes", np.bool_(True)):
        with pytest.raises(TypeError, match="with_grads: needed True or False, got"):
            iso.with_grads(with_grads=wrong)


def loss_of(xp, x):
    """A loss of variables as a module would hand them to its forward."""
    return lambda v: xp.sum(xp.tanh(variables(v)["w"] * x))


def test_set_with_grads(backend, xp):
    x, v = xp.asarray(X), {"w": xp.asarray(X + 1)}
    expected = X / np.cosh((X + 1) * X) ** 2
    iso.set_with_grads(False)
    try:
        assert iso.with_grads() is False
        np.testing.assert_array_equal(numpy_of(iso.grad(loss_of(xp, x))(v)["w"]), np.zeros(3))
        seen = []
        thread = threading.Thread(target=lambda: seen.append(iso.with_grads()))
        thread.start()
        thread.join()
        seen.append(contextvars.Context().run(iso.with_grads))
        assert seen == [True, True]
    finally:
        iso.unset_with_grads()
    np.testing.assert_allclose(numpy_of(iso.grad(loss_of(xp, x))(v)["w"]), expected, rtol=1e-12)
    with pytest.raises(TypeError, match="set_with_grads: needed True or False, got None"):
        iso.set_with_grads(None)
    assert iso.with_grads() is True


def test_unset_with_grads(backend, xp):
    iso.unset_with_grads()
    assert iso.with_grads() is True
    for flag in (False, True, False):
        iso.set_with_grads(flag)
    modes = []
    for _ in range(4):
        modes.append(iso.with_grads())
        iso.unset_with_grads()
    assert modes == [False, True, False, True]
    with pytest.raises(KeyError), iso.gradient_tracking(False):
        raise KeyError
    assert iso.with_grads() is True
    with iso.gradient_tracking(False):
        v = {"w": xp.asarray(X)}
        g = iso.grad(loss_of(xp, xp.asarray(X)))(v)["w"]
        np.testing.assert_array_equal(numpy_of(g), np.zeros(3))


@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_stop_gradient(backend, xp, mode):
    run = (lambda f: f) if mode == "eager" else (lambda f: compiled(backend, f))
    x = xp.asarray(X)
    f = lambda x: xp.sum(xp.exp(iso.stop_gradient(x)) * x)
    np.testing.assert_allclose(numpy_of(run(iso.grad(f))(x)), np.exp(X), rtol=1e-12)
    # second order: d/dx of exp(stop(x)) is zero as well
    second = run(iso.grad(lambda x: xp.sum(iso.grad(f)(x))))(x)
    np.testing.assert_array_equal(numpy_of(second), np.zeros(3))
    nest = {"a": [x, None], "n": xp.asarray([1, 2]), "s": "text"}
    got = iso.stop_gradient(nest)
    assert (got["a"][1], got["s"]) == (None, "text")
    for out, given in ((got["a"][0], x), (got["n"], nest["n"])):
        assert (type(out), out.dtype) == (type(given), given.dtype)
        np.testing.assert_array_equal(numpy_of(out), numpy_of(given))


def test_stop_gradient_gives_variables_back_as_fresh_ones(backend, xp):
    variable = {
        "numpy": lambda: np.array([1.0, 2.0]),
        "jax": lambda: jax.numpy.asarray([1.0, 2.0]),
        "tensorflow": lambda: tf.Variable([1.0, 2.0]),
        "torch": lambda: torch.nn.Parameter(torch.tensor([1.0, 2.0])),
    }[backend]()
    kept, plain = iso.stop_gradient(variable), iso.stop_gradient(variable, preserve_type=False)
    assert type(kept) is type(variable)
    np.testing.assert_array_equal(numpy_of(kept), [1.0, 2.0])
    np.testing.assert_array_equal(numpy_of(plain), [1.0, 2.0])
    if backend == "tensorflow":
        kept.assign([5.0, 5.0])
        assert not isinstance(plain, tf.Variable)
    elif backend == "torch":
        assert kept.requires_grad
        assert not plain.requires_grad
        with torch.no_grad():
            kept += 4
        leaf = torch.ones(2, requires_grad=True)
        assert iso.stop_gradient(leaf).requires_grad
        assert not iso.stop_gradient(leaf * 2).requires_grad
    np.testing.assert_array_equal(numpy_of(variable), [1.0, 2.0])


def test_execute_with_gradients(backend, xp):
    calls = []
    xs = {"w": xp.asarray(X), "b": [xp.asarray(2.0, dtype=xp.float64), None], "n": xp.asarray(3)}

    def f(xs):
        calls.append(1)
        return xp.sum(xs["w"] ** 2) * xs["b"][0]

    ret, grads = iso.execute_with_gradients(f, xs)
    assert calls == [1]
    np.testing.assert_allclose(float(ret), 2 * np.sum(X**2), rtol=1e-12)
    np.testing.assert_allclose(numpy_of(grads["w"]), 4 * X, rtol=1e-12)
    np.testing.assert_allclose(float(grads["b"][0]), np.sum(X**2), rtol=1e-12)
    assert grads["b"][1] is None
    assert grads["n"] is None
    assert kind_of(grads["w"]) == backend


def test_execute_with_gradients_chooses_by_paths(backend, xp):
    xs = [xp.asarray(X), {"a": (xp.asarray(X + 1), xp.asarray(X + 2))}]
    f = lambda xs: {"u": xp.sum(xs[0] * xs[1]["a"][0]), "v": [xp.sum(xs[1]["a"][1] ** 2), xs[0]]}
    ret, grads = iso.execute_with_gradients(
        f, xs, xs_grad_idxs=[[0], [1, "a", 1]], ret_grad_idxs=[["u"], ["v", 0]]
    )
    np.testing.assert_array_equal(numpy_of(ret["v"][1]), X)
    assert sorted(grads) == ["u", "v/0"]
    np.testing.assert_allclose(numpy_of(grads["u"][0]), X + 1, rtol=1e-12)
    np.testing.assert_array_equal(numpy_of(grads["u"][1]), np.zeros(3))
    np.testing.assert_array_equal(numpy_of(grads["v/0"][0]), np.zeros(3))
    np.testing.assert_allclose(numpy_of(grads["v/0"][1]), 2 * (X + 2), rtol=1e-12)
    _, one = iso.execute_with_gradients(f, xs, xs_grad_idxs=[[1, "a"]], ret_grad_idxs=[["u"]])
    np.testing.assert_allclose(numpy_of(one[0]), X, rtol=1e-12)


def test_execute_with_gradients_sums_over_an_array_used_twice(backend, xp):
    x = xp.asarray(X)
    _, grads = iso.execute_with_gradients(lambda xs: xp.sum(3 * xs[0] + 5 * xs[1]), [x, x])
    for g in grads:
        np.testing.assert_allclose(numpy_of(g), 8 * np.ones(3), rtol=1e-12)


def test_execute_with_gradients_stays_differentiable_when_asked(backend, xp):
    def outer(x, retain):
        ret, g = iso.execute_with_gradients(lambda x: xp.sum(x**3), x, retain_grads=retain)
        return ret + xp.sum(g)

    x = xp.asarray(X)
    kept = iso.grad(lambda x: outer(x, True))(x)
    np.testing.assert_allclose(numpy_of(kept), 3 * X**2 + 6 * X, rtol=1e-12)
    cut = iso.grad(lambda x: outer(x, False))(x)
    np.testing.assert_array_equal(numpy_of(cut), np.zeros(3))
    value, g = iso.execute_with_gradients(lambda x: xp.sum(xp.sqrt(x)), xp.asarray([0.0, 1.0]))
    np.testing.assert_array_equal(numpy_of(g), [np.inf, 0.5])
    assert float(value) == 1.0


def test_execute_with_gradients_refuses_bad_input(backend, xp):
    xs = {"w": xp.asarray(X), "n": xp.asarray(3)}
    run = iso.execute_with_gradients
    with pytest.raises(TypeError, match=r"needed a function with a scalar output"):
        run(lambda xs: xs["w"], xs)
    with pytest.raises(KeyError, match=r"the path \['v'\].*its keys are \['n', 'w'\]"):
        run(lambda xs: xp.sum(xs["w"]), xs, xs_grad_idxs=[["v"]])
    with pytest.raises(KeyError, match=r"ret_grad_idxs has the path \[0, 1\].*no 1.*leaf"):
        run(lambda xs: [xp.sum(xs["w"])], xs, ret_grad_idxs=[[0, 1]])
    with pytest.raises(TypeError, match="xs_grad_idxs needed a list of paths"):
        run(lambda xs: xp.sum(xs["w"]), xs, xs_grad_idxs=["w"])
    with pytest.raises(TypeError, match="needed floating-point arrays.*int.* at xs/n"):
        run(lambda xs: xp.sum(xs["w"]), xs, xs_grad_idxs=[["n"]])
    with pytest.raises(TypeError, match="needed an array to differentiate"):
        run(lambda xs: xp.sum(xs["n"]), {"n": xp.asarray(3)})
    with pytest.raises(TypeError, match="execute_with_gradients: needed a function"):
        run(3, xs)


def smooth(xp):
    return lambda x, m: xp.sum(xp.sin(xp.matmul(m, x)) ** 2) * xp.exp(xp.mean(x))


@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_value_and_grad(backend, xp, mode):
    run = (lambda f: f) if mode == "eager" else (lambda f: compiled(backend, f))
    f, x, m = smooth(xp), xp.asarray(X), xp.asarray(M)
    value, (gx, gm) = run(iso.value_and_grad(f, argnums=(0, 1)))(x, m)
    plain = smooth(np)
    np.testing.assert_allclose(float(value), plain(X, M), rtol=1e-12)
    # five digits fewer than float64: central differences
    np.testing.assert_allclose(numpy_of(gx), central_gradient(lambda x: plain(x, M), X), rtol=1e-7)
    np.testing.assert_allclose(numpy_of(gm), central_gradient(lambda m: plain(X, m), M), rtol=1e-6)
    half = lambda x: xp.sum(iso.grad(f)(x, m) ** 2)
    second = run(iso.value_and_grad(half))(x)[1]
    expected = central_gradient(lambda x: np.sum(iso.grad(smooth(np))(x, M) ** 2), X)
    np.testing.assert_allclose(numpy_of(second), expected, rtol=1e-6)


@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_grad(backend, xp, mode):
    run = (lambda f: f) if mode == "eager" else (lambda f: compiled(backend, f))
    x = xp.asarray(0.7, dtype=xp.float64)
    f = lambda p: p["a"][0] ** 4 * xp.sin(p["a"][0])
    g = lambda x: f({"a": [x]})
    s, c = np.sin(0.7), np.cos(0.7)
    expected = [
        4 * 0.7**3 * s + 0.7**4 * c,
        12 * 0.7**2 * s + 8 * 0.7**3 * c - 0.7**4 * s,
        24 * 0.7 * s + 36 * 0.7**2 * c - 12 * 0.7**3 * s - 0.7**4 * c,
    ]
    np.testing.assert_allclose(float(run(iso.grad(f))({"a": [x]})["a"][0]), expected[0], rtol=1e-12)
    for order in expected:
        g = iso.grad(g)
        np.testing.assert_allclose(float(run(g)(x)), order, rtol=1e-12)


@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_jac(backend, xp, mode):
    run = (lambda f: f) if mode == "eager" else (lambda f: compiled(backend, f))
    m, x = xp.asarray(M), xp.asarray(X)
    f = lambda p, s: {"y": xp.matmul(m, xp.sin(p["x"])) * s, "z": [xp.sum(p["x"] ** 2) * s**2]}
    two = xp.asarray(2.0, dtype=xp.float64)
    full = run(iso.jac(f, argnums=(0, 1)))({"x": x}, two)
    dy_dx, dy_ds = full["y"]
    dz_dx, dz_ds = full["z"][0]
    np.testing.assert_allclose(numpy_of(dy_dx["x"]), 2 * M * np.cos(X), rtol=1e-12)
    np.testing.assert_allclose(numpy_of(dy_ds), M @ np.sin(X), rtol=1e-12)
    np.testing.assert_allclose(numpy_of(dz_dx["x"]), 8 * X, rtol=1e-12)
    np.testing.assert_allclose(float(dz_ds), 4 * np.sum(X**2), rtol=1e-12)
    outer = run(iso.jac(lambda x: x[:, None] * x[None, :]))(x)
    eye = np.eye(3)
    expected = np.einsum("ik,j->ijk", eye, X) + np.einsum("i,jk->ijk", X, eye)
    assert tuple(outer.shape) == (3, 3, 3)
    np.testing.assert_allclose(numpy_of(outer), expected, rtol=1e-12)
    hess = run(iso.hessian(lambda x: xp.sum(x**3) + x[0] * x[1]))(x)
    cross = np.zeros((3, 3))
    cross[0, 1] = cross[1, 0] = 1
    np.testing.assert_allclose(numpy_of(hess), np.diag(6 * X) + cross, rtol=1e-12)


def test_jac_edges(backend, xp):
    x = xp.asarray(X)
    assert tuple(iso.jac(lambda x: x[:0] * 2)(x).shape) == (0, 3)
    assert tuple(iso.jac(lambda x: x * 2)(xp.zeros((0,))).shape) == (0, 0)
    with pytest.raises(TypeError, match="jac: needed real outputs, got .*complex"):
        iso.jac(lambda x: x * 1j)(xp.asarray([1.0 + 0j]))
    with pytest.raises(TypeError, match="jac: needed a function"):
        iso.jac(None)


def test_jvp_and_hvp(backend, xp):
    v = np.array([1.0, -2.0, 0.5])
    x, t, m = xp.asarray(X), xp.asarray(v), xp.asarray(M)
    out, tangent = iso.jvp(lambda x: {"y": xp.matmul(m, xp.sin(x))}, (x,), (t,))
    np.testing.assert_allclose(numpy_of(out["y"]), M @ np.sin(X), rtol=1e-12)
    np.testing.assert_allclose(numpy_of(tangent["y"]), M @ (np.cos(X) * v), rtol=1e-12)
    (product,) = iso.hvp(lambda x: xp.sum(x**4), (x,), (t,))
    np.testing.assert_allclose(numpy_of(product), 12 * X**2 * v, rtol=1e-12)
    a = rng.standard_normal((2, 2)) + 1j * rng.standard_normal((2, 2))
    z = np.array([1.0 + 1.0j, -0.5j])
    _, tangent = iso.jvp(
        lambda z: xp.matmul(xp.asarray(a), z), (xp.asarray(z),), (xp.asarray(1j * z),)
    )
    np.testing.assert_allclose(numpy_of(tangent), a @ (1j * z), rtol=1e-12)
    with pytest.raises(ValueError, match="jvp: needed tangents like the primals"):
        iso.jvp(xp.sin, (x,), ([t],))
    with pytest.raises(ValueError, match=r"jvp: needed an array like the primal.*got.*\(2,\)"):
        iso.jvp(xp.sin, (x,), (t[:2],))
