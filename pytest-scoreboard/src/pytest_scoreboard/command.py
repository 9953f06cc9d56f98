"""`scoreboard …`: import, merge, render, diff, show, slowest, flaky, check, ledger."""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from . import importing, ledger, markdown, slowest, states
from .board import Board
from .config import Config, read
from .diff import KINDS, compare, report
from .flaky import flaky
from .merge import merge, ulps
from .states import BY_CODE
from .store import Store

SAME, NEWS, USAGE, STALE = 0, 1, 2, 3


def main(argv: Sequence[str] | None = None, prog: str = "scoreboard") -> int:
    parser = argparse.ArgumentParser(prog=prog, description=__doc__)
    _arguments(parser)
    return run(parser.parse_args(argv))


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--db", help="the database (default: the project's own)")
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("import", help="import seeds, tables like them, or JUnit files as a run")
    one.add_argument("form", choices=["seeds", "markdown", "junit"])
    one.add_argument("files", nargs="*", type=Path)
    one = verbs.add_parser("merge", help="merge shards into one database, in any order")
    one.add_argument("out", type=Path)
    one.add_argument("shards", nargs="+", type=Path)
    one.add_argument("--join", metavar="RUN", help="add their results to this run of OUT")
    one = verbs.add_parser("render", help="write a run as Markdown tables, page, badge or JSON")
    one.add_argument("form", choices=["md", "html", "badge", "json"])
    one.add_argument("-o", "--out", type=Path, required=True, metavar="DIR")
    one.add_argument("--run", default="latest")
    one.add_argument(
        "--readme",
        type=Path,
        action="append",
        default=[],
        help="also put the totals between the marks of this file (md)",
    )
    one = verbs.add_parser("diff", help="show how every cell changed")
    one.add_argument("base")
    one.add_argument("head")
    one.add_argument("--all", action="store_true", help="also show cells that stayed the same")
    one.add_argument("--max-age", help="exit with 3 if HEAD is older, for example 3d")
    one = verbs.add_parser("show", help="show the history of a test")
    one.add_argument("test")
    one.add_argument("--backend")
    one = verbs.add_parser("slowest", help="list what took longest in a run")
    one.add_argument("--run", default="latest")
    one.add_argument("--by", choices=slowest.BY, default="cell")
    one.add_argument("-n", type=int, default=20, metavar="COUNT", help="how many (default: 20)")
    one.add_argument(
        "--json",
        metavar="FILE",
        help="write the seconds of every test, by its pytest id, to a file (-: to the terminal)",
    )
    verbs.add_parser("flaky", help="list cells whose outcome changes without a change of the code")
    one = verbs.add_parser("check", help="exit with 3 if the latest run is old or incomplete")
    one.add_argument("--max-age")
    one.add_argument("--complete", action="store_true")
    one = verbs.add_parser("ledger", help="record the failures of the latest run as expected")
    one.add_argument("--reason", help="why they fail: required for new failures")


def run(args: argparse.Namespace) -> int:
    """Run the chosen command; return the exit status."""
    try:
        settings = read(Path.cwd())
        path = Path(args.db) if args.db else settings.path(settings.database)
        if args.verb == "merge":
            print(f"{merge(args.out, args.shards, args.join)} runs in {args.out}")
            return SAME
        with Store(path, write=args.verb == "import") as store:
            return VERBS[args.verb](store, settings, args)
    except (LookupError, ValueError, OSError, ImportError, sqlite3.Error) as error:
        print(error, file=sys.stderr)
        return USAGE


def _import(store: Store, settings: Config, args: argparse.Namespace) -> int:
    if args.form != "seeds" and not args.files:
        raise ValueError(f"import {args.form}: needed files, got none")
    if args.form == "seeds":
        if not settings.seeds:
            raise ValueError(
                "import seeds: needed a folder as seeds in [tool.scoreboard], got none"
            )
        number = importing.seeds(store, settings.path(settings.seeds))
    elif args.form == "markdown":
        number = importing.tables(store, args.files)
    else:
        known = [r["name"] for r in store.db.execute("SELECT name FROM backend WHERE name != ''")]
        backends = list(settings.columns) or known
        if not backends:
            raise ValueError("import junit: needed columns in [tool.scoreboard], got none")
        number = importing.junit(store, args.files, settings, backends)
    cells = store.db.execute(
        "SELECT state, count(*) FROM result WHERE run = ? GROUP BY state", (number,)
    )
    print(f"run {number}: " + ", ".join(f"{n} {BY_CODE[s].word}" for s, n in cells))
    return SAME


def _render(store: Store, settings: Config, args: argparse.Namespace) -> int:
    board = Board.load(store, store.find(args.run)["run"], settings)
    args.out.mkdir(parents=True, exist_ok=True)
    if args.form == "md":
        written = markdown.write(board, args.out)
        for path in args.readme:
            _put_totals(board, path)
            written.append(path)
    elif args.form == "html":
        from .page import render

        written = [args.out / "index.html"]
        written[0].write_text(render(store, board), "utf-8")
    elif args.form == "badge":
        written = [args.out / "scoreboard.svg"]
        written[0].write_text(_badge(board), "utf-8")
    else:
        written = [args.out / "scoreboard.json"]
        written[0].write_text(json.dumps(_plain(board), indent=1) + "\n", "utf-8")
    print("\n".join(str(path) for path in written))
    return SAME


def _put_totals(board: Board, path: Path) -> None:
    start, end = "<!-- scoreboard -->", "<!-- /scoreboard -->"
    text = path.read_text("utf-8")
    if text.count(start) != 1 or text.count(end) != 1:
        raise ValueError(f"render: needed {start} and {end} once each in {path}")
    head, tail = text.split(start)[0], text.split(end)[1]
    when = board.run["finished"] or board.run["started"] or "at an unknown date"
    number, said = board.run["run"], board.verdict()
    body = f"{markdown.totals(board)}\n\nRun {number}, {said}, tests ended {when}."
    path.write_text(f"{head}{start}\n{body}\n{end}{tail}", "utf-8")


def _badge(board: Board) -> str:
    """A small SVG: how many of all cells are green."""
    counts = board.totals(board.has_expected())
    good = sum(c[states.PASSED] for c in counts.values())
    total = sum(sum(c.values()) for c in counts.values())
    red = any(states.red(s) and n for c in counts.values() for s, n in c.items())
    said = f"{good}/{total}" + ("" if board.complete else f" {board.verdict().lower()}")
    bad = red or not (board.complete or board.only_sampled)
    colour = "#b4232f" if bad else "#0d6b3c" if good == total else "#6b5a00"
    width = 84 + 8 * len(said)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" '
        f'aria-label="scoreboard: {said}"><rect width="78" height="20" fill="#33383e"/>'
        f'<rect x="78" width="{width - 78}" height="20" fill="{colour}"/>'
        '<g fill="#fff" font-family="Verdana,sans-serif" font-size="11">'
        f'<text x="6" y="14">scoreboard</text><text x="84" y="14">{said}</text></g></svg>\n'
    )


