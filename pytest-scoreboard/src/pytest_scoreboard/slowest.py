"""What took longest in a run: single tests, files or backends, by recorded time."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable

from .board import node_id
from .store import Store

# What is counted together, and how it is called.
BY: dict[str, Callable[[sqlite3.Row], str]] = {
    "cell": lambda row: _id(row),
    "file": lambda row: row["file"] or row["suite"],
    "backend": lambda row: row["backend"] or "no backend",
}


def report(store: Store, run: int, by: str, most: int) -> list[str]:
    """The lines of `scoreboard slowest`: seconds, share of the whole, number of cells."""
    if most < 1:
        raise ValueError(f"slowest: needed a count of at least 1 for -n, got {most}")
    times: dict[str, list[float]] = {}
    for row in _timed(store, run):
        times.setdefault(BY[by](row), []).append(row["seconds"])
    sums = {name: sum(found) for name, found in times.items()}
    whole = sum(sums.values()) or 1.0
    first = sorted(sums, key=lambda name: (-sums[name], name))[:most]
    parts = [(name, sums[name], len(times[name])) for name in first]
    if len(first) < len(sums):
        shown = sum(seconds for _, seconds, _ in parts)
        parts.append(("these together", shown, sum(cells for *_, cells in parts)))
    parts.append(("the whole run", sum(sums.values()), sum(map(len, times.values()))))
    return [
        f"run {run}, by {by}:",
        f"{'seconds':>10} {'share':>8} {'cells':>7}  {by}",
        *(f"{s:10,.2f} {100 * s / whole:6.1f} % {n:7,}  {name}" for name, s, n in parts),
    ]


def as_json(store: Store, run: int) -> str:
    """The seconds of every test, by the id that pytest gives it."""
    found: dict[str, float] = {}
    for row in _timed(store, run):  # on several devices, the slowest
        found[_id(row)] = max(found.get(_id(row), 0.0), round(row["seconds"], 2))
    return json.dumps(found, indent=0, sort_keys=True)


def _id(row: sqlite3.Row) -> str:
    return node_id(row["file"] or row["suite"], row["name"], row["node"])


def _timed(store: Store, run: int) -> list[sqlite3.Row]:
    """The tests of a run whose time is known. One that ran in several modes ran once."""
    rows = store.db.execute(
        "SELECT suite, file, test.name, node, backend.name AS backend,"
        " max(duration) / 1e4 AS seconds FROM result JOIN cell USING (cell) JOIN test USING (test)"
        " JOIN backend ON backend.backend = cell.backend WHERE run = ? AND duration IS NOT NULL"
        " GROUP BY cell.test, cell.backend",
        (run,),
    ).fetchall()
    if not rows:
        raise LookupError(f"slowest: needed a run with recorded times, got run {run} without any")
    return rows
