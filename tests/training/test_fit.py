"""What `fit` computes: the losses and weights of a hand-written loop, the best epoch, gradient
accumulation, narrow dtypes.
"""

import numpy as np
import pytest

import isomorph as iso
from oracles import kind_of, numpy_of
from trainings import ADAMW, Net, entropy, leaves, network, quick, same_bits, table


def squares(v, x, y):
    xp = iso.namespace(x)
    return xp.mean((xp.matmul(x, v) - y) ** 2)


def lines_of(backend, examples=10):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((examples, 2))
    return x, x @ [2.0, -1.0] + 0.1 * rng.standard_normal(examples)


def test_descent_is_the_closed_form(backend):
    """Linear regression in float64, whose gradient is 2/n Xᵀ(Xw - y)."""
    x, y = lines_of(backend)
    start = iso.convert(np.array([0.5, 0.5]), backend)
    got = iso.fit(
        start, iso.convert((x, y), backend), squares, iso.optimizers.sgd(0.1), 3,
        batch_size=4, shuffle=False, **quick(),
    )  # fmt: skip
    w, losses, epochs = np.array([0.5, 0.5]), [], []
    for _ in range(3):
        for i in (0, 4, 8):
            a, b = x[i : i + 4], y[i : i + 4]
            losses.append(np.mean((a @ w - b) ** 2))
            w = w - 0.1 * 2 / len(b) * a.T @ (a @ w - b)
        epochs.append(np.average(losses[-3:], weights=[4, 4, 2]))  # the last batch is smaller
    np.testing.assert_allclose(got.losses, losses, rtol=1e-12)
    np.testing.assert_allclose(numpy_of(got.model), w, rtol=1e-12)
    assert kind_of(got.model) == backend
    assert (got.steps, got.stopped) == (9, "done")
    assert [(r["epoch"], r["step"]) for r in got.history] == [(1, 3), (2, 6), (3, 9)]
    np.testing.assert_allclose([r["loss"] for r in got.history], epochs, rtol=1e-12)
    assert numpy_of(start).tolist() == [0.5, 0.5]  # the given model is unchanged


def plain(backend, key=3):
    with iso.use_backend(backend), iso.use_key(key):
        return iso.Sequential(iso.Linear(3, 8), iso.Activation("silu"), iso.Linear(8, 2))


def by_hand(backend, model, data, size, epochs):
    """The usual loop: gradients of a function of the variables, then the optimizer."""
    v, state, losses = model.v, None, []
    state = ADAMW.init(v)
    examples = data[0].shape[0]
    for _ in range(epochs):
        for i in range(0, examples, size):
            batch = [part[i : i + size] for part in data]
            objective = lambda v, x, y: iso.cross_entropy(model(x, v=v), y)
            value, grads = iso.value_and_grad(objective)(v, *batch)
            updates, state = ADAMW.update(grads, state, v)
            v = iso.apply_updates(v, updates)
            losses.append(float(value))
    return losses, v


def test_losses_are_those_of_a_loop_written_by_hand(backend):
    data = table(backend)
    losses, v = by_hand(backend, plain(backend), data, 8, 3)
    got = iso.fit(plain(backend), data, entropy, ADAMW, 3, batch_size=8, shuffle=False, **quick())
    # float32 of size 1, summed in another order by a compiler
    np.testing.assert_allclose(got.losses, losses, rtol=1e-5)
    for x, y in zip(leaves(got.model.v), leaves(v)):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)
    if backend != "numpy":
        on_numpy, _ = by_hand("numpy", plain("numpy"), table("numpy"), 8, 3)
        np.testing.assert_allclose(got.losses, on_numpy, rtol=1e-5)


def test_shuffled_with_dropout_it_trains_as_on_the_reference(backend):
    fit = lambda name: iso.fit(
        network(name), table(name), entropy, ADAMW, 4, batch_size=8, seed=2, **quick()
    )
    got, want = fit(backend), fit("numpy")
    # AdamW divides by the root of tiny squares, so rounding errors grow over 12 steps
    np.testing.assert_allclose(got.losses, want.losses, rtol=1e-4)
    assert len(got.losses) == 12
    again = fit(backend)
    assert again.losses == got.losses
    same_bits(again.model, got.model)


