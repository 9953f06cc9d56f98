"""Layers that are one operation of NumPy's tape. Values and gradients are compared with naive
formulas, also for NaN and infinities, and derivatives of derivatives are checked.
"""

import math

import numpy as np
import pytest

import isomorph as iso
from isomorph.backends.numpy import writing

pytestmark = pytest.mark.parametrize("backend", ["numpy"])
RNG = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def same_numbers(monkeypatch):
    """Seed the random numbers, whatever tests ran before."""
    monkeypatch.setitem(globals(), "RNG", np.random.default_rng(6))


def draw(*shape, dtype=np.float64):
    return RNG.standard_normal(shape).astype(dtype)


def gelu(x):
    return iso.gelu(x, approximate=True)


def norm(x, w, b):
    return iso.layer_norm(x, weight=w, bias=b)


def attend(q, k, v):
    return iso.scaled_dot_product_attention(q, k, v)


def causal(q, k, v):
    return iso.scaled_dot_product_attention(q, k, v, is_causal=True)


LABELS = np.array([[0, 3, 1], [2, 2, 0]])


def scores(x):
    return iso.cross_entropy(x, LABELS, reduction="none")


CASES = {
    "relu": (iso.relu, draw(3, 5)),
    "gelu": (gelu, draw(3, 5)),
    "softmax": (iso.softmax, draw(2, 3, 5)),
    "linear": (lambda x, w, b: iso.linear(x, w, bias=b), draw(2, 3, 4), draw(5, 4), draw(5)),
    "linear without bias": (iso.linear, draw(3, 4), draw(2, 4)),
    "linear of a vector": (lambda x, w, b: iso.linear(x, w, bias=b), draw(4), draw(5, 4), draw(5)),
    "layer_norm": (norm, draw(2, 3, 4), draw(4), draw(4)),
    "layer_norm of two axes": (
        lambda x, w, b: iso.layer_norm(x, axis=(-2, -1), weight=w, bias=b),
        draw(2, 3, 4), draw(3, 4), draw(3, 4),
    ),
    "layer_norm alone": (lambda x: iso.layer_norm(x), draw(3, 4)),
    "attention": (attend, draw(2, 3, 4), draw(2, 5, 4), draw(2, 5, 3)),
    "causal attention": (causal, draw(2, 4, 3), draw(2, 4, 3), draw(2, 4, 3)),
    "cross_entropy": (scores, draw(2, 3, 4)),
}  # fmt: skip


def close(a, b, rtol=1e-7, atol=1e-9):
    np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def slopes(f, x, step=1e-6):
    """Central differences of a scalar function."""
    out = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        e = np.zeros_like(x)
        e[i] = step
        out[i] = (f(x + e) - f(x - e)) / (2 * step)
    return out


