"""Convolutions as modules. The filters `w` have the shape `[*k, in / groups, out]`, those of a
transposed convolution `[*k, in, out / groups]`; the bias `b` has the shape `[out]`.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Never, overload

from .. import random
from ..layers.conv import conv_general_dilated, conv_general_transpose, depthwise_conv2d
from ..meanings.conv_plan import FORMATS
from ..meanings.shapes import GENERAL
from . import initializers
from .initializers import Initializer, new_key
from .layer import Layer
from .layers import sizes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..types.array_types import A
    from ..typing import AnyFormat, Format, Format2D, Key, Padding, PerAxis


class Conv(Layer):
    """The common part of the convolutions; `dims` is the number of convolved axes."""

    dims: int
    padding: Padding
    data_format: Format
    transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        strides: PerAxis = 1,
        padding: Padding = "SAME",
        *,
        dilations: PerAxis = 1,
        groups: int = 1,
        bias: bool = True,
        data_format: AnyFormat | None = None,
        key: Key | None = None,
        w_init: Initializer | None = None,
        b_init: Initializer | None = None,
        v: Any = None,
        with_partial_v: bool = False,
    ):
        name = type(self).__name__
        sizes(name, in_channels=in_channels, out_channels=out_channels, groups=groups)
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"{name}: needed groups that divide {in_channels} and {out_channels} channels, "
                f"got {groups}"
            )
        self.strides, self.padding, self.dilations, self.groups = (
            strides, padding, dilations, groups,
        )  # fmt: skip
        self.data_format = _general(name, self.dims, data_format)  # pyright: ignore
        kernel = _kernel(name, self.dims, kernel_size)
        fans = (prod(kernel) * in_channels // groups, prod(kernel) * out_channels // groups)
        inner = (in_channels, out_channels // groups)
        if not self.transposed:
            inner = (in_channels // groups, out_channels)
        keys = random.split(new_key(key))
        draw = initializers.glorot() if w_init is None else w_init
        self.w = draw(keys[0, ...], (*kernel, *inner), fans=fans)
        start = initializers.zeros() if b_init is None else b_init
        self.b = start(keys[1, ...], (out_channels,), fans=fans) if bias else None
        super().__init__(v=v, with_partial_v=with_partial_v)

    def forward(self, x: A) -> A:
        return conv_general_dilated(
            x, self.w, self.strides, self.padding, dims=self.dims, data_format=self.data_format,
            feature_group_count=self.groups, dilations=self.dilations, bias=self.b,
        )  # fmt: skip


class Conv1D(Conv):
    """A convolution over `[batch, width, in]`.

    >>> iso.Conv1D(2, 3, 5, key=0)(np.ones((1, 8, 2), np.float32)).shape
    (1, 8, 3)
    """

    dims = 1


class Conv2D(Conv):
    """A convolution over `[batch, height, width, in]`.

    >>> iso.Conv2D(2, 3, 3, 2, key=0)(np.ones((1, 8, 8, 2), np.float32)).shape
    (1, 4, 4, 3)
    """

    dims = 2


class Conv3D(Conv):
    """A convolution over `[batch, depth, height, width, in]`.

    >>> iso.Conv3D(1, 2, 2, 1, "VALID", key=0)(np.ones((1, 3, 3, 3, 1), np.float32)).shape
    (1, 2, 2, 2, 2)
    """

    dims = 3


class ConvTranspose(Conv):
    """The common part of the transposed convolutions; `output_shape` chooses one of the possible
    sizes of the result.
    """

    transposed = True

    @overload
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | tuple[int, ...],
        strides: PerAxis = 1, padding: Padding = "SAME", *,
        output_shape: Sequence[int | None] | None = None, dilations: PerAxis = 1, groups: int = 1,
        bias: bool = True, data_format: AnyFormat | None = None, key: Key | None = None,
        w_init: Initializer | None = None, b_init: Initializer | None = None, v: Any = None,
        with_partial_v: bool = False,
    ): ...  # fmt: skip
    @overload
    def __init__(self, *args: Never, **kw: Never): ...
    def __init__(self, *args: Any, output_shape: Any = None, **kw: Any):
        super().__init__(*args, **kw)
        self.output_shape = output_shape

    def forward(self, x: A) -> A:
        return conv_general_transpose(
            x, self.w, self.strides, self.padding, dims=self.dims, output_shape=self.output_shape,
            data_format=self.data_format, dilations=self.dilations,
            feature_group_count=self.groups, bias=self.b,
        )  # fmt: skip


class Conv1DTranspose(ConvTranspose):
    """The transpose of a convolution, over `[batch, width, in]`.

    >>> iso.Conv1DTranspose(2, 3, 4, 2, key=0)(np.ones((1, 8, 2), np.float32)).shape
    (1, 16, 3)
    """

    dims = 1


class Conv2DTranspose(ConvTranspose):
    """The transpose of a convolution, over `[batch, height, width, in]`.

    >>> iso.Conv2DTranspose(2, 3, 4, 2, key=0)(np.ones((1, 4, 4, 2), np.float32)).shape
    (1, 8, 8, 3)
    """

    dims = 2


class Conv3DTranspose(ConvTranspose):
    """The transpose of a convolution, over `[batch, depth, height, width, in]`.

    >>> iso.Conv3DTranspose(1, 2, 2, 2, key=0)(np.ones((1, 2, 2, 2, 1), np.float32)).shape
    (1, 4, 4, 4, 2)
    """

    dims = 3


class DepthwiseConv2D(Layer):
    """A convolution of each channel on its own, with `multiplier` output channels for each; `w` is
    `[k, k, in, multiplier]`.

    >>> iso.DepthwiseConv2D(3, 3, multiplier=2, key=0)(np.ones((1, 4, 4, 3), np.float32)).shape
    (1, 4, 4, 6)
    """

    padding: Padding
    data_format: Format2D

    def __init__(
        self,
        channels: int,
        kernel_size: int | tuple[int, int],
        strides: PerAxis = 1,
        padding: Padding = "SAME",
        *,
        multiplier: int = 1,
        dilations: PerAxis = 1,
        bias: bool = True,
        data_format: Format2D | Format = "NHWC",
        key: Key | None = None,
        w_init: Initializer | None = None,
        v: Any = None,
        with_partial_v: bool = False,
    ):
        sizes("DepthwiseConv2D", channels=channels, multiplier=multiplier)
        general = _general("DepthwiseConv2D", 2, data_format)
        self.strides, self.padding, self.dilations = strides, padding, dilations
        self.data_format = FORMATS[2][GENERAL.index(general)]  # pyright: ignore
        kernel = _kernel("DepthwiseConv2D", 2, kernel_size)
        draw = initializers.glorot() if w_init is None else w_init
        fans = (prod(kernel), prod(kernel) * multiplier)
        self.w = draw(new_key(key), (*kernel, channels, multiplier), fans=fans)
        self.b = initializers.zeros()(None, (channels * multiplier,)) if bias else None
        super().__init__(v=v, with_partial_v=with_partial_v)

    def forward(self, x: A) -> A:
        y = depthwise_conv2d(
            x, self.w, self.strides, self.padding, data_format=self.data_format,
            dilations=self.dilations,
        )  # fmt: skip
        if self.b is None:
            return y
        return y + (self.b if self.data_format == "NHWC" else self.b[:, None, None])


def _kernel(name: str, dims: int, size: Any) -> tuple[int, ...]:
    kernel = (size,) * dims if isinstance(size, int) else tuple(size)
    if len(kernel) != dims or any(type(k) is not int or k < 1 for k in kernel):
        raise ValueError(
            f"{name}: needed kernel_size as an int >= 1 or {dims} of them, got {size!r}"
        )
    return kernel


def _general(name: str, dims: int, data_format: str | None) -> str:
    """A data_format under the names of the general convolutions."""
    known = FORMATS[dims]
    if data_format is None:
        return GENERAL[0]
    if data_format in GENERAL:
        return data_format
    if data_format not in known:
        raise ValueError(
            f"{name}: needed data_format as one of {', '.join((*known, *GENERAL))}, "
            f"got {data_format!r}"
        )
    return GENERAL[known.index(data_format)]
