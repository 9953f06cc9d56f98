"""Attention by torch's own kernels, which want four axes and one mask.

Inside torch.func a kernel costs a millisecond (`fused`), and is no faster for short sequences.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import torch
from torch._C._functorch import (  # pyright: ignore[reportMissingImports]
    maybe_get_level,
    peek_interpreter_stack,
)
from torch.nn import functional as F

from ...layers.attention import broadcast, full_mask, settled
from .fused import fused, is_watched

SHORT = 2**16  # products of a query and a key


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
    if mask is None and type(scale) is float and _is_plain(query, key, value):
        return F.scaled_dot_product_attention(query, key, value, is_causal=is_causal, scale=scale)
    if (
        torch.compiler.is_compiling()
    ):  # Dynamo cannot ask for levels, and takes no kernel of `fused`
        return composed(query, key, value, scale, mask, is_causal)
    empty = 0 in query.shape or 0 in key.shape or 0 in value.shape
    short = query.shape[-2] * key.shape[-2] < SHORT
    inside = short and max(map(maybe_get_level, (query, key, value))) > 0
    if inside or empty or (mask is not None and is_watched(mask)):
        return composed(query, key, value, scale, mask, is_causal)
    if isinstance(scale, torch.Tensor):
        query, scale = query * scale, 1.0

    def meaning(query: Any, key: Any, value: Any) -> tuple:
        return (composed(query, key, value, scale, mask, is_causal),)

    alive, one = None, mask  # one mask for the kernel, which says all
    if mask is not None:
        one = full_mask(xp, query, key, mask, is_causal)
        if query.device.type != "cpu":  # kernels differ in what a row of nothing gives
            one, alive = settled(xp, one)
    causal = is_causal and mask is None
    lead: Any = broadcast(query.shape[:-2], key.shape[:-2], value.shape[:-2])

    def native(query: Any, key: Any, value: Any) -> tuple:
        q, k, v = (_four(x, lead) for x in (query, key, value))
        y = F.scaled_dot_product_attention(
            q, k, v, _four_mask(one, lead), is_causal=causal, scale=scale
        )
        y = y if len(lead) == 2 else y.reshape(*lead, *y.shape[-2:])
        return (y if alive is None else torch.where(alive, y, 0.0),)

    return fused(native, meaning, (query, key, value))[0]


def _is_plain(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> bool:
    """Whether the kernel takes them as they are, and nobody looks on: most calls outside training,
    without the closures.
    """
    q, k = query.shape, key.shape
    return (
        len(q) == 4
        and q[:2] == k[:2] == value.shape[:2]
        and query.numel() > 0
        and key.numel() > 0
        and peek_interpreter_stack() is None
        and not (torch.is_grad_enabled() and any(x.requires_grad for x in (query, key, value)))
    )


def _four(x: torch.Tensor, lead: tuple[int, ...]) -> torch.Tensor:
    """`[..., a, b]` as `[batch, heads, a, b]`."""
    shape = x.shape[-2:]
    if x.shape[:-2] != lead:
        x = x.expand(*lead, *shape)
    if len(lead) == 2:
        return x
    return x.reshape(prod(lead[:-1]), lead[-1] if lead else 1, *shape)


def _four_mask(mask: Any, lead: tuple[int, ...]) -> Any:
    """The same of a mask, whose axes may be 1."""
    if mask is None:
        return None
    while mask.ndim < 2:
        mask = mask[None]
    if mask.ndim == 2:
        return mask
    if len(lead) > 2:
        return _four(mask, lead)
    return mask.reshape((1,) * (4 - mask.ndim) + tuple(mask.shape))
