"""Whether `compiled="auto"` compiles: by counts and sizes, said in a line, kept in a checkpoint."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import isomorph as iso
from isomorph.core.contract import Price
from isomorph.core.dispatch import load
from isomorph.training.choosing import pays
from oracles import numpy_of
from trainings import ADAMW, entropy, network, same_bits, table

pytestmark = pytest.mark.takes("XLA compiles small programs")
OLD = Path(__file__).parent / "stored/before_there_was_a_choice.safetensors"
CHEAP, DEAR = Price(0.0, 0.0, 1.0, 0.0, 0.0), Price(1e9, 0.0, 1.0, 0.0, 0.0)
COMPILERS = ("jax", "tensorflow", "torch")


def set_price(monkeypatch, backend, price):
    monkeypatch.setattr(load(backend), "price", lambda x: price, raising=False)


class Counted:
    """The loss, with the number of rows at each of its calls."""

    def __init__(self):
        self.rows = []

    def __call__(self, model, x, labels):
        self.rows.append(int(x.shape[0]))
        return entropy(model, x, labels)


def fit(backend, loss, epochs=3, examples=16, **kw):
    kw = {"batch_size": 8, "progress": False} | kw
    return iso.fit(network(backend), table(backend, examples), loss, ADAMW, epochs, **kw)


def test_few_steps_are_not_compiled(backend, capsys):
    loss = Counted()
    done = fit(backend, loss, progress=True)
    line = (
        "fit: 6 steps: running uncompiled, the loss is called at every step; compiled=True compiles"
    )
    assert (line in capsys.readouterr().err) == (backend in ("tensorflow", "torch"))
    if backend == "jax":  # compiling one step takes less time than its first operations
        assert len(loss.rows) < 6
    else:
        assert loss.rows == [8] * 6
        same_bits(done.model, fit(backend, entropy, compiled=False).model)


@pytest.mark.takes("torch compiles C++")
@pytest.mark.parametrize("backend", COMPILERS, indirect=True)
def test_steps_that_pay_are_compiled(backend, capsys, monkeypatch):
    set_price(monkeypatch, backend, CHEAP)
    loss = Counted()
    done = fit(backend, loss, 8, progress=True)
    assert "uncompiled" not in capsys.readouterr().err
    assert len(loss.rows) < 8
    same_bits(done.model, fit(backend, entropy, 8, compiled=True).model)


@pytest.mark.parametrize("backend", ["tensorflow"], indirect=True)
def test_what_is_said_is_done(backend, monkeypatch):
    for price, compiled in ((CHEAP, False), (DEAR, True)):
        set_price(monkeypatch, backend, price)
        loss = Counted()
        fit(backend, loss, compiled=compiled)
        assert (len(loss.rows) < 6) == compiled


def test_the_rule(backend, xp):
    """More steps never compile less; an unknown number of steps is compiled."""
    small = [xp.zeros((4, 4)), {"b": xp.zeros(4)}]
    found = [pays(small, 10**n) for n in range(9)]
    assert found == sorted(found)
    assert found[-1]
    assert found[0] == (backend in ("numpy", "jax"))
    assert pays(small, None)
    assert pays(len, 1, like=xp.zeros(3)) == found[0]  # a function without arrays
    assert pays([], 1)
    assert pays({"text": "no array"}, 1)


@pytest.mark.parametrize("backend", ["tensorflow"], indirect=True)
@pytest.mark.parametrize("first", [CHEAP, DEAR])
def test_a_resumed_training_goes_on_as_it_began(backend, first, monkeypatch, tmp_path):
    other = DEAR if first is CHEAP else CHEAP
    set_price(monkeypatch, backend, first)
    want = fit(backend, entropy)
    fit(backend, entropy, steps=3, checkpoint=tmp_path / "c")
    shutil.copy(tmp_path / "c", tmp_path / "d")
    set_price(monkeypatch, backend, other)
    loss = Counted()
    got = fit(backend, loss, checkpoint=tmp_path / "c", resume=True)
    assert (len(loss.rows) < 3) == (first is CHEAP)
    assert got.losses == want.losses
    same_bits(got.model, want.model)
    loss = Counted()
    given = first is not CHEAP
    fit(backend, loss, checkpoint=tmp_path / "d", resume=True, compiled=given)
    assert (len(loss.rows) < 3) == given


@pytest.mark.parametrize("backend", ["tensorflow"], indirect=True)
def test_another_backend_decides_anew(backend, monkeypatch, tmp_path):
    """By the steps of the whole call, not by those that are left."""
    fit("numpy", entropy, steps=5, checkpoint=tmp_path / "c")
    for once, compiles in ((5.5, True), (6.5, False)):
        set_price(monkeypatch, backend, Price(once, 0.0, 1.0, 0.0, 0.0))
        shutil.copy(tmp_path / "c", tmp_path / f"{once}")
        loss = Counted()
        fit(backend, loss, checkpoint=tmp_path / f"{once}", resume=True)
        assert loss.rows == [8]  # one step, or one trace
        mode = iso.load(tmp_path / f"{once}", record="")["record"]
        assert f'"compiled": {str(compiles).lower()}' in mode


@pytest.mark.parametrize("backend", ["tensorflow", "jax", "numpy"], indirect=True)
def test_a_checkpoint_of_before_is_compiled(backend, monkeypatch, tmp_path):
    """A file that was written when all trainings were compiled."""
    if backend == "tensorflow":
        set_price(monkeypatch, backend, DEAR)
    shutil.copy(OLD, tmp_path / "c")
    loss = Counted()
    done = fit(backend, loss, 8, checkpoint=tmp_path / "c", resume=True)
    assert done.steps == 16
    assert (len(loss.rows) < 13) == (backend != "numpy")
    want = fit(backend, entropy, 8, compiled=True)
    np.testing.assert_allclose(done.losses, want.losses, rtol=1e-4, atol=1e-5)


def over(monkeypatch, limit):
    """More calls than that pay."""
    pay = lambda nest, calls, rows=1, like=None: calls is None or calls > limit
    for module in ("fitting", "choosing"):
        monkeypatch.setattr(f"isomorph.training.{module}.pays", pay)


@pytest.mark.parametrize("backend", ["tensorflow", "jax"], indirect=True)
def test_a_smaller_last_batch(backend, monkeypatch, tmp_path):
    """Twelve steps of a training pay, and its validation, but not four last batches. A training
    that broke off in one of these ends with the same bits.
    """
    over(monkeypatch, 10)
    data, loss = table(backend, 20), Counted()
    want = fit(backend, loss, 4, 20, validation=data)
    assert loss.rows.count(4) == 4 + 4
    assert loss.rows.count(8) < 8
    exact = fit(backend, entropy, 4, 20, validation=data, compiled=False)
    np.testing.assert_allclose(want.losses, exact.losses, rtol=1e-4, atol=1e-5)
    sure = iso.evaluate(want.model, data, {"loss": entropy}, batch_size=8, compiled=False)
    np.testing.assert_allclose(want.history[-1]["validation"]["loss"], sure["loss"], rtol=1e-5)

    def broken(model, x, labels):
        if x.shape[0] == 4:
            tails.append(1)
        if len(tails) == 4:  # that of the second epoch, after the first one and its validation
            raise RuntimeError("broken off")
        return entropy(model, x, labels)

    tails, path = [], tmp_path / "c"
    with pytest.raises(RuntimeError, match="broken off") as error:
        fit(backend, broken, 4, 20, validation=data, checkpoint=path, save_every=2)
    assert not hasattr(error.value, "__notes__")  # that step was not compiled
    got = fit(backend, entropy, 4, 20, validation=data, checkpoint=path, resume=True)
    assert got.losses == want.losses
    same_bits(got.model, want.model)


@pytest.mark.parametrize("backend", ["tensorflow", "jax"], indirect=True)
def test_evaluate_and_predict_decide_by_their_batches(backend, monkeypatch):
    """Three batches, of which the last is smaller."""
    x, labels = table(backend, 20)
    model = network(backend)
    metric = lambda loss, **kw: iso.evaluate(
        model, (x, labels), {"loss": loss}, batch_size=8, **kw
    )["loss"]
    sure = metric(entropy, compiled=False), numpy_of(iso.predict(model, x, 8, compiled=False))
    for limit, rows in ((0, [8, 4]), (2, [8, 4]), (9, [8, 8, 4])):
        over(monkeypatch, limit)
        loss = Counted()
        np.testing.assert_allclose(metric(loss), sure[0], rtol=1e-5)
        assert loss.rows == rows
        found = numpy_of(iso.predict(model, x, 8))
        np.testing.assert_allclose(found, sure[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("backend", ["jax", "tensorflow"], indirect=True)
def test_an_error_in_a_compiled_step_says_how_to_run_it(backend, monkeypatch):
    set_price(monkeypatch, backend, CHEAP)

    def loss(model, x, labels):
        value = entropy(model, x, labels)
        return value * 2 if value > 1 else value

    with pytest.raises(Exception, match="bool") as error:
        fit(backend, loss)
    assert error.value.__notes__[-1] == "fit: compiled=False runs it as it is"
    assert len(fit(backend, loss, compiled=False).losses) == 6


@pytest.mark.parametrize("call", ["fit", "evaluate", "predict"])
def test_a_wrong_choice(call):
    calls = {
        "fit": lambda: fit("numpy", entropy, compiled="yes"),
        "evaluate": lambda: iso.evaluate(network("numpy"), table("numpy"), {}, compiled=1),
        "predict": lambda: iso.predict(network("numpy"), table("numpy")[0], compiled=None),
    }
    with pytest.raises(ValueError, match=rf'{call}: needed compiled as True, False or "auto", got'):
        calls[call]()
