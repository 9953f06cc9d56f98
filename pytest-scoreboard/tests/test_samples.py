"""Runs of which a sample left tests out, and runs in parts: neither is ever called complete, and
what was not drawn is no news.
"""

import json

import pytest

from pytest_scoreboard import completeness, importing, markdown, states
from pytest_scoreboard.board import Board
from pytest_scoreboard.config import Config, read
from pytest_scoreboard.diff import compare, report
from pytest_scoreboard.flaky import flaky
from pytest_scoreboard.merge import merge
from pytest_scoreboard.page import _history, render
from pytest_scoreboard.store import Planned, Result, Store

from .conftest import needs
from .seeds import COLUMNS, folder_of

SAMPLER = """
import pytest

def pytest_addoption(parser):
    parser.addoption("--sample", type=int)
    parser.addoption("--part", default="")

@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    config.option.scoreboard_part = config.getoption("--part")

def keep(config, items, kept):
    left = [item for i, item in enumerate(items) if not kept(i)]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for i, item in enumerate(items) if kept(i)]
    return left

@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    seed, part = config.getoption("--sample"), config.getoption("--part")
    if part:
        number, of = map(int, part.split("/"))
        keep(config, items, lambda i: i % of == number - 1)
    if seed is not None:
        left = keep(config, items, lambda i: i % 3 == seed)
        config.hook.pytest_scoreboard_left_out(items=left, seed=seed)
"""
TESTS = """
import pytest

@pytest.mark.parametrize("backend", ["a", "b"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_grid(backend, n): assert n

@pytest.mark.parametrize("backend", ["a", "b"])
def test_one(backend): assert backend
"""
SETTINGS = """
[tool.scoreboard]
default_mode = "eager"
observed = ["jit"]
"""
SAMPLED = "sampled: 3 of 8 (seed 0)"


@pytest.fixture
def sampled(project):
    """A project whose tests are drawn with `--sample 0`, 1 or 2: each third test of eight."""
    project.file("conftest.py", SAMPLER)
    project.file("test_it.py", TESTS)
    project.file("pyproject.toml", SETTINGS)
    return project


def test_what_a_sample_left_out_is_a_state(sampled):
    done = sampled.run("--sample", 0)
    assert done.ret == 0
    done.stdout.fnmatch_lines(["a 2/2: 2 passed", "b 1/1: 1 passed", SAMPLED])
    drawn = [("test_grid", "1", "a"), ("test_grid", "2", "b"), ("test_one", "", "a")]
    found = sampled.states()
    assert [cell for cell, word in found.items() if word == "passed"] == drawn
    assert len(found) == 8
    assert set(found.values()) == {"passed", "not sampled"}
    assert sampled.query("SELECT planned, complete FROM job") == [(3, 1)]
    assert sampled.query("SELECT count(*) FROM plan") == [(0,)]


def test_a_sampled_run_never_says_complete(sampled):
    assert sampled.plain("--sample", 0).ret == 0  # the hook is there without a scoreboard
    sampled.run("--sample", 0)
    assert sampled.command("check").stdout.lines == [f"run 1 is fresh, {SAMPLED}"]
    done = sampled.command("check", "--complete")
    assert done.ret == 3
    assert done.stdout.lines == [f"run 1 is incomplete, {SAMPLED}"]
    (sampled.path / "guide.md").write_text("<!-- scoreboard --><!-- /scoreboard -->")
    for form in ("md", "html", "badge", "json"):
        assert sampled.command("render", form, "-o", "out", "--readme", "guide.md").ret == 0
    out = sampled.path / "out"
    texts = [(out / name).read_text() for name in ("README.md", "index.html", "scoreboard.svg")]
    texts.append((sampled.path / "guide.md").read_text())
    for text in texts:
        assert "3 of 8 (seed 0)" in text
        assert "complete" not in text.lower().partition("<style>")[0].replace("incomplete", "")
    said = json.loads((out / "scoreboard.json").read_text())
    assert (said["complete"], said["sampled"]) == (
        False, {"drawn": 3, "of": 8, "seeds": ["0"]},
    )  # fmt: skip
    cells = {(c["test"], c["backend"]): c for c in said["cells"]}
    assert 'fill="#6b5a00"' in texts[2]  # neither green nor red
    assert [cells["test_grid", b][key] for b in "ab" for key in ("variants", "not_sampled")] == [
        1, 2, 1, 2,
    ]  # fmt: skip
    assert cells["test_one", "b"]["state"] == "not sampled"
    shown = sampled.command("show", "test_one", "--backend", "b").stdout.lines
    assert shown[1].endswith("b           … not sampled   ")


