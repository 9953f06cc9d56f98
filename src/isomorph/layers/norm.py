"""Normalisations: zero mean and unit variance over some axes, then a scale and an offset."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Never

from ..core.dispatch import backend_of
from ..core.keywords import refuse
from ..meanings import norm as meanings
from ..meanings.norm import BatchNormPlan
from ..meanings.shapes import GENERAL, is_first, other_side, remembered

if TYPE_CHECKING:
    from ..types.array_types import A, Shaped
    from ..typing import Format


def layer_norm(
    x: A,
    /,
    *,
    weight: Shaped | None = None,
    bias: Shaped | None = None,
    axis: int | tuple[int, ...] = -1,
    epsilon: float = 1e-5,
    **habits: Never,
) -> A:
    """(x − mean) / √(variance + epsilon) over `axis`, times `weight` plus `bias`, which have the
    shape of those axes.

    >>> iso.layer_norm(np.array([1.0, 3.0]), epsilon=0.0)
    array([-1.,  1.])
    """
    if habits:
        refuse("layer_norm", habits)
    axes = _checked("layer_norm", x, axis, weight, bias)
    return backend_of(x, weight, bias).layer_norm(x, weight, bias, axes, epsilon)


def rms_norm(
    x: A,
    /,
    *,
    weight: Shaped | None = None,
    axis: int | tuple[int, ...] = -1,
    epsilon: float = 1e-6,
    **habits: Never,
) -> A:
    """x / √(mean of x² + epsilon) over `axis`, times `weight`, which has the shape of those axes.

    >>> iso.rms_norm(np.array([3.0, -3.0]), epsilon=0.0)
    array([ 1., -1.])
    """
    if habits:
        refuse("rms_norm", habits)
    axes = _checked("rms_norm", x, axis, weight, None)
    return backend_of(x, weight).rms_norm(x, weight, axes, epsilon)


def batch_norm(
    x: A,
    mean: Shaped,
    variance: Shaped,
    /,
    *,
    weight: Shaped | None = None,
    bias: Shaped | None = None,
    training: bool = False,
    momentum: float = 0.1,
    epsilon: float = 1e-5,
    data_format: Format = GENERAL[0],
    **habits: Never,
) -> tuple[A, A, A]:
    """`(y, mean, variance)`: each channel of `x` normalised by the statistics of the batch when
    `training`, else by the given running statistics.

    `x` is `[batch, *sizes, channels]`, or `[batch, channels, *sizes]` with "channel_first"; all
    other arrays are `[channels]`. When training, the returned statistics are the given ones moved
    by `momentum` towards those of the batch (with the unbiased variance, as in torch); no gradient
    flows through them.

    >>> y, mean, _ = iso.batch_norm(
    ...     np.array([[1.0], [3.0]]), np.zeros(1), np.ones(1), training=True, epsilon=0.0
    ... )
    >>> y.tolist(), mean
    ([[-1.0], [1.0]], array([0.2]))
    """
    if habits:
        refuse("batch_norm", habits)
    channel = _channel("batch_norm", x, data_format)
    size = [x.shape[channel]]
    _check_channels(
        "batch_norm", x, channel, mean=mean, variance=variance, weight=weight, bias=bias
    )
    known = None not in tuple(x.shape)  # the batch may have an unknown size
    if training and known and prod(tuple(x.shape)) // max(size[0], 1) < 2:
        raise ValueError(
            f"batch_norm: needed more than one value per channel in training, got {list(x.shape)}; "
            "if that is the last batch of an epoch, drop it or change the batch size"
        )
    xp = backend_of(x, mean, variance, weight, bias)
    plan = BatchNormPlan(training, momentum, epsilon, channel)
    return xp.batch_norm(x, mean, variance, weight, bias, plan)


def group_norm(
    x: A,
    groups: int,
    /,
    *,
    weight: Shaped | None = None,
    bias: Shaped | None = None,
    epsilon: float = 1e-5,
    data_format: Format = GENERAL[0],
    **habits: Never,
) -> A:
    """Each example of `x` normalised over its sizes and over each of `groups` groups of channels;
    `weight` and `bias` are `[channels]`.

    >>> iso.group_norm(np.array([[1.0, 3.0, 2.0, 6.0]]), 2, epsilon=0.0)
    array([[-1.,  1., -1.,  1.]])
    """
    if habits:
        refuse("group_norm", habits)
    channel = _channel("group_norm", x, data_format)
    size = x.shape[channel]
    _check_channels("group_norm", x, channel, weight=weight, bias=bias)
    if type(groups) is not int or groups < 1 or size % groups:
        raise ValueError(
            f"group_norm: needed groups that divide the {size} channels, got {groups!r}"
        )
    xp = backend_of(x, weight, bias)
    return meanings.group_norm(xp, x, groups, weight, bias, epsilon, channel)


def instance_norm(
    x: A,
    /,
    *,
    weight: Shaped | None = None,
    bias: Shaped | None = None,
    epsilon: float = 1e-5,
    data_format: Format = GENERAL[0],
    **habits: Never,
) -> A:
    """Each channel of each example of `x` normalised over its sizes; `weight` and `bias` are
    `[channels]`.

    >>> iso.instance_norm(np.array([[[1.0], [3.0]]]), epsilon=0.0).tolist()
    [[[-1.0], [1.0]]]
    """
    if habits:
        refuse("instance_norm", habits)
    channel = _channel("instance_norm", x, data_format)
    if len(x.shape) < 3:
        raise ValueError(f"instance_norm: needed x with at least 3 axes, got shape {list(x.shape)}")
    size = x.shape[channel]
    _check_channels("instance_norm", x, channel, weight=weight, bias=bias)
    xp = backend_of(x, weight, bias)
    return meanings.group_norm(xp, x, size, weight, bias, epsilon, channel)


def local_response_norm(
    x: A,
    /,
    size: int,
    *,
    alpha: float = 1e-4,
    beta: float = 0.75,
    k: float = 1.0,
    data_format: Format = GENERAL[0],
) -> A:
    """x / (k + alpha · s / size)^beta, where s is the sum of x² over `size` neighbouring channels:
    size // 2 before each and (size − 1) // 2 after it, fewer at the ends.

    `x` is `[batch, *sizes, channels]`, or `[batch, channels, *sizes]` with "channel_first".

    >>> iso.local_response_norm(np.array([[1.0, 2.0, 4.0]]), 2, alpha=2.0, beta=1.0, k=0.0)
    array([[1. , 0.4, 0.2]])
    """
    channel = _channel("local_response_norm", x, data_format)
    if type(size) is not int or size < 1:
        raise ValueError(f"local_response_norm: needed size as an int >= 1, got {size!r}")
    return meanings.local_response_norm(backend_of(x), x, size, alpha, beta, k, channel)


def _checked(name: str, x: Any, axis: Any, weight: Any, bias: Any) -> tuple[int, ...]:
    """The axes, sorted and not negative."""
    find = _AXES if type(axis) is int else _axes  # a tuple may hold values that are not hashable
    weight = None if weight is None else weight.shape
    return find(name, x.shape, axis, weight, None if bias is None else bias.shape)


def _axes(name: str, shape: Any, axis: Any, weight: Any, bias: Any) -> tuple[int, ...]:
    axes = (axis,) if type(axis) is int else tuple(axis)
    n = len(shape)
    if not axes or any(type(a) is not int or not -n <= a < n for a in axes):
        raise ValueError(f"{name}: needed axes of an array of {n} axes, got {axis!r}")
    found = tuple(sorted(a % n for a in axes))
    if len(set(found)) != len(found):
        raise ValueError(f"{name}: needed each axis once, got {axis!r}")
    _check_shapes(name, [shape[a] for a in found], weight=weight, bias=bias)
    return found


_AXES = remembered(_axes)


def _check_channels(name: str, x: Any, channel: int, **parts: Any) -> None:
    """Check that arrays with one value per channel have as many values as `x` has channels."""
    shape = tuple(x.shape)
    for word, part in parts.items():
        if part is not None and tuple(part.shape) != (shape[channel],):
            first = channel == 1 < len(shape) - 1
            other = shape[-1] if first else shape[1]
            turn = other_side(shape, tuple(part.shape) == (other,), first)
            raise ValueError(
                f"{name}: needed {word} [{shape[channel]}], got {list(part.shape)}{turn}"
            )


def _check_shapes(name: str, sizes: list, **shapes: Any) -> None:
    for word, shape in shapes.items():
        if shape is not None and list(shape) != sizes:
            raise ValueError(f"{name}: needed {word} {sizes}, got {list(shape)}")


def _channel(name: str, x: Any, data_format: str) -> int:
    first = data_format != GENERAL[0] and is_first(name, "data_format", data_format, GENERAL)
    if len(x.shape) < 2:
        raise ValueError(f"{name}: needed x [batch, ..., channels], got shape {list(x.shape)}")
    return 1 if first else len(x.shape) - 1
