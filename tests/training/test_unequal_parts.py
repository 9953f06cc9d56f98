"""Parts of a batch with unequal counts. The mean is Σ totals / Σ counts in accumulation, epochs and
evaluation, and parts without counted examples have no effect.

The oracle is softmax regression in float64 NumPy, whose gradient is Xᵀ(p − y) over the labels that
count, with optimizers written out.
"""

import json

import numpy as np
import pytest
from frameworks import enable_x64

import isomorph as iso
from isomorph.core.dispatch import load
from isomorph.core.tree import flatten
from oracles import numpy_of
from trainings import lines, quick, same_bits

RNG = np.random.default_rng(3)
X, W = RNG.normal(size=(8, 5)), RNG.normal(size=(5, 3))
LABELS = np.array([0, 2, 1, 1, 0, 2, 2, 0])
NONE = -1
# which of eight labels count, for parts of 8, 4, 2 and 1
LAYOUTS = {
    "all": [1, 1, 1, 1, 1, 1, 1, 1],
    "uneven": [1, 0, 0, 0, 1, 1, 1, 0],
    "first part nothing": [0, 0, 0, 0, 1, 0, 1, 1],
    "last part nothing": [1, 1, 0, 1, 0, 0, 0, 0],
    "one label": [0, 0, 0, 0, 0, 1, 0, 0],
    "nothing": [0, 0, 0, 0, 0, 0, 0, 0],
}


def chosen(layout):
    return np.where(np.array(LAYOUTS[layout], bool), LABELS, NONE)


def entropy(v, x, labels):
    return iso.cross_entropy(
        iso.namespace(x).matmul(x, v["w"]), labels, ignore_index=NONE, reduction="counted"
    )


def entropy_by_hand(w, x, labels):
    """Total, count and gradient of the mean; the gradient is None if nothing counts."""
    counts = labels != NONE
    z = (x @ w)[counts]
    p = np.exp(z - z.max(1, keepdims=True)) if counts.any() else z
    p = p / p.sum(1, keepdims=True)
    rows, at = np.arange(counts.sum()), labels[counts]
    total = -np.log(p[rows, at]).sum()
    p[rows, at] -= 1
    return total, counts.sum(), x[counts].T @ p / max(counts.sum(), 1)


class Momentum:
    pair = staticmethod(lambda: iso.optimizers.sgd(0.1, momentum=0.9))

    def __init__(self):
        self.m = 0.0

    def __call__(self, w, g):
        self.m = 0.9 * self.m + g
        return w - 0.1 * self.m


class AdamW:
    pair = staticmethod(lambda: iso.optimizers.adamw(0.05, weight_decay=0.1))

    def __init__(self):
        self.m, self.s, self.t = 0.0, 0.0, 0

    def __call__(self, w, g):
        self.t += 1
        self.m, self.s = 0.9 * self.m + 0.1 * g, 0.999 * self.s + 0.001 * g * g
        fixed = self.m / (1 - 0.9**self.t), self.s / (1 - 0.999**self.t)
        return w - 0.05 * (fixed[0] / (np.sqrt(fixed[1]) + 1e-8) + 0.1 * w)


def trained_by_hand(optimizer, batches):
    w, losses, move = W, [], optimizer()
    for x, labels in batches:
        total, count, g = entropy_by_hand(w, x, labels)
        losses.append(total / count if count else np.nan)
        w = move(w, g) if count else w
    return w, losses


def trained(backend, optimizer, batches, loss=entropy, v=None, **kw):
    step = iso.train_step(loss, optimizer.pair(), **kw)
    state, losses = step.init({"w": iso.convert(W, backend)} if v is None else v), []
    for batch in batches:
        state, value = step(state, *iso.convert(batch, backend))
        losses.append(value)
    return state, losses


def values(nest):
    return [np.array(numpy_of(x)) for x in flatten(nest)[0]]


