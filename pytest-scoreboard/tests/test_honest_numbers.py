"""Runs of a part, damaged files, retries long ago, and a crash without workers."""

import pytest

from pytest_scoreboard import states
from pytest_scoreboard.board import Board
from pytest_scoreboard.config import read
from pytest_scoreboard.diff import compare
from pytest_scoreboard.flaky import WINDOW, reason
from pytest_scoreboard.store import Store

TWO = """
import pytest

@pytest.mark.parametrize("backend", ["numpy", "torch"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_first(backend, n): assert n

@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_second(backend): assert backend
"""


def boards(project):
    with Store(project.db, write=False) as store:
        return [Board.load(store, run["run"], read(project.path)) for run in store.runs()]


@pytest.mark.parametrize(
    "part", [["-k", "first"], ["test_it.py::test_first"]], ids=["keyword", "node"]
)
def test_a_part_is_no_complete_run(project, part):
    project.file("test_it.py", TWO)
    project.run()
    project.run(*part)
    whole, some = boards(project)
    assert whole.complete
    assert not some.complete
    assert some.gaps == [f"only a part of the tests was selected: {some.selection}"]
    assert "first" in some.selection
    assert {c.kind for c in compare(whole, some)} == {"same"}  # the rest is not missing
    assert {c.test for c in compare(whole, some)} == {"test_first"}
    assert project.command("check", "--complete").ret == 3


def test_a_regression_is_seen_across_a_run_of_a_part(project):
    project.file("test_it.py", TWO)
    project.run()
    project.run("-k", "first")
    project.file("test_it.py", TWO.replace("assert backend", 'assert backend == "numpy"'))
    done = project.run("--scoreboard-fail-on", "regressed")
    assert done.ret == 1
    done.stdout.fnmatch_lines(["regressed: test_it.py test_second [[]torch] passed -> failed"])


def test_a_damaged_database_is_moved_aside_and_the_tests_run(project):
    project.file("test_it.py", TWO)
    project.run()
    content = project.db.read_bytes()
    project.db.write_bytes(content[:60] + b"\xff" * (len(content) - 60))
    done = project.run()
    assert done.ret == 0
    done.stdout.fnmatch_lines(
        ["*board.db was damaged (*): moved to board.db.damaged-*, a new one begins", "*8 passed*"]
    )
    assert len(project.states()) == 8
    (aside,) = project.db.parent.glob("board.db.damaged-*")
    assert aside.read_bytes()[60:] == b"\xff" * (len(content) - 60)
    assert project.run().ret == 0  # the new one is good


def test_a_retry_is_forgotten_after_a_number_of_results():
    row = lambda attempts: {
        "state": states.PASSED, "attempts": attempts, "sha": "a", "dirty": 0, "environment": 1
    }  # fmt: skip
    history = [row(3)]
    for ago in range(WINDOW):
        assert reason(history) == f"passed after 3 attempts, {ago} of {WINDOW} results ago"
        history.append(row(1))
    assert reason(history) == ""


def test_a_crash_without_workers_keeps_what_had_passed(project):
    many = "\n".join(f"def test_{n:02}(backend): assert backend" for n in range(40))
    project.file(
        "test_it.py",
        'import os, pytest\npytestmark = pytest.mark.parametrize("backend", ["numpy"])\n'
        f"{many}\ndef test_end(backend): os._exit(3)\ndef test_later(backend): assert backend\n",
    )
    assert project.run().ret == 3
    found = {name: word for (name, _, _), word in project.states().items()}
    assert found == {f"test_{n:02}": "passed" for n in range(40)}
    (board,) = boards(project)
    words = {
        row.name: states.BY_CODE[row.cells["numpy"].state].word for row in board.suites[0].rows
    }
    assert words["test_end"] == words["test_later"] == "not run"
    assert board.gaps == ["it did not finish"]


def test_the_page_says_how_many_variants_its_cells_have(project):
    project.file("test_it.py", TWO)
    project.run()
    assert project.command("render", "html", "-o", project.path / "out").ret == 0
    page = (project.path / "out" / "index.html").read_text()
    assert page.count("2 of 2; 4 variants") == 2
