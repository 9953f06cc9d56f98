"""`train_step`: the same numbers as hand-written loops, what it carries along, what it consumes and
what it leaves alone.
"""

import numpy as np
import pytest

import isomorph as iso
from isomorph.core.dispatch import load
from isomorph.core.tree import flatten
from oracles import numpy_of

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(8, 3)), RNG.normal(size=(8, 2))
W, B = RNG.normal(size=(3, 2)), RNG.normal(size=2)
HAS_BFLOAT16 = pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)


def squares(v, x, y):
    xp = iso.namespace(x)
    return xp.mean((x @ v["w"] + v["b"] - y) ** 2)


def squares_and_gradients(w, b):
    """The loss of `squares` and its gradients, by hand in float64."""
    error = X @ w + b - Y
    return np.mean(error**2), 2 / error.size * X.T @ error, 2 / error.size * np.sum(error, axis=0)


def arrays(xp, *values, dtype="float64"):
    return [xp.asarray(np.asarray(v, dtype if np.asarray(v).dtype.kind == "f" else None))
            for v in values]  # fmt: skip


def nest(xp, dtype="float64"):
    w, b = arrays(xp, W, B, dtype=dtype)
    return {"w": w, "b": b}


def run(step, state, batch, steps):
    losses = []
    for _ in range(steps):
        state, loss = step(state, *batch)
        losses.append(float(loss))
    return state, losses


class Net(iso.Module):
    """A network with running statistics and keys."""

    def __init__(self):
        self.first, self.second = iso.Linear(3, 6, key=0), iso.Linear(6, 2, key=1)
        self.norm, self.drop = iso.BatchNorm(6), iso.Dropout(0.3, key=2)

    def forward(self, x):
        return self.second(self.drop(iso.relu(self.norm(self.first(x)))))


class Plain(iso.Module):
    def __init__(self):
        self.first, self.second = iso.Linear(3, 6, key=0), iso.Linear(6, 2, key=1)

    def forward(self, x):
        return self.second(iso.relu(self.first(x)))


def error(model, x, y):
    return iso.mse(model(x), y)


def made(backend, cls):
    with iso.use_backend(backend):
        return cls()


def values(nest):
    return [np.array(numpy_of(x)) for x in flatten(nest)[0]]


# ---- values --------------------------------------------------------------------------------------


def test_momentum_is_that_of_a_loop_by_hand(backend, xp):
    step = iso.train_step(squares, iso.optimizers.sgd(0.1, momentum=0.9))
    state, losses = run(step, step.init(nest(xp)), arrays(xp, X, Y), 4)
    w, b, mw, mb, wanted = W, B, 0.0, 0.0, []
    for _ in range(4):
        loss, gw, gb = squares_and_gradients(w, b)
        wanted.append(loss)
        mw, mb = 0.9 * mw + gw, 0.9 * mb + gb
        w, b = w - 0.1 * mw, b - 0.1 * mb
    np.testing.assert_allclose(losses, wanted, rtol=1e-12)
    np.testing.assert_allclose(numpy_of(state.model["w"]), w, rtol=1e-12)
    np.testing.assert_allclose(numpy_of(state.model["b"]), b, rtol=1e-12)


def test_adamw_is_that_of_a_loop_by_hand(backend, xp):
    step = iso.train_step(squares, iso.optimizers.adamw(0.05, weight_decay=0.1))
    state, losses = run(step, step.init(nest(xp)), arrays(xp, X, Y), 4)
    v, wanted = [W, B], []
    m, s = [0.0, 0.0], [0.0, 0.0]
    for t in range(1, 5):
        loss, *grads = squares_and_gradients(*v)
        wanted.append(loss)
        for i, g in enumerate(grads):
            m[i] = 0.9 * m[i] + 0.1 * g
            s[i] = 0.999 * s[i] + 0.001 * g * g
            move = m[i] / (1 - 0.9**t) / (np.sqrt(s[i] / (1 - 0.999**t)) + 1e-8)
            v[i] = v[i] - 0.05 * (move + 0.1 * v[i])
    np.testing.assert_allclose(losses, wanted, rtol=1e-12)
    np.testing.assert_allclose(numpy_of(state.model["w"]), v[0], rtol=1e-12)
    np.testing.assert_allclose(numpy_of(state.model["b"]), v[1], rtol=1e-12)