def test_compiled_or_not_it_is_the_same_training(backend):
    if backend == "torch":
        with iso.use_backend(backend), iso.use_key(1):
            model = iso.Linear(3, 2)  # a small program, for Inductor
    else:
        model = network(backend)
    fits = [
        iso.fit(
            model, table(backend, 16), entropy, ADAMW, 2, batch_size=8, compiled=compiled,
            progress=False,
        )
        for compiled in (True, False)
    ]  # fmt: skip
    np.testing.assert_allclose(fits[0].losses, fits[1].losses, rtol=1e-5)
    assert fits[0].steps == 4


def test_the_model_given_is_left_as_it_was(backend):
    model = network(backend)
    before, states = leaves(model), [x.tobytes() for x in leaves(model)]
    modes = [model.norm.training, model.drop.training]
    got = iso.fit(model, table(backend), entropy, ADAMW, 1, validation=table(backend), **quick())
    assert [x.tobytes() for x in leaves(model)] == states
    assert [model.norm.training, model.drop.training] == modes == [True, True]
    assert type(got.model) is Net
    assert got.model.norm.training
    assert got.model.drop.training
    moved = [np.abs(x - y).max() for x, y in zip(leaves(got.model), before) if x.dtype.kind == "f"]
    assert min(moved) > 0
    # the returned model is independent: training it again leaves it unchanged
    kept = [x.tobytes() for x in leaves(got.model)]
    iso.fit(got.model, table(backend), entropy, ADAMW, 1, **quick())
    assert [x.tobytes() for x in leaves(got.model)] == kept


def test_patience_returns_the_best_epoch(backend, xp):
    """The variable is -t after t epochs, and the validation loss is |v + 3|. So epoch 3 is the
    best, and with patience 2 training ends after epoch 5.
    """
    training, validating = xp.ones((1, 1)), xp.zeros((1, 1))

    def loss(v, x):  # the data tell training from validation
        return xp.sum(v * x) + xp.sum((1 - x) * xp.abs(v + 3))

    fit = lambda **kw: iso.fit(
        xp.zeros(1), training, loss, iso.optimizers.sgd(1.0), 20, validation=validating,
        **quick(), **kw,
    )  # fmt: skip
    for patience in (1, 2, 4):
        got = fit(patience=patience)
        assert got.stopped == "patience"
        assert got.steps == len(got.history) == 3 + patience
        assert numpy_of(got.model).tolist() == [-3.0]
        found = [r["validation"]["loss"] for r in got.history]
        assert found == [abs(3 - t) for t in range(1, 4 + patience)]
    without = fit()
    assert (without.stopped, numpy_of(without.model).tolist()) == ("done", [-20.0])
    long = fit(patience=18)
    assert (long.stopped, numpy_of(long.model).tolist()) == ("done", [-3.0])


def test_patience_without_any_good_epoch_returns_the_last_model(backend, xp):
    """A validation loss that is always NaN is never the best."""
    loss = lambda v, x: xp.sum(v * x) + xp.sum(xp.where(x > 0, 0 * x, x - xp.nan))
    got = iso.fit(
        xp.zeros(1), xp.ones((1, 1)), loss, iso.optimizers.sgd(1.0), 9, patience=2,
        validation=xp.zeros((1, 1)), **quick(),
    )  # fmt: skip
    assert (got.stopped, got.steps) == ("patience", 2)
    assert numpy_of(got.model).tolist() == [-2.0]
    assert np.isnan(got.history[0]["validation"]["loss"])


