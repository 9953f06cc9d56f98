"""A training compiles its step once: not again when its state has become that of a step."""

import logging

import numpy as np
import pytest

import isomorph as iso

X, Y = np.arange(24.0, dtype=np.float32).reshape(8, 3) / 24, np.arange(8) % 2


def model_of(backend):
    """With running statistics, a key of its own, and biases that are made of zeros."""
    with iso.use_backend(backend), iso.use_key(0):
        return iso.Sequential(
            iso.Linear(3, 8), iso.BatchNorm(8), iso.Activation("relu"), iso.Dropout(0.5),
            iso.Linear(8, 2),
        )  # fmt: skip


def steps_of(loss, how, backend, batch):
    options = {"accumulate": {"accumulate": 2}, "guard": {"guard": True}}.get(how, {})
    step = iso.train_step(loss, iso.optimizers.adam(1e-2), **options)
    for _ in range(2):  # a second state is no second program
        state = step.init(model_of(backend))
        for _ in range(3):
            state, value = step(state, *batch)
    return value


@pytest.mark.parametrize("how", ["plain", "accumulate", "guard"])
@pytest.mark.parametrize("place", ["anywhere", "on a device"])
@pytest.mark.parametrize("backend", ["jax"], indirect=True)
def test_jax_compiles_a_step_once(backend, how, place, caplog):
    import jax

    batch = [iso.convert(x, backend) for x in (X, Y)]
    if place == "on a device":
        batch = [jax.device_put(x, jax.devices()[0]) for x in batch]
    assert {x.committed for x in batch} == {place == "on a device"}

    def counted_loss(model, x, y):
        return iso.cross_entropy(model(x), y)

    with caplog.at_level(logging.WARNING), jax.log_compiles(True):
        value = steps_of(counted_loss, how, backend, batch)
    said = [r.getMessage() for r in caplog.records if "Finished XLA compilation" in r.getMessage()]
    assert sum("counted_loss" in words for words in said) == 1
    assert np.isfinite(float(value))


@pytest.mark.parametrize("backend", ["jax", "tensorflow"], indirect=True)
def test_a_fit_traces_its_step_once(backend):
    traces = []

    def loss(model, x, y):
        traces.append(1)
        return iso.cross_entropy(model(x), y)

    data = tuple(iso.convert(x, backend) for x in (X, Y))
    iso.fit(model_of(backend), data, loss, iso.optimizers.adam(1e-2), epochs=3, batch_size=4)
    assert len(traces) == 1
