"""Tables of measurements as data and as Markdown. Every benchmark returns tables, and `report`
prints and writes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

RATIO = re.compile(r"(-?\d+(?:\.\d+)?)x(?![\w])")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


class Bar(NamedTuple):
    """A ratio with its label and, if it has one, its budget."""

    label: str
    value: float
    budget: float | None
    met: bool | None


class Line(NamedTuple):
    """Points (size, value) of one series."""

    label: str
    points: list[tuple[float, float]]


@dataclass(frozen=True)
class Table:
    """Rows under a head; every cell is text. `lines` names a column of sizes, such as "4 blocks",
    and a column of numbers to plot over them as lines. Without it, ratios are drawn as bars.
    """

    head: list[str]
    rows: list[list[str]]
    lines: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.head):
                raise ValueError(f"Table: needed {len(self.head)} cells in a row, got {row}")

    @property
    def markdown(self) -> str:
        """The table as Markdown with aligned columns."""
        widths = [max(len(r[i]) for r in [self.head, *self.rows]) for i in range(len(self.head))]
        safe = lambda cell: cell.replace("|", "\\|")
        line = lambda r: "| " + " | ".join(safe(c).ljust(w) for c, w in zip(r, widths)) + " |"
        rule = "|" + "|".join("-" * (w + 2) for w in widths) + "|"
        return "\n".join([line(self.head), rule, *map(line, self.rows)])

    @property
    def missed(self) -> int:
        """The number of rows that are over their budget."""
        return sum("NO" in row for row in self.rows)

    def bars(self) -> list[Bar]:
        """The ratios in the column before the budgets, labelled by the other words of the row."""
        if self.lines or "budget" not in self.head:
            return []
        budget = self.head.index("budget")
        at = next(
            (i for i in range(budget - 1, -1, -1) if any(RATIO.search(r[i]) for r in self.rows)), -1
        )
        if at < 0:
            return []
        words = [i for i in range(at) if not any(NUMBER.fullmatch(r[i]) for r in self.rows)]
        met = self.head.index("met") if "met" in self.head else None
        found = []
        for row in self.rows:
            value, wanted = RATIO.search(row[at]), RATIO.fullmatch(row[budget])
            if value:
                judged = {"yes": True, "NO": False}.get(row[met]) if met is not None else None
                found.append(Bar(
                    ", ".join(row[i] for i in words), float(value[1]),
                    float(wanted[1]) if wanted else None, judged,
                ))  # fmt: skip
        return found

    def series(self) -> list[Line]:
        """The numbers over the sizes: one line for each word in the first column and each kind of
        size, such as "blocks" in "4 blocks".
        """
        if self.lines is None:
            return []
        size, value = map(self.head.index, self.lines)
        found: dict[str, list[tuple[float, float]]] = {}
        for row in self.rows:
            count, _, kind = row[size].partition(" ")
            if NUMBER.fullmatch(count) and NUMBER.fullmatch(row[value]):
                points = found.setdefault(f"{row[0]}, {kind}", [])
                points.append((float(count), float(row[value])))
        return [Line(label, points) for label, points in found.items() if len(points) > 1]


Part = Table | str  # a table, or a paragraph of notes


def parts(found: Part | Iterable[Part]) -> list[Part]:
    """The result of a benchmark as a list."""
    return [found] if isinstance(found, Table | str) else list(found)


def markdown(found: Part | Iterable[Part]) -> str:
    return "\n\n".join(p if isinstance(p, str) else p.markdown for p in parts(found))
