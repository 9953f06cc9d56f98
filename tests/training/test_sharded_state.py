"""Parameters that JAX keeps in pieces on several devices stay so through copies, steps, `fit` and
files, and the step is compiled once. In another process, with four CPU devices.
"""

from tempfile import TemporaryDirectory

import numpy as np
import pytest
from devices import run_on_jax_devices
from frameworks import jax

import isomorph as iso
from isomorph.core import tree
from isomorph.training.stepping import copied
from oracles import numpy_of

X = np.cos(np.arange(24.0)).reshape(6, 4).astype(np.float32)
T = np.sin(np.arange(24.0)).reshape(6, 4).astype(np.float32)
W = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)


def loss(v, x, t, count=None):
    if count is not None:
        count.append(1)
    xp = iso.namespace(x)
    return iso.mse(xp.tanh(x @ v["w"] + v["b"]), t)


def placed(kind):
    """Parameters and a batch on a mesh of 2 x 2 devices whose axes are of that kind."""
    sharding, P = jax.sharding, jax.sharding.PartitionSpec
    kinds = (getattr(sharding.AxisType, kind),) * 2
    mesh = jax.make_mesh((2, 2), ("d", "e"), axis_types=kinds)
    put = lambda x, *spec: jax.device_put(x, sharding.NamedSharding(mesh, P(*spec)))
    b = np.zeros(4, np.float32)
    return {"w": put(W, None, "d"), "b": put(b, "d")}, (put(X, "e", None), put(T, "e", "d"))


def alike(a, b):
    for x, y in zip(tree.flatten(a)[0], tree.flatten(b)[0], strict=True):
        assert x.sharding.is_equivalent_to(y.sharding, x.ndim), (x.sharding, y.sharding)


def plain():
    v = {"w": jax.numpy.asarray(W), "b": jax.numpy.zeros(4)}
    return v, (jax.numpy.asarray(X), jax.numpy.asarray(T))


def trained(v, batch):
    """Parameters after three steps, and how often the loss was traced."""
    count = []
    step = iso.train_step(lambda v, x, t: loss(v, x, t, count), iso.optimizers.adamw(0.1))
    state = step.init(v)
    for _ in range(3):
        state, _ = step(state, *batch)
    return state.model, len(count)


def check_sharded(kind):
    v, batch = placed(kind)
    new = copied(v)
    alike(new, v)
    for x, y in zip(tree.flatten(new)[0], tree.flatten(v)[0], strict=True):
        np.testing.assert_array_equal(numpy_of(x), numpy_of(y))
        pointers = [
            {s.data.unsafe_buffer_pointer() for s in each.addressable_shards} for each in (x, y)
        ]
        assert not pointers[0] & pointers[1]
    found, traces = trained(v, batch)
    wanted, usual = trained(*plain())
    assert traces == usual
    alike(found, v)
    for x, y in zip(tree.flatten(found)[0], tree.flatten(wanted)[0], strict=True):
        np.testing.assert_allclose(numpy_of(x), numpy_of(y), rtol=1e-5, atol=1e-6)
    with TemporaryDirectory() as folder:
        iso.save(f"{folder}/v", found)
        loaded = iso.load(f"{folder}/v", v)
        alike(loaded, v)
        for x, y in zip(tree.flatten(loaded)[0], tree.flatten(found)[0], strict=True):
            np.testing.assert_array_equal(numpy_of(x), numpy_of(y))
    adamw = iso.optimizers.adamw(0.1)
    done = iso.fit(v, [batch] * 3, loss, adamw, progress=False).model
    alike(done, v)
    for x, y in zip(tree.flatten(done)[0], tree.flatten(wanted)[0], strict=True):
        np.testing.assert_allclose(numpy_of(x), numpy_of(y), rtol=1e-5, atol=1e-6)


# Calls that make arrays of their own beside those they are given.
EAGER = {
    "causal attention": lambda x: iso.scaled_dot_product_attention(x, x, x, is_causal=True),
    "at": lambda x: iso.at(x)[1:3].set(2.0),
    "at an index": lambda x: iso.at(x)[np.array([0, 2])].add(1),
    "avg_pool": lambda x: iso.avg_pool(x[None, :, :], 2, 1, 1),
    "jac": lambda x: iso.jac(lambda y: iso.namespace(y).sin(y))(x),
    "rotary_embedding": iso.rotary_embedding,
    "scan": lambda x: iso.scan(lambda c, row: (c + row, c * row), x[0], x)[1],
    "vjp": lambda x: iso.vjp(lambda y: iso.namespace(y).sum(y * y), x)[1](3.0),
    "layer_norm": iso.layer_norm,
    "cross_entropy": lambda x: iso.cross_entropy(x, jax.numpy.asarray([0, 1, 2, 3])),
}


def check_eager():
    """Divided along an axis, an array gives the results of a whole one."""
    sharding, P = jax.sharding, jax.sharding.PartitionSpec
    mesh = jax.make_mesh((2,), ("d",), axis_types=(sharding.AxisType.Auto,))
    for name, call in EAGER.items():
        for spec in (P(None, "d"), P("d"), P()):
            x = jax.device_put(W, sharding.NamedSharding(mesh, spec))
            for a, b in zip(*(tree.flatten(call(y))[0] for y in (x, jax.numpy.asarray(W)))):
                np.testing.assert_allclose(numpy_of(a), numpy_of(b), atol=1e-6, err_msg=name)


@pytest.mark.host_only("another process, on the host")
@pytest.mark.takes("another process, which imports JAX")
@pytest.mark.parametrize("check", ["sharded('Auto')", "sharded('Explicit')", "eager()"])
@pytest.mark.parametrize("backend", ["jax"], indirect=True)
def test_shardings_are_kept(backend, check):
    run_on_jax_devices(4, __file__, f"import test_sharded_state as t; t.check_{check}")
