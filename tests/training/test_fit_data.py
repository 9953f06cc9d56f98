"""Batches: slices of arrays in the same order on every backend, or whatever an iterable gives."""

from functools import partial, wraps
from itertools import chain, cycle

import numpy as np
import pytest

import isomorph as iso
from isomorph.core.dispatch import load
from oracles import kind_of, numpy_of
from trainings import quick

SGD = iso.optimizers.sgd(0.1)


def watched(seen):
    """A loss that records the examples it sees."""

    def loss(v, *batch):
        (x, *_) = batch[0].values() if isinstance(batch[0], dict) else batch
        seen.append(x)  # read later: a transform may be running
        return iso.namespace(v).sum(v * v)

    return loss


def met(backend, data, epochs=1, **kw):
    seen = []
    v = iso.convert(np.ones(2), backend)
    iso.fit(v, data, watched(seen), SGD, epochs, **quick(), **kw)
    return [numpy_of(x).ravel().tolist() for x in seen]


def numbers(backend, n=10):
    return iso.convert(np.arange(n, dtype=np.float64), backend)


def test_every_example_is_met_once_in_an_epoch(backend):
    seen = met(backend, numbers(backend), 3, batch_size=4, seed=1)
    assert [len(x) for x in seen] == [4, 4, 2] * 3
    epochs = [list(chain(*seen[i : i + 3])) for i in (0, 3, 6)]
    assert all(sorted(e) == list(range(10)) for e in epochs)
    assert epochs[0] != epochs[1] != epochs[2] != list(range(10))
    on_numpy = met("numpy", numbers("numpy"), 3, batch_size=4, seed=1)
    assert seen == on_numpy
    assert met(backend, numbers(backend), 3, batch_size=4, seed=2) != seen


def test_order_and_last_batch(backend):
    x = numbers(backend)
    rows = list(range(10))
    assert met(backend, x, batch_size=4, shuffle=False) == [rows[:4], rows[4:8], rows[8:]]
    assert met(backend, x, batch_size=4, shuffle=False, drop_last=True) == [rows[:4], rows[4:8]]
    dropped = met(backend, x, batch_size=4, drop_last=True)
    assert [len(part) for part in dropped] == [4, 4]
    assert met(backend, x, batch_size=99, shuffle=False) == [rows]


def test_forms_of_arrays(backend):
    """A tuple gives the arguments of the loss; a dict or an array is one argument. Rows stay
    together.
    """
    x = numbers(backend, 6)
    pairs = []

    def loss(v, *batch):
        pairs.append(batch)
        return iso.namespace(v).sum(v * v)

    v = iso.convert(np.ones(2), backend)
    fit = lambda data: iso.fit(v, data, loss, SGD, batch_size=3, **quick())
    fit((x, 10 * x))
    fit({"a": x, "b": (10 * x, {"c": 100 * x})})
    fit(x)
    for a, b in pairs[:2]:
        assert (10 * numpy_of(a)).tolist() == numpy_of(b).tolist()
        assert kind_of(a) == kind_of(b) == backend
    for (batch,) in pairs[2:4]:
        a = numpy_of(batch["a"])
        assert (10 * a).tolist() == numpy_of(batch["b"][0]).tolist()
        assert (100 * a).tolist() == numpy_of(batch["b"][1]["c"]).tolist()
    assert [len(batch) for batch in pairs[4:]] == [1, 1]
    orders = [numpy_of(b[0]["a"] if type(b[0]) is dict else b[0]).tolist() for b in pairs]
    assert orders[:2] == orders[2:4] == orders[4:]


def test_streams(backend):
    x = numbers(backend, 6)
    parts = [(x[:2],), (x[2:5],), x[5:]]  # tuples, or a plain array

    class Again:
        def __iter__(self):
            return iter(parts)

    want = [[0, 1], [2, 3, 4], [5]]
    assert met(backend, parts, 2) == met(backend, Again(), 2) == want * 2
    assert met(backend, (p for p in parts)) == want
    endless = cycle(parts)
    assert met(backend, endless, steps=7) == (want * 3)[:7]
    assert met(backend, map(list, [(x[:1],)])) == [[0]]


def test_what_can_be_iterated_over_once_says_so(backend):
    x = numbers(backend, 6)
    with pytest.raises(ValueError, match="fit: .*none in epoch 2 .*generator, .*once; give a list"):
        met(backend, (p for p in [x]), 2)
    with pytest.raises(ValueError, match="fit: .*none in epoch 1 from a list"):
        met(backend, [])
    with pytest.raises(
        ValueError, match="fit validation: .*none in epoch 2 .*list_iterator, .*once"
    ):
        met(backend, x, 2, validation=iter([x]))


def own_loader(backend, x):
    """The framework's own data loader; NumPy and JAX have none."""
    if backend == "torch":
        from torch.utils.data import DataLoader, TensorDataset

        return DataLoader(TensorDataset(x), batch_size=4)
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices((x,)).batch(4)


@pytest.mark.parametrize("backend", ["tensorflow", "torch"], indirect=True)
def test_loaders_of_the_frameworks(backend):
    x = numbers(backend)
    loader = own_loader(backend, x)
    rows = list(range(10))
    assert met(backend, loader, 2) == [rows[:4], rows[4:8], rows[8:]] * 2
    if backend == "tensorflow":
        assert len(met(backend, loader.repeat(), steps=5)) == 5
    found = iso.evaluate(x, loader, {"mean": lambda v, x: iso.namespace(x).mean(x)}, compiled=False)
    assert found == {"mean": 4.5}  # weighted: the last batch has two examples


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_examples_without_a_loader(backend):
    from torch.utils.data import TensorDataset

    with pytest.raises(TypeError, match="got a TensorDataset; .*loader"):
        met(backend, TensorDataset(numbers(backend)))