def test_statistics_and_keys_go_along(backend, xp):
    model, opt = made(backend, Net), iso.optimizers.sgd(0.1, momentum=0.9)
    batch = arrays(xp, X, Y, dtype="float32")
    step = iso.train_step(error, opt)
    state, losses = run(step, step.init(model), batch, 3)

    def loss(v, kept, x, y):
        out, kept = model.apply(v, kept, x)
        return iso.mse(out, y), kept

    v, kept, moments, wanted = model.v, model.state, opt.init(model.v), []
    for _ in range(3):
        (value, kept), grads = iso.value_and_grad(loss, has_aux=True)(v, kept, *batch)
        updates, moments = opt.update(grads, moments, v)
        v = iso.apply_updates(v, updates)
        wanted.append(float(value))
    np.testing.assert_allclose(losses, wanted, rtol=1e-5)
    after = state.model
    for one, other in zip(values(after.v), values(v)):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    key = lambda kept: np.array(numpy_of(kept["drop"]["key"]))
    np.testing.assert_array_equal(key(after.state), key(kept))
    assert np.any(key(after.state) != key(model.state))
    for one, other in zip(values(after.state["norm"]), values(kept["norm"])):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    assert np.any(numpy_of(after.state["norm"]["variance"]) != 1.0)


def test_running_statistics_of_one_step_by_hand(backend, xp):
    model = made(backend, Net)
    step = iso.train_step(error, iso.optimizers.sgd(0.1), compiled=False)
    state, _ = step(step.init(model), *arrays(xp, X, Y, dtype="float32"))
    hidden = X @ numpy_of(model.first.w).astype(float).T
    kept = state.model.state["norm"]
    np.testing.assert_allclose(numpy_of(kept["mean"]), 0.1 * hidden.mean(0), atol=1e-6)
    spread = 0.9 + 0.1 * hidden.var(0, ddof=1)
    np.testing.assert_allclose(numpy_of(kept["variance"]), spread, rtol=1e-5)


@pytest.mark.parametrize("parts", [2, 4])
def test_parts_of_a_batch_are_the_whole_of_it(backend, xp, parts):
    batch = arrays(xp, X, Y, dtype="float32")
    found = []
    for accumulate in (1, parts):
        step = iso.train_step(
            error, iso.optimizers.sgd(0.1), accumulate=accumulate, compiled=backend == "jax"
        )
        found.append(run(step, step.init(made(backend, Plain)), batch, 3))
    (one, losses), (other, wanted) = found
    np.testing.assert_allclose(losses, wanted, rtol=1e-6)
    for a, b in zip(values(one.model.v), values(other.model.v)):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_state_goes_from_part_to_part(backend, xp):
    class Counting(iso.Module):
        def __init__(self):
            self.w, self.seen = iso.ones((1,)), iso.State(iso.zeros((1,)))

        def forward(self, x):
            self.seen.value = self.seen.value + iso.namespace(x).sum(x)
            return self.w * x

    step = iso.train_step(
        lambda m, x: iso.namespace(x).mean(m(x)), iso.optimizers.sgd(0.0), accumulate=4,
        compiled=False,
    )  # fmt: skip
    (x,) = arrays(xp, np.arange(8.0), dtype="float32")
    state, _ = step(step.init(made(backend, Counting)), x)
    np.testing.assert_array_equal(numpy_of(state.model.state["seen"]), [28.0])


# ---- narrow dtypes -------------------------------------------------------------------------------


