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


def test_the_project_of_the_page(tmp_path):
    text = PAGE.read_text()
    files = re.findall(r'^```python title="not run: the file (\S+)"\n(.*?)^```', text, re.S | re.M)
    assert [name for name, _ in files] == ["mmd.py", "conftest.py", "test_mmd.py"]
    for name, content in files:
        (tmp_path / name).write_text(content)
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTEST_ADDOPTS": ""}
    run = lambda *words: subprocess.run(
        [sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    # torch compiles for long; that its compiled programs are right is tested elsewhere
    done = run("-m", "pytest", "--scoreboard", "--deselect=test_mmd.py::test_value[torch-jit]")
    assert done.returncode == 0, done.stdout + done.stderr
    for name in BACKENDS:
        if name not in NOT_INSTALLED:
            count = 4 if name == "torch" else 5
            assert f"{name} {count}/{count}: {count} passed" in done.stdout
    shown = run("-m", "isomorph", "scoreboard", "render", "md", "-o", "board")
    assert shown.returncode == 0, shown.stderr
    table = "\n".join(p.read_text() for p in (tmp_path / "board").glob("*.md"))
    for test in ("test_value", "test_gradients", "test_equal_samples", "test_one_value"):
        assert test in table
