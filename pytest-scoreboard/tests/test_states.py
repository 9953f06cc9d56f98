"""One test per state, alone and with two workers; what a project need not configure, and what it
can.
"""

import pytest

from pytest_scoreboard.states import BY_WORD, STATES, red, worst

from .conftest import needs

TESTS = """
import os, time
import pytest
from numpy.testing import assert_allclose
import numpy as np
from helpers_of_mine import check

@pytest.fixture(params=["numpy", "jax"])
def backend(request):
    return request.param

@pytest.fixture
def broken_before():
    raise RuntimeError("no setup")

@pytest.fixture
def broken_after():
    yield
    raise RuntimeError("no teardown")

COUNT = {}

def test_passed(backend): assert backend
def test_hollow(backend): pass
def test_hollow_by_return(backend):
    if backend == "numpy":
        return
    assert backend
def test_helper_in_a_file(backend): check(backend)
def test_helper_of_numpy(backend):
    assert_allclose(np.float32(1) + np.spacing(np.float32(1)), 1.0, 1e-5)
def test_raises(backend):
    with pytest.raises(ValueError, match="so"):
        raise ValueError("so")
def test_failed(backend): assert backend == "jax"
def test_setup(backend, broken_before): assert True
def test_teardown(backend, broken_after): assert True
def test_skipped(backend): pytest.skip("for a reason")
@pytest.mark.xfail(reason="known")
def test_xfailed(backend): assert False
@pytest.mark.xfail(strict=True)
def test_xpassed_strict(backend): assert True
@pytest.mark.xfail
def test_xpassed(backend): assert True
@pytest.mark.timeout(1)
def test_timeout(backend):
    while backend == "jax":
        time.sleep(0.05)
    assert True
@pytest.mark.flaky(reruns=2)
def test_rerun(backend):
    COUNT[backend] = COUNT.get(backend, 0) + 1
    assert COUNT[backend] == 2
@pytest.mark.parametrize("n", [1, 2])
def test_variants(backend, n): assert n == 1
"""
EXPECTED = {
    "test_passed": ("passed", "passed"),
    "test_hollow": ("hollow", "hollow"),
    "test_hollow_by_return": ("hollow", "passed"),
    "test_helper_in_a_file": ("passed", "passed"),
    "test_helper_of_numpy": ("passed", "passed"),
    "test_raises": ("passed", "passed"),
    "test_failed": ("failed", "passed"),
    "test_setup": ("error", "error"),
    "test_teardown": ("error", "error"),
    "test_skipped": ("skipped", "skipped"),
    "test_xfailed": ("xfailed", "xfailed"),
    "test_xpassed_strict": ("xpassed", "xpassed"),
    "test_xpassed": ("xpassed", "xpassed"),
    "test_timeout": ("passed", "timeout"),
    "test_rerun": ("passed", "passed"),
}


@needs("numpy", "pytest_timeout", "pytest_rerunfailures")
def test_every_state(project):
    write(project, "")
    check(project, project.run(*OPTIONS), "", 17)


OPTIONS = ["-p", "pytest_timeout", "-p", "pytest_rerunfailures", "--scoreboard-fail-on",
           "hollow,xpassed", "--continue-on-collection-errors"]  # fmt: skip


def write(project, folder):
    project.file(f"{folder}test_it.py", TESTS)
    project.file(f"{folder}helpers_of_mine.py", "def check(x): assert x\n")
    project.file(f"{folder}test_not.py", "import nothing_of_that_name\n")


def check(project, done, folder, total):
    assert done.ret != 0
    states = project.states(file=f"{folder}test_it.py")
    for name, (on_numpy, on_jax) in EXPECTED.items():
        assert (states[name, "", "numpy"], states[name, "", "jax"]) == (on_numpy, on_jax), name
    assert [states["test_variants", n, "jax"] for n in "12"] == ["passed", "failed"]
    rows = project.query(
        "SELECT name, attempts, asserts, value_error, message FROM result JOIN cell USING (cell)"
        " JOIN test USING (test) LEFT JOIN detail USING (detail)"
        " LEFT JOIN retry ON retry.run = result.run AND retry.cell = result.cell"
    )
    by_name = {row[0]: row[1:] for row in rows}
    assert by_name["test_rerun"][0] == 2
    assert by_name["test_helper_of_numpy"][1:3] == (1, 1000)  # one assertion, one ulp
    assert by_name["test_skipped"][3] == "for a reason"
    assert by_name["test_hollow"][1] == 0
    (broken,) = project.query("SELECT file, message FROM broken JOIN detail USING (detail)")
    assert broken[0] == f"{folder}test_not.py"
    assert "nothing_of_that_name" in broken[1]
    out = done.stdout.str()
    assert f"numpy {total}/{total}:" in out, out
    assert f"hollow: {folder}test_it.py::test_hollow[jax]" in out


