"""Special functions in torch: an `autograd.Function` whose derivatives, forward and backward, are
formulas, and which torch.func can map because it works element by element.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import torch

from ...core.dispatch import load
from .private import unwrap_if_dead


def digamma(x: torch.Tensor) -> torch.Tensor:
    """torch's own has no right digit close to negative integers, which it rounds."""
    mirrored = x < -0.5
    rest = x - torch.round(x)
    pole = torch.where(rest == 0, torch.nan, math.pi / torch.tan(math.pi * rest))
    return torch.where(mirrored, torch.digamma(1 - x) - pole, torch.digamma(x))


def gammaln(x: torch.Tensor) -> torch.Tensor:
    """torch's own, with SciPy's value at −inf, which is the other infinity."""
    return torch.where(x == -torch.inf, x, torch.lgamma(x))


def i0(x: torch.Tensor) -> torch.Tensor:
    """torch's own overflows too early."""
    half = torch.exp(0.5 * torch.abs(x))
    return torch.special.i0e(x) * half * half


def i1(x: torch.Tensor) -> torch.Tensor:
    half = torch.exp(0.5 * torch.abs(x))
    return i1e(x) * half * half


def i1e(x: torch.Tensor) -> torch.Tensor:
    """torch's own has errors of eight units in float32, and loses the sign of 0."""
    wide = x if x.device.type == "mps" else x.to(torch.float64)  # Apple's has no float64
    return torch.copysign(torch.special.i1e(wide), wide).to(x.dtype)


# Kernels of torch that are as accurate as ours on the whole domain, also compiled and for tensors
# with gaps, by the tests of tests/special. Not among them: erfinv, of which only MKL's is right.
KERNELS = {
    "digamma": digamma,
    "entr": torch.special.entr,
    "erfc": torch.special.erfc,
    "expit": torch.special.expit,
    "gammaln": gammaln,
    "i0": i0,
    "i0e": torch.special.i0e,
    "i1": i1,
    "i1e": i1e,
    "log_expit": torch.nn.functional.logsigmoid,
    "logit": torch.special.logit,
    "ndtri": torch.special.ndtri,
    "sinc": torch.special.sinc,
    "xlog1py": torch.special.xlog1py,
    "xlogy": torch.special.xlogy,
}


# Long kernels are one operator in a program: Inductor writes every shared value out again where it
# is used, and takes minutes for them.
@torch.library.custom_op("isomorph::special", mutates_args=())
def long_kernel(module: str, name: str, arrays: list[torch.Tensor]) -> torch.Tensor:
    return getattr(import_module(module), name).kernel(load("torch"), *arrays)


@long_kernel.register_fake
def _(module: str, name: str, arrays: list[torch.Tensor]) -> torch.Tensor:
    return torch.empty(arrays[0].shape, dtype=arrays[0].dtype, device=arrays[0].device)


@long_kernel.register_vmap
def _(info: Any, in_dims: Any, module: str, name: str, arrays: list[torch.Tensor]) -> tuple:
    moved = [
        x.movedim(dim, 0) if dim is not None else x.expand(info.batch_size, *x.shape)
        for x, dim in zip(arrays, in_dims[2])
    ]
    return long_kernel(module, name, moved), 0


class Pointwise(torch.autograd.Function):
    """A `Smooth` function of tensors of one shape and dtype."""

    @staticmethod
    # pyright: ignore[reportIncompatibleMethodOverride]
    def forward(xp: Any, function: Any, *arrays: torch.Tensor) -> torch.Tensor:
        y = xp.special(function, *arrays)
        return y.view_as(y) if any(y is x for x in arrays) else y

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: torch.Tensor) -> None:
        ctx.xp, ctx.function, *arrays = inputs
        ctx.save_for_backward(*arrays)
        ctx.save_for_forward(*arrays)
        ctx.set_materialize_grads(False)  # an order that is constant has no tangent

    @staticmethod
    # pyright: ignore[reportIncompatibleMethodOverride]
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple:
        # these tensors may belong to a torch.func level that ended before the pullback was called
        arrays, grad = tuple(map(unwrap_if_dead, ctx.saved_tensors)), unwrap_if_dead(grads[0])
        wanted = ctx.needs_input_grad[2:]
        y = None
        if any(w and r for w, r in zip(wanted, ctx.function.reads)):
            y = ctx.function(ctx.xp, *arrays)
        return (
            None,
            None,
            *(
                grad * ctx.function.slope(ctx.xp, i, y, arrays) if w else None
                for i, w in enumerate(wanted)
            ),
        )

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        arrays = ctx.saved_tensors
        parts = [
            t * ctx.function.slope(ctx.xp, i, None, arrays)
            for i, t in enumerate(tangents[2:])
            if t is not None
        ]
        return sum(parts[1:], parts[0])

    @staticmethod
    def vmap(info: Any, in_dims: tuple, *args: Any) -> tuple:
        xp, function, *arrays = args
        moved = [
            x.movedim(dim, 0) if dim is not None else x.expand(info.batch_size, *x.shape)
            for x, dim in zip(arrays, in_dims[2:])
        ]
        return function(xp, *moved), 0
