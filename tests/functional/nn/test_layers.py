"""Suite "Functional API/NN/layers": linear, dropout, attention, recurrence, convolutions."""

import numpy as np
import pytest
from frameworks import functional as F
from frameworks import torch
from scipy import stats

import isomorph as iso
from oracles import numpy_of, verbs_of

from . import sequence_oracles as sequences
from .conv_oracles import (
    Case,
    drawn,
    filters_first,
    filters_first_transposed,
    first,
    same,
)
from .conv_oracles import check as conv_check
from .conv_oracles import forward as conv_forward
from .conv_oracles import transposed as conv_transposed
from .dropout_oracles import dropped, kept, key_of


def test_conv1d(backend):
    x, w = drawn(0, (2, 9, 3), (3, 3, 4))
    case = Case((9,), (3,), (2,), same((9,), (3,), (2,), (1,)), (1,), (1,))
    call = lambda x, w, b: iso.conv1d(x, w, 2, "same", bias=b)
    conv_check(backend, call, conv_forward(case), x, w, second=True, compiled=True)

    case = Case((9,), (3,), (1,), ((0, 3),), (2,), (2,))
    call = lambda x, w, b: iso.conv1d(
        x, w, (1,), [(0, 3)], data_format="NCW", filter_format="channel_first", x_dilations=2,
        dilations=(2,), bias=b,
    )  # fmt: skip
    conv_check(backend, call, conv_forward(case), x, w, forms=(first, filters_first))


def test_conv2d(backend):
    x, w = drawn(1, (2, 7, 6, 3), (3, 2, 3, 4))
    case = Case((7, 6), (3, 2), (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1))
    call = lambda x, w, b: iso.conv2d(x, w, 1, 1, bias=b)
    conv_check(backend, call, conv_forward(case), x, w, second=True, compiled=True)

    pads = same((7, 6), (3, 2), (2, 1), (2, 1))
    case = Case((7, 6), (3, 2), (2, 1), pads, (1, 1), (2, 1))
    call = lambda x, w, b: iso.conv2d(x, w, (2, 1), "SAME", data_format="NCHW", dilations=(2, 1))
    conv_check(backend, call, conv_forward(case), x, w, bias=False, forms=(first, lambda w: w))

    case = Case((7, 6), (3, 2), (2, 3), ((-1, 3), (2, 0)), (1, 3), (1, 2))
    call = lambda x, w, b: iso.conv2d(
        x, w, (2, 3), [(-1, 3), (2, 0)], filter_format="channel_first", x_dilations=(1, 3),
        dilations=(1, 2), bias=b,
    )  # fmt: skip
    conv_check(backend, call, conv_forward(case), x, w, forms=(lambda x: x, filters_first))


def test_conv3d(backend):
    x, w = drawn(2, (2, 4, 5, 4, 2), (2, 3, 2, 2, 3))
    case = Case((4, 5, 4), (2, 3, 2), (1, 2, 1), ((0, 0),) * 3, (1, 1, 1), (1, 1, 1))
    call = lambda x, w, b: iso.conv3d(x, w, (1, 2, 1), "VALID", bias=b)
    conv_check(backend, call, conv_forward(case), x, w, second=True, compiled=True)

    pads = same((7, 5, 4), (2, 3, 2), (2, 1, 1), (1, 1, 2))
    case = Case((4, 5, 4), (2, 3, 2), (2, 1, 1), pads, (2, 1, 1), (1, 1, 2))
    call = lambda x, w, b: iso.conv3d(
        x, w, [2, 1, 1], "SAME", data_format="NCDHW", filter_format="channel_first",
        x_dilations=(2, 1, 1), dilations=(1, 1, 2), bias=b,
    )  # fmt: skip
    conv_check(backend, call, conv_forward(case), x, w, forms=(first, filters_first))


