"""What `dir` shows, and the default dtype of new arrays."""

import importlib
import tomllib
import types
from pathlib import Path

import numpy as np
import pytest

import isomorph as iso
from isomorph.core.dispatch import load
from oracles import name_of, numpy_of

MODULES = [
    "distribute",
    "random",
    "initializers",
    "metrics",
    "export",
    "linalg",
    "optimizers",
    "special",
]


def test_the_version_is_said_in_one_place():
    project = tomllib.loads((Path(iso.__file__).parents[2] / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    where = project["tool"]["setuptools"]["dynamic"]["version"]["attr"]
    module, _, name = where.rpartition(".")
    assert getattr(importlib.import_module(module), name) == iso.__version__


def test_what_backends_of_other_packages_import_stays_where_it_was():
    old, new = (
        importlib.import_module(f"isomorph.{room}.vocabulary") for room in ("backends", "core")
    )
    words = {word for word in vars(new) if word.isupper()} | {"Names"}
    assert {word for word in words if getattr(old, word, None) is not getattr(new, word)} == set()
    old, new = (
        importlib.import_module(f"isomorph.{room}.contract") for room in ("backends", "core")
    )
    assert old.Contract is new.Contract
    assert len(words) > 15


def public(module):
    return {name for name in dir(module) if not name.startswith("__")}


def test_dir_shows_what_is_public_and_nothing_else(backend):
    load(backend)
    importlib.import_module("isomorph.training.fitting")  # a submodule that is not public itself
    assert public(iso) == set(iso.__all__) > set(MODULES)
    assert len(dir(iso)) == len(set(dir(iso)))
    assert {"__all__", "__doc__", "__name__", "__version__"} <= set(dir(iso))
    for name in dir(iso):
        thing = getattr(iso, name)  # every name exists
        if isinstance(thing, types.ModuleType):
            assert name in MODULES


@pytest.mark.parametrize("name", MODULES)
def test_so_does_that_of_its_modules(backend, name):
    load(backend)
    module = getattr(iso, name)
    assert public(module) == set(module.__all__)
    assert {"__all__", "__doc__", "__name__"} <= set(dir(module))
    for word in module.__all__:
        assert callable(getattr(module, word))


MAKERS = {
    "zeros": lambda **kw: iso.zeros((2, 3), **kw),
    "ones": lambda **kw: iso.ones(2, **kw),
    "full": lambda **kw: iso.full(2, 0.5, **kw),
    "eye": lambda **kw: iso.eye(3, **kw),
    "linspace": lambda **kw: iso.linspace(0, 1, 5, **kw),
    "arange": lambda **kw: iso.arange(0.0, 1.0, 0.25, **kw),
    "asarray": lambda **kw: iso.asarray([0.5, 1.0], **kw),
    "asarray of a number": lambda **kw: iso.asarray(0.5, **kw),
}


@pytest.mark.parametrize("name", MAKERS)
def test_arrays_are_made_in_the_dtype_of_layers(backend, xp, name):
    make = MAKERS[name]
    layers = iso.convert(iso.Linear(2, 1, key=0).w, backend).dtype
    assert make(backend=backend).dtype == layers == xp.float32
    assert make(backend=backend, dtype="float64").dtype == xp.float64
    with iso.use_backend(backend):
        assert make().dtype == iso.Linear(2, 1, key=0).w.dtype == xp.float32
    with iso.use_backend(backend, dtype="float64"):
        assert make().dtype == iso.Linear(2, 1, key=0).w.dtype == xp.float64
        assert make(dtype="float32").dtype == xp.float32
    wide = numpy_of(make(backend=backend, dtype="float64"))
    # these values fit both dtypes
    np.testing.assert_array_equal(numpy_of(make(backend=backend)), wide)


def test_other_kinds_of_numbers_stay_what_they_are(backend, xp):
    make = {"backend": backend}
    assert xp.isdtype(iso.arange(3, **make).dtype, "signed integer")
    assert xp.isdtype(iso.full(2, 7, **make).dtype, "signed integer")
    assert xp.isdtype(iso.asarray([1, 2], **make).dtype, "signed integer")
    assert xp.isdtype(iso.asarray([True], **make).dtype, "bool")
    assert xp.isdtype(iso.asarray([1j], **make).dtype, "complex floating")
    given = load(backend).from_numpy(np.array([0.1]))
    # an existing array keeps its dtype
    assert iso.asarray(given).dtype == given.dtype == xp.float64


class Counting(iso.Module):
    def __init__(self):
        self.w = iso.ones(3)
        self.seen = iso.State(iso.zeros(3))

    def forward(self, x):
        self.seen.value = self.seen.value + x
        return self.w * x


def test_a_file_of_one_backend_is_read_by_every_other(backend, tmp_path):
    with iso.use_backend(backend):
        saved = Counting()
        saved(iso.full(3, 2.0))
    iso.save(tmp_path / "file", saved)
    for other in ("numpy", "jax", "tensorflow", "torch"):
        with iso.use_backend(other):
            found = iso.load(tmp_path / "file", Counting())
        assert name_of(iso.namespace(found.w)) == other
        np.testing.assert_array_equal(numpy_of(found.seen.value), [2, 2, 2])
        np.testing.assert_array_equal(numpy_of(found.w), [1, 1, 1])