@HAS_BFLOAT16
@pytest.mark.takes("XLA compiles a step")
def test_bfloat16_is_for_the_loss_alone(backend, xp):
    batch, seen = arrays(xp, X, Y, dtype="float32"), []

    def spy(model, x, y):
        seen.append((model.first.w.dtype, x.dtype, model.norm.mean.value.dtype))
        return error(model, x, y)

    curves = []
    for compute in (None, "bfloat16"):
        compiled = compute is not None  # other tests compile the full precision
        step = iso.train_step(spy, iso.optimizers.sgd(0.1), compute=compute, compiled=compiled)
        state, losses = run(step, step.init(made(backend, Net)), batch, 5)
        curves.append(losses)
    narrow, wide = load(backend).narrow("bfloat16"), xp.float32
    assert len(set(seen)) == 2
    assert all(seen[0][i] == wide and seen[-1][i] == (narrow, narrow, wide)[i] for i in range(3))
    assert {str(x.dtype) for x in values(state.model.v)} == {"float32"}
    assert {str(x.dtype) for x in values(state.model.state["norm"])} == {"float32"}
    whole, short = np.array(curves)
    assert 0 < np.max(np.abs(whole - short)) < 0.02 * whole[0]  # eight bits: 0.4 % per operation
    rounded = [np.all(x == x.astype(np.float16).astype(np.float32)) for x in values(state.model.v)]
    assert not all(rounded)  # the stored variables keep bits that narrow dtypes lack


def test_float16_on_every_backend(backend, xp):
    step = iso.train_step(squares, iso.optimizers.sgd(0.1), compute="float16", compiled=False)
    state, losses = run(step, step.init(nest(xp, "float32")), arrays(xp, X, Y), 2)
    loss, *_ = squares_and_gradients(W, B)
    np.testing.assert_allclose(losses[0], loss, rtol=5e-3)  # eleven bits, 24 terms
    assert losses[1] < losses[0]
    assert str(values(state.model)[1].dtype) == "float32"


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
def test_a_dtype_that_there_is_not(backend, xp):
    step = iso.train_step(squares, iso.optimizers.sgd(0.1), compute="bfloat16")
    with pytest.raises(ValueError, match="train_step: .*compute dtype .*numpy.*, got "):
        step(step.init(nest(xp)), *arrays(xp, X, Y))


@pytest.mark.parametrize("compute", [None, "float16"])
def test_frozen_variables_stay(backend, xp, compute):
    model = made(backend, Net).freeze("first/w")
    old = np.array(numpy_of(model.first.w))
    opt = iso.optimizers.adamw(0.1, weight_decay=0.5)
    step = iso.train_step(error, opt, compute=compute, compiled=backend == "jax")
    state, losses = run(step, step.init(model), arrays(xp, X, Y, dtype="float32"), 2)
    np.testing.assert_array_equal(numpy_of(state.model.first.w), old)  # equal to the last bit
    assert "w" not in state.model.v["first"]
    assert np.any(numpy_of(state.model.second.w) != numpy_of(model.second.w))
    assert np.isfinite(losses).all()


# ---- guard ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled", [False, True])
def test_a_loss_that_is_not_finite(backend, xp, compiled):
    bad = np.where(X > 1, np.nan, X)
    assert np.isnan(bad).any()
    good, broken = arrays(xp, X, Y), arrays(xp, bad, Y)
    opt = iso.optimizers.adamw(0.1)
    step = iso.train_step(squares, opt, guard=True, compiled=compiled)
    state, _ = step(step.init(nest(xp)), *good)
    before = values(state.arrays)
    state, loss = step(state, *broken)
    assert np.isnan(float(loss))
    for one, other in zip(before, values(state.arrays)):
        np.testing.assert_array_equal(one, other)
    state, loss = step(state, *good)
    assert np.isfinite(float(loss))
    assert not np.array_equal(before[-1], values(state.arrays)[-1])


