"""Small test projects, run by pytest in separate processes, as users run them."""

import sys
from pathlib import Path

import pytest

from isomorph.scoreboard.states import BY_CODE
from isomorph.scoreboard.store import Store

SOURCE = str(Path(__file__).parents[2] / "src")


@pytest.fixture
def project(pytester, monkeypatch):
    """A folder with tests; `project.run(...)` runs `pytest --scoreboard` in it."""
    monkeypatch.setenv("PYTHONPATH", SOURCE)
    for name in ("GITHUB_RUN_ID", "CI_PIPELINE_ID", "CI_JOB_URL", "BUILD_URL"):
        monkeypatch.delenv(name, raising=False)
    return Project(pytester)


class Project:
    def __init__(self, pytester):
        self.pytester = pytester
        self.path = pytester.path
        self.db = pytester.path / ".scoreboard" / "board.db"

    def file(self, name, text):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def arguments(self, *args):
        plugin = ("-p", "isomorph_scoreboard", "-p", "no:cacheprovider")
        return [sys.executable, "-m", "pytest", "-q", *plugin, "--scoreboard", *map(str, args)]

    def run(self, *args):
        return self.pytester.run(*self.arguments(*args))

    def command(self, *args):
        code = "import sys; from isomorph.command import main; sys.exit(main(sys.argv[1:]))"
        return self.pytester.run(sys.executable, "-c", code, "scoreboard", *map(str, args))

    def states(self, which="latest"):
        """(test, variant, backend) -> the name of its state, for a run."""
        with Store(self.db, write=False) as store:
            found = store.results(store.find(which)["run"])
        return {(r["name"], r["variant"], r["backend"]): BY_CODE[r["state"]].word for r in found}

    def query(self, text):
        with Store(self.db, write=False) as store:
            return [tuple(row) for row in store.db.execute(text)]
