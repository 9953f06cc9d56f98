"""Suite "Functional API/Core/gradients", row by row: the gradient mode, stop_gradient,
execute_with_gradients, grad, value_and_grad, jac and the optimizers. The other files here test the
details.
"""

import contextvars
import math
import threading
from functools import partial

import numpy as np
import pytest
from frameworks import older, optax, torch
from optimizers import optimizer_oracles as steps

import isomorph as iso
from isomorph import adam_step, optimizer_update
from oracles import central_gradient, compiled, kind_of, numpy_of

pytestmark = pytest.mark.whole
reads = pytest.mark.takes("torch.compile reads our code and that of torch.func for seconds")

rng = np.random.default_rng(1)
M = rng.standard_normal((4, 3))
X = rng.uniform(0.5, 1.5, 3)


def test_with_grads(backend):
    assert iso.with_grads() is True
    assert iso.with_grads(with_grads=False) is False
    with iso.gradient_tracking(False):
        assert iso.with_grads() is False
        assert iso.with_grads(with_grads=True) is True
    for wrong in (1, "yes", np.bool_(True)):
        with pytest.raises(TypeError, match="with_grads: needed True or False, got"):
            iso.with_grads(with_grads=wrong)


class Scaled(iso.Module):
    def __init__(self, w):
        self.w = w

    def forward(self, x):
        return iso.namespace(x).tanh(self.w * x)


def loss_of(xp, x):
    """A loss of a module's variables; the gradient mode decides whether it has gradients."""
    module = Scaled(xp.asarray(X))
    return lambda v: xp.sum(module(x, v=v))


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


@reads
@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_execute_with_gradients(backend, xp, mode):
    if (backend, mode) == ("torch", "compiled") and older("torch", 2, 13):
        pytest.skip("before torch 2.13 torch.compile cannot tell tensors apart by id")
    run = (lambda f: f) if mode == "eager" else (lambda f: compiled(backend, f))
    calls = []
    xs = {"w": xp.asarray(X), "b": [xp.asarray(2.0, dtype=xp.float64), None], "n": xp.asarray(3)}

    def f(xs):
        calls.append(1)
        return xp.sum(xs["w"] ** 2) * xs["b"][0]

    ret, grads = run(lambda xs: iso.execute_with_gradients(f, xs))(xs)
    assert calls == [1]
    np.testing.assert_allclose(float(ret), 2 * np.sum(X**2), rtol=1e-12)
    np.testing.assert_allclose(numpy_of(grads["w"]), 4 * X, rtol=1e-12)
    np.testing.assert_allclose(float(grads["b"][0]), np.sum(X**2), rtol=1e-12)
    assert grads["b"][1] is None
    assert grads["n"] is None
    assert kind_of(grads["w"]) == backend
    # second order: d/dw of Σ w² · b + Σ 2wb, with the first gradients kept
    kept = lambda xs: iso.execute_with_gradients(f, xs, retain_grads=True)
    total = lambda w: sum(map(xp.sum, (kept({**xs, "w": w})[0], kept({**xs, "w": w})[1]["w"])))
    np.testing.assert_allclose(numpy_of(run(iso.grad(total))(xs["w"])), 4 * X + 4, rtol=1e-12)


def smooth(xp):
    return lambda x, m: xp.sum(xp.sin(xp.matmul(m, x)) ** 2) * xp.exp(xp.mean(x))


@reads
@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_value_and_grad(backend, xp, mode):
    run = (lambda f: f) if mode == "eager" else (lambda f: compiled(backend, f))
    f, x, m = smooth(xp), xp.asarray(X), xp.asarray(M)
    value, (gx, gm) = run(iso.value_and_grad(f, argnums=(0, 1)))(x, m)
    plain = smooth(np)
    np.testing.assert_allclose(float(value), plain(X, M), rtol=1e-12)
    # five digits fewer than float64, because of central differences
    np.testing.assert_allclose(numpy_of(gx), central_gradient(lambda x: plain(x, M), X), rtol=1e-7)
    np.testing.assert_allclose(numpy_of(gm), central_gradient(lambda m: plain(X, m), M), rtol=1e-6)
    half = lambda x: xp.sum(iso.grad(f)(x, m) ** 2)
    second = run(iso.value_and_grad(half))(x)[1]
    expected = central_gradient(lambda x: np.sum(iso.grad(smooth(np))(x, M) ** 2), X)
    np.testing.assert_allclose(numpy_of(second), expected, rtol=1e-6)


