"""Invalid labels, ids and indices: an error where values can be read, NaN where they cannot, and
never another row.
"""

import numpy as np
import pytest
from frameworks import BACKENDS

import isomorph as iso
from isomorph.core.dispatch import load
from isomorph.meanings.embedding import take_rows
from oracles import name_of, numpy_of

pytestmark = pytest.mark.host_only(
    "values are checked where they can be read without waiting; torch ends the process instead"
)
LOGITS = np.array([[0.0, 1.0, -1.0], [2.0, 0.5, 0.0]])
TABLE = np.arange(6.0).reshape(3, 2)
TRACED = pytest.mark.parametrize("backend", ["jax", "tensorflow"], indirect=True)


def loss_and_slope(backend, labels, compiled=False, **options):
    to = load(backend).from_numpy
    both = iso.value_and_grad(lambda x, labels: iso.cross_entropy(x, labels, **options))
    both = iso.jit(both) if compiled else both
    value, slope = both(to(LOGITS), to(np.array(labels)))
    return float(value), numpy_of(slope)


@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1}, {"ignore_index": -100}], ids=str)
@pytest.mark.parametrize("label", [-1, 3, -3, 2**40])
def test_a_label_that_is_no_class_raises(backend, label, options):
    with pytest.raises(IndexError):
        loss_and_slope(backend, [0, label], **options)


def test_the_error_says_what_was_needed(xp):
    with pytest.raises(IndexError, match="cross_entropy: needed labels from 0 to 2, got -1"):
        iso.cross_entropy(xp.asarray(LOGITS), xp.asarray([0, -1]))
    with pytest.raises(IndexError, match="embedding: needed ids from 0 to 2, got 3"):
        iso.embedding(xp.asarray([0, 3]), xp.asarray(TABLE))
    with pytest.raises(IndexError, match="cross_entropy: needed labels from 0 to 2, got 3"):
        labels = xp.asarray([[-100, 0], [3, -100]])
        iso.cross_entropy(xp.zeros((2, 2, 3)), labels, ignore_index=-100)
    with pytest.raises(IndexError, match="cross_entropy: needed labels from 0 to 1, got 2"):
        iso.cross_entropy(xp.zeros((2, 3)), xp.asarray([0, 2, 1]), axis=0)


@pytest.mark.parametrize("place", [3, -4])
@pytest.mark.parametrize("axis", [0, 1])
def test_places_that_are_not_there_raise_and_say_which_are(xp, place, axis):
    """NumPy raises its own message. Backends of other packages may raise theirs."""
    x, places = xp.zeros((3, 3)), xp.asarray([[place]])
    name = name_of(xp)
    says = f"needed indices from -3 to 2.*{place}" if name in BACKENDS else str(place)
    if name == "numpy":
        says = f"index {place} is out of bounds for axis {axis} "
    with pytest.raises(IndexError, match=says):
        xp.take(x, places[0, :], axis=axis)
    with pytest.raises(IndexError, match=says.partition(" for axis")[0]):
        xp.take_along_axis(x, places, axis=axis)


@pytest.mark.parametrize("ignored", [-1, -100, 3, 1])
def test_an_ignored_label_may_be_anything(backend, ignored):
    value, slope = loss_and_slope(backend, [0, ignored], ignore_index=ignored)
    alone = -np.log(np.exp(LOGITS[0, 0]) / np.exp(LOGITS[0]).sum())
    np.testing.assert_allclose(value, alone, rtol=1e-12)
    assert (slope[1] == 0).all()


@TRACED
@pytest.mark.parametrize("label", [-1, 3])
@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1, "ignore_index": -2}], ids=str)
def test_compiled_the_loss_of_no_class_is_nan_and_so_is_its_row(backend, label, options):
    value, slope = loss_and_slope(backend, [0, label], compiled=True, **options)
    assert np.isnan(value)
    assert np.isnan(slope[1]).all()
    _, right = loss_and_slope(backend, [0, 1], **options)
    np.testing.assert_allclose(slope[0], right[0], rtol=1e-12)


