"""A training step of GPT-2 small in bfloat16 on a GPU: isomorph on torch and on JAX, compared with
the same step written by hand in each framework, from the same weights on the same batch.

`python -m benchmarks.gpt2` needs one NVIDIA GPU and uses those of the two frameworks that are
installed. Each of the four programs runs in its own processes, so that its memory peak is its own.
They take turns, and each runs twice; the second process finds what the first one compiled
(`iso.cache`). With `--tiny` a small model runs on the CPU in float32, and
all four programs must have the same loss curve.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import isomorph as iso
from isomorph.core.dispatch import load

from .tables import Table


@dataclass(frozen=True)
class Size:
    blocks: int = 12
    width: int = 768
    heads: int = 12
    vocabulary: int = 50304
    tokens: int = 1024
    batch: int = 32
    compute: str | None = "bfloat16"
    device: str = "cuda"


SMALL = Size()
TINY = Size(2, 64, 4, 512, 32, 4, None, "cpu")
ADAMW = {"lr": 6e-4, "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8, "weight_decay": 0.1}
STEPS, REPEATS, TOGETHER = 5, 12, 5  # steps of the loss curve; timings; steps per timing
PEAK = 989e12  # operations/s in dense bfloat16 of an H100 and an H200, from the data sheet
NEAR = {None: 1e-4, "bfloat16": 1e-2}  # the largest allowed difference of the loss curves
BUDGET = 0.98


# ---- isomorph ------------------------------------------------------------------------------------


class Block(iso.Module):
    def __init__(self, size: Size, draw: Callable, narrow: Callable):
        n = size.width
        self.heads = size.heads
        self.norm1, self.norm2 = iso.LayerNorm(n), iso.LayerNorm(n)
        self.qkv, self.out = iso.Linear(n, 3 * n, w_init=draw), iso.Linear(n, n, w_init=narrow)
        self.up = iso.Linear(n, 4 * n, w_init=draw)
        self.down = iso.Linear(4 * n, n, w_init=narrow)

    def forward(self, x: Any) -> Any:
        x = x + self.out(self.attended(self.qkv(self.norm1(x))))
        return x + self.down(iso.gelu(self.up(self.norm2(x)), approximate=True))

    def attended(self, qkv: Any) -> Any:
        xp = iso.namespace(qkv)
        batch, tokens, width = qkv.shape
        parts = xp.reshape(qkv, (batch, tokens, 3, self.heads, -1))
        q, k, v = (xp.permute_dims(x, (0, 2, 1, 3)) for x in xp.unstack(parts, axis=2))
        y = iso.scaled_dot_product_attention(q, k, v, is_causal=True)
        return xp.reshape(xp.permute_dims(y, (0, 2, 1, 3)), (batch, tokens, width // 3))


class GPT(iso.Module):
    """GPT-2 whose last layer shares the embedding, with weights from NumPy's generator."""

    def __init__(self, size: Size):
        rng = np.random.default_rng(0)

        def normal(spread: float) -> Callable:
            def draw(key: Any, shape: tuple, fans: Any = None) -> Any:
                return rng.standard_normal(shape, np.float32) * np.float32(spread)

            return draw

        draw, narrow = normal(0.02), normal(0.02 / (2 * size.blocks) ** 0.5)
        with iso.use_key(0):
            self.tokens = iso.Embedding(size.vocabulary, size.width, w_init=draw)
            self.places = iso.Embedding(size.tokens, size.width, w_init=draw)
            self.blocks = [Block(size, draw, narrow) for _ in range(size.blocks)]
            self.norm = iso.LayerNorm(size.width)

    def forward(self, ids: Any) -> Any:
        x = self.tokens(ids) + self.places.w
        for block in self.blocks:
            x = block(x)
        return iso.linear(self.norm(x), self.tokens.w)


def loss(model: GPT, ids: Any, labels: Any) -> Any:
    logits = model(ids)
    xp = iso.namespace(logits)
    return iso.cross_entropy(xp.astype(logits, xp.float32), labels)


def ours(backend: str, size: Size) -> Callable:
    device = size.device if backend == "torch" else {"cuda": "gpu:0", "cpu": "cpu:0"}[size.device]
    step = iso.train_step(loss, iso.optimizers.adamw(**ADAMW), compute=size.compute)
    state = step.init(iso.convert(GPT(size), backend, device=device))
    ids, labels = iso.convert(batch(size), backend, device=device)

    def run() -> Any:
        nonlocal state
        state, value = step(state, ids, labels)
        return value

    return run


# ---- the frameworks themselves -------------------------------------------------------------------


