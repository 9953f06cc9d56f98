"""The seed tables: imported as run 0, written back byte for byte, compared with later runs."""

import re
from collections import Counter

import pytest

from isomorph.scoreboard import importing, markdown
from isomorph.scoreboard.board import Board
from isomorph.scoreboard.command import main
from isomorph.scoreboard.config import Config
from isomorph.scoreboard.diff import compare, report
from isomorph.scoreboard.states import BY_WORD
from isomorph.scoreboard.store import Result, Store

COLUMNS = ("numpy", "jax", "tensorflow", "torch")
SETTINGS = Config(columns=COLUMNS, expected="seeds")


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "board.db") as store:
        importing.seeds(store)
        yield store


def count(store, text):
    return store.db.execute(f"SELECT count(*) FROM {text}").fetchone()[0]


def test_the_numbers(store):
    importing.seeds(store)  # a second time changes nothing
    assert count(store, "test") == 46
    assert count(store, "result WHERE run = 0") == 184
    assert count(store, "result WHERE state = 0") == 170
    assert count(store, "result WHERE state = 1") == 14
    assert count(store, "result JOIN job USING (job) WHERE url IS NOT NULL") == 84
    assert count(store, "job WHERE url IS NOT NULL") == 57
    assert count(store, "remark WHERE kind = 'hollow'") == 21


def test_the_numbers_are_those_of_the_text():
    """The same numbers without the importer: by counting in the files."""
    text = "\n".join(importing.seed_texts().values())
    assert len(re.findall(r"^\| test_", text, re.M)) == 46
    assert text.count("-success-success") == 170
    assert text.count("-failure-red") == 14
    links = re.findall(r'href="(https://[^"]*/runs/[^"]*)"', text)
    assert (len(links), len(set(links))) == (84, 57)


def test_tables_come_back_byte_for_byte(store):
    texts = importing.seed_texts()
    assert len(texts) == 5
    for title, text in texts.items():
        assert markdown.seed_table(store, 0, title).encode() == text.encode()


def test_hollow_greens_are_green_on_numpy_and_have_a_reason(store):
    for r in store.db.execute("SELECT * FROM remark").fetchall():
        assert r["backend"] == "numpy"
        assert len(r["text"]) > 20
        states = [
            x["state"] for x in store.results(0)
            if (x["suite"], x["name"], x["backend"]) == (r["suite"], r["name"], "numpy")
        ]  # fmt: skip
        assert states == [0]


def test_diff_says_what_became_of_every_seed_cell(store):
    """A run with everything fixed except one, one regression, one hollow, one row not run, one
    extra row.
    """
    run = store.begin("ours", "local", started="2026-11-15T00:00:00Z")
    job = store.job(run, "main", complete=1)
    changed = {
        ("test_module_training", "jax"): "failed",  # failed in the seeds
        ("test_linear", "torch"): "failed",  # passed in the seeds
        ("test_dropout", "jax"): "hollow",
    }
    for r in store.results(0):
        if r["name"] != "test_top_module":
            word = changed.get((r["name"], r["backend"]), "passed")
            code = BY_WORD[word].code
            where = (r["suite"], r["name"], "", "t.py", r["backend"], "eager", "")
            store.add(run, job, [Result(*where, code)])
    store.add(run, job, [Result("More", "test_more", "", "u.py", "jax", "eager", "", 0)])
    base, head = (Board.load(store, n, SETTINGS) for n in (0, run))
    changes = compare(base, head)
    kinds = Counter(c.kind for c in changes)
    # 14 red: 13 fixed, one still red. 21 hollow greens, less the one of the row that did not run,
    # are proved. 184 - 14 - 20 - 2 regressed - 4 of that row are the same as before.
    assert kinds == {
        "fixed": 13, "still failing": 1, "regressed": 2, "proved": 20, "only there": 4,
        "only here": 1, "same": 144,
    }  # fmt: skip
    seed_cells = [c for c in changes if c.suite != "More"]
    assert len(seed_cells) == 184
    assert len({c[1:4] for c in seed_cells}) == 184
    lines = "\n".join(report(changes, base, head, every=True))
    assert "test_top_module [numpy] passed (known to be hollow) -> missing" in lines
    assert "Functional API/NN/layers test_linear [torch] passed -> failed" in lines
    assert not head.complete
    assert head.gaps == ["1 expected row is missing"]
    rows = [row for suite in head.suites for row in suite.rows if row.expected]
    assert len(rows) == 46
    assert all(list(row.cells) == list(COLUMNS) for row in rows)


def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["import", "seeds"]) == 0
    assert "run 0: 170 passed, 14 failed" in capsys.readouterr().out
    assert main(["diff", "0", "latest"]) == 0  # the same run: no differences
    assert main(["diff", "0", "99"]) == 2
    assert "needed a run, latest or previous; got 99; runs: 0" in capsys.readouterr().err
    assert main(["check", "--max-age", "3d", "--complete"]) == 3
    assert "of unknown age" in capsys.readouterr().out
    assert main(["show", "test_jac", "--backend", "jax"]) == 0
    assert "✓ passed" in capsys.readouterr().out
    assert main(["show", "test_nothing"]) == 2
    capsys.readouterr()
    assert main(["flaky"]) == 0
    assert "0 flaky cells" in capsys.readouterr().out
    assert main(["render", "badge", "-o", "out"]) == 0
    assert "170/184" in (tmp_path / "out" / "scoreboard.svg").read_text()


def test_tables_and_junit_from_elsewhere(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = next(iter(importing.seed_texts().values()))
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
