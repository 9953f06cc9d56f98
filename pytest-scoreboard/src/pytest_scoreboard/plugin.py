"""The pytest plugin's door: options, and the rest only when `--scoreboard` is given. pytest imports
it in every run of every project where the distribution is installed: it costs nothing.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import pytest

# Options with which pytest runs no test: no run of the scoreboard either.
NO_TESTS = ("help", "version", "markers", "showfixtures", "show_fixtures_per_test", "collectonly",
            "setuponly", "setupplan", "cacheshow")  # fmt: skip


class Hooks:
    """What a conftest.py tells the scoreboard."""

    @staticmethod
    def pytest_scoreboard_left_out(items: list[pytest.Item], seed: object) -> None:
        """A sample, drawn by `seed`, left these tests out. Called while tests are collected, next
        to `pytest_deselected`, by whoever draws the sample.
        """


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(Hooks)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("scoreboard", "a matrix of tests by backends")
    group.addoption(
        "--scoreboard",
        nargs="?",
        const="",
        metavar="PATH",
        help="record this run in a scoreboard database (--scoreboard=PATH; else the project's own)",
    )
    group.addoption(
        "--scoreboard-axis",
        metavar="NAME",
        help="the parameter or fixture that names the backend (backend, xp, framework …)",
    )
    group.addoption("--scoreboard-reference", metavar="NAME", help="the backend shown first")
    group.addoption("--scoreboard-run-key", metavar="KEY", help="the same for all shards of a run")
    group.addoption("--scoreboard-job-key", metavar="KEY", help="this shard's own name")
    group.addoption(
        "--scoreboard-part",
        metavar="K/N",
        default="",
        help="this session is one of N shards: without the others, the run is not complete",
    )
    group.addoption(
        "--scoreboard-device",
        metavar="NAME",
        default="",
        help="the device of this run, as part of its columns: with cuda, torch is 'torch cuda'",
    )
    group.addoption(
        "--scoreboard-about", metavar="TEXT", help="about the machine, for example its GPU"
    )
    group.addoption(
        "--scoreboard-fail-on",
        metavar="WHAT",
        default="",
        help="fail the run on any of: regressed,hollow,xpassed",
    )
    parser.addini("scoreboard_helpers", "assertions of your own, module:function", type="args")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> None:
    known = early_config.known_args_namespace
    if "--scoreboard" in args:  # `pytest --scoreboard tests` means the tests, not a database
        args[:] = ["--scoreboard=" if arg == "--scoreboard" else arg for arg in args]
        again = parser.parse_known_args(args, namespace=copy(early_config.option))
        known.scoreboard, known.file_or_dir = again.scoreboard, again.file_or_dir
    if known.scoreboard is not None:
        from .watching import count_assertions

        count_assertions(early_config)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "mode(name): the mode a test runs in, for the scoreboard")
    if config.getoption("scoreboard") is None or any(config.getoption(o, 0) for o in NO_TESTS):
        return
    from .watching import Watcher

    worker = hasattr(config, "workerinput")
    try:
        watcher = Watcher(config, worker)
        config.pluginmanager.register(watcher, "scoreboard-watcher")
        if not worker:
            from .recorder import Recorder

            config.pluginmanager.register(Recorder(config, watcher), "scoreboard-recorder")
    except (ValueError, OSError) as error:  # settings, ledger or database: said in one line
        raise pytest.UsageError(str(error)) from error


@pytest.fixture
def scoreboard_error() -> Any:
    """`record_error`, for tests that import nothing: scoreboard_error(value, reference)."""
    from .tally import record_error

    return record_error
