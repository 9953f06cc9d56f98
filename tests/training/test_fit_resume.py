"""Training resumed from its checkpoint ends with the weights of a run that never stopped."""

import json
import os
import random
import signal
import threading
import time

import numpy as np
import pytest
from frameworks import enable_x64

import isomorph as iso
from oracles import numpy_of
from trainings import ADAMW, child, entropy, leaves, lines, network, quick, same_bits, table

# Enough steps that a kill falls among them. Only JAX is faster compiled.
STEPS = {"numpy": 600, "jax": 600, "tensorflow": 90, "torch": 240}

# Run until interrupted, report, resume, and run until killed.
STOPPED = """
import json, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell job ignores it
from pathlib import Path
import isomorph as iso
from trainings import ADAMW, entropy, network, table

backend, folder = sys.argv[1], Path(sys.argv[2])
if backend == "jax":
    import jax
    jax.config.update("jax_enable_x64", True)

handler = signal.getsignal(signal.SIGINT)
fit = lambda: iso.fit(
    network(backend), table(backend, 24), entropy, ADAMW, 1000, steps=int(sys.argv[3]),
    batch_size=8, seed=4, checkpoint=folder / "c", save_every=1, resume=True, log=folder / "log",
    compiled=backend == "jax",
)
got = fit()
restored = signal.getsignal(signal.SIGINT) is handler
print(json.dumps({"stopped": got.stopped, "steps": got.steps, "restored": restored}), flush=True)
fit()
print("it was not killed", flush=True)
"""


def wait_for(process, is_there):
    end = time.monotonic() + 120
    while not is_there():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.005)


def whole(backend, steps, epochs=1000, examples=22, **kw):
    return iso.fit(
        network(backend), table(backend, examples), entropy, ADAMW, epochs, steps=steps,
        batch_size=8, seed=4, **{**quick(), **kw},
    )  # fmt: skip


@pytest.fixture(autouse=True)
def heard():
    """Python's SIGINT handler: a shell that runs tests in the background ignores the signal."""
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


