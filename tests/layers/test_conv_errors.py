"""What convolutions refuse: every message has the function, what was needed and what came."""

import numpy as np
import pytest

import isomorph as iso


@pytest.fixture
def of(backend):
    """Arrays of ones of the backend."""
    return lambda *shape, dtype=np.float32: iso.convert(np.ones(shape, dtype), backend)


def test_wrong_numbers_of_axes(of):
    with pytest.raises(
        ValueError, match=r"conv2d: needed x and filters with 4 axes, got \[5, 5, 3\]"
    ):
        iso.conv2d(of(5, 5, 3), of(3, 3, 3, 2), 1, 0)
    with pytest.raises(ValueError, match=r"conv3d: needed .* 5 axes, got .* and \[3, 3, 3, 2\]"):
        iso.conv3d(of(1, 5, 5, 5, 3), of(3, 3, 3, 2), 1, 0)
    with pytest.raises(ValueError, match="conv_general_dilated: needed dims as 1, 2 or 3, got 4"):
        iso.conv_general_dilated(of(1, 5, 3), of(3, 3, 2), 1, 0, dims=4)
    with pytest.raises(ValueError, match=r"depthwise_conv2d: needed .*\[k, k, in\] .*, got"):
        iso.depthwise_conv2d(of(1, 5, 5, 3), of(3, 3, 4), 1, 0)
    with pytest.raises(TypeError, match="conv1d: needed an array as filters, got float"):
        iso.conv1d(of(1, 5, 3), 1.0, 1, 0)


def test_channels_that_do_not_match(of):
    form = r"conv2d: needed filters \[\*k, in/groups, out\] with in = 3, the channels of x"
    with pytest.raises(ValueError, match=form):
        iso.conv2d(of(1, 5, 5, 3), of(3, 3, 4, 2), 1, 0)
    with pytest.raises(ValueError, match=r"needed filters \[out, in/groups, \*k\] with in = 5"):
        iso.conv2d(
            of(1, 5, 5, 3), of(2, 3, 3, 3), 1, 0, data_format="NCHW", filter_format="channel_first"
        )
    with pytest.raises(ValueError, match=r"needed filters \[\*k, in, out/groups\] with in = 3"):
        iso.conv1d_transpose(of(1, 5, 3), of(2, 4, 3), 1, 0)
    with pytest.raises(ValueError, match=r"needed filters \[in, out/groups, \*k\] with in = 3"):
        iso.conv1d_transpose(of(1, 5, 3), of(2, 3, 4), 1, 0, filter_format="channel_first")


def test_groups_that_do_not_divide(of):
    with pytest.raises(ValueError, match="conv_general_dilated: .* divisible by groups = 2, got"):
        iso.conv_general_dilated(of(1, 5, 5, 4), of(3, 3, 2, 3), 1, 0, feature_group_count=2)
    with pytest.raises(ValueError, match="divisible by groups = 3, got filters"):
        iso.conv_general_transpose(of(1, 5, 5, 4), of(3, 3, 4, 1), 1, 0, feature_group_count=3)
    for wrong in (0, -1, 1.5, "2"):
        with pytest.raises(ValueError, match="needed feature_group_count as a positive int, got"):
            iso.conv_general_dilated(
                of(1, 5, 5, 4), of(3, 3, 2, 4), 1, 0, feature_group_count=wrong
            )


def test_formats_and_padding_nobody_knows(of):
    x, w = of(1, 5, 5, 3), of(3, 3, 3, 2)
    with pytest.raises(ValueError, match='needed data_format "NHWC" or "NCHW", got \'NCW\''):
        iso.conv2d(x, w, 1, 0, data_format="NCW")
    with pytest.raises(ValueError, match='needed data_format "channel_last" or "channel_first"'):
        iso.conv_general_dilated(x, w, 1, 0, data_format="NHWC")
    with pytest.raises(ValueError, match='needed filter_format "channel_last" or "channel_first"'):
        iso.conv2d_transpose(x, w, 1, 0, filter_format="HWIO")
    for wrong in ("FULL", (1, 1), [(1, 1)], [(1, 1), (1,)], 1.0, None, [(0.5, 1), (1, 1)]):
        with pytest.raises(ValueError, match='conv2d: needed padding as "SAME", "VALID", an int'):
            iso.conv2d(x, w, 1, wrong)


def test_strides_and_dilations_that_are_not_positive(of):
    x, w = of(1, 5, 5, 3), of(3, 3, 3, 2)
    for wrong in (0, -1, (1, 0), (1,), (1, 1, 1), 1.5, "1", None, (1.0, 1.0)):
        with pytest.raises(ValueError, match="conv2d: needed strides as a positive int or 2 of"):
            iso.conv2d(x, w, wrong, 0)
        with pytest.raises(ValueError, match="conv2d: needed dilations as a positive int or 2 of"):
            iso.conv2d(x, w, 1, 0, dilations=wrong)
        with pytest.raises(ValueError, match="conv2d: needed x_dilations as a positive int or 2"):
            iso.conv2d(x, w, 1, 0, x_dilations=wrong)
        with pytest.raises(ValueError, match="conv2d_transpose: needed strides as a positive int"):
            iso.conv2d_transpose(x, of(3, 3, 3, 2), wrong, 0)
    assert tuple(iso.conv2d(x, w, True, True).shape) == (1, 5, 5, 2)  # bools count as ints
    several = (np.int64(1), np.int32(2))
    assert tuple(iso.conv2d(x, w, several, [np.array([1, 1]), (1, 1)]).shape) == (1, 5, 3, 2)
    assert tuple(iso.conv2d(x, w, np.int64(2), 0).shape) == (1, 2, 2, 2)


