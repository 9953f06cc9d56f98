"""The project of docs/tutorials/library.md: its files, as printed, pass on the board as printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from frameworks import BACKENDS, NOT_INSTALLED

PAGE = Path(__file__).parents[2] / "docs/tutorials/library.md"
SOURCE = Path(__file__).parents[2] / "src"
pytest.importorskip("jinja2")
pytest.importorskip("tabulate")


def check(folder, names, *words):
    """Run the project for some backends; all its tests pass, and the board shows them."""
    files = re.findall(
        r'^```python title="not run: the file (\S+)"\n(.*?)^```', PAGE.read_text(), re.S | re.M
    )
    assert [name for name, _ in files] == ["mmd.py", "conftest.py", "test_mmd.py"]
    for name, content in files:
        (folder / name).write_text(content)
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTEST_ADDOPTS": ""}
    run = lambda *words: subprocess.run(
        [sys.executable, "-m", *words], cwd=folder, env=environment, capture_output=True, text=True
    )
    done = run("pytest", "--scoreboard", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in names:
        assert f"{name} 5/5: 5 passed" in done.stdout
    shown = run("pytest_scoreboard", "render", "md", "-o", "board")
    assert shown.returncode == 0, shown.stderr
    table = "\n".join(page.read_text() for page in (folder / "board").glob("*.md"))
    for test in ("test_value", "test_gradients", "test_equal_samples", "test_one_value"):
        assert test in table


def test_the_project_on_numpy(tmp_path):
    check(tmp_path, ["numpy"], "-k", "numpy")


@pytest.mark.slow  # torch's compiler, and differences one element after the other on JAX
def test_the_project_on_all(tmp_path):
    check(tmp_path, [name for name in BACKENDS if name not in NOT_INSTALLED])
