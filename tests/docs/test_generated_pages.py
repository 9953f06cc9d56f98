"""The generated pages agree with their data."""

import re
from collections import Counter

import pytest

import docs_build
from docs_build import api, measured, support
from isomorph.backends.composed import Backend
from isomorph.cli.command import main
from isomorph.core.dispatch import load

from .blocks import ROOT

KEPT = docs_build.kept()


@pytest.mark.parametrize("path", sorted(KEPT))
def test_a_page_is_up_to_date(path):
    text = (ROOT / "docs" / path).read_text("utf-8")
    assert text == KEPT[path], "run `make docs`"


def test_no_picture_is_left_over():
    kept = {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs/benchmarks").iterdir()}
    assert kept == {path for path in KEPT if path.startswith("benchmarks/")}


def test_the_readme_has_the_totals_of_the_benchmarks_and_of_the_board():
    text = (ROOT / "README.md").read_text("utf-8")
    assert text == docs_build.readme(text), "run `make docs`"
    board = (ROOT / "docs/scoreboard/README.md").read_text("utf-8")
    totals = re.search(r"^\|.*\|$\n(?:\|.*\|\n)+", board, re.M)[0]
    run, ended = re.search(r"Run (\d+), .*?: tests ended (\S+),", board).groups()
    guide = (ROOT / "docs/scoreboard.md").read_text("utf-8")
    for page in (text, guide):
        between = page.split("<!-- scoreboard -->")[1].split("<!-- /scoreboard -->")[0]
        assert totals in between
        assert f"Run {run}," in between
        assert ended in between


def test_benchmark_totals_are_those_of_the_files():
    """Counted by lines, not by the parser of tables."""
    kept = judged = 0
    for name in measured.FILES:
        for line in (measured.RESULTS / f"{name}.md").read_text("utf-8").splitlines():
            cells = [cell.strip() for cell in line.split("|")]
            if line.startswith("|") and ("yes" in cells or "NO" in cells):
                # a row may have a second answer, to whether Keras is slower: the first is `met`
                met = next(cell for cell in cells if cell in ("yes", "NO", "-"))
                kept, judged = kept + (met == "yes"), judged + (met in ("yes", "NO"))
    assert measured.totals(measured.everything()) == (kept, judged)
    assert {path.stem for path in measured.RESULTS.glob("*.md")} == set(measured.FILES)


def test_the_rows_of_the_support_page_are_those_of_the_board():
    rows = re.findall(r"^\| `(test_\w+)` \|(.*)\|$", support.board(), re.M)
    assert len(rows) == 46
    states = Counter(state.strip() for _, cells in rows for state in cells.split("|"))
    assert set(states) <= {"passed", "skipped"}


def test_layers_with_a_way_of_their_own_have_one(backend):
    """The page reads the source; the classes say the same."""
    column = support.BACKENDS.index(backend)
    cls = type(load(backend))
    rows = re.findall(r"^\| `iso\.(\w+)` \|(.*)\|$", support.own_ways(), re.M)
    assert len(rows) > 10
    for word, cells in rows:
        own = getattr(cls, word) is not getattr(Backend, word)
        assert own == (cells.split("|")[column].strip() == "own"), word


def test_the_menu_has_every_page():
    menu = (ROOT / "mkdocs.yml").read_text("utf-8")
    listed = re.findall(r"(?:^ +- |: )([\w/-]+\.md)$", menu, re.M)
    assert len(listed) == len(set(listed))
    docs = {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")}
    docs = {p for p in docs if not p.startswith(("scoreboard/", "upstream/"))} | set(api.pages())
    assert set(listed) == docs


def test_every_command_is_on_its_page(capsys):
    page = (ROOT / "docs/commands.md").read_text("utf-8")
    with pytest.raises(SystemExit):
        main(["--help"])
    parts = re.search(r"\{([\w,]+)\}", capsys.readouterr().out)[1].split(",")
    assert len(parts) == 5
    assert all(f"`isomorph {part}" in page for part in parts)
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.M)[1].split()
    listed = set(re.findall(r"`make ([\w-]+)", page))
    assert listed == set(targets) - {"clean", "lint", "browser"}