@pytest.mark.parametrize("compiled", [False, True])
def test_a_guarded_step_draws_new_keys_all_the_same(backend, xp, compiled):
    class Dropped(iso.Module):
        def __init__(self):
            self.linear, self.drop = iso.Linear(3, 2), iso.Dropout(0.5)

        def forward(self, x):
            return self.drop(self.linear(x))

    model = made(backend, Dropped)
    loss = lambda model, x, y: iso.mse(model(x), y)
    compiled = compiled and backend != "torch"  # torch takes long to compile
    step = iso.train_step(loss, iso.optimizers.sgd(0.1), guard=True, compiled=compiled)
    state = step.init(model)
    w, key = values(state.model.v)[-1], values(state.arrays["state"])[0]
    batch = [xp.asarray(np.asarray(a, "float32")) for a in (X, np.ones((len(X), 2)))]
    bad = xp.asarray(np.asarray(X * np.nan, "float32"))
    state, value = step(state, bad, batch[1])
    assert np.isnan(numpy_of(value))
    np.testing.assert_array_equal(values(state.model.v)[-1], w)
    assert not np.array_equal(values(state.arrays["state"])[0], key)


class Counting(iso.Module):
    """Counters of every dtype that a call changes, and a key."""

    KINDS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
             "float32", "float64")  # fmt: skip

    def __init__(self, shapes):
        self.linear, self.key = iso.Linear(3, 2), iso.State(iso.random.key(7))
        self.counts = {
            f"{kind} {shape}": iso.State(iso.zeros(shape, dtype=kind))
            for kind in self.KINDS
            for shape in shapes
        }

    def forward(self, x):
        xp = iso.namespace(x)
        self.key.value = iso.random.split(self.key.value)[0]
        for count in self.counts.values():
            # in int64, because torch cannot add wide unsigned integers
            more = xp.astype(count.value, xp.int64) + 1
            count.value = xp.astype(more, count.value.dtype)
        return self.linear(x)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_guard_takes_no_counter_for_a_key(backend, xp, compiled):
    """State of every dtype stays unchanged after a step that is not finite. Being unsigned does not
    make it a key, nor does having two numbers, unless they are uint32.
    """
    with iso.use_backend(backend), iso.use_key(0):
        model = Counting([(), (2,)])
    del model.counts["uint32 (2,)"]  # it would be taken for a key
    loss = lambda model, x, y: iso.mse(model(x), y)
    step = iso.train_step(loss, iso.optimizers.sgd(0.1), guard=True, compiled=compiled)
    good, bad, y = (xp.asarray(np.asarray(a, "float32")) for a in (X, X * np.nan, Y))
    state, _ = step(step.init(model), good, y)
    counts = lambda: {k: np.array(numpy_of(x)) for k, x in state.arrays["state"]["counts"].items()}
    key = lambda: np.array(numpy_of(state.arrays["state"]["key"]))
    before, keys = counts(), [key()]
    assert len(before) == 21
    assert all(np.all(x == 1) for x in before.values())
    state, value = step(state, bad, y)
    keys.append(key())
    assert np.isnan(float(value))
    for name, x in counts().items():
        np.testing.assert_array_equal(x, before[name], err_msg=name)
        assert x.dtype == before[name].dtype
    state, _ = step(state, good, y)
    keys.append(key())
    for name, x in counts().items():
        assert np.all(x == (1 if "bool" in name else 2)), name
    wanted = [iso.random.key(7)]
    for _ in range(3):
        wanted.append(iso.random.split(wanted[-1])[0])
    np.testing.assert_array_equal(keys, wanted[1:])


def test_a_guard_keeps_plain_numbers(backend, xp):
    """State that is a Python number, without compilation."""

    class Plain(iso.Module):
        def __init__(self):
            self.linear, self.seen = iso.Linear(3, 2), iso.State(0)

        def forward(self, x):
            self.seen.value = self.seen.value + 1
            return self.linear(x)

    step = iso.train_step(error, iso.optimizers.sgd(0.1), guard=True, compiled=False)
    good, bad, y = (xp.asarray(np.asarray(a, "float32")) for a in (X, X * np.nan, Y))
    state = step.init(made(backend, Plain))
    for x in (good, bad, good, bad):
        state, _ = step(state, x, y)
    assert state.arrays["state"]["seen"] == 2


