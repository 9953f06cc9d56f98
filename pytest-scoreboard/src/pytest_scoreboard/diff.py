"""How every cell changed between two runs."""

from __future__ import annotations

from typing import NamedTuple

from . import states
from .board import Board, Cell

# In the order in which they are shown; True: shown as news.
KINDS = {
    "regressed": True,
    "still failing": False,
    "fixed": True,
    "proved": True,  # passed without assertions before, now with assertions
    "changed": True,
    "only there": True,
    "only here": True,
    "same": False,
}


IMPORTED = ("seeds", "import")  # tables, which have no variants


class Change(NamedTuple):
    kind: str
    suite: str
    test: str
    backend: str
    base: int
    head: int
    remark: str

    def __str__(self) -> str:
        was, now = (states.BY_CODE[code].word for code in (self.base, self.head))
        was += " (known to be hollow)" if self.remark else ""
        return f"{self.suite} {self.test} [{self.backend or 'no backend'}] {was} -> {now}"


def compare(base: Board, head: Board) -> list[Change]:
    """Every cell of either run, each under one kind."""
    old = {key: cell for key, _, cell in base.cells()}
    new = {key: cell for key, _, cell in head.cells()}
    changes = []
    for key in [*old, *(k for k in new if k not in old)]:
        a, b = old.get(key, Cell()), new.get(key, Cell())
        if a.state == b.state == states.MISSING:
            continue
        if (base.selection and a.state == states.MISSING) or (
            head.selection and b.state == states.MISSING
        ):
            continue  # that run did not ask for it
        was, now = _in_both(a, b, base, head), _in_both(b, a, head, base)
        if was is None or now is None:
            continue  # no variant of it was asked for in both runs
        kind = _kind(was, now, bool(a.remark) and not b.remark)
        changes.append(Change(kind, *key, was, now, a.remark))
    order = list(KINDS)
    return sorted(changes, key=lambda change: order.index(change.kind))


def _in_both(cell: Cell, other: Cell, run: Board, other_run: Board) -> int | None:
    """The state of a cell without the variants that the other run left out, by its sample or by its
    selection; None if no variant remains.
    """
    left_out = set(other.left_out)
    if other_run.selection and run.run["kind"] not in IMPORTED:
        ran = {variant for variant, *_ in other.parts}
        left_out |= {variant for variant, *_ in cell.parts if variant not in ran}
    if cell.state in (states.MISSING, states.NOT_RUN) or not (left_out or cell.left_out):
        return cell.state
    rest = [state for variant, _, state, _ in cell.parts if variant not in left_out]
    return states.worst(rest) if rest else None


def _kind(a: int, b: int, hollow: bool) -> str:
    gone = (states.MISSING, states.NOT_RUN)
    if b in gone:
        return "same" if a == b else "only there"
    if a in gone:
        return "only here"
    if states.red(b):
        return "still failing" if states.red(a) else "regressed"
    if b == states.PASSED:
        if states.red(a):
            return "fixed"
        if hollow:
            return "proved"
    return "same" if a == b else "changed"


def report(changes: list[Change], base: Board, head: Board, every: bool = False) -> list[str]:
    """The lines of `scoreboard diff`: counts, then cells; cells that stayed green only on
    request.
    """
    lines = [f"run {base.run['run']} -> run {head.run['run']}: {len(changes)} cells"]
    lines += [f"run {b.run['run']} {b.sample}" for b in (base, head) if b.sample]
    counts = {kind: sum(c.kind == kind for c in changes) for kind in KINDS}
    lines += [f"{n:6} {kind}" for kind, n in counts.items() if n]
    for kind in KINDS:
        shown = [c for c in changes if c.kind == kind]
        if shown and (every or kind != "same"):
            lines += ["", f"{kind}:", *(f"  {c}" for c in shown)]
    return lines
