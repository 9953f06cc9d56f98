"""Values of layers, without gradients or compilation: the part of the suite for backends that lack
both (`pytest --backend`). Other files check the four backends against the same oracles and more, so
here those run under `slow`.
"""

from itertools import cycle

import numpy as np
import pytest
from frameworks import functional as F
from frameworks import torch

import isomorph as iso
from oracles import kind_of, numpy_of

from . import conv_oracles, test_conv_grid, test_pooling
from .dropout_oracles import dropped, key_of
from .sequence_oracles import drawn, naive_attention, torch_recurrent
from .test_activations import HARD, IMAGE, LOGITS, SCALE, SHIFT, UNARY, X
from .test_recurrent import arrays_of, gru, lstm

pytestmark = pytest.mark.slow
first, last = (lambda t: t.movedim(-1, 1)), (lambda t: t.movedim(1, -1))


def check(backend, ours, theirs, *arrays):
    """Compare with torch's float64 values, in float64 and float32; results keep the arguments'
    dtype.
    """
    wanted = [y.cpu().numpy() for y in tupled(theirs(*map(torch.tensor, arrays)))]
    for dtype, tolerance in ((np.float64, 1e-10), (np.float32, 1e-5)):
        given = [a.astype(dtype) if a.dtype.kind == "f" else a for a in arrays]
        found = tupled(ours(*(iso.convert(a, backend) for a in given)))
        for y, expected in zip(found, wanted, strict=True):
            assert kind_of(y) == backend
            assert numpy_of(y).dtype == dtype
            scale = max(1.0, np.abs(expected).max(initial=0))
            np.testing.assert_allclose(numpy_of(y), expected, tolerance, tolerance * scale)


def tupled(x):
    return x if isinstance(x, tuple) else (x,)


@pytest.mark.parametrize("name", UNARY)
def test_activations(backend, name):
    check(backend, *UNARY[name], X)


STATISTICS = np.array([0.5, -1.0, 0.0, 2.0]), np.array([1.0, 0.5, 2.0, 3.0])


def trained(x, mean, variance, w, b):
    """torch's batch norm, on copies of the statistics that it overwrites."""
    mean, variance = mean.clone(), variance.clone()
    y = last(F.batch_norm(first(x), mean, variance, w, b, True))
    return y, mean, variance


NORMS = {
    "layer": (
        lambda x, w, b: iso.layer_norm(x, weight=w, bias=b),
        lambda x, w, b: F.layer_norm(x, (4,), w, b),
        (IMAGE, SCALE, SHIFT),
    ),
    "rms": (
        lambda x, w: iso.rms_norm(x, weight=w),
        lambda x, w: F.rms_norm(x, (4,), w, eps=1e-6),
        (IMAGE, SCALE),
    ),
    "group": (
        lambda x, w, b: iso.group_norm(x, 2, weight=w, bias=b),
        lambda x, w, b: last(F.group_norm(first(x), 2, w, b)),
        (IMAGE, SCALE, SHIFT),
    ),
    "instance": (
        lambda x: iso.instance_norm(x, data_format="channel_first"),
        F.instance_norm,
        (IMAGE,),
    ),
    "batch": (
        lambda x, m, v, w, b: iso.batch_norm(x, m, v, weight=w, bias=b)[0],
        lambda x, m, v, w, b: last(F.batch_norm(first(x), m, v, w, b)),
        (IMAGE, *STATISTICS, SCALE, SHIFT),
    ),
    "batch_training": (
        lambda x, m, v, w, b: iso.batch_norm(x, m, v, weight=w, bias=b, training=True),
        trained,
        (IMAGE, *STATISTICS, SCALE, SHIFT),
    ),
}


@pytest.mark.parametrize("name", NORMS)
def test_norms(backend, name):
    ours, theirs, arrays = NORMS[name]
    check(backend, ours, theirs, *arrays)


PAIR = drawn(20, (3, 4), (3, 4))
SOFT = np.random.default_rng(21).dirichlet(np.ones(4), size=(3, 5))
LOSSES = {
    "mse": (iso.mse, F.mse_loss, PAIR),
    "mae": (iso.mae, F.l1_loss, PAIR),
    "huber": (iso.huber, F.huber_loss, PAIR),
    "binary": (
        iso.binary_cross_entropy,
        F.binary_cross_entropy_with_logits,
        (LOGITS, SOFT),
    ),
    "kl": (
        lambda x, p, **o: iso.kl_divergence(iso.log_softmax(x), p, **o),
        lambda x, p, reduction: reduced(
            F.kl_div(torch.log_softmax(x, -1), p, reduction="none"), reduction
        ),
        (LOGITS, SOFT),
    ),
    "soft": (
        iso.cross_entropy,
        lambda x, p, **o: F.cross_entropy(first(x), first(p), **o),
        (LOGITS, SOFT),
    ),
    "hard": (
        iso.cross_entropy,
        lambda x, y, **o: F.cross_entropy(first(x), y, **o),
        (LOGITS, HARD),
    ),
    "smoothed": (
        lambda x, y, **o: iso.cross_entropy(x, y, ignore_index=1, label_smoothing=0.1, **o),
        lambda x, y, **o: F.cross_entropy(
            first(x), y, ignore_index=1, label_smoothing=0.1, **o
        ),
        (LOGITS, HARD),
    ),
}  # fmt: skip


