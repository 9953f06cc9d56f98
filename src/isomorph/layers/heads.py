"""Multi-head attention with its projections, like `torch.nn.functional`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from ..core.dispatch import backend_of
from ..meanings import heads
from ..meanings.heads_plan import NAME, Arrays, Scoring, check_shape, four_axes, plan_of, shapes_of
from .attention import check_dropout, check_mask, check_one_dtype, dropping

if TYPE_CHECKING:
    from ..types.array_types import A, Shaped


@overload
def multi_head_attention(
    query: A, /, *, key: Shaped | None = None, value: Shaped | None = None, num_heads: int = 8,
    scale: float | Shaped | None = None, mask: Shaped | None = None,
    attention_mask: Shaped | None = None, key_padding_mask: Shaped | None = None,
    in_proj_weights: Shaped | None = None,
    q_proj_weights: Shaped | None = None, k_proj_weights: Shaped | None = None,
    v_proj_weights: Shaped | None = None, out_proj_weights: Shaped | None = None,
    in_proj_bias: Shaped | None = None, out_proj_bias: Shaped | None = None,
    is_causal: bool = False, bias_k: Shaped | None = None, bias_v: Shaped | None = None,
    static_k: Shaped | None = None, static_v: Shaped | None = None, add_zero_attn: bool = False,
    return_attention_weights: Literal[False] = False, average_attention_weights: bool = True,
    dropout: float = 0.0, training: bool = False, batch_first: bool = True,
    rng: Shaped | None = None,
) -> A: ...  # fmt: skip
@overload
def multi_head_attention(
    query: A, /, *, key: Shaped | None = None, value: Shaped | None = None, num_heads: int = 8,
    scale: float | Shaped | None = None, mask: Shaped | None = None,
    attention_mask: Shaped | None = None, key_padding_mask: Shaped | None = None,
    in_proj_weights: Shaped | None = None,
    q_proj_weights: Shaped | None = None, k_proj_weights: Shaped | None = None,
    v_proj_weights: Shaped | None = None, out_proj_weights: Shaped | None = None,
    in_proj_bias: Shaped | None = None, out_proj_bias: Shaped | None = None,
    is_causal: bool = False, bias_k: Shaped | None = None, bias_v: Shaped | None = None,
    static_k: Shaped | None = None, static_v: Shaped | None = None, add_zero_attn: bool = False,
    return_attention_weights: Literal[True], average_attention_weights: bool = True,
    dropout: float = 0.0, training: bool = False, batch_first: bool = True,
    rng: Shaped | None = None,
) -> tuple[A, A]: ...  # fmt: skip
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
    """Attention in `num_heads` heads; each has D = E / num_heads of the E features.

    `query` is `[N, L, E]`, `key` `[N, S, K]`, `value` `[N, S, V]`; with `batch_first` False the
    first two axes are swapped, and without a batch all three have no N. `key` defaults to `query`,
    `value` to `key`. The result is like `query`; with `return_attention_weights` also the weights,
    `[N, L, S]`, or `[N, num_heads, L, S]` unless `average_attention_weights`.

    Projections are x·Wᵀ + b, and are skipped if W is not given: `in_proj_weights` `[3E, E]`, with
    those of query, key and value stacked in this order; or `q_proj_weights` `[E, E]`,
    `k_proj_weights` `[E, K]` and `v_proj_weights` `[E, V]`; `in_proj_bias` `[3E]`;
    `out_proj_weights` `[out, E]`, `out_proj_bias` `[out]`.

    There are two ways to mask. `mask` is that of `scaled_dot_product_attention`: it broadcasts to
    `[N, num_heads, L, S]`, and True in a boolean mask marks keys that are attended to; a mask for
    each example is `[N, 1, L, S]`. `attention_mask` and `key_padding_mask` are those of torch's
    function of this name, where True marks keys that are *not* attended to: `attention_mask` is
    `[L, S]`, `[N, L, S]`, `[N·num_heads, L, S]` or `[N, num_heads, L, S]`, `key_padding_mask`
    `[N, S]`. Masks that are not boolean are added. `mask` cannot be combined with the other two.

    `bias_k` and `bias_v`, of E elements, are an additional key and value; `add_zero_attn` adds a
    key and value of zeros; these are never masked. `static_k` and `static_v` `[N·num_heads, S, D]`
    replace projected keys and values. A query that attends to no key gives the bias alone.

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
    arrays = Arrays(
        query, key, value, in_proj_weights, q_proj_weights, k_proj_weights, v_proj_weights,
        out_proj_weights, in_proj_bias, out_proj_bias, bias_k, bias_v, static_k, static_v,
    )  # fmt: skip
    xp = backend_of(*arrays, mask, attention_mask, key_padding_mask)
    check_one_dtype(NAME, xp, Arrays._fields, arrays)
    shapes = shapes_of(arrays)
    drops = check_dropout(NAME, "dropout", dropout, training, rng)
    plan = plan_of(
        shapes, key is query and value is key, num_heads, batch_first, add_zero_attn,
        return_attention_weights, average_attention_weights,
    )  # fmt: skip
    scoring = Scoring(scale, mask, attention_mask, key_padding_mask, is_causal)
    q, k, v = heads.apart(xp, arrays, plan)
    _check_masks(xp, q, scoring, plan.scores)  # with autocast, q is narrower than query
    drop = dropping(dropout, rng) if drops else None
    return heads.attended(xp, q, k, v, scoring, drop, arrays, plan)


def _check_masks(xp: Any, q: Any, scoring: Scoring, scores: tuple) -> None:
    """Check that masks are boolean or have the queries' dtype, and fit the shape of the scores."""
    own, mask, padding = scoring.mask, scoring.attention_mask, scoring.key_padding_mask
    if own is not None:
        check_mask(NAME, xp, own, q, scores)
    if mask is not None:
        given = four_axes(tuple(mask.shape), scores)
        check_mask(NAME, xp, mask, q, scores, "attention_mask", given)
    if padding is not None:
        shape, n, keys = tuple(padding.shape), scores[0], scores[-1]
        check_shape("key_padding_mask", shape, (n, keys) if len(shape) == 2 else (keys,))
        check_mask(NAME, xp, padding, q, shape, "key_padding_mask")