def test_without_a_guard_it_arrives(backend, xp):
    step = iso.train_step(squares, iso.optimizers.sgd(0.1), compiled=False)
    state, _ = step(step.init(nest(xp)), *arrays(xp, X * np.nan, Y))
    assert np.isnan(values(state.model)[0]).all()


# ---- memory --------------------------------------------------------------------------------------


def test_what_is_used_up_and_what_is_not(backend, xp):
    model = nest(xp)
    step = iso.train_step(squares, iso.optimizers.sgd(0.1, momentum=0.9))
    batch = arrays(xp, X, Y)
    first = step.init(model)
    second, _ = step(first, *batch)
    kept = second.model
    seen = values(kept)
    third, _ = step(second, *batch)
    np.testing.assert_array_equal(numpy_of(model["w"]), W)  # the model given to init
    for one, other in zip(values(kept), seen):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(values(third.model)[1], seen[1])
    if backend == "jax":
        with pytest.raises((RuntimeError, ValueError), match="deleted|donated"):
            step(first, *batch)
    elif backend == "torch":  # the same memory throughout
        for a, b in zip(flatten(first.arrays)[0], flatten(third.arrays)[0]):
            assert a.data_ptr() == b.data_ptr()
    elif backend == "tensorflow":  # the same variables
        for a, b in zip(flatten(first.arrays)[0], flatten(third.arrays)[0]):
            assert a is b
    else:
        again, _ = step(first, *batch)
        np.testing.assert_array_equal(values(again.model)[1], seen[1])


def test_a_module_that_init_was_given_is_left_alone(backend, xp):
    model = made(backend, Net)
    before = values([model.v, model.state])
    step = iso.train_step(error, iso.optimizers.sgd(0.1), compiled=backend != "torch")
    state, _ = run(step, step.init(model), arrays(xp, X, Y, dtype="float32"), 2)
    for one, other in zip(values([model.v, model.state]), before):
        np.testing.assert_array_equal(one, other)
    model(*arrays(xp, X, dtype="float32"))  # it can still be called
    held = state.model
    held(*arrays(xp, X, dtype="float32"))  # an independent module with its own state
    key = lambda m: np.array(numpy_of(m.state["drop"]["key"]))
    assert np.any(key(held) != key(state.model))


def test_shared_arrays_stay_shared(backend, xp):
    class Tied(iso.Module):
        def __init__(self):
            self.one, self.other = iso.Linear(2, 2, bias=False, key=0), iso.Linear(2, 2, key=1)
            self.other.w = self.one.w

    model = made(backend, Tied)
    old = np.array(numpy_of(model.one.w))
    loss = lambda m, x: xp.sum(m.one.w * x) + 3 * xp.sum(m.other.w * x)
    step = iso.train_step(loss, iso.optimizers.sgd(0.1), compiled=backend != "torch")
    (x,) = arrays(xp, [[1.0, 2.0], [3.0, 4.0]], dtype="float32")
    state, _ = step(step.init(model), x)
    new = state.model
    assert new.one.w is new.other.w
    np.testing.assert_allclose(numpy_of(new.one.w), old - 0.4 * numpy_of(x), rtol=1e-5, atol=1e-6)


def test_one_program_for_all_models_of_one_form(backend, xp):
    traces = []

    def loss(model, x, y):
        traces.append(1)
        return error(model, x, y)

    step = iso.train_step(loss, iso.optimizers.sgd(0.1))
    batch = arrays(xp, X, Y, dtype="float32")
    for _ in range(2):
        step(step.init(made(backend, Plain)), *batch)
    assert len(traces) == (2 if backend == "numpy" else 1)


# ---- calls ---------------------------------------------------------------------------------------


