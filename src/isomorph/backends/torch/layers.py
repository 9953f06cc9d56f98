"""What torch has of its own for layers."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from ..base import Backend


class Layers(Backend):
    """Methods of the torch backend; what they leave to `super()` torch cannot do."""

    def linear(xp, x: Any, weight: Any, bias: Any) -> Any:
        return F.linear(x, weight, bias) if weight.ndim == 2 else super().linear(x, weight, bias)

    def relu(xp, x: Any) -> Any:
        return torch.relu(x)

    def leaky_relu(xp, x: Any, alpha: float) -> Any:
        return F.leaky_relu(x, alpha)

    def elu(xp, x: Any, alpha: float) -> Any:
        return F.elu(x, alpha)

    def gelu(xp, x: Any, approximate: bool) -> Any:
        return F.gelu(x, approximate="tanh" if approximate else "none")

    def silu(xp, x: Any) -> Any:
        return F.silu(x)

    def softplus(xp, x: Any) -> Any:
        return F.softplus(x, threshold=50)  # where torch takes x itself: at 20 that is seen

    def mish(xp, x: Any) -> Any:
        return F.mish(x)

    def sigmoid(xp, x: Any) -> Any:
        return torch.sigmoid(x)

    def softmax(xp, x: Any, axis: int) -> Any:
        return torch.softmax(x, axis)

    def log_softmax(xp, x: Any, axis: int) -> Any:
        return torch.log_softmax(x, axis)

    def logsumexp(xp, x: Any, axis: Any, keepdims: bool) -> Any:
        return torch.logsumexp(x, tuple(range(x.ndim)) if axis is None else axis, keepdims)

    def take_rows(xp, weight: Any, ids: Any) -> Any:
        return F.embedding(ids, weight) if weight.ndim == 2 else super().take_rows(weight, ids)

    def layer_norm(xp, x: Any, weight: Any, bias: Any, axes: tuple, epsilon: float) -> Any:
        if axes != tuple(range(x.ndim - len(axes), x.ndim)):
            return super().layer_norm(x, weight, bias, axes, epsilon)
        return F.layer_norm(x, x.shape[axes[0] :], weight, bias, epsilon)
