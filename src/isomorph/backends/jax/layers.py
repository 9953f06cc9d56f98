"""JAX's own functions for layers."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer

from ...meanings.activation import ramped
from ...meanings.bounds import strays
from ...meanings.pooling import PoolPlan
from ..composed import Backend
from . import names

NARROW = (jnp.bfloat16, jnp.float16)
FEW = 8  # rows of an input that XLA multiplies like vectors


class Layers(Backend):
    """Methods of the JAX backend."""

    def linear(xp, x: Any, weight: Any, bias: Any) -> Any:
        few = math.prod(x.shape[:-1]) <= FEW and jax.default_backend() == "cpu"
        if not few or bias is None or weight.ndim > 2 or not isinstance(x, Tracer):
            return super().linear(x, weight, bias)
        # XLA would fuse the sum into the product of a matrix and a vector: ten times as slow
        return jax.lax.optimization_barrier(super().linear(x, weight, None)) + bias

    def relu(xp, x: Any) -> Any:
        return jax.nn.relu(x)

    def leaky_relu(xp, x: Any, alpha: float) -> Any:
        return jax.nn.leaky_relu(x, alpha)

    def elu(xp, x: Any, alpha: float) -> Any:
        return jax.nn.elu(x, alpha)

    def gelu(xp, x: Any, approximate: bool) -> Any:
        return _ramped(xp, x, _tanh_gelu if approximate else _erf_gelu)

    def silu(xp, x: Any) -> Any:
        return _ramped(xp, x, jax.nn.silu)

    def softplus(xp, x: Any) -> Any:
        return jax.nn.softplus(x)

    def mish(xp, x: Any) -> Any:
        return _ramped(xp, x, jax.nn.mish)

    def sigmoid(xp, x: Any) -> Any:
        return jax.nn.sigmoid(x)

    def softmax(xp, x: Any, axis: int) -> Any:
        return jax.nn.softmax(x, axis)

    def log_softmax(xp, x: Any, axis: int) -> Any:
        return jax.nn.log_softmax(x, axis)

    def logsumexp(xp, x: Any, axis: Any, keepdims: bool) -> Any:
        return jax.nn.logsumexp(x, axis, keepdims=keepdims)

    def layer_norm(xp, x: Any, weight: Any, bias: Any, axes: tuple, epsilon: float) -> Any:
        if x.dtype not in NARROW:
            return super().layer_norm(x, weight, bias, axes, epsilon)
        weight, bias = _wide(weight), _wide(bias)
        return super().layer_norm(_wide(x), weight, bias, axes, epsilon).astype(x.dtype)

    def rms_norm(xp, x: Any, weight: Any, axes: tuple, epsilon: float) -> Any:
        if x.dtype not in NARROW:
            return super().rms_norm(x, weight, axes, epsilon)
        return super().rms_norm(_wide(x), _wide(weight), axes, epsilon).astype(x.dtype)

    def label_scores(xp, logits: Any, labels: Any, axis: int) -> Any:
        # not log_softmax: JAX knows fewer zeros in its pullback
        lower = logits - jax.lax.stop_gradient(jnp.max(logits, axis, keepdims=True))
        return xp.picked(lower, labels, axis) - jnp.log(jnp.sum(jnp.exp(lower), axis))

    def picked(xp, x: Any, labels: Any, axis: int) -> Any:
        return _picked(xp, x, labels, axis)

    def is_inside(xp, x: Any, size: int) -> bool | None:
        found = names.span(x)
        return None if found is None else found[0] >= 0 and found[1] < size

    def take_rows(xp, weight: Any, ids: Any) -> Any:
        n = weight.shape[0]
        lost = strays(xp, "embedding", ids, n, "ids")
        if lost is None:
            return jnp.take(weight, names.counting(ids), axis=0)
        if xp.is_float(weight.dtype):
            places = jnp.where(lost, n, names.counting(ids))
            return jnp.take(weight, places, axis=0, mode="fill")
        return jnp.take(weight, jnp.clip(names.counting(ids), 0, n - 1), axis=0)

    def pool(xp, x: Any, plan: PoolPlan) -> Any:
        return _pool(xp, x, plan)

    def adaptive_pool(xp, *args: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _adaptive_pool(xp, *args)


_tanh_gelu = partial(jax.nn.gelu, approximate=True)
_erf_gelu = partial(jax.nn.gelu, approximate=False)
_ramped = jax.jit(ramped, static_argnums=(0, 2))


def _wide(x: Any) -> Any:
    """A wider dtype for statistics: narrow floats keep two digits."""
    return None if x is None else x.astype(jnp.float32)


# A gather whose pullback does not scatter into zeros of the size of `x`, but fuses with later
# steps.
_picked = jax.custom_jvp(Backend.picked, nondiff_argnums=(0, 3))


@_picked.defjvp
def _picked_jvp(xp: Any, axis: int, primals: tuple, tangents: tuple) -> tuple:
    x, labels = primals
    wide = jnp.expand_dims(names.counting(labels), axis)
    here = jax.lax.broadcasted_iota(wide.dtype, x.shape, axis) == wide
    tangent = jnp.sum(jnp.where(here, tangents[0], 0), axis)
    return _picked(xp, x, labels, axis), tangent


# Many slices of one array: compiled one by one they take JAX a minute.
_pool = jax.jit(Backend.pool, static_argnums=(0, 2))
_adaptive_pool = jax.jit(Backend.adaptive_pool, static_argnums=(0, 2, 3, 4))
