"""Activations. Where a function could overflow for some inputs, `xp.where` replaces these inputs
before the call, so that gradients stay finite. Each branch is the exact function, so that values
agree where two branches meet.
"""

from __future__ import annotations

import math
from typing import Any

FAR = 1e4  # beyond ±FAR, gelu, silu and mish equal relu


def relu(xp: Any, x: Any) -> Any:
    return xp.where(x <= 0, xp.zeros_like(x), x)  # NaN stays


def leaky_relu(xp: Any, x: Any, alpha: float) -> Any:
    return xp.where(x <= 0, x * alpha, x)


def elu(xp: Any, x: Any, alpha: float) -> Any:
    return xp.where(x > 0, x, xp.expm1(xp.where(x > 0, xp.zeros_like(x), x)) * alpha)


def gelu(xp: Any, x: Any, approximate: bool) -> Any:
    if not approximate:
        return ramped(xp, x, lambda x: 0.5 * x * (1 + xp.erf(x * math.sqrt(0.5))))
    near = xp.clip(x, -100.0, 100.0)  # beyond, tanh is ±1, and powers could overflow
    inner = math.sqrt(2 / math.pi) * (near + 0.044715 * near * near * near)
    return ramped(xp, x, lambda x: 0.5 * x * (1 + xp.tanh(inner)))


def silu(xp: Any, x: Any) -> Any:
    return ramped(xp, x, lambda x: x * xp.sigmoid(x))


def softplus(xp: Any, x: Any) -> Any:
    positive = x >= 0
    small = xp.exp(xp.where(positive, -x, x))
    return xp.where(positive, x, xp.zeros_like(x)) + xp.log1p(small)


def mish(xp: Any, x: Any) -> Any:
    return ramped(xp, x, lambda x: x * xp.tanh(xp.softplus(x)))


def hardswish(xp: Any, x: Any) -> Any:
    middle = xp.where(xp.abs(x) >= 3, xp.zeros_like(x), x)
    bent = xp.where(x >= 3, x, middle * (middle + 3) / 6)
    return xp.where(x <= -3, xp.zeros_like(x), bent)


def sigmoid(xp: Any, x: Any) -> Any:
    positive = x >= 0
    small = xp.exp(xp.where(positive, -x, x))
    return xp.where(positive, xp.ones_like(x), small) / (1 + small)


def softmax(xp: Any, x: Any, axis: int) -> Any:
    if 0 in tuple(x.shape):  # an empty array has no maximum
        return xp.exp(x - xp.sum(x, axis=axis, keepdims=True))
    powers = xp.exp(x - xp.stop_gradient(xp.max(x, axis=axis, keepdims=True)))
    return powers / xp.sum(powers, axis=axis, keepdims=True)


def log_softmax(xp: Any, x: Any, axis: int) -> Any:
    if 0 in tuple(x.shape):
        return xp.exp(x - xp.sum(x, axis=axis, keepdims=True))
    lower = x - xp.stop_gradient(xp.max(x, axis=axis, keepdims=True))
    return lower - xp.log(xp.sum(xp.exp(lower), axis=axis, keepdims=True))


def logsumexp(xp: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    if 0 in tuple(x.shape):  # an empty array has no maximum
        return xp.log(xp.sum(x, axis=axis, keepdims=keepdims))
    top = xp.stop_gradient(xp.max(x, axis=axis, keepdims=True))
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))  # avoids inf - inf
    total = xp.log(xp.sum(xp.exp(x - top), axis=axis, keepdims=keepdims))
    return total + (top if keepdims else xp.reshape(top, tuple(total.shape)))


def ramped(xp: Any, x: Any, func: Any) -> Any:
    """`func(x)`, for a function that approaches relu(x) on both sides. Beyond ±`FAR`, where `func`
    could overflow or give NaN, the result is relu(x).
    """
    far = xp.abs(x) > FAR
    return xp.where(far, xp.relu(x), func(xp.where(far, xp.zeros_like(x), x)))
