"""Convolution in torch. Its kernels need shapes with channels first, but any order in memory. So an
array with channels last is passed as a view, and the result is returned as a view.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import torch
import torch.nn.functional as F

from ...core.code_readers import read_as
from ...meanings.conv import dilated
from ...meanings.conv_plan import Plan

conv2d: Any = F.conv2d
FORWARD: Any = {1: F.conv1d, 2: conv2d, 3: F.conv3d}
TRANSPOSED: Any = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
# Orders of axes, by the number of sizes. TO: [batch, *sizes, channels] becomes
# [batch, channels, *sizes]; BACK is the opposite. FILTERS: [*k, in, out] becomes [out, in, *k];
# TURNED: it becomes [in, out, *k].
TO = {1: (0, 2, 1), 2: (0, 3, 1, 2), 3: (0, 4, 1, 2, 3)}
BACK = {1: (0, 2, 1), 2: (0, 2, 3, 1), 3: (0, 2, 3, 4, 1)}
FILTERS = {1: (2, 1, 0), 2: (3, 2, 0, 1), 3: (4, 3, 0, 1, 2)}
ONES = {1: (1,), 2: (1, 1), 3: (1, 1, 1)}
LARGE = 60 * 60  # from this many numbers on, torch transposes a matrix in blocks
TURNED = {1: (1, 2, 0), 2: (2, 3, 0, 1), 3: (3, 4, 0, 1, 2)}


def made(plan: Plan) -> Callable[..., torch.Tensor]:
    """The convolution of a plan, as a function of the backend, x, filters and bias."""
    *_, into, out = plan.filters
    small = into > 1 and out > 1 and prod(plan.filters) < LARGE  # then filters are not copied
    last = not plan.first and not plan.filters_first
    alike = plan.alike
    if (
        small and last and plan.x_dilations == (1, 1) and alike is not None
        and alike[2] == plan.groups == 1
    ):  # fmt: skip
        strides, pads, _ = alike
        # written out: arguments in tuples, and those that could be left out, take a microsecond
        return lambda xp, x, w, bias: conv2d(
            x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), bias, strides, pads
        ).permute(0, 2, 3, 1)
    return lambda xp, x, w, bias: _conv(xp, x, w, bias, plan)


def _keeper(most: int = 1024) -> Callable[[Plan], Callable[..., torch.Tensor]]:
    known: dict[int, tuple[Plan, Callable[..., torch.Tensor]]] = {}

    def ready(plan: Plan) -> Callable[..., torch.Tensor]:
        """`made(plan)`, made once. Found by the plan's identity: its hash would take longer."""
        found = known.get(id(plan))
        if found is not None:
            return found[1]
        run = made(plan)
        if all(type(n) is int for n in (*plan.size, *plan.filters)):  # others belong to a compiler
            if len(known) >= most:
                known.clear()
            known[id(plan)] = plan, run  # with the plan, so that its identity stays its own
        return run

    return read_as(ready, made)


ready = _keeper()


def conv(xp: Any, x: torch.Tensor, w: torch.Tensor, bias: Any, plan: Plan) -> torch.Tensor:
    return ready(plan)(xp, x, w, bias)


def _conv(xp: Any, x: torch.Tensor, w: torch.Tensor, bias: Any, plan: Plan) -> torch.Tensor:
    strides, ends, x_dilations, dilations, groups, first, filters_first, size, _, alike = plan
    n = len(size)
    if x_dilations != ONES[n]:
        x = dilated(xp, x.permute(*BACK[n]) if first else x, x_dilations).permute(*TO[n])
    elif not first:
        x = x.permute(*TO[n])
    if not filters_first:
        w = _filters(w, n)
    if alike is not None:  # torch pads both ends equally; it is faster with numbers
        strides, pads, dilations = alike
    else:
        pads = [max(0, min(pair)) for pair in ends]
        rest = [(low - p, high - p) for (low, high), p in zip(ends, pads)]
        x = F.pad(x, [i for pair in reversed(rest) for i in pair])
    y = FORWARD[n](x, w, bias, strides, pads, dilations, groups)
    return y if first else y.permute(*BACK[n])


def _filters(w: torch.Tensor, n: int) -> torch.Tensor:
    """`[*k, in, out]` as `[out, in, *k]`. Large filters get `in` last in memory, as kernels need
    it. Kernels would transpose them too, but on a CPU a transpose of two axes is four times as
    fast.
    """
    shape = w.shape
    out = shape[-1]
    if out == 1 or shape[-2] == 1:  # then torch cannot tell the order of axes from their strides
        return w.permute(*FILTERS[n]).contiguous()
    if w.is_cuda or w.numel() < LARGE or not w.is_contiguous():
        return w.permute(*FILTERS[n])
    turned = w.reshape(-1, out).t().contiguous().view(out, *shape[:-1])
    return turned.permute(0, n + 1, *range(1, n + 1))


def laid_out(w: torch.Tensor) -> torch.Tensor:
    """Filters `[*k, in, out]` with four or five axes, copied so that in memory `out` is first and
    `in` last; any other array unchanged.
    """
    return w.movedim(-1, 0).contiguous().movedim(0, -1) if w.ndim in (4, 5) else w


def transposed(x: torch.Tensor, w: torch.Tensor, bias: Any, plan: Plan) -> torch.Tensor:
    """The transposed convolution, for padding that is not negative."""
    n = len(plan.size)
    if not plan.first:
        x = x.permute(*TO[n])
    if not plan.filters_first:
        w = w.permute(*TURNED[n])
        w = w.contiguous() if 1 in w.shape[:2] else w
    # torch crops both ends equally, and can extend the high end; what is left is cropped here
    pads = [min(pair) for pair in plan.pads]
    extra, cuts = [], []
    for i, size, s, k, d, (low, _), p in zip(
        x.shape[2:], plan.size, plan.strides, w.shape[2:], plan.dilations, plan.pads, pads
    ):
        full = (i - 1) * s + (k - 1) * d + 1
        extra.append(max(0, low + size - (full - p)))
        cuts.append((low - p, full - 2 * p + extra[-1], size))
    y = TRANSPOSED[n](x, w, bias, plan.strides, pads, extra, plan.groups, plan.dilations)
    for axis, (start, length, size) in enumerate(cuts, 2):
        if length != size:
            y = y.narrow(axis, start, size)
    return y if plan.first else y.permute(*BACK[n])