def native_torch(size: Size) -> Callable:
    import torch
    import torch.nn.functional as F
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            n = size.width
            self.norm1, self.norm2 = nn.LayerNorm(n), nn.LayerNorm(n)
            self.qkv, self.out = nn.Linear(n, 3 * n), nn.Linear(n, n)
            self.up, self.down = nn.Linear(n, 4 * n), nn.Linear(4 * n, n)

        def forward(self, x: Any) -> Any:
            batch, tokens, n = x.shape
            parts = self.qkv(self.norm1(x)).split(n, dim=2)
            q, k, v = (p.view(batch, tokens, size.heads, -1).transpose(1, 2) for p in parts)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(batch, tokens, n))
            return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(size.vocabulary, size.width)
            self.places = nn.Embedding(size.tokens, size.width)
            self.blocks = nn.ModuleList([Block() for _ in range(size.blocks)])
            self.norm = nn.LayerNorm(size.width)

        def forward(self, ids: Any, labels: Any) -> Any:
            x = self.tokens(ids) + self.places.weight
            for block in self.blocks:
                x = block(x)
            logits = F.linear(self.norm(x), self.tokens.weight)
            return F.cross_entropy(logits.view(-1, size.vocabulary).float(), labels.view(-1))

    model = Model().to(size.device)
    given = {".".join(map(str, path)): x for path, x in leaves(GPT(size).v)}
    names = {"w": "weight", "b": "bias"}
    given = {f"{k[:-1]}{names[k[-1]]}": torch.from_numpy(x) for k, x in given.items()}
    model.load_state_dict(given)
    ids, labels = (torch.from_numpy(x).to(size.device) for x in batch(size))
    optimizer = torch.optim.AdamW(
        model.parameters(), ADAMW["lr"], (ADAMW["beta1"], ADAMW["beta2"]), ADAMW["epsilon"],
        ADAMW["weight_decay"], fused=True,
    )  # fmt: skip
    compiled = torch.compile(model)
    narrow = torch.autocast(size.device, torch.bfloat16, enabled=size.compute is not None)

    def run() -> Any:
        with narrow:
            value = compiled(ids, labels)
        value.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return value.detach()

    return run


def native_jax(size: Size) -> Callable:
    import jax
    import jax.numpy as jnp
    import optax

    narrow = jnp.float32 if size.compute is None else jnp.bfloat16
    kernel = "cudnn" if size.device == "cuda" else "xla"

    def norm(p: Any, x: Any) -> Any:
        wide = x.astype(jnp.float32)
        centred = wide - wide.mean(-1, keepdims=True)
        y = centred * jax.lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-5)
        return (y * p["w"].astype(jnp.float32) + p["b"].astype(jnp.float32)).astype(x.dtype)

    def linear(p: Any, x: Any) -> Any:
        return x @ p["w"].T + p["b"]

    def block(p: Any, x: Any) -> Any:
        batch, tokens, n = x.shape
        parts = jnp.split(linear(p["qkv"], norm(p["norm1"], x)), 3, axis=-1)
        q, k, v = (y.reshape(batch, tokens, size.heads, -1) for y in parts)
        y = jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation=kernel)
        x = x + linear(p["out"], y.reshape(batch, tokens, n))
        hidden = jax.nn.gelu(linear(p["up"], norm(p["norm2"], x)), approximate=True)
        return x + linear(p["down"], hidden)

    def loss(v: Any, ids: Any, labels: Any) -> Any:
        p = jax.tree.map(lambda x: x.astype(narrow), v)
        x = p["tokens"]["w"][ids] + p["places"]["w"]
        for i in range(size.blocks):
            x = block(p["blocks"][i], x)
        logits = norm(p["norm"], x) @ p["tokens"]["w"].T
        each = optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), labels)
        return each.mean()

    optimizer = optax.adamw(
        ADAMW["lr"], ADAMW["beta1"], ADAMW["beta2"], ADAMW["epsilon"],
        weight_decay=ADAMW["weight_decay"],
    )  # fmt: skip

    def step(state: Any, ids: Any, labels: Any) -> Any:
        v, moments = state
        value, grads = jax.value_and_grad(loss)(v, ids, labels)
        updates, moments = optimizer.update(grads, moments, v)
        return (optax.apply_updates(v, updates), moments), value

    compiled = jax.jit(step, donate_argnums=0)
    v = jax.tree.map(jnp.asarray, GPT(size).v)
    state = v, optimizer.init(v)
    ids, labels = map(jnp.asarray, batch(size))

    def run() -> Any:
        nonlocal state
        state, value = compiled(state, ids, labels)
        return value

    return run


def batch(size: Size) -> tuple[np.ndarray, np.ndarray]:
    """Tokens and the tokens that follow them, in int64, as torch's losses need them."""
    ids = np.random.default_rng(1).integers(0, size.vocabulary, (size.batch, size.tokens + 1))
    return ids[:, :-1].copy(), ids[:, 1:].copy()


def leaves(nest: Any, path: tuple = ()) -> list[tuple[tuple, np.ndarray]]:
    if not isinstance(nest, dict):
        return [(path, nest)]
    return [leaf for key, x in nest.items() for leaf in leaves(x, (*path, key))]


# ---- measuring -----------------------------------------------------------------------------------


