"""Pooling: the maximum or the mean over a window that moves over the sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.dispatch import backend_of
from ..meanings.pooling import PoolPlan
from ..meanings.shapes import (
    GENERAL,
    Sizes,
    is_first,
    other_side,
    pairs,
    remembered,
    shape_of,
    spread,
)

if TYPE_CHECKING:
    from ..types.array_types import A
    from ..typing import Format, Padding, PerAxis


def max_pool(
    x: A,
    window: PerAxis,
    strides: PerAxis | None = None,
    padding: Padding = 0,
    /,
    *,
    data_format: Format = GENERAL[0],
) -> A:
    """The largest value in each window; equal largest values share the gradient.

    `x` is `[batch, *sizes, channels]`, or `[batch, channels, *sizes]` with "channel_first";
    `window` and `strides` (by default the window) are an int or one per size; `padding` is "SAME",
    "VALID", an int or (low, high) pairs, and is never the maximum.

    >>> iso.max_pool(np.array([[[1.0], [3.0], [2.0], [0.0]]]), 2).tolist()
    [[[3.0], [2.0]]]
    """
    plan = _plan("max_pool", x, window, strides, padding, data_format, True, False)
    return backend_of(x).pool(x, plan)


def avg_pool(
    x: A,
    window: PerAxis,
    strides: PerAxis | None = None,
    padding: Padding = 0,
    /,
    *,
    data_format: Format = GENERAL[0],
    count_include_pad: bool = False,
) -> A:
    """The mean of the values in each window, as in `max_pool`. With `count_include_pad`, padding
    counts as zeros; otherwise it is ignored.

    >>> iso.avg_pool(np.array([[[1.0], [3.0], [2.0], [0.0]]]), 2).tolist()
    [[[2.0], [1.0]]]
    """
    plan = _plan("avg_pool", x, window, strides, padding, data_format, False, count_include_pad)
    return backend_of(x).pool(x, plan)


def adaptive_max_pool(x: A, size: PerAxis, /, *, data_format: Format = GENERAL[0]) -> A:
    """The maximum of each of `size` parts of the sizes, which are split as evenly as possible.

    >>> iso.adaptive_max_pool(np.array([[[1.0], [3.0], [2.0]]]), 2).tolist()
    [[[3.0], [3.0]]]
    """
    wanted, first = _adaptive("adaptive_max_pool", x, size, data_format)
    return backend_of(x).adaptive_pool(x, wanted, first, True)


def adaptive_avg_pool(x: A, size: PerAxis, /, *, data_format: Format = GENERAL[0]) -> A:
    """The mean of each of `size` parts of the sizes, which are split as evenly as possible.

    >>> iso.adaptive_avg_pool(np.array([[[1.0], [3.0], [2.0]]]), 2).tolist()
    [[[2.0], [2.5]]]
    """
    wanted, first = _adaptive("adaptive_avg_pool", x, size, data_format)
    return backend_of(x).adaptive_pool(x, wanted, first, False)


def _plan(
    name: str, x: Any, window: Any, strides: Any, padding: Any, data_format: str, *kind: bool
) -> PoolPlan:
    shape = shape_of(name, "x", x)
    n = len(shape) - 2
    if n > 0:  # otherwise another error is raised
        if type(window) is not int:
            window = spread(name, "window", window, n)
        if strides is not None and type(strides) is not int:
            strides = spread(name, "strides", strides, n)
        if type(padding) is not int and type(padding) is not str:
            padding = pairs(name, padding, n)
    return _PLANS(name, shape, window, strides, padding, data_format, *kind)


def _planned(
    name: str, shape: Any, window: Any, strides: Any, padding: Any, data_format: str, *kind: bool
) -> PoolPlan:
    sizes, first = _sizes(name, shape, data_format)
    n = len(sizes)
    window = spread(name, "window", window, n)
    strides = window if strides is None else spread(name, "strides", strides, n)
    pads = pairs(name, padding, n)
    if pads == "SAME":
        size = tuple(-(-i // s) for i, s in zip(sizes, strides))
        lost = [max((o - 1) * s + w - i, 0) for o, s, w, i in zip(size, strides, window, sizes)]
        pads = tuple((p // 2, p - p // 2) for p in lost)
    else:
        pads = ((0, 0),) * n if pads == "VALID" else pads
        room = [i + low + high - w for i, (low, high), w in zip(sizes, pads, window)]
        if min(room) < 0:
            others = shape[1:-1] if first else shape[2:]
            fits = all(i + low + high >= w for i, (low, high), w in zip(others, pads, window))
            raise ValueError(
                f"{name}: needed padded sizes of at least the window {list(window)}, got "
                f"{[r + w for r, w in zip(room, window)]} for x {list(shape)}"
                f"{other_side(shape, fits, first)}"
            )
        size = tuple(r // s + 1 for r, s in zip(room, strides))
    if any(not 0 <= p < w for pair, w in zip(pads, window) for p in pair):
        raise ValueError(f"{name}: needed 0 <= padding < window {list(window)}, got {padding!r}")
    return PoolPlan(window, strides, pads, size, first, *kind)


_PLANS = remembered(_planned)


def _adaptive(name: str, x: Any, size: Any, data_format: str) -> tuple[Sizes, bool]:
    sizes, first = _sizes(name, shape_of(name, "x", x), data_format)
    wanted = spread(name, "size", size, len(sizes))
    if any(w > i for w, i in zip(wanted, sizes)):
        shape = tuple(x.shape)
        fits = all(w <= i for w, i in zip(wanted, shape[1:-1] if first else shape[2:]))
        raise ValueError(
            f"{name}: needed a size of at most {list(sizes)}, the sizes of x, got {list(wanted)}"
            f"{other_side(shape, fits, first)}"
        )
    return wanted, first


def _sizes(name: str, shape: Any, data_format: str) -> tuple[Sizes, bool]:
    shape = tuple(shape)
    first = is_first(name, "data_format", data_format, GENERAL)
    if len(shape) < 3:
        raise ValueError(f"{name}: needed x [batch, *sizes, channels], got {list(shape)}")
    return (shape[2:] if first else shape[1:-1]), first
