"""A training step updates all arrays at once where the backend can. An eager one overwrites the
state it is given; in a program of torch the update is one operator.
"""

import numpy as np
import pytest
from frameworks import ours

import isomorph as iso
from isomorph.core import tree
from isomorph.optimizers.pairs import Optimizer

RATE, DECAY = 0.1, 0.05
TARGET = np.linspace(-1, 1, 12).reshape(3, 4)
OPTIMIZERS = {
    "Adam": (lambda: iso.optimizers.adam(RATE), 0.0),
    "AdamW": (lambda: iso.optimizers.adamw(RATE, weight_decay=DECAY), DECAY),
}


def loss(v, target):
    return iso.namespace(target).sum((v["w"] - target) ** 2) / 2 + v["b"][0] * 0.5


def by_hand(steps, decay, schedule=lambda step: RATE, target=TARGET):
    """Adam by Kingma and Ba, for gradients w − target and 1/2, in float64 NumPy."""
    w, b, out = np.zeros((3, 4)), np.ones(2), []
    first, second = [0 * w, 0 * b], [0 * w, 0 * b]
    for t in range(1, steps + 1):
        out.append(np.sum((w - target) ** 2) / 2 + b[0] * 0.5)
        for i, (p, g) in enumerate(((w, w - target), (b, np.array([0.5, 0.0])))):
            first[i] = 0.9 * first[i] + 0.1 * g
            second[i] = 0.999 * second[i] + 0.001 * g * g
            m, v = first[i] / (1 - 0.9**t), second[i] / (1 - 0.999**t)
            p -= schedule(t - 1) * (m / (np.sqrt(v) + 1e-8) + decay * p)
    return {"w": w, "b": b}, out


def trained(backend, optimizer, steps, start=None, **kw):
    v = iso.convert({"w": np.zeros((3, 4)), "b": np.ones(2)}, backend)
    target = iso.convert(TARGET, backend)
    step = iso.train_step(loss, optimizer, **{"compiled": False, **kw})
    state, losses = step.init(start or v), []
    for _ in range(steps):
        state, value = step(state, target)
        losses.append(float(value))
    return state, losses


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_follow_the_formula(backend, name):
    make, decay = OPTIMIZERS[name]
    wanted, values = by_hand(6, decay)
    for guard in (False, True):
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
    before = after.arrays["variables"]["w"]
    again, _ = guarded(after, iso.convert(TARGET, backend))
    assert (again.arrays["variables"]["w"] is before) == written


def test_a_step_that_is_not_finite_writes_nothing(backend):
    guarded = iso.train_step(loss, iso.optimizers.adam(RATE), compiled=False, guard=True)
    state, _ = trained(backend, iso.optimizers.adam(RATE), 2)
    before = [iso.to_numpy(x).copy() for x in tree.flatten(state.arrays)[0]]
    state, value = guarded(state, iso.convert(TARGET * np.inf, backend))
    assert np.isnan(float(value))
    for x, y in zip(tree.flatten(state.arrays)[0], before, strict=True):
        np.testing.assert_array_equal(iso.to_numpy(x), y)


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


def falling(step):
    """A schedule, of Python numbers or of arrays."""
    return RATE / (1 + step)


ALL_AT_ONCE = {
    "AdamW": (lambda: iso.optimizers.adamw(RATE, weight_decay=DECAY), {}),
    "chain": (
        lambda: iso.chain(
            iso.optimizers.clip_by_global_norm(1e6), iso.optimizers.adamw(RATE, weight_decay=DECAY)
        ),
        {},
    ),
    "guard": (lambda: iso.optimizers.adamw(RATE, weight_decay=DECAY), {"guard": True}),
    "schedule": (lambda: iso.optimizers.adamw(falling, weight_decay=DECAY), {}),
}


