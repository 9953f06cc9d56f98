"""Cells whose outcome changes without a change of the code: passed after a retry, both outcomes on
one commit and environment, or there and back within one version. Only the last 20 results of a cell
count. New tests and new versions are not flaky, and being flaky never turns red to green.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from . import states
from .store import Store

WINDOW = 20


class Flake(NamedTuple):
    suite: str
    test: str
    variant: str
    backend: str
    mode: str
    why: str


def flaky(store: Store) -> list[Flake]:
    # Which tests a session ran, and when, is no part of its environment.
    rows = store.db.execute(
        "SELECT result.cell, result.state, coalesce(attempts, 1) AS attempts, run.sha,"
        " run.dirty, json_remove(facts, '$.part', '$.seed', '$.selection', '$.date')"
        " AS environment,"
        " test.suite, test.name, test.variant, backend.name AS backend, cell.mode"
        " FROM result JOIN run USING (run) JOIN job ON job.job = result.job JOIN cell USING (cell)"
        " JOIN test USING (test) JOIN backend ON backend.backend = cell.backend"
        " LEFT JOIN environment ON environment.environment = job.environment"
        " LEFT JOIN retry ON retry.run = result.run AND retry.cell = result.cell"
        f" WHERE result.state != {states.NOT_SAMPLED}"
        " ORDER BY result.cell, coalesce(run.started, ''), result.run"
    )
    cells: dict[int, list] = {}
    for row in rows:
        cells.setdefault(row["cell"], []).append(row)
    found = []
    for history in cells.values():
        if why := reason(history):
            last = history[-1]
            where = [last[k] for k in ("suite", "name", "variant", "backend", "mode")]
            found.append(Flake(*where, why=why))
    return found


def reason(history: list) -> str:
    """Why a cell with these results, the newest last, is flaky; '' when it is not."""
    history = history[-WINDOW:]
    for ago, r in enumerate(reversed(history)):
        if r["state"] == states.PASSED and r["attempts"] > 1:
            return f"passed after {r['attempts']} attempts, {ago} of {WINDOW} results ago"
    there: dict[tuple, set[bool]] = {}
    for r in history:
        if r["sha"] and not r["dirty"] and (good := _good(r["state"])) is not None:
            there.setdefault((r["sha"], r["environment"]), set()).add(good)
    if any(len(outcomes) > 1 for outcomes in there.values()):
        return "both outcomes on one commit and environment"
    by_version: dict[object, list[bool]] = {}
    for r in history:
        if (good := _good(r["state"])) is not None:
            by_version.setdefault(r["environment"], []).append(good)
    for outcomes in by_version.values():
        turns = [pair for pair in pairwise(outcomes) if pair[0] != pair[1]]
        if (True, False) in turns and (False, True) in turns:
            return f"there and back within {len(outcomes)} results of one version"
    return ""


def _good(state: int) -> bool | None:
    """Passed or failed; None for what says neither."""
    if state == states.PASSED:
        return True
    return False if state in (states.FAILED, states.ERROR, states.CRASHED, states.TIMEOUT) else None