def test_other_data_are_refused(backend):
    x = numbers(backend)
    for data, words in (
        (x[:0], "fit: needed examples, got 0"),
        ((x, x[:3]), "fit: needed arrays with .* examples, got 10 at 0, 3 at 1"),
        ({"a": x, "b": x[0]}, "got one without axes at b"),
        (x[0], "got one without axes at the array"),
        ([x[:0]], "fit: needed examples in a batch, got none at 0"),
    ):
        with pytest.raises(ValueError, match=words):
            met(backend, data)
    for data, words in (
        (None, "got a NoneType"),
        (3, "got a int"),
        ("data", "got a str"),
        ((), "got a tuple with nothing in it"),
        (([1, 2], [3, 4]), "got a tuple with a int in it"),
        ({"a": x, "b": "text"}, "got a dict with a str in it"),
        (["text"], "fit: needed batches of arrays and numbers, got a str at 0"),
        ([(x, "text")], "got a str at 1"),
    ):
        with pytest.raises(TypeError, match=words):
            met(backend, data)
    with pytest.raises(ValueError, match="at least 11 examples, got 10; .*smaller batch_s"):
        met(backend, x, drop_last=True, batch_size=11)


def test_batches_that_a_loss_cannot_take_are_named(backend):
    x, v = numbers(backend), iso.convert(np.ones(2), backend)

    def pairs(v, x, y, scale=1.0):
        return iso.namespace(v).sum(v * v)

    takes = r"needed batches for pairs\(v, x, y, scale\), got"
    for data, words in (
        (x, r"one array of shape \[4\]"),
        ([x], r"one array of shape \[10\]"),
        ({"x": x, "y": x}, "one dict"),
        ([(x, x, 1.0, x)], "4 parts"),
    ):
        with pytest.raises(TypeError, match=f"fit: {takes} {words}; give a tuple"):
            iso.fit(v, data, pairs, SGD, batch_size=4, **quick())
    with pytest.raises(TypeError, match=f"fit validation: {takes} one array"):
        iso.fit(v, (x, x), pairs, SGD, validation=x, **quick())
    with pytest.raises(TypeError, match=f"evaluate: {takes} one array"):
        iso.evaluate(v, x, {"m": pairs}, compiled=False)
    assert iso.fit(v, (x, x), pairs, SGD, **quick()).steps == 1
    assert iso.fit(v, [(x, x, 2.0)], pairs, SGD, **quick()).steps == 1


def test_losses_in_other_forms_take_what_they_take(backend):
    x, v = numbers(backend), iso.convert(np.ones(2), backend)
    pairs = lambda v, x, y: iso.namespace(v).sum(v * v)

    @wraps(pairs)
    def unpacked(v, batch):
        return pairs(v, batch["x"], batch["y"])

    @wraps(pairs)
    def scaled(*args):
        return pairs(*args, 2.0)

    class Loss:
        def __call__(self, v, x, *, scale=1.0):
            return pairs(v, x, scale)

    for loss, data in (
        (unpacked, {"x": x, "y": x}), (scaled, x), (Loss(), x), (Loss().__call__, x),
        (partial(pairs, y=1), x), (lambda *parts: pairs(*parts), (x, x)),
    ):  # fmt: skip
        assert iso.fit(v, data, loss, SGD, **quick()).steps == 1
    with pytest.raises(TypeError, match=r"needed batches for Loss\(v, x\), got 2 parts"):
        iso.fit(v, (x, x), Loss(), SGD, **quick())
    with pytest.raises(TypeError, match="required keyword-only argument: 'scale'"):
        iso.fit(v, x, lambda v, x, *, scale: pairs(v, x, scale), SGD, **quick())


def test_arrays_of_another_framework_are_named(backend):
    other = "numpy" if backend == "torch" else "torch"
    words = f"needed batches of {backend} arrays, like the model's, got a {other} array at 0"
    for data in (numbers(other), [numbers(other)]):
        with pytest.raises(TypeError, match=f"fit: {words}; .*iso.convert"):
            met(backend, data)
    with pytest.raises(TypeError, match=f"fit validation: {words}"):
        met(backend, numbers(backend), validation=numbers(other))
    with pytest.raises(TypeError, match=f"evaluate: {words}"):
        iso.evaluate(numbers(backend), numbers(other), {"a": lambda v, x: x[0]}, compiled=False)


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool", "float64"])
def test_rows_are_read_in_an_order(backend, dtype):
    """Of batches and of single rows, also of arrays with many axes."""
    for shape in ((101,), (101, 3), (101, 2, 5)):
        rows = (np.arange(np.prod(shape)).reshape(shape) % 7).astype(dtype)
        order = np.random.default_rng(1).permutation(101).astype("int32")
        x = iso.convert(rows, backend)
        mixed, plain = (load(backend).row_reader(x, which) for which in (order, None))
        for begin, end in ((0, 32), (32, 64), (96, 101), (100, 101)):
            np.testing.assert_array_equal(numpy_of(mixed(begin, end)), rows[order[begin:end]])
            np.testing.assert_array_equal(numpy_of(plain(begin, end)), rows[begin:end])
            assert mixed(begin, end).dtype == plain(begin, end).dtype == x.dtype
