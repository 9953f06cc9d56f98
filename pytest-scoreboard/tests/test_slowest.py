"""What took longest: at the end of a run, and by `scoreboard slowest`."""

import json

import pytest

from pytest_scoreboard.command import main
from pytest_scoreboard.store import Result, Store

# The durations of the reports are set by hand: real ones depend on what else the machine does.
DURATIONS = """
import pytest

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    n, backend = item.callspec.params["n"], item.callspec.params["backend"]
    report.duration = 0.01 * n * (1 + (backend == "b")) if call.when == "call" else 0.0
"""
TIMED = """
import pytest

@pytest.mark.parametrize("backend", ["a", "b"])
@pytest.mark.parametrize("n", range(1, 7))
def test_it(backend, n):
    assert True
"""


def test_a_run_ends_with_its_ten_slowest_tests(project):
    project.file("conftest.py", DURATIONS)
    project.file("test_it.py", TIMED)
    lines = project.run().stdout.lines
    first = lines.index("slowest tests:") + 1
    shown = [line.split() for line in lines[first:] if line.endswith("]")]
    times = {f"test_it.py::test_it[{n}-{b}]": 0.01 * n * (1 + (b == "b"))
             for n in range(1, 7) for b in "ab"}  # fmt: skip
    known = sorted(times.values(), reverse=True)[:10]
    assert [words[:2] for words in shown] == [[f"{seconds:.2f}", "s"] for seconds in known]
    assert all(abs(times[words[2]] - float(words[0])) < 1e-9 for words in shown)
    assert len({words[2] for words in shown}) == 10


def fill(path):
    """Two runs; in the second, a test ran in two modes, and one has no known time."""
    with Store(path) as store:
        for key, scale in (("one", 1.0), ("two", 2.0)):
            run = store.begin(key, "local", started=f"2026-11-1{len(key)}T00:00:00Z{key}")
            job = store.job(run, "main", complete=1)
            for file, name, backend, mode, seconds in (
                ("t.py", "test_a", "jax", "eager", 1000.0),
                ("t.py", "test_a", "jax", "jit", 1000.0),
                ("t.py", "test_a", "numpy", "eager", 0.25),
                ("u.py", "test_b", "jax", "", 99.75),
                ("u.py", "test_b", "", "", 900.0),
                ("u.py", "test_c", "jax", "", None),
            ):
                seconds = None if seconds is None else seconds * scale
                store.add(run, job, [Result(file, name, "", file, backend, mode, backend, 0,
                                            duration=seconds)])  # fmt: skip


def test_cells_files_and_backends_by_time(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    fill(".scoreboard/board.db")

    def said(*args):
        assert main(["slowest", *args]) == 0
        return capsys.readouterr().out.splitlines()

    assert said("-n", "2") == [
        "run 2, by cell:",
        "   seconds    share   cells  cell",
        "  2,000.00   50.0 %       1  t.py::test_a[jax]",
        "  1,800.00   45.0 %       1  u.py::test_b",
        "  3,800.00   95.0 %       2  these together",
        "  4,000.00  100.0 %       4  the whole run",
    ]
    assert said("--by", "backend", "--run", "one") == [
        "run 1, by backend:",
        "   seconds    share   cells  backend",
        "  1,099.75   55.0 %       2  jax",
        "    900.00   45.0 %       1  no backend",
        "      0.25    0.0 %       1  numpy",
        "  2,000.00  100.0 %       4  the whole run",
    ]
    assert [line.split()[0::4] for line in said("--by", "file", "--run", "previous")[2:4]] == [
        ["1,000.25", "t.py"], ["999.75", "u.py"],
    ]  # fmt: skip


def test_what_cannot_be_listed_says_what_there_is(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    fill(".scoreboard/board.db")
    with Store(".scoreboard/board.db") as store:
        run = store.begin("table", "import", started="2026-12-01T00:00:00Z")
        store.add(run, store.job(run, "main"), [Result("s", "test_a", "", "", "a", "", "", 0)])
    for args, why in (
        (["--run", "7"], "needed a run, latest or previous; got 7; runs: 1, 2, 3"),
        ([], "slowest: needed a run with recorded times, got run 3 without any"),
        (["--run", "1", "-n", "0"], "slowest: needed a count of at least 1 for -n, got 0"),
    ):
        assert main(["slowest", *args]) == 2
        assert why in capsys.readouterr().err
    with pytest.raises(SystemExit) as exit:
        main(["slowest", "--by", "colour"])
    assert exit.value.code == 2
    assert "choose from" in (error := capsys.readouterr().err)
    assert all(word in error for word in ("cell", "file", "backend"))


IDS = """
def pytest_collection_finish(session):
    open("ids.txt", "w").write("\\n".join(item.nodeid for item in session.items))
"""
NAMED = """
import unittest
import pytest
from pytest_scoreboard import record_mode

class TestGroup:
    class TestInner:
        @pytest.mark.parametrize("backend", ["a", "b"])
        @pytest.mark.parametrize("text", ["x[1]", "", "a::b", "-", "e\\u0301"])
        def test_deep(self, backend, text):
            record_mode("jit"), record_mode("vmap")
            assert backend

class TestOld(unittest.TestCase):
    def test_old(self): self.assertEqual(1, 1)

@pytest.mark.parametrize("text", ["", "b"])
def test_alone(text): assert text != 1
@pytest.mark.parametrize(("text", "backend"), [("", "a")])
def test_first_is_empty(backend, text): assert backend
def test_plain(): assert True
"""


def test_the_ids_are_those_of_pytest(project):
    """Also those of tests that have moved, or whose parameters have another order now."""
    project.file("conftest.py", IDS)
    project.file("pyproject.toml", '[tool.scoreboard]\nsuites = {"tests/test_it.py" = "S"'
                 ', "checks/test_it.py" = "S"}\n')  # fmt: skip
    path = project.file("tests/test_it.py", NAMED)
    for now in ("tests", "checks"):
        assert project.run(now).ret == 0
        done = project.command("slowest", "--json", "-")
        assert done.ret == 0
        seconds = json.loads(done.stdout.str())
        assert sorted(seconds) == sorted((project.path / "ids.txt").read_text().split("\n"))
        assert list(seconds) == sorted(seconds)
        assert len(seconds) == 15
        assert all(0 <= s < 5 and round(s, 2) == s for s in seconds.values())
        project.file("checks/test_it.py", path.read_text().replace(
            '''        @pytest.mark.parametrize("backend", ["a", "b"])
        @pytest.mark.parametrize("text", ["x[1]", "", "a::b", "-", "e\\u0301"])
''', '''        @pytest.mark.parametrize("text", ["x[1]", "", "a::b", "-", "e\\u0301"])
        @pytest.mark.parametrize("backend", ["a", "b"])
'''))  # fmt: skip
    assert project.command("slowest", "--json", "times.json").stdout.lines == ["times.json"]
    assert json.loads((project.path / "times.json").read_text()) == seconds