# ---- steps ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("accumulate", "guard"), [(1, False), (2, True), (8, False)])
@pytest.mark.parametrize("optimizer", [Momentum, AdamW])
def test_in_parts_or_whole_it_is_one_training(backend, optimizer, accumulate, guard):
    batches = [(X, chosen(layout)) for layout in (*LAYOUTS, "uneven")]
    w, wanted = trained_by_hand(optimizer, batches)
    compiled = backend == "jax"  # eagerly JAX would compile each operation
    state, losses = trained(
        backend, optimizer, batches, accumulate=accumulate, guard=guard, compiled=compiled
    )
    np.testing.assert_allclose([float(x) for x in losses], wanted, rtol=1e-12)
    assert all(len(x.shape) == 0 for x in losses)
    np.testing.assert_allclose(numpy_of(state.model["w"]), w, rtol=1e-11)
    assert np.isnan(wanted[5])
    assert np.isfinite(wanted[6])


@pytest.mark.parametrize("guard", [False, True])
def test_compiled_it_is_the_same_training(backend, guard):
    """One program for all layouts: only at run time is it known which part counts nothing.
    Uncounted inputs may also be NaN.
    """
    batches = [(X, chosen(layout)) for layout in LAYOUTS]
    for layout in LAYOUTS:
        labels = chosen(layout)
        empty = np.repeat((labels.reshape(2, 4) == NONE).all(1), 4)[:, None]
        batches.append((np.where(empty, np.nan, X), labels))
    w, wanted = trained_by_hand(AdamW, batches)
    state, losses = trained(backend, AdamW, batches, accumulate=2, guard=guard)
    np.testing.assert_allclose([float(x) for x in losses], wanted, rtol=1e-12)
    np.testing.assert_allclose(numpy_of(state.model["w"]), w, rtol=1e-11)


@pytest.mark.parametrize("accumulate", [1, 4])
def test_on_a_device_that_nobody_waits_for(backend, accumulate, monkeypatch):
    """Where values are not available, as on a GPU, nothing is compiled and no value is read."""
    monkeypatch.setattr(load(backend), "at_hand", lambda x: None)
    batches = [(X, chosen(layout)) for layout in LAYOUTS]
    w, wanted = trained_by_hand(AdamW, batches)
    state, losses = trained(backend, AdamW, batches, accumulate=accumulate, compiled=False)
    np.testing.assert_allclose([float(x) for x in losses], wanted, rtol=1e-12)
    np.testing.assert_allclose(numpy_of(state.model["w"]), w, rtol=1e-11)


