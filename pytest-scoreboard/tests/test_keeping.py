"""No result is lost: killed runs, shards in any order, histories, the ledger."""

import itertools
import os
import random
import signal
import subprocess
import time
from datetime import UTC, datetime

import pytest

from pytest_scoreboard import completeness, importing, states
from pytest_scoreboard.board import Board
from pytest_scoreboard.command import main
from pytest_scoreboard.config import Config, read
from pytest_scoreboard.flaky import flaky
from pytest_scoreboard.merge import merge
from pytest_scoreboard.store import Planned, Result, Store

from .conftest import needs
from .seeds import folder_of

SLOW = """
import time, pytest
@pytest.mark.parametrize("backend", ["a", "b"])
@pytest.mark.parametrize("n", range(20))
def test_it(backend, n):
    time.sleep(0.02 if n < 15 else 60)
    open("done.txt", "a").write(f"{time.time()}\\n")
    assert True
@pytest.mark.parametrize("backend", ["c"])
def test_last(backend): assert True
"""


@pytest.mark.takes("it ends a process while it works")
def test_kill_in_mid_run(project):
    project.file("test_it.py", SLOW)
    run = project.start(stdout=subprocess.DEVNULL)
    done = project.path / "done.txt"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:  # until the fast tests are done and a slow one hangs
        if done.exists() and len(done.read_text().splitlines()) == 30:
            break
        time.sleep(0.05)
    time.sleep(1.0)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    told = [float(line) for line in done.read_text().splitlines()]
    assert len(told) == 30
    assert len(project.states()) == 30  # including those that ended just before the kill
    with Store(project.db, write=False) as store:
        board = Board.load(store, 1, Config())
        assert len(store.planned(1)) == 11
    assert not board.complete
    assert board.gaps == ["it did not finish"]
    assert board.suites[0].rows[0].cells["a"].state == states.NOT_RUN
    assert board.columns == ["a", "b", "c"]  # no test of "c" was reached
    assert board.suites[0].rows[1].cells["c"].state == states.NOT_RUN
    assert board.totals()["c"] == {states.NOT_RUN: 1}
    assert project.command("check", "--complete").ret == 3
    project.file("test_it.py", SLOW.replace("60", "0").replace("0.02", "0"))
    assert project.run().ret == 0
    assert project.command("check", "--complete", "--max-age", "1h").ret == 0
    assert len(project.states()) == 41
    assert project.query("SELECT count(*) FROM plan WHERE run = 2") == [(0,)]


def shard(path, number):
    rng = random.Random(number)
    with Store(path) as store:
        run = store.begin("one", "ci", started=f"2026-11-15T0{number}:00:00Z", sha="abc")
        job = store.job(
            run, f"shard{number}", {"python": f"3.{number}"}, url=f"https://x.y/{number}"
        )
        tests = [Planned("s", f"test_{i}", "", "t.py", "a", "") for i in range(6)]
        store.plan(run, job, tests)
        for i in range(5 if number == 2 else 6):  # every shard ran test_0; shard 2 did not finish
            name = f"test_{i if i == 0 else 10 * number + i}"
            state = rng.choice([0, 1, 3, 9])
            detail = ("E", f"shard {number}", "text " * 9) if state else None
            store.add(run, job, [Result("s", name, "", "t.py", "a", "", "", state, 1,
                                        rng.random(), 2, rng.random(), None, detail)])  # fmt: skip
        store.finish(run, job, number != 2, 0, f"2026-11-15T0{number}:30:00Z")


