"""Attention by torch's own kernels, which need four axes and a single mask.

If a gradient is needed, calling a kernel costs a millisecond inside torch.func (`fused`). So for
short sequences the formula is used instead of a kernel; it is as fast, also when it is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import torch
from torch.nn import functional as F

from ...meanings.attention import full_mask, settled
from ...meanings.shapes import broadcast
from .fused import fused, is_watched, twice_differentiable
from .private import len_torch_dispatch_stack, peek_interpreter_stack

kernel = F.scaled_dot_product_attention
SAVED = ("_saved_query", "_saved_key", "_saved_value")  # by all kernels
SHORT = 2**16  # pairs of a query and a key in one head
FEW, FEW_INSIDE = 2**15, 2**17  # pairs in all heads: outside and inside torch.func
LANES = 16  # with fewer keys than this, the CPU kernel gives zeros for a query or keys that are NaN


def attention(
    xp: Any,
    composed: Callable[..., Any],
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    scale: Any,
    mask: Any,
    is_causal: bool,
) -> torch.Tensor:
    empty = 0 in query.shape or 0 in key.shape or 0 in value.shape
    watched = any(map(is_watched, (query, key, value))) and _is_small(query, key)
    if key.shape[-2] < LANES or watched or empty or (mask is not None and is_watched(mask)):
        return composed(query, key, value, scale, mask, is_causal)
    if isinstance(scale, torch.Tensor):
        query, scale = query * scale, 1.0

    def meaning(query: Any, key: Any, value: Any) -> tuple:
        return (composed(query, key, value, scale, mask, is_causal),)

    alive, one = None, mask  # the kernel takes one mask: `mask` and the causal one are combined
    if mask is not None:
        one = full_mask(xp, query, key, mask, is_causal)
        if query.device.type != "cpu":  # kernels differ in the result for a fully masked row
            one, alive = settled(xp, one)
    causal = is_causal and mask is None
    lead: Any = broadcast(query.shape[:-2], key.shape[:-2], value.shape[:-2])

    def native(query: Any, key: Any, value: Any) -> tuple:
        q, k, v = (_four(x, lead) for x in (query, key, value))
        y = kernel(q, k, v, _four_mask(one, lead), is_causal=causal, scale=scale)
        y = y if len(lead) == 2 else y.reshape(*lead, *y.shape[-2:])
        return (y if alive is None else torch.where(alive, y, 0.0),)

    return fused(native, meaning, (query, key, value), saved=SAVED)[0]


def _is_small(query: torch.Tensor, key: torch.Tensor) -> bool:
    """Whether the formula and its gradient are as fast as the kernel and its gradient."""
    each = query.shape[-2] * key.shape[-2]
    if len_torch_dispatch_stack():  # a compiler is tracing
        return each < SHORT
    few = FEW if peek_interpreter_stack() is None else FEW_INSIDE
    return each * prod(query.shape[:-2]) < few


def is_plain(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> bool:
    """Whether the kernel takes these tensors as they are, and no torch.func transform is active."""
    q, k, v = query.shape, key.shape, value.shape
    return (
        len(q) == 4
        and (q == k == v or q[:2] == k[:2] == v[:2])
        and 0 not in q
        and peek_interpreter_stack() is None
        and (k[2] >= LANES or (query.is_cpu and not len_torch_dispatch_stack()))
    )


def plain(
    composed: Callable[..., Any],
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    scale: float,
    is_causal: bool,
) -> torch.Tensor:
    """`attention` of tensors for which `is_plain` holds, by a shorter way."""
    if (
        query.requires_grad or key.requires_grad or value.requires_grad
    ) and torch.is_grad_enabled():
        batch, heads, many, _ = query.shape
        keys = key.shape[2]
        each = many * keys
        few = batch * heads * each < FEW or (each < SHORT and len_torch_dispatch_stack())
        if few or keys < LANES:
            return composed(query, key, value, scale, None, is_causal)
    y = kernel(query, key, value, None, 0.0, is_causal, scale=scale)
    if y.grad_fn is None:
        if key.shape[2] < LANES and not y.all():  # zeros: they may stand for NaN
            return composed(query, key, value, scale, None, is_causal)
        return y
    meaning = lambda *arrays: (composed(*arrays, scale, None, is_causal),)
    return twice_differentiable((y,), meaning, (query, key, value), SAVED)[0]


def _four(x: torch.Tensor, lead: tuple[int, ...]) -> torch.Tensor:
    """`[..., a, b]` as `[batch, heads, a, b]`."""
    shape = x.shape[-2:]
    if x.shape[:-2] != lead:
        x = x.expand(*lead, *shape)
    if len(lead) == 2:
        return x
    return x.reshape(prod(lead[:-1]), lead[-1] if lead else 1, *shape)


def _four_mask(mask: Any, lead: tuple[int, ...]) -> Any:
    """The same for a mask, whose axes may have size 1."""
    if mask is None:
        return None
    while mask.ndim < 2:
        mask = mask[None]
    if mask.ndim == 2:
        return mask
    if len(lead) > 2:
        return _four(mask, lead)
    return mask.reshape((1,) * (4 - mask.ndim) + tuple(mask.shape))
