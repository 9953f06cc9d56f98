"""Training steps on torch as users write them: `torch.nn` with a fused optimizer, eager and
compiled, and a whole functional step in one `torch.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .cases import DECAY, RATE, Case, strides


def fill(layer: Any, p: Any) -> Any:
    """A layer of torch with weights from the common layout of `cases`."""
    w, b = p if isinstance(p, list) else (p, None)
    w = torch.from_numpy(w)
    if w.ndim == 4:
        w = w.permute(3, 2, 0, 1)
    with torch.no_grad():
        layer.weight.copy_(w.T if w.ndim == 2 and not isinstance(layer, nn.Embedding) else w)
        if b is not None:
            layer.bias.copy_(torch.from_numpy(b))
    return layer


def dense(p: Any) -> Any:
    w = p[0] if isinstance(p, list) else p
    return fill(nn.Linear(*w.shape, bias=isinstance(p, list)), p)


def conv(w: Any, stride: int) -> Any:
    size = w.shape[0]
    return fill(nn.Conv2d(w.shape[2], w.shape[3], size, stride, size // 2, bias=False), w)


class MLP(nn.Module):
    def __init__(self, weights: Any):
        super().__init__()
        self.layers = nn.ModuleList([dense(p) for p in weights])

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = F.relu(layer(x))
        return self.layers[-1](x)


class Residual(nn.Module):
    def __init__(self, p: Any, stride: int):
        super().__init__()
        norm = lambda: nn.BatchNorm2d(p["norm1"][0].size)
        self.conv1, self.norm1 = conv(p["conv1"], stride), norm()
        self.conv2, self.norm2 = conv(p["conv2"], 1), norm()
        self.short = nn.Sequential(conv(p["short"], stride), norm()) if "short" in p else None

    def forward(self, x):
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + (x if self.short is None else self.short(x)))


class ResNet(nn.Module):
    def __init__(self, weights: Any):
        super().__init__()
        self.stem = conv(weights["stem"], 1)
        self.norm = nn.BatchNorm2d(weights["norm"][0].size)
        blocks = [Residual(p, s) for p, s in zip(weights["blocks"], strides(weights))]
        self.blocks, self.head = nn.Sequential(*blocks), dense(weights["head"])

    def forward(self, x):
        return self.head(self.blocks(F.relu(self.norm(self.stem(x)))).mean((2, 3)))


class Block(nn.Module):
    def __init__(self, p: Any, heads: int):
        super().__init__()
        width = p["before"][0].size
        self.heads, self.before, self.after = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = dense(p["qkv"]), dense(p["out"])
        self.up, self.down = dense(p["up"]), dense(p["down"])

    def forward(self, x):
        n, length, width = x.shape
        parts = self.qkv(self.before(x)).view(n, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(n, length, width))
        return x + self.down(F.gelu(self.up(self.after(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, weights: Any, heads: int):
        super().__init__()
        self.words = fill(nn.Embedding(*weights["words"].shape), weights["words"])
        self.places = nn.Parameter(torch.from_numpy(weights["places"].copy()))
        self.blocks = nn.Sequential(*[Block(p, heads) for p in weights["blocks"]])
        self.norm, self.head = nn.LayerNorm(weights["words"].shape[1]), dense(weights["head"])

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.words(ids) + self.places)))


def network(case: Case, last: bool = False) -> tuple[Any, Any, Any]:
    """The network and its batch; the channels of images are first, or last in memory."""
    x, weights = torch.from_numpy(case.x), case.weights()
    if case.kind == "gpt":
        return GPT(weights, case.heads), x.long(), torch.from_numpy(case.y).long()
    y = torch.from_numpy(case.y).long()
    if case.kind == "mlp":
        return MLP(weights), x, y
    model, x = ResNet(weights), x.permute(0, 3, 1, 2).contiguous()
    if last:
        return (
            model.to(memory_format=torch.channels_last),
            x.to(memory_format=torch.channels_last),
            y,
        )
    return model, x, y


def objective(model: Any, x: Any, y: Any) -> Any:
    logits = model(x)
    return F.cross_entropy(logits.flatten(0, -2), y.flatten())


def usual(case: Case, compiled: bool, last: bool = False) -> Callable[[], Any]:
    """A step of forward, backward and a fused optimizer."""
    model, x, y = network(case, last)
    if case.rule == "adam":
        optimizer: Any = torch.optim.Adam(model.parameters(), RATE, fused=True)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), RATE, weight_decay=DECAY, fused=True)
    loss = torch.compile(objective, fullgraph=True) if compiled else objective

    def run() -> Any:
        optimizer.zero_grad(set_to_none=True)
        value = loss(model, x, y)
        value.backward()
        optimizer.step()
        return value.detach()

    return run


def whole(case: Case, last: bool = False) -> Callable[[], Any]:
    """A step in one graph: gradients by torch.func, and Adam by hand in place."""
    model, x, y = network(case, last)
    params = {name: p.detach() for name, p in model.named_parameters()}
    buffers = dict(model.named_buffers())
    first = {name: torch.zeros_like(p) for name, p in params.items()}
    second = {name: torch.zeros_like(p) for name, p in params.items()}
    decay = DECAY if case.rule == "adamw" else 0.0

    def call(params: Any, buffers: Any, x: Any, y: Any) -> Any:
        logits = torch.func.functional_call(model, (params, buffers), (x,))
        return F.cross_entropy(logits.flatten(0, -2), y.flatten())

    @torch.compile(fullgraph=True)
    def step(params: Any, buffers: Any, first: Any, second: Any, t: Any, x: Any, y: Any) -> Any:
        grads, value = torch.func.grad_and_value(call)(params, buffers, x, y)
        t += 1
        down, wide = 1 - 0.9**t, torch.sqrt(1 - 0.999**t)
        for name, g in grads.items():
            m, v, p = first[name], second[name], params[name]
            m.lerp_(g, 0.1)
            v.mul_(0.999).addcmul_(g, g, value=0.001)
            p.mul_(1 - RATE * decay).sub_(RATE / down * m / (v.sqrt() / wide + 1e-8))
        return value

    t = torch.zeros(())

    def run() -> Any:
        with torch.no_grad():
            return step(params, buffers, first, second, t, x, y)

    return run


def peers(case: Case) -> dict[str, Callable[[], Callable[[], Any]]]:
    # Channels last is faster for a ResNet. The whole step compiles for minutes: only that is run.
    last = case.kind == "resnet"
    found: dict[str, Callable] = {
        "torch.compile + fused": lambda: usual(case, True),
        "whole step in torch.compile": lambda: whole(case, last),
    }
    if last:
        found["torch.compile + fused, channels last"] = lambda: usual(case, True, True)
    return found


def eager_peers(case: Case) -> dict[str, Callable[[], Callable[[], Any]]]:
    found: dict[str, Callable] = {"torch eager + fused": lambda: usual(case, False)}
    if case.kind == "resnet":
        found["torch eager + fused, channels last"] = lambda: usual(case, False, True)
    return found
