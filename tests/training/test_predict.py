"""`iso.predict` against the model called on everything at once."""

import numpy as np
import pytest

import isomorph as iso
from oracles import numpy_of


class Net(iso.Module):
    def __init__(self):
        self.linear, self.norm = iso.Linear(3, 4), iso.BatchNorm(4)
        self.dropout = iso.Dropout(0.5)

    def forward(self, x):
        return self.dropout(self.norm(self.linear(x)))


@pytest.fixture
def net(backend):
    with iso.use_backend(backend), iso.use_key(0):
        return Net()


X = np.random.default_rng(0).normal(size=(11, 3)).astype(np.float32)


@pytest.mark.parametrize("compiled", [False, True])
def test_results_are_those_of_the_whole(backend, xp, net, compiled):
    x = xp.asarray(X)
    before = [numpy_of(v) for v in (net.v["linear"]["w"], net.v["linear"]["b"])]
    found = iso.predict(net, x, batch_size=4, compiled=compiled)
    assert type(found) is type(x)
    wanted = numpy_of(net.eval()(x))
    np.testing.assert_allclose(numpy_of(found), wanted, rtol=1e-5, atol=1e-6)
    for old, v in zip(before, (net.v["linear"]["w"], net.v["linear"]["b"])):
        np.testing.assert_array_equal(numpy_of(v), old)


def test_a_training_model_is_used_as_in_eval_and_stays_one(backend, xp, net):
    x = xp.asarray(X)
    first = iso.predict(net, x, 5, compiled=False)
    np.testing.assert_array_equal(numpy_of(first), numpy_of(iso.predict(net, x, 5, compiled=False)))
    drawn = numpy_of(net(x))
    assert (drawn == 0).mean() > 0.2  # dropout still draws there


def test_functions_nests_and_loaders(backend, xp):
    x = xp.asarray(X)
    pair = lambda a, b: {"sum": a + b, "first": a[:, 0]}
    found = iso.predict(pair, (x, 2 * x), batch_size=4, compiled=False)
    np.testing.assert_allclose(numpy_of(found["sum"]), 3 * X, rtol=1e-6)
    np.testing.assert_array_equal(numpy_of(found["first"]), X[:, 0])
    found = iso.predict(lambda a: -a, [x[:4], x[4:]], compiled=False)
    np.testing.assert_array_equal(numpy_of(found), -X)


def test_results_in_a_file(backend, xp, net, tmp_path):
    x = xp.asarray(X)
    path = iso.predict(net, x, batch_size=4, compiled=False, out=tmp_path / "found.npy")
    assert path == tmp_path / "found.npy"
    wanted = iso.predict(net, x, batch_size=4, compiled=False)
    np.testing.assert_array_equal(np.load(path), numpy_of(wanted))
    assert [p.name for p in tmp_path.iterdir()] == ["found.npy"]


def test_a_failure_leaves_no_file(backend, xp, tmp_path):
    calls = []

    def fails(x):
        calls.append(x)
        if len(calls) == 2:
            raise RuntimeError("stop")
        return x

    with pytest.raises(RuntimeError, match="stop"):
        iso.predict(fails, xp.asarray(X), 4, compiled=False, out=tmp_path / "found.npy")
    assert list(tmp_path.iterdir()) == []


def test_wrong_arguments(backend, xp, tmp_path):
    x = xp.asarray(X)
    with pytest.raises(ValueError, match=r"predict: needed batch_size as an int >= 1, got 0"):
        iso.predict(lambda x: x, x, 0)
    with pytest.raises(ValueError, match=r"one row for each of 4 examples, got shape \(3,\)$"):
        iso.predict(lambda x: x[0], x, 4, compiled=False)
    with pytest.raises(ValueError, match=r"predict: needed a path that ends in .npy as out, got"):
        iso.predict(lambda x: x, x, out=tmp_path / "a.txt")
    with pytest.raises(TypeError, match=r"predict: needed arrays as data .*got an iterable"):
        iso.predict(lambda x: x, [x], out=tmp_path / "a.npy")
    with pytest.raises(ValueError, match=r"predict: needed one array as result .*got 2"):
        iso.predict(lambda x: (x, x), x, compiled=False, out=tmp_path / "a.npy")