def _plain(board: Board) -> dict:
    run = {k: board.run[k] for k in ("run", "key", "kind", "sha", "dirty", "started", "finished")}
    cells = [
        {"suite": suite, "test": test, "backend": backend, "state": BY_CODE[cell.state].word,
         "modes": {m: BY_CODE[s].word for m, s in cell.modes.items()}, "seconds": cell.duration,
         "asserts": cell.asserts, "value_error_ulps": _json(cell.value_error),
         "gradient_error_ulps": _json(cell.gradient_error), "message": cell.message,
         "variants": cell.tests, "not_sampled": len(cell.left_out)}
        for (suite, test, backend), _, cell in board.cells()
    ]  # fmt: skip
    sample = board.sample._asdict() if board.sample else None
    return {**run, "complete": board.complete, "sampled": sample, "cells": cells}


def _json(error: float | None) -> float | str | None:
    return "inf" if error == float("inf") else error


def _diff(store: Store, settings: Config, args: argparse.Namespace) -> int:
    base = Board.load(store, store.find(args.base)["run"], settings)
    head = Board.load(store, store.find(args.head)["run"], settings)
    changes = compare(base, head)
    print("\n".join(report(changes, base, head, args.all)))
    if args.max_age is not None and head.stale(args.max_age):
        print(f"run {head.run['run']} is older than {args.max_age}", file=sys.stderr)
        return STALE
    return NEWS if any(KINDS[c.kind] for c in changes) else SAME


