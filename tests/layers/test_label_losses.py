"""Cross entropy of integer labels, which has its own pullback, and norms of narrow floats."""

import numpy as np
import pytest

import isomorph as iso
from isomorph.core.dispatch import load
from oracles import compiled, numpy_of

RNG = np.random.default_rng(3)
LOGITS = RNG.normal(0, 3, (4, 300))
LABELS = np.array([0, 255, 17, 129])


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64"])
def test_the_gradient_is_what_is_too_much(backend, xp, dtype):
    labels = xp.asarray(LABELS.astype(dtype))
    value, found = iso.value_and_grad(lambda x: iso.cross_entropy(x, labels))(xp.asarray(LOGITS))
    rows = np.arange(4)
    wanted = softmax(LOGITS)
    np.testing.assert_allclose(float(value), -np.log(wanted[rows, LABELS]).mean(), rtol=1e-12)
    wanted[rows, LABELS] -= 1
    np.testing.assert_allclose(numpy_of(found), wanted / 4, rtol=1e-9, atol=1e-15)


def test_second_derivatives_and_another_axis(backend, xp):
    labels = xp.asarray(np.array([1, 0]))
    x = LOGITS[:2, :3]
    func = lambda x: iso.cross_entropy(x, labels, axis=0, reduction="sum")
    found = numpy_of(iso.hessian(func)(xp.asarray(np.ascontiguousarray(x.T))))
    for i, p in enumerate(softmax(x)):  # for p of one row: diag(p) - p pᵀ, and zero between rows
        np.testing.assert_allclose(found[:, i, :, i], np.diag(p) - np.outer(p, p), atol=1e-12)
        np.testing.assert_array_equal(found[:, i, :, 1 - i], 0.0)


@pytest.mark.parametrize("backend", ["jax"], indirect=True)
def test_no_scatter_on_the_way_back(backend, xp):
    labels = xp.asarray(LABELS)
    pull = iso.grad(lambda x: iso.cross_entropy(x, labels))
    import jax

    text = jax.jit(pull).lower(xp.asarray(LOGITS)).as_text()
    assert "scatter" not in text
    found = numpy_of(compiled(backend, pull)(xp.asarray(LOGITS)))
    np.testing.assert_allclose(found.sum(-1), 0.0, atol=1e-15)


@pytest.mark.parametrize("backend", ["jax", "torch"], indirect=True)
def test_norms_of_narrow_floats_round_once(backend, xp):
    narrow = load(backend).narrow("bfloat16")
    x = xp.astype(xp.asarray(RNG.normal(5, 1, (3, 64))), narrow)
    weight = xp.astype(xp.asarray(RNG.normal(1, 0.1, 64)), narrow)
    wide = [np.asarray(iso.to_numpy(a)).astype(np.float64) for a in (x, weight)]
    centred = wide[0] - wide[0].mean(-1, keepdims=True)
    wanted = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * wide[1]
    found = iso.layer_norm(x, weight=weight)
    assert found.dtype == narrow
    found = np.asarray(iso.to_numpy(found)).astype(np.float64)
    # half a unit in the last place
    np.testing.assert_allclose(found, wanted, rtol=2**-8, atol=1e-6)
    wanted = wide[0] / np.sqrt((wide[0] ** 2).mean(-1, keepdims=True) + 1e-6) * wide[1]
    if backend == "jax":
        found = np.asarray(iso.to_numpy(iso.rms_norm(x, weight=weight))).astype(np.float64)
        np.testing.assert_allclose(found, wanted, rtol=2**-8, atol=1e-6)
