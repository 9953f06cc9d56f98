"""What the public function of a layer costs: one eager call on tiny arrays, compared with the
framework's own call on the same arrays, and with Keras 3's.

JAX is not here: its own eager calls take tens of microseconds, and compiled programs, where our
public functions cost nothing, are measured in `layers`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import isomorph as iso

from .layer_cases import NATIVES, drawn
from .tables import Table
from .timing import each_backend, minima

BACKENDS = ("tensorflow", "torch")
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


def calls(name: str) -> dict[str, tuple[list, float, Callable, Callable, Callable | None]]:
    """Arrays, budget, and the native call, ours and Keras's."""
    import keras

    ops: Any = keras.ops
    own: Any = NATIVES[name]()
    there = lambda *shapes: iso.convert(drawn(*shapes), name)
    tall = there((8, 8), (8,), (8,))
    ids = iso.convert(np.arange(8), name)
    heads = there(*[(1, 2, 4, 8)] * 3)
    found = {
        "conv2d 3 x 3, 4 to 4, 4²": (
            there((1, 4, 4, 4), (3, 3, 4, 4)), 1.0, own.conv(1, 1),
            lambda x, w: iso.conv2d(x, w, 1, 1), lambda x, w: ops.conv(x, w, 1, "same"),
        ),
        "linear 8 x 8 to 8": (
            [tall[0], *there((8, 8), (8,))], 1.0, own.linear,
            lambda x, w, b: iso.linear(x, w, bias=b), lambda x, w, b: ops.add(ops.matmul(x, w), b),
        ),
        "layer_norm 8 x 8": (
            tall, 1.0, own.layer_norm, lambda x, w, b: iso.layer_norm(x, weight=w, bias=b),
            lambda x, w, b: ops.layer_normalization(x, w, b, axis=-1, epsilon=1e-5),
        ),
        "gelu 8 x 8": (
            tall[:1], 0.5, own.gelu, partial(iso.gelu, approximate=True),
            partial(ops.gelu, approximate=True),
        ),
        "softmax 8 x 8": (tall[:1], 0.5, own.softmax, iso.softmax, ops.softmax),
        "cross_entropy 8 x 8": (
            [tall[0], ids], 1.0, own.cross_entropy, iso.cross_entropy,
            lambda x, y: ops.mean(ops.sparse_categorical_crossentropy(y, x, from_logits=True)),
        ),
        "embedding 8 of 8 x 8": (
            [ids, tall[0]], 1.0, own.embedding, iso.embedding, lambda i, w: ops.take(w, i, axis=0)
        ),
        "avg_pool 2, 4² x 4": (
            there((1, 4, 4, 4)), 0.5, own.avg_pool, lambda x: iso.avg_pool(x, 2),
            lambda x: ops.average_pool(x, 2, 2, "valid"),
        ),
    }  # fmt: skip
    if name == "torch":  # only where it is one call
        found["attention 2 x 4 x 8"] = (
            heads, 1.0, own.attention,
            lambda q, k, v: iso.scaled_dot_product_attention(q, k, v, is_causal=True), None,
        )  # fmt: skip
        found["LSTM, 4 steps, 2 x 8"] = (
            there((2, 4, 8), (2, 8), (2, 8), (8, 32), (8, 32), (32,)), 1.0, own.lstm(),
            lambda x, h, c, k, r, b: iso.lstm_update(x, h, c, k, r, bias=b), None,
        )  # fmt: skip
    return found


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
