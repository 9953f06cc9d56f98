"""Both models of the demo, in full: all backends have NumPy's loss curves."""

import importlib.util
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from frameworks import enable_x64

ROOT = Path(__file__).parent.parent.parent


@cache
def demo():
    spec = importlib.util.spec_from_file_location("demo", ROOT / "examples" / "demo.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def trained(name, backend, dtype, compiled=None):
    """The losses of every step, and the final accuracy. torch takes a minute per program, so it
    runs eagerly unless asked to compile.
    """
    task = next(t for t in demo().tasks() if t[0] == name)
    compiled = backend != "torch" if compiled is None else compiled
    with TemporaryDirectory() as folder, enable_x64(True):
        done = demo().train(task, backend, dtype, Path(folder), False, compiled)[0]
    return done.losses, done.history[-1]["validation"]["accuracy"]


@pytest.mark.takes("XLA compiles it")
@pytest.mark.parametrize("name", ["digits", pytest.param("letters", marks=pytest.mark.slow)])
def test_loss_curves_are_those_of_numpy(backend, name):
    losses, accuracy = trained(name, backend, "float64")
    wanted, accurate = trained(name, "numpy", "float64")
    assert len(losses) == len(wanted) >= 150
    assert losses[-1] < 0.7 * losses[0]
    assert abs(accuracy - accurate) <= 0.005
    # rounding errors of 1e-16 grow over the steps
    assert max(abs(a - b) for a, b in zip(losses, wanted)) < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_torchs_program_gives_its_eager_curve(backend):
    losses, _ = trained("digits", backend, "float64", compiled=True)
    wanted, _ = trained("digits", backend, "float64")
    assert max(abs(a - b) for a, b in zip(losses, wanted)) < 1e-8


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("jax", "tensorflow")]


@pytest.mark.takes("torch compiles C++")
@pytest.mark.parametrize("other", ["torch", *SLOW])  # torch compiles nothing here
def test_loss_curves_in_float32(other):
    losses, accuracy = trained("digits", other, "float32")
    wanted, accurate = trained("digits", "numpy", "float32")
    assert max(abs(a - b) for a, b in zip(losses[:100], wanted)) < 1e-3  # rounding of 1e-7 per step
    assert accuracy > 0.85  # the test digits have other writers
    assert abs(accuracy - accurate) <= 0.005


# The whole demo with less data and one epoch.
SHORT = """
import runpy, sys
ran = runpy.run_path(sys.argv[1])
tasks = ran["tasks"]
few = lambda part: tuple(x[:200] for x in part)
cut = lambda name, make, data, held, epochs, size: (name, make, few(data), held, 1, size)
ran["main"].__globals__["tasks"] = lambda: [cut(*task) for task in tasks()]
sys.argv[:] = sys.argv[1:]
sys.exit(ran["main"]())
"""


def demo_run(*args, folder, begin=()):
    return subprocess.run(
        [sys.executable, *begin, ROOT / "examples" / "demo.py", *args, "--out", folder],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip


@pytest.mark.takes("it starts another process")
@pytest.mark.parametrize("only", ["numpy"])
@pytest.mark.parametrize("epochs", [1, pytest.param(8, marks=pytest.mark.slow)])
def test_the_demo_as_it_is_run(only, epochs, tmp_path):
    done = demo_run(only, folder=tmp_path, begin=("-c", SHORT) if epochs == 1 else ())
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^numpy +([\d.]+) +([\d.]+) %", done.stdout, re.M)
    assert len(rows) == 2
    if epochs == 8:
        losses, accuracy = trained("digits", "numpy", "float32")
        assert rows[0] == (f"{losses[-1]:.4f}", f"{100 * accuracy:.1f}")
    assert f"epoch {epochs}/{epochs}" in done.stderr
    for name in ("digits", "letters"):
        assert f"{name}.svg" in done.stdout
        assert (tmp_path / f"{name}.svg").read_text().rstrip().endswith("</svg>")


@pytest.mark.parametrize(("good", "given"), [("numpy", "fortran"), ("numpy", "torch2")])
def test_the_demo_refuses_what_it_does_not_know(good, given, tmp_path):
    done = demo_run(good, given, folder=tmp_path)
    assert done.returncode == 2
    assert f"needed backends out of numpy, jax, tensorflow, torch, got {given}" in done.stderr