def fill(path, *runs, kind="local"):
    """Runs, each a dict of (test, variant, backend) -> state."""
    store = Store(path)
    for key, cells in enumerate(runs):
        run = store.begin(f"{key}", kind, started=f"2026-11-0{key + 1}T00:00:00Z", sha="1")
        facts = {"seed": "0"} if OUT in cells.values() else {}
        job = store.job(run, "main", {"python": "3.11", **facts})
        store.add(run, job, [result(*cell, state) for cell, state in cells.items()])
        store.finish(run, job, True, 0, "2026-11-15T10:00:00Z")
    return store


def result(name, variant, backend, state, mode="eager", **more):
    return Result("s", name, variant, "t.py", backend, mode, backend, state, **more)


def changes(store, **settings):
    first, second = (Board.load(store, run["run"], Config(**settings)) for run in store.runs())
    return {(c.test, c.backend): c.kind for c in compare(first, second)}


OUT, GOOD, BAD = states.NOT_SAMPLED, states.PASSED, states.FAILED
FULL = {
    ("test_a", "1", "a"): GOOD, ("test_a", "2", "a"): BAD, ("test_b", "", "a"): BAD,
    ("test_c", "1", "a"): GOOD, ("test_c", "2", "a"): GOOD, ("test_d", "", "a"): GOOD,
}  # fmt: skip
SOME = {
    ("test_a", "1", "a"): GOOD, ("test_a", "2", "a"): OUT, ("test_b", "", "a"): OUT,
    ("test_c", "1", "a"): OUT, ("test_c", "2", "a"): BAD, ("test_d", "", "a"): GOOD,
}  # fmt: skip


def test_what_was_left_out_is_no_news(tmp_path):
    """The failing variant of test_a is neither fixed nor broken by being left out, and test_b did
    not disappear.
    """
    with fill(tmp_path / "one.db", FULL, SOME) as store:
        assert changes(store) == {
            ("test_a", "a"): "same", ("test_c", "a"): "regressed", ("test_d", "a"): "same",
        }  # fmt: skip
        base, head = (Board.load(store, run, Config()) for run in (1, 2))
        lines = report(compare(base, head), base, head)
        assert lines[:2] == ["run 1 -> run 2: 3 cells", "run 2 sampled: 3 of 6 (seed 0)"]
        page = render(store, head)
        assert "Against run 1: 2 same." in page
    with fill(tmp_path / "two.db", SOME, FULL) as store:
        assert changes(store) == {
            ("test_a", "a"): "same", ("test_c", "a"): "fixed", ("test_d", "a"): "same",
        }  # fmt: skip
    other = {cell: OUT if state != OUT else GOOD for cell, state in SOME.items()}
    with fill(tmp_path / "three.db", SOME, other) as store:
        assert changes(store) == {}  # two samples with no test in common


def test_a_regression_is_seen_by_a_sample_and_across_one(sampled):
    sampled.run()
    sampled.run("--sample", 1)
    assert sampled.query("SELECT count(*) FROM cell") == [(8,)]  # in the mode of all runs
    sampled.file("test_it.py", TESTS.replace("assert n", "assert n != 2"))
    done = sampled.run("--sample", 0, "--scoreboard-fail-on", "regressed")
    done.stdout.fnmatch_lines(["regressed: test_it.py test_grid [[]b] passed -> failed"])
    assert len([line for line in done.stdout.lines if line.startswith("regressed")]) == 1


def test_tables_and_page_count_it_as_itself(tmp_path):
    with fill(tmp_path / "board.db", SOME) as store:
        board = Board.load(store, 1, Config())
        text = render(store, board)
    counts = board.totals()["a"]
    assert counts == {GOOD: 2, BAD: 1, OUT: 1}
    lines = markdown.totals(board).splitlines()
    assert lines[0].split("|")[2:-1] == [
        " passed   ", " failed   ", " not sampled   ", " cells   ",
    ]  # fmt: skip
    assert [word.strip() for word in lines[2].split("|")[1:-1]] == ["a", "2", "1", "1", "4"]
    suite = markdown.suite_file(board, board.suites[0])
    assert "badge/-not_sampled-lightgrey" in suite
    rows = {line.split("|")[1].strip(): line.split("|")[2].strip() for line in suite.splitlines()
            if line.startswith("| test") and "<a" not in line}  # fmt: skip
    assert rows == {
        "test_a": "eager ✓, 1 of 2 variants sampled", "test_b": "not sampled",
        "test_c": "eager ✗, 1 of 2 variants sampled", "test_d": "eager ✓",
    }  # fmt: skip
    assert "<b>66 %</b>" in text
    assert "2 of 3, 1 failed, 1 not sampled; 3 of 6 variants" in text
    assert '<span aria-hidden="true">…</span> not sampled</span> 1<' in text
    assert 'class="pill warn" id="complete">Sampled<' in text