def test_depthwise_conv2d(backend):
    x, w = drawn(3, (2, 6, 5, 3), (3, 2, 1, 6))
    split = lambda w: np.reshape(w, (3, 2, 3, 2))  # [k, k, 1, in·multiplier]
    pads = same((6, 5), (3, 2), (2, 2), (1, 1))
    case = Case((6, 5), (3, 2), (2, 2), pads, (1, 1), (1, 1), 3)
    call = lambda x, w, b: iso.depthwise_conv2d(x, w, 2, "SAME")
    conv_check(
        backend, call, conv_forward(case), x, w, bias=False, forms=(lambda x: x, split),
        second=True, compiled=True,
    )  # fmt: skip

    single = lambda w: np.reshape(w, (3, 2, 3))
    case = Case((6, 5), (3, 2), (1, 1), ((1, 2), (0, 1)), (1, 1), (2, 1), 3)
    call = lambda x, w, b: iso.depthwise_conv2d(
        x, w, 1, [(1, 2), (0, 1)], data_format="NCHW", dilations=(2, 1)
    )
    w = w[..., :3]
    conv_check(backend, call, conv_forward(case), x, w, bias=False, forms=(first, single))

    case = Case((6, 5), (3, 2), (2, 1), ((0, 0), (0, 0)), (1, 1), (2, 2), 3)
    call = lambda x, w, b: iso.depthwise_conv2d(x, w, (2, 1), "VALID", dilations=2)
    conv_check(backend, call, conv_forward(case), x, w, bias=False, forms=(lambda x: x, single))


def test_conv1d_transpose(backend):
    x, w = drawn(4, (2, 5, 3), (4, 3, 2))
    case = Case((10,), (4,), (2,), same((10,), (4,), (2,), (1,)), (1,), (1,))
    call = lambda x, w, b: iso.conv1d_transpose(x, w, 2, "SAME", bias=b)
    conv_check(backend, call, conv_transposed(case), x, w, second=True, compiled=True)

    case = Case((16,), (4,), (2,), ((0, 0),), (1,), (2,))
    call = lambda x, w, b: iso.conv1d_transpose(
        x, w, 2, "VALID", output_shape=(2, 2, 16), data_format="NCW",
        filter_format="channel_first", dilations=2, bias=b,
    )  # fmt: skip
    forms = (first, filters_first_transposed)
    conv_check(backend, call, conv_transposed(case), x, w, forms=forms)


def test_conv2d_transpose(backend):
    x, w = drawn(5, (2, 4, 3, 3), (3, 2, 3, 4))
    case = Case((9, 9), (3, 2), (2, 3), ((0, 0), (0, 0)), (1, 1), (1, 1))
    call = lambda x, w, b: iso.conv2d_transpose(x, w, (2, 3), "VALID", bias=b)
    conv_check(backend, call, conv_transposed(case), x, w, second=True, compiled=True)

    pads = same((7, 8), (3, 2), (2, 3), (1, 2))
    case = Case((7, 8), (3, 2), (2, 3), pads, (1, 1), (1, 2))
    call = lambda x, w, b: iso.conv2d_transpose(
        x, w, (2, 3), "SAME", output_shape=(7, 8), dilations=(1, 2), bias=b
    )
    conv_check(backend, call, conv_transposed(case), x, w)

    case = Case((7, 6), (3, 2), (2, 2), ((0, 3), (3, -2)), (1, 1), (1, 1))
    call = lambda x, w, b: iso.conv2d_transpose(
        x, w, 2, [(0, 3), (3, -2)], output_shape=(7, 6), data_format="NCHW"
    )
    conv_check(backend, call, conv_transposed(case), x, w, bias=False, forms=(first, lambda w: w))


def test_conv3d_transpose(backend):
    x, w = drawn(6, (1, 3, 2, 3, 2), (2, 3, 2, 2, 3))
    case = Case((3, 4, 6), (2, 3, 2), (1, 2, 2), ((0, 1), (0, 1), (0, 0)), (1, 1, 1), (1, 1, 1))
    call = lambda x, w, b: iso.conv3d_transpose(x, w, (1, 2, 2), "SAME", bias=b)
    conv_check(backend, call, conv_transposed(case), x, w, second=True, compiled=True)

    case = Case((5, 5, 5), (2, 3, 2), (1, 1, 1), ((0, 0), (1, 0), (0, 0)), (1, 1, 1), (2, 2, 2))
    call = lambda x, w, b: iso.conv3d_transpose(
        x, w, 1, [(0, 0), (1, 0), (0, 0)], data_format="NCDHW", filter_format="channel_first",
        dilations=2, bias=b,
    )  # fmt: skip
    forms = (first, filters_first_transposed)
    conv_check(backend, call, conv_transposed(case), x, w, forms=forms)


