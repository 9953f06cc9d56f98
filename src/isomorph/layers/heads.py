"""Attention of several heads with its projections, as `torch.nn.functional` has it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ..dispatch import backend_of
from ..meanings.attention import causal_mask
from .attention import check_dropout, check_dtypes, check_mask, dropped

NAME = "multi_head_attention"


def multi_head_attention(
    query: Any,
    /,
    *,
    key: Any = None,
    value: Any = None,
    num_heads: int = 8,
    scale: Any = None,
    mask: Any = None,
    attention_mask: Any = None,
    key_padding_mask: Any = None,
    in_proj_weights: Any = None,
    q_proj_weights: Any = None,
    k_proj_weights: Any = None,
    v_proj_weights: Any = None,
    out_proj_weights: Any = None,
    in_proj_bias: Any = None,
    out_proj_bias: Any = None,
    is_causal: bool = False,
    bias_k: Any = None,
    bias_v: Any = None,
    static_k: Any = None,
    static_v: Any = None,
    add_zero_attn: bool = False,
    return_attention_weights: bool = False,
    average_attention_weights: bool = True,
    dropout: float = 0.0,
    training: bool = False,
    batch_first: bool = True,
    rng: Any = None,
) -> Any:
    """Attention in `num_heads` slices of E features, each of D = E / num_heads.

    `query` is `[N, L, E]`, `key` `[N, S, K]`, `value` `[N, S, V]`; without `batch_first` their
    first two axes are swapped, and none has N where there is no batch. `key` defaults to `query`,
    `value` to `key`. The result is like `query`; with `return_attention_weights` also the weights,
    `[N, L, S]`, or `[N, num_heads, L, S]` unless `average_attention_weights`.

    Projections are x·Wᵀ + b, and left out where there is no W: `in_proj_weights` `[3E, E]`, of
    query, key and value one below the other; or `q_proj_weights` `[E, E]`, `k_proj_weights`
    `[E, K]` and `v_proj_weights` `[E, V]`; `in_proj_bias` `[3E]`; `out_proj_weights` `[out, E]`,
    `out_proj_bias` `[out]`.

    There are two ways to mask. `mask` is that of `scaled_dot_product_attention`: it broadcasts to
    `[N, num_heads, L, S]`, and True in a boolean one says who is attended to; one for each example
    is `[N, 1, L, S]`. `attention_mask` and `key_padding_mask` are those of torch's function of this
    name, where True marks what is *not* attended to: `attention_mask` is `[L, S]`, `[N, L, S]`,
    `[N·num_heads, L, S]` or `[N, num_heads, L, S]`, `key_padding_mask` `[N, S]`. Any other mask is
    added. `mask` and one of the other two are refused together.

    `bias_k` and `bias_v`, of E elements, are one more key and value; `add_zero_attn` is one more of
    zeros; neither is ever masked. `static_k` and `static_v` `[N·num_heads, S, D]` stand in the
    place of projected keys and values. A query that attends to nothing gives the bias alone.

    >>> x = np.ones((1, 3, 4))
    >>> iso.multi_head_attention(x, num_heads=2, in_proj_weights=np.ones((12, 4)))[0, 0]
    array([4., 4., 4., 4.])
    """
    if mask is not None and (attention_mask is not None or key_padding_mask is not None):
        raise ValueError(
            f"{NAME}: needed mask, where True attends, or attention_mask and key_padding_mask, "
            "where True excludes, got both"
        )
    key = query if key is None else key
    value = key if value is None else value
    projections = (q_proj_weights, k_proj_weights, v_proj_weights)
    floats = {
        "query": query, "key": key, "value": value, "in_proj_weights": in_proj_weights,
        "q_proj_weights": q_proj_weights, "k_proj_weights": k_proj_weights,
        "v_proj_weights": v_proj_weights, "out_proj_weights": out_proj_weights,
        "in_proj_bias": in_proj_bias, "out_proj_bias": out_proj_bias, "bias_k": bias_k,
        "bias_v": bias_v, "static_k": static_k, "static_v": static_v,
    }  # fmt: skip
    xp = backend_of(*floats.values(), mask, attention_mask, key_padding_mask)
    check_dtypes(NAME, xp, **floats)
    batched = _check_inputs(query, key, value)
    drops = check_dropout(NAME, "dropout", dropout, training, rng)
    same = key is query and value is key
    query, key, value = (_batch(xp, x, batched, batch_first) for x in (query, key, value))
    n, length, width = query.shape[0], query.shape[1], _width(query, in_proj_weights, projections)
    whole = hasattr(num_heads, "__index__") and not isinstance(num_heads, bool)
    if not whole or num_heads < 1 or width % num_heads:
        raise ValueError(
            f"{NAME}: needed num_heads that divides the {width} features, got {num_heads!r}"
        )
    if same:
        key = value = query
    _check_sizes(query, key, value, width, in_proj_weights is not None, projections)
    _check_shape("in_proj_bias", in_proj_bias, [3 * width])
    if out_proj_weights is not None:
        _check_shape("out_proj_weights", out_proj_weights, [out_proj_weights.shape[0], width])
    rows = width if out_proj_weights is None else out_proj_weights.shape[0]
    _check_shape("out_proj_bias", out_proj_bias, [rows])
    q, k, v = _project(xp, query, key, value, width, in_proj_weights, projections, in_proj_bias)
    _check_pairs(width, bias_k=bias_k, bias_v=bias_v)
    _check_pairs(None, static_k=static_k, static_v=static_v)
    extra = 0
    if bias_k is not None:
        if static_k is not None:
            raise ValueError(f"{NAME}: needed bias_k or static_k, got both")
        k, v = (
            _longer(xp, k, _row(xp, bias_k, n, width)),
            _longer(xp, v, _row(xp, bias_v, n, width)),
        )
        extra = 1
    q, k, v = (_split(xp, x, num_heads) for x in (q, k, v))
    if static_k is not None:
        k, v = (_static(xp, x, n, num_heads, width) for x in (static_k, static_v))
    if add_zero_attn:
        row = xp.zeros((n, num_heads, 1, k.shape[3]), dtype=k.dtype, device=xp.device_of(k))
        k, v = _longer(xp, k, row), _longer(xp, v, row)
        extra += 1
    sizes = (n, num_heads, length, k.shape[2] - extra)
    masks = (mask, attention_mask, key_padding_mask)
    mask, is_causal = _mask(xp, q, k, sizes, extra, masks, is_causal)
    scale = (width // num_heads) ** -0.5 if scale is None else scale
    weights = None
    if drops or return_attention_weights:
        prob = dropout if drops else 0.0
        y, weights = dropped(xp, q, k, v, scale, mask, is_causal, prob, rng)
    else:
        y = xp.attention(q, k, v, scale, mask, is_causal)
    y = xp.reshape(xp.moveaxis(y, 1, 2), (-1 if n is None else n, length, width))
    if out_proj_weights is not None:
        y = xp.linear(y, out_proj_weights, out_proj_bias)
    elif out_proj_bias is not None:
        y = y + out_proj_bias
    y = y[0, ...] if not batched else y if batch_first else xp.moveaxis(y, 0, 1)
    if not return_attention_weights:
        return y
    if average_attention_weights:
        weights = xp.mean(weights, axis=1)
    return y, weights if batched else weights[0, ...]  # pyright: ignore[reportOptionalSubscript]


# ---- the arrays in one form: [N, L, E], then [N, heads, L, D] ------------------------------------


def _batch(xp: Any, x: Any, batched: bool, batch_first: bool) -> Any:
    if not batched:
        return xp.expand_dims(x, axis=0)
    return x if batch_first else xp.moveaxis(x, 0, 1)


def _project(
    xp: Any, query: Any, key: Any, value: Any, width: int, whole: Any, parts: tuple, bias: Any
) -> Sequence[Any]:
    """The projected query, key and value; by one product where they are one array."""
    if whole is not None and key is query and value is query:
        return xp.thirds(xp.linear(query, whole, bias))
    found = []
    for i, (x, w) in enumerate(zip((query, key, value), parts)):
        rows = slice(i * width, (i + 1) * width)
        w = w if whole is None else whole[rows, :]
        b = None if bias is None else bias[rows]
        found.append(xp.linear(x, w, b) if w is not None else x if b is None else x + b)
    return found


def _split(xp: Any, x: Any, heads: int) -> Any:
    n, length, width = x.shape
    n = -1 if n is None else n
    return xp.moveaxis(xp.reshape(x, (n, length, heads, width // heads)), 2, 1)


def _row(xp: Any, bias: Any, n: int, width: int) -> Any:
    return xp.broadcast_to(xp.reshape(bias, (1, 1, width)), (n, 1, width))


def _longer(xp: Any, x: Any, row: Any) -> Any:
    return xp.concat([x, row], axis=-2)


def _static(xp: Any, x: Any, n: int, heads: int, width: int) -> Any:
    depth = width // heads
    shape = tuple(x.shape)
    if len(shape) != 3 or shape[0] != n * heads or shape[2] != depth:
        raise ValueError(
            f"{NAME}: needed static_k and static_v [N·num_heads, S, D], "
            f"{[n * heads, 'S', depth]}, got {list(shape)}"
        )
    return xp.reshape(x, (n, heads, shape[1], depth))


def _mask(
    xp: Any, q: Any, k: Any, sizes: tuple, extra: int, given: tuple, is_causal: bool
) -> tuple[Any, bool]:
    """One mask of all, as attention takes it, True attends; and whether it is causal besides."""
    n, keys = sizes[0], sizes[-1]
    own, attention, padding = given
    masks = []
    if own is not None:
        check_mask(NAME, xp, own, q, sizes)
        if extra:
            own = _widened(xp, own, keys)
    if attention is not None:
        masks.append(_attention_mask(xp, q, attention, sizes))
    if padding is not None:
        _check_shape("key_padding_mask", padding, [n, keys] if len(padding.shape) == 2 else [keys])
        check_mask(NAME, xp, padding, q, tuple(padding.shape), "key_padding_mask")
        masks.append(xp.reshape(padding, (*_known(padding.shape[:-1]), 1, 1, keys)))
    if not masks and not (extra and is_causal) and (own is None or not extra):
        return own, is_causal
    allowed = [xp.logical_not(m) for m in masks if m.dtype == xp.bool]
    added = [m for m in masks if m.dtype != xp.bool]
    if own is not None:
        (allowed if own.dtype == xp.bool else added).append(own)
    if extra and is_causal:
        allowed.append(causal_mask(xp, q, k[:, :, :keys, :]))
        is_causal = False
    if extra:  # what was added to the keys is attended to by all
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


def _total(join: Any, masks: list[Any]) -> Any:
    out = masks[0] if masks else None
    for m in masks[1:]:
        out = join(out, m)
    return out


def _open(xp: Any, mask: Any, extra: int, make: Any) -> Any:
    shape = (*mask.shape[:-1], extra)
    return xp.concat([mask, make(shape, dtype=mask.dtype, device=xp.device_of(mask))], axis=-1)


def _attention_mask(xp: Any, q: Any, mask: Any, sizes: tuple) -> Any:
    n, heads, _, keys = sizes
    shape = tuple(mask.shape)
    if len(shape) == 3:
        per_head = n is not None and shape[0] == n * heads
        lead = (n, heads) if per_head else (shape[0], 1)
        mask = xp.reshape(mask, (*_known(lead), *_known(shape[1:])))
    check_mask(NAME, xp, mask, q, sizes, "attention_mask")
    return _widened(xp, mask, keys)


def _widened(xp: Any, mask: Any, keys: int) -> Any:
    """The mask for every key by itself, so that what is added to the keys can be added to it."""
    shape = tuple(mask.shape)
    return mask if shape[-1:] == (keys,) else xp.broadcast_to(mask, (*shape[:-1], keys))


def _known(shape: tuple) -> tuple:
    return tuple(-1 if n is None else n for n in shape)


# ---- checks --------------------------------------------------------------------------------------


def _check_inputs(query: Any, key: Any, value: Any) -> bool:
    """Whether there is a batch."""
    q, k, v = tuple(query.shape), tuple(key.shape), tuple(value.shape)
    alike = len(q) == len(k) == len(v) in (2, 3)
    if not alike or k[:-1] != v[:-1]:
        raise ValueError(
            f"{NAME}: needed query [N, L, E], key [N, S, K] and value [N, S, V], or all without N, "
            f"got {list(q)}, {list(k)} and {list(v)}"
        )
    return len(q) == 3


def _width(query: Any, whole: Any, parts: tuple) -> int:
    """E, the features of all heads together."""
    if whole is not None:
        if any(p is not None for p in parts):
            raise ValueError(
                f"{NAME}: needed in_proj_weights, or q_, k_ and v_proj_weights, got both"
            )
        rows = whole.shape[0]
        if len(whole.shape) != 2 or rows % 3 or whole.shape[1] != query.shape[-1]:
            raise ValueError(
                f"{NAME}: needed in_proj_weights [3E, E] for the {query.shape[-1]} features of "
                f"query, got {list(whole.shape)}"
            )
        return rows // 3
    if all(p is None for p in parts):
        return query.shape[-1]
    if any(p is None for p in parts):
        raise ValueError(f"{NAME}: needed all of q_, k_ and v_proj_weights, or none, got some")
    return parts[0].shape[0]


def _check_sizes(query: Any, key: Any, value: Any, width: int, whole: bool, parts: tuple) -> None:
    """Batches agree, and features with the weights they meet."""
    if query.shape[0] != key.shape[0] and None not in (query.shape[0], key.shape[0]):
        raise ValueError(
            f"{NAME}: needed one batch size, got {query.shape[0]} of query and {key.shape[0]} of "
            "key and value"
        )
    words = ("q_proj_weights", "k_proj_weights", "v_proj_weights")
    for word, role, x, w in zip(words, ("query", "key", "value"), (query, key, value), parts):
        if w is not None:
            _check_shape(word, w, [width, x.shape[-1]])
        elif x.shape[-1] != (query.shape[-1] if whole else width):
            wanted = query.shape[-1] if whole else width
            raise ValueError(
                f"{NAME}: needed {role} of {wanted} features, got {x.shape[-1]}; k_proj_weights "
                "and v_proj_weights take others"
            )


def _check_shape(word: str, x: Any, wanted: list) -> None:
    if x is not None and any(
        a != b and None not in (a, b)
        for a, b in zip((len(x.shape), *x.shape), (len(wanted), *wanted))
    ):
        raise ValueError(f"{NAME}: needed {word} {wanted}, got {list(x.shape)}")


def _check_pairs(width: int | None, **pair: Any) -> None:
    (a, first), (b, second) = pair.items()
    if (first is None) != (second is None):
        raise ValueError(f"{NAME}: needed both {a} and {b}, or none, got one")
    for word, x in pair.items():
        if x is not None and width is not None and prod(x.shape) != width:
            raise ValueError(f"{NAME}: needed {word} of {width} elements, got {list(x.shape)}")
