"""The writing part of the plugin: one process, one open file, a commit every half second.

The reports of a test's setup, call and teardown become one result. Results are written between
tests, by the thread that runs them: another thread would compete for the lock and the cache. A
second thread only watches the clock, so that results are on disk even while one test takes
minutes.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sqlite3
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Generator
from contextlib import suppress
from datetime import UTC, datetime
from heapq import nlargest
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from . import states
from .completeness import before, part, parts, sample
from .progress import Progress
from .store import Planned, Result, Store
from .watching import Watcher

SECONDS = 0.5  # between commits
SLOWEST = 10


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Quiet:
    """Suppresses pytest's dots while a live table counts."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Generator[None, Any, Any]:
        status = yield
        return (status[0], "", "") if self.progress.screen else status


class Recorder:
    """The state of the run, and its file."""

    def __init__(self, config: pytest.Config, watcher: Watcher) -> None:
        self.config, self.watcher = config, watcher
        self.settings = watcher.settings
        given = config.getoption("scoreboard")
        path = Path(config.invocation_params.dir, given) if given else None
        self.path = path or self.settings.path(self.settings.database)
        self.fail_on = [w for w in str(config.getoption("scoreboard_fail_on")).split(",") if w]
        if wrong := set(self.fail_on) - {"regressed", "hollow", "xpassed"}:
            raise pytest.UsageError(
                f"--scoreboard-fail-on: needed regressed, hollow or xpassed, got {sorted(wrong)}"
            )
        share = part(str(config.getoption("scoreboard_part")))
        self.store, self.trouble = _opened(self.path, own=not given)
        self.store.move(self.settings.moves())
        self.plan: dict[str, Planned] = {}
        key = config.getoption("scoreboard_run_key") or _ci_run() or uuid.uuid4().hex
        self.run: Any = self.store.begin(
            key, "ci" if _ci_run() else "local", started=now(), **_revision(config.rootpath)
        )
        own = f"{watcher.device} {share and f'part {share}'}".strip()
        self.job_key = config.getoption("scoreboard_job_key") or own or "main"
        said = {
            "reference": config.getoption("scoreboard_reference"),
            "about": config.getoption("scoreboard_about"),
            "device": watcher.device,
            "date": now()[:10] if watcher.device else "",
            "selection": _selection(config),
            "part": share,
        }
        self.said = {name: text for name, text in said.items() if text}
        self.job = self.store.job(self.run, self.job_key, self._facts(), url=_ci_url())
        self.store.db.commit()
        self.axis: list[str] = []  # how the backends of the tests were found
        self.told = Path(tempfile.mkdtemp(prefix="scoreboard-"), "plan.json")
        self.open: dict[str, dict[str, Any]] = {}  # tests between setup and teardown
        self.fresh: list[Result] = []
        self.done: dict[str, int] = {}  # every test's state
        self.seconds: dict[str, float] = {}
        self.lacks: list[str] = []  # what the run does not have, in words
        self.versions: set[str] = set()
        self.lock = threading.RLock()
        self.written = time.monotonic()
        self.over = threading.Event()
        self.offences: list[str] = []
        self.skipped: dict[str, str] = {}  # files skipped as a whole -> the reason
        self.progress = Progress(config, self.settings)
        if self.progress.live:
            config.pluginmanager.register(Quiet(self.progress), "scoreboard-quiet")
        self.clock = threading.Thread(target=self._tick, daemon=True)
        self.clock.start()

    # Hooks of pytest

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["scoreboard_plan"] = str(self.told)

    @pytest.hookimpl(trylast=True)  # the watcher has run by then
    def pytest_collection_finish(self) -> None:
        if self.watcher.plan or self.watcher.left_out:  # workers' watchers have them instead
            self.axis = self.watcher.axis.explained()
            self._planned(self.watcher.plan, self.watcher.left_out, self.watcher.seed)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        self._read_plan()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple):
            file, reason = report.nodeid.partition("::")[0], str(report.longrepr[2])
            self.skipped[file] = reason.removeprefix("Skipped: ")
        if report.failed:
            text = str(report.longrepr or "")
            with self.lock:
                detail = self.store.detail("collection", _last(text), text)
                file = report.nodeid.partition("::")[0]
                self.store.db.execute(
                    "INSERT OR REPLACE INTO broken VALUES (?, ?, ?)", (self.run, file, detail)
                )
                self.store.db.commit()

    def pytest_enter_pdb(self) -> None:
        self.progress.stop()  # the debugger needs the terminal

    def pytest_runtest_logstart(self) -> None:
        """Without workers, a test that crashes ends this process too: write what came before."""
        if self.fresh and not self.config.getoption("numprocesses", None):
            with suppress(sqlite3.OperationalError):
                self.flush()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        nodeid, when, passed = report.nodeid, report.when, report.outcome == "passed"
        entry = self.open.get(nodeid)
        if entry is None and when == "setup" and passed:
            return  # no information yet
        if entry is None:
            entry = self.open[nodeid] = {"attempts": 1, "duration": 0.0, "seen": {}}
        entry["duration"] += report.duration or 0.0
        # from a worker, or from this process
        seen = getattr(report, "scoreboard", None) or self.watcher.seen(report) or {}
        if report.outcome == "rerun":
            entry["attempts"] += 1
            entry["again"] = True  # a teardown that follows ends this attempt, not the test
            return
        if when in ("setup", "call"):
            entry["again"] = False
        if seen:
            entry["seen"] = _together(entry["seen"], seen)
        if when != "teardown" or not passed:
            state = self._state(report, entry["seen"])
            if state is not None and states.BY_CODE[state].rank >= entry.get("rank", 0):
                entry["rank"], entry["state"] = states.BY_CODE[state].rank, state
                entry["detail"] = _detail(report, seen)
        if when in ("teardown", "???") and not entry.get("again"):
            self._finish(nodeid, self.open.pop(nodeid))

    def _state(self, report: pytest.TestReport, seen: dict[str, Any]) -> int | None:
        when = report.when
        if when == "call" and report.outcome == "passed" and not hasattr(report, "wasxfail"):
            return states.PASSED
        if when == "???":
            return states.CRASHED
        if hasattr(report, "wasxfail"):
            return states.XFAILED if report.skipped else states.XPASSED
        if report.failed:
            if str(report.longrepr or "").startswith("[XPASS(strict)]"):
                return states.XPASSED
            if seen.get("timeout"):
                return states.TIMEOUT
            return states.FAILED if when == "call" else states.ERROR
        return states.SKIPPED if report.skipped else None

    def _finish(self, nodeid: str, entry: dict[str, Any]) -> None:
        seen = entry["seen"]
        who = seen.get("who") or self.plan.get(nodeid) or self._read_plan().get(nodeid)
        if who is None:  # a worker died before it reported its collection
            file, _, name = nodeid.partition("::")
            who = Planned(self.settings.suites.get(file, file), name, "", file, "", "")
        backend, node = who[4], who[5]
        state = entry.get("state", states.ERROR)
        asserts = seen.get("asserts")
        if state == states.PASSED and asserts == 0:
            state = states.HOLLOW
            entry["detail"] = ("hollow", "passed with no assertion executed", "")
        errors = seen.get("errors") or {}
        modes = seen.get("modes") or [self.settings.default_mode]
        with self.lock:
            self.fresh += [
                Result(
                    who[0], who[1], who[2], who[3], backend, mode, node, state,
                    entry["attempts"], entry["duration"],
                    asserts, errors.get("value"), errors.get("gradient"), entry.get("detail"),
                )
                for mode in modes
            ]  # fmt: skip
        self.done[nodeid], self.seconds[nodeid] = state, entry["duration"]
        self.progress.count(backend, state)
        self._write_if_due()

    # Writing

    def _read_plan(self) -> dict[str, Planned]:
        if self.told.is_file():
            said = json.loads(self.told.read_text())
            self.told.unlink()
            self.axis = said["axis"]
            plan = {nodeid: Planned(*who) for nodeid, who in said["plan"].items()}
            self._planned(plan, [Result(*left) for left in said["left_out"]], said["seed"])
        return self.plan

    def _planned(self, plan: dict[str, Planned], left_out: list[Result], seed: str) -> None:
        self.plan = plan
        self.said |= {"seed": seed} if left_out else {}
        self.progress.total(plan.values())
        with self.lock:
            self.store.plan(self.run, self.job, plan.values())
            self.store.place(plan.values())
            self.fresh += left_out
            self.store.job(self.run, self.job_key, self._facts(), planned=len(plan))
            self.store.db.commit()

    def _tick(self) -> None:
        while not self.over.wait(SECONDS / 2):
            self._write_if_due()

    def _write_if_due(self) -> None:
        if time.monotonic() - self.written >= SECONDS:
            with suppress(sqlite3.OperationalError):  # reported the next time, or at the end
                self.flush()

    def flush(self) -> None:
        with self.lock:
            self.written = time.monotonic()
            results, self.fresh = self.fresh, []
            try:
                if results:
                    self.store.add(self.run, self.job, results)
                self.store.db.commit()
            except sqlite3.Error:  # the file is locked or the disk is full: nothing is lost yet
                self.store.undo()
                self.fresh = results
                raise

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        self.over.set()
        self.clock.join()
        self.progress.stop()
        try:
            self._close(int(exitstatus))
        except sqlite3.Error as error:
            self.offences = [f"not written: {self.path}: {error}"]
        if self.offences and session.exitstatus == 0:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _close(self, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.USAGE_ERROR and not self.plan and not self.done:
            self.store.forget(self.run, self.job)
            self.run = None
            return
        self._uncollected()
        self.flush()
        whole = exitstatus in (0, 1, 5) and len(self.done) >= len(self.plan)
        whole = whole and "selection" not in self.said
        self.store.job(self.run, self.job_key, self._facts())
        self.store.finish(self.run, self.job, whole, exitstatus, now())
        lacks = (sample(self.store, self.run), parts(self.store, self.run))
        self.lacks = [str(lack) for lack in lacks if lack]
        self.offences = self._offences()

    def _facts(self) -> dict[str, Any]:
        """The machine, the versions of the backends, and what the command line says."""
        device = f" {self.watcher.device}"
        backends = {who.backend.removesuffix(device) for who in self.plan.values()}
        return {**_machine(backends), **self.said}

    def _uncollected(self) -> None:
        """Cells known from earlier runs, in files that could not be collected this time, or were
        skipped before their tests were seen.
        """
        broken = self.store.db.execute(
            "SELECT file, detail FROM broken WHERE run = ?", (self.run,)
        ).fetchall()
        why = {file: (states.UNCOLLECTED, self.store.explain(detail)) for file, detail in broken}
        why |= {f: (states.SKIPPED, ("skip", reason, "")) for f, reason in self.skipped.items()}
        for file, (state, detail) in why.items():
            rows = self.store.db.execute(
                "SELECT suite, test.name, variant, file, backend.name, mode, node FROM test"
                " JOIN cell USING (test) JOIN backend USING (backend) WHERE file = ?",
                (file,),
            )
            self.fresh += [Result(*row, state=state, detail=detail) for row in rows.fetchall()]

    def _offences(self) -> list[str]:
        from .board import Board
        from .diff import compare

        found = []
        for nodeid, state in self.done.items():
            word = states.BY_CODE[state].word
            if word in self.fail_on:
                found.append(f"{word}: {nodeid}")
        if "regressed" in self.fail_on:
            earlier = before(self.store, self.run, whole=True)
            if earlier is not None:
                base = Board.load(self.store, earlier["run"], self.settings)
                head = Board.load(self.store, self.run, self.settings)
                for change in compare(base, head):
                    if change.kind == "regressed":
                        found.append(f"regressed: {change}")
        return found

    def _slowest(self) -> list[str]:
        """The slowest tests of this session; none are shown that took no time to speak of."""
        slowest = nlargest(SLOWEST, self.seconds, self.seconds.__getitem__)
        lines = [f"{s:8.2f} s  {n}" for n in slowest if (s := self.seconds[n]) >= 0.005]
        return ["slowest tests:", *lines] if lines else []

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        out = terminalreporter
        out.section("scoreboard", sep="-")
        if self.trouble:
            out.write_line(self.trouble, yellow=True)
        for line in [*self.progress.lines(), *self._slowest()]:
            out.write_line(line)
        for line in self.lacks:
            out.write_line(line, yellow=True)
        for line in self.offences[:50]:
            out.write_line(line, red=True)
        if len(self.offences) > 50:
            out.write_line(f"… and {len(self.offences) - 50} more", red=True)
        if self.run is None:
            out.write_line("no test ran, nothing is recorded")
            return
        found = any(who.backend for who in self.plan.values())
        for line in self.axis if self.plan else []:
            out.write_line(line, yellow=not found)
        out.write_line(f"run {self.run} in {self.path}")

    def pytest_unconfigure(self) -> None:
        self.over.set()
        self.progress.stop()
        self.store.close()
        shutil.rmtree(self.told.parent, ignore_errors=True)


def _opened(path: Path, own: bool) -> tuple[Store, str]:
    """The database, and a warning if it was damaged: then it is moved aside and a new one begins.
    Another program's file is not touched.
    """
    try:
        return Store(path), ""
    except ValueError as error:
        if not (path.is_file() and isinstance(error.__cause__, sqlite3.DatabaseError)):
            raise
        with path.open("rb") as file:
            is_database = file.read(15) == b"SQLite format 3"
        if isinstance(error.__cause__, sqlite3.OperationalError) or not (is_database or own):
            raise
        aside = path.with_name(f"{path.name}.damaged-{now().replace(':', '')}")
        path.rename(aside)
        for tail in ("-wal", "-shm"):
            path.with_name(path.name + tail).unlink(missing_ok=True)
        said = f"{path} was damaged ({error.__cause__}): moved to {aside.name}, a new one begins"
        return Store(path), said


def _selection(config: pytest.Config) -> str:
    """How the command line chooses some of the tests; '' if it does not. Marks do not count: a
    project leaves out its slow tests as a habit.
    """
    words = config.getoption("keyword", "")
    nodes = [str(arg) for arg in config.args if "::" in str(arg)]
    again = [f"--{name}" for name in ("lf", "sw") if config.getoption(name, False)]
    return " ".join([*([f"-k {words!r}"] if words else []), *nodes, *again])[:200]


def _together(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The data of call and teardown: counts only grow, so the later report has them all."""
    return {**new, "timeout": old.get("timeout") or new.get("timeout")} if old else new


def _detail(report: pytest.TestReport, seen: dict[str, Any]) -> tuple[str, str, str] | None:
    if report.passed and not hasattr(report, "wasxfail"):
        return None
    text = str(report.longrepr or "")
    if hasattr(report, "wasxfail"):
        return "xfail", report.wasxfail or "no reason given", text
    if report.skipped:
        where = report.longrepr
        reason = str(where[2]) if isinstance(where, tuple) else text
        return "skip", reason.removeprefix("Skipped: "), ""
    return seen.get("kind") or "failure", seen.get("message") or _last(text), text


def _last(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    marked = [line for line in lines if line.startswith("E  ")]
    return (marked or lines or [""])[-1].removeprefix("E").strip()[:2000]


def _machine(backends: set[str]) -> dict[str, Any]:
    versions = {}
    for name in ("pytest", *sorted(backends)):
        try:
            versions[name] = metadata.version(name)
        except (metadata.PackageNotFoundError, ValueError):
            continue
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "versions": versions,
    }


def _revision(root: Path) -> dict[str, Any]:
    def git(*args: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(root), *args], capture_output=True, text=True, timeout=20
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    changed = git("status", "--porcelain", "--untracked-files=no")
    return {
        "sha": git("rev-parse", "HEAD"),
        "branch": git("rev-parse", "--abbrev-ref", "HEAD"),
        "dirty": int(bool(changed)),
    }


def _ci_run() -> str | None:
    return os.environ.get("GITHUB_RUN_ID") or os.environ.get("CI_PIPELINE_ID")


def _ci_url() -> str | None:
    env = os.environ
    if {"GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID"} <= set(env):
        place = f"{env['GITHUB_SERVER_URL']}/{env['GITHUB_REPOSITORY']}"
        return f"{place}/actions/runs/{env['GITHUB_RUN_ID']}"
    return env.get("CI_JOB_URL") or env.get("BUILD_URL")
