"""Ways to use the scoreboard: its entry point and imports, the example project, the
command line.
"""

import os
import pty
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

import pytest_scoreboard
from pytest_scoreboard import tally
from pytest_scoreboard.command import main

from .conftest import needs

ROOT = Path(__file__).parents[1]


def test_the_entry_point_is_declared_and_light():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    said = project["project"]["entry-points"]["pytest11"]
    assert said == {"scoreboard": "pytest_scoreboard.plugin"}
    code = (
        "import sys; import pytest; before = set(sys.modules); import pytest_scoreboard.plugin;"
        "print(sorted(set(sys.modules) - before))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert shown.stdout.strip() == "['pytest_scoreboard', 'pytest_scoreboard.plugin']"


def test_the_package_shows_its_names():
    assert sorted(pytest_scoreboard.__all__) == ["comparing", "record_error", "record_mode"]
    for name in pytest_scoreboard.__all__:
        assert getattr(pytest_scoreboard, name) is getattr(tally, name)
    with pytest.raises(AttributeError, match="no attribute 'record'"):
        pytest_scoreboard.record  # noqa: B018


def test_a_built_wheel_carries_the_door_and_the_data(tmp_path):
    pytest.importorskip("setuptools", minversion="77")
    copy = tmp_path / "copy"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
    code = "from setuptools.build_meta import build_wheel; build_wheel('..')"
    done = subprocess.run([sys.executable, "-c", code], cwd=copy, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
        entry = next(n for n in names if n.endswith("entry_points.txt"))
        assert "[pytest11]\nscoreboard = pytest_scoreboard.plugin" in file.read(entry).decode()
    for name in ("plugin.py", "py.typed", "schema.sql", "page/page.html", "page/page.js",
                 "page/page.css"):  # fmt: skip
        assert f"pytest_scoreboard/{name}" in names
    assert all(n.startswith(("pytest_scoreboard/", "pytest_scoreboard-")) for n in names)


def test_the_foreign_example(project):
    for path in (ROOT / "example").glob("*.py"):
        project.file(path.name, path.read_text())
        assert "pytest_scoreboard" not in path.read_text()
    project.file(
        "conftest.py",
        "import sys\n"
        "def pytest_sessionfinish():\n"
        "    print('frameworks:', sorted({'jax', 'tensorflow', 'torch'} & set(sys.modules)))\n",
    )
    done = project.run("--scoreboard-axis", "engine", "-s")
    assert done.ret == 0
    out = done.stdout.str()
    assert "frameworks: []" in out
    assert "cython 3/3: 2 skipped, 1 hollow" in out
    assert "fraction 3/3: 3 passed" in out
    shown = project.command("render", "html", "-o", "board")
    assert shown.ret == 0, shown.stderr.str()
    assert "1 red cell" in (project.path / "board" / "index.html").read_text()
    assert project.run("--scoreboard-axis", "engine", "--scoreboard-fail-on", "hollow").ret == 1


def test_plain_runs_after_a_scoreboard_run_and_before(project):
    """The two ways of rewriting assertions use separate cache files."""
    project.file(
        "test_it.py",
        "import pytest\n"
        "@pytest.mark.parametrize('backend', ['a'])\n"
        "def test_it(backend): assert 1\n",
    )
    for _ in range(2):
        assert project.plain("test_it.py").ret == 0
        assert project.run("test_it.py").ret == 0
        assert project.states() == {("test_it", "", "a"): "passed"}


def test_the_option_takes_no_path_without_a_sign(project):
    """`--scoreboard checks` means the tests in `checks`, whose conftest has its own options."""
    project.file(
        "checks/conftest.py",
        "def pytest_addoption(parser): parser.addoption('--foo', action='store_true')\n",
    )
    project.file("checks/test_it.py", "def test_it(request): assert request.config.option.foo\n")
    done = project.run("checks", "--foo")
    assert done.ret == 0, done.stderr.str()
    assert project.states() == {("test_it", "", ""): "passed"}


def test_the_command_line(capsys):
    assert main(["--db", "/nowhere/at/all.db", "flaky"]) == 2
    assert "needed a database, found none" in capsys.readouterr().err
    with pytest.raises(SystemExit) as exit:
        main(["sunshine"])
    assert exit.value.code == 2


@needs("rich")
@pytest.mark.takes("it runs pytest in a terminal")
def test_progress_per_backend_on_a_terminal_and_off_it(project):
    """The table is shown while tests run, though pytest captures their output. Without a terminal,
    a line every half minute says the same.
    """
    path = project.file(
        "test_it.py",
        "import pytest, time\n"
        "@pytest.mark.parametrize('n', range(2))\n"
        "@pytest.mark.parametrize('backend', ['a', 'b'])\n"
        "def test_it(backend, n):\n"
        "    print('said by a test')\n"
        "    time.sleep(0.35)\n"
        "    assert (backend, n) != ('b', 1)\n",
    )
    ours, theirs = pty.openpty()
    env = {"TERM": "xterm-256color", "COLUMNS": "80"}
    run = project.start("--tb=short", stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # the terminal closed
        while part := os.read(ours, 65536):
            shown += part
    os.close(ours)
    assert run.wait() == 1
    live, _, after = re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).partition("FAILURES")
    for done in ("1/2", "2/2"):
        assert re.search(f"a +│ +{done}", live), live
    assert re.search("b +│ +2/2 │ +✓ 1 │ +✗ 1", live)
    assert re.search(r"Captured stdout call -+\s+said by a test\s+---", after), after

    project.file("conftest.py", "from pytest_scoreboard import progress\nprogress.EVERY = 0\n")
    path.write_text(path.read_text().replace("0.35", "0"))
    out = project.run().stdout.str()
    assert "a 1/2: 1 passed | b 0/2: " in out
    assert "a 2/2: 2 passed\nb 2/2: 1 passed, 1 failed\n" in out
