"""The observing part of the plugin: in the only process, or in every worker of pytest-xdist. It
identifies a test (suite, name, variant, backend), records what it did, and attaches both to the
test's reports, which are sent to the process that writes.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import _pytest.assertion.rewrite as rewriting
import pytest

from .axis import Axis, name_of
from .config import Config, read
from .ledger import Ledger
from .own_checks import instrument
from .states import NOT_SAMPLED
from .store import EMPTY, Planned, Result
from .tally import TALLY, Counters

IDENTITY = pytest.StashKey[Planned]()
DECLARED = pytest.StashKey[list]()
CACHE = ".scoreboard-3"  # another number whenever the code put into test files changes
TIMEOUT = re.compile(r"Timeout \(?>")
UNNAMED = re.compile(r" at 0x|^<lambda>$")  # repr of objects without a name
KIND = re.compile(r"([A-Za-z_][\w.]*)(?::|$)")


def count_assertions(config: pytest.Config) -> None:
    """Make pytest's rewritten `assert` statements check in after each one that held, and cache them
    in files separate from those of plain runs.
    """
    hook = config.pluginmanager.rewrite_hook
    if not isinstance(hook, rewriting.AssertionRewritingHook):
        return  # --assert=plain: nothing can be counted
    config._inicache["enable_assertion_pass_hook"] = True  # pyright: ignore
    if CACHE not in rewriting.PYC_TAIL:
        rewriting.PYC_TAIL = CACHE + rewriting.PYC_TAIL
    # Not the files of installed plugins, which may include the library under test.
    hook._must_rewrite.clear()
    names = {
        ".".join(parts[i:])
        for root in test_roots(config)
        for file in Path(root).rglob("*.py")
        if not any(part.startswith(".") for part in file.relative_to(root).parts)
        for parts in [file.relative_to(config.rootpath).with_suffix("").parts
                      if file.is_relative_to(config.rootpath) else (file.stem,)]
        for i in range(len(parts))
        if parts[-1] not in ("conftest", "__init__", "setup")
    }  # fmt: skip
    hook.mark_rewrite(*sorted(names - set(sys.modules)))


def test_roots(config: pytest.Config) -> list[str]:
    """The folders whose files are tests and their helpers: assertions count there."""
    named = [str(config.rootpath / p) for p in config.getini("testpaths")]
    for arg in getattr(config, "args", None) or config.known_args_namespace.file_or_dir:
        path = Path(config.invocation_params.dir, str(arg).partition("::")[0])
        if path.exists():  # else it is the value of an option that pytest does not know yet
            named.append(str(path if path.is_dir() else path.parent))
    roots = [p for p in map(os.path.realpath, named) if os.path.isdir(p)]
    return roots or [os.path.realpath(config.invocation_params.dir)]


test_roots.__test__ = False  # pyright: ignore[reportFunctionMemberAccess]

# Values of a parameter named `mode` that say how the test ran.
MODES = {"eager", "jit", "jitted", "compiled", "compile", "graph", "traced", "lazy", "vmap"}


class Watcher:
    """The identity of every test, and what it did."""

    def __init__(self, config: pytest.Config, worker: bool) -> None:
        self.config = config
        self.worker = worker
        self.settings: Config = read(config.rootpath)
        self.axis = Axis(config.getoption("scoreboard_axis") or self.settings.axis)
        self.device: str = config.getoption("scoreboard_device") or ""
        hook = config.pluginmanager.rewrite_hook
        self.counts = isinstance(hook, rewriting.AssertionRewritingHook)
        helpers = [*self.settings.helpers, *config.getini("scoreboard_helpers")]
        self.counters = Counters(helpers, [root + os.sep for root in test_roots(config)])
        self.counters.start(rewriting, pytest, instrument)
        self.counters.catch_up()
        self.ledger = Ledger.read(self.settings.path(self.settings.ledger))
        self.plan: dict[str, Planned] = {}
        self.out: list[pytest.Item] = []  # left out by a sample
        self.left_out: list[Result] = []
        self.seed = ""  # of that sample
        self.item: pytest.Item | None = None
        self.told: tuple = ()  # the content of the last report
        self.usual = [self.settings.default_mode]

    def pytest_scoreboard_left_out(self, items: list[pytest.Item], seed: object) -> None:
        self.out += items
        self.seed = str(seed)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        every = [*items, *self.out]
        specs = (getattr(item, "callspec", None) for item in every)
        self.axis.learn(spec.params for spec in specs if spec is not None)
        for item in every:
            item.stash[IDENTITY] = who = self.identity(item)
            item.stash[DECLARED] = self.declared(item)
            expected = self.ledger.find(who.suite, who.name, who.variant, who.backend)
            if expected:
                item.add_marker(pytest.mark.xfail(reason=expected.reason, strict=False))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.counters.catch_up()
        self.counters.rebind()
        self.plan = {item.nodeid: item.stash[IDENTITY] for item in session.items}
        self.left_out = [self.not_sampled(item) for item in self.out]
        told = getattr(self.config, "workerinput", {}).get("scoreboard_plan")
        if told and self.config.workerinput["workerid"] == "gw0":  # pyright: ignore
            part = Path(told + ".part")
            said = {"plan": self.plan, "left_out": self.left_out, "seed": self.seed}
            part.write_text(json.dumps({**said, "axis": self.axis.explained()}))
            part.rename(told)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self.item = item
        TALLY.clear()
        TALLY.on = True

    @pytest.hookimpl(tryfirst=True)  # before a worker serialises the report
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self.worker and (seen := self.seen(report)):  # otherwise the recorder asks
            seen["who"] = list(seen["who"])  # plain data for the transfer
            report.scoreboard = seen  # pyright: ignore[reportAttributeAccessIssue]

    def seen(self, report: pytest.TestReport) -> dict[str, Any] | None:
        """What was seen of a test until this report; None for the setup of a test that continues,
        and after everything was reported.
        """
        item, passed = self.item, report.outcome == "passed"
        if report.when == "setup" and passed:
            return None
        if item is None or item.nodeid != report.nodeid:
            return None
        now = (TALLY.asserts, len(TALLY.modes), TALLY.errors)
        if report.when == "teardown":
            TALLY.on, self.item = False, None
            if passed and now == self.told:
                return None
        self.told = (*now[:2], dict(TALLY.errors))
        seen: dict[str, Any] = {
            "who": item.stash.get(IDENTITY, None) or self.identity(item),
            "asserts": TALLY.asserts if self.counts and hasattr(item, "function") else None,
            "modes": self.modes(item),
            "errors": self.told[2],
        }
        if not passed:
            crash = getattr(report.longrepr, "reprcrash", None)
            seen["message"] = message = str(getattr(crash, "message", ""))[:20000]
            named = KIND.match(message)
            seen["kind"] = named[1].rpartition(".")[2] if named else ""
            seen["timeout"] = bool(TIMEOUT.search(message[:200]))
        return seen

    def pytest_unconfigure(self) -> None:
        self.counters.stop()
        TALLY.on = False

    def identity(self, item: pytest.Item) -> Planned:
        file = item.nodeid.partition("::")[0]
        suite = self.settings.suites.get(file, file)
        spec = getattr(item, "callspec", None)
        whole = item.nodeid.partition("::")[2] or item.name
        name, bracket, rest = whole.partition("[")
        said = rest.removesuffix("]")
        node = said or EMPTY * len(bracket)
        if spec is None:
            return Planned(suite, name, "", file, "", node)
        axis = self.axis.of(spec.params)
        if not axis:
            return Planned(suite, name, said, file, "", node)
        backend = name_of(spec.params[axis])
        if UNNAMED.search(backend):
            backend = ids(spec)[axis]
        variant = self._variant(spec, axis, backend, node)
        return Planned(suite, name, variant, file, column(backend, self.device), node)

    def not_sampled(self, item: pytest.Item) -> Result:
        """The result of a test that a sample left out, in the first mode that it declares."""
        who, mode = item.stash.get(IDENTITY, None) or self.identity(item), self.modes(item)[0]
        return Result(*who[:5], mode, who.node, NOT_SAMPLED)

    def _variant(self, spec: Any, axis: str, backend: str, node: str) -> str:
        """The id without the backend; if it is not in the id, the ids of the other parameters."""
        framed, part = f"-{node}-", f"-{backend}-"
        place = framed.find(part)
        if place >= 0:
            return f"{framed[:place]}-{framed[place + len(part) :]}"[1:-1]
        return ",".join(f"{k}={v}" for k, v in ids(spec).items() if k != axis)

    def declared(self, item: pytest.Item) -> list[str]:
        """The modes given by a marker, by a value of the setting `modes`, or by a parameter named
        `mode` with a usual value: in many suites a `mode` is how an edge is padded.
        """
        said = []
        if "mode" in item.keywords:
            said = [str(mark.args[0]) for mark in item.iter_markers("mode") if mark.args]
        params = getattr(getattr(item, "callspec", None), "params", {})
        said += [v for k, v in params.items() if isinstance(v, str)
                 and (v in self.settings.modes or (k == "mode" and v in MODES))]  # fmt: skip
        return [self.settings.modes.get(mode, mode) for mode in said]

    def modes(self, item: pytest.Item) -> list[str]:
        """The modes a test ran in: those declared, except those that must be observed and were not,
        and those recorded.
        """
        if not TALLY.modes and not item.stash.get(DECLARED, None) and not item.user_properties:
            return self.usual
        seen = set(TALLY.modes)
        seen |= {str(value) for key, value in item.user_properties if key == "mode"}
        declared = item.stash.get(DECLARED, [])
        sure = {mode for mode in declared if mode not in self.settings.observed or mode in seen}
        if not declared or not sure:
            sure.add(self.settings.default_mode)
        return sorted(sure | seen)


def column(backend: str, device: str) -> str:
    """The name of a column.

    >>> column("torch", "cuda"), column("torch", "")
    ('torch cuda', 'torch')
    """
    return f"{backend} {device}" if device else backend


def ids(spec: Any) -> dict[str, str]:
    """An id for every parameter of a test: pytest's, or the parameter's name and its position."""
    told = list(getattr(spec, "_idlist", ()))
    if len(told) == len(spec.params):  # each parametrized separately
        return dict(zip(spec.params, told))
    return {
        k: str(v) if isinstance(v, (str, int, float, bool)) else f"{k}{spec.indices[k]}"
        for k, v in spec.params.items()
    }