def test_steps_end_it_wherever_that_is(backend):
    data = table(backend)  # 3 batches of 8, 8 and 6
    fit = lambda epochs, **kw: iso.fit(
        plain(backend), data, entropy, ADAMW, epochs, batch_size=8, validation=data,
        **quick(), **kw,
    )  # fmt: skip
    long = fit(3)
    for steps in (1, 3, 5, 6, 9, 30):
        got = fit(3, steps=steps)
        done = min(steps, 9)
        assert got.steps == done
        assert got.stopped == "done"
        assert got.losses == long.losses[:done]
        # a record for every epoch, including an incomplete one
        ends = [3, 6, 9][: -(-done // 3)]
        assert [r["step"] for r in got.history] == [min(n, done) for n in ends]
        last = got.history[-1]
        part = got.losses[3 * (len(ends) - 1) :]
        mean = np.average(part, weights=[8, 8, 6][: len(part)])
        np.testing.assert_allclose(last["loss"], mean, rtol=1e-12)
        want = iso.evaluate(got.model, data, {"l": entropy}, compiled=False, batch_size=8)["l"]
        assert last["validation"]["loss"] == want


def test_patience_and_steps_in_the_first_epoch(backend):
    """Reaching `steps` ends an epoch: the returned model is trained."""
    data = table(backend)
    got = iso.fit(
        plain(backend), data, entropy, ADAMW, batch_size=8, validation=data, patience=3, steps=2,
        **quick(),
    )  # fmt: skip
    assert got.steps == 2
    assert np.abs(leaves(got.model)[0] - leaves(plain(backend))[0]).max() > 0.01


def test_accumulated_parts_are_the_whole_batch(backend):
    data = table(backend, 24)
    fit = lambda **kw: iso.fit(
        plain(backend), data, entropy, ADAMW, 2, batch_size=12, **quick(), **kw
    )
    whole, parts = fit(), fit(accumulate=3)
    # a mean of means of equal parts is the mean
    np.testing.assert_allclose(parts.losses, whole.losses, rtol=1e-5)
    for x, y in zip(leaves(parts.model), leaves(whole.model)):
        # Adam divides by the size of a gradient, so rounding of a small one shows in its step
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6)
    with pytest.raises(ValueError, match="fit: .*batches .*5 equal parts"):
        fit(accumulate=5)
    with pytest.raises(ValueError, match="fit: needed accumulate as an int >= 1, got 0"):
        fit(accumulate=0)


def test_narrow_computation_keeps_the_variables(backend):
    data = table(backend)
    fit = lambda compute: iso.fit(
        plain(backend), data, entropy, ADAMW, 2, compute=compute, batch_size=8,
        **quick(),
    )  # fmt: skip
    narrow = "float16" if backend == "numpy" else "bfloat16"
    got, want = fit(narrow), fit(None)
    assert {x.dtype for x in leaves(got.model)} == {np.dtype(np.float32)}
    # bfloat16 has 8 bits: a loss of size 1 is accurate to a few times 2**-8
    np.testing.assert_allclose(got.losses, want.losses, atol=0.02)
    assert got.losses != want.losses
    if backend == "numpy":
        with pytest.raises(ValueError, match="compute dtype .*numpy.*, got 'bfloat"):
            fit("bfloat16")
    with pytest.raises(ValueError, match='fit: needed compute as "bfloat16" or "float16"'):
        fit("float8")


def test_a_mask_of_infinities_is_no_trouble(backend, xp, tmp_path):
    """State may hold infinities; only trained variables must stay finite."""

    class Masked(iso.Module):
        def __init__(self):
            self.w = xp.zeros(2)
            self.mask = iso.State(xp.asarray([0.0, -np.inf]))
            self.kept = xp.asarray([np.inf, 1.0])

        def forward(self, x):
            return xp.sum(iso.softmax(self.w * x + self.mask.value) * x)

    model = Masked()
    model.freeze("kept")
    got = iso.fit(
        model, xp.ones((4, 2)), lambda model, x: model(x[0]) + xp.sum(model.w**2),
        iso.optimizers.sgd(0.1), 2, checkpoint=tmp_path / "c", **quick(),
    )  # fmt: skip
    assert got.steps == 2
    assert numpy_of(got.model.kept).tolist() == [np.inf, 1.0]
