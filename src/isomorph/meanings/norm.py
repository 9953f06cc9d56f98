"""Normalisations. They divide once per row and then multiply: a division per element would cost
several times more.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from .shapes import known


def layer_norm(xp: Any, x: Any, weight: Any, bias: Any, axes: tuple, epsilon: float) -> Any:
    if 0 in tuple(x.shape):  # the mean of an empty array is undefined
        return _scaled(xp, x, weight, bias, axes)
    centred = x - xp.mean(x, axis=axes, keepdims=True)
    spread = xp.mean(centred * centred, axis=axes, keepdims=True)
    return _scaled(xp, centred * (1 / xp.sqrt(spread + epsilon)), weight, bias, axes)


def rms_norm(xp: Any, x: Any, weight: Any, axes: tuple, epsilon: float) -> Any:
    if 0 in tuple(x.shape):
        return _scaled(xp, x, weight, None, axes)
    size = xp.sqrt(xp.mean(x * x, axis=axes, keepdims=True) + epsilon)
    return _scaled(xp, x * (1 / size), weight, None, axes)


class BatchNormPlan(NamedTuple):
    """The settings of a batch normalisation."""

    training: bool
    momentum: float
    epsilon: float
    channel: int  # the axis


def batch_norm(
    xp: Any,
    x: Any,
    mean: Any,
    variance: Any,
    weight: Any,
    bias: Any,
    plan: BatchNormPlan,
) -> tuple[Any, Any, Any]:
    training, momentum, epsilon, channel = plan
    axes = tuple(i for i in range(len(x.shape)) if i != channel)
    if not training:
        centred = x - _along(xp, mean, len(x.shape), (channel,))
        y = centred * (1 / xp.sqrt(_along(xp, variance, len(x.shape), (channel,)) + epsilon))
        return _scaled(xp, y, weight, bias, (channel,)), mean, variance
    centre = xp.mean(x, axis=axes, keepdims=True)
    centred = x - centre
    spread = xp.mean(centred * centred, axis=axes, keepdims=True)
    scale = 1 / xp.sqrt(spread + epsilon)
    if weight is not None:  # one product per channel, and one sum less in the backward pass
        scale = scale * _along(xp, weight, len(x.shape), (channel,))
    y = _scaled(xp, centred * scale, None, bias, (channel,))
    sizes = [x.shape[i] for i in axes]
    if None in sizes:
        count = xp.sum(xp.ones_like(x), axis=axes, keepdims=True)
        unbiased = spread * count / xp.maximum(count - 1, 1)
    else:
        count = prod(sizes)
        unbiased = spread * (count / (count - 1))

    return y, moved(xp, mean, centre, momentum), moved(xp, variance, unbiased, momentum)


def group_norm(
    xp: Any, x: Any, groups: int, weight: Any, bias: Any, epsilon: float, channel: int
) -> Any:
    shape = known(x.shape)
    parts = (*shape[:channel], groups, shape[channel] // groups, *shape[channel + 1 :])
    axes = tuple(i for i in range(1, len(parts)) if i != channel)
    y = xp.layer_norm(xp.reshape(x, parts), None, None, axes, epsilon)
    return _scaled(xp, xp.reshape(y, shape), weight, bias, (channel,))


def local_response_norm(
    xp: Any, x: Any, size: int, alpha: float, beta: float, k: float, channel: int
) -> Any:
    n = x.shape[channel]
    most = max(n - 1, 0)  # how many neighbours there are
    low, high = min(size // 2, most), min((size - 1) // 2, most)
    around = [(0, 0)] * len(x.shape)
    around[channel] = (low, high)
    squares = xp.pad(x * x, around)
    before = (slice(None),) * channel
    total = squares[(*before, slice(0, n), ...)]
    for i in range(1, low + high + 1):
        total = total + squares[(*before, slice(i, i + n), ...)]
    return x * (k + alpha / size * total) ** -beta


def moved(xp: Any, old: Any, new: Any, momentum: float) -> Any:
    """A running statistic, updated by the statistic of a batch."""
    new = xp.stop_gradient(xp.reshape(new, tuple(old.shape)))
    # statistics may have a wider dtype than the computation
    new = new if new.dtype == old.dtype else xp.astype(new, old.dtype)
    return old + momentum * (new - old)


def _along(xp: Any, part: Any, ndim: int, axes: tuple) -> Any:
    """`part`, which has only the axes `axes`, reshaped to broadcast with `ndim` axes."""
    if axes == tuple(range(ndim - len(axes), ndim)):
        return part
    sizes = iter(part.shape)
    return xp.reshape(part, tuple(next(sizes) if i in axes else 1 for i in range(ndim)))


def _scaled(xp: Any, y: Any, weight: Any, bias: Any, axes: tuple) -> Any:
    if weight is not None:
        y = y * _along(xp, weight, len(y.shape), axes)
    return y if bias is None else y + _along(xp, bias, len(y.shape), axes)
