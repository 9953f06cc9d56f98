"""Ten programs, each written once, give the same numbers on all four backends, eager and compiled,
in float32 and float64: those of plain NumPy (program_oracles.py).

Any two runs agree to 1e-5 in float32 and 1e-10 in float64, relative to the largest number of the
same array: each is compared with the oracle to half of that.

`make test` runs each program on every backend, and a sample of the compiled ones; `make test-all`
runs all. Compilation takes most of the time, on JAX also for each operation of an eager program.
"""

from functools import cache

import learning_programs as learning
import numpy as np
import program_oracles as oracles
import pytest
import science_programs as science
from frameworks import enable_x64

from isomorph.core import tree
from isomorph.core.dispatch import dtype_of
from oracles import RUNS, kind_of

LIMITS = {"float32": 5e-6, "float64": 5e-11}
PROGRAMS = {
    f.__name__: f
    for f in (
        learning.vae,
        learning.gan,
        learning.graph_network,
        learning.transformer,
        learning.reinforce,
        science.physics_network,
        science.ode_fit,
        science.gaussian_process,
        science.maml,
        science.mixture,
    )
}

# Slow cells that `make test-full` runs too.
SAMPLE = {
    ("jax", "eager"): {("graph_network", "float32")},
    ("jax", "compiled"): {
        *((name, "float64") for name in ("physics_network", "ode_fit", "maml", "mixture", "gan")),
        *((name, "float32") for name in ("vae", "reinforce", "transformer", "gaussian_process")),
        ("ode_fit", "float32"),
    },
    ("tensorflow", "eager"): {
        *((name, "float64") for name in PROGRAMS),
        ("graph_network", "float32"),
        ("gaussian_process", "float32"),
    },
    ("tensorflow", "compiled"): {("graph_network", "float32"), ("mixture", "float64")},
    ("torch", "compiled"): {("reinforce", "float32"), ("mixture", "float64"), ("maml", "float64")},
}


def cells():
    """Every backend, program, dtype and mode; NumPy has no compiler."""
    for backend in ("numpy", "jax", "tensorflow", "torch"):
        for mode in ("eager",) if backend == "numpy" else ("eager", "compiled"):
            for name in PROGRAMS:
                for dtype in LIMITS:
                    quick = (name, dtype) in SAMPLE.get((backend, mode), {(name, dtype)})
                    marks = () if quick else pytest.mark.slow
                    yield pytest.param(backend, mode, name, dtype, marks=marks)


@cache
def expected(name, dtype):
    return getattr(oracles, name)(dtype)


def kinds(nest):
    """Framework and dtype of each float array."""
    found = {(kind_of(x), dtype_of(x)) for x in tree.flatten_whole(nest)[0] if hasattr(x, "dtype")}
    return {(kind, dtype) for kind, dtype in found if "float" in dtype}


@pytest.mark.takes("torch compiles C++")
@pytest.mark.parametrize(("backend", "mode", "name", "dtype"), list(cells()), indirect=["backend"])
def test_a_program_ends_with_the_numbers_of_its_oracle(backend, mode, name, dtype):
    before = RUNS["programs"]
    with enable_x64(dtype == "float64"):  # float32 with JAX's default settings
        nest = PROGRAMS[name](backend, dtype, mode == "compiled")
        found = oracles.flat(nest)
    assert kinds(nest) == {(backend, dtype)}
    assert (RUNS["programs"] > before) == (mode == "compiled")
    wanted = expected(name, dtype)
    assert found.keys() == wanted.keys()
    worst = 0.0
    for part in {path.partition("/")[0] for path in wanted}:
        paths = [path for path in wanted if path.partition("/")[0] == part]
        scale = max(np.abs(wanted[path]).max() for path in paths)
        for path in paths:
            got, right = np.asarray(found[path]), np.asarray(wanted[path])
            assert got.shape == right.shape, path
            if right.dtype.kind in "iu":
                assert np.array_equal(got, right), path
            else:
                off = np.abs(got.astype(np.float64) - right).max() / scale
                assert off <= LIMITS[dtype], f"{path} is off by {off:.1e} of its scale"
                worst = max(worst, off)
    print(f"off by {worst:.1e}")  # shown by pytest -rP
