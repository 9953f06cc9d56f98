"""Pooling by torch's kernels, which pad both ends equally, by at most half a window.

If several values in a window are the maximum, torch gives the gradient to the first. Here they
share it, so the backward pass is our own: it finds again where the maxima are and how many.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import torch
from torch.nn import functional as F

from ...meanings.pooling import PoolPlan
from ...meanings.shapes import Sizes
from .convolution import BACK, TO
from .fused import is_watched
from .indexing import written
from .looping import is_traced
from .private import peek_interpreter_stack

MAX: Any = {1: torch.max_pool1d, 2: torch.max_pool2d, 3: torch.max_pool3d}
MEAN: Any = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


def takes(x: torch.Tensor, plan: PoolPlan) -> bool:
    """Whether torch has a kernel for this pooling."""
    return (
        x.dtype.is_floating_point
        and len(plan.window) in MAX
        and not any(low != high or 2 * low > w for (low, high), w in zip(plan.pads, plan.window))
        and 0 not in x.shape
        and not torch.compiler.is_compiling()  # torch.compile loses the backward pass
    )


def pool(x: torch.Tensor, plan: PoolPlan) -> torch.Tensor:
    window, strides, pads, _, first, largest, counts_pads = plan
    n = len(window)
    x = x if first else x.permute(*TO[n])
    ends = tuple([low for low, _ in pads])
    if not largest:
        y = mean(x, window, strides, ends, counts_pads)
    elif peek_interpreter_stack() is None and not is_watched(x):
        y = largest_of(x, window, strides, ends)
    else:
        y = Largest.apply(x, window, strides, ends)
    return y if first else y.permute(*BACK[n])


def mean(
    x: torch.Tensor, window: Sizes, strides: Sizes, ends: Sizes, counts_pads: bool
) -> torch.Tensor:
    """The mean of each window, by torch's kernel. On CUDA, its gradient with padding is wrong if
    channels are last in memory (torch 2.11), so there x is copied with channels first. With a
    single channel, `contiguous` would not copy, so `clone` is used.
    """
    if any(ends) and x.is_cuda:
        x = x.contiguous() if x.shape[1] > 1 else x.clone(memory_format=torch.contiguous_format)
    return MEAN[len(window)](x, window, strides, ends, False, counts_pads)


def largest_of(x: torch.Tensor, window: Sizes, strides: Sizes, ends: Sizes) -> torch.Tensor:
    """The maximum of each window, by torch's kernel. On CUDA, the kernel for channels last in
    memory reads float64 from misaligned addresses (torch 2.11), which ends the process. So there x
    is copied with channels first.
    """
    if x.is_cuda and x.dtype is torch.float64:
        x = x.clone(memory_format=torch.contiguous_format)
    return MAX[len(window)](x, window, strides, ends)


class Largest(torch.autograd.Function):
    """The maximum of each window of x, channels first; equal maxima share the gradient."""

    generate_vmap_rule = True

    @staticmethod
    # pyright: ignore[reportIncompatibleMethodOverride]
    def forward(x: torch.Tensor, window: Sizes, strides: Sizes, pads: Sizes) -> torch.Tensor:
        return largest_of(x, window, strides, pads)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: torch.Tensor) -> None:
        ctx.save_for_backward(inputs[0], output)
        ctx.args = inputs[1:]

    @staticmethod
    def backward(ctx: Any, grad: Any) -> tuple:  # pyright: ignore
        x, y = (kept.detach() for kept in ctx.saved_tensors)
        window, strides, pads = ctx.args
        around = [p for p in reversed(pads) for _ in range(2)]
        full = F.pad(x, around, value=-torch.inf) if any(pads) else x
        cuts = [
            (..., *(slice(p, p + (m - 1) * s + 1, s) for p, m, s in zip(place, size, strides)))
            for size in [y.shape[2:]]
            for place in product(*map(range, window))
        ]
        same = [full[cut] == y for cut in cuts]
        share = grad / sum(same, torch.zeros_like(y))
        total = share.new_zeros(full.shape)  # also under vmap
        for cut, where in zip(cuts, same):
            if is_traced():
                total = written(total, cut, total[cut] + share * where)
            else:
                total[cut] += share * where
        kept = (..., *(slice(p, p + n) for p, n in zip(pads, x.shape[2:])))
        return total[kept], None, None, None
