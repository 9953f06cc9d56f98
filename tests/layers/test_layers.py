"""Suite "Functional API/NN/layers": linear, dropout, attention, recurrence, convolutions."""

import numpy as np
import pytest
from frameworks import functional as F
from frameworks import torch
from scipy import stats

import isomorph as iso
from oracles import numpy_of, verbs_of

from . import conv_examples
from . import sequence_oracles as sequences
from .conv_oracles import check_all
from .dropout_oracles import dropped, kept, key_of

pytestmark = [
    pytest.mark.whole,
    pytest.mark.takes("torch compiles kernels of C++, each for a second, and JAX long programs"),
]


def test_conv1d(backend):
    check_all(backend, [*conv_examples.conv1d()])


def test_conv2d(backend):
    check_all(backend, [*conv_examples.conv2d()])


def test_conv3d(backend):
    check_all(backend, [*conv_examples.conv3d()])


def test_depthwise_conv2d(backend):
    check_all(backend, [*conv_examples.depthwise_conv2d()])


def test_conv1d_transpose(backend):
    check_all(backend, [*conv_examples.conv1d_transpose()])


def test_conv2d_transpose(backend):
    check_all(backend, [*conv_examples.conv2d_transpose()])


def test_conv3d_transpose(backend):
    check_all(backend, [*conv_examples.conv3d_transpose()])


def test_conv_general_dilated(backend):
    check_all(backend, [*conv_examples.conv_general_dilated()])


def test_conv_general_transpose(backend):
    check_all(backend, [*conv_examples.conv_general_transpose()])


def test_linear(backend, xp):
    shapes = ((), ()), ((), (5,)), ((), (2, 3)), ((2,), ()), ((2, 3), (4,))
    problems = [linear_problem(*shape) for shape in shapes]
    every = lambda given: [linear_results(xp, *arrays) for arrays in given]
    for dtype, tolerance in ((xp.float64, 1e-10), (xp.float32, 1e-5)):
        given = [[xp.asarray(a, dtype=dtype) for a in arrays] for arrays, _ in problems]
        results = quick(backend, every)(given)
        if dtype == xp.float64 and backend != "jax":
            problems.append(problems[-1])
            results += iso.jit(every)(given[-1:])
        for found, (_, expected) in zip(results, problems):
            for got, wanted in zip(found, expected, strict=True):
                assert got.dtype == dtype
                scale = max(1.0, np.abs(wanted).max())
                np.testing.assert_allclose(numpy_of(got), wanted, tolerance, tolerance * scale)
    # an infinity and a NaN only reach their own rows
    x, w = np.ones((3, 4)), np.ones((2, 4))
    x[0, 1], x[2, 3] = np.inf, np.nan
    y = numpy_of(iso.linear(xp.asarray(x), xp.asarray(w)))
    np.testing.assert_array_equal(y, [[np.inf] * 2, [4.0] * 2, [np.nan] * 2])
    slope = quick(backend, iso.grad(lambda w, x: xp.sum(iso.linear(x, w))))
    grad = slope(xp.asarray(w), xp.asarray(x))
    np.testing.assert_array_equal(numpy_of(grad), [[3.0, np.inf, 3.0, np.nan]] * 2)


def quick(backend, func):
    """`func`, compiled on JAX, which compiles each eager operation by itself."""
    return iso.jit(func) if backend == "jax" else func


def linear_problem(outer, inner):
    """x, w, b, numbers c and r like y and w; and what `linear_results` is to compute."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(*outer, *inner, 4))
    w = rng.normal(size=(*outer, 3, 4))
    b = rng.normal(size=(*outer, 3))
    y = np.zeros((*outer, *inner, 3))  # one product at a time
    for o in np.ndindex(*outer):
        for i in np.ndindex(*inner):
            y[o + i] = [sum(w[o][k] * x[o + i]) + b[o][k] for k in range(3)]
    c, r = rng.normal(size=y.shape), rng.normal(size=w.shape)
    flat = lambda a: a.reshape(*outer, -1, a.shape[-1])
    plain = y - b.reshape(*outer, *(1,) * len(inner), 3)
    to_x = lambda w: np.einsum("...nk,...kj->...nj", flat(c), w).reshape(x.shape)
    to_w = np.einsum("...nk,...nj->...kj", flat(c), flat(x))
    along = np.einsum("...nj,...kj->...nk", flat(x), r).reshape(y.shape)
    return (x, w, b, c, r), (y, plain, to_x(w), to_w, flat(c).sum(-2), to_x(r), along)


def linear_results(xp, x, w, b, c, r):
    """y, y without the bias, the gradients of Σ c·y, and those of Σ r·(its gradient for w) for x
    and for c.
    """
    loss = lambda x, w, b, c: xp.sum(iso.linear(x, w, bias=b) * c)
    along = lambda x, c: xp.sum(iso.grad(loss, 1)(x, w, b, c) * r)
    values = iso.linear(x, w, bias=b), iso.linear(x, w)
    return *values, *iso.grad(loss, (0, 1, 2))(x, w, b, c), *iso.grad(along, (0, 1))(x, c)


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
    curve = lambda x, key: xp.sum(iso.grad(loss)(x, key) * weights) + 0 * xp.sum(x)
    squares = lambda x, key: xp.sum(iso.dropout(x, 0.3, rng=key) ** 2)
    grads = quick(backend, lambda *a: [f(*a) for f in map(iso.grad, (loss, curve))])(small, key)
    np.testing.assert_array_equal([*map(numpy_of, grads)], [mask, np.zeros(6)])
    second = np.diag(2 * mask.astype(np.float64) ** 2)
    hessian = quick(backend, iso.hessian(squares))(small, key)
    np.testing.assert_allclose(numpy_of(hessian), second, rtol=1e-6)
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
    # torch compiles second derivatives for ten seconds: test_attention.py does that
    how = "first" if backend == "torch" else True
    sequences.check(xp, call, reference, [q, k, v], compiled=how)
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
    # torch compiles second derivatives of the loop for a minute: test_recurrent.py does that
    how = not time_major and (True if backend == "jax" else "first")
    sequences.check(xp, call, reference, arrays, second=not time_major, compiled=how)

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
