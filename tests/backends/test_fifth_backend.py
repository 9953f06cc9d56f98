"""A fifth backend in a package outside of `src`: array-api-strict, without gradients and without a
compiler (`tests/fifth_backend`).

It is installed into its own folder as a user would, and found by its entry point. The tests of the
other four (`pytest --backend`) check it against the contract and the oracles of the layers. All
this happens in other processes, so that this one keeps its four backends.
"""

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest
from frameworks import ABSENT, MISSING, strict

import isomorph as iso

NAME = "array_api_strict"
TESTS = Path(__file__).parents[1]
# Files that compare with no other framework run where none is installed. How many of their tests
# pass at least, by file.
ALONE = {
    "contract": {"backends/test_contract.py": 16},
    "edges": {
        "gradients/test_vmap.py": 5, "layers/test_attention_masks.py": 32,
        "layers/test_conv_edges.py": 1, "layers/test_conv_errors.py": 10,
        "layers/test_label_losses.py": 0,
    },
    "refusals": {"layers/test_out_of_range.py": 23, "layers/test_refusals.py": 46},
}  # fmt: skip
OTHERS = {
    "flow/test_flow.py": 11, "arrays/test_conversion.py": 99, "random/test_random.py": 66,
    "layers/test_activations.py": 2, "layers/test_attention.py": 16,
    "layers/test_counted_losses.py": 11, "layers/test_pooling.py": 2,
    "layers/test_recurrent.py": 1, "layers/test_values.py": 84,
}  # fmt: skip
WHOLE = {"backends/test_contract.py", "layers/test_values.py"}  # nothing is left out
LACKING = {
    "contract": set(), "edges": {"compile", "vjp"}, "refusals": {"vjp"},
    "others": {"compile", "float16", "quick", "vjp"},
}  # fmt: skip
# test_values.py checks the values of the grid
GRID = "tests/layers/test_conv_grid.py::test_the_whole_grid"
# Starts pytest as if no framework were installed, which also saves the time to import them.
HIDDEN = """
import sys
from importlib.machinery import PathFinder
there = PathFinder.find_spec
hidden = {"jax", "tensorflow", "torch"}
find = lambda cls, name, *more: None if name in hidden else there(name, *more)
PathFinder.find_spec = classmethod(find)
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """The environment of a process in which the fifth backend is installed."""
    if NAME in ABSENT:
        pytest.skip(MISSING.format(NAME))
    place = tmp_path_factory.mktemp("fifth")
    # a copy, because setuptools builds beside the sources
    source = shutil.copytree(
        TESTS / "fifth_backend", place / "source", ignore=shutil.ignore_patterns("__pycache__")
    )
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "install", "-q", *options, "--target", place / "site"]
    subprocess.run([*pip, source], check=True, timeout=60)
    paths = (place / "site", Path(iso.__file__).parents[1], os.environ.get("PYTHONPATH", ""))
    return os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}


def printed(installed, code):
    """The lines that a program prints."""
    head = "import numpy as np, isomorph as iso, array_api_strict as strict\n"
    run = [sys.executable, "-c", head + code]
    done = subprocess.run(run, env=installed, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def words_of(part):
    """How Python is called for a part of the suite."""
    if part in ALONE:
        return ["-c", HIDDEN, *(f"tests/{file}" for file in ALONE[part])]
    layers = [f"--ignore=tests/{file}" for files in ALONE.values() for file in files]
    beside = [f"tests/{file}" for file in OTHERS if not file.startswith("layers/")]
    return ["-m", "pytest", *beside, "tests/layers", *layers, f"--deselect={GRID}"]


@pytest.mark.takes("another process, with many tests")
@pytest.mark.parametrize("part", [*ALONE, "others"])
def test_the_suite_of_the_four(installed, tmp_path, part):
    """It computes the right values. Tests of gradients and compilation are skipped, with the
    reason.
    """
    report = tmp_path / "report.xml"
    run = [sys.executable, *words_of(part), "-n0", "--backend", NAME, f"--junitxml={report}"]
    done = subprocess.run(
        run, env=installed, cwd=TESTS.parent, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr
    passed, left_out, reasons = Counter(), set(), Counter()
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        skipped = case.find("skipped")
        file = case.get("classname").removeprefix("tests.").replace(".", "/") + ".py"
        if skipped is None:
            passed[file] += 1
        else:
            left_out.add(file)
            reasons[skipped.get("message")] += 1
    print(*(f"{file}: {count} passed" for file, count in sorted(passed.items())), sep="\n")
    print(*(f"{count} left out: {reason}" for reason, count in reasons.items()), sep="\n")
    assert all(reason.startswith(f"{NAME} has no ") for reason in reasons)
    assert {reason.split()[3].rstrip(":") for reason in reasons} == LACKING[part]
    assert not left_out & WHOLE
    for file, least in ALONE.get(part, OTHERS).items():
        assert passed[file] >= least, file


def test_it_is_found_by_its_entry_point(installed):
    """It is listed with its whole vocabulary, and arrays convert to it and back."""
    code = f"""