def content(store):
    """The whole content without internal numbers: two files with the same information have
    equal contents.
    """
    queries = (
        "SELECT 'run', key, kind, sha, branch, dirty, started, finished, note FROM run",
        "SELECT 'job', run.key, job.key, facts, url, planned, complete, exit FROM job JOIN run"
        " USING (run) LEFT JOIN environment USING (environment)",
        "SELECT 'result', run.key, job.key, test.suite, test.name, variant, file, backend.name,"
        " mode, node, state, coalesce(attempts, 1), duration, asserts, value_error,"
        " gradient_error, digest"
        " FROM result JOIN run USING (run) JOIN job ON job.job = result.job JOIN cell"
        " USING (cell) JOIN test USING (test) JOIN backend ON backend.backend = cell.backend"
        " LEFT JOIN detail ON detail.detail = result.detail"
        " LEFT JOIN retry ON retry.run = result.run AND retry.cell = result.cell",
        "SELECT 'plan', run.key, job.key, suite, test.name, variant, backend.name, node"
        " FROM plan JOIN run USING (run) JOIN job ON job.job = plan.job JOIN test USING (test)"
        " JOIN backend USING (backend)",
        "SELECT 'layout', run.key, suite, axis, position, name FROM layout JOIN run USING (run)",
        "SELECT 'remark', run.key, suite, name, backend, remark.kind, text FROM remark JOIN run"
        " USING (run)",
        "SELECT 'broken', run.key, file, digest FROM broken JOIN run USING (run) JOIN detail"
        " USING (detail)",
    )
    return sorted(repr(tuple(row)) for query in queries for row in store.db.execute(query))


def test_shards_merge_in_any_order_and_twice(tmp_path):
    shards = [tmp_path / f"{n}.db" for n in range(3)]
    for n, path in enumerate(shards):
        shard(path, n)
    contents = []
    for i, order in enumerate(itertools.permutations(shards)):
        out = tmp_path / f"out{i}.db"
        merge(out, [*order, *order[:2]])
        if i % 2 == 0:
            merge(out, [out.parent / "0.db", *order])
        with Store(out) as store:
            contents.append(content(store))
            assert store.db.execute("SELECT count(*) FROM result").fetchone()[0] == 1 + 5 * 2 + 4
            assert not completeness.complete(store, 1)
            assert [tuple(r) for r in store.db.execute("SELECT started, finished FROM run")] == [
                ("2026-11-15T00:00:00Z", "2026-11-15T02:30:00Z")
            ]
    assert len(contents) == 6
    assert all(content == contents[0] for content in contents)


def test_shards_that_disagree_merge_in_any_order(tmp_path):
    """The same job twice, another commit, another reason why a file cannot be read."""
    shards = [tmp_path / f"{n}.db" for n in range(3)]
    for n, path in enumerate(shards):
        with Store(path) as store:
            sha = [None, "b", "a"][n]
            run = store.begin("one", ["local", "ci", "local"][n], sha=sha, dirty=n % 2,
                              started="2026-11-15"[:n])  # fmt: skip
            job = store.job(run, "main", {"python": f"3.{(n + 1) % 3}"} if n else None,
                            url=[None, "https://x/1", "https://x/0"][n])  # fmt: skip
            store.add(run, job, [Result("s", "t", "", "t.py", "a", "", "", n, n)])
            detail = store.detail("collection", f"why {n}", "text")
            store.db.execute("INSERT INTO broken VALUES (?, 'u.py', ?)", (run, detail))
    contents = []
    for i, order in enumerate(itertools.permutations(shards)):
        merge(tmp_path / f"out{i}.db", [*order, order[0]])
        with Store(tmp_path / f"out{i}.db") as store:
            contents.append(content(store))
    assert all(content == contents[0] for content in contents)


@needs("markdown_it")
def test_a_merged_file_says_all_that_its_shard_said(tmp_path):
    """Seeds with their order and remarks, retries, errors of both kinds, plans, broken files."""
    with Store(tmp_path / "one.db") as store:
        importing.seeds(store, folder_of(tmp_path / "tables"))
        run = store.begin("k", "ci", sha="abc", branch="main", dirty=1, note="n",
                          started="2026-11-15T10:00:00Z")  # fmt: skip
        job = store.job(run, "main", {"python": "3.11"}, url="https://x.y/", planned=3)
        store.plan(run, job, [Planned("s", f"test_{i}", "v", "t.py", "a", "a-v") for i in range(3)])
        for mode, error in (("eager", 1.5), ("jit", float("inf"))):
            store.add(run, job, [Result("s", "test_0", "v", "t.py", "a", mode, "a-v", 1, 3, 0.5, 2,
                                        error, 2.5, ("E", "message", "text"))])  # fmt: skip
        store.db.execute(
            "INSERT INTO broken VALUES (?, 'u.py', ?)", (run, store.detail("E", "u", "v"))
        )
        store.finish(run, job, False, 2, "2026-11-15T10:01:00Z")
        said = content(store)
    merge(tmp_path / "out.db", [tmp_path / "one.db"])
    with Store(tmp_path / "out.db") as store:
        assert content(store) == said
        assert len(store.planned(1)) == 2
        assert [r["attempts"] for r in store.results(1)] == [3, 3]


