"""Trouble around a run: concurrent writers, damaged files, text that is not text, wrong settings,
no tests.
"""

import sqlite3
import subprocess

import pytest

from pytest_scoreboard import completeness
from pytest_scoreboard.command import main
from pytest_scoreboard.merge import merge
from pytest_scoreboard.store import Planned, Result, Store

ONE = """
import pytest
@pytest.mark.parametrize("backend", ["a", "b"])
def test_it(backend): assert backend
"""


def result(name, state=0, backend="a", **more):
    return Result("s", name, "", "t.py", backend, "", backend, state, **more)


def test_two_processes_write_one_file(tmp_path):
    """Names that the other process stored first, runs begun at the same time, and a
    cell of both.
    """
    path = tmp_path / "board.db"
    with Store(path) as one, Store(path) as two:
        for store in (one, two):  # both cache the empty table
            store._learn("backend", {("nobody",): ()})
            store.db.commit()
        runs = []
        for store in (one, two):
            runs.append(store.begin(str(id(store)), "local"))
            job = store.job(runs[-1], "main", complete=1)
            store.add(
                runs[-1], job, [result("test_a"), result("test_b", 1, detail=("E", "m", "t"))]
            )
            store.db.commit()
        assert runs == [1, 2]
        for store in (one, two):
            assert store.begin("shared", "local") == 3
            store.db.commit()
        # the process that began the run adds last, and a better state
        for store, state in ((two, 1), (one, 0)):
            store.add(3, store.job(3, "main"), [result("test_a", state), result("test_b")])
            store.db.commit()
        found = one.db.execute("SELECT run, state FROM result ORDER BY run, cell").fetchall()
    assert [tuple(row) for row in found] == [(1, 0), (1, 1), (2, 0), (2, 1), (3, 1), (3, 0)]


def test_a_file_that_is_locked_for_a_while_loses_nothing(project):
    project.file("test_it.py", ONE.replace("assert", "import time; time.sleep(0.6); assert"))
    project.file(
        "conftest.py",
        "import sqlite3\n"
        "from pytest_scoreboard.store import Store\n"
        "add, refused = Store.add, []\n"
        "def locked(self, *args):\n"
        "    add(self, *args)\n"
        "    if not refused:\n"
        "        refused.append(1)\n"
        "        raise sqlite3.OperationalError('database is locked')\n"
        "Store.add = locked\n"
        "def pytest_sessionfinish(): assert refused\n",
    )
    done = project.run()
    assert done.ret == 0, done.stdout.str()
    assert "warning" not in done.stdout.str()
    assert project.states() == {("test_it", "", b): "passed" for b in "ab"}


def test_a_file_that_cannot_be_written_fails_the_run_in_words(project):
    project.file("test_it.py", ONE)
    project.file(
        "conftest.py",
        "import sqlite3\n"
        "from pytest_scoreboard.store import Store\n"
        "def full(self, *args): raise sqlite3.OperationalError('database or disk is full')\n"
        "Store.add = full\n",
    )
    done = project.run()
    assert done.ret == 1
    assert "board.db: database or disk is full" in done.stdout.str()
    assert project.command("check", "--complete").ret == 3


def test_text_that_is_no_text(project):
    project.file(
        "test_it.py",
        ONE + 'def test_half(): raise ValueError("half \\ud800 a pair")\n'
        "@pytest.mark.parametrize('backend', ['\\ud800'])\n"
        "def test_name(backend): assert 1\n",
    )
    assert project.run().ret == 1
    states = project.states()
    assert states["test_half", "", ""] == "failed"
    assert [key[2] for key in states if key[0] == "test_name"] == ["\\ud800"]
    (message,) = project.query("SELECT message FROM detail")
    assert message == ("ValueError: half \\ud800 a pair",)
    assert project.command("render", "html", "-o", "out").ret == 0


