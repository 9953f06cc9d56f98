"""What JAX has of its own for layers."""

from __future__ import annotations

from typing import Any

import jax

from ..base import Backend


class Layers(Backend):
    """Methods of the JAX backend."""

    def relu(xp, x: Any) -> Any:
        return jax.nn.relu(x)

    def leaky_relu(xp, x: Any, alpha: float) -> Any:
        return jax.nn.leaky_relu(x, alpha)

    def elu(xp, x: Any, alpha: float) -> Any:
        return jax.nn.elu(x, alpha)

    def gelu(xp, x: Any, approximate: bool) -> Any:
        return jax.nn.gelu(x, approximate)

    def silu(xp, x: Any) -> Any:
        return jax.nn.silu(x)

    def softplus(xp, x: Any) -> Any:
        return jax.nn.softplus(x)

    def mish(xp, x: Any) -> Any:
        return jax.nn.mish(x)

    def sigmoid(xp, x: Any) -> Any:
        return jax.nn.sigmoid(x)

    def softmax(xp, x: Any, axis: int) -> Any:
        return jax.nn.softmax(x, axis)

    def log_softmax(xp, x: Any, axis: int) -> Any:
        return jax.nn.log_softmax(x, axis)

    def logsumexp(xp, x: Any, axis: Any, keepdims: bool) -> Any:
        return jax.nn.logsumexp(x, axis, keepdims=keepdims)

    def pool(xp, *args: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _pool(xp, *args)

    def adaptive_pool(xp, *args: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _adaptive_pool(xp, *args)


# Many slices of one array: compiled one by one they take JAX a minute.
_pool = jax.jit(Backend.pool, static_argnums=(0, 2, 3, 4, 5, 6, 7, 8))
_adaptive_pool = jax.jit(Backend.adaptive_pool, static_argnums=(0, 2, 3, 4))
