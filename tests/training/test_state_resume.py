"""Every kind of state resumes from a checkpoint: numbers, arrays, keys and nests of them, compiled
and eager, on one backend and across backends.
"""

import numpy as np
import pytest

import isomorph as iso
from isomorph.core import tree
from oracles import numpy_of
from trainings import entropy, table

SGD = iso.optimizers.sgd(0.1)
OTHER = {"numpy": "torch", "jax": "numpy", "tensorflow": "jax", "torch": "tensorflow"}


class Counting(iso.Module):
    """A layer with state: how often it was called, and more."""

    def __init__(self):
        self.layer = iso.Linear(3, 2)
        self.calls = iso.State(0)  # the counter of State's docstring
        self.total = iso.State(np.float32(0.5))  # NumPy scalars are allowed
        self.ever = iso.State(False)
        self.mean = iso.State(iso.zeros(3, dtype="float32"))
        self.noise = iso.Dropout(0.25)
        self.nest = iso.State(
            {"steps": 0, "sums": [0.0, iso.zeros(2, dtype="float32")], "none": None}
        )

    def forward(self, x):
        xp = iso.namespace(x)
        self.calls.value = self.calls.value + 1
        self.total.value = self.total.value * 0.5 + 1.0
        self.ever.value = True
        self.mean.value = 0.5 * self.mean.value + 0.5 * xp.mean(x, axis=0)
        old = self.nest.value
        sums = [old["sums"][0] + 1.0, old["sums"][1] + 1.0]
        self.nest.value = {"steps": old["steps"] + 2, "sums": sums, "none": None}
        return self.layer(self.noise(x))


def fit(backend, steps, key=3, **kw):
    """Train a new model. With another key, only a checkpoint can make it equal."""
    with iso.use_backend(backend), iso.use_key(key):
        model = Counting()
    return iso.fit(
        model, table(backend, 16), entropy, SGD, 9, steps=steps, batch_size=8, progress=False, **kw
    )


def same_state(found, wanted, steps):
    numbers = lambda model: tree.map(lambda x: np.asarray(numpy_of(x)), model.state)
    found, wanted = numbers(found), numbers(wanted)
    assert found["calls"] == steps
    assert found["nest"]["steps"] == 2 * steps
    assert found["ever"]
    for x, y in zip(tree.flatten(found)[0], tree.flatten(wanted)[0], strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-7)


@pytest.mark.takes("torch compiles C++")
@pytest.mark.parametrize("compiled", [True, False])
def test_on_one_backend(backend, compiled, tmp_path):
    want = fit(backend, 5, compiled=compiled)
    fit(backend, 3, compiled=compiled, checkpoint=tmp_path / "c")
    got = fit(backend, 5, compiled=compiled, checkpoint=tmp_path / "c", resume=True, key=8)
    assert got.losses == want.losses
    same_state(got.model, want.model, 5)


def test_across_backends(backend, tmp_path):
    compiled = {"compiled": backend in ("jax", "tensorflow")}
    want = fit(backend, 5, **compiled)
    fit(backend, 3, checkpoint=tmp_path / "c", **compiled)
    got = fit(OTHER[backend], 5, checkpoint=tmp_path / "c", resume=True, compiled=False, key=8)
    np.testing.assert_allclose(got.losses, want.losses, rtol=1e-4)
    same_state(got.model, want.model, 5)


def test_a_number_is_loaded_like_an_array_of_its_kind_and_back(backend, tmp_path):
    path = tmp_path / "file"
    to = lambda x: iso.convert(np.asarray(x), backend)
    for number, array in ((3, to(np.int64(3))), (True, to(True)), (0.5, to(0.5)), (2j, to(2j))):
        iso.save(path, array)
        found = iso.load(path, number)
        assert type(found) is type(number)
        assert found == number
        iso.save(path, number)
        found = iso.load(path, array)
        assert type(found) is type(array)
        assert found.dtype == array.dtype
        assert numpy_of(found)[()] == number
    for saved, like in (
        (to([3]), 3),
        (to(0.5), 3),
        (to(np.int64(3)), 0.5),
        (3, to(0.5)),
        (to(True), 1),
    ):
        iso.save(path, saved)
        with pytest.raises(iso.CheckpointError, match="needed an? "):
            iso.load(path, like)
