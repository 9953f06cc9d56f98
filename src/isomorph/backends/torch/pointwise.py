"""Special functions in torch: an `autograd.Function` whose derivatives, forward and backward, are
formulas, and which torch.func can map because it works element by element.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch

from ...dispatch import load
from .private import unwrap_if_dead

# Kernels of torch that are as accurate as ours on the whole domain, by the tests of tests/special.
KERNELS = {
    "entr": torch.special.entr,
    "erfc": torch.special.erfc,
    "erfinv": torch.special.erfinv,
    "expit": torch.special.expit,
    "log_expit": torch.nn.functional.logsigmoid,
    "logit": torch.special.logit,
    "ndtri": torch.special.ndtri,
    "sinc": torch.special.sinc,
    "xlog1py": torch.special.xlog1py,
    "xlogy": torch.special.xlogy,
}


# Kernels with a thousand steps and with loops are one operator in a program: Inductor writes every
# shared value out again where it is used, and takes minutes for them.
LONG = {"bessel", "bessel_modified", "beta", "gamma", "incomplete", "incomplete_beta"}


def is_long(function: Any) -> bool:
    return function.kernel.__module__.rpartition(".")[2] in LONG


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
