"""Gradients and optimizer steps compared with the framework's own: `iso.value_and_grad` with
`jax.value_and_grad`, `iso.adam_update` with the formula in a loop, and so on.

Both sides run the same function, written in the framework's own names, so a ratio shows what
isomorph adds. Each backend has its own process, because frameworks in one process slow each other
down.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import isomorph as iso
from isomorph.core import tree

from .tables import Part, Table
from .timing import installed, minima

BACKENDS = ("numpy", "jax", "tensorflow", "torch")
HEAD = ["backend", "what", "peer", "peer µs", "isomorph µs", "isomorph / peer", "budget", "met"]
NOISE = 0.02  # how much two equal calls differ on this machine
LR, BETA1, BETA2, EPSILON, CAP = 0.01, 0.9, 0.999, 1e-7, 10.0


class Pair(NamedTuple):
    """One computation done by the peer and by us; without a budget the row is for information."""

    what: str
    peer: str
    theirs: Callable[[], Any]
    ours: Callable[[], Any]
    budget: float | None
    rounds: int = 60
    slice_s: float = 2e-2


def run() -> list[Part]:
    """The table of all four backends, and notes on what it leaves out."""
    rows, notes = [], []
    for name in filter(installed, BACKENDS):
        done = subprocess.run(
            [sys.executable, "-m", __name__, name],
            env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        print(f"{name} done", file=sys.stderr)  # progress: a backend takes minutes
        lines = done.stdout.splitlines()
        rows += [line.split("\t") for line in lines if line.startswith(f"{name}\t")]
        notes += [line for line in lines if line.startswith("Note: ") and line not in notes]
    return [Table(HEAD, rows), *notes]


# The frameworks: each with its own transforms and the names that the functions below use.


class NumPy:
    tape, vectorised, compiler = "HIPS autograd", "iso.vjp, row by row", None
    overhead, rows = None, 1.3

    def __init__(self, np: Any = np):
        self.sum, self.tanh, self.sqrt, self.dot, self.norm = (
            np.sum, np.tanh, np.sqrt, np.matmul, np.linalg.norm,
        )  # fmt: skip

    def value_and_grad(self, f: Callable) -> Callable:
        import autograd

        return autograd.value_and_grad(f)

    def jac(self, f: Callable) -> Callable:
        def jacobian(x):
            y, pullback = iso.vjp(f, x)
            return np.stack([pullback(row)[0] for row in np.eye(y.size, dtype=y.dtype)])

        return jacobian

    def ratio(self, w: Any, u: Any) -> Any:
        a, b = self.norm(w), self.norm(u)
        return a / b if a > 0 and b > 0 else 1.0

    def minimum(self, ratio: Any, cap: float) -> Any:
        return min(ratio, cap)

    def wait(self, out: Any) -> Any:
        return out


class JAX:
    tape, vectorised, compiler = "jax.value_and_grad", "jax.jacrev", "jax.jit"
    overhead, rows, compilable = 1.05, 1.1, 200

    def __init__(self):
        import jax
        import jax.numpy as jnp

        self.sum, self.tanh, self.sqrt, self.dot = jnp.sum, jnp.tanh, jnp.sqrt, jnp.matmul
        self.where, self.norm, self.minimum = jnp.where, jnp.linalg.norm, jnp.minimum
        self.value_and_grad, self.jac, self.jit = jax.value_and_grad, jax.jacrev, jax.jit
        self.wait = jax.block_until_ready

    def ratio(self, w: Any, u: Any) -> Any:
        a, b = self.norm(w), self.norm(u)
        return self.where((a > 0) & (b > 0), a / b, 1.0)


class TensorFlow:
    tape, vectorised, compiler = "GradientTape", "tape.jacobian", "tf.function, XLA"
    overhead, rows, compilable = 1.1, 1.1, 200
    ratio, wait = JAX.ratio, NumPy.wait

    def __init__(self):
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        self.sum, self.tanh, self.sqrt, self.dot = (
            tf.reduce_sum, tf.tanh, tf.sqrt, tf.linalg.matvec,
        )  # fmt: skip
        self.where, self.norm, self.minimum = tf.where, tf.norm, tf.minimum
        self.jit = partial(tf.function, autograph=False, jit_compile=True, reduce_retracing=True)
        self.new_tape = tf.GradientTape

    def value_and_grad(self, f: Callable) -> Callable:
        def both(x):
            with self.new_tape() as tape:
                tape.watch(x)
                y = f(x)
            return y, tape.gradient(y, x)

        return both

    def jac(self, f: Callable) -> Callable:
        def jacobian(x):
            with self.new_tape() as tape:
                tape.watch(x)
                y = f(x)
            return tape.jacobian(y, x)

        return jacobian


class Torch:
    tape, vectorised = "torch.func.grad_and_value", "torch.func.jacrev"
    compiler = "torch.compile"
    overhead, rows, compilable = 1.1, 1.1, 10  # its compiler takes many minutes for two hundred
    ratio, wait = JAX.ratio, NumPy.wait

    def __init__(self):
        import torch

        torch.set_num_threads(1)
        self.sum, self.tanh, self.sqrt, self.dot = torch.sum, torch.tanh, torch.sqrt, torch.mv
        self.where, self.norm, self.minimum = torch.where, torch.linalg.vector_norm, torch.clamp_max
        self.value_and_grad, self.jac = torch.func.grad_and_value, torch.func.jacrev
        self.jit = partial(torch.compile, fullgraph=True)


PEERS = {"numpy": NumPy, "jax": JAX, "tensorflow": TensorFlow, "torch": Torch}


def own(peer: Any) -> Any:
    """The names that our side uses: the peer's, or NumPy itself where the peer is HIPS autograd."""
    return NumPy() if isinstance(peer, NumPy) else peer


