"""Convolutions (computed as cross-correlations) and their transposes.

`strides`, `dilations` and `x_dilations` are an int or one per axis; `padding` is "SAME", "VALID",
an int or (low, high) pairs, where negative numbers crop. `filter_format` is "channel_last", `[*k,
in/groups, out]`, or "channel_first", `[out, in/groups, *k]`; for the transposes `[*k, in,
out/groups]` or `[in, out/groups, *k]`. `x_dilations` inserts zeros into x before it is padded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.dispatch import backend_of
from ..meanings.conv_plan import (
    FORMATS,
    GENERAL,
    forward,
    other_side,
    rank,
    shape_of,
    transposed,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..types.array_types import A, Shaped
    from ..typing import Format, Format1D, Format2D, Format3D, Padding, PerAxis


def conv1d(
    x: A,
    filters: Shaped,
    strides: PerAxis,
    padding: Padding,
    /,
    *,
    data_format: Format1D = "NWC",
    filter_format: Format = "channel_last",
    x_dilations: PerAxis = 1,
    dilations: PerAxis = 1,
    bias: Shaped | None = None,
) -> A:
    """The convolution of `x`, `[batch, width, in]`, with `filters`, `[k, in, out]`: `[batch, width,
    out]`.

    >>> iso.conv1d(np.ones((1, 4, 1)), np.ones((3, 1, 1)), 1, "SAME")[0, :, 0]
    array([2., 3., 3., 2.])
    """
    backend = backend_of(x, filters, bias)
    how = (
        "conv1d", 1, strides, padding, FORMATS[1], data_format, filter_format, x_dilations,
        dilations, 1
    )  # fmt: skip
    plan = forward(x, filters, bias, how)
    return backend.conv(x, filters, bias, plan)


def conv2d(
    x: A,
    filters: Shaped,
    strides: PerAxis,
    padding: Padding,
    /,
    *,
    data_format: Format2D = "NHWC",
    filter_format: Format = "channel_last",
    x_dilations: PerAxis = 1,
    dilations: PerAxis = 1,
    bias: Shaped | None = None,
) -> A:
    """The convolution of `x`, `[batch, height, width, in]`, with `filters`, `[k, k, in, out]`:
    `[batch, height, width, out]`.

    >>> iso.conv2d(np.ones((1, 3, 3, 1)), np.ones((2, 2, 1, 1)), 1, "VALID")[0, :, :, 0]
    array([[4., 4.],
           [4., 4.]])
    """
    backend = backend_of(x, filters, bias)
    how = (
        "conv2d", 2, strides, padding, FORMATS[2], data_format, filter_format, x_dilations,
        dilations, 1
    )  # fmt: skip
    plan = forward(x, filters, bias, how)
    return backend.conv(x, filters, bias, plan)


def conv3d(
    x: A,
    filters: Shaped,
    strides: PerAxis,
    padding: Padding,
    /,
    *,
    data_format: Format3D = "NDHWC",
    filter_format: Format = "channel_last",
    x_dilations: PerAxis = 1,
    dilations: PerAxis = 1,
    bias: Shaped | None = None,
) -> A:
    """The convolution of `x`, `[batch, depth, height, width, in]`, with `filters`, `[k, k, k, in,
    out]`: `[batch, depth, height, width, out]`.

    >>> iso.conv3d(np.ones((1, 2, 2, 2, 3)), np.ones((2, 2, 2, 3, 1)), 1, "VALID").ravel()
    array([24.])
    """
    backend = backend_of(x, filters, bias)
    how = (
        "conv3d", 3, strides, padding, FORMATS[3], data_format, filter_format, x_dilations,
        dilations, 1
    )  # fmt: skip
    plan = forward(x, filters, bias, how)
    return backend.conv(x, filters, bias, plan)


def depthwise_conv2d(
    x: A,
    filters: Shaped,
    strides: PerAxis,
    padding: Padding,
    /,
    *,
    data_format: Format2D = "NHWC",
    dilations: PerAxis = 1,
) -> A:
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
            f"in = the channels of x, got {list(shape)} and {list(kernel)}{turn}"
        )
    several = kernel[3] if len(kernel) == 4 else 1
    w = backend.reshape(filters, (*kernel[:2], 1, channels * several))
    how = (
        name, 2, strides, padding, FORMATS[2], data_format, "channel_last", 1, dilations,
        channels
    )  # fmt: skip
    plan = forward(x, w, None, how)
    return backend.conv(x, w, None, plan)


def conv_general_dilated(
    x: A,
    filters: Shaped,
    strides: PerAxis,
    padding: Padding,
    /,
    *,
    dims: int = 2,
    data_format: Format = "channel_last",
    filter_format: Format = "channel_last",
    feature_group_count: int = 1,
    x_dilations: PerAxis = 1,
    dilations: PerAxis = 1,
    bias: Shaped | None = None,
) -> A:
    """The convolution of `x`, `[batch, *sizes, in]`, with `filters`, `[*k, in/groups, out]`, over
    `dims` axes: `[batch, *sizes, out]`. Each group of channels has its own share of the filters.

    >>> x, filters = np.ones((1, 5, 4)), np.ones((2, 2, 6))
    >>> iso.conv_general_dilated(x, filters, 2, 0, dims=1, feature_group_count=2).shape
    (1, 2, 6)
    """
    name = "conv_general_dilated"
    backend = backend_of(x, filters, bias)
    how = (
        name, rank(name, dims), strides, padding, GENERAL, data_format, filter_format,
        x_dilations, dilations, feature_group_count
    )  # fmt: skip
    plan = forward(x, filters, bias, how)
    return backend.conv(x, filters, bias, plan)


def conv1d_transpose(
    x: A,
    filters: Shaped,
    strides: PerAxis,
    padding: Padding,
    /,
    *,
    output_shape: Sequence[int | None] | None = None,
    filter_format: Format = "channel_last",
    data_format: Format1D = "NWC",
    dilations: PerAxis = 1,
    bias: Shaped | None = None,
) -> A:
    """The gradient of a convolution with respect to its input, at `x`, `[batch, width, in]`, with
    `filters`, `[k, in, out]`: `[batch, width, out]`. Several output sizes may be possible;
    `output_shape`, the sizes alone or the full shape, chooses one.

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
    x: A,
    filters: Shaped,
    strides: PerAxis,
    padding: Padding,
    /,
    *,
    output_shape: Sequence[int | None] | None = None,
    filter_format: Format = "channel_last",
    data_format: Format2D = "NHWC",
    dilations: PerAxis = 1,
    bias: Shaped | None = None,
) -> A:
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
    x: A,
    filters: Shaped,
    strides: PerAxis,
    padding: Padding,
    /,
    *,
    output_shape: Sequence[int | None] | None = None,
    filter_format: Format = "channel_last",
    data_format: Format3D = "NDHWC",
    dilations: PerAxis = 1,
    bias: Shaped | None = None,
) -> A:
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
    x: A,
    filters: Shaped,
    strides: PerAxis,
    padding: Padding,
    /,
    *,
    dims: int = 2,
    output_shape: Sequence[int | None] | None = None,
    data_format: Format = "channel_last",
    filter_format: Format = "channel_last",
    dilations: PerAxis = 1,
    feature_group_count: int = 1,
    bias: Shaped | None = None,
) -> A:
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
