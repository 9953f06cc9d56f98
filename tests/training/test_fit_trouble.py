"""Whatever happens during training, good results are kept and the reason is reported."""

import errno
import os
import warnings

import numpy as np
import pytest

import isomorph as iso
from oracles import numpy_of
from trainings import ADAMW, child, entropy, leaves, lines, network, quick, same_bits, table

SGD = iso.optimizers.sgd(0.1)


def fit(backend, data, loss, v=None, optimizer=SGD, **kw):
    v = iso.convert(np.array([1.0, 2.0], np.float32) if v is None else v, backend)
    return iso.fit(v, data, loss, optimizer, 3, **{**quick(), "shuffle": False, **kw})


def rows(backend, *values):
    return iso.convert(np.array(values, np.float32)[:, None] * np.ones(2, np.float32), backend)


def test_a_bad_example_is_named_and_the_good_file_kept(backend, xp, tmp_path):
    compiled = backend in ("jax", "tensorflow")  # another test uses Inductor
    loss = lambda v, x: xp.sum((v - xp.mean(x, axis=0)) ** 2)
    data = rows(backend, 1, 2, 3, np.nan, 5, 6)
    path = tmp_path / "c"
    good = fit(backend, data[:2], loss, batch_size=1, compiled=compiled)
    want = good.losses[:2]
    saved = []

    class Data:
        def __iter__(self):
            for i in range(6):
                saved.append(path.read_bytes() if path.exists() else b"")
                yield data[i : i + 1]

    with pytest.raises(iso.NonFiniteError) as caught:
        fit(
            backend, Data(), loss, checkpoint=path, save_every=1, log=tmp_path / "log",
            compiled=compiled,
        )  # fmt: skip
    message = str(caught.value)
    assert message.startswith("fit: needed finite numbers, got ")
    assert " at step 4, epoch 1: " in message
    assert "the first array that is not finite is batch/0" in message
    assert f"{path} holds step 3" in message
    assert path.read_bytes() == saved[3]
    assert len(saved) == 4
    got = caught.value.fit
    assert (got.steps, got.stopped, got.losses[:2]) == (3, "not finite", want)
    w = np.array([1.0, 2.0])
    for x in (1, 2, 3):
        w = w - 0.1 * 2 * (w - x)
    np.testing.assert_allclose(numpy_of(got.model), w, rtol=1e-6)
    assert iso.load(path)["train"]["variables"].tolist() == numpy_of(got.model).tolist()
    log = lines(tmp_path / "log")
    assert [r["event"] for r in log] == ["start", "step", "step", "step", "not finite"]


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_a_compiled_step_keeps_the_model_too(backend, xp):
    loss = lambda v, x: xp.sum(xp.sqrt(v * x))
    with pytest.raises(iso.NonFiniteError, match="finite, but gradient is not") as caught:
        fit(backend, rows(backend, 1, 0), loss, batch_size=1, compiled=True)
    assert caught.value.fit.steps == 1
    assert np.isfinite(numpy_of(caught.value.fit.model)).all()


def test_a_gradient_that_is_not_finite_under_a_finite_loss(backend, xp, tmp_path):
    """sqrt at 0 has value 0 and an infinite slope. Variables and file stay unchanged."""
    loss = lambda v, x: xp.sum(xp.sqrt(v["b"] * x)) + xp.sum(v["a"] * x)
    v = {"a": np.ones(2, np.float32), "b": np.ones(2, np.float32)}
    path = tmp_path / "c"
    fit(backend, rows(backend, 1, 0), loss, v, batch_size=1, checkpoint=path, steps=1)
    raw = path.read_bytes()
    with pytest.raises(iso.NonFiniteError) as caught:
        fit(
            backend, rows(backend, 1, 0), loss, v, batch_size=1, checkpoint=path, resume=True,
            save_every=1,
        )  # fmt: skip
    assert "at step 2, epoch 1: batch, variables and loss (0) are finite, but gradient/b is" in str(
        caught.value
    )
    assert path.read_bytes() == raw
    got = caught.value.fit
    assert got.steps == 1
    np.testing.assert_allclose(numpy_of(got.model["a"]), 0.9, rtol=1e-6)
    np.testing.assert_allclose(numpy_of(got.model["b"]), 0.95, rtol=1e-6)