# What is measured.


def one_array(np: Any) -> Callable:
    return lambda x: np.sum(np.tanh(x) ** 2)


def four_arrays(np: Any) -> Callable:
    return lambda p: np.sum(np.tanh(p["a"] * p["b"] + p["c"]) * p["d"])


def layer(np: Any, w: Any) -> Callable:
    return lambda x: np.tanh(np.dot(w, x))


def tiny(name: str) -> dict[str, tuple[Callable, Any]]:
    """Functions that cost little compared with a transform, with their arguments."""
    rng = np.random.default_rng(0)
    draw = lambda: iso.convert(rng.standard_normal(8).astype(np.float32), name)
    return {
        "sum(tanh(x)**2), x of 8": (one_array, draw()),
        "a dict of 4 arrays of 8": (four_arrays, {key: draw() for key in "abcd"}),
    }


def transforms(name: str, peer: Any) -> Iterator[Pair]:
    """value_and_grad of tiny functions, and jac of one with 256 inputs and outputs."""
    theirs = hips() if name == "numpy" else peer
    for label, (program, x) in tiny(name).items():
        native, our = peer.value_and_grad(program(theirs)), iso.value_and_grad(program(own(peer)))
        yield Pair(
            f"value_and_grad, {label}", peer.tape,
            partial(native, x), partial(our, x), peer.overhead,
        )  # fmt: skip
    rng = np.random.default_rng(1)
    w, x = rng.standard_normal((256, 256)) / 16, rng.standard_normal(256)
    w, x = iso.convert([w.astype(np.float32), x.astype(np.float32)], name)
    f = layer(own(peer), w)
    native, our = peer.jac(f), iso.jac(f)
    yield Pair(
        "jac, tanh(W x), 256 to 256", peer.vectorised,
        partial(native, x), partial(our, x), peer.rows,
    )  # fmt: skip


def hips() -> NumPy:
    import autograd.numpy

    return NumPy(autograd.numpy)


def steps(np: Any) -> dict[str, Callable]:
    """The optimizers written by hand: functions of (w, g, m, v, t), which are dicts of arrays."""

    def descent(w, g, m, v, t):
        return {k: w[k] - LR * g[k] for k in w}

    def direction(g, m, v, t):
        m = BETA1 * m + (1 - BETA1) * g
        v = BETA2 * v + (1 - BETA2) * g * g
        return m / (1 - BETA1**t) / (np.sqrt(v / (1 - BETA2**t)) + EPSILON), m, v

    def adam(w, g, m, v, t):
        new_w, new_m, new_v = {}, {}, {}
        for k in w:
            u, new_m[k], new_v[k] = direction(g[k], m[k], v[k], t)
            new_w[k] = w[k] - LR * u
        return new_w, new_m, new_v

    def lars(w, g, m, v, t):
        return {k: w[k] - LR * np.ratio(w[k], g[k]) * g[k] for k in w}

    def lamb(w, g, m, v, t):
        new_w, new_m, new_v = {}, {}, {}
        for k in w:
            u, new_m[k], new_v[k] = direction(g[k], m[k], v[k], t)
            new_w[k] = w[k] - LR * np.minimum(np.ratio(w[k], u), CAP) * u
        return new_w, new_m, new_v

    return {"gradient_descent": descent, "adam": adam, "lars": lars, "lamb": lamb}