def reduced(each, reduction):
    return each if reduction == "none" else getattr(each, reduction)()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_losses(backend, name, reduction):
    ours, theirs, arrays = LOSSES[name]
    check(
        backend, lambda *a: ours(*a, reduction=reduction),
        lambda *a: theirs(*a, reduction=reduction), *arrays,
    )  # fmt: skip


@pytest.mark.parametrize("n", [1, 2, 3])
def test_pools(backend, n):
    x, o = test_pooling.X[n], {"data_format": "channel_first"}
    for args in ((3, 2, 1), (2, None, 0), (3, 1, 0)):
        theirs = lambda x, a=args: test_pooling.MAX[n](x, *a)
        check(backend, lambda x, a=args: iso.max_pool(x, *a, **o), theirs, x)
        for counts in (True, False):
            c = {"count_include_pad": counts}
            theirs = lambda x, a=args, c=c: test_pooling.AVG[n](x, *a, **c)
            check(backend, lambda x, a=args, c=c: iso.avg_pool(x, *a, **c, **o), theirs, x)
    for size in (1, 3, 4):
        theirs = lambda x, s=size: test_pooling.ADAPTIVE_MAX[n](x, s)
        check(backend, lambda x, s=size: iso.adaptive_max_pool(x, s, **o), theirs, x)
        theirs = lambda x, s=size: test_pooling.ADAPTIVE_AVG[n](x, s)
        check(backend, lambda x, s=size: iso.adaptive_avg_pool(x, s, **o), theirs, x)


@pytest.mark.parametrize("padding", test_conv_grid.PADDINGS)
@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("way", ["FORWARD", "TRANSPOSED"])
def test_convolutions(backend, way, dims, padding):
    """Every point of the grid in one layout, compared with the naive loops."""
    points = [p for p in getattr(test_conv_grid, way) if (p.dims, p.padding) == (dims, padding)]
    linear = conv_oracles.forward if way == "FORWARD" else conv_oracles.transposed
    for point, layout in zip(points, cycle(test_conv_grid.LAYOUTS)):
        x, w, _ = test_conv_grid._arrays(point)
        of_x, of_w = test_conv_grid._turns(point, layout)
        call = test_conv_grid._public(point, layout)
        found = call(*(iso.convert(a, backend) for a in (of_x(x), of_w(w))))
        wanted = of_x(linear(test_conv_grid._case(point)).apply(x, w))
        assert kind_of(found) == backend
        np.testing.assert_allclose(
            numpy_of(found), wanted, rtol=0, atol=1e-10, err_msg=f"{point} {layout}"
        )
    assert len(points) >= 18


@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_recurrent_layers(backend, kind, time_major):
    call, layer, gates = {"lstm": (lstm, torch.nn.LSTM, 4), "gru": (gru, torch.nn.GRU, 3)}[kind]
    arrays = arrays_of(gates)
    if time_major:
        arrays = [np.moveaxis(arrays[0], 0, 1).copy(), *arrays[1:]]
    reference = torch_recurrent(layer, gates, time_major)
    with torch.no_grad():
        check(backend, lambda *a: call(*a, time_major=time_major), reference, *arrays)


@pytest.mark.parametrize("causal", [False, True])
def test_attention(backend, causal):
    q, k, v = drawn(22, (2, 6, 4, 3), (2, 2, 5, 3), (2, 2, 5, 3))
    mask = np.random.default_rng(6).random((6, 4, 5)) > 0.3
    mask[:, 2] = False  # a query that attends to nothing
    added = np.where(mask, drawn(23, (6, 4, 5))[0], -np.inf)
    spread = [np.repeat(x, 3, 1) for x in (k, v)]
    for given in (mask, added):
        to = lambda x: iso.convert(x, backend)
        o = {"mask": to(given), "is_causal": causal}
        wanted = naive_attention(q, *spread, given, causal)
        for found in (
            iso.scaled_dot_product_attention(*map(to, (q, *spread)), **o),
            iso.grouped_query_attention(*map(to, (q, k, v)), **o),
        ):
            np.testing.assert_allclose(numpy_of(found), wanted, rtol=1e-11, atol=1e-14)


def test_linear_layers_and_rows(backend):
    x, w, b, table = drawn(24, (2, 5, 3), (2, 4, 3), (2, 4), (6, 3))
    linear = lambda x, w, b: x @ w.mT + b[:, None]
    check(backend, lambda x, w, b: iso.linear(x, w, bias=b), linear, x, w, b)
    check(backend, iso.linear, lambda x, w: x @ w.mT, x, w[0])
    ids = np.array([[0, 5, 5], [1, 0, 5]])
    check(backend, iso.embedding, F.embedding, ids, table)


def test_dropout(backend):
    x, key = drawn(25, (50, 40))[0].astype(np.float32), key_of(backend, 42)
    for noise, shape in ((None, None), ((50, 1), (50, 1)), ((None, 40), (1, 40))):
        found = iso.dropout(iso.convert(x, backend), 0.3, rng=key, noise_shape=noise)
        np.testing.assert_array_equal(numpy_of(found), dropped(x, 42, 0.3, shape=shape))
