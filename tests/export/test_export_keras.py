"""A module as a `keras.Layer`, on TensorFlow."""

import os
import subprocess
import sys

import numpy as np
import pytest
from frameworks import NOT_INSTALLED, keras, tf
from modules.perceptron import RATE, Plain

import isomorph as iso
from export.training import ADAM, STEPS, T32, X32, Counting, Tied, check, made


def exported(backend, build, *args, **kw):
    return iso.export.to_keras(made(backend, build, *args, **kw))


@pytest.mark.parametrize("kind", ["sgd", "adam"])
def test_fit_trains_it(backend, kind):
    model = made(backend, Plain)
    layer = iso.export.to_keras(model)
    net = keras.Sequential([keras.Input((3,)), layer])
    optimizer = (
        keras.optimizers.SGD(RATE)
        if kind == "sgd"
        else keras.optimizers.Adam(ADAM["rate"], epsilon=ADAM["epsilon"])
    )
    net.compile(optimizer, "mse")
    # full batches, so that the loss of an epoch is the loss before its step
    history = net.fit(X32, T32, batch_size=5, epochs=STEPS, shuffle=False, verbose=0)
    check(kind, history.history["loss"])
    back = layer.to_isomorph()
    np.testing.assert_allclose(back(tf.constant(X32)), layer(X32), rtol=1e-6)
    source = iso.to_numpy(model.v)["linear0"]["w"]
    np.testing.assert_array_equal(source, iso.to_numpy(made(backend, Plain).v)["linear0"]["w"])
    assert not np.array_equal(source, iso.to_numpy(back.v)["linear0"]["w"])


def test_a_tape_trains_it(backend):
    layer = exported(backend, Plain)
    assert len(layer.trainable_variables) == 6
    losses = []
    for _ in range(STEPS):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((layer(tf.constant(X32), training=True) - T32) ** 2)
        gradients = tape.gradient(loss, layer.trainable_variables)
        for weight, gradient in zip(layer.trainable_variables, gradients):
            weight.assign_sub(RATE * gradient)
        losses.append(float(loss))
    check("sgd", losses)


def test_weights_are_registered_with_their_names(backend):
    build = lambda: iso.Sequential(iso.Linear(3, 2, key=0).freeze("w"), iso.BatchNorm(2))
    layer = iso.export.to_keras(made(backend, build), name="net")
    assert [w.path for w in layer.trainable_weights] == [
        "net/layers.0.b", "net/layers.1.b", "net/layers.1.w",
    ]  # fmt: skip
    assert [w.path for w in layer.non_trainable_weights] == [
        "net/layers.0.w", "net/layers.1.mean", "net/layers.1.variance",
    ]  # fmt: skip
    shared = exported(backend, Tied)
    assert [w.name for w in shared.trainable_weights] == ["first.b", "first.w", "tied.b"]


IMAGES = lambda: iso.Sequential(
    iso.Conv2D(2, 4, 3, key=0), iso.BatchNorm(4), iso.relu, iso.MaxPool(2), iso.Flatten(),
    iso.Linear(16, 1, key=1),
)  # fmt: skip


def test_batches_of_unknown_size(backend):
    inputs = keras.Input((4, 4, 2))
    outputs = exported(backend, IMAGES)(inputs)
    assert tuple(outputs.shape) == (None, 1)
    net = keras.Model(inputs, outputs)
    x = np.random.default_rng(0).standard_normal((5, 4, 4, 2), np.float32)
    source = made("numpy", IMAGES).eval()
    for n in (5, 2):
        expected = source(x[:n])
        np.testing.assert_allclose(net.predict(x[:n], verbose=0), expected, rtol=1e-4, atol=1e-5)


LAYERS = {
    "group_norm": (lambda: iso.GroupNorm(4, 2), (3, 4)),
    "layer_norm": (lambda: iso.LayerNorm(4), (3, 4)),
    "attention": (lambda: iso.MultiHeadAttention(4, 2, key=0), (3, 4)),
    "lstm": (lambda: iso.LSTM(4, 3, key=0), (3, 4)),
    "gru": (lambda: iso.GRU(4, 3, key=0), (3, 4)),
    "transpose": (lambda: iso.Conv1DTranspose(4, 3, 3, 2, key=0), (3, 4)),
    # with a bias: its graph once aborted the process
    "depthwise": (lambda: iso.DepthwiseConv2D(4, 3, key=0), (5, 5, 4)),
}