def test_the_worst_speaks_and_who_must_act():
    """Every state once, from best to worst; which ones are red, and who must act."""
    ranked = ["not sampled", "passed", "missing", "skipped", "xfailed", "not run", "hollow",
              "xpassed", "not collected", "failed", "error", "timeout", "crashed"]  # fmt: skip
    codes = [BY_WORD[word].code for word in ranked]
    assert len(STATES) == len(ranked)
    for i, code in enumerate(codes):
        assert worst(codes[: i + 1]) == worst(codes[i::-1]) == code
    assert [word for word in ranked if red(BY_WORD[word].code)] == ranked[6:]
    assert len({state.glyph for state in STATES}) == len({s.code for s in STATES}) == len(STATES)


@needs("numpy")
def test_a_file_that_cannot_be_collected_any_more(project):
    project.file(
        "test_it.py", TESTS.split("COUNT = {}")[0] + "def test_a(backend): assert backend\n"
    )
    project.file("helpers_of_mine.py", "def check(x): assert x\n")
    assert project.run().ret == 0
    project.file("test_it.py", "import nothing_of_that_name\n")
    assert project.run().ret != 0
    assert project.states() == {
        ("test_a", "", "numpy"): "not collected",
        ("test_a", "", "jax"): "not collected",
    }


def test_a_backend_that_does_not_load_is_one_banner(project):
    project.file(
        "test_it.py",
        "import pytest\n"
        "@pytest.fixture(params=['json', 'no_such_backend'])\n"
        "def xp(request): return __import__(request.param)\n"
        "def test_a(xp): assert xp\n"
        "def test_b(xp): assert xp\n",
    )
    assert project.run().ret == 1
    done = project.command("render", "md", "-o", "out")
    assert done.ret == 0, done.stderr.str()
    index = (project.path / "out" / "README.md").read_text()
    assert "no_such_backend does not load" in index
    assert "INCOMPLETE" in index
    board = project.command("render", "json", "-o", "out")
    assert board.ret == 0
    import json

    cells = json.loads((project.path / "out" / "scoreboard.json").read_text())["cells"]
    states = {(c["test"], c["backend"]): c["state"] for c in cells}
    assert states == {
        ("test_a", "json"): "passed",
        ("test_b", "json"): "passed",
        ("test_a", "no_such_backend"): "not run",
        ("test_b", "no_such_backend"): "not run",
    }


