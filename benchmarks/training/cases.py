"""The networks that are trained, as modules of isomorph, with their batches. Their weights are also
given as a plain nest of NumPy arrays, which every peer starts from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

import isomorph as iso

RATE, DECAY = 1e-4, 0.01


class MLP(iso.Module):
    def __init__(self, sizes: tuple[int, ...]):
        self.layers = [iso.Linear(i, o) for i, o in pairwise(sizes)]

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = iso.relu(layer(x))
        return self.layers[-1](x)


class Residual(iso.Module):
    def __init__(self, before: int, after: int, stride: int):
        conv = partial(iso.Conv2D, bias=False)
        self.conv1, self.norm1 = conv(before, after, 3, stride, 1), iso.BatchNorm(after)
        self.conv2, self.norm2 = conv(after, after, 3, 1, 1), iso.BatchNorm(after)
        self.short = self.short_norm = None
        if stride > 1 or before != after:
            self.short, self.short_norm = conv(before, after, 1, stride, 0), iso.BatchNorm(after)

    def forward(self, x):
        y = iso.relu(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        return iso.relu(y + (x if self.short is None else self.short_norm(self.short(x))))


class ResNet18(iso.Module):
    """For images of 32 x 32: a stem of 3 x 3 and no pooling before the end."""

    def __init__(self, width: int, classes: int = 10):
        self.stem, self.norm = iso.Conv2D(3, width, 3, 1, 1, bias=False), iso.BatchNorm(width)
        widths = [width, width, 2 * width, 4 * width, 8 * width]
        self.blocks = [
            Residual(before if i == 0 else after, after, 2 if i == 0 and after != width else 1)
            for before, after in pairwise(widths)
            for i in range(2)
        ]
        self.head = iso.Linear(8 * width, classes)

    def forward(self, x):
        x = iso.relu(self.norm(self.stem(x)))
        for block in self.blocks:
            x = block(x)
        xp = iso.namespace(x)
        return self.head(xp.mean(x, axis=(1, 2)))


class Block(iso.Module):
    def __init__(self, width: int, heads: int):
        self.before, self.after = iso.LayerNorm(width), iso.LayerNorm(width)
        self.attention = iso.MultiHeadAttention(width, heads)
        self.up, self.down = iso.Linear(width, 4 * width), iso.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.before(x), is_causal=True)
        return x + self.down(iso.gelu(self.up(self.after(x)), approximate=True))


class GPT(iso.Module):
    def __init__(
        self, vocabulary: int, tokens: int, width: int, heads: int, blocks: int,
        checkpointed: bool = False,
    ):  # fmt: skip
        self.words = iso.Embedding(vocabulary, width)
        self.places = iso.Embedding(tokens, width)
        self.blocks = [Block(width, heads) for _ in range(blocks)]
        self.norm = iso.LayerNorm(width)
        self.head = iso.Linear(width, vocabulary, bias=False)
        self.checkpointed = checkpointed

    def forward(self, ids):
        x = self.words(ids) + self.places.w
        for block in self.blocks:
            x = iso.checkpoint(block)(x) if self.checkpointed else block(x)
        return self.head(self.norm(x))


def loss(model: Any, x: Any, y: Any) -> Any:
    return iso.cross_entropy(model(x), y)


@dataclass(frozen=True)
class Case:
    """A network, how to make it, one batch, and the optimizer that trains it."""

    kind: str
    label: str
    make: Callable[[], iso.Module]
    x: np.ndarray
    y: np.ndarray
    rule: str  # adam or adamw
    heads: int = 0

    def model(self, backend: str) -> Any:
        """The network on a backend; the key gives the same weights on every backend."""
        with iso.use_backend(backend), iso.use_key(0):
            return self.make()

    @property
    def optimizer(self) -> Any:
        if self.rule == "adam":
            return iso.optimizers.adam(RATE)
        return iso.optimizers.adamw(RATE, weight_decay=DECAY)

    def weights(self) -> Any:
        """The weights as NumPy arrays: matrices [in, out], filters [height, width, in, out]."""
        return WEIGHTS[self.kind](self.model("numpy"))


def pair(layer: Any) -> list[np.ndarray]:
    """The weight and bias of a norm, or of a Linear, whose weight is transposed."""
    w = layer.w.T.copy() if layer.w.ndim == 2 else layer.w
    return [w, layer.b]


def mlp_weights(net: Any) -> list:
    return [pair(layer) for layer in net.layers]


def resnet_weights(net: Any) -> dict:
    def block(b: Any) -> dict:
        found = {
            "conv1": b.conv1.w, "norm1": pair(b.norm1), "conv2": b.conv2.w, "norm2": pair(b.norm2),
        }  # fmt: skip
        if b.short is not None:
            found |= {"short": b.short.w, "short_norm": pair(b.short_norm)}
        return found

    return {
        "stem": net.stem.w, "norm": pair(net.norm), "blocks": [block(b) for b in net.blocks],
        "head": pair(net.head),
    }  # fmt: skip


def gpt_weights(net: Any) -> dict:
    block = lambda b: {
        "before": pair(b.before), "after": pair(b.after), "up": pair(b.up), "down": pair(b.down),
        "qkv": [b.attention.in_w.T.copy(), b.attention.in_b],
        "out": [b.attention.out_w.T.copy(), b.attention.out_b],
    }  # fmt: skip
    return {
        "words": net.words.w, "places": net.places.w, "blocks": [block(b) for b in net.blocks],
        "norm": pair(net.norm), "head": net.head.w.T.copy(),
    }  # fmt: skip


WEIGHTS = {"mlp": mlp_weights, "resnet": resnet_weights, "gpt": gpt_weights}


def strides(weights: dict) -> list[int]:
    """The strides of the blocks of a ResNet: 2 for blocks that change the width, else 1."""
    return [1 if b["conv1"].shape[2] == b["conv1"].shape[3] else 2 for b in weights["blocks"]]


def mlp(quick: bool = False, batch: int | None = None) -> Case:
    sizes, batch = (64, 64, 10) if quick else (784, 512, 512, 10), batch or (16 if quick else 128)
    rng = np.random.default_rng(1)
    return Case(
        "mlp", f"MLP {'-'.join(map(str, sizes))}, batch {batch}", lambda: MLP(sizes),
        rng.standard_normal((batch, sizes[0]), np.float32),
        rng.integers(0, sizes[-1], batch).astype(np.int32), "adam",
    )  # fmt: skip


def resnet(quick: bool = False) -> Case:
    width, batch = (4, 2) if quick else (64, 16)
    rng = np.random.default_rng(1)
    return Case(
        "resnet", f"ResNet-18, width {width}, 32 x 32, batch {batch}", lambda: ResNet18(width),
        rng.standard_normal((batch, 32, 32, 3), np.float32),
        rng.integers(0, 10, batch).astype(np.int32), "adam",
    )  # fmt: skip


def gpt(
    quick: bool = False, *, vocabulary: int = 1000, tokens: int = 64, width: int = 192,
    heads: int = 6, blocks: int = 6, batch: int = 8, checkpointed: bool = False,
) -> Case:  # fmt: skip
    if quick:
        vocabulary, tokens, width, heads, blocks, batch = 50, 8, 16, 2, 2, 2
    ids = np.random.default_rng(1).integers(0, vocabulary, (batch, tokens + 1)).astype(np.int32)
    return Case(
        "gpt", f"GPT, {blocks} blocks of {width}, {batch} x {tokens} tokens",
        lambda: GPT(vocabulary, tokens, width, heads, blocks, checkpointed),
        ids[:, :-1].copy(), ids[:, 1:].copy(), "adamw", heads,
    )  # fmt: skip


CASES = {"mlp": mlp, "resnet": resnet, "gpt": gpt}