def test_more_than_a_loss(backend, xp):
    def loss(v, x, y):
        return squares(v, x, y), {"guess": x @ v["w"] + v["b"]}

    step = iso.train_step(loss, iso.optimizers.sgd(0.1), has_aux=True, compiled=backend != "torch")
    state, (value, aux) = step(step.init(nest(xp)), *arrays(xp, X, Y))
    np.testing.assert_allclose(float(value), squares_and_gradients(W, B)[0], rtol=1e-12)
    np.testing.assert_allclose(numpy_of(aux["guess"]), X @ W + B, rtol=1e-12)
    assert len(repr(state)) < 80
    assert "nest" in repr(state)
    with pytest.raises(TypeError, match=r"train_step: needed .*\(loss, aux\)"):
        step = iso.train_step(squares, iso.optimizers.sgd(0.1), has_aux=True, compiled=False)
        step(step.init(nest(xp)), *arrays(xp, X, Y))


def test_what_is_no_loss_and_no_optimizer(backend, xp):
    opt = iso.optimizers.sgd(0.1)
    with pytest.raises(TypeError, match="train_step: needed a function, got float"):
        iso.train_step(0.5, opt)  # type: ignore
    with pytest.raises(TypeError, match="train_step: needed an Optimizer, got a float"):
        iso.train_step(squares, 0.1)  # type: ignore
    with pytest.raises(ValueError, match='train_step: needed compute as "bfloat16" or "float16", '):
        iso.train_step(squares, opt, compute="float8")
    for parts in (0, 2.0, True):
        with pytest.raises(ValueError, match="train_step: needed accumulate as an int >= 1"):
            iso.train_step(squares, opt, accumulate=parts)  # type: ignore
    with pytest.raises(ValueError, match="train_step: .*model with variables.*, go"):
        iso.train_step(squares, opt).init({})
    with pytest.raises(ValueError, match="train_step: .*model with variables.*, go"):
        iso.train_step(squares, opt).init(made(backend, lambda: iso.Dropout(0.5)))
    step = iso.train_step(squares, opt)
    with pytest.raises(TypeError, match="train_step: .*init, got a dict; "):
        step(nest(xp), *arrays(xp, X, Y))  # type: ignore


def test_batches_that_do_not_fit(backend, xp):
    opt = iso.optimizers.sgd(0.1)
    step = iso.train_step(squares, opt, accumulate=3, compiled=False)
    state = step.init(nest(xp))
    with pytest.raises(ValueError, match="train_step: .*batches .*3 equal"):
        step(state, *arrays(xp, X, Y))
    step = iso.train_step(lambda v, x: x @ v["w"], opt, compiled=False)
    with pytest.raises((TypeError, ValueError), match="needed an array without axes as loss"):
        step(state, *arrays(xp, X))
    other = load("numpy" if backend == "jax" else "jax")
    step = iso.train_step(squares, opt)
    with pytest.raises(TypeError, match="arrays of 2 backends in one call"):
        step(step.init(nest(xp)), *(other.asarray(x) for x in (X, Y)))


class Growing(iso.Module):
    """A module whose call adds state."""

    def __init__(self, where):
        self.first, self.where, self.later = iso.Linear(2, 2), where, None
        self.parts, self.named, self.function = [iso.Linear(2, 2)], {}, iso.relu
        self.array = np.zeros(2, np.float32)

    def forward(self, x):
        state = iso.State(0 * x[0])
        if self.where == "attribute":
            self.new = state
        elif self.where == "setting":
            self.later = state
        elif self.where == "list":
            self.parts.append(state)
        elif self.where == "dict":
            self.named["new"] = state
        elif self.where == "function":
            self.function = state
        elif self.where == "array":
            self.array = [state]
        return self.parts[0](self.first(x))


@pytest.mark.parametrize("where", ["attribute", "setting", "list", "dict", "function", "array"])
def test_state_that_a_call_adds_is_refused(backend, where):
    with iso.use_key(0):
        model = iso.convert(Growing(where), backend)
    x = iso.convert(np.ones((3, 2), np.float32), backend)
    step = iso.train_step(lambda m, x: iso.mse(m(x), x), iso.optimizers.sgd(0.1), compiled=False)
    state, _ = step(step.init(model), x)
    with pytest.raises(KeyError, match="Growing, state: needed no keys; unexpected keys"):
        step(state, x)
