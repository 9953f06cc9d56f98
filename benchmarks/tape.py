"""Value and gradient on plain NumPy, compared with HIPS autograd on the same program; torch eager
is shown for scale.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import autograd
import autograd.numpy as anp
import numpy as np
import torch

import isomorph as iso

from .tables import Table
from .timing import minima


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


def run() -> Table:
    torch.set_num_threads(1)
    out = []
    for label, (program, params, data) in programs().items():
        ours = iso.value_and_grad(program(np))
        hips = autograd.value_and_grad(program(anp))
        there, data_there = iso.convert(params, "torch"), iso.convert(data, "torch")
        leaves = [x.requires_grad_() for x in iso.tree.flatten(there)[0]]

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
    return Table([*head, "isomorph / HIPS", "budget", "met", "isomorph / torch"], out)


def check(ours: Any, hips: Any) -> None:
    """Check that both give the same numbers; otherwise the comparison has no value."""
    for a, b in zip(iso.tree.flatten(ours)[0], iso.tree.flatten(hips)[0]):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-6)


if __name__ == "__main__":
    print(run().markdown)
