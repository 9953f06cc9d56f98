"""Every code block of the pages runs, or says why not."""

import pytest
from frameworks import ABSENT

from .blocks import BACKENDS, EACH, NOT_RUN, ROOT, blocks, run_page

# Other tests run the examples of docstrings, of which the API pages are made, and reports of bugs.
PAGES = sorted(
    path
    for path in (ROOT / "docs").rglob("*.md")
    if path.relative_to(ROOT / "docs").parts[0] not in ("api", "scoreboard", "upstream")
)
BLOCKS = [block for path in PAGES for block in blocks(path)]


@pytest.mark.skipif(bool(ABSENT), reason="pages use all four frameworks")
@pytest.mark.parametrize(
    "path",
    [path for path in PAGES if any(block.runs for block in blocks(path))],
    ids=lambda path: path.relative_to(ROOT / "docs").as_posix(),
)
def test_every_block_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # for files that a page writes
    names = run_page(path)
    assert len(names) > 1


def test_what_is_not_run_says_why_and_is_little():
    python = [block for block in BLOCKS if block.language == "python"]
    left = [block for block in python if not block.runs]
    for block in left:
        reason = block.title.removeprefix(NOT_RUN).split()
        assert len(reason) >= 2, f"{block.path}:{block.line}: why is it not run?"
    assert len(left) <= len(python) / 4, f"{len(left)} of {len(python)} blocks are not run"


def test_no_block_hides_from_the_tests():
    for block in BLOCKS:
        where = f"{block.path}:{block.line}"
        other = ("py", "python3", "Python", "pycon", "{")
        assert not block.language.startswith(other) or block.language == "python", where
        assert ">>> " not in block.code, f"{where}: write asserts instead"
        if block.title and block.language == "python":
            assert not (block.title != EACH and block.title.lower().startswith("each")), where


def test_the_runner_runs(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nfound = []\n```\n\n"
        '```python title="each backend"\nfound.append(backend)\n```\n\n'
        '```python title="not run: it would fail"\n1 / 0\n```\n\n'
        "* a list:\n\n  ```python\n  if found:\n      last = found[-1]\n  ```\n\n"
        "```\nnot Python\n```\n"
    )
    names = run_page(page)
    assert names["found"] == list(BACKENDS)
    assert names["last"] == "torch"
    page.write_text("text\n\n```python\nx = 1\nassert x == 2\n```\n")
    with pytest.raises(AssertionError) as error:
        run_page(page)
    assert error.traceback[-1].lineno + 1 == 5
    page.write_text("```python\nx = 1\n")
    with pytest.raises(AssertionError, match="no end"):
        run_page(page)
