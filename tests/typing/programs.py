"""Programs that a type checker must accept; `assert_type` states the inferred types."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np

import isomorph as iso
from isomorph.typing import Namespace, OtherBackend

Real = np.ndarray[Any, np.dtype[np.float64]]
Array = np.ndarray[Any, Any]


def energy(x, scale=1.0):
    xp = iso.namespace(x)  # for an array of any kind
    assert_type(xp, Namespace)
    y = xp.where(xp.abs(x) > 1.0, xp.tanh(x) ** 2, 0.5)
    y = xp.concat([y, xp.reshape(xp.linalg.svd(x).S, (-1,)), xp.real(xp.fft.fft(y, norm="ortho"))])
    y = xp.pad(y, [(1, 1)]) * xp.erf(xp.asarray(scale, dtype=xp.float32))
    return xp.sum(xp.einsum("i,i->i", y, y), axis=0, keepdims=True).what_arrays_have(1)


def loss(x: Real, scale: float = 1.0, *, power: int = 2) -> Array:
    xp = iso.namespace(x)
    assert_type(xp.tanh(x), Array)
    assert_type(xp.linalg.qr(x).Q, Array)
    return scale * xp.sum(xp.tanh(x) ** power)


x = np.ones((8, 3))
real: Real = x

# Transforms keep the signature of their function.
assert_type(iso.grad(loss)(real, 2.0, power=3), Real)
assert_type(iso.value_and_grad(loss)(real), tuple[Array, Real])
assert_type(iso.jit(loss)(real, power=3), Array)
assert_type(iso.checkpoint(loss)(real), Array)
assert_type(iso.vmap(loss)(real), Array)
assert_type(iso.jit(iso.vmap(iso.grad(loss)))(real), Real)
assert_type(iso.hessian(loss)(real, 2.0), Any)
assert_type(iso.grad(loss, (0, 1))(real, 2.0), tuple[Any, ...])
iso.grad(energy)(x)
iso.jit(iso.vmap(iso.grad(energy)), static="scale", donate=0)(x, scale=2.0)
iso.grad(lambda x: iso.grad(energy)(x)[0])(x)
iso.value_and_grad(lambda v, x: np.sum(v["w"] * x))({"w": x}, x)
value, pullback = iso.vjp(np.sin, real)
assert_type(pullback(value), tuple[Real])
assert_type(iso.hvp(lambda x: np.sum(x**3), (real,), (real,)), tuple[Real])
assert_type(iso.stop_gradient({"a": real}), dict[str, Real])
assert_type(iso.while_loop(lambda y: np.sum(y) < 9, lambda y: y * 2, real), Real)
assert_type(iso.fori_loop(0, 3, lambda i, y: y * i, real), Real)
assert_type(iso.scan(lambda c, y: (c + y, c), real, real), tuple[Real, Real])
square = iso.custom_vjp(lambda x: x**2, lambda x: (x**2, x), lambda x, g: (2 * x * g,))


def with_aux(x: Real) -> tuple[Array, str]:
    return loss(x), "aux"


assert_type(iso.grad(with_aux, has_aux=True)(real), tuple[Real, str])

# An array in, an array of the same type out.
assert_type(iso.gelu(real, approximate=True), Real)
assert_type(iso.softmax(real, axis=0), Real)
assert_type(iso.layer_norm(real, weight=real), Real)
assert_type(iso.conv2d(real, real, 1, "SAME", data_format="NCHW"), Real)
assert_type(iso.max_pool(real, 2, None, [(0, 1)]), Real)
assert_type(iso.dropout(real, 0.5, rng=iso.random.key(0)), Real)
assert_type(iso.at(real)[1:].add(2.0), Real)
assert_type(iso.cross_entropy(real, np.zeros(8, np.int64), reduction="sum"), Real)
assert_type(iso.mse(real, real, reduction="counted"), iso.Mean)
assert_type(iso.to_numpy(real), Array)
assert_type(iso.multi_head_attention(real, num_heads=1), Real)
heads, weights = iso.multi_head_attention(real, num_heads=1, return_attention_weights=True)
assert_type(weights, Real)


class Net(iso.Module):
    def __init__(self, width: int) -> None:
        self.hidden = iso.Linear(3, width, key=0)
        self.head = iso.Linear(width, 1, bias=False, key=iso.random.key(1))
        self.act = iso.Activation("gelu")
        self.seen = iso.State(iso.zeros(width))

    def forward(self, x: Real, scale: float = 1.0) -> Real:
        return self.head(self.act(self.hidden(x))) * scale


net = Net(16)
assert_type(net, Net)
assert_type(net.hidden, iso.Linear)
assert_type(net(real, scale=2.0), Real)
assert_type(net(real, v=net.v), Real)
assert_type(net.hidden(real), Array)
assert_type(net.train().eval().freeze("hidden/*"), Net)
assert_type(iso.jit(net)(real), Real)
assert_type(iso.convert(net, "torch"), Net)
assert_type(net.num_params, int)
net(real, track_submod_rets=True)
net.submod_rets


class Unannotated(iso.Module):
    def __init__(self):
        self.conv = iso.Conv2D(3, 8, 3, padding="VALID", data_format="NCHW")
        self.up = iso.Conv2DTranspose(8, 3, 3, output_shape=[8, 8])
        self.cells = iso.LSTM(3, 4)

    def forward(self, x, *, mask=None):
        return iso.relu(self.up(self.conv(x))) * mask


Unannotated()(x, mask=None).anything
iso.Sequential(iso.Conv1D(1, 2, 3), iso.relu, iso.Flatten(), iso.Linear(4, 1), abs)(x)

optimizer = iso.chain(
    iso.optimizers.clip_by_global_norm(1.0), iso.optimizers.adamw(iso.optimizers.cosine(1e-2, 9))
)
state = optimizer.init(net.v)
updates, state = optimizer.update(net.v, state, net.v)
net.v = iso.apply_updates(net.v, updates)
done = iso.fit(net, (x, x), lambda m, a, b: iso.mse(m(a), b), optimizer, epochs=1, log="a.log")
assert_type(done, iso.Fit)

with iso.use_backend("jax", dtype="float64") as xp, iso.use_key(0):
    assert_type(xp, Namespace)
    iso.ones((2, 3), dtype=np.float32, backend="numpy")
    iso.zeros(3, dtype=xp.float32)
for name in iso.backends():
    with iso.use_backend(name):
        iso.random.normal(iso.random.key(0), (2,), dtype="bfloat16")
iso.convert({"a": x}, OtherBackend("array_api_strict"))["a"]