def test_an_incomplete_sample_says_both(tmp_path):
    with fill(tmp_path / "board.db", SOME) as store:
        store.plan(1, 1, [Planned("s", "test_e", "", "t.py", "a", "a")])
        board = Board.load(store, 1, Config())
        assert board.gaps == ["it did not finish", "sampled: 4 of 7 (seed 0)"]
        assert board.verdict() == "INCOMPLETE"


ENGINES = """
import pytest

@pytest.mark.parametrize("engine", ["numpy", "torch", "mine"])
def test_it(engine): assert engine
"""


def test_the_axis_is_that_of_all_tests(sampled):
    """Of the three values that say that `engine` names the backend, only the third was drawn."""
    sampled.file("test_it.py", ENGINES)
    assert sampled.run("--sample", 2).ret == 0
    words = {"numpy": "not sampled", "torch": "not sampled", "mine": "passed"}
    assert sampled.states() == {("test_it", "", name): word for name, word in words.items()}


def test_a_backend_that_does_not_load_is_a_banner_in_a_sample(tmp_path):
    with fill(tmp_path / "board.db", SOME) as store:
        broken = ("ImportError", "No module named 'b'", "")
        store.add(1, 1, [result("test_a", "1", "b", BAD, detail=broken),
                         result("test_a", "2", "b", OUT)])  # fmt: skip
        assert Board.load(store, 1, Config()).gaps[1:] == ["b does not load"]


def test_a_history_does_not_change_by_what_was_left_out(tmp_path):
    with fill(tmp_path / "board.db", FULL, SOME) as store:
        found = _history(store, Board.load(store, 2, Config()))
    assert {test: states for (_, test, _), states in found.items()} == {
        "test_a": [BAD, GOOD], "test_c": [GOOD, BAD],
    }  # fmt: skip


def test_a_sample_of_nothing_ran_no_test(tmp_path):
    with fill(tmp_path / "board.db", dict.fromkeys(SOME, OUT)) as store:
        board = Board.load(store, 1, Config())
    assert board.gaps == ["no test ran", "sampled: 0 of 6 (seed 0)"]


def test_flaky_takes_no_notice(tmp_path):
    """A retry is as recent as before, after 25 runs that left the test out; and a sample's runs are
    of the environment of all runs.
    """
    cell = ("test_a", "", "a")
    with fill(tmp_path / "board.db", {}, *[{cell: OUT}] * 25) as store:
        store.add(1, 1, [result(*cell, GOOD, attempts=2)])
        (found,) = flaky(store)
        assert found.why == "passed after 2 attempts, 0 of 20 results ago"
    with fill(tmp_path / "parts.db", {cell: GOOD}, {}) as store:
        for part in ("1/2", "2/2"):
            job = store.job(2, part, {"python": "3.11", "part": part, "seed": part})
        store.add(2, job, [result(*cell, BAD)])
        (found,) = flaky(store)
        assert found.why == "both outcomes on one commit and environment"


@needs("markdown_it")
def test_a_seed_row_that_was_left_out_is_not_missing(tmp_path):
    settings = Config(columns=COLUMNS, expected="seeds")
    with Store(tmp_path / "board.db") as store:
        importing.seeds(store, folder_of(tmp_path / "tables"))
        run = store.begin("ours", "local", started="2026-11-15T00:00:00Z")
        job = store.job(run, "main", {"seed": "7"}, complete=1)
        for i, r in enumerate(store.results(0)):
            state = OUT if i % 2 else GOOD
            where = (r["suite"], r["name"], "", "t.py", r["backend"], "eager", "")
            store.add(run, job, [Result(*where, state)])
        board = Board.load(store, run, settings)
    assert board.gaps == ["sampled: 10 of 20 (seed 7)"]
    rows = [row for suite in board.suites for row in suite.rows]
    assert len(rows) == 5
    assert all(row.expected for row in rows)
    counts = [c[s] for s in (GOOD, OUT, states.MISSING) for c in board.totals(True).values()]
    assert (sum(counts[:4]), sum(counts[4:8]), sum(counts[8:])) == (10, 10, 0)


