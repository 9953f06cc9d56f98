"""Convolutions over the shapes of a ResNet: NumPy against torch eager on one thread, and the other
three against their framework's own call on the same arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import tensorflow as tf
import torch
import torch.nn.functional as F

import isomorph as iso

from .timing import minima, table

# name, x [batch, height, width, in], filters [k, k, in, out], stride, padding
SHAPES = [
    ("7 x 7 / 2, 3 to 64, 112²", (4, 112, 112, 3), (7, 7, 3, 64), 2, 3),
    ("3 x 3, 64 to 64, 56²", (4, 56, 56, 64), (3, 3, 64, 64), 1, 1),
    ("1 x 1, 256 to 64, 56²", (4, 56, 56, 256), (1, 1, 256, 64), 1, 0),
    ("3 x 3 / 2, 128 to 128, 56²", (4, 56, 56, 128), (3, 3, 128, 128), 2, 1),
    ("3 x 3, 256 to 256, 14²", (4, 14, 14, 256), (3, 3, 256, 256), 1, 1),
]
BUDGETS = {"forward": 1.5, "and backward": 2.0}


def arrays(x_shape: tuple, w_shape: tuple) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    draw = lambda shape: rng.standard_normal(shape, np.float32)
    return draw(x_shape), draw(w_shape) / np.float32(np.prod(w_shape[:-1]) ** 0.5)


def against_torch(rounds: int) -> list[list[str]]:
    """NumPy forward, and forward and backward, over torch's."""
    rows = []
    for label, x_shape, w_shape, stride, pad in SHAPES:
        x, w = arrays(x_shape, w_shape)
        # torch with its own layout and strides: channels first, in both
        tx = torch.from_numpy(x).permute(0, 3, 1, 2).contiguous().requires_grad_()
        tw = torch.from_numpy(w).permute(3, 2, 0, 1).contiguous().requires_grad_()

        def ours(x=x, w=w, stride=stride, pad=pad):
            return iso.conv2d(x, w, stride, pad)

        def theirs(tx=tx, tw=tw, stride=stride, pad=pad):
            with torch.no_grad():
                return F.conv2d(tx, tw, None, stride, pad)

        total = lambda x, w, stride=stride, pad=pad: np.sum(iso.conv2d(x, w, stride, pad))
        both = iso.value_and_grad(total, argnums=(0, 1))

        def theirs_both(tx=tx, tw=tw, stride=stride, pad=pad):
            y = F.conv2d(tx, tw, None, stride, pad).sum()
            return y, torch.autograd.grad(y, (tx, tw))

        np.testing.assert_allclose(
            ours(), theirs().permute(0, 2, 3, 1).numpy(), rtol=1e-3, atol=1e-3
        )
        calls = {
            "forward": (ours, theirs),
            "and backward": (lambda both=both, x=x, w=w: both(x, w), theirs_both),
        }
        for name, (a, b) in calls.items():
            best = minima({"ours": a, "theirs": b}, rounds=rounds, slice_s=1e-2)
            rows.append(row(f"{label}, {name}", best, BUDGETS[name]))
    return rows


def natives(stride: int, pad: int) -> dict[str, Callable]:
    """The framework's own call on `[batch, height, width, in]` and `[k, k, in, out]`."""
    pads = [[0, 0], [pad, pad], [pad, pad], [0, 0]]
    return {
        "torch": lambda x, w: F.conv2d(
            x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), None, stride, pad
        ).permute(0, 2, 3, 1),
        "jax": lambda x, w: jax.lax.conv_general_dilated(
            x, w, (stride,) * 2, ((pad, pad),) * 2, dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
        "tensorflow": lambda x, w: tf.nn.conv2d(x, w, stride, pads if pad else "VALID"),
    }


def against_native(rounds: int) -> list[list[str]]:
    rows = []
    for label, x_shape, w_shape, stride, pad in SHAPES:
        x, w = arrays(x_shape, w_shape)
        for backend, native in natives(stride, pad).items():
            a, b = iso.convert(x, backend), iso.convert(w, backend)
            done: Any = jax.block_until_ready if backend == "jax" else lambda y: y
            best = minima(
                {
                    "ours": lambda: done(iso.conv2d(a, b, stride, pad)),  # noqa: B023
                    "theirs": lambda: done(native(a, b)),  # noqa: B023
                },
                rounds=rounds,
                slice_s=1e-2,
            )
            rows.append(row(f"{backend}: {label}", best, 1.03))
    return rows


def row(label: str, best: dict[str, float], budget: float) -> list[str]:
    ratio = best["ours"] / best["theirs"]
    times = [f"{best[k] * 1e3:.2f}" for k in ("ours", "theirs")]
    return [label, *times, f"{ratio:.2f}x", f"{budget}x", "yes" if ratio <= budget else "NO"]


def run(rounds: int = 25) -> str:
    torch.set_num_threads(1)
    head = ["conv2d, float32, batch 4", "isomorph ms", "ms", "ratio", "budget", "met"]
    ours = table([head[0], "NumPy ms", "torch eager ms", *head[3:]], against_torch(rounds))
    native = table([head[0], "isomorph ms", "native ms", *head[3:]], against_native(rounds))
    return f"{ours}\n\n{native}"


if __name__ == "__main__":
    print(run())
