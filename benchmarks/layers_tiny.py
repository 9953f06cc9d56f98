"""What the public function of a layer costs, and its module: one eager call on tiny arrays,
compared with the framework's own call on the same arrays, and with Keras 3's. On NumPy, which has
no layers, the formula is the native call.

JAX is not here: its own eager calls take tens of microseconds, and compiled programs, where our
public functions cost nothing, are measured in `layers`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import isomorph as iso

from .layer_cases import NATIVES, drawn
from .tables import Table
from .timing import each_backend, minima

BACKENDS = ("numpy", "tensorflow", "torch")
HEAD = [
    "backend",
    "layer",
    "native µs",
    "isomorph over native",
    "budget",
    "met",
    "Keras over native",
]


def run() -> Table:
    """The table."""
    return Table(HEAD, each_backend(__name__, BACKENDS))


# Microseconds over the native call. Layers check shapes, so they cost more than other functions.
LINEAR, CONV, ATTENTION, LSTM, OTHER, SMALL = 2.5, 4.0, 4.0, 10.0, 1.0, 0.5


class Row(NamedTuple):
    """A layer: its arrays, its budget, and the native call, ours and Keras's."""

    arrays: list
    budget: float
    native: Callable
    ours: Callable
    keras: Callable | None = None


def calls(name: str) -> dict[str, Row]:
    import keras

    ops: Any = keras.ops
    return on_numpy(ops) if name == "numpy" else functions(name, ops) | modules(name)


def on_numpy(ops: Any) -> dict[str, Row]:
    x, w, b = drawn((8, 8), (8, 8), (8,))
    with iso.use_backend("numpy"), iso.use_key(0):
        layer = iso.Linear(8, 8)
    formula = lambda x, w, b: x @ w.T + b
    return {
        "linear 8 x 8 to 8": Row(
            [x, w, b], LINEAR, formula, lambda x, w, b: iso.linear(x, w, bias=b),
            lambda x, w, b: ops.add(ops.matmul(x, w), b),
        ),
        "Linear 8 x 8 to 8": Row([x], LINEAR, lambda x: formula(x, layer.w, layer.b), layer),
    }  # fmt: skip


def functions(name: str, ops: Any) -> dict[str, Row]:
    own: Any = NATIVES[name]()
    there = lambda *shapes: iso.convert(drawn(*shapes), name)
    tall = there((8, 8), (8,), (8,))
    ids = iso.convert(np.arange(8), name)
    found = {
        "conv2d 3 x 3, 4 to 4, 4²": Row(
            there((1, 4, 4, 4), (3, 3, 4, 4)), CONV, own.conv(1, 1),
            lambda x, w: iso.conv2d(x, w, 1, 1), lambda x, w: ops.conv(x, w, 1, "same"),
        ),
        "linear 8 x 8 to 8": Row(
            [tall[0], *there((8, 8), (8,))], LINEAR, own.linear,
            lambda x, w, b: iso.linear(x, w, bias=b), lambda x, w, b: ops.add(ops.matmul(x, w), b),
        ),
        "layer_norm 8 x 8": Row(
            tall, OTHER, own.layer_norm, lambda x, w, b: iso.layer_norm(x, weight=w, bias=b),
            lambda x, w, b: ops.layer_normalization(x, w, b, axis=-1, epsilon=1e-5),
        ),
        "gelu 8 x 8": Row(
            tall[:1], SMALL, own.gelu, partial(iso.gelu, approximate=True),
            partial(ops.gelu, approximate=True),
        ),
        "softmax 8 x 8": Row(tall[:1], SMALL, own.softmax, iso.softmax, ops.softmax),
        "cross_entropy 8 x 8": Row(
            [tall[0], ids], OTHER, own.cross_entropy, iso.cross_entropy,
            lambda x, y: ops.mean(ops.sparse_categorical_crossentropy(y, x, from_logits=True)),
        ),
        "embedding 8 of 8 x 8": Row(
            [ids, tall[0]], OTHER, own.embedding, iso.embedding, lambda i, w: ops.take(w, i, axis=0)
        ),
        "avg_pool 2, 4² x 4": Row(
            there((1, 4, 4, 4)), SMALL, own.avg_pool, lambda x: iso.avg_pool(x, 2),
            lambda x: ops.average_pool(x, 2, 2, "valid"),
        ),
    }  # fmt: skip
    if name != "torch":  # the rest is one call on torch only
        return found
    causal = lambda q, k, v: iso.scaled_dot_product_attention(q, k, v, is_causal=True)
    for length in (4, 16):  # ours reads the result for few keys: torch turns some NaN into zeros
        heads = there(*[(1, 2, length, 8)] * 3)
        found[f"attention 2 x {length} x 8"] = Row(heads, ATTENTION, own.attention, causal)
    found["LSTM, 4 steps, 2 x 8"] = Row(
        there((2, 4, 8), (2, 8), (2, 8), (8, 32), (8, 32), (32,)), LSTM, own.lstm(),
        lambda x, h, c, k, r, b: iso.lstm_update(x, h, c, k, r, bias=b),
    )  # fmt: skip
    return found


def modules(name: str) -> dict[str, Row]:
    """Module classes over those of torch.nn, without gradients."""
    if name != "torch":
        return {}
    from torch import nn

    with iso.use_backend(name), iso.use_key(0):
        linear, conv = iso.Linear(8, 8), iso.Conv2D(4, 4, 3, 1, "SAME")
        attention, lstm = iso.MultiHeadAttention(8, 2), iso.LSTM(8, 8)
    frozen = lambda module: module.requires_grad_(False)
    theirs = frozen(nn.Conv2d(4, 4, 3, 1, 1))
    last = lambda x: theirs(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
    many = frozen(nn.MultiheadAttention(8, 2, batch_first=True))
    itself = lambda x: many(x, x, x, need_weights=False)[0]
    there = lambda *shape: iso.convert(drawn(shape), name)
    return {
        "Linear 8 x 8 to 8": Row(there(8, 8), LINEAR, frozen(nn.Linear(8, 8)), linear),
        "Conv2D 3 x 3, 4 to 4, 4²": Row(there(1, 4, 4, 4), CONV, last, conv),
        "MultiHeadAttention 2 x 16 x 8": Row(there(2, 16, 8), ATTENTION, itself, attention),
        "LSTM, 4 steps, 2 x 8, module": Row(
            there(2, 4, 8), LSTM, frozen(nn.LSTM(8, 8, batch_first=True)), lstm
        ),
    }


def rows(name: str) -> list[list[str]]:
    if name == "torch":
        import torch

        torch.set_num_threads(1)
    out = []
    for label, (arrays, budget, native, ours, keras) in calls(name).items():
        bound = {"native": partial(native, *arrays), "ours": partial(ours, *arrays)}
        if keras:
            bound["Keras"] = partial(keras, *arrays)
        best = minima(bound)
        over = {who: f"{(t - best['native']) * 1e6:+.2f} µs" for who, t in best.items()}
        met = best["ours"] - best["native"] <= budget * 1e-6
        out.append(
            [
                name,
                label,
                f"{best['native'] * 1e6:.2f}",
                over["ours"],
                f"{budget} µs",
                "yes" if met else "NO",
                over.get("Keras", "-"),
            ]
        )
    return out


if __name__ == "__main__":
    for row in rows(sys.argv[1]):
        print("\t".join(row))
