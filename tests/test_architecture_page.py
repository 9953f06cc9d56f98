"""ARCHITECTURE.md is true: its files exist, and following its "How to add" sections in a copy of
the repository is enough.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from frameworks import ABSENT

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "ARCHITECTURE.md").read_text()
MOST = {"function": 5, "special function": 3, "layer": 3, "optimizer": 2, "derivative": 1}
STEP = re.compile(
    r"^In `(?P<file>[^`]+)`, "
    r"(?:at the end|after (?P<line>the line )?`(?P<anchor>[^`]+)`)[^\n]*:\n\n"
    r"```python\n(?P<code>.*?)```",
    re.M | re.S,
)
# The tests about names that `make names` runs, and the architecture rules.
MAKE = (ROOT / "Makefile").read_text().replace("\\\n", " ")
LOOKS = (
    *re.search(r"^NAMES := (.*)", MAKE, re.M).group(1).split(),
    "tests/backends/test_numpy_rules.py",
)
WORDS = ("name", "override", "verb", "room", "circles", "direction", "docstrings", "reason")
# and the number of tests for each
NEW = {"squareplus": 4, "cosm1": 2, "Scale": 4, "sign_descent": 4, "exprel": 2}


def steps(topic):
    """(file, whether after a whole line, anchor, code) of every step to add something."""
    _, _, rest = PAGE.partition(f"### A{'n' if topic[0] in 'aeiou' else ''} {topic} ")
    section, _, _ = rest.partition("\n### ")
    return [step.group("file", "line", "anchor", "code") for step in STEP.finditer(section)]


def follow(house, file, whole_line, anchor, code):
    path = house / file
    text = path.read_text()
    if anchor is None:
        path.write_text(f"{text.rstrip()}\n\n\n{code}")
        return
    lines = text.splitlines(keepends=True)
    found = [i for i, line in enumerate(lines) if line.strip().startswith(anchor.strip())]
    assert len(found) == 1, f"{file} has {len(found)} lines that begin with {anchor!r}"
    line = lines[found[0]]
    if whole_line or line.rstrip().endswith(("(", "[", "{")):
        lines.insert(found[0] + 1, code)
    else:  # the list continues on the same line
        head = line.index(anchor.strip()) + len(anchor.strip())
        lines[found[0]] = f"{line[:head]}{code.strip()} {line[head:]}"
    path.write_text("".join(lines))


@pytest.mark.parametrize(("topic", "most"), MOST.items())
def test_adding_takes_few_files(topic, most):
    files = {file for file, *_ in steps(topic)}
    assert 1 <= len(files) <= most
    assert all((ROOT / file).exists() for file in files)


BOARD = ROOT / "pytest-scoreboard" / "src"


def test_the_map_shows_what_is_there():
    drawn = PAGE.partition("```\n")[2].partition("```")[0]
    source = ROOT / "src" / "isomorph"
    for file in re.findall(r"[\w/]+\.py", drawn):
        assert (source / file).exists(), file
    drawn_files = set(re.findall(r"\w+\.py", drawn))
    missing = {p.name for p in source.glob("*.py")} - drawn_files - {"__init__.py"}
    assert not missing, f"the map does not show {missing}"
    rooms = {p.name for p in source.iterdir() if p.is_dir() and p.name != "__pycache__"}
    assert rooms == set(re.findall(r"(?:^|  )(\w+)/(?=\s)", drawn, re.M)) | {"backends"}
    for file in re.findall(r"`([a-z_/]+\.py)`", PAGE):
        there = [source / file, ROOT / file, *source.rglob(file), *BOARD.rglob(file)]
        assert any(p.exists() for p in there), file


@pytest.mark.slow
@pytest.mark.skipif(bool(ABSENT), reason="it looks at every backend")
@pytest.mark.timeout(300)
def test_done_as_it_says_it_is_done(tmp_path, capsys):
    for part in ("src", "tests", "docs_build", "benchmarks", "pytest-scoreboard"):
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / part, tmp_path / part, ignore=ignored)
    for file in ("pyproject.toml", "README.md", "ARCHITECTURE.md", "Makefile"):
        shutil.copy(ROOT / file, tmp_path / file)
    for topic in MOST:
        for step in steps(topic):
            follow(tmp_path, *step)
    report = tmp_path / "report.xml"
    run = lambda *args: subprocess.run(
        [sys.executable, "-m", *args], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
    )  # fmt: skip
    tidy = run("ruff", "check", "--fix", "src", "tests")
    assert tidy.returncode == 0, tidy.stdout
    done = run(
        "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-x", "-m", "not slow",
        "-k", " or ".join((*NEW, *WORDS)),
        f"--junitxml={report}", *LOOKS,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    cases = [case for case in ElementTree.parse(report).getroot().iter("testcase") if not len(case)]
    passed = {name: sum(name in case.get("name") for case in cases) for name in NEW}
    with capsys.disabled():
        print(f"\nARCHITECTURE.md was followed; {len(cases)} tests passed, of what is new {passed}")
    assert all(passed[name] >= least for name, least in NEW.items())