def test_files_that_are_no_scoreboards(project, capsys):
    text = project.file("text.db", "this is not a database, only its name is " * 9)
    other, old, empty = (project.path / f"{name}.db" for name in ("other", "old", "empty"))
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE mine (a)")
    Store(old).close()
    with sqlite3.connect(old) as db:
        db.execute("PRAGMA user_version = 7")
    empty.touch()
    project.file("test_it.py", ONE)
    for path, why in (
        (text, "file is not a database"),
        (other, "needed a scoreboard's database, "),
        (old, "needed schema 1, "),
        (project.path, "unable to open database file"),
    ):
        done = project.run(f"--scoreboard={path}")
        assert done.ret == 4
        assert why in done.stderr.str()
        assert "INTERNALERROR" not in done.stdout.str() + done.stderr.str()
        if path.is_file():
            assert main(["--db", str(path), "check"]) == 2
            assert why in capsys.readouterr().err
            assert main(["merge", str(project.path / "out.db"), str(path)]) == 2
            assert why in capsys.readouterr().err
    assert main(["--db", str(empty), "check"]) == 2
    assert "found none at" in capsys.readouterr().err
    assert empty.stat().st_size == 0
    with sqlite3.connect(other) as db:
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("mine",)]


EXPECTED = (
    '[[expected]]\nsuite = "s"\ntest = "t"\nbackend = "a"\nreason = "r"\nsince = "2026-11-01"\n'
)


def test_the_ledger_forgets_only_what_passes(tmp_path, capsys, monkeypatch):
    """Skipped tests, uncollected tests and other variants are no reason to remove an entry."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "scoreboard.toml"
    for i, (variant, state, left) in enumerate([
        ("1", 3, ["1"]),  # skipped
        ("1", 8, ["1"]),  # not collected
        ("2", 0, ["1"]),  # another variant
        ("1", 5, []),  # an unexpected pass
    ]):  # fmt: skip
        path.write_text(EXPECTED + 'variant = "1"\n')
        with Store(".scoreboard/board.db") as store:
            run = store.begin(f"{i}", "local", started=f"2026-11-15T10:00:0{i}Z")
            where = ("s", "t", variant, "t.py", "a", "", "")
            store.add(run, store.job(run, "main"), [Result(*where, state)])
        assert main(["ledger"]) == 0
        assert path.read_text().count("[[expected]]") == len(left)
    path.write_text(EXPECTED)  # for all variants, of which one passes now
    with Store(".scoreboard/board.db") as store:
        run = store.begin("mixed", "local", started="2026-11-15T10:00:09Z")
        for variant, state in (("1", 4), ("2", 5), ("3", 4)):
            where = ("s", "t", variant, "t.py", "a", "", "")
            store.add(run, store.job(run, "main"), [Result(*where, state)])
    assert main(["ledger"]) == 0
    assert [line for line in path.read_text().splitlines() if "variant" in line] == [
        'variant = "1"',
        'variant = "3"',
    ]
    assert "2 kept, 0 new, 0 taken out" in capsys.readouterr().out


def test_settings_and_ledgers_that_are_wrong(project, monkeypatch, capsys):
    monkeypatch.chdir(project.path)
    project.file("test_it.py", ONE)
    table = "[tool.scoreboard]\n"
    for name, text, why in (
        ("scoreboard.toml", "expected = 'x'\n", "needed [[expected]] tables"),
        ("scoreboard.toml", "expected [\n", "scoreboard.toml: Expected '='"),
        ("scoreboard.toml", EXPECTED + "colour = 'red'\n", "got colour"),
        ("pyproject.toml", table + "refrence = 'a'\n", "got refrence"),
        ("pyproject.toml", table + "columns = 'numpy'\n", "needed a list for columns"),
        ("pyproject.toml", table + "max_age = 3\n", "needed a string for max_age"),
    ):
        path = project.file(name, text)
        done = project.run()
        assert done.ret == 4
        assert why in done.stderr.str()
        assert "INTERNALERROR" not in done.stdout.str() + done.stderr.str()
        Store(".scoreboard/board.db").close()
        assert main(["ledger"]) == 2
        assert why in capsys.readouterr().err
        path.unlink()


def test_ages_and_endless_errors(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Store(".scoreboard/board.db") as store:
        run = store.begin("one", "local", started="2026-01-01T10:00:00Z")
        store.add(run, store.job(run, "main"), [result("test_a", value_error=float("inf"))])
    for age in ("nand", "infd", "-3d", "3", "", "d"):
        assert main(["check", f"--max-age={age}"]) == 2, age
    assert main(["check", "--max-age", "1s"]) == 3
    assert main(["show", "test_a"]) == 0
    assert "value inf ulp" in capsys.readouterr().out


def test_what_runs_no_test_records_no_run(project):
    project.file("test_it.py", ONE)
    assert project.run().ret == 0
    for args in (["--help"], ["--collect-only"], ["--fixtures"], ["--setup-plan"], ["no_such.py"]):
        project.run(*args)
        assert project.query("SELECT run FROM run") == [(1,)], args
    assert project.run("-k", "nothing").ret == 5
    done = project.command("check", "--complete")
    assert done.ret == 3
    assert "run 2 is incomplete: no test ran" in done.stdout.str()


def test_a_file_skipped_as_a_whole_stays_in_the_sum(project):
    path = project.file("test_it.py", ONE)
    assert project.run().ret == 0
    path.write_text("import pytest\npytest.importorskip('no_such_module')\n" + ONE)
    project.run()
    assert project.states() == {("test_it", "", b): "skipped" for b in "ab"}
    ((message,),) = project.query("SELECT message FROM detail")
    assert "could not import 'no_such_module'" in message


def test_an_axis_that_nobody_has(project):
    project.file("test_it.py", ONE.replace("backend", "engine"))
    out = project.run().stdout.str()
    assert "no test has a parameter with array libraries as values, or called backend" in out
    assert "(parameters seen: engine)" in out
    assert "--scoreboard-axis NAME" not in project.run("--scoreboard-axis", "engine").stdout.str()


FOUND = {
    "nx": "import pytest\n"
    "class NumpyBackend: __name__ = 'numpy'\n"
    "class TorchBackend: __name__ = 'torch'\n"
    "@pytest.fixture(params=[NumpyBackend(), TorchBackend()])\n"
    "def nx(request): return request.param\n"
    "@pytest.mark.parametrize('size', [1, 2])\n"
    "def test_it(nx, size): assert size\n",
    "library": "import enum, pytest\n"
    "class Backend(enum.Enum):\n"
    "    NUMPY = 'numpy'\n"
    "    TORCH = 'torch'\n"
    "@pytest.fixture(params=list(Backend), ids=lambda b: b.value)\n"
    "def library(request): return request.param\n"
    "@pytest.fixture\n"
    "def xp(library): return library\n"
    "@pytest.mark.parametrize('size', [1, 2])\n"
    "def test_it(xp, size): assert size\n",
    "engine": "import pytest\n"
    "@pytest.mark.parametrize('size', [1, 2])\n"
    "@pytest.mark.parametrize('engine', ['numpy', 'torch'])\n"
    "def test_it(engine, size): assert size\n",
}


@pytest.mark.parametrize("name", FOUND)
def test_an_axis_is_found_by_its_values(project, name):
    """As in POT, in array-api-extra, and under a name of the project's own."""
    project.file("test_it.py", FOUND[name])
    out = project.run().stdout.str()
    libraries = {backend.lower() for _, _, backend in project.states()}
    assert libraries == {"numpy", "torch"}
    assert len(project.states()) == 4
    assert f"backends are the values of {name}: its values are array libraries" in out


