"""The adapters of examples/adapters, on problems of the libraries that they are for."""

import json
import os
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
ADAPTERS = HERE.parents[1] / "examples" / "adapters"
PROBLEMS = (
    "emd2", "sinkhorn2", "sinkhorn_log", "unbalanced", "dist", "wasserstein_1d", "sliced", "bures",
    "barycenter", "gromov",
)  # fmt: skip
ON_MANIFOLDS = ("subspace", "sphere", "low_rank", "covariance")
on_host = pytest.mark.host_only("both libraries compute with NumPy between our calls")


# Without these words POT imports all frameworks, for backends of its own.
ALONE = {f"POT_BACKEND_DISABLE_{name}": "1" for name in ("JAX", "PYTORCH", "TENSORFLOW")}


@pytest.fixture(scope="module")
def pot():
    with pytest.MonkeyPatch.context() as patch:
        for word, value in ALONE.items():
            patch.setenv(word, value)
        return import_module("adapters.pot_problems")


@pytest.fixture(scope="module")
def manifolds():
    """Imported while the frameworks are out of sight: pymanopt would import them all for backends
    of its own, and turn on JAX's 64 bits for the whole process.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in ("autograd", "jax", "tensorflow", "torch"):
            patch.setitem(sys.modules, name, None)
        return import_module("adapters.pymanopt_problems")


def is_as_pots_own(result, pot, name):
    """The value as POT's own; the gradient as differences of it, NumPy's too, which POT lacks."""
    value, grad = result
    wanted = pot.own_result(name)
    np.testing.assert_allclose(value, wanted[0], rtol=1e-9, err_msg=name)
    if name == "emd2":  # the costs of other plans are the same on a face: compare there
        assert np.sum(grad) == pytest.approx(1.0)
    # 2e-6: central differences of sums that were iterated to 1e-13
    np.testing.assert_allclose(grad, wanted[1], atol=2e-6, err_msg=name)


def of_another_process():
    """Results by problem from a process in which TensorFlow's tensors have methods as NumPy's."""
    done = subprocess.run(
        [sys.executable, str(HERE / "pot_problems.py")], capture_output=True, text=True,
        check=False, timeout=400, env={**os.environ, **ALONE, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULTS ")]
    assert lines, done.stderr[-3000:]
    return json.loads(lines[0].removeprefix("RESULTS "))


@on_host
@pytest.mark.filterwarnings("ignore:The use of `x.T`")  # of POT, about a vector of torch
@pytest.mark.parametrize(
    ("backend", "name"),
    [
        *((backend, name) for backend in ("numpy", "jax", "torch") for name in PROBLEMS),
        ("tensorflow", "all"),
    ],
    indirect=["backend"],
)
def test_pot_on_every_framework(backend, pot, name, monkeypatch):
    if name == "all":
        found = of_another_process()
        assert tuple(found) == PROBLEMS
    else:
        pot.own_result(name)  # before our backend is installed
        own = list(pot.ot.backend._BACKEND_IMPLEMENTATIONS)
        monkeypatch.setattr(pot.ot.backend, "_BACKEND_IMPLEMENTATIONS", own)
        pot.pot_backend.install()
        found = {name: pot.our_result(backend, name)}
    for name, result in found.items():
        is_as_pots_own(result, pot, name)


def test_every_problem_is_solved(pot, manifolds):
    assert tuple(pot.PROBLEMS) == PROBLEMS
    assert tuple(manifolds.PROBLEMS) == ON_MANIFOLDS


@on_host
@pytest.mark.filterwarnings("ignore:invalid value encountered in sqrt")  # at the end of its steps
@pytest.mark.parametrize("name", ON_MANIFOLDS)
def test_pymanopt_on_every_framework(backend, manifolds, name):
    """The least costs are known: sums of eigenvalues, singular values, a likelihood."""
    wanted = float(manifolds.PROBLEMS[name][-1])
    assert manifolds.least_cost(backend, name) == pytest.approx(wanted, rel=1e-9)


def lines_of(path):
    """Lines of code, without comments, blank lines and docstrings at the start of a line."""
    text, inside, count = path.read_text(), False, 0
    for line in map(str.strip, text.splitlines()):
        quotes = line.count('"""')
        if not inside and line and not line.startswith(("#", '"""', 'r"""')):
            count += 1
        if quotes % 2:
            inside = not inside
    return count


def package(name):
    return Path(find_spec(name).origin).parent


def test_the_adapters_are_shorter_than_what_they_replace():
    theirs = sum(
        lines_of(package("pymanopt") / "autodiff" / "backends" / f"_{name}.py")
        for name in ("autograd", "jax", "pytorch", "tensorflow")
    )
    assert lines_of(ADAPTERS / "pymanopt_backend.py") < theirs / 5
    assert lines_of(ADAPTERS / "pot_backend.py") < lines_of(package("ot") / "backend.py") / 5