def test_where_it_began_is_said(backend, xp, tmp_path):
    ones = rows(backend, 1, 1)
    with pytest.raises(iso.NonFiniteError, match="at step 1, .* not finite is variables$"):
        fit(backend, ones, lambda v, x: xp.sum(v * x), np.array([1, np.inf], np.float32))
    says = "variables are finite.* loss is -inf.* first gradient .* is gradient"
    with pytest.raises(iso.NonFiniteError, match=says):
        with np.errstate(divide="ignore"):  # NumPy warns too, which is an error here
            fit(backend, ones, lambda v, x: xp.sum(xp.log(v * x)), np.zeros(2, np.float32))
    with np.errstate(over="ignore"):
        for kw in ({}, {"checkpoint": tmp_path / "c"}):
            says = "at step 1, epoch 1: .*finite gradients, variables .*; try a lower learn"
            with pytest.raises(iso.NonFiniteError, match=says):
                fit(
                    backend, ones, lambda v, x: xp.sum(v * x) * 1e30,
                    optimizer=iso.optimizers.sgd(1e20), **kw,
                )  # fmt: skip
        # Adam's squares overflow: the variables stay finite but would never change again
        with pytest.raises(
            iso.NonFiniteError, match="optimizer/.* is not finite; try .*; no check"
        ):
            fit(
                backend, ones, lambda v, x: xp.sum(v * x) * 1e30,
                optimizer=iso.optimizers.adam(1e-3), checkpoint=tmp_path / "c",
            )  # fmt: skip
    assert not (tmp_path / "c").exists()


def test_a_full_disk_is_a_warning(backend, tmp_path, monkeypatch):
    path = tmp_path / "c"
    want = iso.fit(network(backend), table(backend), entropy, ADAMW, 3, **quick())
    iso.fit(network(backend), table(backend), entropy, ADAMW, 1, checkpoint=path, **quick())
    raw = path.read_bytes()

    def full(file, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            got = iso.fit(
                network(backend), table(backend), entropy, ADAMW, 3, checkpoint=path, resume=True,
                **quick(),
            )  # fmt: skip
    assert [str(w.message).partition(" could")[0] for w in told] == [
        f"fit: the checkpoint of step {n}" for n in (2, 3)
    ]
    assert "could not be written, the file holds step 1, the training continues; " in str(
        told[0].message
    )
    assert "No space left on device" in str(told[0].message)
    assert {w.category for w in told} == {RuntimeWarning}
    assert path.read_bytes() == raw
    assert os.listdir(tmp_path) == ["c"]
    same_bits(got.model, want.model)
    again = iso.fit(
        network(backend), table(backend), entropy, ADAMW, 3, checkpoint=path, resume=True, **quick()
    )
    assert again.losses == want.losses


LIMITED = """
import resource, sys, warnings
import numpy as np
import isomorph as iso
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
warnings.simplefilter("always")
fit = iso.fit(
    np.zeros(1000), np.ones((50, 1)), lambda v, x: np.mean((v - x) ** 2), iso.optimizers.sgd(0.1),
    2, batch_size=1, checkpoint=sys.argv[1] + "/c", log=sys.argv[1] + "/log", progress=False,
)
print(fit.steps)
"""


# a real error of the operating system
@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
def test_files_the_system_cuts_off_do_not_end_a_training(backend, tmp_path):
    process = child(LIMITED, tmp_path)
    out, shown = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "100\n"), shown
    assert "the checkpoint of step 50 could not be written, there is no file" in shown
    assert "log could not be written at step " in shown
    assert "the training continues: " in shown
    assert not (tmp_path / "c").exists()
    from isomorph.training.reporting import read_log

    steps = [r["step"] for r in read_log(tmp_path / "log") if r["event"] == "step"]
    assert steps == list(range(1, len(steps) + 1))
    assert 10 < len(steps) < 100


