"""An eager training step overwrites the state it is given, where the backend can."""

import numpy as np
import pytest

import isomorph as iso

RATE, DECAY = 0.1, 0.05
TARGET = np.linspace(-1, 1, 12).reshape(3, 4)
OPTIMIZERS = {
    "Adam": (lambda: iso.optimizers.adam(RATE), 0.0),
    "AdamW": (lambda: iso.optimizers.adamw(RATE, weight_decay=DECAY), DECAY),
}


def loss(v, target):
    return iso.namespace(target).sum((v["w"] - target) ** 2) / 2 + v["b"][0] * 0.5


def by_hand(steps, decay):
    """Adam by Kingma and Ba, for gradients w − target and 1/2, in float64 NumPy."""
    w, b, out = np.zeros((3, 4)), np.ones(2), []
    first, second = [0 * w, 0 * b], [0 * w, 0 * b]
    for t in range(1, steps + 1):
        out.append(np.sum((w - TARGET) ** 2) / 2 + b[0] * 0.5)
        for i, (p, g) in enumerate(((w, w - TARGET), (b, np.array([0.5, 0.0])))):
            first[i] = 0.9 * first[i] + 0.1 * g
            second[i] = 0.999 * second[i] + 0.001 * g * g
            m, v = first[i] / (1 - 0.9**t), second[i] / (1 - 0.999**t)
            p -= RATE * (m / (np.sqrt(v) + 1e-8) + decay * p)
    return {"w": w, "b": b}, out


def trained(backend, optimizer, steps, start=None, **kw):
    v = iso.convert({"w": np.zeros((3, 4)), "b": np.ones(2)}, backend)
    target = iso.convert(TARGET, backend)
    step = iso.train_step(loss, optimizer, compiled=False, **kw)
    state, losses = step.init(start or v), []
    for _ in range(steps):
        state, value = step(state, target)
        losses.append(float(value))
    return state, losses


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_follow_the_formula(backend, name):
    make, decay = OPTIMIZERS[name]
    wanted, values = by_hand(6, decay)
    for guard in (False, True):  # with a guard nothing is overwritten
        state, losses = trained(backend, make(), 6, guard=guard)
        np.testing.assert_allclose(losses, values, rtol=1e-12)
        for key, value in state.model.items():
            np.testing.assert_allclose(iso.to_numpy(value), wanted[key], rtol=1e-12, atol=1e-12)


def test_the_memory_of_the_state_is_used_again(backend):
    written = backend in ("numpy", "torch")
    state, _ = trained(backend, iso.optimizers.adam(RATE), 1)
    before = state.arrays["variables"]["w"]
    step = iso.train_step(loss, iso.optimizers.adam(RATE), compiled=False)
    after, _ = step(state, iso.convert(TARGET, backend))
    assert (after.arrays["variables"]["w"] is before) == written
    if backend == "numpy":  # NumPy has no compiler
        before = after.arrays["variables"]["w"]
        after, _ = iso.train_step(loss, iso.optimizers.adam(RATE))(after, TARGET)
        assert after.arrays["variables"]["w"] is before
    guarded = iso.train_step(loss, iso.optimizers.adam(RATE), compiled=False, guard=True)
    again, _ = guarded(after, iso.convert(TARGET, backend))
    assert again.arrays["variables"]["w"] is not after.arrays["variables"]["w"]


def test_arrays_that_lie_otherwise_are_not_written_over(backend):
    """A transposed parameter: its moments may have another memory order."""
    wanted, _ = by_hand(3, 0.0)
    w = iso.convert(np.zeros((4, 3)), backend)
    xp = iso.namespace(w)
    start = {"w": xp.permute_dims(w, (1, 0)), "b": iso.convert(np.ones(2), backend)}
    state, _ = trained(backend, iso.optimizers.adam(RATE), 3, start)
    for key, value in state.model.items():
        np.testing.assert_allclose(iso.to_numpy(value), wanted[key], rtol=1e-12, atol=1e-12)


def test_many_pieces_are_one_array(backend):
    """More numbers than NumPy's code handles at a time, plus a remainder."""
    x = np.random.default_rng(0).standard_normal(40_001)
    v = {"w": iso.convert(np.zeros(x.size), backend), "b": iso.convert(np.ones(2), backend)}
    step = iso.train_step(loss, iso.optimizers.adam(RATE), compiled=False)
    state = step.init(v)
    for _ in range(2):
        state, _ = step(state, iso.convert(x, backend))
    g1, g2 = -x, 0.1 * np.sign(x) - x  # Adam's first step has the size of its rate
    m, s = (0.09 * g1 + 0.1 * g2) / 0.19, (0.000999 * g1**2 + 0.001 * g2**2) / 0.001999
    wanted = 0.1 * np.sign(x) - RATE * m / np.sqrt(s)
    found = iso.to_numpy(state.model["w"])
    seen = np.abs(x) > 1e-3  # where ε = 1e-8 is below the tolerance
    np.testing.assert_allclose(found[seen], wanted[seen], rtol=1e-4, atol=1e-6)


def test_arrays_of_two_dtypes_and_gradients_in_another_order(backend):
    """The gradient of a sum over a transposed product has the other memory order, and so may
    filters.
    """
    x, k = np.arange(6.0).reshape(2, 3), np.random.default_rng(2).standard_normal((2, 2, 3, 4))
    v = {"w": np.ones((2, 3)), "b": np.ones(2, np.float32), "k": np.ones(k.shape)}
    v, filters = iso.convert((v, k), backend)
    turned = iso.convert(x.T.copy(), backend)

    def total(v):
        xp = iso.namespace(v["w"])
        scaled = xp.sum(xp.permute_dims(v["w"], (1, 0)) * turned)
        return scaled + xp.sum(v["k"] * filters) + xp.astype(xp.sum(v["b"] * 3), xp.float64)

    step = iso.train_step(total, iso.optimizers.adamw(RATE, weight_decay=DECAY), compiled=False)
    state = step.init(v)
    for _ in range(2):
        state, _ = step(state)
    # constant gradients: each step has the size of the rate, against the gradient's sign
    after = lambda p, g: p * (1 - RATE * DECAY) - RATE * g / (np.abs(g) + 1e-8)
    for key, g in (("w", x), ("b", np.full(2, 3.0)), ("k", k)):
        wanted = after(after(np.ones(g.shape), g), g)
        np.testing.assert_allclose(iso.to_numpy(state.model[key]), wanted, rtol=1e-6)
    assert iso.to_numpy(state.model["b"]).dtype == np.float32