@pytest.mark.parametrize("name", CASES)
def test_gradient_is_the_slope(backend, name):
    func, *arrays = CASES[name]
    weights = draw(*func(*arrays).shape)
    loss = lambda *arrays: np.sum(weights * func(*arrays))
    grads = iso.grad(loss, argnums=tuple(range(len(arrays))))(*arrays)
    for i, g in enumerate(grads):
        put = lambda x, i=i: float(loss(*arrays[:i], x, *arrays[i + 1 :]))
        close(g, slopes(put, arrays[i]), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", CASES)
def test_gradient_of_gradient_is_its_slope(backend, name):
    func, *arrays = CASES[name]
    weights, along = draw(*func(*arrays).shape), draw(*arrays[0].shape)
    first = iso.grad(lambda x: np.sum(np.tanh(weights * func(x, *arrays[1:]))))
    second = iso.grad(lambda x: np.sum(along * first(x)))(arrays[0])
    put = lambda x: float(np.sum(along * first(x)))
    close(second, slopes(put, arrays[0]), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_way_back_is_differentiated_by_the_gradient_alone(backend, name):
    """The pullback is linear: ⟨u, back(g)⟩ has the slope of the function's differential along u,
    which central differences give.
    """
    func, *arrays = CASES[name]
    y, back = iso.vjp(func, *arrays)
    us = [draw(*x.shape) for x in arrays]
    dot = lambda parts: sum(np.sum(u * p) for u, p in zip(us, parts, strict=True))
    found = iso.grad(lambda g: dot(back(g)))(draw(*y.shape))
    step = 1e-6
    ahead, behind = (
        func(*(x + s * u for x, u in zip(arrays, us, strict=True))) for s in (step, -step)
    )
    close(found, (ahead - behind) / (2 * step), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", CASES)
def test_way_back_can_be_gone_twice(backend, name):
    func, *arrays = CASES[name]
    y, back = iso.vjp(func, *arrays)
    g, before = draw(*y.shape), np.array(y)
    once, twice = back(g), back(g)
    for a, b in zip(once, twice, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(y, before)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [1, writing.PIECE - 1, 2 * writing.PIECE + 7])
def test_gelu_in_pieces(backend, size, dtype):
    x = np.linspace(-6, 6, size).astype(dtype)
    y, back = iso.vjp(gelu, x)
    (d,) = back(np.ones_like(x))
    some = RNG.integers(0, size, 50)
    eps = np.finfo(dtype).eps
    for i in (*some, 0, size - 1):
        v = float(x[i])
        u = math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)
        h = 1 / (1 + math.exp(-2 * u))
        steep = 2 * v * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * v * v)
        slope = h + steep * h * (1 - h)
        assert abs(y[i] - v * h) <= 3 * eps * (1 + abs(v))
        assert abs(d[i] - slope) <= eps * (3 + abs(steep))  # h is rounded before 1 - h
    np.testing.assert_array_equal(gelu(x), y)  # with and without recording a pullback
    assert y.dtype == d.dtype == dtype


def test_relu_at_values_that_are_no_numbers(backend):
    x = np.array([-np.inf, -1.0, -0.0, 0.0, 2.0, np.inf, np.nan])
    y, back = iso.vjp(iso.relu, x)
    np.testing.assert_array_equal(y, [0, 0, 0, 0, 2, np.inf, np.nan])
    (d,) = back(np.array([np.inf, np.nan, 3.0, np.inf, 5.0, -7.0, 2.0]))
    np.testing.assert_array_equal(d, [0, 0, 0, 0, 5, -7, 2])  # no gradient where the result is 0


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64"])
def test_other_dtypes_stay(backend, dtype):
    x = (draw(3, 4) + (1j * draw(3, 4) if dtype == "complex64" else 0)).astype(dtype)
    w = draw(2, 4).astype(dtype)
    y = iso.linear(x, w)
    assert y.dtype == dtype
    wide = np.complex128 if dtype == "complex64" else np.float64
    size = np.abs(x.astype(wide)) @ np.abs(w.astype(wide)).T
    # four products and three sums, each rounded
    assert (np.abs(y - x.astype(wide) @ w.astype(wide).T) <= 8 * np.finfo(dtype).eps * size).all()


def test_transposed_and_repeated_memory(backend):
    x, g = draw(4, 6), np.broadcast_to(draw(1, 4), (6, 4))
    for func in (iso.relu, gelu, iso.softmax):
        y, back = iso.vjp(func, x.T)
        z, straight = iso.vjp(func, np.ascontiguousarray(x.T))
        np.testing.assert_array_equal(y, z)
        close(back(g)[0], straight(np.array(g))[0], rtol=1e-14, atol=1e-15)


def test_empty_arrays(backend):
    for func, shape in ((iso.relu, (0, 3)), (gelu, (0,)), (iso.softmax, (0, 3))):
        y, back = iso.vjp(func, np.zeros(shape))
        assert y.shape == back(y)[0].shape == shape
    y, back = iso.vjp(lambda x, w: iso.linear(x, w), np.zeros((0, 3)), np.ones((2, 3)))
    np.testing.assert_array_equal(back(y)[1], np.zeros((2, 3)))
    y, back = iso.vjp(attend, np.zeros((2, 3)), np.zeros((0, 3)), np.zeros((0, 4)))
    np.testing.assert_array_equal(y, np.zeros((2, 4)))


def test_constants_cannot_be_overwritten_before_the_way_back(backend):
    x = draw(3, 4)

    def func(w):
        y = iso.linear(x, w)
        x[:] = 0
        return y

    with pytest.raises(ValueError, match="read-only"):
        iso.vjp(func, draw(2, 4))
    x[:] = 1  # afterwards they can be written


def test_memory_begins_with_a_line(backend):
    for shape in ((1 << 15,), (300, 70), (3, 5)):
        x = writing.empty(shape, np.float32)
        assert x.shape == shape
        assert x.dtype == np.float32
        assert x.size < writing.PIECE >> 3 or x.ctypes.data % writing.LINE == 0
        x[...] = 1
        assert x.sum() == x.size


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_comes_later_is_not_seen_by_those_before(backend, bad):
    q, k, v = np.abs(draw(3, 4)) + 0.1, draw(3, 4), draw(3, 2)
    wanted = causal(q, k, v)
    k[2] = bad
    with np.errstate(invalid="ignore"):
        found = causal(q, k, v)
    np.testing.assert_array_equal(found[:2], wanted[:2])
    assert np.isfinite(found[2]).all() == (bad == -np.inf)


def test_layer_norm_of_constant_rows_and_of_large_ones(backend):
    x = np.full((2, 1000), 1000.1, np.float32)
    # half a unit in the last place, over sqrt(epsilon)
    assert np.abs(iso.layer_norm(x)).max() < 0.1
    x = (1e4 + draw(2, 4096)).astype(np.float32)
    wide = x.astype(np.float64)
    wide = wide - wide.mean(-1, keepdims=True)
    wanted = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-5)
    # the mean is accurate to two units in the last place
    assert np.abs(iso.layer_norm(x) - wanted).max() < 2 * np.spacing(np.float32(1e4))


def test_a_wider_weight_widens(backend):
    x = draw(2, 4).astype(np.float32)
    assert iso.layer_norm(x, weight=np.ones(4)).dtype == np.float64
    assert iso.layer_norm(x, bias=np.ones(4)).dtype == np.float64


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gelu_of_all_finite_numbers(backend, dtype):
    top = float(np.finfo(dtype).max)
    x = np.array([-top, -1e20, -5e13, -101.0, 101.0, 5e13, 1e20, top], dtype)
    with np.errstate(all="raise"):
        y, back = iso.vjp(gelu, x)
        (d,) = back(np.ones_like(x))
    np.testing.assert_array_equal(y, np.maximum(x, 0))
    np.testing.assert_array_equal(d, x > 0)
    second = iso.grad(lambda x: np.sum(iso.grad(lambda x: np.sum(gelu(x)))(x)))(x)
    np.testing.assert_array_equal(second, np.zeros(8))


def test_softmax_without_axes_and_without_classes(backend):
    assert iso.softmax(np.array(2.0)) == 1.0
    with pytest.raises(IndexError, match="needed labels from 0 to -1, got 0"):
        iso.cross_entropy(np.zeros((2, 0)), np.zeros(2, np.int64))