def test_conv_general_dilated(backend):
    x, w = drawn(7, (2, 6, 5, 4), (2, 3, 2, 6))
    case = Case((6, 5), (2, 3), (2, 1), ((1, 0), (2, 1)), (1, 1), (1, 1), 2)
    call = lambda x, w, b: iso.conv_general_dilated(
        x, w, (2, 1), [(1, 0), (2, 1)], feature_group_count=2, bias=b
    )
    conv_check(backend, call, conv_forward(case), x, w, second=True, compiled=True)

    x, w = drawn(8, (2, 5, 6), (3, 3, 4))
    case = Case((5,), (3,), (2,), same((13,), (3,), (2,), (2,)), (3,), (2,), 2)
    call = lambda x, w, b: iso.conv_general_dilated(
        x, w, 2, "SAME", dims=1, data_format="channel_first", filter_format="channel_first",
        feature_group_count=2, x_dilations=3, dilations=2, bias=b,
    )  # fmt: skip
    conv_check(backend, call, conv_forward(case), x, w, forms=(first, filters_first))

    x, w = drawn(9, (1, 3, 4, 3, 4), (2, 2, 2, 2, 2))
    case = Case((3, 4, 3), (2, 2, 2), (1, 2, 1), ((1, 1),) * 3, (1, 1, 2), (2, 1, 1), 2)
    call = lambda x, w, b: iso.conv_general_dilated(
        x, w, (1, 2, 1), 1, dims=3, feature_group_count=2, x_dilations=(1, 1, 2),
        dilations=(2, 1, 1),
    )  # fmt: skip
    conv_check(backend, call, conv_forward(case), x, w, bias=False)


def test_conv_general_transpose(backend):
    x, w = drawn(10, (2, 4, 3, 4), (3, 2, 4, 3))
    case = Case((8, 6), (3, 2), (2, 2), ((0, 1), (0, 0)), (1, 1), (1, 1), 2)
    call = lambda x, w, b: iso.conv_general_transpose(
        x, w, 2, "SAME", feature_group_count=2, bias=b
    )
    conv_check(backend, call, conv_transposed(case), x, w, second=True, compiled=True)

    x, w = drawn(11, (2, 4, 6), (3, 6, 1))
    case = Case((11,), (3,), (2,), ((1, 0),), (1,), (2,), 3)
    call = lambda x, w, b: iso.conv_general_transpose(
        x, w, 2, [(1, 0)], dims=1, output_shape=(11,), data_format="channel_first",
        filter_format="channel_first", dilations=2, feature_group_count=3, bias=b,
    )  # fmt: skip
    forms = (first, filters_first_transposed)
    conv_check(backend, call, conv_transposed(case), x, w, forms=forms)

    x, w = drawn(12, (1, 2, 3, 2, 4), (2, 2, 1, 4, 1))
    case = Case((3, 6, 4), (2, 2, 1), (1, 2, 2), ((0, 0),) * 3, (1, 1, 1), (1, 1, 1), 4)
    call = lambda x, w, b: iso.conv_general_transpose(
        x, w, (1, 2, 2), "VALID", dims=3, feature_group_count=4
    )
    conv_check(backend, call, conv_transposed(case), x, w, bias=False)


def test_linear(backend, xp):
    for outer, inner in (((), ()), ((), (5,)), ((), (2, 3)), ((2,), ()), ((2, 3), (4,))):
        check_linear(xp, outer, inner, lambda f: f)
    check_linear(xp, (2,), (4, 3), iso.jit)
    # an infinity and a NaN only reach their own rows
    x, w = np.ones((3, 4)), np.ones((2, 4))
    x[0, 1], x[2, 3] = np.inf, np.nan
    y = numpy_of(iso.linear(xp.asarray(x), xp.asarray(w)))
    np.testing.assert_array_equal(y, [[np.inf] * 2, [4.0] * 2, [np.nan] * 2])
    grad = iso.grad(lambda w: xp.sum(iso.linear(xp.asarray(x), w)))(xp.asarray(w))
    np.testing.assert_array_equal(numpy_of(grad), [[3.0, np.inf, 3.0, np.nan]] * 2)