@needs("numpy")
def test_modes_errors_axis_and_ledger(project):
    project.file(
        "pyproject.toml",
        "[tool.scoreboard]\n"
        'default_mode = "eager"\nobserved = ["jit"]\nmodes = { compiled = "jit" }\n'
        'suites = { "tests/test_it.py" = "A suite" }\n',
    )
    project.file(
        "scoreboard.toml",
        '[[expected]]\nsuite = "A suite"\ntest = "test_known"\nbackend = "b"\nreason = "why"\n'
        'since = "2026-11-01"\n'
        '[[expected]]\nsuite = "A suite"\ntest = "test_repaired"\nbackend = "b"\nreason = "why"\n'
        'since = "2026-11-01"\n',
    )
    project.file(
        "tests/test_it.py",
        "import pytest\n"
        "from pytest_scoreboard import comparing, record_mode\n"
        "both = pytest.mark.parametrize('engine', ['a', 'b'])\n"
        "@both\n"
        "@pytest.mark.parametrize('mode', ['eager', 'compiled'])\n"
        "def test_modes(engine, mode):\n"
        "    if mode == 'compiled' and engine == 'b': record_mode('jit')\n"
        "    assert mode\n"
        "@both\n"
        "@pytest.mark.mode('vmap')\n"
        "def test_marked(engine): assert engine\n"
        "@both\n"
        "def test_errors(engine, scoreboard_error, record_property):\n"
        "    import numpy as np\n"
        "    scoreboard_error(np.float64(1.0), 1.0 + 4.5e-16)\n"
        "    with comparing('gradient'):\n"
        "        np.testing.assert_allclose(np.float64(1.0), 1.0 + 2.3e-16)\n"
        "    record_property('mode', 'float64')\n"
        "    assert engine\n"
        "@both\n"
        "def test_known(engine): assert engine == 'a'\n"
        "@both\n"
        "def test_repaired(engine): assert engine\n",
    )
    done = project.run("--scoreboard-axis", "engine", "--scoreboard-fail-on", "xpassed", "tests")
    assert done.ret == 1
    assert "xpassed: tests/test_it.py::test_repaired[b]" in done.stdout.str()
    rows = project.query(
        "SELECT suite, test.name, variant, backend.name, mode, value_error, gradient_error"
        " FROM result JOIN cell USING (cell) JOIN test USING (test) JOIN backend USING (backend)"
    )
    assert {row[0] for row in rows} == {"A suite"}
    modes = {(name, variant, backend): mode for _, name, variant, backend, mode, *_ in rows}
    assert modes["test_modes", "eager", "a"] == "eager"
    assert modes["test_modes", "compiled", "b"] == "jit"
    assert modes["test_modes", "compiled", "a"] == "eager"  # no compiled program ran
    assert modes["test_marked", "", "a"] == "vmap"
    both = {row[4]: row[5:] for row in rows if row[1:4] == ("test_errors", "", "a")}
    assert both == {"eager": (2000, 1000), "float64": (2000, 1000)}
    states = project.states()
    assert states["test_known", "", "b"] == "xfailed"
    assert states["test_repaired", "", "b"] == "xpassed"
    assert states["test_repaired", "", "a"] == "passed"


def test_regressed_fails_the_run_and_nothing_else_does(project, monkeypatch):
    text = (
        "import pytest, os\n"
        "@pytest.mark.parametrize('backend', ['a', 'b'])\n"
        "def test_it(backend):\n"
        "    if os.environ.get('SKIP'): return\n"
        "    assert backend\n"
    )
    project.file("test_it.py", text)
    assert project.run("--scoreboard-fail-on", "regressed", "test_it.py").ret == 0
    monkeypatch.setenv("SKIP", "1")
    done = project.run("--scoreboard-fail-on", "regressed")
    assert done.ret == 1
    assert "regressed: test_it.py test_it [a] passed -> hollow" in done.stdout.str()
    assert project.run().ret == 0  # hollow tests fail the run only with the option
    wrong = project.run("--scoreboard-fail-on", "sunshine")
    assert wrong.ret != 0
    assert "needed regressed, hollow or xpassed" in wrong.stderr.str() + wrong.stdout.str()


@needs("numpy")
def test_assertions_of_other_kinds(project):
    """unittest's methods, a check imported by name in a conftest, operands passed by name."""
    project.file(
        "conftest.py",
        "import pytest\n"
        "from pytest import raises\n"
        "@pytest.fixture\n"
        "def check():\n"
        "    def run():\n"
        "        with raises(ValueError): raise ValueError\n"
        "    return run\n",
    )
    project.file(
        "test_it.py",
        "import unittest, numpy as np\n"
        "class TestOld(unittest.TestCase):\n"
        "    def test_equal(self): self.assertEqual(1, 1)\n"
        "    def test_raises(self):\n"
        "        with self.assertRaises(ValueError): raise ValueError\n"
        "    def test_nothing(self): pass\n"
        "def test_taken(check): check()\n"
        "def test_named():\n"
        "    np.testing.assert_allclose(desired=1.0 + 2.3e-16, actual=np.float64(1.0))\n",
    )
    assert project.run().ret == 0
    assert {name: word for (name, *_), word in project.states().items()} == {
        "TestOld::test_equal": "passed",
        "TestOld::test_raises": "passed",
        "TestOld::test_nothing": "hollow",
        "test_taken": "passed",
        "test_named": "passed",
    }
    assert project.query("SELECT value_error FROM result WHERE value_error > 0") == [(1000,)]


@pytest.mark.parametrize("how", ["--assert=plain", "-pno:assertion"])
def test_where_nobody_counts_nothing_is_hollow(project, how):
    project.file("test_it.py", "def test_it(): pass\n")
    done = project.run(how)
    assert done.ret == 0, done.stderr.str()
    assert project.states() == {("test_it", "", ""): "passed"}
    assert project.query("SELECT asserts FROM result") == [(None,)]
