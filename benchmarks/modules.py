"""Modules: the cost of a call compared with its `forward`, the cost of a call with other variables,
and a transformer of twelve blocks compared with the same network in `torch.nn`, Equinox and Keras.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import keras
import numpy as np
import tensorflow as tf
import torch
import torch.nn.functional as F

import isomorph as iso

from .tables import Part, Table, markdown
from .timing import minima

BLOCKS, WIDTH, HEADS, BATCH, TOKENS = 12, 256, 8, 4, 64


class Block(iso.Module):
    def __init__(self):
        self.before, self.after = iso.LayerNorm(WIDTH), iso.LayerNorm(WIDTH)
        self.attention = iso.MultiHeadAttention(WIDTH, HEADS)
        self.up, self.down = iso.Linear(WIDTH, 4 * WIDTH), iso.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        x = x + self.attention(self.before(x), is_causal=True)
        return x + self.down(iso.gelu(self.up(self.after(x)), approximate=True))


class Transformer(iso.Module):
    def __init__(self):
        self.blocks = [Block() for _ in range(BLOCKS)]

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


class TorchBlock(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.qkv, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        n, length, _ = x.shape
        parts = self.qkv(self.before(x)).view(n, length, 3, HEADS, WIDTH // HEADS)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(n, length, WIDTH))
        return x + self.down(F.gelu(self.up(self.after(x)), approximate="tanh"))


class EquinoxBlock(eqx.Module):
    before: eqx.nn.LayerNorm
    after: eqx.nn.LayerNorm
    attention: eqx.nn.MultiheadAttention
    up: eqx.nn.Linear
    down: eqx.nn.Linear

    def __init__(self, key):
        keys = jax.random.split(key, 3)
        self.before, self.after = eqx.nn.LayerNorm(WIDTH), eqx.nn.LayerNorm(WIDTH)
        self.attention = eqx.nn.MultiheadAttention(HEADS, WIDTH, key=keys[0])
        self.up = eqx.nn.Linear(WIDTH, 4 * WIDTH, key=keys[1])
        self.down = eqx.nn.Linear(4 * WIDTH, WIDTH, key=keys[2])

    def __call__(self, x):  # x is one example
        keep = jnp.tril(jnp.ones((TOKENS, TOKENS), bool))
        y = jax.vmap(self.before)(x)
        x = x + self.attention(y, y, y, keep)
        return x + jax.vmap(self.down)(jax.nn.gelu(jax.vmap(self.up)(jax.vmap(self.after)(x))))


def keras_blocks() -> Callable[[Any], Any]:
    blocks = []
    for _ in range(BLOCKS):
        layers = [
            keras.layers.LayerNormalization(),
            keras.layers.MultiHeadAttention(HEADS, WIDTH // HEADS),
            keras.layers.LayerNormalization(),
            keras.layers.Dense(4 * WIDTH, activation=lambda x: keras.ops.gelu(x, approximate=True)),
            keras.layers.Dense(WIDTH),
        ]
        blocks.append(layers)

    def run(x):
        for before, attention, after, up, down in blocks:
            y = before(x)
            x = x + attention(y, y, use_causal_mask=True)
            x = x + down(up(after(x)))
        return x

    return run


def made(backend: str, build: Callable[[], Any]) -> Any:
    with iso.use_backend(backend), iso.use_key(0):
        return build()


def call_rows() -> list[list[str]]:
    class Empty(iso.Module):
        def forward(self, x):
            return x

    class Group(iso.Module):
        def __init__(self):
            self.a, self.b, self.c = iso.Linear(2, 2), iso.Linear(2, 2), iso.LayerNorm(2)

        def forward(self, x):
            return x

    class Many(iso.Module):  # 200 modules below it
        def __init__(self):
            self.groups = [Group() for _ in range(50)]

        def forward(self, x):
            return x

    empty = Empty()
    forward = empty.forward
    best = minima({"module(x)": lambda: empty(1), "forward(x)": lambda: forward(1)})
    rows = [line("module(x) over forward(x)", best["module(x)"] - best["forward(x)"], 0.5)]
    for backend in ("numpy", "jax", "tensorflow", "torch"):
        many = made(backend, Many)
        v = many.v
        best = minima({"v": lambda m=many, v=v: m(1, v=v), "plain": lambda m=many: m(1)})
        label = f"{backend}: module(x, v=v) over module(x), 200 submodules"
        rows.append(line(label, best["v"] - best["plain"], 300))
    return rows


def line(label: str, seconds: float, budget: float) -> list[str]:
    over = seconds * 1e6
    return [label, f"{over:.2f}", f"{budget}", "yes" if over <= budget else "NO"]


def transformer_rows() -> list[list[str]]:
    x = np.random.default_rng(0).standard_normal((BATCH, TOKENS, WIDTH)).astype(np.float32)
    rows = []
    ours = made("torch", Transformer)
    native = torch.nn.Sequential(*[TorchBlock() for _ in range(BLOCKS)])
    same(ours, native, x)
    t = torch.from_numpy(x)

    def unwatched(call: Callable) -> Callable:
        def run():
            with torch.no_grad():
                return call(t)

        return run

    calls = {"isomorph": unwatched(ours), "torch.nn": unwatched(native)}
    rows += ratios("torch eager", calls, 1.05)
    calls = {name: unwatched(call) for name, call in compiled(ours).items()} | {
        "torch.nn": unwatched(torch.compile(native, fullgraph=True))
    }
    rows += ratios("torch compiled", calls, 1.0)
    net, jx = made("jax", Transformer), jnp.asarray(x)
    blocks = [EquinoxBlock(k) for k in jax.random.split(jax.random.key(0), BLOCKS)]

    @eqx.filter_jit
    def equinox(blocks, x):
        for block in blocks:
            x = jax.vmap(block)(x)
        return x

    done = jax.block_until_ready
    calls = {name: lambda c=call: done(c(jx)) for name, call in compiled(net).items()}
    calls["Equinox"] = lambda: done(equinox(blocks, jx))
    rows += ratios("JAX compiled", calls, 1.0)
    flow, tx, peer = made("tensorflow", Transformer), tf.constant(x), keras_blocks()
    peer(tx)
    calls = {"isomorph": lambda: flow(tx), "Keras": lambda: peer(tx)}
    rows += ratios("TensorFlow eager", calls, 1.0)
    function = tf.function(peer, autograph=False, jit_compile=True)
    calls = {name: lambda c=call: c(tx) for name, call in compiled(flow).items()}
    calls["Keras"] = lambda: function(tx)
    rows += ratios("TensorFlow compiled", calls, 1.0)
    plain = made("numpy", Transformer)
    rows += ratios(
        "NumPy / torch eager", {"isomorph": lambda: plain(x), "torch.nn": unwatched(native)}, None
    )
    return rows


def compiled(net: Any) -> dict[str, Callable[[Any], Any]]:
    """The ways to compile a model: captured, or with its variables or itself as an argument."""
    of_v, of_net = iso.jit(lambda v, x: net(x, v=v)), iso.jit(lambda net, x: net(x))
    v = net.v
    return {
        "captured": iso.jit(lambda x: net(x)),
        "v passed": lambda x: of_v(v, x),
        "module passed": lambda x: of_net(net, x),
    }


def same(ours: Transformer, native: torch.nn.Module, x: np.ndarray) -> None:
    """Give torch's network our weights, and check that both compute the same."""
    with torch.no_grad():
        for mine, theirs in zip(ours.blocks, native):
            attention, parts = mine.attention, dict(theirs.named_parameters())
            for name, value in {
                "qkv.weight": attention.in_w, "qkv.bias": attention.in_b,
                "out.weight": attention.out_w, "out.bias": attention.out_b,
                "up.weight": mine.up.w, "up.bias": mine.up.b,
                "down.weight": mine.down.w, "down.bias": mine.down.b,
            }.items():  # fmt: skip
                parts[name].copy_(value)
        t = torch.from_numpy(x)
        np.testing.assert_allclose(ours(t).numpy(), native(t).numpy(), rtol=1e-3, atol=1e-4)


def ratios(label: str, calls: dict[str, Callable], budget: float | None) -> list[list[str]]:
    """The ratios of each of our calls to the last call, the peer's."""
    best = minima(calls, rounds=40, slice_s=1e-2)
    *mine, peer = best
    rows = []
    for name in mine:
        ratio = best[name] / best[peer]
        met = "-" if budget is None else "yes" if ratio <= budget else "NO"
        rows.append([
            f"{label}: {name} / {peer}", f"{best[name] * 1e3:.2f}", f"{best[peer] * 1e3:.2f}",
            f"{ratio:.2f}x", "-" if budget is None else f"{budget}x", met,
        ])  # fmt: skip
    return rows


def run() -> list[Part]:
    torch.set_num_threads(1)
    calls = Table(["call", "µs over", "budget µs", "met"], call_rows())
    head = ["transformer, 12 blocks of 256, 4 x 64 tokens", "isomorph ms", "peer ms", "ratio"]
    return [calls, Table([*head, "budget", "met"], transformer_rows())]


if __name__ == "__main__":
    print(markdown(run()))
