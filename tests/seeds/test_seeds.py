"""The 46 rows that isomorph is measured by: the numbers of their tables, and of run 0."""

import re
import tomllib
from pathlib import Path

import pytest

from pytest_scoreboard import importing, markdown
from pytest_scoreboard.store import Store

FOLDER = Path(__file__).parent


def test_the_project_gives_them_to_its_board():
    said = tomllib.loads((FOLDER.parents[1] / "pyproject.toml").read_text("utf-8"))
    board = said["tool"]["scoreboard"]
    assert (board["seeds"], board["expected"]) == ("tests/seeds", "seeds")


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "board.db") as store:
        importing.seeds(store, FOLDER)
        yield store


def count(store, text):
    return store.db.execute(f"SELECT count(*) FROM {text}").fetchone()[0]


def test_the_numbers(store):
    importing.seeds(store, FOLDER)  # a second time changes nothing
    assert count(store, "test") == 46
    assert count(store, "result WHERE run = 0") == 184
    assert count(store, "result WHERE state = 0") == 170
    assert count(store, "result WHERE state = 1") == 14
    assert count(store, "result JOIN job USING (job) WHERE url IS NOT NULL") == 84
    assert count(store, "job WHERE url IS NOT NULL") == 57
    assert count(store, "remark WHERE kind = 'hollow'") == 21


def test_the_numbers_are_those_of_the_text():
    """The same numbers without the importer: by counting in the files."""
    text = "\n".join(importing.seed_texts(FOLDER).values())
    assert len(re.findall(r"^\| test_", text, re.M)) == 46
    assert text.count("-success-success") == 170
    assert text.count("-failure-red") == 14
    links = re.findall(r'href="(https://[^"]*/runs/[^"]*)"', text)
    assert (len(links), len(set(links))) == (84, 57)


def test_tables_come_back_byte_for_byte(store):
    texts = importing.seed_texts(FOLDER)
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
