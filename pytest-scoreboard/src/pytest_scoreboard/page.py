"""One static page: the matrix of suites and columns, and the red cells, as plain HTML. A script
adds the single tests, filters and switches, from data in the page itself. It needs no server and no
network.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Callable
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

from . import states
from .board import Board, Cell, Suite, split_column
from .completeness import before as run_before
from .config import seconds
from .diff import Change, compare
from .markdown import link
from .states import BY_CODE, SHOWN, STATES
from .store import Store

RED_SHOWN = 200  # red tests in the plain HTML
TONES = ("none", "good", "warn", "hollow", "bad")  # the last one found is that of a share
TEXT_SHOWN = 20_000  # characters of one traceback
RUNS_BACK = 20
PARTS_SHOWN = 40


def tone(code: int) -> str:
    """The colour of a state; the word and the glyph say the same."""
    own = {states.PASSED: "good", states.XFAILED: "warn", states.HOLLOW: "hollow"}
    return own.get(code, "bad" if states.red(code) else "none")


def render(store: Store, board: Board) -> str:
    """The page of a run, compared with the run before it."""
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise ImportError("render: needed jinja2; pip install jinja2") from error
    folder = files("pytest_scoreboard") / "page"
    style = (folder / "page.css").read_text("utf-8")
    script = (folder / "page.js").read_text("utf-8")
    before = run_before(store, board.run["run"])
    changes: dict[tuple, Change] = {}
    if before is not None:
        base = Board.load(store, before["run"], board.settings)
        changes = {(c.suite, c.test, c.backend): c for c in compare(base, board)}
    template = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    context = _context(board, before, changes)
    packed = json.dumps(_data(store, board, before, changes), allow_nan=False)
    return template.from_string((folder / "page.html").read_text("utf-8")).render(
        **context,
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
        data=base64.b64encode(gzip.compress(packed.encode(), 9, mtime=0)).decode(),
    )


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _key(where: tuple[str, str, str]) -> str:
    return "\x1f".join(where)


def _context(board: Board, before: Any, changes: dict[tuple, Change]) -> dict[str, Any]:
    run = board.run
    red = [(where, cell) for where, _, cell in board.cells() if states.red(cell.state)]
    worse = [c for c in changes.values() if c.kind == "regressed"]
    counts = Counter(c.kind for c in changes.values())
    seen = board.totals()
    every = {s: sum(c[s] for c in seen.values()) for s in BY_CODE}
    columns = _columns(board)
    by_test: dict[tuple[str, str], list] = {}
    for where, cell in red:
        by_test.setdefault(where[:2], []).append((where, cell))
    devices = sorted({c["device"] for c in columns})
    return {
        "title": board.settings.title or "Scoreboard",
        "run": run["run"],
        "sha": (run["sha"] or "")[:12],
        "dirty": run["dirty"],
        "note": run["note"],
        "dated": bool(run["finished"] or run["started"]),
        "finished": run["finished"] or run["started"],
        "completeness": _completeness(board),
        "facts": _facts(board) + _expected(board),
        "banners": _warnings(board),
        "verdict": _verdict(worse, red, board, before),
        "since": _since(counts, before),
        "worse": [
            {"backend": c.backend, "test": c.test, "key": _key((c.suite, c.test, c.backend)),
             "href": _href((c.suite, c.test, c.backend)),
             "was": BY_CODE[c.base].word, "now": BY_CODE[c.head].word}
            for c in worse
        ],
        "columns": columns,
        "rows": [
            {"title": suite.title, "href": "#" + urlencode({"open": suite.title}),
             "cells": _shares(suite, columns)}
            for suite in board.suites
        ],
        "totals": [_total(board, column, seen) for column in columns],
        "red_total": len(red),
        "red_tests": len(by_test),
        "red": [
            {"suite": suite, "test": test, "cells": [_red_cell(*found) for found in cells]}
            for (suite, test), cells in list(by_test.items())[:RED_SHOWN]
        ],
        "devices": devices if devices != [""] else [],
        "modes": board.modes(),
        "absent": [(b, m, w) for b, f in board.settings.absent.items() for m, w in f.items()],
        "legend": [
            {"glyph": s.glyph, "word": s.word, "tone": tone(s.code), "count": every[s.code]}
            for s in SHOWN
        ],
    }  # fmt: skip


def _href(where: tuple[str, str, str]) -> str:
    return "#" + urlencode({"cell": _key(where)})


def _warnings(board: Board) -> list[tuple[str, str, str]]:
    found = [(f"{b} does not load", m, t[:TEXT_SHOWN]) for b, (m, t) in board.banners.items()]
    return found + [
        (f"{file} could not be collected", m, t[:TEXT_SHOWN])
        for file, (m, t) in board.uncollected.items()
    ]


def _completeness(board: Board) -> dict[str, str]:
    """Whether the run is complete: a word, its colour, and what is missing."""
    if board.complete:
        return {"word": "Complete", "tone": "good", "why": ""}
    if board.only_sampled and board.sample:
        return {"word": "Sampled", "tone": "warn", "why": board.sample.counts()}
    return {"word": "Incomplete", "tone": "bad", "why": "; ".join(board.gaps)}


def _verdict(worse: list[Change], red: list, board: Board, before: Any) -> str:
    if worse:
        where = sorted({c.backend or "no backend" for c in worse})
        cells = f"{len(worse)} cell{'s' if len(worse) > 1 else ''} got worse"
        return f"✗ {cells} since run {before['run']}, on {', '.join(where)}."
    now = f"{len(red)} red cell{'' if len(red) == 1 else 's'}" if red else "nothing is red"
    sign = "✓" if not red and (board.complete or board.only_sampled) else "✗"
    among = "" if board.complete else ", but the run is incomplete"
    if board.only_sampled:
        among = f"; {board.sample}"
    if before is None:
        return f"{sign} No earlier run to compare with; {now}{among}."
    return f"{sign} Nothing got worse since run {before['run']}; {now}{among}."


def _since(counts: dict[str, int], before: Any) -> str:
    if before is None:
        return ""
    order = ("fixed", "proved", "changed", "only here", "only there", "still failing", "same")
    words = {"proved": "green before without an assertion and proved now", "only here": "new",
             "only there": "without a result this time"}  # fmt: skip
    parts = [f"{counts[k]} {words.get(k, k)}" for k in order if counts.get(k)]
    return f"Against run {before['run']}: {', '.join(parts)}." if parts else ""


def _facts(board: Board) -> str:
    parts = []
    for f in board.facts[:3]:
        where = " ".join(f[k] for k in ("system", "machine") if f.get(k))
        parts.append(f"Python {f.get('python', 'unknown')}" + (f" on {where}" if where else ""))
    modes = board.modes()
    covered = f" Modes covered: {', '.join(modes)}." if modes else ""
    return "; ".join(dict.fromkeys(parts)) + ("." if parts else "") + covered


def _expected(board: Board) -> str:
    """The rows that must be in every run, in one sentence."""
    counts = board.totals(expected=True)
    cells = sum(sum(c.values()) for c in counts.values())
    if not cells:
        return ""
    good = sum(c[states.PASSED] for c in counts.values())
    rows = sum(row.expected for suite in board.suites for row in suite.rows)
    return f" Of the {rows} expected rows {good} of {cells} cells passed."


def _red_cell(where: tuple[str, str, str], cell: Cell) -> dict[str, str]:
    state = BY_CODE[cell.state]
    return {
        "backend": where[2], "key": _key(where), "href": _href(where),
        "message": cell.message.strip().split("\n")[0][:300],
        "glyph": state.glyph, "word": state.word, "tone": tone(cell.state),
    }  # fmt: skip


def _columns(board: Board) -> list[dict[str, Any]]:
    """The columns of the matrix: name, device, and what is known: version, machine, date."""
    known = {f["device"] for f in board.facts if f.get("device")}
    found = []
    for name in dict.fromkeys([*board.columns, *(c for s in board.suites for c in s.columns)]):
        base, device = split_column(name, known)
        there = [f for f in board.facts if f.get("device", "") == device]
        ran = [f for f in there if base in f.get("versions", {})] or (there if device else [])
        said = [(f.get("versions", {}).get(base), f.get("about"), f.get("date")) for f in ran]
        known_of_it = [text for text in next(iter(said), ()) if text]
        found.append({"name": name, "device": device, "said": known_of_it})
    return found


def _shares(suite: Suite, columns: list[dict[str, Any]]) -> list[dict[str, str] | None]:
    """The cells of a suite in the matrix; None where it has no such column."""
    counts = {name: Counter(row.cells[name].state for row in suite.rows) for name in suite.columns}
    return [_share(counts.get(c["name"], Counter()), c["device"]) for c in columns]


def _total(board: Board, column: dict[str, Any], seen: dict[str, Counter[int]]) -> dict[str, str]:
    name = column["name"]
    share = _share(seen.get(name, Counter()), column["device"])
    share = share or {"tone": "none", "text": "not run", "sub": ""}
    cells = [cell for (_, _, backend), _, cell in board.cells() if backend == name]
    tests, left_out = sum(c.tests for c in cells), sum(len(c.left_out) for c in cells)
    many = tests + left_out > sum(seen.get(name, Counter()).values())
    return {**share, "sub": share["sub"] + f"; {_variants(tests, left_out)} variants" * many}


def _variants(ran: int, left_out: int) -> str:
    """
    >>> _variants(3, 0), _variants(3, 5)
    ('3', '3 of 8')
    """
    return f"{ran} of {ran + left_out}" if left_out else f"{ran}"


def _share(counts: Counter[int], device: str) -> dict[str, str] | None:
    """The share of passed cells, from the number of cells in each state. Cells that were not run or
    not sampled are not counted; without a device of their own the former are a warning.
    """
    counts = Counter({code: n for code, n in counts.items() if n and code != states.MISSING})
    if not counts:
        return None
    total = counts.total() - counts[states.NOT_RUN] - counts[states.NOT_SAMPLED]
    passed = counts[states.PASSED]
    tones = [tone(code) for code, n in counts.items() if n]
    tones += ["warn"] if counts[states.NOT_RUN] and not device else []
    rest = [f"{counts[s.code]} {s.word}" for s in STATES if counts[s.code] and s.code]
    return {
        "tone": max(tones, key=TONES.index),
        "text": f"{100 * passed // total} %" if total else BY_CODE[min(counts)].word,
        "sub": ", ".join(([f"{passed} of {total}"] if total else []) + rest),
    }


def _data(store: Store, board: Board, before: Any, changes: dict[tuple, Change]) -> dict[str, Any]:
    """The data for the script, kept small: trailing empty values of a cell are left out."""
    modes = board.modes()
    texts: dict[int, int] = {}
    details: list[str] = []

    def text_of(detail: int | None) -> int | None:
        if detail is None:
            return None
        if detail not in texts:
            texts[detail] = len(details)
            details.append(store.text(detail)[:TEXT_SHOWN])
        return texts[detail]

    history = _history(store, board)
    suites = []
    for suite in board.suites:
        rows = []
        for row in suite.rows:
            cells = []
            for backend in suite.columns:
                where = (suite.title, row.name, backend)
                change = changes.get(where)
                kind = change.kind if change and change.kind not in ("same", "only here") else None
                kind = "new" if change and change.kind == "only here" and before["run"] else kind
                cell = row.cells[backend]
                known = None if cell.node == backend else cell.node
                cells.append(_cell(cell, modes, text_of, kind, history.get(where), known))
            rows.append([row.name, cells])
        suites.append({
            "title": suite.title, "file": suite.file, "columns": suite.columns,
            "count": len(rows),
            "packed": json.dumps(rows, separators=(",", ":"), allow_nan=False),
        })  # fmt: skip
    return {
        "states": [[s.code, s.word, s.glyph, tone(s.code)] for s in STATES],
        "modes": modes,
        "columns": [{"name": c["name"], "device": c["device"]} for c in _columns(board)],
        "absent": board.settings.absent,
        "finished": board.run["finished"] or board.run["started"],
        "maxAge": seconds(board.settings.max_age),
        "base": before["run"] if before is not None else "",
        "suites": suites,
        "details": details,
    }


def _cell(
    cell: Cell, modes: list[str], text_of: Callable, kind: str | None, history: list | None,
    node: str | None,
) -> list:  # fmt: skip
    bad = cell.state not in (states.PASSED, states.MISSING)
    variants = _variants(cell.tests, len(cell.left_out)) if cell.left_out else cell.tests
    parts = [
        [variant[:500], mode, state, text_of(detail)]
        for variant, mode, state, detail in cell.parts
        if state != states.PASSED
    ][:PARTS_SHOWN]
    found = [
        cell.state,
        [cell.modes.get(m) for m in modes] or None if cell.modes else None,
        variants if cell.tests + len(cell.left_out) > 1 else None,
        float(f"{cell.duration:.2g}") or None,
        cell.asserts,
        _finite(cell.value_error),
        _finite(cell.gradient_error),
        cell.attempts if cell.attempts > 1 else None,
        link(cell.url) or None,
        text_of(cell.detail),
        node,
        cell.remark or None,
        kind,
        history,
        parts if len(parts) > 1 else None,
        cell.message[:2000] if bad and cell.message else None,
    ]
    while found[-1] is None:
        found.pop()
    return found


def _finite(error: float | None) -> float | None:
    """An infinite error is -1 in the page's data: JSON has no infinity."""
    if error is None:
        return None
    return -1 if error == float("inf") else float(f"{error:.2g}")


def _history(store: Store, board: Board) -> dict[tuple, list[int]]:
    """The states of the last runs, the newest last, for cells whose state changed."""
    runs = [r["run"] for r in store.runs()]
    runs = runs[: runs.index(board.run["run"]) + 1][-RUNS_BACK:]
    found: dict[tuple, dict[int, int]] = {}
    marks = ", ".join("?" * len(runs))
    rows = store.db.execute(
        "SELECT DISTINCT test.suite, test.name, backend.name, result.run, result.state FROM result"
        " JOIN cell USING (cell) JOIN test USING (test)"
        f" JOIN backend ON backend.backend = cell.backend WHERE result.run IN ({marks})",
        runs,
    )
    for suite, name, backend, run, state in rows:
        by_run = found.setdefault((suite, name, backend), {})
        by_run[run] = states.worst([state, by_run[run]]) if run in by_run else state
    return {
        where: [by_run.get(run, states.MISSING) for run in runs]
        for where, by_run in found.items()
        if len({by_run.get(run, states.MISSING) for run in runs} - {states.NOT_SAMPLED}) > 1
    }
