"""Attention.

A row whose keys are all masked gives zeros, with zero gradient: it is computed as if nothing were
masked, so that 0/0 never occurs, and its result is then replaced by zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def attention(
    xp: Any, query: Any, key: Any, value: Any, scale: Any, mask: Any, is_causal: bool
) -> Any:
    """Attention without dropout."""
    if key.shape[-2] == 0:
        return xp.matmul(xp.matmul(query, xp.matrix_transpose(key)), value)  # no keys: zeros
    scores, alive = _scores(xp, query, key, scale, mask, is_causal)
    y = xp.matmul(xp.softmax(scores, -1), value)
    return y if alive is None else xp.where(alive, y, xp.zeros_like(y))


def attention_weights(xp: Any, query: Any, key: Any, scale: Any, mask: Any, is_causal: bool) -> Any:
    """The weight of each value for each query, `[..., L, S]`. Each row sums to 1, or is zero if all
    its keys are masked.
    """
    if key.shape[-2] == 0:
        return xp.matmul(query, xp.matrix_transpose(key))
    scores, alive = _scores(xp, query, key, scale, mask, is_causal)
    weights = xp.softmax(scores, -1)
    return weights if alive is None else xp.where(alive, weights, xp.zeros_like(weights))


def weighted(
    xp: Any,
    query: Any,
    key: Any,
    value: Any,
    scale: Any,
    mask: Any,
    is_causal: bool,
    drop: Callable[[Any], Any] | None,
) -> tuple[Any, Any]:
    """The result of attention, and the weights it used. `drop`, if given, sets some weights to
    zero before that.
    """
    weights = attention_weights(xp, query, key, scale, mask, is_causal)
    if drop is not None:
        weights = drop(weights)
    return xp.matmul(weights, value), weights


def _scores(xp: Any, query: Any, key: Any, scale: Any, mask: Any, is_causal: bool) -> tuple:
    """The input of the softmax, in which no row is fully masked, and which rows may attend to at
    least one key: `[..., L, 1]`, or None if all may.
    """
    scores = xp.matmul(query * scale, xp.matrix_transpose(key))
    if mask is None and is_causal:
        causal = causal_mask(xp, query, key)
        return xp.where(causal, scores, xp.full_like(scores, -xp.inf)), None
    if mask is None:
        return scores, None
    mask, alive = settled(xp, full_mask(xp, query, key, mask, is_causal))
    if mask.dtype == xp.bool:
        return xp.where(mask, scores, xp.full_like(scores, -xp.inf)), alive
    return scores + mask, alive


def settled(xp: Any, mask: Any) -> tuple[Any, Any]:
    """The mask, in which fully masked rows are now not masked at all, and which rows were not fully
    masked.
    """
    if mask.dtype == xp.bool:
        alive = xp.any(mask, axis=-1, keepdims=True)
        return xp.logical_or(mask, xp.logical_not(alive)), alive
    alive = xp.any(mask > -xp.inf, axis=-1, keepdims=True)
    return xp.where(alive, mask, xp.zeros_like(mask)), alive


def full_mask(xp: Any, query: Any, key: Any, mask: Any, is_causal: bool) -> Any:
    """The mask combined with the causal mask."""
    if not is_causal:
        return mask
    causal = causal_mask(xp, query, key)
    if mask.dtype == xp.bool:
        return xp.logical_and(mask, causal)
    return xp.where(causal, mask, xp.full_like(mask, -xp.inf))


def causal_mask(xp: Any, query: Any, key: Any) -> Any:
    """`[L, S]`: query i attends to keys 0 to i."""
    device = xp.device_of(query)
    rows = xp.arange(query.shape[-2], device=device)
    return xp.expand_dims(rows, axis=-1) >= xp.arange(key.shape[-2], device=device)
