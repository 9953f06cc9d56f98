"""A small network, many steps, `iso.fit`: what most people have on a CPU. Microseconds a step,
beside loops by hand and Keras.

`python -m benchmarks.small BACKEND [quick]` prints the rows of one backend.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import isomorph as iso

from .tables import Part, Table
from .timing import each_backend, installed

BACKENDS = ("numpy", "jax", "tensorflow", "torch")
HEAD = ["backend", "network, float32", "program", "µs a step", "peer", "peer µs", "program / peer",
        "budget", "met"]  # fmt: skip
RATE, ROWS, BEFORE, EPOCHS, REPEATS = 1e-3, 6400, 2, 20, 3
HAND, HIPS = "a loop by hand", "HIPS autograd"
EAGER, KERAS = "an eager loop by hand", "Keras fit"
# What `fit` may take: backend -> (our program, peer) -> times the peer.
BUDGETS = {
    "numpy": {("fit", HAND): 4.0},
    "jax": {("fit", HAND): 1.5},
    "tensorflow": {("fit", KERAS): 0.35},
    "torch": {("fit", EAGER): 1.1, ("fit, uncompiled", EAGER): 1.35},
}
OWN = 1.15  # `fit` over a loop of `train_step`


class Net(iso.Module):
    def __init__(self, sizes: tuple[int, int, int], rate: float = 0.0):
        self.first, self.last = iso.Linear(*sizes[:2]), iso.Linear(*sizes[1:])
        self.drop = iso.Dropout(rate) if rate else None

    def forward(self, x):
        x = iso.relu(self.first(x))
        return self.last(x if self.drop is None else self.drop(x))


class Recurrent(iso.Module):
    def __init__(self, features: int, width: int):
        self.cell, self.last = iso.LSTM(features, width), iso.Linear(width, 1)

    def forward(self, x):
        return self.last(self.cell(x)[0][:, -1])


@dataclass
class Case:
    """A network with its data."""

    label: str
    make: Callable[[], Any]
    x: Any
    y: Any
    size: int  # rows of a batch

    def model(self, backend: str) -> Any:
        with iso.use_backend(backend, dtype="float32"), iso.use_key(0):
            return self.make()

    @property
    def steps(self) -> int:
        return len(self.x) // self.size


def loss(model: Any, x: Any, y: Any) -> Any:
    return iso.cross_entropy(model(x), y) if len(y.shape) == 1 else iso.mse(model(x), y)


def cases(rows: int) -> list[Case]:
    draw = np.random.default_rng(0)
    normal = lambda *shape: draw.normal(size=shape).astype(np.float32)
    classes = draw.integers(0, 10, rows).astype(np.int32)
    mlp, drop, lstm = normal(rows, 16), normal(rows, 64), normal(rows, 20, 4)
    sums, wide = mlp.sum(1, keepdims=True), (64, 128, 10)
    return [
        Case("MLP 16-32-1, batch 64", lambda: Net((16, 32, 1)), mlp, sums, 64),
        Case("MLP 64-128-10, dropout, batch 32", lambda: Net(wide, 0.1), drop, classes, 32),
        Case("LSTM 4-16-1, 20 steps, batch 64", lambda: Recurrent(4, 16), lstm, lstm[:, 0, :1], 64),
    ]  # fmt: skip


def run(quick: bool = False) -> list[Part]:
    size = ["quick"] if quick else []
    env = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
    rows = each_backend(__name__, list(filter(installed, BACKENDS)), *size, env=env)
    return [Table(HEAD, rows)]


def ours(case: Case, backend: str, compiled: bool) -> Callable[[int], None]:
    """`iso.fit`, of a number of epochs."""
    model, data = case.model(backend), iso.convert((case.x, case.y), backend)
    return lambda epochs: iso.fit(
        model, data, loss, iso.optimizers.adam(RATE), epochs, batch_size=case.size,
        compiled=compiled, progress=False,
    )  # fmt: skip


def loop(case: Case, backend: str, compiled: bool) -> Callable[[int], None]:
    """A loop of `train_step` over batches of NumPy."""
    step = iso.train_step(loss, iso.optimizers.adam(RATE), compiled=compiled)

    def train(epochs: int) -> None:
        state = step.init(case.model(backend))
        for batch in batches(case, epochs):
            state, value = step(state, *iso.convert(batch, backend))
            float(value)

    return train


def order(case: Case, epoch: int) -> Any:
    return np.random.default_rng(epoch).permutation(len(case.x))


def batches(case: Case, epochs: int) -> Any:
    """The batches of a loop by hand, in NumPy."""
    for epoch in range(epochs):
        rows = order(case, epoch)
        for i in range(case.steps):
            part = rows[i * case.size : (i + 1) * case.size]
            yield case.x[part], case.y[part]


def by_hand(case: Case) -> Callable[[int], None]:
    """A network of two layers in NumPy, with gradients and Adam by hand."""

    def found(params: list[Any], x: Any, y: Any) -> tuple[Any, list[Any]]:
        h = np.maximum(x @ params[0] + params[1], 0)
        error = h @ params[2] + params[3] - y
        up = 2 / error.size * error
        down = (up @ params[2].T) * (h > 0)
        return np.mean(error * error), [x.T @ down, down.sum(0), h.T @ up, up.sum(0)]

    return by_adam(case, found)


def with_hips(case: Case) -> Callable[[int], None]:
    import autograd
    import autograd.numpy as anp

    def objective(params: Any, x: Any, y: Any) -> Any:
        h = anp.maximum(anp.dot(x, params[0]) + params[1], 0)
        return anp.mean((anp.dot(h, params[2]) + params[3] - y) ** 2)

    return by_adam(case, autograd.value_and_grad(objective))


def by_adam(case: Case, found: Callable[..., tuple[Any, list[Any]]]) -> Callable[[int], None]:
    """Adam in NumPy, with what gives value and gradients."""
    start = case.model("numpy")
    layers = [layer.v for layer in (start.first, start.last)]

    def train(epochs: int) -> None:
        params = [np.array(x) for v in layers for x in (v["w"].T, v["b"])]
        first, second = ([np.zeros_like(p) for p in params] for _ in range(2))
        for t, (x, y) in enumerate(batches(case, epochs), 1):
            value, grads = found(params, x, y)
            float(value)
            rate, wide = RATE / (1 - 0.9**t), (1 - 0.999**t) ** 0.5
            for p, m, s, g in zip(params, first, second, grads):
                m *= 0.9
                m += 0.1 * g
                s *= 0.999
                s += 0.001 * g * g
                p -= rate * m / (np.sqrt(s) / wide + 1e-8)

    return train


def in_jax(case: Case) -> Callable[[int], None]:
    """Batches of NumPy into a jitted step with optax."""
    import jax
    import jax.numpy as jnp
    import optax

    pair, is_lstm, drops = optax.adam(RATE), case.x.ndim == 3, case.y.ndim == 1

    def forward(p: Any, x: Any, key: Any) -> Any:
        if is_lstm:

            def cell(held: Any, x: Any) -> Any:
                h, c = held
                gates = x @ p["x"] + h @ p["h"] + p["b"]
                i, f, g, o = jnp.split(gates, 4, -1)
                c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
                h = jax.nn.sigmoid(o) * jnp.tanh(c)
                return (h, c), None

            zero = jnp.zeros((x.shape[0], 16), x.dtype)
            (h, _), _ = jax.lax.scan(cell, (zero, zero), jnp.swapaxes(x, 0, 1))
            return h @ p["v"] + p["c"]
        h = jax.nn.relu(x @ p["w"] + p["b"])
        if drops:
            h = jnp.where(jax.random.bernoulli(key, 0.9, h.shape), h / 0.9, 0)
        return h @ p["v"] + p["c"]

    draw = np.random.default_rng(0)
    normal = lambda *shape: jnp.asarray(0.1 * draw.normal(size=shape), jnp.float32)
    if is_lstm:
        params = {"x": normal(4, 64), "h": normal(16, 64), "b": normal(64), "v": normal(16, 1)}
        params["c"] = normal(1)
    else:
        a, b, c = case.x.shape[1], 128 if drops else 32, 10 if drops else 1
        params = {"w": normal(a, b), "b": normal(b), "v": normal(b, c), "c": normal(c)}

    def objective(params: Any, x: Any, y: Any, key: Any) -> Any:
        z = forward(params, x, key)
        if drops:
            return optax.softmax_cross_entropy_with_integer_labels(z, y).mean()
        return jnp.mean((z - y) ** 2)

    @partial(jax.jit, donate_argnums=0)
    def step(held: Any, x: Any, y: Any) -> Any:
        params, opt, key = held
        key, used = jax.random.split(key)
        value, grads = jax.value_and_grad(objective)(params, x, y, used)
        updates, opt = pair.update(grads, opt, params)
        return (optax.apply_updates(params, updates), opt, key), value

    def train(epochs: int) -> None:
        held = jax.tree.map(jnp.copy, (params, pair.init(params), jax.random.key(0)))
        for x, y in batches(case, epochs):
            held, value = step(held, x, y)
            float(value)

    return train


def in_torch(case: Case) -> Callable[[int], None]:
    """Eager torch with a fused optimizer."""
    import torch
    from torch import nn

    is_lstm, drops = case.x.ndim == 3, case.y.ndim == 1

    class LSTM(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.last = nn.LSTM(4, 16, batch_first=True), nn.Linear(16, 1)

        def forward(self, x):
            return self.last(self.cell(x)[0][:, -1])

    def make() -> Any:
        if is_lstm:
            return LSTM()
        if drops:
            return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10))
        return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))

    measure = nn.functional.cross_entropy if drops else nn.functional.mse_loss
    x, y = torch.tensor(case.x), torch.tensor(case.y)  # on torch's default device
    y = y.long() if drops else y

    def train(epochs: int) -> None:
        model = make()
        rule = torch.optim.Adam(model.parameters(), RATE, fused=True)
        for epoch in range(epochs):
            rows = torch.tensor(order(case, epoch))
            for i in range(case.steps):
                part = rows[i * case.size : (i + 1) * case.size]
                value = measure(model(x[part]), y[part])
                rule.zero_grad()
                value.backward()
                rule.step()
                value.item()

    return train


def in_keras(case: Case) -> Callable[[int], None]:
    import keras
    from keras import layers

    if case.x.ndim == 3:
        stack = [layers.LSTM(16), layers.Dense(1)]
    elif case.y.ndim == 1:
        stack = [layers.Dense(128, "relu"), layers.Dropout(0.1), layers.Dense(10)]
    else:
        stack = [layers.Dense(32, "relu"), layers.Dense(1)]
    model = keras.Sequential([keras.Input(case.x.shape[1:]), *stack])
    measure: Any = "mse"
    if case.y.ndim == 1:
        measure = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(RATE), measure)
    return lambda epochs: model.fit(
        case.x, case.y, batch_size=case.size, epochs=epochs, verbose=0
    )  # fmt: skip


def programs(case: Case, backend: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Ours and the peers, by name."""
    mine = {}
    for compiled, word in ((True, ""), (False, ", uncompiled")):
        if backend == "numpy" and not compiled:
            continue
        mine[f"fit{word}"] = ours(case, backend, compiled)
        mine[f"train_step{word}"] = loop(case, backend, compiled)
    peers: dict[str, Any] = {}
    if backend == "numpy" and case.x.ndim == 2 and case.y.ndim == 2:
        peers = {HAND: by_hand(case)} | ({HIPS: with_hips(case)} if installed("autograd") else {})
    elif backend == "jax":
        peers = {HAND: in_jax(case)}
    elif backend == "torch":
        peers = {EAGER: in_torch(case)}
    if backend != "numpy" and installed("keras"):
        peers[KERAS] = in_keras(case)
    return mine, peers


