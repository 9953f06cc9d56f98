"""The command line: `isomorph doctor` shows what isomorph finds on this machine, `isomorph
scoreboard` keeps the matrix of tests by backends, `isomorph bench` measures, `isomorph plot` draws
the logs of trainings, `isomorph launch` runs a script in several processes.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec

from ..core.dispatch import OWN
from ..version import __version__
from .installed import Installed, backends


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="isomorph", description="Gradients for the arrays you already have."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser(
        "doctor", help="show the backends installed here, their versions and devices"
    )
    commands.add_parser("scoreboard", help="the matrix of tests by backends", add_help=False)
    commands.add_parser("bench", help="time isomorph and its peers on this machine", add_help=False)
    commands.add_parser("launch", help="run a script in several processes here", add_help=False)
    plot = commands.add_parser("plot", help="draw the losses from logs of iso.fit in one picture")
    plot.add_argument("logs", nargs="+", metavar="LOG", help="a file that fit(log=...) wrote")
    plot.add_argument(
        "-o", "--out", required=True, metavar="FILE", help="the picture: .svg, .png or .pdf"
    )
    given = list(sys.argv[1:] if argv is None else argv)
    if given[:1] == ["bench"]:
        return bench(given[1:])
    if given[:1] == ["launch"]:
        from ..distribute.launch import main as launch

        return launch(given[1:])
    if given[:1] == ["scoreboard"]:
        return scoreboard(given[1:])
    asked = parser.parse_args(given)
    return draw(asked.logs, asked.out) if asked.command == "plot" else doctor()


def draw(logs: Sequence[str], out: str) -> int:
    """Draw logs and print the path of the picture, or the reason for a failure."""
    from ..training.reporting import plot_logs

    try:
        print(plot_logs(logs, out))
    except (OSError, ValueError, ImportError) as error:
        print(f"isomorph {error}", file=sys.stderr)
        return 2
    return 0


def scoreboard(argv: Sequence[str]) -> int:
    """The command `scoreboard` of the distribution pytest-scoreboard."""
    try:
        from pytest_scoreboard.command import main
    except ModuleNotFoundError:
        print(
            "isomorph scoreboard: needed the package pytest_scoreboard, found none; "
            "pip install ./pytest-scoreboard in a checkout of isomorph",
            file=sys.stderr,
        )
        return 2
    return main(argv, "isomorph scoreboard")


def bench(argv: Sequence[str]) -> int:
    """Run the benchmarks in their own process: threads are pinned before anything is imported.

    They are a separate package because they import every framework.
    """
    if find_spec("isomorph_benchmarks") is None:
        print(
            "isomorph bench: needed the package isomorph_benchmarks of an installed isomorph; "
            "pip install 'isomorph[bench]', or run python -m benchmarks in a checkout",
            file=sys.stderr,
        )
        return 2
    try:
        return subprocess.run(
            [sys.executable, "-m", "isomorph_benchmarks", *argv], check=False
        ).returncode
    except KeyboardInterrupt:
        return 130


def doctor() -> int:
    """Print the backends; exit status 1 if an installed one does not load."""
    print(f"isomorph {__version__} on Python {platform.python_version()}, {platform.platform()}\n")
    every = backends()
    width = max(12, *(len(name) + 2 for name in every))
    print(f"{'backend':<{width}}{'version':<14}devices")
    broken = 0
    for name, found in every.items():
        line, ok = _line(found)
        print(f"{name:<{width}}{line}")
        broken += not ok
    return 1 if broken else 0


def _line(found: Installed) -> tuple[str, bool]:
    if not found.installed:
        how = f": pip install 'isomorph[{found.name}]'" if found.name in OWN else ""
        return f"{'-':<14}not installed{how}", True
    try:
        with quiet():
            devices = ", ".join(found.devices)
    except Exception as error:  # the report must show whatever a broken installation raises
        return f"{found.version:<14}does not load: {type(error).__name__}: {error}", False
    return f"{found.version:<14}{devices}", True


@contextmanager
def quiet() -> Iterator[None]:
    """Hide what a framework's C++ code logs while it loads; exceptions still come through."""
    saved, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nothing)
