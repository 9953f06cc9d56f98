"""Convolutions of every kind, each with the loops that say what it is (`conv_oracles.py`): the
first with the usual options, the others with the rest of them.
"""

import numpy as np

import isomorph as iso

from .conv_oracles import (
    Case,
    Example,
    drawn,
    filters_first,
    filters_first_transposed,
    first,
    forward,
    same,
    transposed,
)


def conv1d():
    x, w = drawn(0, (2, 9, 3), (3, 3, 4))
    case = Case((9,), (3,), (2,), same((9,), (3,), (2,), (1,)), (1,), (1,))
    call = lambda x, w, b: iso.conv1d(x, w, 2, "same", bias=b)
    yield Example(call, forward(case), x, w)

    case = Case((9,), (3,), (1,), ((0, 3),), (2,), (2,))
    call = lambda x, w, b: iso.conv1d(
        x, w, (1,), [(0, 3)], data_format="NCW", filter_format="channel_first", x_dilations=2,
        dilations=(2,), bias=b,
    )  # fmt: skip
    yield Example(call, forward(case), x, w, forms=(first, filters_first))


def conv2d():
    x, w = drawn(1, (2, 7, 6, 3), (3, 2, 3, 4))
    case = Case((7, 6), (3, 2), (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1))
    call = lambda x, w, b: iso.conv2d(x, w, 1, 1, bias=b)
    yield Example(call, forward(case), x, w)

    pads = same((7, 6), (3, 2), (2, 1), (2, 1))
    case = Case((7, 6), (3, 2), (2, 1), pads, (1, 1), (2, 1))
    call = lambda x, w, b: iso.conv2d(x, w, (2, 1), "SAME", data_format="NCHW", dilations=(2, 1))
    yield Example(call, forward(case), x, w, bias=False, forms=(first, lambda w: w))

    case = Case((7, 6), (3, 2), (2, 3), ((-1, 3), (2, 0)), (1, 3), (1, 2))
    call = lambda x, w, b: iso.conv2d(
        x, w, (2, 3), [(-1, 3), (2, 0)], filter_format="channel_first", x_dilations=(1, 3),
        dilations=(1, 2), bias=b,
    )  # fmt: skip
    yield Example(call, forward(case), x, w, forms=(lambda x: x, filters_first))


def conv3d():
    x, w = drawn(2, (2, 4, 5, 4, 2), (2, 3, 2, 2, 3))
    case = Case((4, 5, 4), (2, 3, 2), (1, 2, 1), ((0, 0),) * 3, (1, 1, 1), (1, 1, 1))
    call = lambda x, w, b: iso.conv3d(x, w, (1, 2, 1), "VALID", bias=b)
    yield Example(call, forward(case), x, w)

    pads = same((7, 5, 4), (2, 3, 2), (2, 1, 1), (1, 1, 2))
    case = Case((4, 5, 4), (2, 3, 2), (2, 1, 1), pads, (2, 1, 1), (1, 1, 2))
    call = lambda x, w, b: iso.conv3d(
        x, w, [2, 1, 1], "SAME", data_format="NCDHW", filter_format="channel_first",
        x_dilations=(2, 1, 1), dilations=(1, 1, 2), bias=b,
    )  # fmt: skip
    yield Example(call, forward(case), x, w, forms=(first, filters_first))


def depthwise_conv2d():
    x, w = drawn(3, (2, 6, 5, 3), (3, 2, 1, 6))
    split = lambda w: np.reshape(w, (3, 2, 3, 2))  # [k, k, 1, in·multiplier]
    pads = same((6, 5), (3, 2), (2, 2), (1, 1))
    case = Case((6, 5), (3, 2), (2, 2), pads, (1, 1), (1, 1), 3)
    call = lambda x, w, b: iso.depthwise_conv2d(x, w, 2, "SAME")
    yield Example(call, forward(case), x, w, bias=False, forms=(lambda x: x, split))

    single = lambda w: np.reshape(w, (3, 2, 3))
    case = Case((6, 5), (3, 2), (1, 1), ((1, 2), (0, 1)), (1, 1), (2, 1), 3)
    call = lambda x, w, b: iso.depthwise_conv2d(
        x, w, 1, [(1, 2), (0, 1)], data_format="NCHW", dilations=(2, 1)
    )
    w = w[..., :3]
    yield Example(call, forward(case), x, w, bias=False, forms=(first, single))

    case = Case((6, 5), (3, 2), (2, 1), ((0, 0), (0, 0)), (1, 1), (2, 2), 3)
    call = lambda x, w, b: iso.depthwise_conv2d(x, w, (2, 1), "VALID", dilations=2)
    yield Example(call, forward(case), x, w, bias=False, forms=(lambda x: x, single))


def conv1d_transpose():
    x, w = drawn(4, (2, 5, 3), (4, 3, 2))
    case = Case((10,), (4,), (2,), same((10,), (4,), (2,), (1,)), (1,), (1,))
    call = lambda x, w, b: iso.conv1d_transpose(x, w, 2, "SAME", bias=b)
    yield Example(call, transposed(case), x, w)

    case = Case((16,), (4,), (2,), ((0, 0),), (1,), (2,))
    call = lambda x, w, b: iso.conv1d_transpose(
        x, w, 2, "VALID", output_shape=(2, 2, 16), data_format="NCW",
        filter_format="channel_first", dilations=2, bias=b,
    )  # fmt: skip
    forms = (first, filters_first_transposed)
    yield Example(call, transposed(case), x, w, forms=forms)