OURS: dict[str, Callable] = {
    "gradient_descent": lambda w, g, m, v, t: iso.gradient_descent_update(w, g, LR),
    "adam": lambda w, g, m, v, t: iso.adam_update(w, g, LR, m, v, t),
    "lars": lambda w, g, m, v, t: iso.lars_update(w, g, LR),
    "lamb": lambda w, g, m, v, t: iso.lamb_update(w, g, LR, m, v, t),
}


SIZES = {16: 60, 256: 15}  # size of an array -> rounds


def nests(name: str, count: int, size: int) -> list[dict[str, Any]]:
    """Parameters, gradients and moments: dicts of arrays of size x size, float32."""
    rng = np.random.default_rng(2)
    draw = lambda: {f"w{i}": rng.random((size, size), np.float32) for i in range(count)}
    return iso.convert([draw() for _ in range(4)], name)


def optimizers(name: str, peer: Any) -> Iterator[Pair]:
    for size, rounds in SIZES.items():
        arrays = nests(name, 200, size)
        for label, by_hand in steps(peer).items():
            yield Pair(
                f"{label}_update, 200 arrays {size}x{size}", "a loop by hand",
                partial(by_hand, *arrays, 3), partial(OURS[label], *arrays, 3), 1.1, rounds,
            )  # fmt: skip


def compiled(name: str, peer: Any) -> Iterator[Pair]:
    """The same, compiled by the framework's compiler; ours by `iso.jit`."""
    if peer.compiler is None:
        return
    jit = getattr(iso, "jit", None)
    if jit is None:
        print("Note: the compiled rows are left out, isomorph has no jit.")
        return
    for label, (program, x) in tiny(name).items():
        f = program(peer)
        native, our = peer.jit(peer.value_and_grad(f)), jit(iso.value_and_grad(f))
        yield Pair(
            f"compiled value_and_grad, {label}", peer.compiler,
            partial(native, x), partial(our, x), 1.0,
        )  # fmt: skip
    step, count = iso.convert(np.asarray(3, np.float32), name), peer.compilable
    for size, rounds in SIZES.items():
        arrays = nests(name, count, size)
        for label, by_hand in steps(peer).items():
            native, our = peer.jit(by_hand), jit(OURS[label])
            yield Pair(
                f"compiled {label}_update, {count} arrays {size}x{size}", peer.compiler,
                partial(native, *arrays, step), partial(our, *arrays, step), 1.0, rounds,
            )  # fmt: skip


def measured(name: str, peer: Any, pair: Pair) -> list[str]:
    """A row of the table, after checking that both give the same numbers."""
    check(pair.theirs(), pair.ours())
    best = minima(
        {"theirs": lambda: peer.wait(pair.theirs()), "ours": lambda: peer.wait(pair.ours())},
        pair.rounds,
        pair.slice_s,
    )
    ratio = best["ours"] / best["theirs"]
    met = "-" if pair.budget is None else "yes" if ratio <= max(pair.budget, 1 + NOISE) else "NO"
    return [
        name,
        pair.what,
        pair.peer,
        *(f"{best[who] * 1e6:.0f}" for who in ("theirs", "ours")),
        f"{ratio:.2f}x",
        "-" if pair.budget is None else f"{pair.budget}x",
        met,
    ]


def check(theirs: Any, ours: Any) -> None:
    flat = lambda out: sorted(
        (iso.to_numpy(x) for x in tree.flatten(out)[0]), key=lambda x: (x.ndim, str(x.shape))
    )
    for a, b in zip(flat(theirs), flat(ours), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def main(name: str, wanted: str = "") -> None:
    """Print the rows of one backend, or only those whose name contains `wanted`."""
    peer = PEERS[name]()
    for table_of in (transforms, optimizers, compiled):
        for pair in table_of(name, peer):
            if wanted in pair.what:
                print("\t".join(measured(name, peer, pair)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
