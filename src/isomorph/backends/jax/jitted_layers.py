"""Layers that JAX runs as one compiled program each, even where nothing else is compiled: otherwise
a loop is traced again at each call, and attention is nine calls.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer

from ...meanings import attention as meaning
from ...meanings import recurrent

composed = jax.jit(meaning.attention, static_argnums=(0, 6))
NARROW = (jnp.bfloat16, jnp.float16)


def attention(
    xp: Any, query: Any, key: Any, value: Any, scale: Any, mask: Any, is_causal: bool
) -> Any:
    """Attention. cuDNN computes it if there is no mask, except the causal one, and if it has a
    kernel: on a GPU, for float16 and bfloat16.
    """
    if mask is None and query.dtype in NARROW and _is_fused(query, key, value, scale):
        q, k, v = (jnp.swapaxes(x, 1, 2) for x in (query, key, value))
        y = jax.nn.dot_product_attention(
            q, k, v, scale=scale, is_causal=is_causal, implementation="cudnn"
        )
        return jnp.swapaxes(y, 1, 2)
    return composed(xp, query, key, value, scale, mask, is_causal)


def _is_fused(query: Any, key: Any, value: Any, scale: Any) -> bool:
    """Whether cuDNN takes `[batch, heads, tokens, features]` of these shapes, on a GPU."""
    q, k = query.shape, key.shape
    return (
        type(scale) is float
        and len(q) == 4
        and k == value.shape
        and q[:2] == k[:2]
        and 0 not in (*q, *k)
        and q[-1] <= 128
        and q[-1] % 8 == 0
        and all(d.platform == "gpu" for x in (query, key, value) for d in _devices(x))
    )


def _devices(x: Any) -> Any:
    """The devices of `x`; while a program is traced, those it will be on."""
    return jax.devices() if isinstance(x, Tracer) else x.devices()


lstm = jax.jit(recurrent.lstm, static_argnums=(0, 8))
gru = jax.jit(recurrent.gru, static_argnums=(0, 7))
