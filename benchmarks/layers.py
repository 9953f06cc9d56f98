"""Layers at the sizes of a ResNet and of a block of GPT-2, forward and with gradients. They are
compared with the framework's own best call and with Keras 3 on the same arrays.

The framework itself differentiates and compiles both sides in the same way, so a ratio shows the
layer alone: torch eagerly, JAX and TensorFlow in one compiled function. NumPy has no layers, so it
is compared with torch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import isomorph as iso

from .layer_cases import Case, cases
from .tables import Table
from .timing import each_backend, peak, within

BACKENDS = ("numpy", "jax", "tensorflow", "torch")
HEAD = ["backend", "layer, float32", "native ms", "isomorph ms", "isomorph / native", "budget",
        "met", "Keras / native", "ahead of Keras", "peak MB, isomorph / native"]  # fmt: skip
# Budgets: NumPy against torch, the others against their own layers. Attention has none on NumPy.
NUMPY = {"conv": (1.5, 2.0), "LSTM": (2.0, 2.0)}
OWN = 1.03
NOISE = 0.02  # how much two equal calls differ on this machine
SECONDS = 0.8  # per row


def run() -> Table:
    """The table of all four backends."""
    env = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
    return Table(HEAD, each_backend(__name__, BACKENDS, env=env))


class Torch:
    """Calls of a function of tensors: forward only, or with gradients of all float arguments."""

    name = "torch"

    def __init__(self):
        import torch

        torch.set_num_threads(1)
        self.torch = torch

    def forward(self, func: Callable, arrays: list) -> Callable[[], Any]:
        tensors = iso.convert(arrays, "torch")

        def run():
            with self.torch.no_grad():
                return func(*tensors)

        return run

    def both(self, func: Callable, arrays: list) -> Callable[[], Any]:
        tensors = [x.clone() for x in iso.convert(arrays, "torch")]
        leaves = [x.requires_grad_() for x in tensors if x.is_floating_point()]

        def run():
            value = func(*tensors).sum()
            return value, self.torch.autograd.grad(value, leaves)

        return run


class NumPy(Torch):
    """Our layers on NumPy arrays, the native ones on torch tensors."""

    name = "numpy"

    def own_forward(self, func: Callable, arrays: list) -> Callable[[], Any]:
        return lambda: func(*arrays)

    def own_both(self, func: Callable, arrays: list) -> Callable[[], Any]:
        floats = tuple(i for i, x in enumerate(arrays) if x.dtype.kind == "f")
        run = iso.value_and_grad(lambda *arrays: np.sum(func(*arrays)), floats)
        return lambda: run(*arrays)


class JAX:
    name = "jax"

    def forward(self, func: Callable, arrays: list) -> Callable[[], Any]:
        import jax

        there, run = iso.convert(arrays, "jax"), jax.jit(func)
        return lambda: jax.block_until_ready(run(*there))

    def both(self, func: Callable, arrays: list) -> Callable[[], Any]:
        import jax

        floats = tuple(i for i, x in enumerate(arrays) if x.dtype.kind == "f")
        return self.forward(jax.value_and_grad(lambda *a: func(*a).sum(), floats), arrays)


class TensorFlow:
    name = "tensorflow"

    def __init__(self):
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        self.tf = tf

    def forward(self, func: Callable, arrays: list) -> Callable[[], Any]:
        there, run = iso.convert(arrays, "tensorflow"), self.tf.function(func, autograph=False)
        return lambda: run(*there)

    def both(self, func: Callable, arrays: list) -> Callable[[], Any]:
        tf = self.tf

        def run(*arrays):
            leaves = [x for x in arrays if x.dtype.is_floating]
            with tf.GradientTape() as tape:
                tape.watch(leaves)
                value = tf.reduce_sum(func(*arrays))
            found = tape.gradient(value, [*leaves, *getattr(func, "variables", ())])
            return value, [tf.convert_to_tensor(g) for g in found if g is not None]

        return self.forward(run, arrays)


WAYS = {"numpy": NumPy, "jax": JAX, "tensorflow": TensorFlow, "torch": Torch}


def row(way: Any, case: Case, both: bool) -> list[str]:
    kind = "both" if both else "forward"
    make, own = getattr(way, kind), getattr(way, f"own_{kind}", getattr(way, kind))
    calls = {
        "native": make(case.native, case.native_arrays or case.arrays),
        "ours": own(case.ours, case.arrays),
    }
    # On NumPy, Keras has no gradients, and convolves with another framework.
    if case.keras and way.name != "numpy":
        keras = make(case.keras, case.keras_arrays or case.arrays)
        keras()
        calls["Keras"] = keras
    best = within(calls, SECONDS)
    ratio = best["ours"] / best["native"]
    budget: Any = OWN
    if way.name == "numpy":
        budget = next((b[both] for k, b in NUMPY.items() if case.name.startswith(k)), None)
    met = "-" if budget is None else "yes" if ratio <= budget else "NO"
    held = [peak(calls[who]) for who in ("ours", "native")]
    return [
        way.name,
        f"{case.name}, {'and gradients' if both else 'forward'}",
        f"{best['native'] * 1e3:.2f}",
        f"{best['ours'] * 1e3:.2f}",
        f"{ratio:.2f}x",
        "-" if budget is None else f"{budget}x",
        met,
        f"{best['Keras'] / best['native']:.2f}x" if "Keras" in best else "-",
        ("yes" if best["ours"] <= best["Keras"] * (1 + NOISE) else "NO")
        if "Keras" in best
        else "-",
        "-" if None in held else " / ".join(f"{mb:.0f}" for mb in held),
    ]


if __name__ == "__main__":
    chosen = sys.argv[2:]
    way = WAYS[sys.argv[1]]()
    for case in cases(sys.argv[1]):
        if not chosen or any(word in case.name for word in chosen):
            for both in (False, True):
                print("\t".join(row(way, case, both)), flush=True)
