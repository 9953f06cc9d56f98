"""A run for readers: rows are tests, columns are backends, and a cell summarises all variants and
modes of its test. Its state is the worst of them.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from . import completeness, states
from .config import Config, seconds
from .store import COUNT_LIMIT, EMPTY, Store

IMPORTS = ("ImportError", "ModuleNotFoundError")


@dataclass
class Cell:
    """One test on one backend, over all its variants and modes."""

    state: int = states.MISSING
    modes: dict[str, int] = field(default_factory=dict)  # mode -> state
    tests: int = 0  # number of variants that ran
    left_out: tuple[str, ...] = ()  # variants that a sample left out
    duration: float = 0.0  # total seconds
    asserts: int | None = None
    value_error: float | None = None  # the largest, in ulps
    gradient_error: float | None = None
    attempts: int = 1
    url: str | None = None
    detail: int | None = None  # of the worst variant
    message: str = ""
    node: str = ""  # the text between the brackets of the worst variant's id
    remark: str = ""
    parts: list[tuple[str, str, int, int | None]] = field(default_factory=list)


@dataclass
class Row:
    name: str
    cells: dict[str, Cell] = field(default_factory=dict)
    expected: bool = False  # in every run, on every backend


@dataclass
class Suite:
    title: str
    columns: list[str]
    rows: list[Row] = field(default_factory=list)
    main: bool = True  # whether the project gave the suite a title
    file: str = ""

    def red(self) -> int:
        return sum(states.red(cell.state) for row in self.rows for cell in row.cells.values())


@dataclass
class Board:
    run: sqlite3.Row
    suites: list[Suite]
    columns: list[str]
    gaps: list[str]  # why the run is incomplete
    banners: dict[str, tuple[str, str]]  # backend -> why it does not load, traceback
    uncollected: dict[str, tuple[str, str]]  # file -> why, traceback
    facts: list[dict[str, Any]]
    settings: Config
    selection: str = ""  # how the command line chose some of the tests
    sample: completeness.Sample | None = None

    @classmethod
    def load(cls, store: Store, run: int, settings: Config) -> Board:
        this = store.find(run)
        facts = [json.loads(job["facts"]) for job in store.jobs(run) if job["facts"]]
        reference = next((f["reference"] for f in facts if "reference" in f), "")
        settings = replace(settings, reference=reference or settings.reference)
        selection = "; ".join(dict.fromkeys(f["selection"] for f in facts if f.get("selection")))
        selection = "; ".join(filter(None, [selection, completeness.parts(store, run)]))
        sample = completeness.sample(store, run)
        devices = {f["device"] for f in facts if f.get("device")}
        results = store.results(run)
        banners = _banners(store, results)
        rows: dict[tuple[str, str], dict[str, list]] = {}
        for r in results:
            rows.setdefault((r["suite"], r["name"]), {}).setdefault(r["backend"], []).append(r)
        waiting: dict[tuple[str, str], set[str]] = {}
        for p in store.planned(run):
            waiting.setdefault((p["suite"], p["name"]), set()).add(p["backend"])
            rows.setdefault((p["suite"], p["name"]), {}).setdefault(p["backend"], [])
        expected = set(_expected(store, run, settings))
        for where in _expected(store, run, settings):
            rows.setdefault(where, {})
        columns = _columns(settings, {backend for found in rows.values() for backend in found})
        layout = [
            row["name"] for row in store.db.execute(
                "SELECT DISTINCT suite AS name FROM layout ORDER BY run, suite"
            )
        ]  # fmt: skip
        suites = _suites(settings, layout, rows, columns)
        remarks = {
            (r["suite"], r["name"], r["backend"]): r["text"]
            for r in store.db.execute("SELECT * FROM remark WHERE run = ?", (run,))
        }
        for suite in suites:
            for row in suite.rows:
                key = (suite.title, row.name)
                row.expected = key in expected
                for backend in suite.columns:
                    found = rows[key].get(backend, [])
                    base, device = split_column(backend, devices)
                    if backend in banners:
                        cell = Cell(states.NOT_RUN, message=banners[backend][0])
                    elif device and not found and rows[key].get(base):
                        cell = Cell(states.NOT_RUN, message=f"not run on {device}")
                    else:
                        cell = fold(found)
                    if backend in waiting.get(key, ()):
                        cell.state = states.worst([cell.state, states.NOT_RUN])
                    cell.remark = remarks.get((*key, backend), "")
                    row.cells[backend] = cell
                found_in = [r["file"] for rs in rows[key].values() for r in rs]
                suite.file = suite.file or next(iter(found_in), "")
        broken = {
            r["file"]: (r["message"], store.text(r["detail"]))
            for r in store.db.execute(
                "SELECT file, message, broken.detail FROM broken JOIN detail USING (detail)"
                " WHERE run = ?",
                (run,),
            )
        }
        gaps = []
        if not waiting and all(r["state"] == states.NOT_SAMPLED for r in results):
            gaps.append("no test ran")
        elif selection:
            gaps.append(f"only a part of the tests was selected: {selection}")
        elif not completeness.finished(store, run):
            gaps.append("it did not finish")
        if sample:
            gaps.append(str(sample))
        absent = [
            row for suite in suites for row in suite.rows
            if row.expected
            and any(c.state == states.MISSING for name, c in row.cells.items()
                    if not split_column(name, devices)[1])
        ]  # fmt: skip
        if absent:
            gaps.append(
                f"{len(absent)} expected row{'s are' if len(absent) > 1 else ' is'} missing"
            )
        gaps += [f"{name} does not load" for name in banners]
        gaps += [f"{name} could not be collected" for name in broken]
        return cls(this, suites, columns, gaps, banners, broken, facts, settings, selection, sample)

    @property
    def complete(self) -> bool:
        return not self.gaps

    @property
    def only_sampled(self) -> bool:
        """Whether all that the run lacks is what its sample left out."""
        return self.sample is not None and len(self.gaps) == 1

    def verdict(self) -> str:
        """complete, INCOMPLETE, or how much was sampled."""
        if self.only_sampled:
            return str(self.sample)
        return "complete" if self.complete else "INCOMPLETE"

    def totals(self, expected: bool = False) -> dict[str, Counter[int]]:
        """The number of cells in each state, by backend, for all rows or for expected ones. Skips
        are counted; a backend that a test is not meant for is counted only in expected rows.
        """
        found: dict[str, Counter[int]] = {name: Counter() for name in self.columns}
        for suite in self.suites:
            for row in suite.rows:
                for backend, cell in row.cells.items():
                    if row.expected or not (expected or cell.state == states.MISSING):
                        found.setdefault(backend, Counter())[cell.state] += 1
        return found

    def has_expected(self) -> bool:
        return any(row.expected for suite in self.suites for row in suite.rows)

    def modes(self) -> list[str]:
        """The modes that this run covered."""
        seen = {m for _, _, cell in self.cells() for m in cell.modes if m}
        first = [m for m in (self.settings.default_mode,) if m in seen]
        return first + sorted(seen - set(first))

    def cells(self):
        for suite in self.suites:
            for row in suite.rows:
                for backend, cell in row.cells.items():
                    yield (suite.title, row.name, backend), row, cell

    def age(self) -> float | None:
        """Seconds since the tests ended (or began, if they never ended); None if unknown."""
        when = self.run["finished"] or self.run["started"]
        if not when:
            return None
        then = datetime.strptime(when, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        return (datetime.now(UTC) - then).total_seconds()

    def stale(self, limit: str | None = None) -> bool:
        """Whether the data is older than the project allows."""
        age = self.age()
        return age is None or age > seconds(self.settings.max_age if limit is None else limit)


def split_column(name: str, devices: Container[str]) -> tuple[str, str]:
    """The backend and the device of a column; the device is '' for a column without one.

    >>> split_column("torch cuda", {"cuda"}), split_column("array api", {"cuda"})
    (('torch', 'cuda'), ('array api', ''))
    """
    base, _, device = name.rpartition(" ")
    return (base, device) if base and device in devices else (name, "")


def fold(results: list) -> Cell:
    """The cell that summarises all results of a test on a backend: of the variants that ran, if
    any did.
    """
    ran = [r for r in results if r["state"] != states.NOT_SAMPLED]
    if not results:
        return Cell()
    cell = Cell(states.worst([r["state"] for r in ran or results]))
    cell.left_out = tuple(r["variant"] for r in results if r["state"] == states.NOT_SAMPLED)
    modes: dict[str, list[int]] = {}
    seen = set()
    for r in ran:
        modes.setdefault(r["mode"], []).append(r["state"])
        cell.parts.append((r["variant"], r["mode"], r["state"], r["detail"]))
        if r["variant"] not in seen:
            seen.add(r["variant"])
            cell.duration += (r["duration"] or 0) / 1e4
            if r["asserts"] is not None:
                cell.asserts = (cell.asserts or 0) + r["asserts"]
        for kind in ("value_error", "gradient_error"):
            if r[kind] is not None:
                found = float("inf") if r[kind] >= COUNT_LIMIT else r[kind] / 1000
                setattr(cell, kind, max(found, getattr(cell, kind) or 0.0))
        cell.attempts = max(cell.attempts, r["attempts"])
    cell.tests = len(seen)
    cell.modes = {mode: states.worst(found) for mode, found in sorted(modes.items())}
    speaker = next(r for r in results if r["state"] == cell.state)
    cell.detail, cell.message = speaker["detail"], speaker["message"] or ""
    cell.url = speaker["url"]
    cell.node = speaker["node"]
    return cell


def node_id(file: str, name: str, node: str) -> str:
    """A test as pytest names it.

    >>> node_id("tests/test_a.py", "TestIt::test_it", "jax-2")
    'tests/test_a.py::TestIt::test_it[jax-2]'
    """
    return f"{file}::{name}" + (f"[{node if node != EMPTY else ''}]" if node else "")


def _columns(settings: Config, seen: set[str]) -> list[str]:
    first = [settings.reference] if settings.reference in seen - {""} else []
    first += [c for c in settings.columns if c not in first]
    return first + sorted(seen - set(first) - {""})


def _suites(settings: Config, layout: list[str], rows: dict, columns: list[str]) -> list[Suite]:
    """Suites with a title first, in the order of the settings, then the files."""
    titles = [*dict.fromkeys([*settings.suites.values(), *layout])]
    order = {title: i for i, title in enumerate(titles)}
    suites: dict[str, Suite] = {}
    seen: dict[str, set[str]] = {}
    for (suite, _), found in rows.items():
        seen.setdefault(suite, set()).update(found)
    for name in sorted(seen, key=lambda s: (order.get(s, len(order)), s)):
        backends = seen[name]
        if backends - {""} or not backends or (settings.columns and name in order):
            mine = list(columns) + ([""] if "" in backends else [])
        else:
            mine = [""]
        suites[name] = Suite(name, mine, main=name in order or not settings.suites)
    for suite, name in rows:
        suites[suite].rows.append(Row(name))
    return list(suites.values())


def _expected(store: Store, run: int, settings: Config) -> list[tuple[str, str]]:
    """Rows that must be in every run: those of the seeds, in their order."""
    if settings.expected != "seeds" or run == 0:
        return []
    rows = store.db.execute(
        "SELECT suite, name FROM layout WHERE run = 0 AND axis = 'row' ORDER BY suite, position"
    )
    return [(r["suite"], r["name"]) for r in rows]


def _banners(store: Store, results: list) -> dict[str, tuple[str, str]]:
    """Backends whose tests all failed at an import."""
    kinds: dict[str, set] = {}
    sample: dict[str, sqlite3.Row] = {}
    for r in results:
        if r["state"] == states.NOT_SAMPLED:
            continue
        bad = r["state"] in (states.FAILED, states.ERROR) and r["kind"] in IMPORTS
        kinds.setdefault(r["backend"], set()).add(bad)
        if bad:
            sample[r["backend"]] = r
    return {
        backend: (sample[backend]["message"], store.text(sample[backend]["detail"]))
        for backend, found in kinds.items()
        if found == {True} and backend
    }