def _show(store: Store, settings: Config, args: argparse.Namespace) -> int:
    found = store.db.execute(
        "SELECT DISTINCT suite, name FROM test WHERE name = ? OR suite || '::' || name = ?",
        (args.test, args.test),
    ).fetchall()
    if not found:
        raise LookupError(f"show: needed the name of a test, got {args.test}")
    for suite, name in found:
        print(f"{suite}  {name}")
        for r in store.history(suite, name):
            if args.backend in (None, r["backend"]):
                state = BY_CODE[r["state"]]
                errors = [
                    f"{kind} {ulps(r[f'{kind}_error']):g} ulp"
                    for kind in ("value", "gradient")
                    if r[f"{kind}_error"] is not None
                ]
                mode = "" if r["state"] == states.NOT_SAMPLED else r["mode"]  # it ran in none
                parts = [r["variant"], mode, *errors, (r["message"] or "").split("\n")[0]]
                print(
                    f"  run {r['run']:<4}{r['started'] or 'no date':<22}{(r['sha'] or '')[:8]:<10}"
                    f"{r['backend']:<12}{state.glyph} {state.word:<14}"
                    + "  ".join(p for p in parts if p)
                )
    return SAME


def _slowest(store: Store, settings: Config, args: argparse.Namespace) -> int:
    run = store.find(args.run)["run"]
    if args.json is None:
        print("\n".join(slowest.report(store, run, args.by, args.n)))
    elif args.json == "-":
        print(slowest.as_json(store, run))
    else:
        Path(args.json).write_text(slowest.as_json(store, run) + "\n", "utf-8")
        print(args.json)
    return SAME


def _flaky(store: Store, settings: Config, args: argparse.Namespace) -> int:
    found = flaky(store)
    for f in found:
        print(f"{f.suite} {f.test} [{f.backend}] {f.variant} {f.mode}: {f.why}")
    print(f"{len(found)} flaky cells")
    return NEWS if found else SAME


def _check(store: Store, settings: Config, args: argparse.Namespace) -> int:
    board = Board.load(store, store.find("latest")["run"], settings)
    problems = []
    if board.stale(args.max_age):
        age = board.age()
        old = "of unknown age" if age is None else f"{age / 86400:.1f} days old"
        problems.append(f"is {old}, allowed are {args.max_age or settings.max_age}")
    if args.complete and not board.complete:
        sample = str(board.sample)
        problems += [f"is incomplete{', ' if gap == sample else ': '}{gap}" for gap in board.gaps]
    for problem in problems:
        print(f"run {board.run['run']} {problem}")
    if not problems:
        more = f", {board.sample}" if board.sample else " and complete" * board.complete
        print(f"run {board.run['run']} is fresh{more}")
    return STALE if problems else SAME


def _ledger(store: Store, settings: Config, args: argparse.Namespace) -> int:
    """Update the ledger of expected failures from the latest run. Each failure becomes an entry,
    and an entry that passes is removed. If only some variants of an entry fail, it is replaced by
    one entry for each of them. An entry without a result (not run, skipped, not collected) stays.
    """
    path = settings.path(settings.ledger)
    known = ledger.Ledger.read(path)
    results = store.results(store.find("latest")["run"])
    today = datetime.now(UTC).date().isoformat()
    kept, new = set(), []
    failing = (states.FAILED, states.ERROR, states.XFAILED, states.CRASHED, states.TIMEOUT)
    passing = (states.PASSED, states.HOLLOW, states.XPASSED)
    failed: dict[ledger.Expected, set[str]] = {}  # entry -> its failing variants
    passed: set[ledger.Expected] = set()
    for r in results:
        old = known.find(r["suite"], r["name"], r["variant"], r["backend"])
        if old and r["state"] in failing:
            failed.setdefault(old, set()).add(r["variant"])
        elif old and r["state"] in passing:
            passed.add(old)
        elif r["state"] in failing and r["state"] != states.XFAILED:  # a mark has its own reason
            where = (r["suite"], r["name"], r["backend"])
            new.append(ledger.Expected(*where, args.reason or "", today, r["variant"] or "*"))
    for e in known.entries:
        if e not in passed:
            kept.add(e)
        elif e in failed:
            kept |= {replace(e, variant=variant or "*") for variant in failed[e]}
    if new and not args.reason:
        listed = "\n".join(f"  {e.suite} {e.test} [{e.backend}] {e.variant}" for e in new)
        raise ValueError(f"ledger: needed --reason for {len(new)} new failures:\n{listed}")
    gone = passed - failed.keys()
    ledger.write(path, {*kept, *new})
    print(f"{path}: {len(kept)} kept, {len(set(new))} new, {len(gone)} taken out")
    return SAME


VERBS = {
    "import": _import, "render": _render, "diff": _diff, "show": _show, "slowest": _slowest,
    "flaky": _flaky, "check": _check, "ledger": _ledger,
}  # fmt: skip
