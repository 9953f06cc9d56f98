"""Activations: one array in, one like it out.

Each is finite, with a finite gradient, wherever its input is; at infinities they are limits.
"""

from __future__ import annotations

import math
from typing import Any, Never

from ..dispatch import backend_of
from ..keywords import refuse


def relu(x: Any, /) -> Any:
    """max(x, 0); its derivative at 0 is 0.

    >>> iso.relu(np.array([-1.0, 2.0]))
    array([0., 2.])
    """
    return backend_of(x).relu(x)


def leaky_relu(x: Any, /, *, alpha: float = 0.01) -> Any:
    """x where it is positive, `alpha`·x elsewhere.

    >>> iso.leaky_relu(np.array([-1.0, 2.0]))
    array([-0.01,  2.  ])
    """
    return backend_of(x).leaky_relu(x, alpha)


def elu(x: Any, /, *, alpha: float = 1.0) -> Any:
    """x where it is positive, `alpha`·(eˣ − 1) elsewhere.

    >>> iso.elu(np.array([0.0, 2.0]))
    array([0., 2.])
    """
    return backend_of(x).elu(x, alpha)


def gelu(x: Any, /, *, approximate: bool = False) -> Any:
    """x·Φ(x), with Φ the normal distribution; `approximate` by tanh, as GPT-2 has it.

    >>> iso.gelu(np.array([0.0, 100.0]))
    array([  0., 100.])
    """
    return backend_of(x).gelu(x, approximate)


def silu(x: Any, /) -> Any:
    """x·sigmoid(x).

    >>> iso.silu(np.array([0.0, 100.0]))
    array([  0., 100.])
    """
    return backend_of(x).silu(x)


def softplus(x: Any, /) -> Any:
    """log(1 + eˣ).

    >>> iso.softplus(np.array([1000.0]))
    array([1000.])
    """
    return backend_of(x).softplus(x)


def mish(x: Any, /) -> Any:
    """x·tanh(softplus(x)).

    >>> iso.mish(np.array([0.0, 100.0]))
    array([  0., 100.])
    """
    return backend_of(x).mish(x)


def hardswish(x: Any, /) -> Any:
    """x·min(max(x + 3, 0), 6) / 6.

    >>> iso.hardswish(np.array([-4.0, 3.0]))
    array([0., 3.])
    """
    return backend_of(x).hardswish(x)


def sigmoid(x: Any, /) -> Any:
    """1 / (1 + e⁻ˣ).

    >>> iso.sigmoid(np.array([0.0, -1000.0]))
    array([0.5, 0. ])
    """
    return backend_of(x).sigmoid(x)


def softmax(x: Any, /, *, axis: int = -1, **habits: Never) -> Any:
    """eˣ over its sum along `axis`.

    >>> iso.softmax(np.array([0.0, 0.0]))
    array([0.5, 0.5])
    """
    if habits:
        refuse("softmax", habits)
    return backend_of(x).softmax(x, axis)


def log_softmax(x: Any, /, *, axis: int = -1, **habits: Never) -> Any:
    """The logarithm of `softmax`.

    >>> iso.log_softmax(np.array([0.0]))
    array([0.])
    """
    if habits:
        refuse("log_softmax", habits)
    return backend_of(x).log_softmax(x, axis)


def logsumexp(
    x: Any,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    **habits: Never,
) -> Any:
    """log Σ eˣ along `axis`, or of all.

    >>> float(iso.logsumexp(np.array([1000.0])))
    1000.0
    """
    if habits:
        refuse("logsumexp", habits)
    return backend_of(x).logsumexp(x, axis, keepdims)


class Activations:
    """The meanings. Branches are chosen before the function that could overflow is called, so that
    gradients stay finite; each branch is the function itself, so that they are right at the seam.
    """

    def relu(xp: Any, x: Any) -> Any:
        return xp.where(x <= 0, xp.zeros_like(x), x)  # NaN stays

    def leaky_relu(xp: Any, x: Any, alpha: float) -> Any:
        return xp.where(x <= 0, x * alpha, x)

    def elu(xp: Any, x: Any, alpha: float) -> Any:
        return xp.where(x > 0, x, xp.expm1(xp.where(x > 0, xp.zeros_like(x), x)) * alpha)

    def gelu(xp: Any, x: Any, approximate: bool) -> Any:
        if not approximate:
            return ramped(xp, x, lambda x: 0.5 * x * (1 + xp.erf(x * math.sqrt(0.5))))
        near = xp.clip(x, -100.0, 100.0)  # beyond, tanh is 1 long since, and powers overflow
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
        if 0 in tuple(x.shape):  # nothing has no largest
            return xp.exp(x - xp.sum(x, axis=axis, keepdims=True))
        powers = xp.exp(x - xp.stop_gradient(xp.max(x, axis=axis, keepdims=True)))
        return powers / xp.sum(powers, axis=axis, keepdims=True)

    def log_softmax(xp: Any, x: Any, axis: int) -> Any:
        if 0 in tuple(x.shape):
            return xp.exp(x - xp.sum(x, axis=axis, keepdims=True))
        lower = x - xp.stop_gradient(xp.max(x, axis=axis, keepdims=True))
        return lower - xp.log(xp.sum(xp.exp(lower), axis=axis, keepdims=True))

    def logsumexp(xp: Any, x: Any, axis: Any, keepdims: bool) -> Any:
        if 0 in tuple(x.shape):  # none of them has a largest
            return xp.log(xp.sum(x, axis=axis, keepdims=keepdims))
        top = xp.stop_gradient(xp.max(x, axis=axis, keepdims=True))
        top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))  # inf - inf
        total = xp.log(xp.sum(xp.exp(x - top), axis=axis, keepdims=keepdims))
        return total + (top if keepdims else xp.reshape(top, tuple(total.shape)))


def ramped(xp: Any, x: Any, func: Any) -> Any:
    """`func(x)`, which is relu(x) on both sides: far out, where a product with 0 overflows or is no
    number, it is that.
    """
    far = xp.abs(x) > FAR
    return xp.where(far, xp.relu(x), func(xp.where(far, xp.zeros_like(x), x)))


FAR = 1e4
