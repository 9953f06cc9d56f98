"""Training compiles its step once, and not again when the initial state is replaced by a step's
result.
"""

import logging

import numpy as np
import pytest
from frameworks import jax

import isomorph as iso

X, Y = np.arange(24.0, dtype=np.float32).reshape(8, 3) / 24, np.arange(8) % 2


def model_of(backend):
    """A model with running statistics, its own key, and biases of zeros."""
    with iso.use_backend(backend), iso.use_key(0):
        return iso.Sequential(
            iso.Linear(3, 8), iso.BatchNorm(8), iso.Activation("relu"), iso.Dropout(0.5),
            iso.Linear(8, 2),
        )  # fmt: skip


def steps_of(loss, how, backend, batch):
    options = {"accumulate": {"accumulate": 2}, "guard": {"guard": True}}.get(how, {})
    step = iso.train_step(loss, iso.optimizers.adam(1e-2), **options)
    for _ in range(2):  # a new state causes no recompilation
        state = step.init(model_of(backend))
        for _ in range(3):
            state, value = step(state, *batch)
    return value


def compilations(caplog):
    """How often JAX compiled a program with a loss of that name; recompiling need not
    trace again.
    """
    said = [r.getMessage() for r in caplog.records if "Finished XLA compilation" in r.getMessage()]
    return sum("counted_loss" in words for words in said)


@pytest.mark.parametrize("how", ["plain", "accumulate", "guard"])
@pytest.mark.parametrize("place", ["anywhere", "on a device"])
@pytest.mark.parametrize("backend", ["jax"], indirect=True)
def test_jax_compiles_a_step_once(backend, how, place, caplog):
    batch = [iso.convert(x, backend) for x in (X, Y)]
    if place == "on a device":
        batch = [jax.device_put(x, jax.devices()[0]) for x in batch]
    assert {x.committed for x in batch} == {place == "on a device"}

    def counted_loss(model, x, y):
        return iso.cross_entropy(model(x), y)

    with caplog.at_level(logging.WARNING), jax.log_compiles(True):
        value = steps_of(counted_loss, how, backend, batch)
    assert compilations(caplog) == 1
    assert np.isfinite(float(value))


@pytest.mark.takes("torch compiles C++")
@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
def test_a_fit_compiles_its_step_once(backend, tmp_path, caplog):
    """Training resumed from a checkpoint compiles once too."""
    traces = []

    def counted_loss(model, x, y):
        traces.append(1)
        return iso.cross_entropy(model(x), y)

    data = tuple(iso.convert(x, backend) for x in (X, Y))

    def fit(epochs, **kw):
        del traces[:]
        caplog.clear()
        with caplog.at_level(logging.WARNING), jax.log_compiles(True):
            iso.fit(
                model_of(backend), data, counted_loss, iso.optimizers.adam(1e-2), epochs,
                batch_size=4, compiled=True, checkpoint=tmp_path / "c", **kw,
            )  # fmt: skip
        assert len(traces) == 1
        assert compilations(caplog) == (backend == "jax")

    fit(2)
    fit(3, resume=True)