def conv2d_transpose():
    x, w = drawn(5, (2, 4, 3, 3), (3, 2, 3, 4))
    case = Case((9, 9), (3, 2), (2, 3), ((0, 0), (0, 0)), (1, 1), (1, 1))
    call = lambda x, w, b: iso.conv2d_transpose(x, w, (2, 3), "VALID", bias=b)
    yield Example(call, transposed(case), x, w)

    pads = same((7, 8), (3, 2), (2, 3), (1, 2))
    case = Case((7, 8), (3, 2), (2, 3), pads, (1, 1), (1, 2))
    call = lambda x, w, b: iso.conv2d_transpose(
        x, w, (2, 3), "SAME", output_shape=(7, 8), dilations=(1, 2), bias=b
    )
    yield Example(call, transposed(case), x, w)

    case = Case((7, 6), (3, 2), (2, 2), ((0, 3), (3, -2)), (1, 1), (1, 1))
    call = lambda x, w, b: iso.conv2d_transpose(
        x, w, 2, [(0, 3), (3, -2)], output_shape=(7, 6), data_format="NCHW"
    )
    yield Example(call, transposed(case), x, w, bias=False, forms=(first, lambda w: w))


def conv3d_transpose():
    x, w = drawn(6, (1, 3, 2, 3, 2), (2, 3, 2, 2, 3))
    case = Case((3, 4, 6), (2, 3, 2), (1, 2, 2), ((0, 1), (0, 1), (0, 0)), (1, 1, 1), (1, 1, 1))
    call = lambda x, w, b: iso.conv3d_transpose(x, w, (1, 2, 2), "SAME", bias=b)
    yield Example(call, transposed(case), x, w)

    case = Case((5, 5, 5), (2, 3, 2), (1, 1, 1), ((0, 0), (1, 0), (0, 0)), (1, 1, 1), (2, 2, 2))
    call = lambda x, w, b: iso.conv3d_transpose(
        x, w, 1, [(0, 0), (1, 0), (0, 0)], data_format="NCDHW", filter_format="channel_first",
        dilations=2, bias=b,
    )  # fmt: skip
    forms = (first, filters_first_transposed)
    yield Example(call, transposed(case), x, w, forms=forms)


def conv_general_dilated():
    x, w = drawn(7, (2, 6, 5, 4), (2, 3, 2, 6))
    case = Case((6, 5), (2, 3), (2, 1), ((1, 0), (2, 1)), (1, 1), (1, 1), 2)
    call = lambda x, w, b: iso.conv_general_dilated(
        x, w, (2, 1), [(1, 0), (2, 1)], feature_group_count=2, bias=b
    )
    yield Example(call, forward(case), x, w)

    x, w = drawn(8, (2, 5, 6), (3, 3, 4))
    case = Case((5,), (3,), (2,), same((13,), (3,), (2,), (2,)), (3,), (2,), 2)
    call = lambda x, w, b: iso.conv_general_dilated(
        x, w, 2, "SAME", dims=1, data_format="channel_first", filter_format="channel_first",
        feature_group_count=2, x_dilations=3, dilations=2, bias=b,
    )  # fmt: skip
    yield Example(call, forward(case), x, w, forms=(first, filters_first))

    x, w = drawn(9, (1, 3, 4, 3, 4), (2, 2, 2, 2, 2))
    case = Case((3, 4, 3), (2, 2, 2), (1, 2, 1), ((1, 1),) * 3, (1, 1, 2), (2, 1, 1), 2)
    call = lambda x, w, b: iso.conv_general_dilated(
        x, w, (1, 2, 1), 1, dims=3, feature_group_count=2, x_dilations=(1, 1, 2),
        dilations=(2, 1, 1),
    )  # fmt: skip
    yield Example(call, forward(case), x, w, bias=False)


def conv_general_transpose():
    x, w = drawn(10, (2, 4, 3, 4), (3, 2, 4, 3))
    case = Case((8, 6), (3, 2), (2, 2), ((0, 1), (0, 0)), (1, 1), (1, 1), 2)
    call = lambda x, w, b: iso.conv_general_transpose(
        x, w, 2, "SAME", feature_group_count=2, bias=b
    )
    yield Example(call, transposed(case), x, w)

    x, w = drawn(11, (2, 4, 6), (3, 6, 1))
    case = Case((11,), (3,), (2,), ((1, 0),), (1,), (2,), 3)
    call = lambda x, w, b: iso.conv_general_transpose(
        x, w, 2, [(1, 0)], dims=1, output_shape=(11,), data_format="channel_first",
        filter_format="channel_first", dilations=2, feature_group_count=3, bias=b,
    )  # fmt: skip
    forms = (first, filters_first_transposed)
    yield Example(call, transposed(case), x, w, forms=forms)

    x, w = drawn(12, (1, 2, 3, 2, 4), (2, 2, 1, 4, 1))
    case = Case((3, 6, 4), (2, 2, 1), (1, 2, 2), ((0, 0),) * 3, (1, 1, 1), (1, 1, 1), 4)
    call = lambda x, w, b: iso.conv_general_transpose(
        x, w, (1, 2, 2), "VALID", dims=3, feature_group_count=4
    )
    yield Example(call, transposed(case), x, w, bias=False)
