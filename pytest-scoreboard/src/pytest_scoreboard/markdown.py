"""Tables like the seeds: one Markdown file per suite, a badge and a link in every cell. They are
read with markdown-it and written with tabulate, and a table that was read is written back byte for
byte.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from . import states
from .board import Board, Cell, Row, Suite
from .states import BY_CODE, SHOWN
from .store import Result, Store

BADGE = "https://img.shields.io/badge/-{label}-{colour}"
LINK = '<a href="{href}" rel="noopener noreferrer" target="_blank"><img src={badge}></a>'
LABELS = {states.PASSED: "success", states.FAILED: "failure"}
HREF = re.compile(r'<a href="([^"]*)"')
LABEL = re.compile(r"badge/-([^-]+(?:--[^-]+)*)-")
# Characters that change the direction or the place of others: shown as escapes, never output.
UNSEEN = re.compile(
    "[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)
LONG = 160


class Seen(NamedTuple):
    test: str
    backend: str
    state: int
    href: str


def safe(text: str) -> str:
    """A name or a message as a cell of a table: one line, without markup, shortened.

    >>> print(safe("a|b\\n<script>"))
    a&#124;b\\n&lt;script&gt;
    """
    text = UNSEEN.sub(lambda m: m[0].encode("unicode_escape").decode(), text)
    text = text if len(text) <= LONG else text[:LONG] + "…"
    for raw, shown in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "&#124;"),
                       ("`", "&#96;"), ("*", "&#42;"), ("[", "&#91;"), ("]", "&#93;")):  # fmt: skip
        text = text.replace(raw, shown)
    return text


def badge(state: int) -> str:
    label = LABELS.get(state, BY_CODE[state].word).replace("-", "--").replace(" ", "_")
    return BADGE.format(label=label, colour=BY_CODE[state].badge)


def table(head: list[str], rows: list[list[str]]) -> str:
    from tabulate import tabulate

    return tabulate(rows, head, tablefmt="pipe", disable_numparse=True)


def link(url: str | None) -> str:
    """A URL that may become a link: http and https, nothing else."""
    good = url and re.fullmatch(r"https?://[^\s\"'<>|]+", url)
    return url if good and url else ""


def read(text: str) -> list[Seen]:
    """The cells of every table in a Markdown text, in order."""
    try:
        from markdown_it import MarkdownIt
    except ImportError as error:
        raise ImportError("import: needed markdown-it-py; pip install markdown-it-py") from error
    seen, head, line = [], [], []
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    inside = ""
    for token in tokens:
        if token.type in ("th_open", "td_open"):
            inside = token.type[:2]
        elif token.type == "inline" and inside == "th":
            head.append(token.content)
        elif token.type == "inline" and inside == "td":
            line.append(token.content)
        elif token.type == "tr_close" and line:
            for backend, content in zip(head[1:], line[1:]):
                label, href = LABEL.search(content), HREF.search(content)
                if label:
                    word = label[1].replace("_", " ")
                    seen.append(Seen(line[0], backend, _state(word), href[1] if href else ""))
            line = []
        elif token.type == "table_open":
            head = []
    if not seen:
        raise ValueError("import: needed a table with badges in its cells, found none")
    return seen


def _state(label: str) -> int:
    words = {label: code for code, label in LABELS.items()}
    if label in words:
        return words[label]
    if label in states.BY_WORD:
        return states.BY_WORD[label].code
    raise ValueError(f"import: needed success, failure or a state's word on a badge, got {label!r}")


def keep(store: Store, run: int, suite: str, seen: list[Seen]) -> None:
    """A table as part of a run: its cells, its links as jobs, its order of rows and columns."""
    for cell in seen:
        usable = link(cell.href) if "/runs/" in cell.href else ""
        job = store.job(run, cell.href, url=usable or None, complete=1)
        if cell.state >= 0:
            store.add(run, job, [
                Result(suite, cell.test, "", "", cell.backend, "", "", cell.state)
            ])  # fmt: skip
    for axis, names in (("row", [c.test for c in seen]), ("column", [c.backend for c in seen])):
        store.db.executemany(
            "INSERT OR REPLACE INTO layout VALUES (?, ?, ?, ?, ?)",
            [(run, suite, axis, i, name) for i, name in enumerate(dict.fromkeys(names))],
        )


def seed_table(store: Store, run: int, suite: str) -> str:
    """An imported table, unchanged."""
    order = {
        axis: [
            row["name"]
            for row in store.db.execute(
                "SELECT name FROM layout WHERE run = ? AND suite = ? AND axis = ?"
                " ORDER BY position",
                (run, suite, axis),
            )
        ]
        for axis in ("row", "column")
    }
    found = {
        (r["name"], r["backend"]): LINK.format(href=r["job_key"], badge=badge(r["state"]))
        for r in store.results(run)
        if r["suite"] == suite
    }
    rows = [[t, *(found.get((t, b), "") for b in order["column"])] for t in order["row"]]
    return table(["", *order["column"]], rows)


def suite_file(board: Board, suite: Suite) -> str:
    """One file: the table in the form of the seeds, then modes and largest errors as text, then the
    tests of the suite that are not expected in every run.
    """
    first = [row for row in suite.rows if row.expected] or suite.rows
    more = [row for row in suite.rows if row not in first]
    modes = [m for m in board.modes() if m]
    said = f"Modes: {', '.join(modes)}. " if modes else ""
    said += "".join(
        f"{safe(b)} has no {mode}: {safe(why)}. "
        for b, found in board.settings.absent.items() if b in suite.columns
        for mode, why in found.items()
    )  # fmt: skip
    said += (
        "Worst errors against the reference, in ulps of its largest element; assertions executed:"
    )
    text = f"{_badges(suite, first)}\n\n{said}\n\n{_worded(board, suite, first, modes)}\n"
    if more:
        text += f"\nMore tests of this suite:\n\n{_badges(suite, more)}\n"
    return text


def _badges(suite: Suite, rows: list[Row]) -> str:
    head = ["", *(safe(name or "no backend") for name in suite.columns)]
    cells = [[_linked(suite, row.name, b, row.cells[b]) for b in suite.columns] for row in rows]
    return table(head, [[safe(row.name), *line] for row, line in zip(rows, cells)])


def _worded(board: Board, suite: Suite, rows: list[Row], modes: list[str]) -> str:
    head = ["", *(safe(name or "no backend") for name in suite.columns)]
    cells = [[_words(board, b, row.cells[b], modes) for b in suite.columns] for row in rows]
    return table(head, [[safe(row.name), *line] for row, line in zip(rows, cells)])


def _linked(suite: Suite, test: str, backend: str, cell: Cell) -> str:
    from urllib.parse import quote

    here = "index.html#cell=" + quote(f"{suite.title}\x1f{test}\x1f{backend}", safe="")
    href = link(cell.url) or (here if len(here) < 2000 else "index.html")
    return LINK.format(href=href, badge=badge(cell.state))


def _words(board: Board, backend: str, cell: Cell, modes: list[str]) -> str:
    if cell.state in (states.MISSING, states.NOT_RUN, states.NOT_SAMPLED):
        return BY_CODE[cell.state].word
    parts = []
    for mode in modes:
        if mode in cell.modes:
            parts.append(f"{mode} {BY_CODE[cell.modes[mode]].glyph}")
        else:
            absent = mode in board.settings.absent.get(backend, {})
            parts.append(f"no {mode}" if absent else f"{mode} not run")
    for kind, error in (("value", cell.value_error), ("gradient", cell.gradient_error)):
        if error is not None:
            parts.append(f"{kind} {short(error)} ulp")
    if cell.asserts is not None:
        parts.append(f"{cell.asserts} asserted")
    if cell.left_out:
        parts.append(f"{cell.tests} of {cell.tests + len(cell.left_out)} variants sampled")
    return safe(", ".join(parts) or BY_CODE[cell.state].word)


def short(error: float) -> str:
    """
    >>> short(0.0), short(1.5), short(123456.7)
    ('0', '1.5', '1.2e+05')
    """
    return f"{error:.2g}" if error < 1e4 or error == float("inf") else f"{error:.1e}"


def totals(board: Board) -> str:
    """The counts of the expected rows, or of all rows if there are none; every state counts."""
    counts = board.totals(board.has_expected())
    names = [b for b in counts if sum(counts[b].values())]
    seen = [s.code for s in SHOWN if any(c[s.code] for c in counts.values())]
    head = ["", *(BY_CODE[s].word for s in seen), "cells"]
    rows = [
        [safe(b or "no backend"), *(str(counts[b][s]) for s in seen), str(sum(counts[b].values()))]
        for b in names
    ]
    return table(head, rows)


def file_name(title: str) -> str:
    """
    >>> file_name("Functional API/Core/gradients")
    'functional-api-core-gradients'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:80] or "suite"