def measured(
    trains: dict[str, Any], steps: int, epochs: int, repeats: int, slow: str
) -> dict[str, float]:
    """Microseconds a step: the difference between a long training and a short one. For those whose
    name ends with `slow`, one epoch is enough.
    """
    short, long = (dict.fromkeys(trains, float("inf")) for _ in range(2))
    counts = {
        name: (1, 2) if slow and name.endswith(slow) else (BEFORE, BEFORE + epochs)
        for name in trains
    }
    for _ in range(repeats):
        for name, train in trains.items():
            for best, count in zip((short, long), counts[name]):
                start = time.perf_counter()
                train(count)
                best[name] = min(best[name], time.perf_counter() - start)
    passed = {name: last - first for name, (first, last) in counts.items()}
    return {name: (long[name] - short[name]) / passed[name] / steps * 1e6 for name in trains}


def rows(case: Case, backend: str, epochs: int, repeats: int) -> list[list[str]]:
    mine, peers = programs(case, backend)
    slow = ", uncompiled" if backend in ("jax", "tensorflow") else ""
    found = measured(mine | peers, case.steps, epochs, repeats, slow)
    out = []
    for name in mine:
        others = [peer for peer in found if peer in peers]
        if name.startswith("fit"):
            others.insert(0, name.replace("fit", "train_step"))
        for peer in others:
            ratio = found[name] / found[peer]
            budget = OWN if peer in mine else BUDGETS[backend].get((name, peer))
            out.append([
                backend, case.label, name, f"{found[name]:.0f}", peer, f"{found[peer]:.0f}",
                f"{ratio:.2f}x", f"{budget}x" if budget else "",
                "" if not budget else "yes" if ratio <= budget else "NO",
            ])  # fmt: skip
    return out


if __name__ == "__main__":
    from .training.steps import one_thread

    backend, quick = sys.argv[1], "quick" in sys.argv
    one_thread(backend)
    iso.cache(tempfile.mkdtemp())
    for case in cases(128 if quick else ROWS):
        if len(sys.argv) < 3 or quick or any(word in case.label for word in sys.argv[2:]):
            for row in rows(case, backend, *((1, 1) if quick else (EPOCHS, REPEATS))):
                print("\t".join(row), flush=True)
