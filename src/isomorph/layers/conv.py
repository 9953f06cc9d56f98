"""Convolutions, as cross-correlations, and their transposes.

`strides`, `dilations` and `x_dilations` are an int or one per axis; `padding` is "SAME", "VALID",
an int or (low, high) pairs, a negative one crops. `filter_format` is "channel_last", `[*k,
in/groups, out]`, or "channel_first", `[out, in/groups, *k]`; for the transposes `[*k, in,
out/groups]` or `[in, out/groups, *k]`. `x_dilations` inserts zeros into x before it is padded.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from ..dispatch import backend_of
from .canonical import (
    FORMATS,
    GENERAL,
    Plan,
    forward,
    other_side,
    plan_of,
    rank,
    shape_of,
    transposed,
)


def conv1d(
    x: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    /,
    *,
    data_format: str = "NWC",
    filter_format: str = "channel_last",
    x_dilations: Any = 1,
    dilations: Any = 1,
    bias: Any = None,
) -> Any:
    """The convolution of `x`, `[batch, width, in]`, with `filters`, `[k, in, out]`: `[batch, width,
    out]`.

    >>> iso.conv1d(np.ones((1, 4, 1)), np.ones((3, 1, 1)), 1, "SAME")[0, :, 0]
    array([2., 3., 3., 2.])
    """
    backend = backend_of(x, filters, bias)
    plan = forward(
        "conv1d", 1, x, filters, bias, strides, padding, FORMATS[1], data_format, filter_format,
        x_dilations, dilations, 1,
    )  # fmt: skip
    return backend.conv(x, filters, bias, plan)


def conv2d(
    x: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    /,
    *,
    data_format: str = "NHWC",
    filter_format: str = "channel_last",
    x_dilations: Any = 1,
    dilations: Any = 1,
    bias: Any = None,
) -> Any:
    """The convolution of `x`, `[batch, height, width, in]`, with `filters`, `[k, k, in, out]`:
    `[batch, height, width, out]`.

    >>> iso.conv2d(np.ones((1, 3, 3, 1)), np.ones((2, 2, 1, 1)), 1, "VALID")[0, :, :, 0]
    array([[4., 4.],
           [4., 4.]])
    """
    backend = backend_of(x, filters, bias)
    plan = forward(
        "conv2d", 2, x, filters, bias, strides, padding, FORMATS[2], data_format, filter_format,
        x_dilations, dilations, 1,
    )  # fmt: skip
    return backend.conv(x, filters, bias, plan)


def conv3d(
    x: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    /,
    *,
    data_format: str = "NDHWC",
    filter_format: str = "channel_last",
    x_dilations: Any = 1,
    dilations: Any = 1,
    bias: Any = None,
) -> Any:
    """The convolution of `x`, `[batch, depth, height, width, in]`, with `filters`, `[k, k, k, in,
    out]`: `[batch, depth, height, width, out]`.

    >>> iso.conv3d(np.ones((1, 2, 2, 2, 3)), np.ones((2, 2, 2, 3, 1)), 1, "VALID").ravel()
    array([24.])
    """
    backend = backend_of(x, filters, bias)
    plan = forward(
        "conv3d", 3, x, filters, bias, strides, padding, FORMATS[3], data_format, filter_format,
        x_dilations, dilations, 1,
    )  # fmt: skip
    return backend.conv(x, filters, bias, plan)


def depthwise_conv2d(
    x: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    /,
    *,
    data_format: str = "NHWC",
    dilations: Any = 1,
) -> Any:
    """Each channel of `x`, `[batch, height, width, in]`, with its own filters, `[k, k, in]` or
    `[k, k, in, multiplier]`: `[batch, height, width, in·multiplier]`.

    >>> iso.depthwise_conv2d(np.ones((1, 2, 2, 2)), np.ones((2, 2, 2)), 1, "VALID").shape
    (1, 1, 1, 2)
    """
    name = "depthwise_conv2d"
    backend = backend_of(x, filters)
    shape, kernel = tuple(shape_of(name, "x", x)), tuple(shape_of(name, "filters", filters))
    channels = shape[1 if data_format == "NCHW" else -1] if len(shape) == 4 else None
    if len(kernel) not in (3, 4) or kernel[2] != channels or not channels:
        first = data_format == "NCHW"
        other = shape[-1 if first else 1] if len(shape) == 4 else None
        turn = other_side(shape, len(kernel) in (3, 4) and kernel[2] == other, first, FORMATS[2])
        raise ValueError(
            f"{name}: needed x of 4 axes and filters [k, k, in] or [k, k, in, multiplier] with "
            f"in its channels, got {list(shape)} and {list(kernel)}{turn}"
        )
    several = kernel[3] if len(kernel) == 4 else 1
    w = backend.reshape(filters, (*kernel[:2], 1, channels * several))
    plan = forward(
        name, 2, x, w, None, strides, padding, FORMATS[2], data_format, "channel_last", 1,
        dilations, channels,
    )  # fmt: skip
    return backend.conv(x, w, None, plan)


def conv_general_dilated(
    x: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    /,
    *,
    dims: int = 2,
    data_format: str = "channel_last",
    filter_format: str = "channel_last",
    feature_group_count: int = 1,
    x_dilations: Any = 1,
    dilations: Any = 1,
    bias: Any = None,
) -> Any:
    """The convolution of `x`, `[batch, *sizes, in]`, with `filters`, `[*k, in/groups, out]`, over
    `dims` axes: `[batch, *sizes, out]`. Each group of channels has its own share of the filters.

    >>> x, filters = np.ones((1, 5, 4)), np.ones((2, 2, 6))
    >>> iso.conv_general_dilated(x, filters, 2, 0, dims=1, feature_group_count=2).shape
    (1, 2, 6)
    """
    name = "conv_general_dilated"
    backend = backend_of(x, filters, bias)
    plan = forward(
        name, rank(name, dims), x, filters, bias, strides, padding, GENERAL, data_format,
        filter_format, x_dilations, dilations, feature_group_count,
    )  # fmt: skip
    return backend.conv(x, filters, bias, plan)


def conv1d_transpose(
    x: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    /,
    *,
    output_shape: Any = None,
    filter_format: str = "channel_last",
    data_format: str = "NWC",
    dilations: Any = 1,
    bias: Any = None,
) -> Any:
    """The gradient of a convolution with respect to its input, at `x`, `[batch, width, in]`, with
    `filters`, `[k, in, out]`: `[batch, width, out]`. `output_shape`, of the sizes or in full,
    chooses among the inputs `x` can come from.

    >>> iso.conv1d_transpose(np.ones((1, 2, 1)), np.ones((3, 1, 1)), 2, "VALID")[0, :, 0]
    array([1., 1., 2., 1., 1.])
    """
    backend = backend_of(x, filters, bias)
    plan = transposed(
        "conv1d_transpose", 1, x, filters, bias, strides, padding, output_shape, FORMATS[1],
        data_format, filter_format, dilations, 1,
    )  # fmt: skip
    return backend.conv_transpose(x, filters, bias, plan)


def conv2d_transpose(
    x: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    /,
    *,
    output_shape: Any = None,
    filter_format: str = "channel_last",
    data_format: str = "NHWC",
    dilations: Any = 1,
    bias: Any = None,
) -> Any:
    """The gradient of a convolution with respect to its input, at `x`, `[batch, height, width,
    in]`, with `filters`, `[k, k, in, out]`: `[batch, height, width, out]`; see `conv1d_transpose`.

    >>> iso.conv2d_transpose(np.ones((1, 2, 2, 3)), np.ones((2, 2, 3, 1)), 2, "SAME").shape
    (1, 4, 4, 1)
    """
    backend = backend_of(x, filters, bias)
    plan = transposed(
        "conv2d_transpose", 2, x, filters, bias, strides, padding, output_shape, FORMATS[2],
        data_format, filter_format, dilations, 1,
    )  # fmt: skip
    return backend.conv_transpose(x, filters, bias, plan)


def conv3d_transpose(
    x: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    /,
    *,
    output_shape: Any = None,
    filter_format: str = "channel_last",
    data_format: str = "NDHWC",
    dilations: Any = 1,
    bias: Any = None,
) -> Any:
    """The gradient of a convolution with respect to its input, at `x`, `[batch, depth, height,
    width, in]`, with `filters`, `[k, k, k, in, out]`: `[batch, depth, height, width, out]`; see
    `conv1d_transpose`.

    >>> iso.conv3d_transpose(np.ones((1, 2, 2, 2, 3)), np.ones((1, 1, 1, 3, 4)), 1, 0).shape
    (1, 2, 2, 2, 4)
    """
    backend = backend_of(x, filters, bias)
    plan = transposed(
        "conv3d_transpose", 3, x, filters, bias, strides, padding, output_shape, FORMATS[3],
        data_format, filter_format, dilations, 1,
    )  # fmt: skip
    return backend.conv_transpose(x, filters, bias, plan)


def conv_general_transpose(
    x: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    /,
    *,
    dims: int = 2,
    output_shape: Any = None,
    data_format: str = "channel_last",
    filter_format: str = "channel_last",
    dilations: Any = 1,
    feature_group_count: int = 1,
    bias: Any = None,
) -> Any:
    """The gradient of `conv_general_dilated` with respect to its input, at `x`, `[batch, *sizes,
    in]`, with `filters`, `[*k, in, out/groups]`: `[batch, *sizes, out]`; see `conv1d_transpose`.

    >>> x, filters = np.ones((1, 5, 4)), np.ones((2, 4, 3))
    >>> iso.conv_general_transpose(x, filters, 2, 0, dims=1, feature_group_count=2).shape
    (1, 10, 6)
    """
    name = "conv_general_transpose"
    backend = backend_of(x, filters, bias)
    plan = transposed(
        name, rank(name, dims), x, filters, bias, strides, padding, output_shape, GENERAL,
        data_format, filter_format, dilations, feature_group_count,
    )  # fmt: skip
    return backend.conv_transpose(x, filters, bias, plan)


def conv(xp: Any, x: Any, w: Any, bias: Any, plan: Plan) -> Any:
    """The meaning of every convolution: the sum over the places of the filter of a slice of x times
    the matrix there.
    """
    n, groups = len(plan.size), plan.groups
    x = xp.moveaxis(x, 1, -1) if plan.first else x
    w = last_filters(xp, w, plan)
    x = padded(xp, dilated(xp, x, plan.x_dilations), plan.pads)
    k, fewer, out = tuple(w.shape)[:n], w.shape[-2], w.shape[-1]
    outer = (_batch(x), *plan.size)
    if groups > 1:
        w = xp.moveaxis(xp.reshape(w, (*k, fewer, groups, out // groups)), -2, -3)
    total = None
    for place in product(*map(range, k)):
        starts = [i * d for i, d in zip(place, plan.dilations)]
        index = [
            slice(a, a + (size - 1) * s + 1, s)
            for a, size, s in zip(starts, plan.size, plan.strides)
        ]
        part = x[(slice(None), *index)]
        if groups > 1:
            part = xp.reshape(part, (*outer, groups, 1, fewer))
        term = xp.matmul(part, w[place])
        total = term if total is None else total + term
    if groups > 1:
        total = xp.reshape(total, (*outer, out))
    if bias is not None:
        total = total + bias
    return xp.moveaxis(total, -1, 1) if plan.first else total


def conv_transpose(xp: Any, x: Any, w: Any, bias: Any, plan: Plan) -> Any:
    """The meaning of every transposed convolution: x with zeros between its elements, convolved
    with the filters turned around.
    """
    n, groups = len(plan.size), plan.groups
    if plan.filters_first:
        w = xp.permute_dims(w, (*range(2, n + 2), 0, 1))
    w = xp.flip(w, axis=tuple(range(n)))
    k, into, fewer = tuple(w.shape)[:n], w.shape[-2], w.shape[-1]
    if groups > 1:
        w = xp.moveaxis(xp.reshape(w, (*k, groups, into // groups, fewer)), -3, -2)
        w = xp.reshape(w, (*k, into // groups, groups * fewer))
    sizes = tuple(x.shape)[2:] if plan.first else tuple(x.shape)[1:-1]
    pads = []
    for i, size, s, j, d, (low, _) in zip(
        sizes, plan.size, plan.strides, k, plan.dilations, plan.pads
    ):
        reach = (j - 1) * d
        pads.append((reach - low, size + low - (i - 1) * s - 1))
    ones = (1,) * n
    turned = plan_of(
        ones, tuple(pads), plan.strides, plan.dilations, groups, plan.first, False, plan.size
    )
    return xp.conv(x, w, bias, turned)


def last_filters(xp: Any, w: Any, plan: Plan) -> Any:
    """The filters of a convolution as `[*k, in/groups, out]`."""
    if not plan.filters_first:
        return w
    return xp.permute_dims(w, (*range(2, len(plan.size) + 2), 1, 0))


def dilated(xp: Any, x: Any, dilations: tuple[int, ...]) -> Any:
    """`x`, channels last, with zeros between its elements."""
    for axis, d in enumerate(dilations, 1):
        shape = tuple(x.shape)
        if d > 1 and shape[axis] > 1:
            wide = [(0, 0)] * (len(shape) + 1)
            wide[axis + 1] = (0, d - 1)
            x = xp.pad(xp.expand_dims(x, axis=axis + 1), tuple(wide))
            x = xp.reshape(x, (_batch(x), *shape[1:axis], shape[axis] * d, *shape[axis + 1 :]))
            x = x[(slice(None),) * axis + (slice(0, (shape[axis] - 1) * d + 1),)]
    return x


def padded(xp: Any, x: Any, pads: tuple[tuple[int, int], ...]) -> Any:
    """`x`, channels last, with zeros around it; a negative number of them crops."""
    if any(min(pair) < 0 for pair in pads):
        sizes = tuple(x.shape)[1:]
        x = x[
            (
                slice(None),
                *(slice(max(-a, 0), size - max(-b, 0)) for (a, b), size in zip(pads, sizes)),
            )
        ]
    if any(max(pair) > 0 for pair in pads):
        x = xp.pad(x, ((0, 0), *((max(a, 0), max(b, 0)) for a, b in pads), (0, 0)))
    return x


def _batch(x: Any) -> int:
    """The size of the batch for a reshape, which may be unknown while a graph is made."""
    return -1 if x.shape[0] is None else x.shape[0]