def test_a_test_that_one_session_left_out_and_another_ran_was_run(sampled):
    """Three samples with all tests between them make a complete run, though a test that was left
    out had another mode than it ran in.
    """
    compiled = (TESTS.replace("import pytest", "import pytest\nfrom pytest_scoreboard import *")
                .replace("@pytest.mark.parametrize(\"n", "@pytest.mark.mode('jit')\n"
                         "@pytest.mark.parametrize(\"n")
                .replace("assert n", "record_mode('jit'); assert n"))  # fmt: skip
    sampled.file("test_it.py", compiled)
    for seed, said in ((0, SAMPLED), (1, "sampled: 6 of 8 (seeds 0, 1)"), (2, "")):
        done = sampled.run("--sample", seed, "--scoreboard-run-key", "k",
                           "--scoreboard-job-key", seed)  # fmt: skip
        assert [line for line in done.stdout.lines if line.startswith("sampled")] == [said] * (
            said != ""
        )
    assert sampled.command("check", "--complete").ret == 0
    modes = "SELECT mode, state, count(*) FROM result JOIN cell USING (cell) GROUP BY mode, state"
    assert sampled.query(modes) == [("eager", GOOD, 2), ("eager", OUT, 6), ("jit", GOOD, 6)]
    with Store(sampled.db, write=False) as store:
        assert [r["state"] for r in store.results(1)] == [GOOD] * 8


def test_the_parts_of_a_run_are_complete_together(sampled):
    sampled.run()
    whole = sampled.states()
    for number, seen in ((2, "part 2 of 3"), (3, "parts 2, 3 of 3"), (1, None)):
        done = sampled.run("--part", f"{number}/3", "--scoreboard-run-key", "k")
        assert done.ret == 0
        with Store(sampled.db, write=False) as store:
            boards = [Board.load(store, run, read(sampled.path)) for run in (1, 2)]
            assert completeness.complete(store, 2) == (seen is None)
        assert {c.kind for c in compare(*boards)} == {"same"}  # the rest is not missing
        assert boards[1].selection == (seen or "")
        checked = sampled.command("check", "--complete")
        if seen:
            assert seen in done.stdout.lines
            why = f"run 2 is incomplete: only a part of the tests was selected: {seen}"
            assert checked.stdout.lines == [why]
        else:
            assert checked.stdout.lines == ["run 2 is fresh and complete"]
    assert sampled.states() == whole
    jobs = sampled.query("SELECT key, planned, complete FROM job WHERE run = 2 ORDER BY key")
    assert jobs == [("part 1/3", 3, 1), ("part 2/3", 3, 1), ("part 3/3", 2, 1)]


def test_parts_of_several_files_merge_into_a_complete_run(sampled):
    for number in (1, 2):
        done = sampled.plain(f"--scoreboard={number}.db", "--scoreboard-run-key", "k",
                             "--part", f"{number}/2", *["--sample", 0] * (number == 2))  # fmt: skip
        assert done.ret == 0
    merge(sampled.path / "some.db", [sampled.path / "1.db"])
    merge(sampled.path / "all.db", [sampled.path / f"{n}.db" for n in (2, 1)])
    for name, gaps in (
        ("some", ["only a part of the tests was selected: part 1 of 2"]),
        ("all", ["sampled: 6 of 8 (seed 0)"]),
    ):
        with Store(sampled.path / f"{name}.db") as store:
            assert Board.load(store, 1, Config()).gaps == gaps


def test_a_failing_variant_of_another_part_is_not_fixed(tmp_path):
    """A part has some variants of a test; the whole run before had a failing one among the rest."""
    some = {("test_a", "1", "a"): GOOD}
    with fill(tmp_path / "board.db", FULL, some) as store:
        store.job(2, "main", {"python": "3.11", "part": "1/2"})
        assert changes(store) == {("test_a", "a"): "same"}


@pytest.mark.parametrize("part", ["0/3", "4/3", "2", "a/b", "1/2/3", "01/3"])
def test_a_part_that_cannot_be(sampled, part):
    done = sampled.run("--part", part)
    assert done.ret == 4
    assert f"--scoreboard-part: needed a part such as 2/6, got '{part}'" in done.stderr.str()
    assert not sampled.db.exists()


def test_a_left_out_test_takes_as_little_room_as_a_result(tmp_path):
    """At most 25 bytes a cell and run, once the names of the tests are known."""
    sizes, cells = [], [(f"test_{i}", "", b) for i in range(1500) for b in "abcd"]
    with Store(tmp_path / "board.db") as store:
        for number in range(3):
            run = store.begin(f"{number}", "ci")
            job = store.job(run, "main", {"python": "3.11"})
            store.add(run, job, [result(*cell, OUT) for cell in cells])
            store.finish(run, job, True, 0, "2026-11-15T10:00:00Z")
            store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            sizes.append((tmp_path / "board.db").stat().st_size)
    assert (sizes[2] - sizes[1]) / len(cells) <= 25
