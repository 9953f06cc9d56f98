"""Pooling against torch in float64, values and gradients."""

import numpy as np
import pytest
from frameworks import functional as F
from frameworks import torch

import isomorph as iso
from oracles import name_of, numpy_of

RNG = np.random.default_rng(3)
X = {n: RNG.normal(size=(2, 3, *(7, 6, 5)[:n])) for n in (1, 2, 3)}  # channels first
MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
AVG = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
ADAPTIVE_MAX = {1: F.adaptive_max_pool1d, 2: F.adaptive_max_pool2d, 3: F.adaptive_max_pool3d}
ADAPTIVE_AVG = {1: F.adaptive_avg_pool1d, 2: F.adaptive_avg_pool2d, 3: F.adaptive_avg_pool3d}
dims = pytest.mark.parametrize("n", [1, 2, 3])


def check(xp, ours, theirs, x, data_format):
    """Run one channels-first array through torch, and in the given format through ours."""
    t = torch.tensor(x, requires_grad=True)
    y = theirs(t)
    weights = RNG.normal(size=tuple(y.shape))
    (g,) = torch.autograd.grad((y * torch.tensor(weights)).sum(), t)
    last = data_format == "channel_last"
    turn = (lambda a: np.moveaxis(a, 1, -1)) if last else (lambda a: a)
    given, w = xp.asarray(turn(x)), xp.asarray(turn(weights))
    np.testing.assert_allclose(numpy_of(ours(given)), turn(y.detach().cpu().numpy()), rtol=1e-12)
    derived = iso.grad(lambda x: xp.sum(ours(x) * w))
    # eagerly JAX compiles each slice
    found = (iso.jit(derived) if name_of(xp) == "jax" else derived)(given)
    np.testing.assert_allclose(numpy_of(found), turn(g.cpu().numpy()), rtol=1e-10, atol=1e-13)


@pytest.mark.takes("TensorFlow traces and compiles it")
@dims
@pytest.mark.parametrize("data_format", ["channel_last", "channel_first"])
def test_pools(backend, xp, n, data_format):
    option = {"data_format": data_format}
    few = n == 3  # the last axis is like the others, and JAX compiles every slice
    for window, stride, pad in ((3, 2, 1), (2, None, 0), (3, 1, 0))[: 1 if few else 3]:
        max_ = lambda x, w=window, s=stride, p=pad: iso.max_pool(x, w, s, p, **option)
        check(xp, max_, lambda x, a=(window, stride, pad): MAX[n](x, *a), X[n], data_format)
        for counts in (True, False):
            avg = lambda x, w=window, s=stride, p=pad, c=counts: iso.avg_pool(
                x, w, s, p, count_include_pad=c, **option
            )
            theirs = lambda x, a=(window, stride, pad), c=counts: AVG[n](x, *a, count_include_pad=c)
            check(xp, avg, theirs, X[n], data_format)
    for size in (3, 1, 4)[: 1 if few else 3]:
        ours = lambda x, s=size: iso.adaptive_max_pool(x, s, **option)
        check(xp, ours, lambda x, s=size: ADAPTIVE_MAX[n](x, s), X[n], data_format)
        ours = lambda x, s=size: iso.adaptive_avg_pool(x, s, **option)
        check(xp, ours, lambda x, s=size: ADAPTIVE_AVG[n](x, s), X[n], data_format)


def test_same_padding_compiled_and_ties(backend, xp):
    x = np.arange(5.0).reshape(1, 5, 1)
    got = iso.jit(lambda x: iso.max_pool(x, 2, 2, "same"))(xp.asarray(x))
    np.testing.assert_array_equal(numpy_of(got)[0, :, 0], [1.0, 3.0, 4.0])
    got = iso.avg_pool(xp.asarray(x), 2, 2, "SAME")
    np.testing.assert_array_equal(numpy_of(got)[0, :, 0], [0.5, 2.5, 4.0])
    tie = xp.asarray(np.ones((1, 2, 1)))
    grad = iso.grad(lambda x: xp.sum(iso.max_pool(x, 2)))(tie)
    np.testing.assert_array_equal(numpy_of(grad)[0, :, 0], [0.5, 0.5])


def test_pools_compiled(backend, xp):
    """One program: values and gradients, in float64 and float32."""
    x = RNG.normal(size=(2, 7, 6, 3))
    first, last = (lambda t: t.movedim(-1, 1)), (lambda t: t.movedim(1, -1))
    pairs = [
        (lambda x: iso.max_pool(x, 3, 2, 1), lambda x: F.max_pool2d(x, 3, 2, 1)),
        (
            lambda x: iso.avg_pool(x, (3, 2), 2, 1),
            lambda x: F.avg_pool2d(x, (3, 2), 2, 1, count_include_pad=False),
        ),
        (lambda x: iso.adaptive_max_pool(x, (3, 4)), lambda x: F.adaptive_max_pool2d(x, (3, 4))),
        (lambda x: iso.adaptive_avg_pool(x, (3, 4)), lambda x: F.adaptive_avg_pool2d(x, (3, 4))),
    ]

    def program(x):
        found = []
        for ours, _ in pairs:
            found += [ours(x), iso.grad(lambda x, f=ours: xp.sum(xp.sin(f(x))))(x)]
        return found

    expected = []
    for _, theirs in pairs:
        t = torch.tensor(x, requires_grad=True, device="cpu")
        y = last(theirs(first(t)))
        expected += [y.detach(), torch.autograd.grad(y.sin().sum(), t)[0]]
    ways = [(iso.jit(program), xp.float64, 1e-10)]
    ways.append((program if backend != "jax" else iso.jit(program), xp.float32, 1e-5))
    for run, dtype, tolerance in ways:
        for got, wanted in zip(run(xp.asarray(x, dtype=dtype)), expected, strict=True):
            assert got.dtype == dtype
            np.testing.assert_allclose(numpy_of(got), wanted, tolerance, tolerance)


def test_what_is_not_a_number_shows(backend, xp):
    x = np.array([1.0, np.nan, 3.0, 4.0, -np.inf, -np.inf]).reshape(1, 6, 1)
    for pool in (iso.max_pool, iso.avg_pool):
        y = numpy_of(pool(xp.asarray(x), 2))[0, :, 0]
        assert np.isnan(y[0])
        np.testing.assert_array_equal(y[1:], [4.0 if pool is iso.max_pool else 3.5, -np.inf])


def test_bad_input(backend, xp):
    x = xp.asarray(np.ones((1, 4, 3)))
    cases = [
        (lambda: iso.max_pool(x, 5), r"at least the window \[5\], got \[4\].* x \[1, 4, 3\]"),
        (lambda: iso.max_pool(x, 2, 1, 2), r"0 <= padding < window \[2\], got 2"),
        (lambda: iso.max_pool(x, 0), "needed window as a positive int"),
        (lambda: iso.avg_pool(x, 2, data_format="NWC"), "needed data_format"),
        (lambda: iso.adaptive_avg_pool(x, 9), r"at most \[4\].* got \[9\]"),
        (lambda: iso.max_pool(xp.asarray(np.ones((1, 4))), 2), "batch, .*sizes, channels"),
    ]
    for call, match in cases:
        with pytest.raises(ValueError, match=match):
            call()
