"""The layers that are measured: ours, the framework's own, Keras 3's, and their arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import isomorph as iso

# name, x [batch, height, width, in], filters [k, k, in, out], stride, padding
CONVOLUTIONS = [
    ("7 x 7 / 2, 3 to 64, 112²", (2, 112, 112, 3), (7, 7, 3, 64), 2, 3),
    ("3 x 3, 64 to 64, 56²", (2, 56, 56, 64), (3, 3, 64, 64), 1, 1),
    ("1 x 1, 256 to 64, 56²", (2, 56, 56, 256), (1, 1, 256, 64), 1, 0),
    ("3 x 3 / 2, 128 to 128, 56²", (2, 56, 56, 128), (3, 3, 128, 128), 2, 1),
    ("3 x 3, 256 to 256, 14²", (2, 14, 14, 256), (3, 3, 256, 256), 1, 1),
]
TIME, BATCH, WIDTH = 100, 16, 64


class Case(NamedTuple):
    """A layer as three functions: ours, native, Keras. The last two may have their own arrays."""

    name: str
    arrays: list
    ours: Callable
    native: Callable
    keras: Callable | None = None
    native_arrays: list | None = None
    keras_arrays: list | None = None


def drawn(*shapes: tuple, scale: float = 1.0) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [np.float32(scale) * rng.standard_normal(s, np.float32) for s in shapes]


def cases(name: str) -> Iterator[Case]:
    """The layers of a backend. NumPy has none of its own, so it is compared with torch's."""
    import keras

    ops: Any = keras.ops
    own = NATIVES["torch" if name == "numpy" else name]()
    for label, x_shape, w_shape, stride, pad in CONVOLUTIONS:
        x, w = drawn(x_shape, w_shape, scale=float(np.prod(w_shape[:-1])) ** -0.25)
        native, other = own.conv(stride, pad), None
        if name == "numpy":  # torch in its own layout
            native = own.conv_first(stride, pad)
            other = [np.ascontiguousarray(np.moveaxis(x, -1, 1)), w.transpose(3, 2, 0, 1).copy()]
        yield Case(
            f"conv2d {label}",
            [x, w],
            lambda x, w, s=stride, p=pad: iso.conv2d(x, w, s, p),
            native,
            lambda x, w, s=stride, p=pad: ops.conv(
                x, w, s, "same" if p else "valid", data_format="channels_last"
            ),
            other,
        )
    heads = drawn(*[(1, 12, 512, 64)] * 3)
    yield Case(
        "attention, causal, 12 x 512 x 64",
        heads,
        lambda q, k, v: iso.scaled_dot_product_attention(q, k, v, is_causal=True),
        own.attention,
        partial(ops.dot_product_attention, is_causal=True),
        None,
        [np.ascontiguousarray(x.swapaxes(1, 2)) for x in heads],
    )
    steps = drawn(
        (BATCH, TIME, WIDTH), (BATCH, WIDTH), (BATCH, WIDTH), (WIDTH, 4 * WIDTH),
        (WIDTH, 4 * WIDTH), (4 * WIDTH,), scale=0.1,
    )  # fmt: skip
    yield Case(
        f"LSTM, {TIME} steps, {BATCH} x {WIDTH}",
        steps,
        lambda x, h, c, kernel, recurrent, bias: iso.lstm_update(
            x, h, c, kernel, recurrent, bias=bias
        )[0],
        own.lstm(),
    )
    x, w, b = drawn((512, 768), (3072, 768), (3072,))
    yield Case(
        "linear, 512 x 768 to 3072",
        [x, w, b],
        lambda x, w, b: iso.linear(x, w, bias=b),
        own.linear,
        lambda x, w, b: ops.add(ops.matmul(x, w), b),
        None,
        [x, np.ascontiguousarray(w.T), b],
    )
    yield Case(
        "layer_norm, 512 x 768",
        drawn((512, 768), (768,), (768,)),
        lambda x, w, b: iso.layer_norm(x, weight=w, bias=b),
        own.layer_norm,
        lambda x, w, b: ops.layer_normalization(x, w, b, axis=-1, epsilon=1e-5),
    )
    yield Case(
        "gelu by tanh, 512 x 3072",
        drawn((512, 3072)),
        partial(iso.gelu, approximate=True),
        own.gelu,
        partial(ops.gelu, approximate=True),
    )
    yield Case(
        "softmax, 12 x 512 x 512", drawn((12, 512, 512)), iso.softmax, own.softmax, ops.softmax
    )
    labels = np.random.default_rng(0).integers(0, 50257, 128)
    yield Case(
        "cross_entropy, 128 x 50257",
        [*drawn((128, 50257)), labels],
        iso.cross_entropy,
        own.cross_entropy,
        lambda x, labels: ops.mean(
            ops.sparse_categorical_crossentropy(labels, x, from_logits=True)
        ),
    )
    ids = np.random.default_rng(0).integers(0, 8192, 512)
    yield Case(
        "embedding, 512 of 8192 x 768",
        [ids, *drawn((8192, 768))],
        iso.embedding,
        own.embedding,
        lambda ids, w: ops.take(w, ids, axis=0),
    )
    yield Case(
        "max_pool 3 / 2, 112² x 64",
        drawn((2, 112, 112, 64)),
        lambda x: iso.max_pool(x, 3, 2, 1),
        own.max_pool,
        lambda x: ops.max_pool(x, 3, 2, "same", data_format="channels_last"),
    )
    yield Case(
        "avg_pool 2, 56² x 256",
        drawn((2, 56, 56, 256)),
        lambda x: iso.avg_pool(x, 2),
        own.avg_pool,
        lambda x: ops.average_pool(x, 2, 2, "valid", data_format="channels_last"),
    )