from isomorph.backends.vocabulary import FFT, LINALG, VOCABULARY
found = iso.backends()["{NAME}"]
print(found.version == strict.__version__, found.devices)
xp = iso.namespace(strict.zeros(2))
names = [(xp, n) for n in VOCABULARY] + [(xp.linalg, n) for n in LINALG]
print(xp, all(hasattr(room, n) for room, n in [*names, *((xp.fft, n) for n in FFT)]))
x = np.arange(6.0).reshape(2, 3)
there = iso.convert({{"x": [x, None]}}, "{NAME}")
print(type(there["x"][0]) is type(strict.zeros(0)), np.array_equal(iso.to_numpy(there)["x"][0], x))
moved = iso.convert(x, "{NAME}", device="device1")
print(iso.softmax(moved).device, np.array_equal(iso.convert(moved, "numpy"), x))
first, second = iso.random.split(iso.random.key(0, backend="{NAME}"))
print(*map(int, second), *map(int, iso.random.split(iso.random.key(0))[1]))
"""
    assert printed(installed, code) == [
        "True ('cpu', 'device1', 'device2')",
        f"<isomorph.{NAME}> True",
        "True True",
        f"{NAME}.Device('device1') True",
        "928981903 3453687069 928981903 3453687069",
    ]
    alone = f"""
from isomorph.cli import command
command.backends = lambda: {{"{NAME}": iso.backends()["{NAME}"]}}  # the others load for seconds
command.main(["doctor"])
"""
    row = printed(installed, alone)[-1]
    assert row.split() == [NAME, strict.__version__, "cpu,", "device1,", "device2"]


REFUSED = {
    "grad": (
        "iso.grad(lambda x: iso.namespace(x).sum(x))(x)",
        f"NotImplementedError backend {NAME} has no vjp: it keeps no record of what is computed; "
        "move the arrays with iso.convert to a backend that has one",
    ),
    "jit": (
        "iso.jit(lambda x: x * 2)(x)",
        f"NotImplementedError backend {NAME} has no compile: it has no compiler; "
        "move the arrays with iso.convert to a backend that has one",
    ),
    "quick": (
        f"iso.random.normal(iso.random.key(0, backend={NAME!r}), 3, exact=False)",
        f"NotImplementedError backend {NAME} has no quick: the array API standard has no random "
        "numbers; leave out exact=False",
    ),
    "two": (
        "iso.linear(x, np.ones((2, 3)))",
        f"TypeError arrays of 2 backends in one call: {NAME} ({NAME}._array_object.Array) and "
        "numpy (numpy.ndarray); move them with iso.convert first",
    ),
    "dtypes": (
        "iso.linear(x, strict.ones((2, 3), dtype=strict.float32))",
        "TypeError linear: needed x, weight and bias of the same dtype, got float64, float32",
    ),
    "half": (
        f"iso.zeros(2, dtype='float16', backend={NAME!r})",
        f"TypeError dtype: needed a dtype of {NAME} (bool, int8, int16, int32, int64, uint8, "
        "uint16, uint32, uint64, float32, float64, complex64, complex128), got 'float16'",
    ),
}


def test_what_it_cannot_do_says_so(installed):
    code = "x = strict.ones((2, 3))\n"
    for call, _ in REFUSED.values():
        code += f"try: {call}\nexcept Exception as error: print(type(error).__name__, error)\n"
    assert printed(installed, code) == [words for _, words in REFUSED.values()]


def test_where_its_package_is_not_installed_it_is_no_backend():
    with pytest.raises(TypeError, match=f"no backend handles {NAME}.*tensorflow or torch$"):
        iso.namespace(strict.zeros(2))
    with pytest.raises(ValueError, match=f"no backend is called '{NAME}'"):
        iso.use_backend(NAME).__enter__()
    assert NAME not in iso.backends()