def measured(name: str, size: Size, folder: str) -> dict[str, Any]:
    """The measurements of one of the four programs, in this process."""
    backend, whose = name.split("-")
    iso.cache(folder)
    load(backend)  # it gets the folder
    natives = {"torch": native_torch, "jax": native_jax}
    run = ours(backend, size) if whose == "ours" else natives[backend](size)
    start = time.perf_counter()
    losses = [float(run())]
    first = time.perf_counter() - start
    losses += [float(run()) for _ in range(STEPS - 1)]
    if backend == "torch" and size.device == "cuda":
        import torch

        torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        for _ in range(TOGETHER):
            value = run()
        value = float(value)  # waits for the last step
        times.append((time.perf_counter() - start) / TOGETHER)
    return {
        "losses": losses,
        "last": value,
        "times": times,
        "compiling": first - min(times),
        "peak": peak(backend) if size.device == "cuda" else 0,
    }


def peak(backend: str) -> int:
    """Peak bytes of arrays: on torch after the first steps, on JAX since the start."""
    if backend == "torch":
        import torch

        return torch.cuda.max_memory_allocated()
    import jax

    return jax.devices()[0].memory_stats()["peak_bytes_in_use"]


def elsewhere(name: str, size: Size, folder: str) -> dict[str, Any]:
    """`measured` in a separate process."""
    given = [name, json.dumps(asdict(size)), f"{folder}/{name}"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.gpt2", "--one", *given],
        env=os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{name}: ended with {done.returncode}")
    found = json.loads(done.stdout.splitlines()[-1])
    best = min(found["times"])
    print(
        f"{name}: {best * 1e3:.1f} ms a step, compiled in {found['compiling']:.1f} s, losses "
        f"{[round(x, 4) for x in found['losses']]}, then {found['last']:.4f}",
        file=sys.stderr,
        flush=True,
    )
    return found


def work(size: Size) -> float:
    """Operations of one step: 6 for each parameter and token, plus those of attention."""
    n = size.width
    weights = (size.vocabulary + size.tokens + 12 * size.blocks * n + 13 * size.blocks + 2) * n
    each = 6 * weights + 12 * size.blocks * size.tokens * n
    return float(each * size.batch * size.tokens)


def rows(backend: str, size: Size) -> list[list[str]]:
    order = [f"{backend}-{whose}" for _ in range(2) for whose in ("native", "ours")]
    with tempfile.TemporaryDirectory() as folder:
        runs = [(name, elsewhere(name, size, folder)) for name in order]
    found, tokens, curves = [], size.batch * size.tokens, []
    for whose in ("native", "ours"):
        mine = [r for name, r in runs if name.endswith(whose)]
        times = [t for r in mine for t in r["times"]]
        curves += [r["losses"] for r in mine]
        best, middle = min(times), statistics.median(times)
        found.append((best, middle, mine))
    off = float(np.max(np.abs(np.asarray(curves) - curves[0])))
    near = NEAR[size.compute]
    assert off < near, f"{backend}: loss curves {off} apart, allowed {near}: {curves}"
    shown = []
    for whose, (best, middle, mine) in zip(("native", "isomorph"), found):
        shown.append([
            backend, whose, f"{tokens / best:,.0f}", f"{tokens / middle:,.0f}",
            f"{found[0][0] / best:.3f}x", f"{found[0][1] / middle:.3f}x",
            f"{work(size) / best / PEAK:.1%}", f"{max(r['peak'] for r in mine) / 2**30:.2f}",
            *(f"{r['compiling']:.1f}" for r in mine), f"{mine[0]['losses'][0]:.4f}",
            f"{off:.1e}",
        ])  # fmt: skip
    return shown


HEAD = [
    "framework", "step", "tokens/s, best", "median", "over native, best", "median",
    "of 989 TFLOP/s", "peak GiB", "compiling s", "second process s", "first loss", "curves apart",
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="2 blocks of width 64 on the CPU")
    parser.add_argument("--bfloat16", action="store_true", help="--tiny in bfloat16")
    parser.add_argument("--batch", type=int, help="sequences per step")
    parser.add_argument("--only", choices=("torch", "jax"), help="one framework")
    parser.add_argument(
        "--one", nargs=3, metavar=("NAME", "SIZE", "FOLDER"), help=argparse.SUPPRESS
    )
    given = parser.parse_args()
    if given.one:
        name, size, folder = given.one
        print(json.dumps(measured(name, Size(**json.loads(size)), folder)))
        return
    size = asdict(TINY if given.tiny else SMALL)
    size |= {"batch": given.batch or size["batch"]}
    size |= {"compute": "bfloat16"} if given.bfloat16 else {}
    names = [given.only] if given.only else ["torch", "jax"]
    names = [n for n in names if importlib.util.find_spec(n) is not None]
    found = [row for name in names for row in rows(name, Size(**size))]
    print(Table(HEAD, found).markdown)
    slow = [r for r in found if not given.tiny and float(r[5][:-1]) < BUDGET]
    for r in slow:
        print(f"over budget: {r[0]} at {r[5]} of native, allowed {BUDGET}x")
    sys.exit(bool(slow))


if __name__ == "__main__":
    main()
