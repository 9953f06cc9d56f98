"""The doors to pytest-scoreboard, a distribution of its own, and the wheel without it."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import isomorph.scoreboard
import pytest_scoreboard
from isomorph.cli.command import main

ROOT = Path(__file__).parents[2]


def test_the_names_are_the_same_objects():
    assert isomorph.scoreboard.__all__ == pytest_scoreboard.__all__
    for name in pytest_scoreboard.__all__:
        assert getattr(isomorph.scoreboard, name) is getattr(pytest_scoreboard, name)


def test_the_command_is_the_same(capsys):
    assert main(["scoreboard", "--db", "/nowhere/at/all.db", "flaky"]) == 2
    assert "needed a database, found none" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["scoreboard", "--help"])
    assert capsys.readouterr().out.startswith("usage: isomorph scoreboard [-h]")


def test_where_it_is_not_installed_both_say_so():
    code = (
        "import sys; sys.modules['pytest_scoreboard'] = None\n"
        "sys.modules['pytest_scoreboard.command'] = None\n"
        "from isomorph.cli.command import main\n"
        "assert main(['scoreboard', 'flaky']) == 2\n"
        "import isomorph.scoreboard\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    command, *_, imported = done.stderr.splitlines()
    hint = "pip install ./pytest-scoreboard in a checkout of isomorph"
    assert command.startswith("isomorph scoreboard: needed the package")
    assert command.endswith(hint)
    assert imported.startswith("ImportError: isomorph.scoreboard: needed the package")
    assert imported.endswith(hint)


def test_a_built_wheel_has_the_benchmarks_under_their_own_name(tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    for name in ("src", "benchmarks"):
        shutil.copytree(
            ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
    code = "from setuptools.build_meta import build_wheel; build_wheel('..')"
    done = subprocess.run([sys.executable, "-c", code], cwd=copy, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
    for name in ("__main__.py", "command.py", "page/page.html", "page/page.css",
                 "training/steps.py"):  # fmt: skip
        assert f"isomorph_benchmarks/{name}" in names
    assert "isomorph/scoreboard.py" in names
    assert not [n for n in names if n.startswith(("benchmarks/", "tests/", "pytest_scoreboard"))]
