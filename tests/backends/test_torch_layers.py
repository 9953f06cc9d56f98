"""Layers whose torch kernel covers only part of the definition, and filters in the memory order
that torch's convolutions want: compared with naive sums in NumPy.
"""

import numpy as np
import pytest
from frameworks import torch

import isomorph as iso
from oracles import central_gradient, numpy_of, verbs_of

pytestmark = pytest.mark.parametrize("backend", ["torch"], indirect=True)
RNG = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def same_numbers(monkeypatch):
    """Seed the random numbers, whatever tests ran before."""
    monkeypatch.setitem(globals(), "RNG", np.random.default_rng(4))


def tensor(*shape, dtype=torch.float64):
    return torch.tensor(RNG.standard_normal(shape), dtype=dtype)


def normal(x, w, b, axis, epsilon=1e-5):
    """Batch norm by its formula, with the mean and the unbiased variance of the batch."""
    over = tuple(i for i in range(x.ndim) if i != axis)
    form = [-1 if i == axis else 1 for i in range(x.ndim)]
    mean, centred = x.mean(over), x - x.mean(over, keepdims=True)
    count = x.size // x.shape[axis]
    variance = (centred**2).sum(over) / count
    y = centred / np.sqrt(variance.reshape(form) + epsilon)
    y = y if w is None else y * w.reshape(form)
    y = y if b is None else y + b.reshape(form)
    return y, mean, variance * count / (count - 1)


LAST, FIRST = "channel_last", "channel_first"
LAYOUTS = [
    ((6, 3), LAST), ((5, 4, 3), LAST), ((4, 3, 5), FIRST), ((3, 4, 5, 2), LAST),
    ((3, 2, 4, 5), FIRST), ((2, 3, 2, 3, 4), LAST),
]  # fmt: skip


@pytest.mark.parametrize("parts", ["both", "weight", "bias", "none"])
@pytest.mark.parametrize(("shape", "layout"), LAYOUTS)
def test_batch_norm(backend, shape, layout, parts):
    axis = len(shape) - 1 if layout == LAST else 1
    n = shape[axis]
    x, w = tensor(*shape), tensor(n) if parts in ("both", "weight") else None
    b = tensor(n) if parts in ("both", "bias") else None
    mean, variance = tensor(n), tensor(n) ** 2
    kept = mean.clone(), variance.clone()
    kw = {"data_format": layout, "training": True, "momentum": 0.3}
    found = iso.batch_norm(x, mean, variance, weight=w, bias=b, **kw)
    array = lambda t: None if t is None else t.cpu().numpy()
    y, new_mean, new_variance = normal(x.cpu().numpy(), array(w), array(b), axis)
    np.testing.assert_allclose(numpy_of(found[0]), y, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        numpy_of(found[1]), 0.7 * mean.cpu().numpy() + 0.3 * new_mean, rtol=1e-12
    )
    np.testing.assert_allclose(
        numpy_of(found[2]), 0.7 * variance.cpu().numpy() + 0.3 * new_variance, rtol=1e-12
    )
    assert torch.equal(mean, kept[0])  # the inputs are not written
    assert torch.equal(variance, kept[1])


@pytest.mark.parametrize("parts", ["both", "weight", "bias"])
def test_second_derivatives_of_batch_norm(backend, parts):
    x, w, b, zero = tensor(9, 2), tensor(2), tensor(2), torch.zeros(2, dtype=torch.float64)

    def func(x, *given):
        names = ("weight", "bias") if parts == "both" else (parts,)
        kw = dict(zip(names, given, strict=True))
        return torch.sum(torch.sin(iso.batch_norm(x, zero, zero + 1, training=True, **kw)[0]))

    given = {"both": (w, b), "weight": (w,), "bias": (b,)}[parts]
    iso.check_gradients(func, x, *given, order=2)
    places = tuple(range(1 + len(given)))
    found = iso.hessian(func, argnums=places)(x, *given)
    slope = lambda p: iso.grad(func)(x, *given[:-1], torch.tensor(p)).cpu().numpy().sum()
    want = central_gradient(slope, given[-1].cpu().numpy())
    np.testing.assert_allclose(numpy_of(found[0][-1].sum((0, 1))), want, rtol=1e-6, atol=1e-8)


def test_batch_norm_mapped_over(backend):
    x, zero = tensor(3, 5, 2), torch.zeros(2, dtype=torch.float64)
    func = lambda x: iso.batch_norm(x, zero, zero + 1, training=True)[0]
    rows = torch.stack([func(one) for one in x])
    torch.testing.assert_close(iso.vmap(func)(x), rows, rtol=1e-12, atol=1e-12)