def check_linear(xp, outer, inner, run):
    rng = np.random.default_rng(7)
    x = rng.normal(size=(*outer, *inner, 4))
    w = rng.normal(size=(*outer, 3, 4))
    b = rng.normal(size=(*outer, 3))
    y = np.zeros((*outer, *inner, 3))  # one product at a time
    for o in np.ndindex(*outer):
        for i in np.ndindex(*inner):
            y[o + i] = [sum(w[o][k] * x[o + i]) + b[o][k] for k in range(3)]
    u = rng.normal(size=y.shape)
    flat = lambda a: a.reshape(*outer, -1, a.shape[-1])
    back = lambda u: np.einsum("...nk,...nj->...kj", flat(u), flat(x))
    gx = np.einsum("...nk,...kj->...nj", flat(u), w).reshape(x.shape)
    plain = y - b.reshape(*outer, *(1,) * len(inner), 3)
    # second order: the loss is ½ Σ u·y²; differentiate its gradient for w, along r
    r = rng.normal(size=w.shape)
    along = np.einsum("...nj,...kj->...nk", flat(x), r).reshape(y.shape)
    expected = (y, plain, gx, back(u), flat(u).sum(-2), back(u * along))
    call = lambda x, w, b: iso.linear(x, w, bias=b)

    def everything(x, w, b, u, r):
        loss = lambda x, w, b: xp.sum(call(x, w, b) * u)
        half = lambda w: xp.sum(u * call(x, w, b) ** 2) / 2
        second = iso.grad(lambda w: xp.sum(iso.grad(half)(w) * r))(w)
        return (call(x, w, b), iso.linear(x, w), *iso.grad(loss, (0, 1, 2))(x, w, b), second)

    for dtype, tolerance in ((xp.float64, 1e-10), (xp.float32, 1e-5)):
        args = [xp.asarray(a, dtype=dtype) for a in (x, w, b, u, r)]
        found = run(everything)(*args)
        for got, wanted in zip(found, expected, strict=True):
            assert got.dtype == dtype
            scale = max(1.0, np.abs(wanted).max())
            np.testing.assert_allclose(numpy_of(got), wanted, tolerance, tolerance * scale)


def test_dropout(backend, xp):
    seed, key = 42, key_of(backend, 42)
    given = np.random.default_rng(0).normal(size=(50, 40)).astype(np.float32)
    x = xp.asarray(given)
    # values: the mask of JAX's generator, scaled; equality is exact
    for prob in (0.1, 0.5, 0.75):
        y = numpy_of(iso.dropout(x, prob, rng=key))
        np.testing.assert_array_equal(y, dropped(given, seed, prob))
        assert y.dtype == np.float32
        count = int((y != 0).sum())
        assert stats.binomtest(count, given.size, 1 - prob).pvalue > 1e-3
        y = numpy_of(iso.dropout(x, prob, scale=False, rng=key))
        np.testing.assert_array_equal(y, dropped(given, seed, prob, scale=False))
    other = numpy_of(iso.dropout(x, 0.5, rng=key_of(backend, 43)))
    assert 0.4 < np.mean((other != 0) == kept(seed, 0.5, x.shape)) < 0.6
    # dropped values are zero, even infinities
    y = numpy_of(iso.dropout(xp.asarray(np.full(9, np.inf, np.float32)), 0.5, rng=key))
    np.testing.assert_array_equal(y, np.where(kept(seed, 0.5, (9,)), np.inf, 0))

    # noise_shape: one draw for all positions along axes of 1 or None
    for noise, shape in (((50, 1), (50, 1)), ((None, 40), (1, 40)), ((1, None), (1, 1))):
        y = numpy_of(iso.dropout(x, 0.4, rng=key, noise_shape=noise))
        np.testing.assert_array_equal(y, dropped(given, seed, 0.4, shape=shape))

    # dtypes; torch multiplies float16 by a factor with more digits than float16 has
    for dtype, ulps in (("float16", 1), ("float64", 0)):
        wide = given.astype(dtype)
        wanted = dropped(wide, seed, 0.3)
        for y in (
            iso.dropout(iso.convert(wide, backend), 0.3, rng=key),
            iso.dropout(x, 0.3, rng=key, dtype=dtype),
        ):
            assert y.dtype == verbs_of(xp).dtype(dtype)
            np.testing.assert_array_equal(numpy_of(y) == 0, wanted == 0)
            np.testing.assert_array_max_ulp(numpy_of(y), wanted, ulps)

    # turned off
    assert iso.dropout(x, 0.5, training=False) is x
    assert iso.dropout(x, 0.0, rng=key) is x
    assert iso.dropout(x, 0.5, training=False, dtype="float64").dtype == xp.float64

    # gradients: the mask over 1 - p, second derivatives are zero; also compiled
    small, weights = xp.asarray(given[0, :6]), xp.asarray(given[1, :6])
    loss = lambda x, key: xp.sum(iso.dropout(x, 0.3, rng=key))
    mask = np.where(kept(seed, 0.3, (6,)), np.float32(1 / 0.7), 0)
    np.testing.assert_array_equal(numpy_of(iso.grad(loss)(small, key)), mask)
    curve = lambda x, key: xp.sum(iso.grad(loss)(x, key) * weights) + 0 * xp.sum(x)
    np.testing.assert_array_equal(numpy_of(iso.grad(curve)(small, key)), np.zeros(6))
    squares = lambda x: xp.sum(iso.dropout(x, 0.3, rng=key) ** 2)
    second = np.diag(2 * mask.astype(np.float64) ** 2)
    np.testing.assert_allclose(numpy_of(iso.hessian(squares)(small)), second, rtol=1e-6)
    both = iso.jit(lambda x, key: (iso.dropout(x, 0.3, rng=key), iso.grad(loss)(x, key)))
    for n in (seed, 7):  # the key is an argument: no recompilation
        value, grad = both(small, key_of(backend, n))
        np.testing.assert_array_equal(numpy_of(value), dropped(given[0, :6], n, 0.3))
        wanted = np.where(kept(n, 0.3, (6,)), np.float32(1 / 0.7), 0)
        np.testing.assert_array_equal(numpy_of(grad), wanted)

    # bad input
    for prob in (-0.1, 1.0, 1.5, float("nan"), "0.5"):
        with pytest.raises(ValueError, match="dropout: needed prob as a number"):
            iso.dropout(x, prob, rng=key)
    with pytest.raises(ValueError, match="dropout: needed a key as rng"):
        iso.dropout(x, 0.5)
    with pytest.raises(TypeError, match="dropout: needed a key, uint32"):
        iso.dropout(x, 0.5, rng=xp.asarray([1.0, 2.0]))
    for noise in ((50,), (50, 2), (1, 1, 1)):
        with pytest.raises(ValueError, match="dropout: needed noise_shape with None, 1 or its"):
            iso.dropout(x, 0.5, rng=key, noise_shape=noise)
    with pytest.raises(TypeError, match="dropout: needed x as floats, got .*int"):
        iso.dropout(xp.asarray([1, 2]), 0.5, rng=key)
    with pytest.raises(TypeError, match="arrays of 2 backends"):
        iso.dropout(x, 0.5, rng=key_of("numpy" if backend == "torch" else "torch", 0))


