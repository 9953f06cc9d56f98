"""The adapters of examples/adapters, on problems of the libraries that they are for."""

import json
import os
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from frameworks import BACKENDS, NOT_INSTALLED

HERE = Path(__file__).parent
ADAPTERS = HERE.parents[1] / "examples" / "adapters"
FRAMEWORKS = [name for name in BACKENDS if name not in NOT_INSTALLED]


@cache
def results(program):
    """What a program of this folder prints, for all frameworks."""
    done = subprocess.run(
        [sys.executable, str(HERE / program), *FRAMEWORKS], capture_output=True, text=True,
        check=False, timeout=400, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULTS ")]
    assert lines, done.stderr[-3000:]
    return json.loads(lines[0].removeprefix("RESULTS "))


def test_pot_on_every_framework():
    """Values as POT's own; gradients as differences of them, NumPy's too, which POT lacks."""
    found = results("pot_problems.py")
    wanted = found.pop("POT")
    assert list(found) == FRAMEWORKS
    for framework, problems in found.items():
        for name, (value, grad) in problems.items():
            said = f"{framework}, {name}"
            np.testing.assert_allclose(value, wanted[name][0], rtol=1e-9, err_msg=said)
            if name == "emd2":  # the costs of other plans are the same on a face: compare there
                assert np.sum(grad) == pytest.approx(1.0), said
            # 2e-6: central differences of sums that were iterated to 1e-13
            np.testing.assert_allclose(grad, wanted[name][1], atol=2e-6, err_msg=said)


def test_pymanopt_on_every_framework():
    """The least costs are known: sums of eigenvalues, singular values, a likelihood."""
    found = results("pymanopt_problems.py")
    wanted = found.pop("wanted")
    assert list(found) == FRAMEWORKS
    for framework, problems in found.items():
        for name, cost in problems.items():
            assert cost == pytest.approx(wanted[name], rel=1e-9), f"{framework}, {name}"


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