class Torch:
    """torch's own call for each layer, on `[batch, *sizes, channels]`."""

    def __init__(self):
        import torch
        import torch.nn.functional as F

        self.F, self.torch = F, torch
        self.linear, self.embedding = F.linear, F.embedding
        self.gelu = partial(F.gelu, approximate="tanh")
        self.softmax, self.cross_entropy = partial(torch.softmax, dim=-1), F.cross_entropy
        self.attention = partial(F.scaled_dot_product_attention, is_causal=True)

    def conv(self, stride: int, pad: int) -> Callable:
        return lambda x, w: self.F.conv2d(
            x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), None, stride, pad
        ).permute(0, 2, 3, 1)

    def conv_first(self, stride: int, pad: int) -> Callable:
        return lambda x, w: self.F.conv2d(x, w, None, stride, pad)

    def lstm(self) -> Callable:
        def run(x, h, c, kernel, recurrent, bias):
            weights = [kernel.mT, recurrent.mT, bias, self.torch.zeros_like(bias)]
            state = h[None], c[None]
            return self.torch._VF.lstm(x, state, weights, True, 1, 0.0, True, False, True)[0]

        return run

    def layer_norm(self, x: Any, w: Any, b: Any) -> Any:
        return self.F.layer_norm(x, (x.shape[-1],), w, b)

    def max_pool(self, x: Any) -> Any:
        return self.F.max_pool2d(x.permute(0, 3, 1, 2), 3, 2, 1).permute(0, 2, 3, 1)

    def avg_pool(self, x: Any) -> Any:
        return self.F.avg_pool2d(x.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1)