def history(tmp_path, outcomes):
    """A database with one cell; outcomes are (state, commit, python, attempts)."""
    store = Store(tmp_path / f"{random.random()}.db")
    for i, (state, sha, python, attempts) in enumerate(outcomes):
        run = store.begin(f"k{i}", "ci", started=f"2026-01-{i + 1:02}T00:00:00Z", sha=sha)
        job = store.job(run, "main", {"python": python}, complete=1)
        store.add(run, job, [Result("s", "test_a", "", "t.py", "a", "", "", state, attempts)])
    return flaky(store)


GOOD, BAD = states.PASSED, states.FAILED


@pytest.mark.parametrize(
    ("outcomes", "why"),
    [
        ([(GOOD, "1", "3.11", 2)], "passed after 2 attempts"),
        ([(GOOD, "1", "3.11", 1), (BAD, "1", "3.11", 1)], "both outcomes on one commit"),
        (
            [(GOOD, "1", "3.11", 1), (BAD, "2", "3.11", 1), (GOOD, "3", "3.11", 1)],
            "there and back within 3 results",
        ),
        ([(GOOD, "1", "3.11", 1), (BAD, "1", "3.12", 1)], ""),  # another Python version
        # hollow is neither a pass nor a failure
        ([(states.HOLLOW, "1", "3.11", 1), (BAD, "1", "3.11", 1)], ""),
        ([(BAD, "1", "3.11", 2)], ""),  # a retry that did not help
        ([(BAD, "1", "3.11", 1), (GOOD, "2", "3.11", 1)], ""),  # a new test, then fixed
        ([(GOOD, "1", "3.11", 1), (BAD, "2", "3.11", 1)], ""),  # broken, and stays so
        (
            [(GOOD, "0", "3.11", 1), (BAD, "b", "3.11", 1)]
            + [(BAD, str(i), "3.11", 1) for i in range(2, 21)]
            + [(GOOD, "z", "3.11", 1)],
            "",  # the failure is more than 20 results ago
        ),
    ],
)
def test_flaky(tmp_path, outcomes, why):
    found = history(tmp_path, outcomes)
    assert len(found) == bool(why)
    assert why in (found[0].why if found else "")


def test_local_changes_make_no_flakes(tmp_path):
    """Two outcomes on one commit are not flaky if the working tree had local changes."""
    with Store(tmp_path / "board.db") as store:
        for i, state in enumerate((GOOD, BAD)):
            run = store.begin(f"k{i}", "ci", started=f"2026-01-0{i + 1}", sha="1", dirty=1)
            job = store.job(run, "main", {"python": "3.11"})
            store.add(run, job, [Result("s", "t", "", "t.py", "a", "", "", state)])
        assert flaky(store) == []
        store.db.execute("UPDATE run SET dirty = 0")
        assert len(flaky(store)) == 1


def test_a_run_that_stops_early_is_incomplete(project):
    project.file(
        "test_it.py",
        "import pytest\n"
        "@pytest.mark.parametrize('backend', ['a', 'b'])\n"
        "def test_it(backend): assert not backend\n",
    )
    assert project.run("-x").ret == 1
    assert project.states() == {("test_it", "", "a"): "failed"}
    done = project.command("check", "--complete")
    assert done.ret == 3
    assert "it did not finish" in done.stdout.str()
    with Store(project.db, write=False) as store:
        board = Board.load(store, 1, Config())
    assert board.suites[0].rows[0].cells["b"].state == states.NOT_RUN