def index(board: Board, files: dict[str, str]) -> str:
    """The first page: date, commit, whether complete, totals, and links to the tables."""
    run = board.run
    when = run["finished"] or run["started"] or "at an unknown date"
    state = board.verdict()
    if not board.complete and not board.only_sampled:
        state += f" ({safe('; '.join(board.gaps))})"
    commit = (run["sha"] or "unknown")[:12] + (" with local changes" if run["dirty"] else "")
    lines = [
        f"# {safe(board.settings.title or 'Scoreboard')}", "",
        f"Run {run['run']}, {state}: tests ended {when}, commit {commit}. "
        "The dates are those of the data. [The page](index.html) has the rest.", "",
        totals(board), "",
    ]  # fmt: skip
    for backend, (message, _) in board.banners.items():
        lines += [f"**{safe(backend)} does not load:** {safe(message)}", ""]
    for file, (message, _) in board.uncollected.items():
        lines += [f"**{safe(file)} could not be collected:** {safe(message)}", ""]
    for suite in board.suites:
        if suite.title in files:
            red = suite.red()
            note = f", {red} red cell{'' if red == 1 else 's'}" if red else ""
            lines.append(
                f"* [{safe(suite.title)}]({files[suite.title]}): {len(suite.rows)} row"
                f"{'' if len(suite.rows) == 1 else 's'}{note}"
            )
    return "\n".join(lines) + "\n"


def write(board: Board, folder: Path) -> list[Path]:
    """Render a run into a folder: README.md and a file for every suite with a title."""
    folder.mkdir(parents=True, exist_ok=True)
    files, written = {}, []
    for suite in board.suites:
        if suite.main:
            name = file_name(suite.title) + ".md"
            if name in files.values():  # two titles that give the same file name
                name = f"{name[:-3]}-{len(files)}.md"
            files[suite.title] = name
            written.append(folder / name)
            written[-1].write_text(suite_file(board, suite), "utf-8")
    written.append(folder / "README.md")
    written[-1].write_text(index(board, files), "utf-8")
    return written