class JAX:
    def __init__(self):
        import jax
        import jax.numpy as jnp

        self.jax, self.jnp = jax, jnp
        self.gelu, self.softmax = jax.nn.gelu, jax.nn.softmax

    def conv(self, stride: int, pad: int) -> Callable:
        form = ("NHWC", "HWIO", "NHWC")
        return lambda x, w: self.jax.lax.conv_general_dilated(
            x, w, (stride,) * 2, ((pad, pad),) * 2, dimension_numbers=form
        )

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        q, k, v = (self.jnp.swapaxes(x, 1, 2) for x in (q, k, v))
        y = self.jax.nn.dot_product_attention(q, k, v, is_causal=True)
        return self.jnp.swapaxes(y, 1, 2)

    def lstm(self) -> Callable:
        jax, jnp = self.jax, self.jnp

        def run(x, h, c, kernel, recurrent, bias):
            def step(carry, x):
                h, c = carry
                i, f, g, o = jnp.split(x @ kernel + h @ recurrent + bias, 4, -1)
                c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
                h = jax.nn.sigmoid(o) * jnp.tanh(c)
                return (h, c), h

            return jax.lax.scan(step, (h, c), jnp.swapaxes(x, 0, 1))[1]

        return run

    def linear(self, x: Any, w: Any, b: Any) -> Any:
        return x @ w.T + b

    def layer_norm(self, x: Any, w: Any, b: Any) -> Any:
        return self.jax.nn.standardize(x, epsilon=1e-5) * w + b

    def cross_entropy(self, x: Any, labels: Any) -> Any:
        scores = self.jax.nn.log_softmax(x)
        return -self.jnp.mean(self.jnp.take_along_axis(scores, labels[:, None], 1))

    def embedding(self, ids: Any, w: Any) -> Any:
        return w[ids]

    def max_pool(self, x: Any) -> Any:
        lax, pads = self.jax.lax, ((0, 0), (1, 1), (1, 1), (0, 0))
        return lax.reduce_window(x, -self.jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), pads)

    def avg_pool(self, x: Any) -> Any:
        lax = self.jax.lax
        return lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4


class TensorFlow:
    def __init__(self):
        import tensorflow as tf

        self.tf = tf
        self.gelu = partial(tf.nn.gelu, approximate=True)
        self.softmax = tf.nn.softmax

    def conv(self, stride: int, pad: int) -> Callable:
        tf, pads = self.tf, [[0, 0], [pad, pad], [pad, pad], [0, 0]]
        if stride == 1:
            return lambda x, w: tf.nn.conv2d(x, w, 1, "SAME")
        # with explicit padding in the call itself, the gradients take twice as long
        return lambda x, w: tf.nn.conv2d(tf.pad(x, pads), w, stride, "VALID")

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        tf = self.tf
        scores = tf.matmul(q, k, transpose_b=True) * 64**-0.5
        keep = tf.linalg.band_part(tf.ones((512, 512), tf.bool), -1, 0)
        return tf.matmul(tf.nn.softmax(tf.where(keep, scores, -np.inf)), v)

    def lstm(self) -> Callable:
        import keras

        layer: Any = keras.layers.LSTM(WIDTH, return_sequences=True, unit_forget_bias=False)
        layer.build((BATCH, TIME, WIDTH))

        def run(x, h, c, *weights):
            return layer(x, initial_state=[h, c])

        run.variables = [v.value for v in layer.trainable_variables]  # pyright: ignore
        return run

    def linear(self, x: Any, w: Any, b: Any) -> Any:
        return self.tf.matmul(x, w, transpose_b=True) + b

    def layer_norm(self, x: Any, w: Any, b: Any) -> Any:
        mean, variance = self.tf.nn.moments(x, -1, keepdims=True)
        return self.tf.nn.batch_normalization(x, mean, variance, b, w, 1e-5)

    def cross_entropy(self, x: Any, labels: Any) -> Any:
        each = self.tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x)
        return self.tf.reduce_mean(each)

    def embedding(self, ids: Any, w: Any) -> Any:
        return self.tf.gather(w, ids)

    def max_pool(self, x: Any) -> Any:
        pads = [[0, 0], [1, 1], [1, 1], [0, 0]]
        x = self.tf.pad(x, pads, constant_values=-np.inf)
        return self.tf.nn.max_pool2d(x, 3, 2, "VALID")

    def avg_pool(self, x: Any) -> Any:
        return self.tf.nn.avg_pool2d(x, 2, 2, "VALID")


NATIVES = {"torch": Torch, "jax": JAX, "tensorflow": TensorFlow}