@reads
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


@reads
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


# The optimizers.

by_torch, by_optax = (partial(f, steps=steps.WALK) for f in (steps.by_torch, steps.by_optax))


@pytest.mark.takes("torch compiles C++")
def test_optimizer_update(backend, xp):
    oracles = {
        "torch": by_torch(lambda params: torch.optim.SGD(params, lr=steps.LR)),
        "optax": by_optax(optax.sgd(steps.LR)),
    }
    steps.check(backend, xp, steps.ours_optimizer, steps.descent, oracles)


@pytest.mark.takes("torch compiles C++")
def test_gradient_descent_update(backend, xp):
    oracles = {
        "torch": by_torch(lambda params: torch.optim.SGD(params, lr=steps.LR)),
        "optax": by_optax(optax.sgd(steps.LR)),
    }
    steps.check(backend, xp, steps.ours_descent, steps.descent, oracles)


def adams(**options):
    make = partial(torch.optim.Adam, lr=steps.LR, eps=steps.EPSILON, **options)
    return by_torch(make)


@reads
def test_adam_step(backend, xp):
    def walk(w, g, lr, m, v, t, stop_gradients=True):
        u, m, v = adam_step(g, m, v, t, epsilon=steps.EPSILON)
        return optimizer_update(w, u, lr, stop_gradients=False), m, v

    oracles = {
        "torch": adams(),
        "optax": by_optax(optax.adam(steps.LR, eps=steps.EPSILON)),
    }
    steps.check(backend, xp, walk, steps.adam_paper, oracles, stops=False)
    given = steps.GRADIENTS[0], steps.M, steps.V
    betas = {"beta1": 0.7, "beta2": 0.9}
    expected = zip(*(steps.adam(*leaf, 5, **betas) for leaf in zip(*given)))
    nests = (steps.arrays(xp, x) for x in given)
    step = steps.quick(backend, partial(adam_step, epsilon=steps.EPSILON, **betas))
    for got, column in zip(step(*nests, 5), expected, strict=True):
        steps.assert_close(got, column)


@reads
def test_adam_update(backend, xp):
    oracles = {
        "torch": adams(),
        "optax": by_optax(optax.adam(steps.LR, eps=steps.EPSILON)),
    }
    steps.check(backend, xp, steps.ours_adam, steps.adam_paper, oracles)
    betas = {"beta1": 0.7, "beta2": 0.9}
    update = steps.quick(backend, partial(steps.ours_adam, **betas))
    got = steps.by_us(update, xp, "float64", steps.LR)
    steps.assert_close(got, adams(betas=(0.7, 0.9)))
    steps.assert_close(got, steps.by_paper(partial(steps.adam_paper, **betas)))


@reads
def test_lars_update(backend, xp):
    # optax's λ means something else: its rate is ‖w‖ / ‖g + λw‖
    same = optax.lars(steps.LR, weight_decay=0.0, trust_coefficient=1.0, eps=0.0, momentum=0.0)
    got = steps.by_us(steps.quick(backend, steps.ours_lars), xp, "float64", steps.LR)
    steps.assert_close(got, by_optax(same))
    decayed = partial(steps.ours_lars, decay_lambda=0.3)
    steps.check(backend, xp, decayed, partial(steps.lars_paper, decay=0.3), {})


@reads
def test_lamb_update(backend, xp):
    uncapped = partial(steps.ours_lamb, max_trust_ratio=math.inf)
    for decay in (0.0, 0.3):
        same = optax.lamb(steps.LR, eps=steps.EPSILON, weight_decay=decay)
        update = steps.quick(backend, partial(uncapped, decay_lambda=decay))
        got = steps.by_us(update, xp, "float64", steps.LR)
        steps.assert_close(got, by_optax(same))
    # ratios below and above the cap
    capped = partial(steps.ours_lamb, decay_lambda=0.3, max_trust_ratio=2.0)
    paper = partial(steps.lamb_paper, decay=0.3, cap=2.0)
    leaves = list(zip(steps.W, steps.GRADIENTS[0], steps.M, steps.V))
    once = [paper(w, g, steps.LR, m, v, 3)[0] for w, g, m, v in leaves]
    free = [steps.lamb_paper(w, g, steps.LR, m, v, 3, 0.3)[0] for w, g, m, v in leaves]
    assert 0 < sum(np.array_equal(x, y) for x, y in zip(once, free)) < len(leaves)
    steps.check(backend, xp, capped, paper, {})
