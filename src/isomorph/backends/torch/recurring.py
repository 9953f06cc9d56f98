"""Recurrent layers by torch's own kernels, which want time first, one batch axis, and each weight
transposed.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import torch

from .fused import fused

VF: Any = torch._VF  # pyright: ignore[reportAttributeAccessIssue]


def lstm(composed: Callable, *arrays: Any) -> tuple:
    """`Backend.lstm`."""

    def kernel(x: Any, h: Any, c: Any, weights: list, biased: bool) -> tuple:
        hs, h, c = VF.lstm(x, (h, c), weights, biased, 1, 0.0, True, False, False)
        return hs, h, c

    return _run(kernel, composed, 2, arrays)


def gru(composed: Callable, *arrays: Any) -> tuple:
    """`Backend.gru`."""

    def kernel(x: Any, h: Any, weights: list, biased: bool) -> tuple:
        return VF.gru(x, h, weights, biased, 1, 0.0, True, False, False)

    return _run(kernel, composed, 1, arrays)


def _run(kernel: Callable, composed: Callable, states: int, arrays: tuple) -> tuple:
    """`arrays` are x, the states, both kernels, both biases or None, and whether time is first."""
    *given, time_major = arrays
    there = [i for i, x in enumerate(given) if x is not None]
    tensors = [given[i] for i in there]
    if any(0 in x.shape for x in tensors):
        return composed(*arrays)

    def full(tensors: tuple) -> list:
        out: list[Any] = [None] * len(given)
        for i, x in zip(there, tensors):
            out[i] = x
        return out

    def native(*tensors: torch.Tensor) -> tuple:
        x, *rest = full(tensors)
        state, (weight, recurrent, *biases) = rest[:states], rest[states:]
        batch = x.shape[1:-1] if time_major else x.shape[:-2]
        x = x if time_major else x.movedim(-2, 0)
        x = x.reshape(x.shape[0], prod(batch), x.shape[-1])
        state = [h.reshape(1, prod(batch), h.shape[-1]) for h in state]
        weights = [weight.mT, recurrent.mT]
        biased = any(b is not None for b in biases)
        if biased:
            zeros = weight.new_zeros(weight.shape[1])
            weights += [zeros if b is None else b for b in biases]
        hs, *last = kernel(x, *state, weights, biased)
        hs = hs.reshape(hs.shape[0], *batch, hs.shape[-1])
        hs = hs if time_major else hs.movedim(0, -2)
        return hs, *(h.reshape(*batch, h.shape[-1]) for h in last)

    return fused(native, lambda *tensors: composed(*full(tensors), time_major), tensors)