def test_tests_that_moved_keep_their_history(project):
    """By file, with a title of its own or without one; a file that is not listed begins anew."""
    test = (
        "import pytest\n"
        "@pytest.mark.parametrize('backend', ['a'])\n"
        "def test_{}(backend): assert 1\n"
    )
    for name in "xyz":
        project.file(f"old/test_{name}.py", test.format(name))
    settings = '[tool.scoreboard]\nmoved = "moved.toml"\nsuites = {{ "{}/test_y.py" = "Title" }}\n'
    project.file("pyproject.toml", settings.format("old"))
    project.file("moved.toml", "")
    assert project.run().ret == 0
    (project.path / "old").rename(project.path / "new")
    project.file("pyproject.toml", settings.format("new"))
    project.file("moved.toml", "".join(f'"old/test_{n}.py" = "new/test_{n}.py"\n' for n in "xy"))
    assert project.run().ret == 0
    files = project.query("SELECT suite, file FROM test ORDER BY name, file")
    assert files == [
        ("new/test_x.py", "new/test_x.py"), ("Title", "new/test_y.py"),
        ("new/test_z.py", "new/test_z.py"), ("old/test_z.py", "old/test_z.py"),
    ]  # fmt: skip
    shown = project.command("show", "new/test_x.py::test_x").stdout.str()
    assert shown.count("✓ passed") == 2
    changes = project.command("diff", "1", "2", "--all").stdout.str()
    assert "new/test_x.py test_x [a] passed -> passed" in changes
    assert "old/test_x.py" not in changes
    project.file("moved.toml", '"old" = 1\n')
    assert "needed a name for old" in project.run().stderr.str()


@needs("pytest_rerunfailures")
def test_flaky_never_turns_red_to_green(project):
    project.file(
        "test_it.py",
        "import pytest\n"
        "@pytest.mark.flaky(reruns=1)\n"
        "@pytest.mark.parametrize('backend', ['a'])\n"
        "def test_it(backend): assert not backend\n",
    )
    assert project.run("-p", "pytest_rerunfailures").ret == 1
    assert project.query("SELECT attempts FROM retry") == [(2,)]
    assert project.states() == {("test_it", "", "a"): "failed"}


def test_the_ledger_is_written_kept_and_cleared(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(key, **outcomes):
        with Store(tmp_path / ".scoreboard" / "board.db") as store:
            started = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            number = store.begin(key, "local", started=started)
            job = store.job(number, "main", complete=1)
            for name, state in outcomes.items():
                store.add(number, job, [Result("s", name, "", "t.py", "a", "", "", state)])

    path = tmp_path / "scoreboard.toml"
    run("one", test_a=BAD, test_b=GOOD)
    assert main(["ledger"]) == 2
    assert "needed --reason for 1 new failures:\n  s test_a [a] *" in capsys.readouterr().err
    assert main(["ledger", "--reason", 'a "quoted" \\ reason']) == 0
    first = path.read_text()
    assert 'reason = "a \\"quoted\\" \\\\ reason"' in first
    run("two", test_a=states.XFAILED, test_b=GOOD)
    assert main(["ledger"]) == 0
    assert path.read_text() == first
    run("three", test_a=states.XPASSED, test_b=GOOD)
    assert main(["ledger"]) == 0
    assert "0 kept, 0 new, 1 taken out" in capsys.readouterr().out
    assert "[[expected]]" not in path.read_text()
    path.write_text('[[expected]]\nsuite = "s"\ntest = "t"\nbackend = "a"\n')
    assert main(["ledger"]) == 2
    assert "needed reason, since" in capsys.readouterr().err


def test_a_run_that_there_is_not_yet_is_said_so(tmp_path):
    with Store(tmp_path / "board.db") as store:
        with pytest.raises(LookupError, match="there is no latest run yet; runs: 0"):
            store.find("latest")
        store.begin("a", "local", started="2026-01-01T00:00:00Z")
        assert store.find("latest")["key"] == "a"
        with pytest.raises(LookupError, match="there is no previous run yet; runs: 1"):
            store.find("previous")


def test_settings_say_what_they_need(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.scoreboard]\nrefrence = 'a'\n")
    with pytest.raises(ValueError, match="got refrence"):
        read(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert read(tmp_path).database == ".scoreboard/board.db"