def test_a_parameter_with_one_library_among_others_is_no_axis(project):
    project.file(
        "test_it.py",
        "import pytest\n"
        "@pytest.mark.parametrize('word', ['numpy', 'a', 'b', 'c'])\n"
        "def test_it(word): assert word\n",
    )
    assert "no test has a parameter with array libraries" in project.run().stdout.str()


def test_parameters_without_names(project):
    """An address is not a name, and two unnamed functions stay two."""
    project.file(
        "test_it.py",
        "import pytest\n"
        "class Engine: pass\n"
        "@pytest.mark.parametrize('backend', [Engine(), Engine()], ids=['first', 'second'])\n"
        "@pytest.mark.parametrize('f', [lambda: 1, lambda: 0])\n"
        "def test_ids(backend, f): assert f()\n"
        "@pytest.mark.parametrize('backend,f', [(Engine(), lambda: 1), (Engine(), lambda: 0)])\n"
        "def test_pairs(backend, f): assert f()\n"
        "@pytest.mark.parametrize('backend', ['one'], ids=['ONE'])\n"
        "@pytest.mark.parametrize('f', [lambda: 1, lambda: 0])\n"
        "def test_hidden(backend, f): assert f()\n",
    )
    project.run()
    assert project.states() == {
        ("test_ids", "<lambda>0", "first"): "passed",
        ("test_ids", "<lambda>0", "second"): "passed",
        ("test_ids", "<lambda>1", "first"): "failed",
        ("test_ids", "<lambda>1", "second"): "failed",
        ("test_pairs", "<lambda>", "backend0"): "passed",
        ("test_pairs", "<lambda>", "backend1"): "failed",
        ("test_hidden", "f=<lambda>0", "one"): "passed",
        ("test_hidden", "f=<lambda>1", "one"): "failed",
    }


