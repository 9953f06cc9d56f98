"""Torch's own functions for layers."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from ...meanings.bounds import refuse
from ...meanings.loss import reduced
from ...meanings.norm import BatchNormPlan
from ...meanings.pooling import PoolPlan
from ..composed import Backend
from . import pooling, private
from .compiling import is_tracing
from .fused import is_foreign, is_mapped, is_watched

# Looked up here, because Dynamo, which reads the code below, cannot look them up.
CROSS_ENTROPY: Any = private.cross_entropy_loss
HAS_CROSS_ENTROPY = private.has("cross_entropy_loss")

REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
NOBODY = -(1 << 63)  # the label for torch to ignore if none is ignored: it cannot occur


class Layers(Backend):
    """Methods of the torch backend; cases that torch cannot do are left to `super()`."""

    def linear(xp, x: Any, weight: Any, bias: Any) -> Any:
        return F.linear(x, weight, bias) if weight.ndim == 2 else super().linear(x, weight, bias)

    def linear_at_once(xp, x: Any, weight: Any, bias: Any) -> Any:
        if weight.ndim != 2 or not x.ndim:
            return None
        dtype, (out, into) = weight.dtype, weight.shape
        if x.dtype is not dtype or x.shape[-1] != into:
            return None
        if bias is not None and (bias.dtype is not dtype or bias.ndim != 1 or bias.shape[0] != out):
            return None
        return F.linear(x, weight, bias)

    def solve_triangular(xp, a: Any, b: Any, lower: bool, trans: str, unit: bool) -> Any:
        if trans != "N":
            a, lower = a.mH if trans == "C" else a.mT, not lower
        return torch.linalg.solve_triangular(a, b, upper=not lower, unitriangular=unit)

    def lu(xp, a: Any) -> tuple:
        both, pivots, info = torch.linalg.lu_factor_ex(a)  # vmap has a rule for it, not for lu
        if a.is_cuda and not is_tracing() and info.any():
            return super().lu(a)  # CUDA's kernel has divided by a pivot of 0
        return tuple(torch.lu_unpack(both, pivots))

    def eig(xp, a: Any) -> tuple:
        return tuple(torch.linalg.eig(a))

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

    def thirds(xp, x: Any) -> Any:
        return x.chunk(3, -1)  # its gradient is one array, not a sum of three

    def softplus(xp, x: Any) -> Any:
        # beyond the threshold the result is x itself; torch's default, 20, is not exact
        return F.softplus(x, threshold=50)

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
        # torch.embedding checks the ids itself, on every device
        places = ids if ids.dtype in (torch.int64, torch.int32) else ids.long()
        table = weight if weight.ndim == 2 else weight.reshape(weight.shape[0], -1)
        try:
            found = torch.embedding(table, places)
        except IndexError:
            _refuse(xp, "embedding", ids, weight.shape[0], "ids")
            raise
        return found if weight.ndim == 2 else found.reshape(*ids.shape, *weight.shape[1:])

    def layer_norm(xp, x: Any, weight: Any, bias: Any, axes: tuple, epsilon: float) -> Any:
        n = x.ndim
        last = axes == (n - 1,) or axes == tuple(range(n - len(axes), n))
        if not last:
            return super().layer_norm(x, weight, bias, axes, epsilon)
        if is_mapped():  # under vmap the kernel's second derivatives are wrong
            narrow = x.dtype in (torch.float16, torch.bfloat16)  # it computes in float32
            wide = lambda p: p.float() if narrow and p is not None else p
            y = super().layer_norm(wide(x), wide(weight), wide(bias), axes, epsilon)
            return y.to(x.dtype)
        return torch.layer_norm(x, x.shape[axes[0] :], weight, bias, epsilon)

    def batch_norm(
        xp,
        x: Any,
        mean: Any,
        variance: Any,
        weight: Any,
        bias: Any,
        plan: BatchNormPlan,
    ) -> tuple[Any, Any, Any]:
        training, momentum, epsilon, channel = plan
        kept = (mean, variance)
        dtypes = {p.dtype for p in (x, *kept, weight, bias) if p is not None}
        # the kernel takes one dtype, updates statistics in place, and has no gradient with respect
        # to them; where it divides by a variance of 0, it gives 0
        number = isinstance(epsilon, (int, float)) and epsilon > 0
        alone = dtypes == {x.dtype} and number and x.dtype in (torch.float32, torch.float64)
        if not (training and alone and x.numel()) or is_foreign() or any(map(is_watched, kept)):
            return super().batch_norm(x, mean, variance, weight, bias, plan)
        size = x.shape[channel]
        if weight is None and bias is not None:  # the second derivative needs both or neither
            weight = torch.ones_like(bias)
        flat = channel == x.ndim - 1 != 3
        # channels second in shape; the kernel recognises channels that are last in memory
        whole = x.reshape(1, -1, 1, size).permute(0, 3, 1, 2) if flat else x.movedim(channel, 1)
        centre, spread = (p.detach().clone() for p in kept)
        y = torch.native_batch_norm(whole, weight, bias, centre, spread, True, momentum, epsilon)[0]
        y = y.permute(0, 2, 3, 1).reshape(x.shape) if flat else y.movedim(1, channel)
        return y, centre, spread

    def cross_entropy(
        xp,
        logits: Any,
        labels: Any,
        axis: int,
        smoothing: float,
        ignored: int | None,
        reduction: str,
    ) -> Any:
        hard = not labels.is_floating_point()
        mixed = not hard and labels.dtype != logits.dtype
        if not logits.is_floating_point() or mixed or not HAS_CROSS_ENTROPY:
            return super().cross_entropy(logits, labels, axis, smoothing, ignored, reduction)
        if hard and labels.dtype is not torch.int64:
            labels = labels.long()
        n, shape = logits.ndim, None
        if axis and axis == n - 1 > 1:  # torch needs the classes second: the other axes become one
            shape = logits.shape[:-1]
            logits = logits.reshape(-1, logits.shape[-1])
            labels = labels.reshape(-1) if hard else labels.reshape(logits.shape)
        elif n > 1 and axis != 1:
            logits = logits.movedim(axis, 1)
            labels = labels if hard else labels.movedim(axis, 1)
        none = NOBODY if ignored is None else ignored
        # the kernel sums in the given dtype; float16 ends at 65504
        alone = reduction != "counted" and logits.dtype in (torch.float32, torch.float64)
        how = REDUCTIONS[reduction if alone else "none"]
        try:
            loss = CROSS_ENTROPY(logits, labels, None, how, none, smoothing)
        except IndexError:
            wrong = labels if ignored is None else labels[labels != ignored]
            _refuse(xp, "cross_entropy", wrong, logits.shape[min(1, logits.ndim - 1)], "labels")
            raise
        if not alone and reduction != "none":
            return reduced(xp, loss, reduction, None if ignored is None else labels != ignored)
        return loss if shape is None or reduction != "none" else loss.reshape(shape)

    def pool(xp, x: Any, plan: PoolPlan) -> Any:
        return pooling.pool(x, plan) if pooling.takes(x, plan) else super().pool(x, plan)


def _refuse(xp: Any, name: str, numbers: Any, size: int, what: str) -> None:
    """Raise an error that names the number out of range; under vmap it names only the range."""
    if is_foreign():  # the numbers cannot be read
        raise IndexError(f"{name}: needed {what} from 0 to {size - 1}") from None
    refuse(xp, name, numbers, size, what)
