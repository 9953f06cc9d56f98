"""Attention of a GPT-2 block and an LSTM of a hundred steps, value and gradients: the layer of each
framework itself against ours on its arrays; NumPy, which has none, against torch's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np
import tensorflow as tf
import torch
import torch.nn.functional as F

import isomorph as iso

from .timing import minima, table

HEADS, TOKENS, FEATURES = 12, 512, 64
TIME, BATCH, WIDTH = 100, 16, 64


def attention_arrays() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal((1, HEADS, TOKENS, FEATURES)).astype(np.float32) for _ in range(3)]


def lstm_arrays() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = [(BATCH, TIME, WIDTH), (BATCH, WIDTH), (BATCH, WIDTH)]
    shapes += [(WIDTH, 4 * WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH,)]
    return [(0.1 * rng.standard_normal(shape)).astype(np.float32) for shape in shapes]


def our_attention(q: Any, k: Any, v: Any) -> Any:
    y = iso.scaled_dot_product_attention(q, k, v, is_causal=True)
    return iso.namespace(y).sum(y * y)


def our_lstm(x: Any, h: Any, c: Any, kernel: Any, recurrent: Any, bias: Any) -> Any:
    hs, _ = iso.lstm_update(x, h, c, kernel, recurrent, bias=bias)
    return iso.namespace(hs).sum(hs * hs)


def torch_native(loss: Callable, arrays: list) -> Callable:
    leaves = [torch.tensor(x, requires_grad=True) for x in arrays]

    def run():
        value = loss(*leaves)
        return value, torch.autograd.grad(value, leaves)

    return run


def torch_attention(q: Any, k: Any, v: Any) -> Any:
    return (F.scaled_dot_product_attention(q, k, v, is_causal=True) ** 2).sum()


def torch_lstm(x: Any, h: Any, c: Any, kernel: Any, recurrent: Any, bias: Any) -> Any:
    weights = [kernel.mT, recurrent.mT, bias, torch.zeros_like(bias)]
    hs = torch._VF.lstm(x, (h[None], c[None]), weights, True, 1, 0.0, True, False, True)[0]
    return (hs * hs).sum()


def jax_attention(q: Any, k: Any, v: Any) -> Any:
    q, k, v = (jnp.swapaxes(x, 1, 2) for x in (q, k, v))
    return jnp.sum(jax.nn.dot_product_attention(q, k, v, is_causal=True) ** 2)


def jax_lstm(x: Any, h: Any, c: Any, kernel: Any, recurrent: Any, bias: Any) -> Any:
    def step(carry, x):
        h, c = carry
        i, f, g, o = jnp.split(x @ kernel + h @ recurrent + bias, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    hs = jax.lax.scan(step, (h, c), jnp.swapaxes(x, 0, 1))[1]
    return jnp.sum(hs * hs)


def tf_attention(q: Any, k: Any, v: Any) -> Any:
    scores = tf.matmul(q, k, transpose_b=True) * FEATURES**-0.5
    keep = tf.linalg.band_part(tf.ones((TOKENS, TOKENS), tf.bool), -1, 0)
    y = tf.matmul(tf.nn.softmax(tf.where(keep, scores, -np.inf)), v)
    return tf.reduce_sum(y * y)


def tf_lstm(layer: Any, x: Any, h: Any, c: Any) -> Any:
    hs = layer(x, initial_state=[h, c])
    return tf.reduce_sum(hs * hs)


def tf_native(loss: Callable, inputs: list, variables: Callable[[], list]) -> Callable:
    @tf.function(autograph=False, jit_compile=True)
    def run(*inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            value = loss(*inputs)
        return value, tape.gradient(value, [*inputs, *variables()])

    return lambda: run(*inputs)


def pairs() -> dict[str, tuple[Callable, Callable]]:
    """Ours and the framework's own, by what they compute."""
    out: dict[str, tuple[Callable, Callable]] = {}
    for name, ours, arrays, native, jax_native in (
        ("attention", our_attention, attention_arrays(), torch_attention, jax_attention),
        ("LSTM", our_lstm, lstm_arrays(), torch_lstm, jax_lstm),
    ):
        places = tuple(range(len(arrays)))
        both = iso.value_and_grad(ours, places)
        compiled = iso.jit(both)

        def bound(func: Callable, there: list) -> Callable:
            return lambda: jax.block_until_ready(func(*there))

        eager = torch_native(native, arrays)
        tensors, rows = iso.convert(arrays, "torch"), iso.convert(arrays, "jax")
        symbols = iso.convert(arrays, "tensorflow")
        whole = jax.jit(jax.value_and_grad(jax_native, places))
        out[f"{name}, NumPy / torch eager"] = bound(both, arrays), eager
        out[f"{name}, torch eager"] = bound(both, tensors), eager
        out[f"{name}, torch iso.jit / eager"] = bound(compiled, tensors), eager
        out[f"{name}, JAX compiled"] = bound(compiled, rows), bound(whole, rows)
        if name == "attention":
            theirs = tf_native(tf_attention, symbols, list)
        else:
            layer: Any = keras.layers.LSTM(WIDTH, return_sequences=True, unit_forget_bias=False)
            layer.build((BATCH, TIME, WIDTH))
            theirs = tf_native(
                lambda *inputs, layer=layer: tf_lstm(layer, *inputs),
                symbols[:3],
                lambda layer=layer: [v.value for v in layer.trainable_variables],
            )
        out[f"{name}, TensorFlow XLA"] = bound(compiled, symbols), theirs
    return out


def run() -> str:
    torch.set_num_threads(1)
    rows = []
    for label, (ours, native) in pairs().items():
        best = minima({"ours": ours, "native": native}, rounds=15, slice_s=1e-2)
        ratio = best["ours"] / best["native"]
        budget = 2.0 if "NumPy" in label else 1.1
        rows.append(
            [
                label,
                f"{best['ours'] * 1e3:.2f}",
                f"{best['native'] * 1e3:.2f}",
                f"{ratio:.2f}x",
                f"{budget}x",
                "yes" if ratio <= budget else "NO",
            ]
        )
    head = ["value and gradients, float32", "isomorph ms", "native ms", "ratio", "budget", "met"]
    return table(head, rows)


if __name__ == "__main__":
    print(run())
