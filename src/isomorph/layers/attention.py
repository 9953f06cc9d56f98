"""Attention: weighted means of values; the weights say how well a query matches each key.

A row whose keys are all masked gives zeros, with zero gradient: it is computed as if nothing were
masked, so that 0/0 never occurs, and its result is then replaced by zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import TYPE_CHECKING, Any

from ..core.dispatch import backend_of, dtype_of
from ..meanings.attention import weighted
from ..meanings.shapes import broadcast, known, remembered
from .dropout import dropout

if TYPE_CHECKING:
    from ..types.array_types import A, Shaped

# ---- doors ---------------------------------------------------------------------------------------


def scaled_dot_product_attention(
    query: A,
    key: Shaped,
    value: Shaped,
    /,
    *,
    scale: float | Shaped | None = None,
    mask: Shaped | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    training: bool = False,
    rng: Shaped | None = None,
) -> A:
    """softmax(query·keyᵀ·scale + mask)·value: `query` is `[..., L, F]`, `key` `[..., S, F]`,
    `value` `[..., S, V]`, the result `[..., L, V]`; leading axes broadcast.

    `scale` defaults to 1/√F. `mask` broadcasts to `[..., L, S]`: in a boolean mask, True marks the
    keys that are attended to; any other mask is added to the scores. With `is_causal`, query i
    attends to keys 0 to i that the mask allows. A query that attends to no key gives zeros, with
    zero gradient. While `training`, weights are dropped with probability `dropout_p`, using the key
    `rng`.

    >>> x = np.eye(2)
    >>> iso.scaled_dot_product_attention(x, x, x, mask=np.array([[True, False], [False, False]]))
    array([[1., 0.],
           [0., 0.]])
    """
    name = "scaled_dot_product_attention"
    xp = backend_of(query, key, value, mask)
    scores, own_scale = _checked(name, xp, query, key, value, 2)
    if mask is not None:
        check_mask(name, xp, mask, query, scores)
    scale = own_scale if scale is None else scale
    if dropout_p != 0 and check_dropout(name, "dropout_p", dropout_p, training, rng):
        drop = dropping(dropout_p, rng)
        return weighted(xp, query, key, value, scale, mask, is_causal, drop)[0]
    return xp.attention(query, key, value, scale, mask, is_causal)


def grouped_query_attention(
    query: A,
    key: Shaped,
    value: Shaped,
    /,
    *,
    scale: float | Shaped | None = None,
    mask: Shaped | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    training: bool = False,
    rng: Shaped | None = None,
) -> A:
    """`scaled_dot_product_attention` of `query` `[..., H, L, F]` with fewer heads of `key`
    `[..., G, S, F]` and `value` `[..., G, S, V]`: each serves H/G consecutive heads of the query.
    The result is `[..., H, L, V]`, the mask broadcasts to `[..., H, L, S]`.

    >>> q, k = np.ones((4, 5, 8)), np.ones((2, 6, 8))
    >>> iso.grouped_query_attention(q, k, k).shape
    (4, 5, 8)
    """
    name = "grouped_query_attention"
    xp = backend_of(query, key, value, mask)
    scores, own_scale = _checked(name, xp, query, key, value, 3)
    if mask is not None:
        check_mask(name, xp, mask, query, scores)
    drops = check_dropout(name, "dropout_p", dropout_p, training, rng)
    scale = own_scale if scale is None else scale
    heads, groups = query.shape[-3], key.shape[-3]
    each = heads // groups
    if mask is not None and len(mask.shape) >= 3:
        mask = _grouped(xp, mask, groups, each)
    query = _grouped(xp, query, groups, each)
    key, value = xp.expand_dims(key, axis=-3), xp.expand_dims(value, axis=-3)
    if drops:
        drop = dropping(dropout_p, rng)
        y = weighted(xp, query, key, value, scale, mask, is_causal, drop)[0]
    else:
        y = xp.attention(query, key, value, scale, mask, is_causal)
    shape = known(y.shape)
    return xp.reshape(y, (*shape[:-4], heads, *shape[-2:]))


# ---- dropout -------------------------------------------------------------------------------------


def dropping(prob: float, rng: Any) -> Callable[[Any], Any]:
    """The function that drops weights with that probability."""
    return lambda weights: dropout(weights, prob, rng=rng)


# ---- checks, also for other files ----------------------------------------------------------------


def _grouped(xp: Any, x: Any, groups: int, each: int) -> Any:
    """`[..., heads, a, b]` as `[..., groups, each, a, b]`."""
    shape = known(x.shape)
    parts = (1, 1) if shape[-3] == 1 else (groups, each)
    return xp.reshape(x, (*shape[:-3], *parts, *shape[-2:]))


def _checked(name: str, xp: Any, query: Any, key: Any, value: Any, least: int) -> tuple:
    """The shape of the scores, `[..., L, S]`, and the default scale."""
    try:
        dtype, q, k, v = query.dtype, query.shape, key.shape, value.shape
    except AttributeError:  # a number instead of an array
        kinds = " and ".join(type(x).__name__ for x in (query, key, value))
        raise TypeError(f"{name}: needed arrays as query, key and value, got {kinds}") from None
    alike = dtype is key.dtype is value.dtype  # the usual case
    if not (alike and (dtype is xp.float32 or (xp.is_float(dtype) and not xp.is_complex(dtype)))):
        check_one_dtype(name, xp, ("query", "key", "value"), (query, key, value))
    return _SCORES(name, least, q, k, v)


def _scores_shape(name: str, least: int, q: Any, k: Any, v: Any) -> tuple[tuple, float]:
    """From shapes with at least `least` axes; with three, the first of them is the heads axis."""
    q, k, v = tuple(q), tuple(k), tuple(v)
    if len(q) < least or len(k) < least or len(v) < least or q[-1] != k[-1] or k[-2] != v[-2]:
        heads = (", H", ", G") if least == 3 else ("", "")
        raise ValueError(
            f"{name}: needed query [...{heads[0]}, L, F], key [...{heads[1]}, S, F] and value "
            f"[...{heads[1]}, S, V], got {list(q)}, {list(k)} and {list(v)}"
        )
    if least == 3 and (v[-3] != k[-3] or not k[-3] or q[-3] % k[-3]):
        raise ValueError(
            f"{name}: needed as many heads in value as in key, and a number that divides the heads "
            f"of query, got {q[-3]} in query, {k[-3]} in key and {v[-3]} in value"
        )
    lead = broadcast(q[:-least], k[:-least], v[:-least])
    if lead is None:
        raise ValueError(
            f"{name}: needed leading axes that broadcast, got query {list(q)}, key {list(k)} and "
            f"value {list(v)}"
        )
    return (*lead, *q[-least:-1], k[-2]), q[-1] ** -0.5 if q[-1] else 1.0


_SCORES = remembered(_scores_shape)


def check_one_dtype(name: str, xp: Any, words: tuple[str, ...], arrays: tuple) -> None:
    """Check that all arrays, named by `words`, have one real floating dtype; None is ignored."""
    dtypes = [x.dtype for x in arrays if x is not None]
    dtype = dtypes[0]
    if dtypes.count(dtype) == len(dtypes):
        if dtype in (xp.float32, xp.float64):
            return
        if xp.is_float(dtype) and not xp.is_complex(dtype):
            return
    listed = ", ".join(f"{w} {dtype_of(x)}" for w, x in zip(words, arrays) if x is not None)
    raise TypeError(f"{name}: needed arrays of the same real floating dtype, got {listed}")


def check_mask(
    name: str,
    xp: Any,
    mask: Any,
    query: Any,
    shape: tuple,
    word: str = "mask",
    given: tuple | None = None,
) -> None:
    """Check that the mask is boolean or has the query's dtype, and broadcasts to `shape`; `given`
    is the shape for the message, if the mask was reshaped.
    """
    if mask.dtype != xp.bool and mask.dtype != query.dtype:
        raise TypeError(
            f"{name}: needed {word} boolean or {dtype_of(query)} like query, got {dtype_of(mask)}"
        )
    given = tuple(mask.shape) if given is None else given
    fits = len(given) <= len(shape) and all(
        m in (1, n) or m is None or n is None for m, n in zip(given[::-1], shape[::-1])
    )
    if not fits:
        raise ValueError(
            f"{name}: needed {word} that broadcasts to {list(shape)}, got {list(given)}"
        )


def check_dropout(name: str, word: str, prob: float, training: bool, rng: Any) -> bool:
    """Whether weights are to be dropped."""
    if not isinstance(prob, (float, Real)) or not 0 <= prob < 1:
        raise ValueError(f"{name}: needed 0 <= {word} < 1, got {prob!r}")
    if training and prob and rng is None:
        raise ValueError(f"{name}: needed a key as rng to drop weights while training, got None")
    return bool(training and prob)