@pytest.mark.parametrize("layer", LAYERS)
def test_layers_take_batches_of_unknown_size(backend, layer):
    build, shape = LAYERS[layer]
    inputs = keras.Input(shape)
    net = keras.Model(inputs, exported(backend, build)(inputs))
    x = np.random.default_rng(0).standard_normal((2, *shape), np.float32)
    expected = keras.tree.flatten(made("numpy", build).eval()(x))
    found = keras.tree.flatten(net.predict(x, verbose=0))
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_state_changes_where_it_trains(backend):
    layer = exported(backend, iso.BatchNorm, 3, momentum=0.5)
    mean, variance = layer.non_trainable_weights
    layer(X32)
    np.testing.assert_array_equal(mean.numpy(), np.zeros(3))
    net = keras.Sequential([keras.Input((3,)), layer])
    net.compile(keras.optimizers.SGD(0.0), "mse")
    net.train_on_batch(X32, X32)
    np.testing.assert_allclose(mean.numpy(), 0.5 * X32.mean(0), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(variance.numpy(), 0.5 + 0.5 * X32.var(0, ddof=1), rtol=1e-5)
    expected = (X32 - mean.numpy()) / np.sqrt(variance.numpy() + 1e-5)
    np.testing.assert_allclose(net.predict(X32, verbose=0), expected, rtol=1e-4, atol=1e-6)


def test_dropout_draws_anew_at_each_step_of_a_graph(backend):
    layer = exported(backend, iso.Dropout, 0.5, key=3)
    draw = tf.function(lambda x: layer(x, training=True))
    ones = np.ones(40, np.float32)
    with iso.use_backend("numpy"):
        source = iso.Dropout(0.5, key=3)
    for _ in range(2):
        np.testing.assert_array_equal(draw(tf.constant(ones)), source(ones))
    np.testing.assert_array_equal(layer(ones), ones)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # raised by Keras
def test_weights_are_saved_and_loaded(backend, tmp_path):
    build = lambda key: iso.Sequential(iso.Linear(3, 2, key=key), iso.BatchNorm(2))
    one, other = (
        keras.Sequential([keras.Input((3,)), exported(backend, build, key)]) for key in (0, 1)
    )
    assert not np.array_equal(one(X32), other(X32))
    one.save_weights(tmp_path / "net.weights.h5")
    other.load_weights(tmp_path / "net.weights.h5")
    np.testing.assert_array_equal(one(X32), other(X32))
    with pytest.raises(NotImplementedError, match="to_keras: .* save the weights"):
        one.save(tmp_path / "net.keras")


def test_float64_stays_float64(backend):
    def build():
        with iso.use_backend(backend, dtype="float64"):
            return iso.Linear(3, 2, key=0)

    layer = iso.export.to_keras(build())
    assert layer.compute_dtype == "float64"
    x = X32.astype(np.float64) + 1e-9
    w = iso.to_numpy(build().v)["w"]
    np.testing.assert_allclose(layer(x), x @ w.T, rtol=1e-14, atol=1e-14)


def test_what_keras_cannot_do_is_refused(backend):
    with pytest.raises(TypeError, match="to_keras: needed an iso.Module, got function"):
        iso.export.to_keras(lambda x: x)
    layer = exported(backend, Counting)
    with pytest.raises(TypeError, match="needed an array for state that changes, got a int"):
        layer(np.ones(2, np.float32), training=True)


OTHER = """
import isomorph as iso
try:
    iso.export.to_keras(iso.Linear(2, 1, key=0))
except RuntimeError as error:
    print(error)
"""


@pytest.mark.parametrize("backend", ["tensorflow"], indirect=True)
def test_keras_that_says_it_runs_on_another_backend_is_refused(backend, monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "torch")
    with pytest.raises(RuntimeError, match="needed Keras to run on tensorflow, got torch; set KER"):
        iso.export.to_keras(iso.Linear(2, 1, key=0))


# whether or not Keras runs on it
@pytest.mark.takes("it starts another process")
@pytest.mark.parametrize("backend", ["tensorflow"], indirect=True)
@pytest.mark.skipif("torch" in NOT_INSTALLED, reason="torch is not installed")
def test_keras_on_another_backend_is_refused(backend):
    run = subprocess.run(
        [sys.executable, "-c", OTHER], env={**os.environ, "KERAS_BACKEND": "torch"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "to_keras: needed Keras to run on tensorflow, got torch; set KERAS_BACKEND" in run.stdout
