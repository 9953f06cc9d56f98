"""What `iso.jit` costs beside the framework's compiler: one call of a compiled function of tiny
arrays. And, on JAX on a CPU, a product of a matrix and a few rows with a bias over the product
alone: XLA would fuse the sum into the product and take ten times as long.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import isomorph as iso

from .layer_cases import drawn
from .tables import Table
from .timing import each_backend, minima

BACKENDS = ("jax", "tensorflow", "torch")
HEAD = ["backend", "call", "native µs", "isomorph µs", "isomorph over native", "budget", "met"]
ARRAY, DICT, BIAS = 1.0, 3.0, 1.1  # microseconds over JAX's own call; a ratio
FEW = (1, 8)


def run() -> Table:
    """The table."""
    env = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
    return Table(HEAD, each_backend(__name__, BACKENDS, env=env))


def compiler(name: str) -> Callable[[Callable], Callable]:
    if name == "jax":
        import jax

        return jax.jit
    if name == "tensorflow":
        import tensorflow as tf

        return partial(tf.function, autograph=False)
    import torch

    torch.set_num_threads(1)
    return torch.compile


def one(x: Any) -> Any:
    return x * 2.0 + 1.0


def two(x: Any, y: Any) -> Any:
    return x * y


def four(nest: dict[str, Any]) -> dict[str, Any]:
    return {key: x * 2.0 + 1.0 for key, x in nest.items()}


def rows(name: str) -> list[list[str]]:
    theirs = compiler(name)
    draw = lambda: iso.convert(drawn((8,)), name)[0]
    given = {
        "an array of 8": (one, [draw()], ARRAY),
        "two arrays of 8": (two, [draw(), draw()], ARRAY),
        "a dict of four arrays of 8": (four, [{key: draw() for key in "abcd"}], DICT),
    }
    found = []
    for label, (func, arrays, budget) in given.items():
        best = minima({"native": partial(theirs(func), *arrays),
                       "ours": partial(iso.jit(func), *arrays)})  # fmt: skip
        over = (best["ours"] - best["native"]) * 1e6
        judged = [f"{budget} µs", "yes" if over <= budget else "NO"] if name == "jax" else ["", ""]
        found.append([name, label, *micros(best), f"{over:+.2f} µs", *judged])
    return found + (biased() if name == "jax" else [])


def biased() -> list[list[str]]:
    import jax

    product = jax.jit(lambda x, w: x @ w.T)
    ours = iso.jit(lambda x, w, b: iso.linear(x, w, bias=b))
    waited = lambda func, *arrays: jax.block_until_ready(func(*arrays))
    found = []
    for count in FEW:
        x, w, b = iso.convert(drawn((count, 768), (3072, 768), (3072,)), "jax")
        np.testing.assert_allclose(ours(x, w, b), product(x, w) + b, rtol=1e-4, atol=1e-4)
        calls = {"native": partial(waited, product, x, w), "ours": partial(waited, ours, x, w, b)}
        best = minima(calls, 60)
        ratio = best["ours"] / best["native"]
        met = "yes" if ratio <= BIAS else "NO"
        label = f"linear, {count} x 768 to 3072, over the product alone"
        found.append(["jax", label, *micros(best), f"{ratio:.2f}x", f"{BIAS}x", met])
    return found


def micros(best: dict[str, float]) -> list[str]:
    return [f"{best[who] * 1e6:.2f}" for who in ("native", "ours")]


if __name__ == "__main__":
    for row in rows(sys.argv[1]):
        print("\t".join(row))
