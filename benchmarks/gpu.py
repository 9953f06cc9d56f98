"""Attention and convolutions in bfloat16 on a GPU: isomorph compared with the framework's own call,
both on the same arrays in one run. `python -m benchmarks.gpu` also prints the frameworks and the
device.
"""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import isomorph as iso

from .tables import Table

ATTENTION = [  # batch, heads, tokens, features; the first is GPT-2, the second limited by the host
    (64, 12, 1024, 64),
    (64, 8, 64, 32),
]
BATCHES = (512, 64)  # with the second, the kernels take so little time that the host limits torch
CONVOLUTIONS = [  # x [height, width, in], filters [k, k, in, out], stride, padding
    ("3 x 3, 64 to 64, 56²", (56, 56, 64), (3, 3, 64, 64), 1, 1),
    ("1 x 1, 256 to 64, 56²", (56, 56, 256), (1, 1, 256, 64), 1, 0),
    ("3 x 3 / 2, 128 to 128, 56²", (56, 56, 128), (3, 3, 128, 128), 2, 1),
    ("3 x 3, 256 to 256, 14²", (14, 14, 256), (3, 3, 256, 256), 1, 1),
]
TURNS = 10  # calls per timing
HEAD = ["framework", "bfloat16", "native ms", "isomorph ms", "ratio", "off by", "peak MB"]


def torch_rows() -> list[list[str]]:
    import torch
    import torch.nn.functional as F

    def arrays(*shapes: tuple) -> list[Any]:
        generator = torch.Generator("cuda").manual_seed(0)
        draw = lambda s: torch.randn(s, generator=generator, device="cuda", dtype=torch.bfloat16)
        return [draw(s).requires_grad_() for s in shapes]

    def timed(call: Callable) -> float:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(TURNS):
            call()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) / TURNS

    def peak(call: Callable) -> float:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        call()
        torch.cuda.synchronize()
        return (torch.cuda.max_memory_allocated() - before) / 2**20

    def both(func: Callable, args: list) -> Callable:
        def run():
            y = func(*args)
            return torch.autograd.grad(y, args, torch.ones_like(y))

        return run

    def forward(func: Callable, args: list) -> Callable:
        def run():
            with torch.no_grad():
                return func(*args)

        return run

    rows = []
    for label, ours, native, args in cases(
        arrays,
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        lambda stride, pad: (
            lambda x, w: F.conv2d(
                x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), None, stride, pad
            ).permute(0, 2, 3, 1)
        ),
    ):
        for kind, make in (("forward", forward), ("and gradients", both)):
            rows.append(row(f"{label}, {kind}", make(ours, args), make(native, args), timed, peak))
    return [["torch", *r] for r in rows]


def jax_rows() -> list[list[str]]:
    import jax
    import jax.numpy as jnp

    def arrays(*shapes: tuple) -> list[Any]:
        keys = jax.random.split(jax.random.key(0), len(shapes))
        return [jax.random.normal(k, s, jnp.bfloat16) for k, s in zip(keys, shapes)]

    def timed(call: Callable) -> float:
        start = time.perf_counter()
        for _ in range(TURNS):
            out = call()
        jax.block_until_ready(out)
        return (time.perf_counter() - start) * 1e3 / TURNS

    def attention(q: Any, k: Any, v: Any) -> Any:
        turned = (jnp.swapaxes(x, 1, 2) for x in (q, k, v))
        y = jax.nn.dot_product_attention(*turned, is_causal=True, implementation="cudnn")
        return jnp.swapaxes(y, 1, 2)

    def both(func: Callable, args: list) -> Callable:
        def total(*args):
            y, pull = jax.vjp(func, *args)
            return pull(jnp.ones_like(y))

        compiled = jax.jit(total)
        return lambda: compiled(*args)

    def forward(func: Callable, args: list) -> Callable:
        compiled = jax.jit(func)
        return lambda: compiled(*args)

    rows = []
    for label, ours, native, args in cases(
        arrays,
        attention,
        lambda stride, pad: (
            lambda x, w: jax.lax.conv_general_dilated(
                x, w, (stride,) * 2, ((pad, pad),) * 2, dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
        ),
    ):
        for kind, make in (("forward", forward), ("and gradients", both)):
            rows.append(row(f"{label}, {kind}", make(ours, args), make(native, args), timed, None))
    return [["jax", *r] for r in rows]


def cases(arrays: Callable, attention: Callable, conv: Callable) -> Any:
    """(label, ours, native, arrays) of each row."""
    causal = lambda q, k, v: iso.scaled_dot_product_attention(q, k, v, is_causal=True)
    for shape in ATTENTION:
        label = f"attention, causal, {' x '.join(map(str, shape))}"
        yield label, causal, attention, arrays(*[shape] * 3)
    for batch in BATCHES:
        for label, x, w, stride, pad in CONVOLUTIONS:
            ours = lambda x, w, stride=stride, pad=pad: iso.conv2d(x, w, stride, pad)
            yield f"conv2d {label}, batch {batch}", ours, conv(stride, pad), arrays((batch, *x), w)


def row(
    label: str, ours: Callable, native: Callable, timed: Callable, peak: Callable | None
) -> list[str]:
    """Medians of 30 turns each, and the norm of the difference of the two results, relative."""
    for call in (ours, native):
        for _ in range(5):
            timed(call)
    times: dict[str, list[float]] = {"ours": [], "native": []}
    for _ in range(30):
        times["native"].append(timed(native))
        times["ours"].append(timed(ours))
    mine, theirs = (statistics.median(times[k]) for k in ("ours", "native"))
    peaks = "-" if peak is None else f"{peak(ours):.0f} / {peak(native):.0f}"
    off = max(distance(a, b) for a, b in zip(flat(ours()), flat(native())))
    return [label, f"{theirs:.3f}", f"{mine:.3f}", f"{mine / theirs:.3f}x", f"{off:.1e}", peaks]


def flat(out: Any) -> list[np.ndarray]:
    parts = out if isinstance(out, (tuple, list)) else [out]
    return [np.asarray(iso.to_numpy(x)).astype(np.float64) for x in parts]


def distance(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30))


def main() -> None:
    rows = []
    for name, find in (("torch", torch_rows), ("jax", jax_rows)):
        if importlib.util.find_spec(name) is not None:
            rows += find()
    print(Table(HEAD, rows).markdown)


if __name__ == "__main__":
    main()
