"""Training steps in plain NumPy with the gradients of HIPS autograd, and Adam by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import autograd
import autograd.numpy as np
import numpy

from isomorph.core import tree

from .cases import DECAY, RATE, Case


def dense(x: Any, p: Any) -> Any:
    return np.matmul(x, p[0]) + p[1]


def layer_norm(x: Any, p: Any) -> Any:
    x = x - np.mean(x, axis=-1, keepdims=True)
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5) * p[0] + p[1]


def mlp(params: Any, x: Any, heads: int) -> Any:
    for p in params[:-1]:
        x = np.maximum(dense(x, p), 0)
    return dense(x, params[-1])


def gpt(params: Any, ids: Any, heads: int) -> Any:
    x = params["words"][ids] + params["places"]
    n, length, width = x.shape
    mask = numpy.where(numpy.tril(numpy.ones((length, length))) > 0, 0, -1e30).astype("float32")
    scale = numpy.float32((width // heads) ** -0.5)
    for p in params["blocks"]:
        parts = dense(layer_norm(x, p["before"]), p["qkv"])
        parts = np.reshape(parts, (n, length, 3, heads, width // heads))
        q, k, v = (np.swapaxes(parts[:, :, i], 1, 2) for i in range(3))
        s = np.matmul(q, np.swapaxes(k, -1, -2)) * scale + mask
        e = np.exp(s - np.max(s, axis=-1, keepdims=True))
        y = np.matmul(e / np.sum(e, axis=-1, keepdims=True), v)
        x = x + dense(np.reshape(np.swapaxes(y, 1, 2), (n, length, width)), p["out"])
        h = dense(layer_norm(x, p["after"]), p["up"])
        h = 0.5 * h * (1 + np.tanh(0.7978845608 * (h + 0.044715 * h * h * h)))
        x = x + dense(h, p["down"])
    return np.matmul(layer_norm(x, params["norm"]), params["head"])


FORWARD = {"mlp": mlp, "gpt": gpt}


def hips(case: Case) -> Callable[[], Any]:
    forward, x, y = FORWARD[case.kind], case.x, case.y.reshape(-1)
    rows = numpy.arange(y.size)

    def objective(params: Any) -> Any:
        z = forward(params, x, case.heads)
        z = np.reshape(z, (y.size, z.shape[-1]))
        top = z - np.max(z, axis=-1, keepdims=True)
        return np.mean(np.log(np.sum(np.exp(top), axis=-1)) - top[rows, y])

    found, params = autograd.value_and_grad(objective), case.weights()
    leaves = tree.flatten(params)[0]
    first, second = ([numpy.zeros_like(p) for p in leaves] for _ in range(2))
    decay, t = DECAY if case.rule == "adamw" else 0.0, 0

    def run() -> Any:
        nonlocal t
        t += 1
        value, grads = found(params)
        rate, wide = RATE / (1 - 0.9**t), (1 - 0.999**t) ** 0.5
        for p, m, v, g in zip(leaves, first, second, tree.flatten(grads)[0]):
            m *= 0.9
            m += 0.1 * g
            v *= 0.999
            v += 0.001 * g * g
            p *= 1 - RATE * decay
            p -= rate * m / (numpy.sqrt(v) / wide + 1e-8)
        return value

    return run


def peers(case: Case) -> dict[str, Callable[[], Callable[[], Any]]]:
    return {"HIPS autograd": lambda: hips(case)} if case.kind in FORWARD else {}
