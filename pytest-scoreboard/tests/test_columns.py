"""A device as part of a column, and how such a run joins another."""

from pytest_scoreboard.board import Board
from pytest_scoreboard.config import read
from pytest_scoreboard.states import BY_CODE
from pytest_scoreboard.store import Store

ON_TWO = """
import pytest

@pytest.mark.parametrize("backend", ["numpy", "torch"])
@pytest.mark.parametrize("n", [1, 2])
def test_both(backend, n):
    assert n

@pytest.mark.parametrize("backend", ["torch"])
def test_one(backend):
    assert backend

@pytest.mark.parametrize("backend", ["numpy"])
def test_other(backend):
    assert backend
"""


def test_a_device_is_part_of_a_column_and_joins_a_run(project):
    project.file("test_it.py", ON_TWO)
    assert project.run().ret == 0
    there = project.path / "gpu.db"
    on_cuda = ("--scoreboard-device", "cuda", "--scoreboard-about", "A GPU")
    done = project.plain(f"--scoreboard={there}", "-k", "test_both and torch", *on_cuda)
    assert done.ret == 0
    done.stdout.fnmatch_lines(["torch cuda 2/2: 2 passed"])
    for _ in range(2):  # joining again adds nothing
        assert project.command("merge", project.db, there, "--join", "latest").ret == 0
        with Store(project.db, write=False) as store:
            assert len(store.runs()) == 1
            board = Board.load(store, 1, read(project.path))
        assert board.columns == ["numpy", "torch", "torch cuda"]
        cells = {
            row.name: {name: BY_CODE[cell.state].word for name, cell in row.cells.items()}
            for suite in board.suites
            for row in suite.rows
        }
        assert cells["test_both"] == dict.fromkeys(board.columns, "passed")
        assert cells["test_one"]["torch cuda"] == "not run"
        assert cells["test_other"]["torch cuda"] == "missing"  # it is not meant for torch
        (about,) = [f for f in board.facts if f.get("device")]
        assert (about["device"], about["about"]) == ("cuda", "A GPU")
        assert len(about["date"]) == 10
    assert project.command("render", "html", "-o", project.path / "out").ret == 0
    assert "A GPU" in (project.path / "out" / "index.html").read_text()
    wrong = project.command("merge", project.db, there, "--join", "7")
    assert wrong.ret == 2
    wrong.stderr.fnmatch_lines(["*needed a run*got 7*"])
