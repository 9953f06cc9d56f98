"""Numbers and text of the board: cells that summarize several results, totals, badges, ages, and
exit codes of the command.
"""

import json
from datetime import UTC, datetime, timedelta

from pytest_scoreboard import completeness, markdown, states
from pytest_scoreboard.board import Board
from pytest_scoreboard.command import main
from pytest_scoreboard.config import Config
from pytest_scoreboard.store import Planned, Result, Store


def cells(store, *results, complete=True, planned=(), **facts):
    run = store.begin("one", "local", **facts)
    job = store.job(run, "main", complete=int(complete))
    store.plan(run, job, planned)
    store.add(run, job, results)
    store.db.commit()
    return Board.load(store, run, Config())


def one(state, variant="", backend="a", name="test_a", mode="", **more):
    return Result("s", name, variant, "t.py", backend, mode, "", state, **more)


def test_a_cell_speaks_for_its_variants(tmp_path):
    with Store(tmp_path / "board.db") as store:
        board = cells(
            store,
            one(0, "1", asserts=2, duration=1.0, value_error=5.0, gradient_error=7.0, attempts=2),
            one(9, "2", asserts=0, duration=0.5, value_error=1.0, gradient_error=1.0),
            one(3, "3", detail=("skip", "why", "")),
        )
    (cell,) = board.suites[0].rows[0].cells.values()
    assert (cell.state, cell.tests, cell.asserts, cell.duration) == (states.HOLLOW, 3, 2, 1.5)
    assert (cell.value_error, cell.gradient_error, cell.attempts) == (5.0, 7.0, 2)


def test_sums_hold_skips_and_one_import_error_hides_nothing(tmp_path):
    broken = ("ModuleNotFoundError", "No module named 'x'", "traceback")
    with Store(tmp_path / "board.db") as store:
        board = cells(
            store,
            one(0), one(3, name="test_b"), one(1, name="test_c", detail=broken),
            one(1, backend="b", detail=broken), one(2, backend="b", name="test_b", detail=broken),
        )  # fmt: skip
    assert board.totals()["a"] == {states.PASSED: 1, states.SKIPPED: 1, states.FAILED: 1}
    assert list(board.banners) == ["b"]
    assert board.gaps == ["b does not load"]


def test_a_broken_file_is_a_gap(tmp_path):
    with Store(tmp_path / "board.db") as store:
        cells(store, one(0))
        detail = store.detail("collection", "why", "text")
        store.db.execute("INSERT INTO broken VALUES (1, 'u.py', ?)", (detail,))
        assert Board.load(store, 1, Config()).gaps == ["u.py could not be collected"]


def test_an_incomplete_run_says_so_everywhere(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with Store(".scoreboard/board.db") as store:
        cells(store, one(0), complete=False, started="2026-11-15T10:00:00Z",
              planned=[Planned("s", "test_b", "", "t.py", "a", "a")])  # fmt: skip
    for name in ("README.md", "guide.md"):
        (tmp_path / name).write_text("before <!-- scoreboard -->old<!-- /scoreboard --> after")
    for form in ("badge", "json", "md"):
        more = ["--readme", "README.md", "--readme", "guide.md"] if form == "md" else []
        assert main(["render", form, "-o", "out", *more]) == 0
    assert "1/2 incomplete" in (tmp_path / "out" / "scoreboard.svg").read_text()
    assert "#b4232f" in (tmp_path / "out" / "scoreboard.svg").read_text()
    assert json.loads((tmp_path / "out" / "scoreboard.json").read_text())["complete"] is False
    assert "INCOMPLETE (it did not finish)" in (tmp_path / "out/README.md").read_text()
    text = (tmp_path / "README.md").read_text()
    assert text == (tmp_path / "guide.md").read_text()
    assert "Run 1, INCOMPLETE, tests ended 2026-11-15T10:00:00Z." in text
    assert text.startswith("before <!-- scoreboard -->\n|")
    assert text.endswith("<!-- /scoreboard --> after")


def test_age_exits_and_histories(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    now = datetime.now(UTC)
    began, ended = ((now - timedelta(days=d)).strftime("%Y-%m-%dT%H:%M:%SZ") for d in (9, 2))
    with Store(".scoreboard/board.db") as store:
        for key, started, state in (("late", began, 1), ("early", "2026-01-01T00:00:00Z", 0)):
            run = store.begin(key, "local", started=started, finished=ended)
            job = store.job(run, "main", complete=1)
            store.add(run, job, [one(state), one(0, backend="b")])
    assert main(["check", "--max-age", "3d"]) == 0  # age counts from the end of the tests
    assert main(["check", "--max-age", "1d"]) == 3
    assert "2.0 days old" in capsys.readouterr().out
    assert main(["diff", "previous", "latest"]) == 1  # ordered by date, not by number
    assert "run 2 -> run 1: 2 cells\n     1 regressed\n     1 same" in capsys.readouterr().out
    assert main(["diff", "previous", "latest", "--max-age", "1d"]) == 3
    assert main(["diff", "previous", "latest", "--max-age", "3d"]) == 1
    assert main(["diff", "latest", "late", "--max-age", "3d"]) == 0
    capsys.readouterr()
    assert main(["show", "s::test_a", "--backend", "b"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert len(lines) == 2
    assert all(" b " in line for line in lines)


def test_the_run_before_is_the_one_just_before(tmp_path):
    with Store(tmp_path / "board.db") as store:
        for day in (2, 3, 1):
            store.begin(f"day {day}", "local", started=f"2026-11-0{day}T00:00:00Z")
        runs = [run["run"] for run in store.runs()]
        assert [run["key"] for run in store.runs()] == ["day 1", "day 2", "day 3"]
        before = [completeness.before(store, run) for run in runs]
        assert [run and run["key"] for run in before] == [None, "day 1", "day 2"]


def test_of_two_results_for_one_cell_the_worse_is_kept(tmp_path):
    for i, order in enumerate(((0, 1), (1, 0))):
        with Store(tmp_path / f"{i}.db") as store:
            run = store.begin("one", "local")
            for state in order:
                store.add(run, store.job(run, f"job {state}"), [one(state)])
            assert [r["state"] for r in store.results(run)] == [states.FAILED]


def test_tables_say_which_modes_ran(tmp_path):
    settings = Config(absent={"c": {"jit": "no compiler"}}, default_mode="eager")
    with Store(tmp_path / "board.db") as store:
        cells(
            store, one(0, mode="eager"), one(1, mode="jit"), one(0, mode="eager", backend="b"),
            one(0, mode="eager", backend="c", value_error=float("inf"), gradient_error=2.0),
        )  # fmt: skip
        board = Board.load(store, 1, settings)
    text = markdown.suite_file(board, board.suites[0])
    assert "Modes: eager, jit. c has no jit: no compiler." in text
    words = [cell.strip() for cell in text.splitlines()[-1].split("|")[2:5]]
    assert words == [
        "eager ✓, jit ✗",
        "eager ✓, jit not run",
        "eager ✓, no jit, value inf ulp, gradient 2 ulp",
    ]