def test_results_that_would_be_empty(of):
    message = r"conv1d: needed padded sizes of at least .*\[7\], got \[6\]"
    with pytest.raises(ValueError, match=message):
        iso.conv1d(of(1, 4, 3), of(4, 3, 2), 1, 1, dilations=2)
    with pytest.raises(ValueError, match="conv1d: needed .*sizes of at least"):
        iso.conv1d(of(1, 4, 3), of(2, 3, 2), 1, -2)
    with pytest.raises(ValueError, match="conv1d: needed x and filters with known sizes of at"):
        iso.conv1d(of(1, 0, 3), of(2, 3, 2), 1, "SAME")
    with pytest.raises(ValueError, match="conv1d_transpose: needed output sizes from 1 to"):
        iso.conv1d_transpose(of(1, 1, 3), of(2, 3, 2), 1, 2)


def test_an_empty_batch_is_no_error(of):
    x, w = of(0, 5, 5, 3), of(3, 3, 3, 2)
    assert tuple(iso.conv2d(x, w, 1, 0).shape) == (0, 3, 3, 2)
    assert tuple(iso.conv2d_transpose(x, w, 1, 0).shape) == (0, 7, 7, 2)
    grads = iso.grad(lambda w, x: iso.namespace(x).sum(iso.conv2d(x, w, 1, 0)))(w, x)
    assert np.array_equal(iso.to_numpy(grads), np.zeros((3, 3, 3, 2)))


def test_output_shapes_that_cannot_be(of):
    x, w = of(2, 4, 4, 3), of(3, 3, 3, 2)
    message = r"conv2d_transpose: needed output sizes from 9 to 10, 9 to 10.*got \[9, 11\]"
    with pytest.raises(ValueError, match=message):
        iso.conv2d_transpose(x, w, 2, "VALID", output_shape=(9, 11))
    with pytest.raises(ValueError, match="needed output sizes from 7 to 8, 7 to 8"):
        iso.conv2d_transpose(x, w, 2, "SAME", output_shape=(6, 8))
    for wrong in (9, (9,), (1, 9, 9, 2), (2, 9, 9, 3), (2, None, 9, 2), ("a", "b")):
        with pytest.raises(ValueError, match=r"needed output_shape as 2 sizes or as \[batch, size"):
            iso.conv2d_transpose(x, w, 2, "VALID", output_shape=wrong)
    for right in ((9, 10), [2, 9, 10, 2], (None, 9, 10, 2)):
        found = iso.conv2d_transpose(x, w, 2, "VALID", output_shape=right)
        assert tuple(found.shape) == (2, 9, 10, 2)


def test_bias_and_dtypes(of):
    x, w = of(1, 5, 3), of(2, 3, 4)
    with pytest.raises(ValueError, match=r"conv1d: needed bias \[out\], \[4\], got \[3\]"):
        iso.conv1d(x, w, 1, 0, bias=of(3))
    with pytest.raises(
        TypeError, match="needed x, filters and bias of the same dtype, got .*float64"
    ):
        iso.conv1d(x, of(2, 3, 4, dtype=np.float64), 1, 0)
    with pytest.raises(
        TypeError, match="needed x, filters and bias of the same dtype, got .*float64"
    ):
        iso.conv1d(x, w, 1, 0, bias=of(4, dtype=np.float64))
    with pytest.raises(TypeError, match="conv1d: needed an array as bias, got float"):
        iso.conv1d(x, w, 1, 0, bias=1.0)


def test_a_call_like_an_earlier_one_is_still_checked(of):
    """Plans are kept by their arguments, and 1.0 equals 1."""
    x, w, b = of(2, 6, 6, 4), of(3, 3, 4, 4), of(4)
    good = {"strides": 1, "padding": 1, "dilations": 1, "x_dilations": 1}

    def call(x=x, w=w, bias=b, strides=1, padding=1, **kw):
        return iso.conv2d(x, w, strides, padding, bias=bias, **kw)

    for _ in range(2):
        assert tuple(call(**good).shape) == (2, 6, 6, 4)
        for word in ("strides", "dilations", "x_dilations"):
            for wrong in (1.0, (1.0, 1.0), [1, 1.0]):
                with pytest.raises(ValueError, match=f"conv2d: needed {word} as a positive int"):
                    call(**{**good, word: wrong})
            assert tuple(call(**{**good, word: [1, 1]}).shape) == (2, 6, 6, 4)
        for wrong in (1.0, ((1.0, 1), (1, 1))):
            with pytest.raises(ValueError, match="conv2d: needed padding as"):
                call(padding=wrong)
        with pytest.raises(ValueError, match="conv2d: needed data_format"):
            call(data_format=["NHWC"])
        with pytest.raises(ValueError, match="feature_group_count as a positive int, got 1.0"):
            iso.conv_general_dilated(x, w, 1, 1, feature_group_count=1.0)
        with pytest.raises(TypeError, match="of the same dtype, got float32, float32, float64"):
            call(bias=of(4, dtype=np.float64))
        with pytest.raises(TypeError, match="of the same dtype, got float32, float64, float32"):
            call(w=of(3, 3, 4, 4, dtype=np.float64))
        with pytest.raises(ValueError, match=r"conv2d: needed bias \[out\], \[4\], got \[1\]"):
            call(bias=of(1))
        with pytest.raises(ValueError, match="needed filters .* with in = 4"):
            call(w=of(3, 3, 1, 4))


def test_arrays_of_two_backends(backend, of):
    other = iso.convert(np.ones((2, 3, 4), np.float32), "numpy" if backend != "numpy" else "torch")
    with pytest.raises(TypeError, match="arrays of 2 backends in one call"):
        iso.conv1d(of(1, 5, 3), other, 1, 0)
