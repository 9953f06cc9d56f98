"""Recurrent layers by torch's own kernels, which need one batch axis and transposed weights.

In a compiled program, a layer is one operation. Its backward pass is another one, which computes
the layer again. Otherwise the program would contain one copy of the layer per step, and could not
use torch's fastest kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch

from . import compiling, private
from .fused import fused, twice_differentiable

STATES: Any = {"lstm": (2, torch.lstm), "gru": (1, torch.gru)}  # how many, and the kernel


def recurrent(kind: str, composed: Callable, arrays: tuple) -> tuple:
    """`Backend.lstm` or `Backend.gru`. `arrays` are x, the states, both kernels, both biases (or
    None), and whether time is the first axis.
    """
    *given, time_major = arrays
    x, matrix = given[0], given[-3]  # their sizes include those of the others
    if not x.numel() or not matrix.numel():
        return composed(*arrays)
    if compiling.is_tracing():
        return _traced(kind, composed, given, time_major)
    outs = _native(kind, given, time_major)
    if not outs[0].requires_grad:
        return outs
    meaning, tensors, _ = _by_tensors(composed, given, time_major)
    return twice_differentiable(outs, meaning, tensors, ())


def _by_tensors(composed: Callable, given: list[Any], time_major: bool) -> tuple:
    """`composed` as a function of those arguments that are there, these, and which they are."""
    there = [x is not None for x in given]
    meaning = lambda *tensors: composed(*_full(tensors, there), time_major)
    return meaning, [x for x in given if x is not None], there


def _traced(kind: str, composed: Callable, given: list[Any], time_major: bool) -> tuple:
    """The same within transforms and compiled programs."""
    meaning, tensors, there = _by_tensors(composed, given, time_major)

    def native(*tensors: torch.Tensor) -> tuple:
        return _native(kind, _full(tensors, there), time_major)

    def whole(*tensors: torch.Tensor) -> tuple:
        return tuple(_whole(kind, list(tensors), there, time_major))

    def back(tensors: Sequence[torch.Tensor], grads: Sequence[torch.Tensor]) -> tuple:
        return tuple(_back(kind, list(tensors), there, time_major, list(grads)))

    return fused(native, meaning, tensors, (whole, back))


def _full(tensors: Sequence[torch.Tensor], there: Sequence[bool]) -> list[Any]:
    """The arguments: `tensors`, with None where `there` is False."""
    rest = iter(tensors)
    return [next(rest) if known else None for known in there]


def _native(kind: str, given: list[Any], time_major: bool) -> tuple:
    x, *state, kernel, recurrent, bias, recurrent_bias = given
    weights = [kernel.mT, recurrent.mT]
    biased = not (bias is None is recurrent_bias)
    if biased:
        if bias is None:
            bias = torch.zeros_like(recurrent_bias)
        elif recurrent_bias is None:
            recurrent_bias = torch.zeros_like(bias)
        weights += bias, recurrent_bias
    if not x.is_cpu:  # cuDNN needs its weights one after another in one piece of memory
        x, state = x.contiguous(), [h.contiguous() for h in state]
        parts = torch.cat([w.reshape(-1) for w in weights]).split([w.numel() for w in weights])
        weights = [part.view(w.shape) for part, w in zip(parts, weights)]
    n, run = STATES[kind]
    if x.ndim == 3:  # the form that torch takes, with time or batch first
        how = weights, biased, 1, 0.0, True, False, not time_major
        if n == 1:
            hs, h = run(x, state[0].unsqueeze(0), *how)
            return hs, h.squeeze(0)
        hs, h, c = run(x, (state[0].unsqueeze(0), state[1].unsqueeze(0)), *how)
        return hs, h.squeeze(0), c.squeeze(0)
    batch = _batch(x, time_major)
    x = x if time_major else x.movedim(-2, 0)
    x = x.reshape(x.shape[0], prod(batch), x.shape[-1])
    state = [h.reshape(1, prod(batch), h.shape[-1]) for h in state]
    first = state[0] if n == 1 else tuple(state)
    hs, *last = run(x, first, weights, biased, 1, 0.0, True, False, False)
    hs = hs.reshape(hs.shape[0], *batch, hs.shape[-1])
    hs = hs if time_major else hs.movedim(0, -2)
    return hs, *(h.reshape(*batch, h.shape[-1]) for h in last)


def _batch(x: torch.Tensor, time_major: bool) -> torch.Size:
    return x.shape[1:-1] if time_major else x.shape[:-2]


@torch.library.custom_op("isomorph::recurrent", mutates_args=())
def _whole(
    kind: str, arrays: list[torch.Tensor], there: list[bool], time_major: bool
) -> list[torch.Tensor]:
    outs = _native(kind, _full(arrays, there), time_major)
    return [y.clone(memory_format=torch.contiguous_format) for y in outs]


@_whole.register_fake
def _(
    kind: str, arrays: list[torch.Tensor], there: list[bool], time_major: bool
) -> list[torch.Tensor]:
    x, h = arrays[:2]
    last = [h.new_empty(h.shape) for _ in range(STATES[kind][0])]
    return [x.new_empty((*x.shape[:-1], h.shape[-1])), *last]


def _autograd() -> Any:
    """A context in which torch records gradients even inside a custom operation."""
    kept = private.exclude_set()
    for key in ("AutogradFunctionality", "AutogradCPU", "AutogradCUDA", "ADInplaceOrView"):
        kept = kept.remove(getattr(private.DispatchKey, key))
    return private.ForceDispatchKeyGuard(private.include_set(), kept)


@torch.library.custom_op("isomorph::recurrent_back", mutates_args=())
def _back(
    kind: str,
    arrays: list[torch.Tensor],
    there: list[bool],
    time_major: bool,
    grads: list[torch.Tensor],
) -> list[torch.Tensor]:
    with _autograd(), torch.enable_grad():
        leaves = [x.detach().requires_grad_() for x in arrays]
        outs = _native(kind, _full(leaves, there), time_major)
        found = torch.autograd.grad(outs, leaves, grads)
    return [g.clone(memory_format=torch.contiguous_format) for g in found]


@_back.register_fake
def _(
    kind: str,
    arrays: list[torch.Tensor],
    there: list[bool],
    time_major: bool,
    grads: list[torch.Tensor],
) -> list[torch.Tensor]:
    return [x.new_empty(x.shape) for x in arrays]
