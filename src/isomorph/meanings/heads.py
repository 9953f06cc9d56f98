"""Multi-head attention: project, split into heads, attend, join the heads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .attention import causal_mask, weighted
from .heads_plan import Arrays, HeadsPlan, Scoring, four_axes
from .shapes import known


def apart(xp: Any, arrays: Arrays, plan: HeadsPlan) -> tuple[Any, Any, Any]:
    """Queries, keys and values `[N, heads, L, D]`, as attention takes them: projected, and with the
    additional keys and values.
    """
    n, heads, depth = plan.scores[0], plan.scores[1], plan.depth
    q, k, v = _projected(xp, arrays, plan)
    if arrays.bias_k is not None:
        k = _longer(xp, k, _row(xp, arrays.bias_k, plan))
        v = _longer(xp, v, _row(xp, arrays.bias_v, plan))
    q = _split(xp, q, plan.split_query)
    k, v = _split(xp, k, plan.split_key), _split(xp, v, plan.split_key)
    if arrays.static_k is not None:
        static = (arrays.static_k, arrays.static_v)
        k, v = (xp.reshape(x, (n, heads, x.shape[1], depth)) for x in static)
    if plan.adds_zero:
        row = xp.zeros((n, heads, 1, depth), dtype=k.dtype, device=xp.device_of(k))
        k, v = _longer(xp, k, row), _longer(xp, v, row)
    return q, k, v


def attended(
    xp: Any,
    q: Any,
    k: Any,
    v: Any,
    scoring: Scoring,
    drop: Callable[[Any], Any] | None,
    arrays: Arrays,
    plan: HeadsPlan,
) -> Any:
    """The result of `multi_head_attention` for the output of `apart`. `drop`, if given, sets some
    attention weights to zero.
    """
    mask, is_causal = _mask(xp, q, k, scoring, plan)
    scale = plan.depth**-0.5 if scoring.scale is None else scoring.scale
    if drop is None and not plan.weighs:
        return _together(xp, xp.attention(q, k, v, scale, mask, is_causal), arrays, plan)
    y, weights = weighted(xp, q, k, v, scale, mask, is_causal, drop)
    y = _together(xp, y, arrays, plan)
    if not plan.weighs:
        return y
    weights = xp.mean(weights, axis=1) if plan.averages else weights
    return y, weights if plan.batched else weights[0, ...]


# ---- array layouts: [N, L, E], then [N, heads, L, D], and back -----------------------------------


def _projected(xp: Any, arrays: Arrays, plan: HeadsPlan) -> Sequence[Any]:
    """The projected query, key and value. If they are the same array, one product computes all
    three.
    """
    whole, bias, width = arrays.in_proj_weights, arrays.in_proj_bias, plan.width
    inputs = [_batch(xp, x, plan) for x in arrays[:3]]
    if plan.one:
        inputs = inputs[:1] * 3
        if whole is not None:
            return xp.thirds(xp.linear(inputs[0], whole, bias))
    parts = (arrays.q_proj_weights, arrays.k_proj_weights, arrays.v_proj_weights)
    found = []
    for i, (x, w) in enumerate(zip(inputs, parts)):
        rows = slice(i * width, (i + 1) * width)
        w = w if whole is None else whole[rows, :]
        b = None if bias is None else bias[rows]
        found.append(xp.linear(x, w, b) if w is not None else x if b is None else x + b)
    return found


def _batch(xp: Any, x: Any, plan: HeadsPlan) -> Any:
    if not plan.batched:
        return xp.expand_dims(x, axis=0)
    return x if plan.batch_first else xp.moveaxis(x, 0, 1)


def _split(xp: Any, x: Any, shape: tuple) -> Any:
    return xp.moveaxis(xp.reshape(x, shape), 2, 1)


def _row(xp: Any, bias: Any, plan: HeadsPlan) -> Any:
    width = plan.width
    return xp.broadcast_to(xp.reshape(bias, (1, 1, width)), (plan.scores[0], 1, width))


def _longer(xp: Any, x: Any, row: Any) -> Any:
    return xp.concat([x, row], axis=-2)


def _together(xp: Any, y: Any, arrays: Arrays, plan: HeadsPlan) -> Any:
    """The results of the heads, joined and projected, in the layout of the caller's query."""
    y = xp.reshape(xp.moveaxis(y, 1, 2), plan.joined)
    if arrays.out_proj_weights is not None:
        y = xp.linear(y, arrays.out_proj_weights, arrays.out_proj_bias)
    elif arrays.out_proj_bias is not None:
        y = y + arrays.out_proj_bias
    return y[0, ...] if not plan.batched else y if plan.batch_first else xp.moveaxis(y, 0, 1)


# ---- masks ---------------------------------------------------------------------------------------


def _mask(xp: Any, q: Any, k: Any, scoring: Scoring, plan: HeadsPlan) -> tuple[Any, bool]:
    """All masks combined into one, in which True attends; and whether attention must also be
    causal.
    """
    keys, extra = plan.scores[-1], plan.extra
    own, is_causal = scoring.mask, scoring.is_causal
    if own is not None and extra:
        own = _widened(xp, own, keys)
    masks = _excluding(xp, scoring, plan)
    if not masks and not (extra and is_causal) and (own is None or not extra):
        return own, is_causal
    allowed = [xp.logical_not(m) for m in masks if m.dtype == xp.bool]
    added = [m for m in masks if m.dtype != xp.bool]
    if own is not None:
        (allowed if own.dtype == xp.bool else added).append(own)
    if extra and is_causal:
        allowed.append(causal_mask(xp, q, k[:, :, :keys, :]))
        is_causal = False
    if extra:  # all queries attend to the additional keys
        allowed = [_open(xp, m, extra, xp.ones) for m in allowed]
        added = [_open(xp, m, extra, xp.zeros) for m in added]
    mask = _total(xp.logical_and, allowed)
    if not added:
        return mask, is_causal
    total = _total(xp.add, added)
    if mask is not None:
        mask, total = xp.broadcast_arrays(mask, total)
        total = xp.where(mask, total, xp.full_like(total, -xp.inf))
    return total, is_causal


def _excluding(xp: Any, scoring: Scoring, plan: HeadsPlan) -> list[Any]:
    """The masks in which True excludes, reshaped to broadcast to the scores."""
    keys, found = plan.scores[-1], []
    mask, padding = scoring.attention_mask, scoring.key_padding_mask
    if mask is not None:
        shape = tuple(mask.shape)
        if len(shape) == 3:
            mask = xp.reshape(mask, known(four_axes(shape, plan.scores)))
        found.append(_widened(xp, mask, keys))
    if padding is not None:
        found.append(xp.reshape(padding, (*known(padding.shape[:-1]), 1, 1, keys)))
    return found


def _widened(xp: Any, mask: Any, keys: int) -> Any:
    """The mask with all `keys` along its last axis, so that additional keys can be appended."""
    shape = tuple(mask.shape)
    return mask if shape[-1:] == (keys,) else xp.broadcast_to(mask, (*shape[:-1], keys))


def _open(xp: Any, mask: Any, extra: int, make: Any) -> Any:
    shape = (*mask.shape[:-1], extra)
    return xp.concat([mask, make(shape, dtype=mask.dtype, device=xp.device_of(mask))], axis=-1)


def _total(join: Any, masks: list[Any]) -> Any:
    out = masks[0] if masks else None
    for m in masks[1:]:
        out = join(out, m)
    return out
