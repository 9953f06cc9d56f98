"""Seed tables: recorded as run 0, written back byte for byte, compared with later runs; tables and
JUnit files from elsewhere.
"""

from collections import Counter

import pytest

pytest.importorskip("markdown_it")
pytest.importorskip("junitparser")
from pytest_scoreboard import importing, markdown
from pytest_scoreboard.board import Board
from pytest_scoreboard.command import main
from pytest_scoreboard.config import Config
from pytest_scoreboard.diff import compare, report
from pytest_scoreboard.states import BY_WORD
from pytest_scoreboard.store import Result, Store

from .seeds import COLUMNS, folder_of

SETTINGS = Config(columns=COLUMNS, expected="seeds")


@pytest.fixture
def folder(tmp_path):
    return folder_of(tmp_path / "tables")


@pytest.fixture
def store(tmp_path, folder):
    with Store(tmp_path / "board.db") as store:
        importing.seeds(store, folder)
        yield store


def count(store, text):
    return store.db.execute(f"SELECT count(*) FROM {text}").fetchone()[0]


def test_tables_are_recorded_once_and_come_back_byte_for_byte(store, folder):
    importing.seeds(store, folder)  # a second time changes nothing
    assert count(store, "test") == 5
    assert count(store, "result WHERE run = 0") == 20
    assert count(store, "result WHERE state = 1") == 2
    assert count(store, "job WHERE url IS NOT NULL") == 3
    assert count(store, "remark WHERE kind = 'hollow'") == 3
    texts = importing.seed_texts(folder)
    assert list(texts) == ["First suite", "Second suite"]
    for title, text in texts.items():
        assert markdown.seed_table(store, 0, title).encode() == text.encode()


def test_diff_says_what_became_of_every_seed_cell(store):
    """A run with everything fixed except one, one regression, one hollow, one row not run, one
    extra row.
    """
    run = store.begin("ours", "local", started="2026-11-15T00:00:00Z")
    job = store.job(run, "main", complete=1)
    changed = {
        ("test_a", "jax"): "failed",  # failed in the seeds
        ("test_c", "torch"): "failed",  # passed in the seeds
        ("test_c", "jax"): "hollow",
    }
    for r in store.results(0):
        if r["name"] != "test_e":
            word = changed.get((r["name"], r["backend"]), "passed")
            code = BY_WORD[word].code
            where = (r["suite"], r["name"], "", "t.py", r["backend"], "eager", "")
            store.add(run, job, [Result(*where, code)])
    store.add(run, job, [Result("More", "test_more", "", "u.py", "jax", "eager", "", 0)])
    base, head = (Board.load(store, n, SETTINGS) for n in (0, run))
    changes = compare(base, head)
    kinds = Counter(c.kind for c in changes)
    # Two red: one fixed, one still red. Three hollow greens, less the one of the row that did not
    # run, are proved. 20 - 2 - 2 - 2 regressed - 4 of that row are the same as before.
    assert kinds == {
        "fixed": 1, "still failing": 1, "regressed": 2, "proved": 2, "only there": 4,
        "only here": 1, "same": 10,
    }  # fmt: skip
    seed_cells = [c for c in changes if c.suite != "More"]
    assert len(seed_cells) == 20
    assert len({c[1:4] for c in seed_cells}) == 20
    lines = "\n".join(report(changes, base, head, every=True))
    assert "test_e [numpy] passed (known to be hollow) -> missing" in lines
    assert "First suite test_c [torch] passed -> failed" in lines
    assert not head.complete
    assert head.gaps == ["1 expected row is missing"]
    rows = [row for suite in head.suites for row in suite.rows if row.expected]
    assert len(rows) == 5
    assert all(list(row.cells) == list(COLUMNS) for row in rows)


