"""Value and gradient on plain NumPy, compared with HIPS autograd on the same program; torch eager
is shown for scale. Arrays that are filled in a loop, compared with lists.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import autograd
import autograd.numpy as anp
import numpy as np
import torch

import isomorph as iso
import isomorph.numpy as inp
from isomorph.core import tree

from .tables import Table
from .timing import minima

ONE = np.ones(3)


def mlp(np: Any) -> Callable:
    def loss(params, x, y):
        for w, b in params[:-1]:
            x = np.tanh(np.matmul(x, w) + b)
        w, b = params[-1]
        return np.mean((np.matmul(x, w) + b - y) ** 2)

    return loss


def transformer(np: Any) -> Callable:
    """Two pre-norm blocks of causal attention and a gelu network, mean squared output."""

    def norm(x, scale):
        centred = x - np.mean(x, axis=-1, keepdims=True)
        return centred / np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + 1e-5) * scale

    def softmax(s):
        e = np.exp(s - np.max(s, axis=-1, keepdims=True))
        return e / np.sum(e, axis=-1, keepdims=True)

    def heads(x, n):
        b, t, d = x.shape
        return np.swapaxes(np.reshape(x, (b, t, n, d // n)), 1, 2)

    def loss(params, x, mask):
        b, t, d = x.shape
        for p in params:
            h = norm(x, p["n1"])
            q, k, v = (heads(np.matmul(h, p[w]), 4) for w in ("q", "k", "v"))
            s = np.matmul(q, np.swapaxes(k, -1, -2)) * (d // 4) ** -0.5 + mask
            a = np.matmul(softmax(s), v)
            x = x + np.matmul(np.reshape(np.swapaxes(a, 1, 2), (b, t, d)), p["o"])
            h = np.matmul(norm(x, p["n2"]), p["up"])
            h = 0.5 * h * (1 + np.tanh(0.7978845608 * (h + 0.044715 * h * h * h)))
            x = x + np.matmul(h, p["down"])
        return np.mean(x * x)

    return loss


class TorchNumPy:
    """The NumPy names that the two programs use, implemented with torch."""

    tanh, exp, sqrt, matmul = torch.tanh, torch.exp, torch.sqrt, torch.matmul
    reshape, swapaxes = torch.reshape, torch.swapaxes
    mean = staticmethod(
        lambda x, axis=None, keepdims=False: (
            torch.mean(x, axis, keepdims) if axis else torch.mean(x)
        )
    )
    sum = staticmethod(lambda x, axis, keepdims: torch.sum(x, axis, keepdims))
    max = staticmethod(lambda x, axis, keepdims: torch.amax(x, axis, keepdims))


def programs() -> dict[str, tuple[Callable, Any, tuple]]:
    rng = np.random.default_rng(0)
    normal = lambda *shape: (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)
    sizes = [64, 128, 128, 10]
    layers = [(normal(i, o), np.zeros(o, np.float32)) for i, o in pairwise(sizes)]
    d, t = 64, 32
    ones = np.ones(d, np.float32)
    block = lambda: {
        **{w: normal(d, d) for w in ("q", "k", "v", "o")},
        "up": normal(d, 4 * d), "down": normal(4 * d, d), "n1": ones, "n2": ones,
    }  # fmt: skip
    mask = np.where(np.tril(np.ones((t, t))) > 0, 0, -1e9).astype(np.float32)
    return {
        "MLP 64-128-128-10, batch 64": (mlp, layers, (normal(64, 64), normal(64, 10))),
        "transformer, 2 blocks, width 64, 8 x 32 tokens": (
            transformer,
            [block(), block()],
            (rng.standard_normal((8, t, d)).astype(np.float32), mask),
        ),
    }


def filled(n: int) -> Callable:
    """r[i] = a * r[i - 1] + x[i], written into an array."""

    def loss(x):
        r = inp.zeros(n)
        r[0] = x[0]
        for i in range(1, n):
            r[i] = 0.9 * r[i - 1] + x[i]
        return np.sum(r * r)

    return loss


def stacked(n: int) -> Callable:
    """The same as a list."""

    def loss(x):
        r = [x[0]]
        for i in range(1, n):
            r.append(0.9 * r[-1] + x[i])
        found = np.stack(r)
        return np.sum(found * found)

    return loss


def writes() -> list[Table]:
    """An array that is filled in a loop, and new arrays of `isomorph.numpy`."""
    rows = []
    for n in (100, 1000, 10_000):
        x = np.cos(np.arange(float(n)))
        ours, peer = iso.value_and_grad(filled(n)), iso.value_and_grad(stacked(n))
        check(ours(x), peer(x))
        best = minima({"ours": partial(ours, x), "peer": partial(peer, x)}, rounds=5, slice_s=0.1)
        ratio = best["ours"] / best["peer"]
        times = [f"{best[who] * 1e3:.1f}" for who in ("ours", "peer")]
        rows.append([f"{n} numbers", *times, f"{ratio:.2f}x", "3x", "yes" if ratio <= 3 else "NO"])
    head = ["r[i] = a * r[i - 1] + x[i], value and gradient", "written ms", "list and np.stack ms"]
    loops = Table([*head, "written / list", "budget", "met"], rows)
    makers = {
        "zeros(3)": lambda np: np.zeros(3), "array([1.0, 2.0])": lambda np: np.array([1.0, 2.0]),
        "empty((2, 2))": lambda np: np.empty((2, 2)), "full(3, 1.0)": lambda np: np.full(3, 1.0),
        "arange(3.0)": lambda np: np.arange(3.0), "ones_like(x)": lambda np: np.ones_like(ONE),
    }  # fmt: skip
    rows = []
    for name, make in makers.items():
        both = {"ours": partial(make, inp), "numpy": partial(make, np)}
        best = minima(both, rounds=20, slice_s=1e-2)
        more = (best["ours"] - best["numpy"]) * 1e6
        times = [f"{best[who] * 1e6:.2f}" for who in both]
        rows.append([name, *times, f"+{more:.2f} µs", "0.6 µs", "yes" if more <= 0.6 else "NO"])
    head = ["a new array", "isomorph.numpy µs", "NumPy µs", "more", "budget", "met"]
    return [loops, Table(head, rows)]


def run() -> list[Table]:
    torch.set_num_threads(1)
    out = []
    for label, (program, params, data) in programs().items():
        ours = iso.value_and_grad(program(np))
        hips = autograd.value_and_grad(program(anp))
        there, data_there = iso.convert(params, "torch"), iso.convert(data, "torch")
        leaves = [x.requires_grad_() for x in tree.flatten(there)[0]]

        def eager(program=program, there=there, data_there=data_there, leaves=leaves):
            value = program(TorchNumPy)(there, *data_there)
            return value, torch.autograd.grad(value, leaves)

        check(ours(params, *data), hips(params, *data))
        best = minima(
            {
                "plain": lambda: program(np)(params, *data),  # noqa: B023
                "ours": lambda: ours(params, *data),  # noqa: B023
                "hips": lambda: hips(params, *data),  # noqa: B023
                "torch": eager,
            },
            rounds=40,
            slice_s=2e-2,
        )
        ratio = best["ours"] / best["hips"]
        out.append(
            [
                label,
                *(f"{best[k] * 1e6:.0f}" for k in ("plain", "ours", "hips", "torch")),
                f"{ratio:.2f}x",
                "0.6x",
                "yes" if ratio <= 0.6 else "NO",
                f"{best['ours'] / best['torch']:.2f}x",
            ]
        )
    head = [
        "value and gradient, float32",
        "forward µs",
        "isomorph µs",
        "HIPS autograd µs",
        "torch eager µs",
    ]
    table = Table([*head, "isomorph / HIPS", "budget", "met", "isomorph / torch"], out)
    return [table, *writes()]


def check(ours: Any, hips: Any) -> None:
    """Check that both give the same numbers; otherwise the comparison has no value."""
    for a, b in zip(tree.flatten(ours)[0], tree.flatten(hips)[0]):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-6)


if __name__ == "__main__":
    for table in run():
        print(table.markdown)