def test_the_reference_is_shown_first(project):
    project.file("test_it.py", ONE)
    project.run("--scoreboard-reference", "b")
    assert project.command("render", "md", "-o", "out").ret == 0
    head = (project.path / "out" / "test-it-py.md").read_text().splitlines()[0]
    assert [word.strip() for word in head.split("|")[2:4]] == ["b", "a"]


def test_a_test_known_from_a_table_learns_its_file(tmp_path):
    with Store(tmp_path / "board.db") as store:
        run = store.begin("table", "import")
        job = store.job(run, "main")
        store.add(run, job, [Result("s", "test_a", "", "", "a", "", "", 0)])
        store.add(run, job, [result("test_a")])
        assert [r["file"] for r in store.results(run)] == ["t.py"]


def test_a_file_in_a_folder_that_cannot_be_written_is_read(tmp_path, monkeypatch):
    """SQLite creates files beside a shared database; where it cannot, we open it read-only."""
    path = tmp_path / "a b#c?.db"
    with Store(path) as store:
        store.begin("one", "local")
    ready, calls = Store._ready, []

    def refuse(self, write):
        calls.append(write)
        if len(calls) == 1:
            raise sqlite3.OperationalError("unable to open database file")
        ready(self, write)

    monkeypatch.setattr(Store, "_ready", refuse)
    with Store(path, write=False) as store:
        assert [run["key"] for run in store.runs()] == ["one"]
        with pytest.raises(sqlite3.OperationalError):
            store.begin("two", "local")
    calls.clear()
    with pytest.raises(ValueError, match="unable to open database file"):
        Store(path)


def test_a_run_knows_its_commit_and_its_log(project, monkeypatch):
    def git(*args):
        words = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *args]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()

    path = project.file("test_it.py", ONE)
    project.file(".gitignore", ".scoreboard\n__pycache__\n")
    git("init", "-q", "-b", "trunk")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    assert project.run().ret == 0
    path.write_text(ONE + "\n")
    monkeypatch.setenv("GITHUB_RUN_ID", "77")
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://host.example")
    monkeypatch.setenv("GITHUB_REPOSITORY", "me/it")
    assert project.run().ret == 0
    sha = git("rev-parse", "HEAD")
    runs = project.query(
        "SELECT sha, branch, dirty, run.kind, url FROM run JOIN job USING (run) ORDER BY run"
    )
    assert runs == [
        (sha, "trunk", 0, "local", None),
        (sha, "trunk", 1, "ci", "https://host.example/me/it/actions/runs/77"),
    ]
    assert project.query("SELECT key FROM run WHERE run = 2") == [("77",)]


def test_a_shard_that_was_killed_shows_through_one_of_the_same_name(tmp_path):
    """Two jobs without --scoreboard-job-key are both called main. Tests of the killed one are still
    missing.
    """
    planned = [Planned("s", "test_b", "", "t.py", "a", "a")]
    for name, complete in (("ended", True), ("killed", False)):
        with Store(tmp_path / f"{name}.db") as store:
            run = store.begin("one", "ci")
            job = store.job(run, "main")
            store.add(run, job, [result("test_a")])
            if complete:
                store.finish(run, job, True, 0, "2026-11-15T10:00:00Z")
            else:
                store.plan(run, job, planned)
    for order in (("ended", "killed"), ("killed", "ended")):
        merge(tmp_path / f"{order[0]}-first.db", [tmp_path / f"{name}.db" for name in order])
        with Store(tmp_path / f"{order[0]}-first.db") as store:
            assert not completeness.complete(store, 1)
            assert [p["name"] for p in store.planned(1)] == ["test_b"]


def test_only_tests_are_rewritten(project):
    """The value of an option that only a conftest knows looks like a path to pytest at first."""
    option = "def pytest_addoption(parser): parser.addoption('--kind')\n"
    project.file("tests/conftest.py", option)
    project.file("lib/thing.py", "def same(a, b): assert a == b\n")
    project.file(
        "tests/test_it.py",
        "import sys\n"
        "sys.path.append('lib')\n"
        "import thing\n"
        "def test_it(): assert type(thing.__loader__).__name__ == 'SourceFileLoader'\n",
    )
    assert project.run("--kind", "large", "tests").ret == 0
