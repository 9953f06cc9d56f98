"""Adam's step for many arrays at once, by torch's fused kernel, which overwrites them. In a program
it is one operator: the compiler schedules one operation, instead of ten for each array.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from ...meanings.adam import AdamStep
from . import compiling, looping, private

FUSED = ("cpu", "cuda")  # devices on which torch has Adam in one kernel
PLAIN = compiling.PLAIN
KINDS = {*PLAIN, private.FakeTensor}


def adam(rows: Sequence[tuple], numbers: AdamStep, owned: bool) -> list[tuple] | None:
    """See `Backend.write_adam`. Returns None, and does nothing, if something other than `iso.jit`
    traces, or outside of programs if arrays may not be overwritten; and if torch has no such
    kernel, or if it does not take an array as it is in memory.
    """
    if not private.has("fused_adamw") or not all(_fits(*row) for row in rows):
        return None
    step, lr, *rates = numbers
    rate = None if isinstance(lr, float) else lr
    if rate is not None and any(w.is_cuda and w.dtype is torch.float64 for w, *_ in rows):
        return None  # the kernel reads the rate as float32
    lr = lr if rate is None else 0.0
    if not compiling.is_tracing():
        if not owned:
            return None
        ws, gs, ms, vs = map(list, zip(*rows))
        _write(ws, gs, ms, vs, _counted(step), rate, lr, *rates)
        return [(w, m, v) for w, _, m, v in rows]
    if not looping.is_traced() or compiling.is_transformed():
        return None
    # The program overwrites copies. The compiler leaves out each copy of an array that is donated.
    copies = [(w.clone(), g, m.clone(), v.clone()) for w, g, m, v in rows]
    ws, gs, ms, vs = map(list, zip(*copies))
    _adam(ws, gs, ms, vs, _counted(step), rate, lr, *rates)
    return [(w, m, v) for w, _, m, v in copies]


def are_apart(arrays: Iterable[Any], others: Iterable[Any]) -> bool:
    """See `Backend.are_apart`."""
    both = [*arrays], [*others]
    if compiling.is_tracing() or not all(type(x) in PLAIN for x in (*both[0], *both[1])):
        return False
    places = [{x.untyped_storage().data_ptr() for x in part if x.numel()} for part in both]
    return places[0].isdisjoint(places[1])


def _counted(step: Any) -> torch.Tensor:
    """The number of a step as the kernel takes it."""
    return torch.as_tensor(step).to(torch.float32)


def _fits(w: torch.Tensor, g: torch.Tensor, m: torch.Tensor, v: torch.Tensor) -> bool:
    """Whether the kernel, which walks through memory, can take a row: its arrays must have the same
    layout. Gradients are copied if theirs is another.
    """
    plain = KINDS.issuperset((type(w), type(m), type(v))) and w.device.type in FUSED
    return plain and w.stride() == m.stride() == v.stride() and compiling.is_whole(w)


def _write(
    ws: list[torch.Tensor], gs: list[torch.Tensor], ms: list[torch.Tensor], vs: list[torch.Tensor],
    step: torch.Tensor, rate: torch.Tensor | None, lr: float, beta1: float, beta2: float,
    epsilon: float, decay: float,
) -> None:  # fmt: skip
    """Adam's step. The learning rate is `rate`, or `lr` if that is None."""
    groups: dict[tuple, list] = {}  # one call of the fused kernel per device and dtype
    for w, g, m, v in zip(ws, gs, ms, vs):
        if g.stride() != w.stride():
            g = torch.empty_like(w).copy_(g)
        parts = (w, g, m, v)
        parts = parts if w.is_contiguous() else tuple(map(compiling.in_order, parts))
        groups.setdefault((w.device, w.dtype), []).append(parts)
    with torch.no_grad():
        for (device, _), rows in groups.items():
            now = lr if rate is None else rate
            if rate is not None and device.type != "cpu":
                now = rate.to(device, torch.float32)
            private.fused_adamw(
                *map(list, zip(*rows)), [], [step.to(device)] * len(rows), amsgrad=False, lr=now,
                beta1=beta1, beta2=beta2, weight_decay=decay, eps=epsilon, maximize=False,
            )  # fmt: skip


_adam = torch.library.custom_op("isomorph::adam", mutates_args=("ws", "ms", "vs"))(_write)


@_adam.register_fake
def _(*args: object) -> None:
    """Only overwrites."""