def test_the_command(tmp_path, folder, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["import", "seeds"]) == 2
    assert "needed a folder as seeds in [tool.scoreboard], got none" in capsys.readouterr().err
    settings = tmp_path / "pyproject.toml"
    for wrong, why in (("nowhere", "needed an index in"), ("empty", "needed a table [suites]")):
        settings.write_text(f"[tool.scoreboard]\nseeds = '{wrong}'\n")
        assert main(["import", "seeds"]) == 2
        assert why in capsys.readouterr().err
        (tmp_path / "empty").mkdir(exist_ok=True)
        (tmp_path / "empty" / "index.toml").write_text("")
    settings.write_text("[tool.scoreboard]\nseeds = 'tables'\n")
    assert main(["import", "seeds"]) == 0
    assert "run 0: 18 passed, 2 failed" in capsys.readouterr().out
    assert main(["diff", "0", "latest"]) == 0  # the same run: no differences
    assert main(["diff", "0", "99"]) == 2
    assert "needed a run, latest or previous; got 99; runs: 0" in capsys.readouterr().err
    assert main(["check", "--max-age", "3d", "--complete"]) == 3
    assert "of unknown age" in capsys.readouterr().out
    assert main(["show", "test_b", "--backend", "jax"]) == 0
    assert "✓ passed" in capsys.readouterr().out
    assert main(["show", "test_nothing"]) == 2
    capsys.readouterr()
    assert main(["flaky"]) == 0
    assert "0 flaky cells" in capsys.readouterr().out
    assert main(["render", "badge", "-o", "out"]) == 0
    assert "18/20" in (tmp_path / "out" / "scoreboard.svg").read_text()


def test_tables_and_junit_from_elsewhere(tmp_path, folder, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (folder / "first.md").read_text()
    (tmp_path / "some-suite.md").write_text(text)
    assert main(["import", "markdown", "some-suite.md"]) == 0
    with Store(tmp_path / ".scoreboard" / "board.db") as store:
        assert markdown.seed_table(store, 1, "some-suite") == text
    (tmp_path / "junit.xml").write_text(
        '<testsuites><testsuite name="pytest">'
        '<testcase classname="tests.test_a" name="test_x[jax-2]" time="0.5">'
        '<failure message="no &lt;good&gt;">trace</failure></testcase>'
        '<testcase classname="tests.test_a" name="test_x[numpy-2]" time="0.1"/>'
        '<testcase classname="tests.test_a" name="test_y[torch]" time="0.1">'
        '<skipped type="pytest.skip" message="why"/></testcase>'
        '<testcase classname="tests.test_a" name="test_z[jax]" time="0.1">'
        '<skipped type="pytest.xfail" message="known"/></testcase>'
        '<testcase classname="tests.test_a" name="test_z[numpy]" time="0.1">'
        '<error message="in setup">trace</error></testcase></testsuite></testsuites>'
    )
    assert main(["import", "junit", "junit.xml"]) == 0
    with Store(tmp_path / ".scoreboard" / "board.db") as store:
        found = {(r["name"], r["variant"], r["backend"]): r["state"] for r in store.results(2)}
    assert found == {
        ("test_x", "2", "jax"): 1, ("test_x", "2", "numpy"): 0, ("test_y", "", "torch"): 3,
        ("test_z", "", "jax"): 4, ("test_z", "", "numpy"): 2,
    }  # fmt: skip
    (tmp_path / "dated.xml").write_text(
        '<testsuites><testsuite timestamp="2026-11-15T12:00:00.5+02:00">'
        '<testcase classname="t" name="test_x[jax]" time="1"/></testsuite></testsuites>'
    )
    assert main(["import", "junit", "dated.xml"]) == 0
    with Store(tmp_path / ".scoreboard" / "board.db") as store:
        assert store.find("latest")["finished"] == "2026-11-15T10:00:00Z"
        runs = len(store.runs())
    capsys.readouterr()
    for form, wrong, why in (
        ("junit", "<testsuites><broken", "bad.txt: unclosed token"),
        ("junit", "<html/>", "bad.txt: Invalid format"),
        ("junit", '<testsuite><testcase name="a" time="b"/></testsuite>', "bad.txt: could not"),
        ("markdown", "no table", "bad.txt: needed a table"),
        ("markdown", text.replace("success", "sunshine"), "got 'sunshine'"),
        ("markdown", "\udcff", "bad.txt: 'utf-8' codec"),
    ):
        (tmp_path / "bad.txt").write_bytes(wrong.encode("utf-8", "surrogateescape"))
        assert main(["import", form, "bad.txt"]) == 2
        assert why in capsys.readouterr().err
        with Store(tmp_path / ".scoreboard" / "board.db") as store:
            assert len(store.runs()) == runs  # a failed import leaves nothing behind
    assert main(["import", "junit"]) == 2
    assert "needed files" in capsys.readouterr().err
