"""The training step of Keras 3's `fit` on the backend in KERAS_BACKEND: the function that `fit`
calls for every batch, without callbacks.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Any

import keras
from keras import layers

from .cases import DECAY, RATE, Case, strides


def mlp(x: Any, weights: Any) -> Any:
    for w, _ in weights[:-1]:
        x = layers.Dense(w.shape[1], activation="relu")(x)
    return layers.Dense(weights[-1][0].shape[1])(x)


def resnet(x: Any, weights: Any) -> Any:
    def conv(x: Any, w: Any, stride: int = 1) -> Any:
        if stride > 1 and w.shape[0] > 1:
            x = layers.ZeroPadding2D(w.shape[0] // 2)(x)
        padding = "same" if stride == 1 else "valid"
        return layers.Conv2D(w.shape[3], w.shape[0], stride, padding, use_bias=False)(x)

    norm = lambda x: layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)
    x = layers.ReLU()(norm(conv(x, weights["stem"])))
    for p, stride in zip(weights["blocks"], strides(weights)):
        y = layers.ReLU()(norm(conv(x, p["conv1"], stride)))
        y = norm(conv(y, p["conv2"]))
        x = norm(conv(x, p["short"], stride)) if "short" in p else x
        x = layers.ReLU()(layers.Add()([x, y]))
    return layers.Dense(weights["head"][0].shape[1])(layers.GlobalAveragePooling2D()(x))


class Places(layers.Layer):
    def build(self, shape):
        self.table = self.add_weight(shape=shape[1:], name="table")

    def call(self, x):
        return x + self.table


def gpt(ids: Any, weights: Any, heads: int) -> Any:
    words = weights["words"]
    x = Places()(layers.Embedding(*words.shape)(ids))
    width = words.shape[1]
    gelu = lambda x: keras.ops.gelu(x, approximate=True)
    for _ in weights["blocks"]:
        y = layers.LayerNormalization(epsilon=1e-5)(x)
        y = layers.MultiHeadAttention(heads, width // heads)(y, y, use_causal_mask=True)
        x = layers.Add()([x, y])
        y = layers.LayerNormalization(epsilon=1e-5)(x)
        y = layers.Dense(width)(layers.Dense(4 * width, activation=gelu)(y))
        x = layers.Add()([x, y])
    x = layers.LayerNormalization(epsilon=1e-5)(x)
    return layers.Dense(words.shape[0], use_bias=False)(x)


def values(case: Case, weights: Any) -> list:
    """The weights in the order in which the layers above are made."""
    if case.kind == "mlp":
        return [a for p in weights for a in p]
    if case.kind == "resnet":
        found = [weights["stem"], *weights["norm"]]
        for p in weights["blocks"]:
            names = ("conv1", "norm1", "conv2", "norm2", "short", "short_norm")
            for name in names:
                if name in p:
                    found += p[name] if isinstance(p[name], list) else [p[name]]
        return [*found, *weights["head"]]
    found, width = [weights["words"], weights["places"]], weights["words"].shape[1]
    heads = (case.heads, width // case.heads)
    for p in weights["blocks"]:
        found += p["before"]
        for i in range(3):
            part = slice(i * width, (i + 1) * width)
            found += [p["qkv"][0][:, part].reshape(width, *heads), p["qkv"][1][part].reshape(heads)]
        found += [p["out"][0].reshape(*heads, width), p["out"][1]]
        found += [*p["after"], *p["up"], *p["down"]]
    return [*found, *weights["norm"], weights["head"]]


def filled(model: Any, found: list) -> None:
    """Assign the values to the variables: each to the first unused variable of its shape."""
    variables = [v for layer in model.layers for v in layer.trainable_variables]
    taken = set()
    for value in found:
        for i, v in enumerate(variables):
            if i not in taken and tuple(v.shape) == value.shape:
                taken.add(i)
                v.assign(value)
                break
        else:
            raise ValueError(f"no variable of Keras is left for the shape {value.shape}")
    if len(taken) != len(variables):
        raise ValueError("some variables of Keras were not filled")


def step(case: Case) -> Callable[[], Any]:
    """A step that returns the mean of the losses so far, as Keras computes it."""
    weights = case.weights()
    ids = case.kind == "gpt"
    x = keras.Input(case.x.shape[1:], batch_size=len(case.x), dtype="int32" if ids else "float32")
    make = {"mlp": mlp, "resnet": resnet}.get(case.kind)
    model = keras.Model(x, make(x, weights) if make else gpt(x, weights, case.heads))
    filled(model, values(case, weights))
    if case.rule == "adam":
        optimizer: Any = keras.optimizers.Adam(RATE, epsilon=1e-8)
    else:
        optimizer = keras.optimizers.AdamW(RATE, weight_decay=DECAY, epsilon=1e-8)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss)  # Keras chooses jit_compile itself
    optimizer.build(model.trainable_variables)
    return RUNS[keras.backend.backend()](model, case)


def on_jax(model: Any, case: Case) -> Callable[[], Any]:
    import jax

    batch = tuple(map(jax.numpy.asarray, (case.x, case.y)))
    model._symbolic_build(data_batch=batch)
    model.make_train_function()
    state = model._get_jax_state(
        trainable_variables=True, non_trainable_variables=True, optimizer_variables=True,
        metrics_variables=True, purge_model_variables=True,
    )  # fmt: skip
    batches = repeat(batch)

    def run() -> Any:
        nonlocal state
        logs, state = model.train_function(state, batches)
        jax.block_until_ready(state)
        return logs["loss"]

    return run


def on_tensorflow(model: Any, case: Case) -> Callable[[], Any]:
    import tensorflow as tf

    model.make_train_function()
    batches = iter(tf.data.Dataset.from_tensors((case.x, case.y)).repeat())
    return lambda: model.train_function(batches)["loss"].numpy()


def on_torch(model: Any, case: Case) -> Callable[[], Any]:
    import torch

    batch = (torch.from_numpy(case.x), torch.from_numpy(case.y))
    model._symbolic_build(data_batch=batch)
    model.make_train_function()
    return lambda: model.train_function([batch])["loss"]


RUNS = {"jax": on_jax, "tensorflow": on_tensorflow, "torch": on_torch}
