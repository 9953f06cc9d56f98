"""Small test projects, run by pytest in separate processes, as users run them."""

import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from importlib.util import find_spec
from io import StringIO

import pytest

from pytest_scoreboard.command import main
from pytest_scoreboard.states import BY_CODE
from pytest_scoreboard.store import Store

from .forks import ALONE, Forks

CI = ("GITHUB_RUN_ID", "CI_PIPELINE_ID", "CI_JOB_URL", "BUILD_URL")
PLUGIN = ("-p", "pytest_scoreboard.plugin", "-p", "no:cacheprovider")


@pytest.fixture(scope="session")
def forks():
    forks = Forks()
    yield forks
    forks.close()


@pytest.fixture
def project(tmp_path, monkeypatch, forks):
    """A folder with tests, where we are; `project.run(...)` runs `pytest --scoreboard` in it."""
    monkeypatch.chdir(tmp_path)
    for name in CI:
        monkeypatch.delenv(name, raising=False)
    return Project(tmp_path, forks)


def needs(*packages):
    """A mark: the test is skipped where one of these packages is not installed."""
    missing = [name for name in packages if find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


class Project:
    def __init__(self, path, forks):
        self.path, self.forks = path, forks
        self.db = path / ".scoreboard" / "board.db"

    def file(self, name, text):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def start(self, *args, **options):
        """Begin a run in a new process."""
        words = [sys.executable, "-m", "pytest", "-q", *PLUGIN, "--scoreboard", *args]
        env = {**os.environ, **ALONE, **options.pop("env", {})}
        return subprocess.Popen(words, cwd=self.path, env=env, **options)

    def run(self, *args):
        return self.plain("--scoreboard", *args)

    def plain(self, *args):
        return self.forks.run(["-q", *PLUGIN, *map(str, args)], self.path)

    def command(self, *args):
        """`scoreboard …` in this folder."""
        out, err = StringIO(), StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            try:
                status = main([*map(str, args)])
            except SystemExit as error:
                status = error.code
        lines = [stream.getvalue().splitlines() for stream in (out, err)]
        return pytest.RunResult(status, *lines, 0.0)

    def states(self, which="latest", file=None):
        """(test, variant, backend) -> the name of its state, for a run, of one file or all."""
        with Store(self.db, write=False) as store:
            found = store.results(store.find(which)["run"])
        return {
            (r["name"], r["variant"], r["backend"]): BY_CODE[r["state"]].word
            for r in found
            if file in (None, r["file"])
        }

    def query(self, text):
        with Store(self.db, write=False) as store:
            return [tuple(row) for row in store.db.execute(text)]
