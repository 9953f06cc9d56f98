"""Random draws in JAX, by its own hash function. A large or traced draw is a separate program."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.dtypes import canonicalize_dtype
from jax.extend.random import threefry2x32_p

from .literals import without

FEW = 2**18  # up to this many, NumPy draws faster than a program compiles


def words(key: Any, counts: Any) -> tuple:
    first, second, zeros = key[0], key[1], jnp.zeros_like(counts)
    if counts.size == 1:  # a single counter may be batched alone; then all must be
        zeros = counts * 0
        first, second = first + zeros, second + zeros
    return tuple(threefry2x32_p.bind(first, second, zeros, counts))


def draw(xp: Any, meaning: Any, key: Any, start: int, shape: tuple, args: tuple) -> Any:
    # JAX would silently drop float64, which the result does not need
    with jax.enable_x64(True):
        return _drawn(key, xp, meaning, start, shape, args)


@partial(jax.jit, static_argnums=(1, 2, 3, 4, 5))
def _drawn(key: Any, xp: Any, meaning: Any, start: int, shape: tuple, args: tuple) -> Any:
    drawn = meaning(xp, key, start, math.prod(shape), *args)
    return jnp.reshape(drawn, (*shape, *drawn.shape[1:]))


def is_small(key: Any, shape: tuple, args: tuple) -> bool:
    """Whether a draw is small enough for NumPy to make it, and its key is not traced."""
    for word in args:
        if word in ("float64", "int64", "uint64") and canonicalize_dtype(word) != word:
            raise TypeError(f"random: {without(word)}")
    return not isinstance(key, Tracer) and math.prod(shape) <= FEW


@partial(jax.jit, static_argnums=(1, 2, 3))
def quick(key: Any, shape: tuple, dtype: Any, normal: bool) -> Any:
    key = jax.random.wrap_key_data(key, impl="threefry2x32")
    return (jax.random.normal if normal else jax.random.uniform)(key, shape, dtype)