@pytest.mark.parametrize("name", ALL_AT_ONCE)
def test_programs_follow_the_formula(backend, name):
    make, options = ALL_AT_ONCE[name]
    wanted, values = by_hand(6, DECAY, *([falling] if name == "schedule" else []))
    for compiled in (False, True):
        state, losses = trained(backend, make(), 6, compiled=compiled, **options)
        np.testing.assert_allclose(losses, values, rtol=1e-12)
        for key, value in state.model.items():
            np.testing.assert_allclose(iso.to_numpy(value), wanted[key], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
@pytest.mark.parametrize("name", ALL_AT_ONCE)
def test_the_update_of_a_program_is_one_operator(backend, name, monkeypatch):
    """Its graph is traced, not compiled."""
    private = ours("torch.private")
    graphs = []

    def looked_at(graph, *rest):
        graphs.append([str(node.target) for node in graph.graph.nodes])
        return graph

    monkeypatch.setattr(private, "inductor_compile", looked_at)
    make, options = ALL_AT_ONCE[name]
    state, losses = trained(backend, make(), 2, compiled=True, **options)
    wanted = by_hand(2, DECAY, *([falling] if name == "schedule" else []))[1]
    np.testing.assert_allclose(losses, wanted, rtol=1e-12)
    # on a GPU the kernel takes a rate that is an array as float32
    composed = name == "schedule" and state.model["w"].device.type != "cpu"
    found = [target for target in graphs[0] if "isomorph" in target]
    assert found == ([] if composed else ["isomorph.adam.default"])
    assert composed or not any("sqrt" in target for target in graphs[0] if name != "chain")


def test_programs_take_arrays_that_lie_otherwise(backend):
    """A transposed parameter, a gradient in the other order, two dtypes."""
    x = np.arange(6.0).reshape(2, 3)
    w = iso.convert(np.ones((3, 2)), backend)
    xp = iso.namespace(w)
    v = {"w": xp.permute_dims(w, (1, 0)), "u": iso.convert(np.ones((2, 3)), backend)}
    v["b"] = iso.convert(np.ones(2, np.float32), backend)
    turned = iso.convert(x.T.copy(), backend)

    def total(v):
        sums = [xp.sum(xp.permute_dims(v[k], (1, 0)) * turned) for k in ("w", "u")]
        return sums[0] + sums[1] + xp.astype(xp.sum(v["b"] * 3), xp.float64)

    step = iso.train_step(total, iso.optimizers.adamw(RATE, weight_decay=DECAY))
    state = step.init(v)
    for _ in range(2):
        state, _ = step(state)
    # constant gradients: each step has the size of the rate, against the gradient's sign
    after = lambda p, g: p * (1 - RATE * DECAY) - RATE * g / (np.abs(g) + 1e-8)
    for key, g in (("w", x), ("u", x), ("b", np.full(2, 3.0))):
        wanted = after(after(np.ones(g.shape), g), g)
        np.testing.assert_allclose(iso.to_numpy(state.model[key]), wanted, rtol=1e-6)


@pytest.mark.parametrize("shown", [False, True], ids=["in a state", "in aux too"])
@pytest.mark.parametrize("compiled", [False, True])
def test_what_refers_to_the_old_parameters_keeps_their_values(backend, compiled, shown):
    """Parameters before the step, in the state of another pair and in aux, are not overwritten.
    What aux shows is kept for that reason alone, so the state is looked at without it as well.
    """

    def remember(grads, state, v):
        xp = iso.namespace(grads["w"])
        return grads, {"old": tree.map(lambda x: xp.asarray(x), v)}

    pair = Optimizer(lambda v: {"old": tree.map(lambda x: x + 0, v)}, remember)
    optimizer = iso.chain(pair, iso.optimizers.adam(RATE))
    both = lambda v, t: (loss(v, t), v["w"])
    step = iso.train_step(both if shown else loss, optimizer, has_aux=shown, compiled=compiled)
    state = step.init(iso.convert({"w": np.zeros((3, 4)), "b": np.ones(2)}, backend))
    target = iso.convert(TARGET, backend)
    before = [np.zeros((3, 4)), by_hand(1, 0.0)[0]["w"], by_hand(2, 0.0)[0]["w"]]
    for wanted in before:
        state, result = step(state, target)
        if shown:
            np.testing.assert_allclose(iso.to_numpy(result[1]), wanted, rtol=1e-12, atol=1e-12)
        found = state.arrays["optimizer"][0]["old"]["w"]
        np.testing.assert_allclose(iso.to_numpy(found), wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        iso.to_numpy(state.model["w"]), by_hand(3, 0.0)[0]["w"], rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("compiled", [False, True])
def test_aux_keeps_the_old_parameters(backend, compiled):
    """Also a view of them, and one in a nest."""
    xp = iso.namespace(iso.convert(TARGET, backend))
    aux = lambda v: {"w": v["w"], "views": [v["w"][1:, :2], xp.reshape(v["w"], (12,))]}
    func = lambda v, t: (loss(v, t), aux(v))
    step = iso.train_step(func, iso.optimizers.adam(RATE), has_aux=True, compiled=compiled)
    state = step.init(iso.convert({"w": np.zeros((3, 4)), "b": np.ones(2)}, backend))
    for i in range(3):
        state, (_, seen) = step(state, iso.convert(TARGET, backend))
        w = by_hand(i, 0.0)[0]["w"]
        for found, wanted in zip((seen["w"], *seen["views"]), (w, w[1:, :2], w.reshape(-1))):
            np.testing.assert_allclose(iso.to_numpy(found), wanted, rtol=1e-12, atol=1e-12)


class Remembering(iso.Module):
    """Its state is its parameter as it was before the last step."""

    def __init__(self):
        self.w, self.before = iso.ones((3,)), iso.State(iso.zeros((3,)))

    def forward(self, target):
        self.before.value = iso.stop_gradient(self.w)  # on NumPy the same memory
        return iso.namespace(target).sum((self.w - target) ** 2)


@pytest.mark.parametrize("compiled", [False, True])
def test_state_keeps_the_old_parameters(backend, compiled):
    step = iso.train_step(lambda m, t: m(t), iso.optimizers.adam(RATE), compiled=compiled)
    with iso.use_backend(backend):
        state, target = step.init(Remembering()), iso.zeros((3,))
    seen = [1.0]
    for _ in range(3):
        state, _ = step(state, target)
        model = state.model
        before = iso.to_numpy(model.before.value)
        np.testing.assert_allclose(before, np.full(3, seen[-1]), rtol=1e-6)
        seen.append(float(model.w[0]))
    assert sorted(set(seen), reverse=True) == seen


@pytest.mark.parametrize("compiled", [False, True])
def test_a_loss_that_is_a_part_of_a_parameter(backend, compiled):
    func = lambda v: v["w"][0, ...]  # on NumPy and torch the same memory
    step = iso.train_step(func, iso.optimizers.adam(RATE), compiled=compiled)
    state = step.init(iso.convert({"w": np.array([5.0, 6.0])}, backend))
    for i in range(3):
        state, value = step(state)
        np.testing.assert_allclose(float(value), 5 - i * RATE, rtol=1e-8)  # ε = 1e-8


@pytest.mark.parametrize("compiled", [False, True])
def test_a_gradient_that_is_another_parameter(backend, compiled):
    """The derivatives of x·a are a and x; this rule returns the parameters themselves."""
    product = iso.custom_vjp(
        lambda x, a: iso.namespace(x).sum(x * a),
        lambda x, a: (iso.namespace(x).sum(x * a), (x, a)),
        lambda saved, upstream: (saved[1], saved[0]),
    )
    optimizer = iso.optimizers.adam(RATE, epsilon=1.0)
    step = iso.train_step(lambda v: product(v["x"], v["a"]), optimizer, compiled=compiled)
    a, x = np.array([1.0, -2.0]), np.array([3.0, 4.0])
    state = step.init(iso.convert({"a": a, "x": x}, backend))
    state, value = step(state)
    np.testing.assert_allclose(float(value), -5.0, rtol=1e-12)
    for key, p, g in (("a", a, x), ("x", x, a)):
        wanted = p - RATE * g / (np.abs(g) + 1.0)
        np.testing.assert_allclose(iso.to_numpy(state.model[key]), wanted, rtol=1e-12)


@pytest.mark.takes("TensorFlow traces and compiles it")
@pytest.mark.parametrize("wrapped", [lambda f: f, iso.jit], ids=["eager", "in jit"])
def test_states_side_by_side(backend, wrapped):
    """Steps inside vmap: each example has its own state, and a program has no operator for that."""
    step = iso.train_step(loss, iso.optimizers.adam(RATE), compiled=False)
    targets = np.stack([TARGET, 2 * TARGET])
    state = step.init(iso.convert({"w": np.zeros((3, 4)), "b": np.ones(2)}, backend))

    def two_steps(target):
        arrays = state
        for _ in range(2):
            arrays, _ = step(arrays, target)
        return arrays.model["w"]

    found = iso.to_numpy(wrapped(iso.vmap(two_steps))(iso.convert(targets, backend)))
    for w, target in zip(found, targets, strict=True):
        wanted = by_hand(2, 0.0, target=target)[0]["w"]
        np.testing.assert_allclose(w, wanted, rtol=1e-10, atol=1e-12)