@pytest.mark.parametrize(("accumulate", "bad"), [(2, np.nan), (4, np.inf), (8, np.nan)])
def test_a_part_that_counts_nothing_adds_no_nan(backend, accumulate, bad):
    """Its gradients and its loss are NaN, but have no effect."""
    for layout in ("first part nothing", "last part nothing"):
        labels = chosen(layout)
        parts = (labels.reshape(accumulate, -1) == NONE).all(1)
        x = np.where(np.repeat(parts, 8 // accumulate)[:, None], bad, X)
        assert not np.isfinite(x).all()
        with np.errstate(invalid="ignore"):
            w, wanted = trained_by_hand(Momentum, [(x, labels)])
            state, losses = trained(
                backend, Momentum, [(x, labels)], accumulate=accumulate, compiled=False
            )
        np.testing.assert_allclose(float(losses[0]), wanted[0], rtol=1e-12)
        np.testing.assert_allclose(numpy_of(state.model["w"]), w, rtol=1e-11)


class Net(iso.Module):
    def __init__(self):
        self.first, self.norm, self.drop = iso.Linear(5, 6), iso.BatchNorm(6), iso.Dropout(0.3)
        self.last, self.seen = iso.Linear(6, 3), iso.State(iso.zeros((), dtype="int32"))

    def forward(self, x):
        self.seen.value = self.seen.value + 1
        return self.last(self.drop(iso.silu(self.norm(self.first(x)))))


def net(backend):
    with iso.use_backend(backend), iso.use_key(0):
        return Net()


def net_entropy(model, x, labels):
    return iso.cross_entropy(model(x), labels, ignore_index=NONE, reduction="counted")


@pytest.mark.parametrize(("accumulate", "compiled"), [(1, True), (2, False)])
def test_a_step_that_counts_nothing_changes_nothing(backend, accumulate, compiled):
    """Weights, moments, step number and running statistics stay equal to the last bit; keys
    advance.
    """
    step = iso.train_step(
        net_entropy, iso.optimizers.adamw(0.1), accumulate=accumulate,
        compiled=compiled or backend == "jax",
    )  # fmt: skip
    batch = lambda layout: iso.convert((X.astype("float32"), chosen(layout)), backend)
    state, loss = step(step.init(net(backend)), *batch("uneven"))
    assert np.isfinite(float(loss))
    before = {k: values(x) for k, x in state.arrays.items() if k != "state"}
    kept = {k: values(state.arrays["state"][k]) for k in ("norm", "seen", "drop")}
    state, loss = step(state, *batch("nothing"))
    assert np.isnan(float(loss))
    for name, old in before.items():
        for x, y in zip(values(state.arrays[name]), old, strict=True):
            np.testing.assert_array_equal(x, y)
    for name in ("norm", "seen"):
        for x, y in zip(values(state.arrays["state"][name]), kept[name], strict=True):
            np.testing.assert_array_equal(x, y)
    assert int(numpy_of(state.arrays["state"]["seen"])) == accumulate
    assert np.any(values(state.arrays["state"]["drop"])[0] != kept["drop"][0])
    state, loss = step(state, *batch("uneven"))
    assert np.isfinite(float(loss))
    assert np.any(values(state.arrays["variables"])[0] != before["variables"][0])


def test_an_optimizer_that_writes_does_not_write_then(backend):
    """Adam overwrites its state where the backend can, but not if nothing counts."""
    step = iso.train_step(entropy, iso.optimizers.adam(0.1), compiled=False)
    state, _ = step(step.init({"w": iso.convert(W, backend)}), *iso.convert((X, LABELS), backend))
    held, before = state.arrays["variables"]["w"], values(state.arrays)
    state, _ = step(state, *iso.convert((X, chosen("nothing")), backend))
    for x, y in zip(values(state.arrays), before, strict=True):
        np.testing.assert_array_equal(x, y)
    assert state.arrays["variables"]["w"] is held
    state, _ = step(state, *iso.convert((X, LABELS), backend))
    written = backend in ("numpy", "torch")  # as with a scalar loss, because the count is known
    assert (state.arrays["variables"]["w"] is held) == written


@pytest.mark.parametrize("backend", ["tensorflow"], indirect=True)
@pytest.mark.takes("XLA compiles a step")
def test_a_program_in_parts_keeps_what_counts_nothing_away(backend):
    """With convolutions, TensorFlow compiles only what follows the gradients."""
    with iso.use_backend(backend), iso.use_key(0):
        model = iso.Sequential(iso.Conv2D(1, 2, 3), iso.relu, iso.Flatten(), iso.Linear(8, 3))
    images = RNG.normal(size=(8, 2, 2, 1)).astype("float32")
    both = []
    for compiled in (True, False):
        step = iso.train_step(
            net_entropy, iso.optimizers.adamw(0.1), accumulate=2, compiled=compiled
        )
        state, losses = step.init(model), []
        for layout in LAYOUTS:
            state, loss = step(state, *iso.convert((images, chosen(layout)), backend))
            losses.append(float(loss))
        both.append((losses, values(state.arrays)))
    assert np.isnan(both[0][0]).tolist() == [False] * 5 + [True]
    np.testing.assert_allclose(both[0][0], both[1][0], rtol=1e-5)
    for x, y in zip(both[0][1], both[1][1], strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-4)
    # the number of steps that counted
    assert 5 in [int(x) for x in both[0][1] if x.dtype == np.int32]


def squares(v, x, y):
    return iso.mse(iso.namespace(x).matmul(x, v["w"]), y, reduction="counted")


def test_a_count_that_is_a_number_costs_nothing(backend):
    """With a constant count, equal parts give the same as a scalar loss."""
    batch = (X, RNG.normal(size=(8, 3)))
    scalar = lambda v, x, y: iso.mse(iso.namespace(x).matmul(x, v["w"]), y)
    for accumulate in (1, 4):
        kw = {"accumulate": accumulate, "compiled": False}
        one, losses = trained(backend, AdamW, [batch] * 3, squares, **kw)
        other, wanted = trained(backend, AdamW, [batch] * 3, scalar, **kw)
        np.testing.assert_allclose([*map(float, losses)], [*map(float, wanted)], rtol=1e-12)
        np.testing.assert_allclose(values(one.model)[0], values(other.model)[0], rtol=1e-12)


def test_totals_and_counts_of_ones_own(backend, xp):
    """Sequences of unequal lengths weighted by their steps, with a penalty, an aux, and all kinds
    of counts: the mean is the same in parts and as a whole.
    """
    steps, x = np.array([3, 1, 7, 2]), np.array([1.0, -2.0, 0.5, 3.0])
    kinds = {
        "int": lambda c: xp.sum(c), "float": lambda c: xp.sum(xp.astype(c, xp.float64)),
        "narrow": lambda c: xp.sum(xp.astype(c, xp.float32)),
    }  # fmt: skip
    w = 0.7
    # Σ c (w − x)² / Σ c + w²
    wanted = np.sum(steps * (w - x) ** 2) / 13 + w**2
    slope = np.sum(steps * 2 * (w - x)) / 13 + 2 * w
    for count in kinds.values():

        def loss(v, x, c, count=count):
            each = xp.astype(c, xp.float64) * (v - x) ** 2
            return iso.Mean(xp.sum(each), count(c)) * 1.0 + v**2, xp.max(x)

        for accumulate in (1, 2, 4):
            step = iso.train_step(
                loss, iso.optimizers.sgd(1.0), has_aux=True, accumulate=accumulate, compiled=False
            )
            start = step.init(iso.convert(np.array(w), backend))
            state, (value, aux) = step(start, *iso.convert((x, steps), backend))
            assert float(value) == pytest.approx(wanted, rel=1e-12)
            assert float(numpy_of(state.model)) == pytest.approx(w - slope, rel=1e-12)
            assert float(aux) == max(x[-4 // accumulate :])


def test_a_count_is_a_constant(backend, xp):
    """A count that depends on trained variables divides, but has no derivative."""
    loss = lambda v, x: iso.Mean(xp.sum(v * x), xp.sum(v))
    step = iso.train_step(loss, iso.optimizers.sgd(1.0), accumulate=2, compiled=False)
    v, x = np.array([1.0, 3.0]), np.array([[2.0, 5.0], [1.0, 4.0]])
    state, value = step(step.init(iso.convert(v, backend)), iso.convert(x, backend))
    assert float(value) == pytest.approx((17 + 13) / 8)
    np.testing.assert_allclose(numpy_of(state.model), v - x.sum(0) / 8, rtol=1e-12)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_narrow_totals_do_not_end(backend, accumulate):
    """The sum of 301 losses of 400 overflows float16, and bfloat16 cannot count to 301."""
    narrow = ["float16"] + ["bfloat16"] * (load(backend).narrow("bfloat16") is not None)
    logits = np.zeros((602, 2), np.float32) + np.array([400.0, 0.0], np.float32)
    labels = np.where(np.arange(602) % 2 == 0, NONE, 1)
    loss = lambda v, x, y: iso.cross_entropy(x + v, y, ignore_index=NONE, reduction="counted")
    for compute in narrow:
        step = iso.train_step(
            loss, iso.optimizers.sgd(1.0), compute=compute, accumulate=accumulate, guard=True,
            compiled=backend == "jax",
        )  # fmt: skip
        start = step.init(iso.convert(np.zeros(2, np.float32), backend))
        state, value = step(start, *iso.convert((logits, labels), backend))
        assert float(value) == 400.0
        # softmax of (400, 0) minus the label, the same in every row: (1, -1), summed over 301
        # narrow parts
        np.testing.assert_allclose(numpy_of(state.model), [-1.0, 1.0], rtol=0.03)


def test_what_is_no_mean_is_named(backend, xp):
    x = iso.convert(X, backend)
    run = lambda loss, **kw: trained(backend, Momentum, [(X,)], loss, compiled=False, **kw)
    for loss, words in (
        (lambda v, x: iso.Mean(x[:, 0], 3), r"an array without axes as total of a Mean, got "
         r"one of shape \(8,\)"),
        (lambda v, x: iso.Mean(1.0, 3), "as total of a Mean, got a float"),
        (lambda v, x: iso.Mean(xp.sum(x), x[:, 0]), r"number .*as count of a Mean, got .*\(8,\)"),
        (lambda v, x: iso.Mean(xp.sum(x), None), "as count of a Mean, got a NoneType"),
        (lambda v, x: iso.Mean(xp.sum(x), "3"), "as count of a Mean, got a str"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=f"train_step: needed .*{words}"):
            run(loss)
    mean = iso.Mean(xp.sum(x), 3)
    with pytest.raises(TypeError, match=r"needed .*\(loss, aux\), got a Mean"):
        run(lambda v, x: iso.Mean(xp.sum(x), 3), has_aux=True)
    with pytest.raises(TypeError, match=r"Mean: .*number .*for \+, got a Mean; .*\.value"):
        mean + mean
    with pytest.raises(TypeError, match=r"without axes for \*, got a "):
        mean * x
    with pytest.raises(TypeError, match="evaluate: .*metric m: .*number or an array wi"):
        iso.evaluate(x, x, {"m": lambda v, x: iso.Mean(x[:, 0], 3)}, compiled=False)


# ---- epochs and evaluation -----------------------------------------------------------------------


def stream(backend):
    """Batches of different sizes and counts, one of which counts nothing."""
    cuts = [(0, 1), (1, 4), (4, 6), (6, 8)]
    labels = np.array([0, NONE, 1, NONE, NONE, NONE, 2, 0])
    return [iso.convert((X[i:j], labels[i:j]), backend) for i, j in cuts], labels


STILL = iso.optimizers.sgd(0.0)  # no updates, so training and validation loss are equal


def test_the_loss_of_an_epoch_is_that_of_its_examples(backend):
    """Seven numbers in batches of three: the last one counts once. A scalar loss is weighted by
    rows.
    """
    x = np.array([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [70.0]])
    data = iso.convert(x, backend)
    loss = lambda v, x: iso.namespace(x).mean(x + 0 * v)
    got = iso.fit(
        iso.convert(np.zeros(1), backend), data, loss, STILL, batch_size=3, shuffle=False,
        validation=data, **quick(),
    )  # fmt: skip
    assert got.losses == [2.0, 5.0, 70.0]
    assert got.history[0]["loss"] == pytest.approx(13.0, rel=1e-14)
    assert got.history[0]["validation"]["loss"] == pytest.approx(13.0, rel=1e-14)


@pytest.mark.takes("JAX compiles each operation")
@pytest.mark.parametrize("compiled", [False, True])
def test_the_loss_of_an_epoch_is_that_of_what_counts(backend, compiled):
    batches, labels = stream(backend)
    if backend == "torch":
        compiled = False  # it would take three programs; the tests above compile one of them
    total, count, _ = entropy_by_hand(W, X, labels)
    v = {"w": iso.convert(W, backend)}
    got = iso.fit(v, batches, entropy, STILL, validation=batches, compiled=compiled, progress=False)
    assert count == 4
    assert got.history[0]["loss"] == pytest.approx(total / count, rel=1e-12)
    assert got.history[0]["validation"]["loss"] == pytest.approx(total / count, rel=1e-12)
    assert [np.isnan(x) for x in got.losses] == [False, False, True, False]
    mean = lambda v, x, y: entropy(v, x, y).value
    found = iso.evaluate(v, batches, {"counted": entropy}, compiled=compiled)
    assert found["counted"] == pytest.approx(total / count, rel=1e-12)
    assert np.isnan(iso.evaluate(v, batches, {"mean": mean}, compiled=False)["mean"])


def test_a_batch_that_counts_nothing_does_not_end_a_training(backend, tmp_path):
    """Training goes on as if the batch did not exist, its log record is NaN, and a run resumed in
    the middle ends with the same bits.
    """
    batches, _ = stream(backend)
    v = {"w": iso.convert(W, backend)}
    adam = iso.optimizers.adamw(0.1)
    fit = lambda data, epochs=2, **kw: iso.fit(v, data, entropy, adam, epochs, **quick(), **kw)
    without = fit([b for i, b in enumerate(batches) if i != 2])
    got = fit(batches, log=tmp_path / "log")
    same_bits(got.model, without.model)
    assert [x for x in got.losses if not np.isnan(x)] == without.losses
    assert (got.steps, len(without.losses)) == (8, 6)
    assert [r["loss"] for r in got.history] == [r["loss"] for r in without.history]
    events = [r for r in lines(tmp_path / "log") if r["event"] == "step"]
    assert [r["loss"] for r in events if r["step"] in (3, 7)] == ["nan", "nan"]
    for stop in (2, 3, 7):
        path = tmp_path / f"{stop}"
        fit(batches, steps=stop, checkpoint=path)
        rest = fit(batches, checkpoint=path, resume=True)
        assert rest.history == got.history
        np.testing.assert_array_equal(rest.losses, got.losses)
        same_bits(rest.model, got.model)
    from isomorph.training.reporting import plot_logs

    assert plot_logs([tmp_path / "log"], tmp_path / "log.svg").stat().st_size > 0


def test_an_epoch_without_anything(backend):
    batches = [stream(backend)[0][2]]
    v = {"w": iso.convert(W, backend)}
    got = iso.fit(
        v, batches, entropy, iso.optimizers.adam(0.1), 3, validation=batches, patience=2, **quick()
    )
    assert (got.stopped, got.steps) == ("patience", 2)
    assert np.isnan(got.history[0]["loss"])
    assert np.isnan(got.history[0]["validation"]["loss"])
    np.testing.assert_array_equal(numpy_of(got.model["w"]), W)


@pytest.mark.parametrize("backend", ["jax"], indirect=True)
def test_in_the_narrower_types_that_jax_has_by_itself(backend):

    batches = [(X.astype(np.float32), chosen(layout)) for layout in LAYOUTS]
    w, wanted = trained_by_hand(AdamW, batches)
    with enable_x64(False):
        v = {"w": iso.convert(W.astype(np.float32), backend)}
        for accumulate in (1, 2):
            state, losses = trained(backend, AdamW, batches, v=v, accumulate=accumulate)
            assert {x.dtype.name for x in losses} == {"float32"}
            np.testing.assert_allclose([float(x) for x in losses], wanted, rtol=1e-4)
            np.testing.assert_allclose(numpy_of(state.model["w"]), w, rtol=1e-3, atol=1e-4)


def test_other_trouble_still_ends_it(backend):
    """A loss that is NaN though something counts, and a count that is NaN."""
    (x, labels), *_ = stream(backend)[0]
    v = {"w": iso.convert(W, backend)}
    fit = lambda data, loss: iso.fit(v, data, loss, STILL, **quick())
    with np.errstate(invalid="ignore"):
        with pytest.raises(iso.NonFiniteError, match="at step 1, epoch 1: .* is batch/0"):
            fit([(x * np.nan, labels)], entropy)
        with pytest.raises(iso.NonFiniteError, match="at step 1, epoch 1: .*but the loss is nan"):
            fit([(x, labels)], lambda *a: entropy(*a)._replace(count=entropy(*a).total * np.nan))


def test_a_file_without_the_loss_of_its_epoch_is_refused(backend, tmp_path):
    batches, _ = stream(backend)
    v = {"w": iso.convert(W, backend)}
    fit = lambda **kw: iso.fit(
        v, batches, entropy, STILL, checkpoint=tmp_path / "c", **quick(), **kw
    )
    fit(steps=2)
    parts = iso.load(tmp_path / "c")
    record = json.loads(parts["record"])
    del record["running"]
    iso.save(tmp_path / "c", train=parts["train"], record=json.dumps(record))
    with pytest.raises(iso.CheckpointError, match="needed running in .* of an older version"):
        fit(resume=True)


def test_metrics_that_count_themselves(backend, xp):
    """Five batches of two: the fraction of even numbers among those above 2, which one batch lacks;
    `finish` gets the mean.
    """
    x = np.array([1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 2.0, 1.0, 5.0, 7.0])

    def even(v, x):
        above = x > 2
        total = xp.sum(xp.astype(above & (x % 2 == 0), xp.float32))
        return iso.Mean(total, xp.sum(xp.astype(above, xp.int32)))

    def opposite(v, x):
        return even(v, x)

    opposite.finish = lambda mean: -mean
    metrics = {"even": even, "opposite": opposite, "rows": lambda v, x: xp.sum(x),
               "number": lambda v, x: iso.Mean(xp.sum(x), 2),
               "numbers": lambda v, x: iso.Mean(3, 2)}  # fmt: skip
    for compiled in (False, backend != "torch"):
        got = iso.evaluate(
            iso.convert(np.zeros(1), backend), iso.convert(x, backend), metrics, batch_size=2,
            compiled=compiled,
        )  # fmt: skip
        assert got == {"even": 0.5, "opposite": -0.5, "rows": 7.8, "number": 3.9, "numbers": 1.5}


# ---- what a Mean is ------------------------------------------------------------------------------


def test_a_mean_is_a_nest(backend, xp, tmp_path):
    mean = iso.Mean(xp.asarray(6.0), xp.asarray(4))
    twice = (
        iso.jit(lambda m: m._replace(total=2 * m.total)) if backend != "torch" else lambda m: m * 2
    )
    got = twice(mean)
    assert type(got) is iso.Mean
    assert (float(got.total), int(got.count), float(got.value)) == (12.0, 4, 3.0)
    iso.save(tmp_path / "m", mean)
    back = iso.load(tmp_path / "m", mean)
    assert type(back) is iso.Mean
    assert float(back.value) == 1.5
    moved = iso.to_numpy(mean)
    assert (type(moved), float(moved.value)) == (iso.Mean, 1.5)
    assert (float((mean * 2).value), float((2 * mean).value)) == (3.0, 3.0)
    assert (float((mean + 0.5).value), float((0.5 + mean).value)) == (2.0, 2.0)
    assert float((mean * xp.asarray(2.0) + xp.asarray(1.0)).value) == 4.0
    assert np.isnan(float(iso.Mean(xp.asarray(0.0), 0).value))
    assert np.isnan(float(iso.Mean(xp.asarray(1.0), xp.asarray(0)).value))
    assert np.isnan(iso.Mean(0.0, 0).value)
    assert iso.Mean(3.0, 2).value == 1.5
    slope = iso.grad(lambda x: iso.Mean(x * x, xp.asarray(4)).value)(xp.asarray(6.0))
    assert float(slope) == 3.0
    nothing = iso.grad(lambda x: iso.Mean(x * x, xp.asarray(0)).value)(xp.asarray(6.0))
    assert np.isfinite(float(nothing))