def test_wrong_calls_say_what_was_needed(backend, xp, tmp_path):
    x = rows(backend, 1, 2)
    loss = lambda v, x: xp.sum(v * x)
    for kw, words in (
        ({"batch_size": 0}, "fit: needed batch_size as an int >= 1, got 0"),
        ({"batch_size": 2.0}, "needed batch_size as an int >= 1, got 2.0"),
        ({"steps": 0}, "needed steps as an int >= 1, got 0"),
        ({"patience": 0}, "needed patience as an int >= 1, got 0"),
        ({"patience": 1}, "needed validation= for patience, got none"),
        ({"save_every": 2}, "needed checkpoint=, a file, for save_every and resume, got none"),
        ({"resume": True}, "needed checkpoint=, a file, for save_every and resume, got none"),
        ({"seed": "a"}, "needed seed as an int of 64 bits, got 'a'"),
        ({"seed": np.int64(3)}, "needed seed as an int of 64 bits, got"),
    ):
        with pytest.raises(ValueError, match=words):
            fit(backend, x, loss, **kw)
    with pytest.raises(FileNotFoundError, match="fit: .*existing folder .*checkpoint, got .*no"):
        fit(backend, x, loss, checkpoint=tmp_path / "no" / "c")
    with pytest.raises(FileNotFoundError, match="fit: needed a folder for the log, got .*no"):
        fit(backend, x, loss, log=tmp_path / "no" / "log")
    with pytest.raises(ValueError, match="fit: needed epochs as an int >= 1, got 0"):
        iso.fit(x, x, loss, SGD, 0)
    with pytest.raises(TypeError, match="fit: needed an Optimizer, got a float"):
        iso.fit(x, x, loss, 0.1)
    with pytest.raises(TypeError, match="fit: needed a function, got NoneType"):
        iso.fit(x, x, None, SGD)


def test_wrong_models_and_losses_say_what_was_needed(backend, xp):
    x = rows(backend, 1, 2)
    loss = lambda v, x: xp.sum(x)
    for model in (iso.Activation("relu"), {}, None):
        with pytest.raises(ValueError, match="fit: .*model with variables.*, got no"):
            iso.fit(model, x, loss, SGD, **quick())
    with pytest.raises(TypeError, match="fit: .*module or .*floating-point arrays"):
        iso.fit({"a": xp.ones(2), "b": "text"}, x, loss, SGD, **quick())
    with pytest.raises(TypeError, match="got .*int32 of .* at b"):
        iso.fit({"a": xp.ones(2), "b": xp.ones(2, dtype=xp.int32)}, x, loss, SGD, **quick())
    for bad, words in (
        (lambda v, x: v * x, r"got one of shape \(2, 2\); return its mean"),
        (lambda v, x: 1.0, "got a float"),
        (lambda v, x: None, "got a NoneType"),
        (lambda v, x: (xp.sum(v), 1), "got a tuple"),
    ):
        with pytest.raises(TypeError, match=f"fit: .*loss, {words}"):
            fit(backend, x, bad)


def test_an_error_of_the_data_is_theirs_and_the_file_good(backend, tmp_path):
    x, y = table(backend)

    def batches():
        yield x[:5], y[:5]
        yield x[5:10], y[5:10]
        raise OSError("the network is down")

    with pytest.raises(OSError, match="the network is down"):
        iso.fit(
            network(backend), batches(), entropy, ADAMW, checkpoint=tmp_path / "c", save_every=1,
            **quick(),
        )  # fmt: skip
    want = iso.fit(
        network(backend), [(x[:5], y[:5]), (x[5:10], y[5:10])], entropy, ADAMW, **quick()
    )
    got = iso.load(tmp_path / "c")["train"]["variables"]
    for a, b in zip(leaves(got), leaves(want.model.v)):
        assert a.tobytes() == b.tobytes()