# the file is the same, and so is the code that writes it
def test_interrupted_and_killed_it_ends_as_if_never_stopped(backend, tmp_path):
    """SIGINT, then SIGKILL at a random moment, in a separate process."""
    rng, steps = random.Random(os.getpid()), STEPS[backend]
    process = child(STOPPED, backend, tmp_path, steps)
    try:
        wait_for(process, (tmp_path / "c").exists)
        time.sleep(rng.uniform(0, 0.03))
        process.send_signal(signal.SIGINT)
        said = json.loads(process.stdout.readline())
        assert said["stopped"] == "interrupted"
        assert said["restored"]
        assert 1 <= said["steps"] < steps
        later = f'"event": "step", "step": {said["steps"] + 5},'
        wait_for(process, lambda: later in (tmp_path / "log").read_text())
        time.sleep(rng.uniform(0, 0.05))
    finally:
        process.kill()
    out, shown = process.communicate()
    assert (process.returncode, out) == (-signal.SIGKILL, "")
    assert f"fit: interrupted after step {said['steps']}; saved in " in shown
    text = (tmp_path / "log").read_bytes()
    (tmp_path / "log").write_bytes(text + b'{"event": "st')  # a kill may leave such a line
    fit = lambda **kw: whole(backend, steps, examples=24, compiled=backend == "jax", **kw)
    want = fit()
    got = fit(checkpoint=tmp_path / "c", resume=True, log=tmp_path / "log")
    assert (got.steps, got.stopped) == (steps, "done")
    assert got.losses == want.losses
    assert got.history == want.history
    same_bits(got.model, want.model)
    log = lines(tmp_path / "log")
    events = lambda name: [r for r in log if r["event"] == name]
    assert [r["step"] for r in events("step")] == list(range(1, steps + 1))
    assert [r["loss"] for r in events("step")] == want.losses
    assert [r["epoch"] for r in events("epoch")] == list(range(1, steps // 3 + 1))
    assert len(events("start")) == 1
    assert len(events("resume")) == 2
    assert said["steps"] < events("resume")[1]["step"] < steps


@pytest.mark.takes("JAX compiles each operation")
def test_stopped_anywhere_it_ends_the_same(backend, tmp_path):
    """Stopped in the first epoch, at its end, after it, and within the third."""
    want = whole(backend, 9)
    for stop in (1, 3, 4, 8):
        path = tmp_path / f"{stop}"
        part = whole(backend, stop, checkpoint=path)
        assert part.losses == want.losses[:stop]
        got = whole(backend, 9, checkpoint=path, resume=True)
        assert got.losses == want.losses
        assert got.history == want.history
        same_bits(got.model, want.model)


def test_compiled_it_ends_the_same(backend, tmp_path):
    def fit(steps, **kw):
        with iso.use_backend(backend), iso.use_key(1):
            model = iso.Sequential(iso.Linear(3, 2), iso.Dropout(0.5))
        return iso.fit(
            model, table(backend, 16), entropy, ADAMW, 9, steps=steps, batch_size=8, progress=False,
            **kw,
        )  # fmt: skip

    want = fit(5)
    fit(3, checkpoint=tmp_path / "c")
    got = fit(5, checkpoint=tmp_path / "c", resume=True)
    assert got.losses == want.losses
    same_bits(got.model, want.model)


def test_it_goes_on_on_another_backend(backend, tmp_path):
    """Neither the file nor the order of the data depends on the framework."""
    whole("numpy", 4, checkpoint=tmp_path / "c")
    got = whole(backend, 9, checkpoint=tmp_path / "c", resume=True)
    want = whole("numpy", 9)
    np.testing.assert_allclose(got.losses, want.losses, rtol=1e-4)
    assert got.losses[:4] == want.losses[:4]


def test_a_stream_goes_on_in_the_middle(backend, tmp_path):
    x, y = table(backend)
    batches = [(x[i : i + 5], y[i : i + 5]) for i in range(0, 20, 5)]
    fit = lambda data, epochs, **kw: iso.fit(
        network(backend), data, entropy, ADAMW, epochs, **quick(), **kw
    )
    want = fit(batches, 2)
    fit(iter(batches), 1, steps=3, checkpoint=tmp_path / "c")
    got = fit(batches, 2, checkpoint=tmp_path / "c", resume=True)
    assert got.losses == want.losses
    same_bits(got.model, want.model)
    fit(iter(batches), 1, steps=3, checkpoint=tmp_path / "d")
    with pytest.raises(ValueError, match="needed the 3 batches .* got 2"):
        fit(batches[:2], 2, checkpoint=tmp_path / "d", resume=True)


def test_a_finished_training_returns_at_once(backend, tmp_path):
    def refuse(*batch):
        raise AssertionError("a step ran")

    for steps, epochs in ((5, 9), (None, 2), (6, 2)):
        path = tmp_path / f"{steps}"
        want = whole(backend, steps, epochs, checkpoint=path)
        raw = path.read_bytes()
        got = iso.fit(
            network(backend), table(backend), refuse, ADAMW, epochs, steps=steps, batch_size=8,
            seed=4, checkpoint=path, resume=True, **quick(),
        )  # fmt: skip
        assert (got.losses, got.history, got.stopped) == (want.losses, want.history, "done")
        same_bits(got.model, want.model)
        assert path.read_bytes() == raw
    more = whole(backend, None, 3, checkpoint=tmp_path / "None", resume=True)
    assert more.losses == whole(backend, None, 3).losses


def test_without_a_file_it_begins(backend, tmp_path):
    got = whole(backend, 2, checkpoint=tmp_path / "c", resume=True)
    assert got.losses == whole(backend, 2).losses


def test_a_file_that_is_there_is_not_overwritten(backend, tmp_path):
    whole(backend, 2, checkpoint=tmp_path / "c")
    raw = (tmp_path / "c").read_bytes()
    with pytest.raises(FileExistsError, match="needed a checkpoint .* not exist, got .*c"):
        whole(backend, 2, checkpoint=tmp_path / "c")
    assert (tmp_path / "c").read_bytes() == raw


def test_other_settings_are_refused_by_name(backend, tmp_path):
    data = table(backend)
    usual = {"seed": 4, "batch_size": 8, "steps": 2, "validation": data}
    fit = lambda data=data, **kw: iso.fit(
        network(backend), data, entropy, ADAMW, checkpoint=tmp_path / "c",
        **quick(), **{**usual, **kw},
    )  # fmt: skip
    fit()
    others = {
        "seed": 5, "batch_size": 7, "shuffle": False, "drop_last": True, "accumulate": 2,
        "compute": "float16", "patience": 3,
    }  # fmt: skip
    for name, value in others.items():
        with pytest.raises(ValueError, match=rf"fit: needed the settings of .*: {name} was "):
            fit(resume=True, **{name: value})
    with pytest.raises(ValueError, match="examples was 22, is 20"):
        fit(data=table(backend, 20), resume=True)
    with pytest.raises(iso.CheckpointError, match="optimizer"):
        iso.fit(
            network(backend), data, entropy, iso.optimizers.sgd(0.1), checkpoint=tmp_path / "c",
            resume=True, **usual, **quick(),
        )  # fmt: skip
    iso.save(tmp_path / "model", network(backend))
    with pytest.raises(iso.CheckpointError, match="record: missing"):
        whole(backend, 2, checkpoint=tmp_path / "model", resume=True)
    (tmp_path / "c").write_bytes((tmp_path / "c").read_bytes()[:-1])
    with pytest.raises(iso.CheckpointError, match="cut short"):
        fit(resume=True)


def test_patience_goes_on_where_it_was(backend, xp, tmp_path):
    """Epoch 3 is the best. Stopped after epoch 4, it has waited for one epoch and remembers the
    third.
    """
    loss = lambda v, x: xp.sum(v * x) + xp.sum((1 - x) * xp.abs(v + 3))
    fit = lambda epochs, **kw: iso.fit(
        xp.zeros(1), xp.ones((1, 1)), loss, iso.optimizers.sgd(1.0), epochs, patience=3,
        validation=xp.zeros((1, 1)), checkpoint=tmp_path / "c", **quick(), **kw,
    )  # fmt: skip
    for epochs in (1, 4, 20, 20):  # the last call finds nothing left to do
        got = fit(epochs, resume=True)
        assert numpy_of(got.model).tolist() == [-min(epochs, 3)]
    assert (got.stopped, got.steps) == ("patience", 6)


def test_the_order_of_memory_does_not_matter(backend, tmp_path):
    """The memory order is not saved, so it must not affect the last bits."""
    rng = np.random.default_rng(0)
    w, x = rng.standard_normal((2, 40, 40)).astype(np.float32)
    w, x = iso.convert((w, x), backend)
    weights = iso.namespace(w).matrix_transpose(w)
    loss = lambda v, x: iso.namespace(x).mean((iso.namespace(x).matmul(x, v) - x) ** 2)
    fit = lambda steps, **kw: iso.fit(
        weights, x, loss, ADAMW, 9, steps=steps, batch_size=16,
        **quick(), **kw,
    )  # fmt: skip
    want = fit(6)
    fit(2, checkpoint=tmp_path / "c")
    got = fit(6, checkpoint=tmp_path / "c", resume=True)
    assert got.losses == want.losses
    same_bits(got.model, want.model)


def interrupting(at, step=None):
    """Batches that send a real SIGINT to this process when the `at`th one is read."""
    x, y = step

    def batches():
        for i in range(0, 20, 5):
            seen.append(i)
            if len(seen) == at:
                os.kill(os.getpid(), signal.SIGINT)
            yield x[i : i + 5], y[i : i + 5]

    class Data:
        def __iter__(self):
            return batches()

    seen = []
    return Data()


def test_ctrl_c_ends_it_after_the_step(backend, tmp_path):
    before = signal.getsignal(signal.SIGINT)
    fit = lambda at, **kw: iso.fit(
        network(backend), interrupting(at, table(backend)), entropy, ADAMW, 2, **quick(),
        **kw,
    )  # fmt: skip
    want = fit(0)
    got = fit(6, checkpoint=tmp_path / "c")
    assert (got.stopped, got.steps, len(got.history)) == ("interrupted", 6, 1)
    assert got.losses == want.losses[:6]
    assert signal.getsignal(signal.SIGINT) is before
    rest = fit(0, checkpoint=tmp_path / "c", resume=True)
    assert (rest.losses, rest.history, rest.stopped) == (want.losses, want.history, "done")
    same_bits(rest.model, want.model)
    without = fit(3)
    assert (without.stopped, without.steps) == ("interrupted", 3)


def test_handlers_are_restored_after_an_error_too(backend):
    before = signal.getsignal(signal.SIGINT)

    def broken(model, x, y):
        raise ZeroDivisionError("of the loss")

    with pytest.raises(ZeroDivisionError):
        iso.fit(network(backend), table(backend), broken, ADAMW, **quick())
    assert signal.getsignal(signal.SIGINT) is before


def test_who_ignores_ctrl_c_goes_on_doing_so(backend):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        got = iso.fit(network(backend), interrupting(2, table(backend)), entropy, ADAMW, **quick())
        assert (got.stopped, got.steps) == ("done", 4)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_it_trains_in_a_thread(backend):

    found = []

    def train():
        with enable_x64(True):
            found.append(whole(backend, 4))

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    want = whole(backend, 4)
    assert found[0].losses == want.losses
    assert all(np.isfinite(x).all() for x in leaves(found[0].model))


def test_a_checkpoint_of_a_training_is_told_apart(backend, tmp_path):
    """What the file is, and what wrote it. A training with nothing left to do gives its model."""
    fit = lambda model, optimizer: iso.fit(
        model, table(backend, 24), entropy, optimizer, 2, batch_size=8, checkpoint=tmp_path / "c",
        resume=True, compiled=False, progress=False,
    )  # fmt: skip
    done = fit(network(backend), ADAMW)
    with pytest.raises(iso.CheckpointError, match=r"a checkpoint of iso\.fit: iso\.fit with resum"):
        iso.load(tmp_path / "c", network(backend))
    with pytest.raises(iso.CheckpointError, match="written with another optimizer or schedule"):
        fit(network(backend), iso.optimizers.sgd(0.1, momentum=0.9))
    same_bits(fit(network(backend), ADAMW).model.v, done.model.v)


def test_a_file_of_ones_own_with_a_nest_called_train_is_no_checkpoint_of_fit(backend, xp, tmp_path):
    iso.save(tmp_path / "c", train={"optimizer": xp.asarray([1.0])})
    with pytest.raises(iso.CheckpointError, match="train/other: missing") as raised:
        iso.load(tmp_path / "c", train={"other": xp.asarray([1.0])})
    assert "iso.fit" not in str(raised.value)
    assert "another optimizer" not in str(raised.value)
