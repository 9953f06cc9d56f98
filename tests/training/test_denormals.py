"""Moments of vanished gradients decay to 0, not to denormal numbers, which are slow."""

import numpy as np
import pytest

import isomorph as iso
from isomorph.core.tree import flatten

ONLY = pytest.mark.parametrize("backend", ["numpy"], indirect=True)
OPTIMIZERS = {
    "adam": lambda: iso.optimizers.adam(1e-2),
    "adamw": lambda: iso.optimizers.adamw(1e-2),
    "adam, scheduled": lambda: iso.optimizers.adam(iso.optimizers.constant(1e-2)),
    "adam, masked": lambda: iso.optimizers.adamw(1e-2, mask=lambda path, x: True),
    "momentum": lambda: iso.optimizers.sgd(1e-2, momentum=0.9),
    "rmsprop": lambda: iso.optimizers.rmsprop(1e-2, decay=0.9, momentum=0.8),
    "lamb": lambda: iso.optimizers.lamb(1e-2),
}


def decayed(optimizer, dtype, steps, look=lambda step, moments: None):
    """Variables after one step with gradients, and many without for all elements but one."""
    step = iso.train_step(lambda w, x: np.sum(w * x), optimizer)
    state = step.init(np.linspace(0.5, 1.5, 40_000, dtype=dtype))
    first = np.linspace(-1.0, 1.0, 40_000, dtype=dtype)
    rest = np.zeros_like(first)
    rest[-1] = 0.25
    for k in range(steps):
        state, _ = step(state, rest if k else first)
        if k > 790:
            look(k, [x for x in flatten(state.arrays["optimizer"])[0] if np.ndim(x)])
    return state.model


@ONLY
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_no_moment_is_denormal(backend, name):
    """At every step: 0.9**t leaves float32's normal range at t = 830."""
    gone = []

    def look(step, moments):
        for moment in moments:
            assert not np.any((moment != 0) & (np.abs(moment) < np.finfo(np.float32).tiny))
        gone[:] = [np.count_nonzero(moment) for moment in moments]

    decayed(OPTIMIZERS[name](), np.float32, 930, look)
    assert min(gone) == 1  # only the element with a gradient


@ONLY
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_results_are_those_of_wider_numbers(backend, name):
    narrow = decayed(OPTIMIZERS[name](), np.float32, 930)
    wide = decayed(OPTIMIZERS[name](), np.float64, 930)
    np.testing.assert_allclose(narrow, wide, rtol=2e-4)
    assert narrow.dtype == np.float32


def by_hand(name, w, gradients):
    """The same steps in float64, written out."""
    m, s = np.zeros_like(w), np.zeros_like(w)
    for t, g in enumerate(gradients, 1):
        if name == "adam":
            m, s = 0.9 * m + 0.1 * g, 0.999 * s + 0.001 * g * g
            w = w - 1e-2 * (m / (1 - 0.9**t)) / (np.sqrt(s / (1 - 0.999**t)) + 1e-8)
        elif name == "momentum":
            m = 0.9 * m + g
            w = w - 1e-2 * m
        else:
            s = 0.9 * s + 0.1 * g * g
            m = 0.8 * m + g / (np.sqrt(s) + 1e-8)
            w = w - 1e-2 * m
    return w


@ONLY
@pytest.mark.parametrize("name", ["adam", "momentum", "rmsprop"])
def test_small_gradients_count(backend, name):
    """Gradients of every size for a hundred steps, then none for a hundred."""
    g = np.logspace(-12, 0, 600)
    gradients = [g if k < 100 else 0 * g for k in range(200)]
    step = iso.train_step(lambda w, x: np.sum(w * x), OPTIMIZERS[name]())
    state = step.init(np.zeros(600, np.float32))
    for each in gradients:
        state, _ = step(state, each.astype(np.float32))
    wanted = by_hand(name, np.zeros(600), gradients)
    np.testing.assert_allclose(state.model, wanted, rtol=2e-5)


@ONLY
@pytest.mark.parametrize("epsilon", [0.0, 1e-30])
def test_what_is_divided_by_and_what_only_has_a_sign_stays(backend, epsilon):
    """With a tiny ε, a flushed second moment would be divided by. Lion uses the sign of a mean."""
    w, g = np.ones(3, np.float32), np.full(3, 1e-18, np.float32)
    adam = lambda: iso.optimizers.adam(1e-2, epsilon=epsilon)
    for optimizer in (adam(), iso.optimizers.lion(1e-2)):
        state = optimizer.init(w)
        for k in range(40):
            updates, state = optimizer.update(g if not k else np.zeros_like(g), state, w)
            assert np.isfinite(updates).all()
            assert (updates < 0).all()
            assert (np.abs(updates) < 0.1).all()
    step = iso.train_step(lambda w, x: np.sum(w * x), adam())
    state = step.init(w)
    for k in range(40):
        state, _ = step(state, g if not k else np.zeros_like(g))
    assert np.isfinite(state.model).all()
    assert (np.abs(state.model - 1) < 0.2).all()


@ONLY
def test_denormal_numbers_of_float16_stay(backend):
    """float16's normal range ends at 6e-5, where gradients are."""
    step = iso.train_step(lambda w, x: np.sum(w * x), OPTIMIZERS["momentum"]())
    state = step.init(np.ones(4, np.float16))
    for _ in range(32):
        state, _ = step(state, np.full(4, 2e-5, np.float16))
    moments = [x for x in flatten(state.arrays["optimizer"])[0] if np.ndim(x)]
    assert np.all(moments[0] > 1e-5)