def test_scaled_dot_product_attention(backend, xp):
    q, k, v = sequences.drawn(0, (2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 2))
    mask = np.random.default_rng(1).random((4, 6)) > 0.4
    mask[2] = False  # a query that attends to nothing
    call = lambda q, k, v: iso.scaled_dot_product_attention(
        q, k, v, mask=xp.asarray(mask), is_causal=True
    )
    reference = lambda q, k, v: sequences.torch_attention(q, k, v, mask, True)
    sequences.check(xp, call, reference, [q, k, v], compiled=True)
    given = [xp.asarray(x) for x in (q, k, v)]
    naive = sequences.naive_attention
    np.testing.assert_allclose(numpy_of(call(*given)), naive(q, k, v, mask, True), rtol=1e-12)
    assert not numpy_of(call(*given))[:, :, 2].any()

    # broadcast leading axes, an additive mask, a scale
    q, k, v = sequences.drawn(2, (2, 1, 4, 5), (3, 6, 5), (1, 6, 2))
    added = np.where(np.arange(24).reshape(4, 6) % 5 == 0, -np.inf, sequences.drawn(3, (4, 6))[0])
    y = iso.scaled_dot_product_attention(
        *(xp.asarray(x) for x in (q, k, v)), mask=xp.asarray(added), scale=0.3
    )
    np.testing.assert_allclose(numpy_of(y), naive(q, k, v, added, scale=0.3), rtol=1e-12)
    small = [xp.asarray(x.astype(np.float32)) for x in (q, k, v)]
    y = iso.scaled_dot_product_attention(*small)
    assert y.dtype == xp.float32
    np.testing.assert_allclose(numpy_of(y), naive(q, k, v), rtol=1e-5, atol=1e-6)

    # dropout of weights: values that are the identity show them
    q, k = sequences.drawn(4, (3, 4, 5), (3, 6, 5))
    weights = naive(q, k, np.eye(6))
    given = [xp.asarray(x) for x in (q, k, np.eye(6))]
    drop = lambda training: iso.scaled_dot_product_attention(
        *given, dropout_p=0.4, training=training, rng=key_of(backend, 5)
    )
    np.testing.assert_allclose(numpy_of(drop(False)), weights, rtol=1e-12)
    mask = kept(5, 0.4, weights.shape)
    np.testing.assert_allclose(numpy_of(drop(True)), np.where(mask, weights / 0.6, 0), rtol=1e-12)
    # their gradients flow through the kept weights
    arrays = [q, k, *sequences.drawn(6, (3, 6, 2))]

    def reference(q, k, v):
        powers = torch.softmax(q @ k.mT * 5**-0.5, -1)
        return torch.where(torch.tensor(mask), powers / 0.6, 0.0) @ v

    call = lambda q, k, v: iso.scaled_dot_product_attention(
        q, k, v, dropout_p=0.4, training=True, rng=key_of(backend, 5)
    )
    sequences.check(xp, call, reference, arrays)


