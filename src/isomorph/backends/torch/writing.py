"""An optimizer step that overwrites its own arrays, by torch's fused kernel."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ...meanings.adam import AdamStep
from . import compiling, private

FUSED = ("cpu", "cuda")  # devices on which torch has Adam in one kernel


def adam(rows: Sequence[tuple], numbers: AdamStep) -> bool:
    """See `Backend.write_adam`. Returns False, and does nothing, if torch is tracing or has no such
    kernel, or if the kernel does not take an array as it is in memory.
    """
    if compiling.is_tracing() or not private.has("fused_adamw"):
        return False
    step, lr, beta1, beta2, epsilon, decay = numbers
    groups: dict[tuple, list] = {}  # one call of the fused kernel per device and dtype
    for w, g, m, v in rows:
        # the kernel walks through memory: all arrays of a row must have the same layout
        plain = type(w) is type(m) is type(v) is torch.Tensor and w.device.type in FUSED
        if not (plain and w.stride() == m.stride() == v.stride() and compiling.is_whole(w)):
            return False
        if g.stride() != w.stride():
            g = torch.empty_like(w).copy_(g)
        parts = (w, g, m, v)
        parts = parts if w.is_contiguous() else tuple(map(compiling.in_order, parts))
        groups.setdefault((w.device, w.dtype), []).append(parts)
    with torch.no_grad():
        for (device, _), rows in groups.items():
            now = torch.full((), float(step), device=device)
            private.fused_adamw(
                *map(list, zip(*rows)), [], [now] * len(rows), amsgrad=False, lr=lr,
                beta1=beta1, beta2=beta2, weight_decay=decay, eps=epsilon, maximize=False,
            )  # fmt: skip
    return True
