"""Averages over data, weighted by examples, with the model in eval mode."""

import math

import numpy as np
import pytest

import isomorph as iso
from trainings import ADAMW, entropy, leaves, network, quick, table


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_metrics_are_numpys(backend, xp):
    """Seven examples in batches of three: the last one counts once, not three times."""
    rng = np.random.default_rng(0)
    w, x = rng.standard_normal((4, 3)), rng.standard_normal((7, 4))
    labels = rng.integers(0, 3, 7)
    model = lambda v: lambda x: xp.matmul(x, v)
    metrics = {
        "accuracy": lambda v, x, y: iso.metrics.accuracy(model(v), x, y),
        "entropy": lambda v, x, y: iso.cross_entropy(model(v)(x), y),
        "own": lambda v, x, y: xp.max(model(v)(x)),
        "number": lambda v, x, y: 2,
    }
    data = iso.convert((x, labels), backend)
    for compiled in (False, backend != "torch"):
        got = iso.evaluate(iso.convert(w, backend), data, metrics, batch_size=3, compiled=compiled)
        p = softmax(x @ w)
        right = p[np.arange(7), labels]
        assert got["accuracy"] == pytest.approx(np.mean(p.argmax(1) == labels), rel=1e-6)
        assert got["entropy"] == pytest.approx(-np.log(right).mean(), rel=1e-12)
        top = (x @ w).max(1)
        tops = [top[:3].max(), top[3:6].max(), top[6:].max()]
        assert got["own"] == pytest.approx(np.dot(tops, [3, 3, 1]) / 7, rel=1e-12)
        assert got["number"] == 2.0
        assert all(type(value) is float for value in got.values())


def test_perplexity_is_of_the_mean(backend):
    """exp is applied after averaging: the mean of exp would be another number."""
    rng = np.random.default_rng(1)
    z, labels = rng.standard_normal((7, 3)) * 3, rng.integers(0, 3, 7)
    data = iso.convert((z, labels), backend)
    each = -np.log(softmax(z)[np.arange(7), labels])
    got = iso.evaluate(
        lambda x: x, data, {"p": iso.metrics.perplexity}, batch_size=3, compiled=False
    )
    assert got["p"] == pytest.approx(np.exp(each.mean()), rel=1e-12)
    assert abs(got["p"] - np.exp(each).mean()) > 0.1
    far = iso.convert((np.eye(2) * 1e6, np.array([1, 0])), backend)
    assert iso.evaluate(lambda x: x, far, {"p": iso.metrics.perplexity}, compiled=False) == {
        "p": math.inf
    }
    assert math.isinf(
        iso.evaluate(lambda x: x, far, {"p": iso.metrics.perplexity})["p"]
    )  # also compiled


def test_the_model_is_in_eval(backend):
    """Dropout is off, running statistics are used, and the model is unchanged afterwards."""
    model, data = network(backend), table(backend)
    for _ in range(3):
        model(data[0])  # running statistics other than the initial ones
    before = [x.tobytes() for x in leaves(model)]
    got = iso.evaluate(model, data, {"entropy": entropy}, batch_size=5, compiled=False)
    assert got == iso.evaluate(model, data, {"entropy": entropy}, batch_size=5, compiled=False)
    assert [x.tobytes() for x in leaves(model)] == before
    assert model.drop.training
    assert model.norm.training
    named = {k: [np.asarray(x) for x in leaves(v)] for k, v in model.v.items()}
    bias, weight = sorted(named["first"], key=np.ndim)
    x, labels = (np.asarray(a) for a in iso.to_numpy(data))
    hidden = x @ (weight if weight.shape[0] == 3 else weight.T) + bias
    statistics = model.norm.mean.value, model.norm.variance.value
    mean, variance = (np.asarray(s) for s in iso.to_numpy(statistics))
    hidden = (hidden - mean) / np.sqrt(variance + 1e-5)  # the scale is one, the offset zero
    hidden = hidden / (1 + np.exp(-hidden))
    bias, weight = sorted(named["last"], key=np.ndim)
    p = softmax(hidden @ (weight if weight.shape[0] == 8 else weight.T) + bias)
    want = -np.log(p[np.arange(len(x)), labels]).mean()
    assert got["entropy"] == pytest.approx(want, rel=1e-5)  # float32


def test_validation_in_fit_is_evaluate(backend):
    data = table(backend)
    metrics = {"accuracy": iso.metrics.accuracy, "perplexity": iso.metrics.perplexity}
    got = iso.fit(
        network(backend), data, entropy, ADAMW, 2, batch_size=8, validation=data, metrics=metrics,
        **quick(),
    )  # fmt: skip
    found = got.history[-1]["validation"]
    want = iso.evaluate(got.model, data, {"loss": entropy, **metrics}, batch_size=8, compiled=False)
    assert found == want
    assert found["perplexity"] == math.exp(found["loss"])
    assert list(got.history[0]) == ["epoch", "step", "loss", "validation"]


def test_what_is_no_metric_is_named(backend, xp):
    x = xp.ones((4, 2))
    evaluate = lambda metrics, **kw: iso.evaluate(x, x, metrics, compiled=False, **kw)
    with pytest.raises(TypeError, match="evaluate: .*metrics as a dict"):
        evaluate([entropy])
    with pytest.raises(TypeError, match="evaluate: metrics: a: needed a function, got str"):
        evaluate({"a": "accuracy"})
    with pytest.raises(ValueError, match="evaluate: needed at least one metric, got none"):
        evaluate({})
    with pytest.raises(TypeError, match=r"metric rows, got a .* of shape \(4,\); take the"):
        evaluate({"rows": lambda v, x: x[:, 0]})
    with pytest.raises(TypeError, match="metric none, got a NoneType"):
        evaluate({"none": lambda v, x: None})
    with pytest.raises(ValueError, match="evaluate: needed batch_size as an int >= 1"):
        evaluate({"a": lambda v, x: x[0, 0]}, batch_size=0)
    fit = lambda **kw: iso.fit(x, x, lambda v, x: xp.sum(v), ADAMW, **quick(), **kw)
    with pytest.raises(ValueError, match="fit: needed validation= for metrics, got none"):
        fit(metrics={"accuracy": iso.metrics.accuracy})
    with pytest.raises(ValueError, match="fit: needed another name for a metric"):
        fit(metrics={"loss": entropy}, validation=x)
