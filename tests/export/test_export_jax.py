"""A module as a nest of parameters and pure functions, for JAX and libraries built on it."""

import numpy as np
import pytest
from frameworks import jax, jnp, optax
from modules.perceptron import RATE, Plain

import isomorph as iso
from export.training import ADAM, STEPS, T32, X32, Counting, Tied, check, made


def exported(backend, build, *args, **kw):
    return iso.export.to_jax(made(backend, build, *args, **kw))


@pytest.mark.takes("JAX compiles each operation")
@pytest.mark.parametrize("kind", ["sgd", "adam"])
def test_optax_trains_it(backend, kind):
    model = made(backend, Plain)
    net = iso.export.to_jax(model)
    optimizer = (
        optax.sgd(RATE)
        if kind == "sgd"
        else optax.adam(ADAM["rate"], ADAM["beta1"], ADAM["beta2"], ADAM["epsilon"])
    )

    @jax.jit
    def step(params, state, x, t):
        loss, grads = jax.value_and_grad(lambda p: jnp.mean((net(p, x) - t) ** 2))(params)
        updates, state = optimizer.update(grads, state, params)
        return loss, optax.apply_updates(params, updates), state

    params, losses = net.params, []
    state = optimizer.init(params)
    for _ in range(STEPS):
        loss, params, state = step(params, state, X32, T32)
        losses.append(float(loss))
    check(kind, losses)
    back = net.to_isomorph(params)
    np.testing.assert_allclose(back(jnp.asarray(X32)), net(params, jnp.asarray(X32)), rtol=1e-6)
    np.testing.assert_array_equal(iso.to_numpy(model.v)["linear0"]["w"], net.params["linear0"]["w"])


def test_params_are_the_nest_of_the_model(backend):
    net, own = exported(backend, Plain), iso.to_numpy(made(backend, Plain).v)
    assert {k: set(part) for k, part in net.params.items()} == {
        k: set(part) for k, part in own.items()
    }
    leaves = jax.tree.leaves(net.params)
    assert len(leaves) == 6
    assert all(isinstance(x, jax.Array) for x in leaves)
    assert {k: set(part) for k, part in exported(backend, Tied).params.items()} == {
        "first": {"w", "b"}, "tied": {"b"},
    }  # fmt: skip


def test_state_goes_in_and_comes_out(backend):
    net = exported(backend, lambda: iso.Sequential(iso.BatchNorm(3, momentum=0.5), iso.relu))
    run = jax.jit(net.apply)
    _, once = run(net.params, net.state, X32)
    _, twice = run(net.params, once, X32)
    mean = lambda state: state["layers"][0]["mean"]
    np.testing.assert_array_equal(mean(net.state), np.zeros(3))
    np.testing.assert_allclose(mean(once), 0.5 * X32.mean(0), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(mean(twice), 0.75 * X32.mean(0), rtol=1e-5, atol=1e-7)
    with pytest.raises(TypeError, match="without state .* state at layers/0/mean, layers/0/var"):
        net(net.params, X32)
    still = exported(backend, lambda: iso.Sequential(iso.BatchNorm(3), iso.relu).eval())
    y, same = still.apply(still.params, once, jnp.asarray(X32))
    np.testing.assert_array_equal(mean(same), mean(once))
    spread = np.sqrt(np.asarray(once["layers"][0]["variance"]) + 1e-5)
    expected = np.maximum((X32 - np.asarray(mean(once))) / spread, 0)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-6)


def test_state_of_every_kind_is_kept(backend):
    net = exported(backend, Counting)
    state = net.state
    for step in (1.0, 2.0):
        y, state = jax.jit(net.apply)(net.params, state, jnp.full(2, step, jnp.float32))
    assert float(y) == 6.0
    assert int(state["seen"]["calls"]) == 2
    np.testing.assert_array_equal(state["total"], [3.0, 3.0])
    assert int(net.state["seen"]["calls"]) == 0
    assert net.to_isomorph(net.params, state).order.tolist() == [1, 0]


def test_it_is_pure_under_transforms(backend):
    net = exported(backend, iso.Linear, 3, 2, key=0)
    x = jnp.asarray(X32)
    each = jax.vmap(jax.grad(lambda p, x: jnp.sum(net(p, x))), (None, 0))(net.params, x)
    np.testing.assert_allclose(each["w"], np.broadcast_to(X32[:, None], (5, 2, 3)))
    with iso.gradient_tracking(False):  # isomorph's mode does not affect JAX
        grads = jax.grad(lambda p: jnp.sum(net(p, x)))(net.params)
    np.testing.assert_allclose(grads["b"], [5.0, 5.0])
    several = jax.tree.map(lambda p: jnp.stack([p, 2 * p]), net.params)
    both = jax.vmap(net, (0, None))(several, x)
    np.testing.assert_allclose(both[1], 2 * both[0], rtol=1e-6)


def test_other_nests_are_refused(backend):
    net = exported(backend, iso.Linear, 3, 2, key=0)
    with pytest.raises(KeyError, match="to_jax, params: needed the keys b, w; missing keys: b"):
        net({"w": net.params["w"]}, jnp.asarray(X32))
    with pytest.raises(TypeError, match="to_jax: needed an iso.Module, got dict"):
        iso.export.to_jax({})
