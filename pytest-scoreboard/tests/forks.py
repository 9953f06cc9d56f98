"""Runs of pytest in forks of one process that has imported what a run needs: as separate as new
processes, in a quarter of their time. As a script it is that process: each line that it reads asks
for a run, and it answers with the exit status.
"""

import gc
import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest

import pytest_scoreboard

SOURCE = str(Path(pytest_scoreboard.__file__).parents[1])
# Without plugins that tests do not ask for: finding them takes longer than a small run.
ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": SOURCE}
NEEDED = ("sqlite3", *(f"pytest_scoreboard.{name}" for name in ("watching", "recorder")))


class Forks:
    """The process that forks, from the first run until `close`."""

    def __init__(self):
        self.server = subprocess.Popen(
            [sys.executable, __file__], env={**os.environ, **ALONE}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def run(self, args, folder):
        """Run pytest in a folder; return what `pytester.run` returns."""
        out, err = (folder / name for name in ("stdout.txt", "stderr.txt"))
        asked = {
            "args": args, "folder": str(folder), "env": {**os.environ, **ALONE},
            "files": [os.devnull, str(out), str(err)],
        }  # fmt: skip
        began = time.perf_counter()
        print(json.dumps(asked), file=self.server.stdin, flush=True)
        status = int(self.server.stdout.readline())
        texts = [path.read_text() for path in (out, err)]
        print(*texts, sep="\n")  # shown if the test fails
        lines = [text.splitlines() for text in texts]
        return pytest.RunResult(status, *lines, time.perf_counter() - began)

    def close(self):
        self.server.stdin.close()
        self.server.wait()
        self.server.stdout.close()


def serve():
    from _pytest.config import default_plugins

    for name in (*(f"_pytest.{plugin}" for plugin in default_plugins), *NEEDED):
        import_module(name)
    with suppress(ImportError):
        import_module("numpy")
    gc.freeze()  # a run collects garbage twice: not this process's
    for line in sys.stdin:
        child = os.fork()
        if not child:
            return run(**json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    return 0


def run(args, folder, env, files):
    """Become `python -m pytest` in a folder."""
    for number, path in enumerate(files):
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC if number else os.O_RDONLY
        os.dup2(os.open(path, flags, 0o600), number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    sys.argv, sys.path[0] = ["pytest", *args], folder
    return pytest.main()


if __name__ == "__main__":
    sys.exit(serve())