def test_multi_head_attention(backend, xp):
    n, length, keys, width, heads = 2, 4, 5, 6, 2
    q, k, v = sequences.drawn(0, (n, length, width), (n, keys, 3), (n, keys, 7))
    weights = sequences.drawn(
        1, (width, width), (width, 3), (width, 7), (width, width), (3 * width,), (width,)
    )
    mask = np.random.default_rng(2).random((length, keys)) > 0.6  # True: excluded
    padding = np.array([[False] * 5, [False, False, False, True, True]])
    mask[:, 0] = False
    names = ["q_proj_weights", "k_proj_weights", "v_proj_weights", "out_proj_weights"]
    names += ["in_proj_bias", "out_proj_bias"]

    def call(q, k, v, *weights):
        return iso.multi_head_attention(
            q, key=k, value=v, num_heads=heads, attention_mask=xp.asarray(mask), is_causal=True,
            key_padding_mask=xp.asarray(padding), return_attention_weights=True,
            **dict(zip(names, weights)),
        )  # fmt: skip

    def reference(q, k, v, wq, wk, wv, wo, b, bo):
        y, w = F.multi_head_attention_forward(
            q.mT.movedim(-1, 0), k.mT.movedim(-1, 0), v.mT.movedim(-1, 0), width, heads, None, b,
            None, None, False, 0.0, wo, bo, use_separate_proj_weight=True, q_proj_weight=wq,
            k_proj_weight=wk, v_proj_weight=wv, key_padding_mask=torch.tensor(padding),
            attn_mask=torch.tensor(mask | ~np.tri(length, keys, dtype=bool)),
        )  # fmt: skip
        return y.movedim(0, 1), w

    sequences.check(xp, call, reference, [q, k, v, *weights], second=False, compiled=True)
    fixed = weights[1:]  # a few second derivatives
    sequences.check(
        xp, lambda q, w: call(q, *map(xp.asarray, (k, v)), w, *map(xp.asarray, fixed)),
        lambda q, w: reference(q, *map(torch.tensor, (k, v)), w, *map(torch.tensor, fixed)),
        [q, weights[0]],
    )  # fmt: skip


@pytest.mark.parametrize("time_major", [False, True])
def test_lstm_update(backend, xp, time_major):
    time, batch, size, out = 3, 2, 3, 4
    first = (time, batch) if time_major else (batch, time)
    arrays = sequences.drawn(
        0, (*first, size), (batch, out), (batch, out), (size, 4 * out), (out, 4 * out), (4 * out,),
        (4 * out,),
    )  # fmt: skip

    def call(*arrays):
        hs, (h, c) = iso.lstm_update(
            *arrays[:5], bias=arrays[5], recurrent_bias=arrays[6], time_major=time_major
        )
        return hs, h, c

    reference = sequences.torch_recurrent(torch.nn.LSTM, 4, time_major)
    sequences.check(xp, call, reference, arrays, compiled=not time_major)

    # no batch axis, two batch axes, and no biases
    x, h, c = arrays[:3]
    zeros = np.zeros(4 * out)
    if not time_major:
        expected = sequences.derivatives(reference, [*arrays[:5], zeros, zeros], False)[0]
        given = [xp.asarray(x) for x in arrays[:5]]
        wide = [xp.asarray(np.stack([x] * 3)) for x in (x, h, c)]
        for args, picked in ((given, ()), ([*wide, *given[3:]], (1,))):
            hs, (h1, c1) = iso.lstm_update(*args)
            for y, wanted in zip((hs, h1, c1), expected):
                np.testing.assert_allclose(numpy_of(y)[picked], wanted, rtol=1e-12, atol=1e-14)
        hs, (h1, _) = iso.lstm_update(given[0][0], given[1][0], given[2][0], *given[3:])
        np.testing.assert_allclose(numpy_of(hs), expected[0][0], rtol=1e-12)
        np.testing.assert_allclose(numpy_of(h1), expected[1][0], rtol=1e-12)