def test_batch_norm_of_mixed_dtypes_and_by_statistics(backend):
    x, one = tensor(8, 2), torch.ones(2, dtype=torch.float64)
    kw = {"weight": one.float(), "training": True}
    assert iso.batch_norm(x, 0 * one, one, **kw)[0].dtype == torch.float64
    grad = iso.grad(lambda m: torch.sum(iso.batch_norm(x, m, one, training=True)[1]))(0 * one)
    np.testing.assert_allclose(numpy_of(grad), 0.9 * np.ones(2))  # the weight of the old mean


@pytest.mark.parametrize("spread", [1e-4, 1e-6])
def test_running_variance_of_small_variances(backend, spread):
    x = tensor(64, 3, dtype=torch.float32) * spread
    zero = torch.zeros(3)
    found = iso.batch_norm(x, zero, zero, training=True, momentum=1.0)[2]
    np.testing.assert_allclose(numpy_of(found), x.double().cpu().numpy().var(0, ddof=1), rtol=1e-5)


def test_batch_norm_of_a_constant_without_epsilon(backend):
    one = torch.ones(2, dtype=torch.float64)
    found = iso.batch_norm(torch.ones(4, 2).double(), 0 * one, one, training=True, epsilon=0.0)
    np.testing.assert_allclose(numpy_of(found[2]), [0.9, 0.9])


def naive(x, w):
    """[batch, height, width, in] with [k, k, in, out], no padding."""
    k = w.shape[0]
    rows, columns = x.shape[1] - k + 1, x.shape[2] - k + 1
    out = np.zeros((x.shape[0], rows, columns, w.shape[3]))
    for i in range(rows):
        for j in range(columns):
            patch = x[:, i : i + k, j : j + k, :]
            out[:, i, j] = np.tensordot(patch, w, ((1, 2, 3), (0, 1, 2)))
    return out


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sizes", [(4, 1), (1, 4), (1, 1), (3, 5), (24, 40)])
@pytest.mark.parametrize("turned", [False, True])
def test_filters_in_any_order_of_memory(backend, sizes, dtype, turned):
    x, w = tensor(2, 5, 6, sizes[0], dtype=dtype), tensor(3, 3, *sizes, dtype=dtype)
    if turned:
        w = verbs_of(iso.namespace(w)).slot(w, False)
    close = lambda a, b: np.testing.assert_allclose(
        numpy_of(a), b, rtol=1e-4, atol=1e-12 if dtype is torch.float64 else 1e-4
    )
    y = iso.conv2d(x, w, 1, 0)
    close(y, naive(x.double().cpu().numpy(), w.double().cpu().numpy()))
    # y is linear in w: the gradient of ⟨g, y⟩ is that of the naive sum of patches
    g = tensor(*y.shape, dtype=dtype)
    found = iso.grad(lambda w: torch.sum(g * iso.conv2d(x, w, 1, 0)))(w)
    want, wide = np.zeros(w.shape), x.double().cpu().numpy()
    for i in range(3):
        for j in range(3):
            part = wide[:, i : i + y.shape[1], j : j + y.shape[2]]
            want[i, j] = np.tensordot(part, g.double().cpu().numpy(), ((0, 1, 2), (0, 1, 2)))
    close(found, want)


def test_transposed_convolution_of_one_channel(backend):
    x, w = tensor(1, 4, 4, 1), tensor(3, 3, 1, 4)
    func = lambda w: torch.sum(torch.sin(iso.conv2d_transpose(x, w, 1, "VALID")))
    want = central_gradient(lambda w: float(func(torch.tensor(w))), w.cpu().numpy())
    np.testing.assert_allclose(numpy_of(iso.grad(func)(w)), want, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("compiled", [False, True])
def test_steps_over_filters_follow_the_formula(backend, compiled):
    """Adam's first step is the sign of the gradient, for any memory order."""
    w = tensor(3, 2, 4, 5)
    target = tensor(3, 2, 4, 5)
    step = iso.train_step(
        lambda v, t: torch.sum((v - t) ** 2), iso.optimizers.adam(0.1), compiled=compiled
    )
    state = step.init(w)
    assert not state.arrays["variables"].is_contiguous()
    state, _ = step(state, target)
    want = w - 0.1 * torch.sign(w - target)
    torch.testing.assert_close(state.model, want, rtol=1e-6, atol=1e-6)
    assert state.model.is_contiguous()