@pytest.mark.parametrize("ids", [[0, -1], [3, 0], [2**40, 0]], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_an_id_that_is_no_row_raises(backend, ids, dtype):
    to = load(backend).from_numpy
    with pytest.raises(IndexError):
        iso.embedding(to(np.array(ids)), to(TABLE.astype(dtype)))


@pytest.mark.parametrize("sizes", [(3,), (3, 2), (3, 1, 2)], ids=str)
@pytest.mark.parametrize("kind", ["int8", "uint8", "int32", "int64"])
def test_ids_of_every_integer_and_tables_of_every_rank(backend, sizes, kind):
    to = load(backend).from_numpy
    table = np.arange(float(np.prod(sizes))).reshape(sizes)
    found = iso.embedding(to(np.array([[2, 0]], kind)), to(table))
    np.testing.assert_array_equal(numpy_of(found), table[[[2, 0]]])
    with pytest.raises(IndexError):
        iso.embedding(to(np.array([[0, 3]], kind)), to(table))


@TRACED
def test_compiled_a_row_of_no_id_is_nan_and_no_row_gets_its_gradient(backend):
    to = load(backend).from_numpy
    ids, table = to(np.array([1, -1, 3, 2**40])), to(TABLE)
    rows = numpy_of(iso.jit(iso.embedding)(ids, table))
    np.testing.assert_array_equal(rows[0], TABLE[1])
    assert np.isnan(rows[1:]).all()
    some = lambda table, ids: iso.namespace(table).sum(iso.embedding(ids, table))
    slope = numpy_of(iso.jit(iso.grad(some))(table, ids))
    np.testing.assert_array_equal(slope, [[0, 0], [1, 1], [0, 0]])


@TRACED
@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_the_composed_meaning_is_that_of_the_kernel(backend, dtype):
    xp = load(backend)
    ids, table = xp.from_numpy(np.array([1, -1, 3, 2])), xp.from_numpy(TABLE.astype(dtype))
    kernel = numpy_of(iso.jit(lambda ids, table: xp.take_rows(table, ids))(ids, table))
    meaning = numpy_of(iso.jit(lambda ids, table: take_rows(xp, table, ids))(ids, table))
    np.testing.assert_array_equal(meaning, kernel)
    assert meaning.dtype == kernel.dtype


@TRACED
def test_compiled_integers_of_no_id_are_the_nearest(backend):
    to = load(backend).from_numpy
    ids, table = to(np.array([1, -1, 3])), to(TABLE.astype(np.int64))
    rows = numpy_of(iso.jit(iso.embedding)(ids, table))
    np.testing.assert_array_equal(rows, [[2, 3], [0, 1], [4, 5]])


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
@pytest.mark.slow  # torch takes long to compile it
def test_compiled_torch_raises(backend):
    to = load(backend).from_numpy
    program = iso.jit(lambda ids, table: iso.embedding(ids, table))
    for ids in ([0, -1], [0, 3]):
        with pytest.raises(RuntimeError):
            program(to(np.array(ids)), to(TABLE))


@TRACED
def test_compiled_taking_from_beyond_gives_nan_or_the_nearest(backend):
    xp = load(backend)
    places = xp.from_numpy(np.array([-1, 3, -4, 2**40]))

    def taken(table, whole, places):
        along = xp.expand_dims(places, axis=1)
        return (
            xp.take(table, places, axis=0),
            xp.take_along_axis(table, xp.concat([along, along], axis=1), axis=0),
            xp.take(whole, places, axis=0),
        )

    table, whole = xp.from_numpy(TABLE), xp.from_numpy(TABLE.astype(np.int64))
    rows, along, near = map(numpy_of, iso.jit(taken)(table, whole, places))
    for found in (rows, along):
        np.testing.assert_array_equal(found[0], TABLE[2])
        assert np.isnan(found[1:]).all()
    np.testing.assert_array_equal(near, [[4, 5], [4, 5], [0, 1], [4, 5]])
