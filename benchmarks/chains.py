"""What a step costs beside its arithmetic: chains of small linear layers, with cross-entropy and
Adam, ours and by hand in the framework itself. A step is that of a module, or of a nest of arrays;
its gradient alone is `iso.grad` of the nest.

`python -m benchmarks.chains BACKEND [quick]` prints the rows of one backend.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import isomorph as iso

from .tables import Table
from .timing import each_backend, minima

HEAD = ["backend", "8 x 8 layers", "program", "µs", "by hand µs", "program / by hand", "budget",
        "met"]  # fmt: skip
BACKENDS = ("numpy", "jax", "tensorflow", "torch")
LENGTHS = (3, 12, 24, 48)
RATE, WIDTH = 1e-3, 8
STEP, GRADIENT = 15.0, 8.0  # microseconds that are always allowed
BUDGETS = {  # (backend, compiled) -> times the step by hand
    ("jax", True): 1.1, ("tensorflow", True): 1.1, ("torch", True): 1.0, ("torch", False): 1.2,
}  # fmt: skip
Calls = dict[str, Callable[[], Any]]


class Chain(iso.Module):
    def __init__(self, length: int):
        self.layers = [iso.Linear(WIDTH, WIDTH) for _ in range(length)]

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def of_module(model: Any, x: Any, y: Any) -> Any:
    return iso.cross_entropy(model(x), y)


def of_nest(v: Any, x: Any, y: Any) -> Any:
    for layer in v.values():
        x = iso.linear(x, layer["w"], bias=layer["b"])
    return iso.cross_entropy(x, y)


def ours(model: Any, nest: Any, batch: tuple, compiled: bool, wait: Callable) -> Calls:
    def steps(loss: Callable, start: Any) -> Callable[[], Any]:
        step = iso.train_step(loss, iso.optimizers.adam(RATE), compiled=compiled)
        state = step.init(start)

        def run() -> None:
            nonlocal state
            state, value = step(state, *batch)
            wait(value)

        return run

    grad = iso.grad(of_nest)
    grad = iso.jit(grad) if compiled else grad
    return {
        "step of a module": steps(of_module, model), "step of a nest": steps(of_nest, nest),
        "gradient of a nest": lambda: wait(grad(nest, *batch)),
    }  # fmt: skip


def in_jax(nest: Any, batch: tuple) -> Calls:
    import jax
    import jax.numpy as jnp
    import optax

    def loss(params: Any, x: Any, y: Any) -> Any:
        for layer in params.values():
            x = x @ layer["w"].T + layer["b"]
        return optax.softmax_cross_entropy_with_integer_labels(x, y).mean()

    pair, grad = optax.adam(RATE), jax.jit(jax.grad(loss))

    @partial(jax.jit, donate_argnums=0)
    def step(held: Any, x: Any, y: Any) -> Any:
        params, state = held
        value, grads = jax.value_and_grad(loss)(params, x, y)
        updates, state = pair.update(grads, state, params)
        return (optax.apply_updates(params, updates), state), value

    held = (jax.tree.map(jnp.copy, nest), pair.init(nest))

    def run() -> None:
        nonlocal held
        held, value = step(held, *batch)
        jax.block_until_ready(value)

    return {"step": run, "gradient": lambda: jax.block_until_ready(grad(nest, *batch))}


def in_tensorflow(nest: Any, batch: tuple) -> Calls:
    import tensorflow as tf

    arrays = [layer[name] for layer in nest.values() for name in ("w", "b")]
    params = [tf.Variable(x) for x in arrays]
    first, second = ([tf.Variable(tf.zeros_like(x)) for x in arrays] for _ in range(2))
    count = tf.Variable(0.0)

    def loss(params: Any, x: Any, y: Any) -> Any:
        for w, b in zip(params[::2], params[1::2]):
            x = tf.matmul(x, w, transpose_b=True) + b
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, x))

    @tf.function(jit_compile=True, autograph=False)
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            value = loss(params, x, y)
        count.assign_add(1.0)
        rate = RATE * tf.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        for p, m, v, g in zip(params, first, second, tape.gradient(value, params)):
            m.assign(0.9 * m + 0.1 * g)
            v.assign(0.999 * v + 0.001 * g * g)
            p.assign_sub(rate * m / (tf.sqrt(v) + 1e-8))
        return value

    @tf.function(jit_compile=True, autograph=False)
    def grad(arrays: Any, x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(arrays)
            value = loss(arrays, x, y)
        return tape.gradient(value, arrays)

    return {"step": lambda: step(*batch), "gradient": lambda: grad(arrays, *batch)}


def in_torch(nest: Any, batch: tuple, compiled: bool) -> Calls:
    import torch
    from torch import nn

    from .training.torch_peers import dense

    x, y = batch[0], batch[1].long()
    model = nn.Sequential(*[dense([iso.to_numpy(p["w"]).T, iso.to_numpy(p["b"])])
                            for p in nest.values()])  # fmt: skip
    rule = torch.optim.Adam(model.parameters(), RATE, fused=True)
    cross_entropy, params = nn.functional.cross_entropy, list(model.parameters())
    forward = torch.compile(lambda x, y: cross_entropy(model(x), y)) if compiled else None

    def loss() -> Any:
        return cross_entropy(model(x), y) if forward is None else forward(x, y)

    def run() -> None:
        value = loss()
        rule.zero_grad()
        value.backward()
        rule.step()

    return {"step": run, "gradient": lambda: torch.autograd.grad(loss(), params)}


def in_numpy(nest: Any, batch: tuple) -> Calls:
    (x, y), params = batch, [x.copy() for p in nest.values() for x in (p["w"], p["b"])]
    first, second = ([np.zeros_like(p) for p in params] for _ in range(2))
    rows, count = np.arange(len(y)), 0

    def gradient() -> list:
        inputs = [x]
        for w, b in zip(params[::2], params[1::2]):
            inputs.append(inputs[-1] @ w.T + b)
        top = inputs.pop()
        e = np.exp(top - top.max(1, keepdims=True))
        up = e / e.sum(1, keepdims=True)
        float(-np.log(up[rows, y]).mean())
        up[rows, y] -= 1
        up /= len(y)
        grads = []
        for w, h in zip(params[-2::-2], reversed(inputs)):
            grads += [up.sum(0), up.T @ h]
            up = up @ w
        return grads[::-1]

    def step() -> None:
        nonlocal count
        count += 1
        rate, wide = RATE / (1 - 0.9**count), (1 - 0.999**count) ** 0.5
        for p, m, v, g in zip(params, first, second, gradient()):
            m *= 0.9
            m += 0.1 * g
            v *= 0.999
            v += 0.001 * g * g
            p -= rate * m / (np.sqrt(v) / wide + 1e-8)

    return {"step": step, "gradient": gradient}


def run(quick: bool = False) -> Table:
    env = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
    return Table(HEAD, each_backend(__name__, BACKENDS, *(["quick"] if quick else []), env=env))


def rows(backend: str, length: int, compiled: bool, rounds: int) -> list[list[str]]:
    draw = np.random.default_rng(0)
    batch = (draw.normal(size=(8, WIDTH)).astype(np.float32), draw.integers(0, WIDTH, 8))
    batch = iso.convert((batch[0], batch[1].astype(np.int32)), backend)
    with iso.use_backend(backend, dtype="float32"), iso.use_key(0):
        model = Chain(length)
    nest = {f"{i}": dict(layer.v) for i, layer in enumerate(model.layers)}
    wait: Callable = lambda value: value
    if backend == "jax":
        import jax

        wait = jax.block_until_ready
    theirs = {
        "numpy": in_numpy, "jax": in_jax, "tensorflow": in_tensorflow,
        "torch": partial(in_torch, compiled=compiled),
    }[backend](nest, batch)  # fmt: skip
    mine = ours(model, nest, batch, compiled, wait)
    best = minima(mine | theirs, rounds, 1e-3)
    out = []
    for name in mine:
        word, allowed = ("step", STEP) if name.startswith("step") else ("gradient", GRADIENT)
        us, hand = best[name] * 1e6, best[word] * 1e6
        budget = BUDGETS.get((backend, compiled))
        met = "" if budget is None else "yes" if us <= max(budget * hand, hand + allowed) else "NO"
        kind = name if compiled or backend == "numpy" else f"{name}, uncompiled"
        out.append([
            backend, f"{length}", kind, f"{us:.0f}", f"{hand:.0f}", f"{us / hand:.2f}x",
            f"{budget}x" if budget else "", met,
        ])  # fmt: skip
    return out


if __name__ == "__main__":
    from .training.steps import one_thread

    backend, *rest = sys.argv[1:]
    one_thread(backend)
    quick, chosen = "quick" in rest, [int(word) for word in rest if word.isdecimal()]
    for length in chosen or LENGTHS[: 1 if quick else None]:
        ways = {"numpy": [True], "torch": [True, False]}.get(backend, [True])
        for compiled in ways:
            if "uncompiled" in rest and compiled:
                continue
            for row in rows(backend, length, compiled, 2 if quick else 60):
                print("\t".join(row), flush=True)
