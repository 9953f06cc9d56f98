"""Narrow integer indices and labels, whose arithmetic would wrap; positions set twice; invalid
labels.
"""

import numpy as np
import pytest
from frameworks import ours as of_backend

import isomorph as iso
from isomorph.core.dispatch import load
from oracles import central_gradient, numpy_of

ROWS = np.arange(300.0)  # more than int8 or uint8 can count


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("rows", [100, 200, 300])
def test_counted_from_the_end_in_every_integer(backend, kind, rows):
    xp = load(backend)
    table = xp.from_numpy(ROWS[:rows])
    for places in ([-1], [-100, 3, 99]):
        at = xp.from_numpy(np.array(places, kind))
        wanted = ROWS[:rows][np.array(places)]
        np.testing.assert_array_equal(numpy_of(xp.take(table, at, axis=0)), wanted)
        np.testing.assert_array_equal(numpy_of(xp.take_along_axis(table, at, axis=0)), wanted)
        np.testing.assert_array_equal(numpy_of(iso.at(table)[at].get()), wanted)
        changed = numpy_of(iso.at(table)[at].multiply(2.0))
        np.testing.assert_array_equal(changed[np.array(places)], 2 * wanted)


@pytest.mark.host_only("ids are checked where they can be read without waiting")
@pytest.mark.parametrize("kind", ["int8", "int16", "int64"])
@pytest.mark.parametrize("rows", [100, 200, 300])
def test_a_negative_id_is_no_row_in_any_integer(backend, kind, rows):
    xp = load(backend)
    table = xp.from_numpy(ROWS[:rows, None])
    with pytest.raises(IndexError):
        iso.embedding(xp.from_numpy(np.array([3, -1], kind)), table)
    found = numpy_of(iso.embedding(xp.from_numpy(np.array([3, 99], kind)), table))
    np.testing.assert_array_equal(found, [[3.0], [99.0]])


@pytest.mark.parametrize("how", ["get", "set", "add", "multiply", "min", "max"])
@pytest.mark.parametrize("place", [-5, 4])
def test_what_is_out_of_bounds_raises(backend, how, place):
    xp = load(backend)
    spot = iso.at(xp.from_numpy(ROWS[:4]))[xp.from_numpy(np.array([0, place]))]
    says = "needed an index within" if backend == "tensorflow" else "out of bounds|out of range"
    with pytest.raises(IndexError, match=says):
        spot.get() if how == "get" else getattr(spot, how)(2.0)


@pytest.mark.parametrize(
    ("kind", "labels", "ignored"),
    [("uint8", [0, 156, 1], -100), ("int8", [0, 44, 1], 300), ("uint8", [0, 255, 1], -1)],
)
def test_an_ignored_number_that_no_label_can_be(backend, kind, labels, ignored):
    xp = load(backend)
    logits = np.random.default_rng(1).normal(size=(3, 300))
    each = np.log(np.exp(logits).sum(1)) - logits[np.arange(3), labels]
    args = xp.from_numpy(logits), xp.from_numpy(np.array(labels, kind))
    loss = lambda logits, labels: iso.cross_entropy(logits, labels, ignore_index=ignored)
    for run in (loss, iso.jit(loss) if backend != "torch" else loss):
        np.testing.assert_allclose(float(run(*args)), each.mean(), rtol=1e-12)


@pytest.mark.parametrize("index", [[1, 1, 1], [0, 2, 0], [-1, 3, 1]], ids=str)
@pytest.mark.parametrize("compiled", [False, True])
def test_of_a_position_set_twice_the_last_value_has_the_gradient(backend, index, compiled):
    w = np.array([0.3, -0.6, 0.1, -1.4])
    index = np.array(index)

    def by_numpy(w):
        y = w.copy()
        for i, value in zip(index, w[:3] * 2.0):
            y[i] = value
        return np.sum(y**2 * np.array([1.0, 2.0, 3.0, 4.0]))

    def ours(w):
        xp = iso.namespace(w)
        y = iso.at(w)[xp.asarray(index)].set(w[:3] * 2.0)
        return xp.sum(y**2 * xp.asarray(np.array([1.0, 2.0, 3.0, 4.0])))

    both = iso.value_and_grad(ours)
    value, grad = (iso.jit(both) if compiled else both)(iso.convert(w, backend))
    np.testing.assert_allclose(float(value), by_numpy(w), rtol=1e-12)
    np.testing.assert_allclose(numpy_of(grad), central_gradient(by_numpy, w), atol=1e-8)
    along = np.array([1.0, -2.0, 0.5, 3.0])
    found = iso.hvp(ours, (iso.convert(w, backend),), (iso.convert(along, backend),))[0]
    # the gradient of a sum of squares is linear: one step of any length gives its slope
    slope = central_gradient(by_numpy, w + along) - central_gradient(by_numpy, w)
    np.testing.assert_allclose(numpy_of(found), slope, atol=1e-7)


@pytest.mark.parametrize("index", [[1, 1, 1], [0, 2, 0], [-1, 3, 1]], ids=str)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("backend", ["jax"], indirect=True)
def test_jax_finds_the_last_value_where_writes_have_no_order(backend, index, compiled, monkeypatch):
    """As on a GPU."""
    monkeypatch.setattr(of_backend("jax.indexing"), "writes_in_order", lambda: False)
    test_of_a_position_set_twice_the_last_value_has_the_gradient(backend, index, compiled)
    first, second = index[:2]
    columns = lambda w: iso.at(w)[:, np.array([first, second])].set(w[:, 2:] * 3.0)
    given = np.sin(np.arange(12.0)).reshape(3, 4)
    wanted = given.copy()
    wanted[:, first] = given[:, 2] * 3.0
    wanted[:, second] = given[:, 3] * 3.0
    run = iso.jit(columns) if compiled else columns
    np.testing.assert_allclose(numpy_of(run(iso.convert(given, backend))), wanted, rtol=1e-15)
