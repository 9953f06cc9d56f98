"""The report of a run, with machine, versions and date, as Markdown, JSON and one static page."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import platform
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any

from .tables import Bar, Line, Part, Table, markdown

PACKAGES = ("isomorph", "numpy", "jax", "tensorflow", "torch", "array-api-compat", "autoray",
            "eagerpy", "keras", "flax", "equinox", "optax", "autograd", "safetensors")  # fmt: skip
JSON, HTML = "bench.json", "bench.html"
DASHES = ("", "6 3", "2 3", "9 3 2 3")  # lines differ in dashes and marks, not only in colour
WIDTH, LEFT, BAR, TEXT, LETTERS = 1000, 540, 18, 70, 80


@dataclass(frozen=True)
class Section:
    """The tables of one benchmark, or why there are none."""

    name: str
    title: str
    parts: list[Part]
    failed: str = ""


@dataclass
class Report:
    """A run of benchmarks on one machine."""

    machine: str
    versions: dict[str, str]
    started: str
    sections: list[Section] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @classmethod
    def begun(cls) -> Report:
        return cls(machine(), versions(), datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"))

    @property
    def heading(self) -> str:
        return f"{self.machine}; " + ", ".join(f"{k} {v}" for k, v in self.versions.items())

    @property
    def budgets(self) -> tuple[int, int]:
        """(rows over their budget, rows with a budget)"""
        tables = [p for s in self.sections for p in s.parts if isinstance(p, Table)]
        judged = sum(any(c in ("yes", "NO") for c in row) for t in tables for row in t.rows)
        return sum(t.missed for t in tables), judged

    def json(self) -> str:
        sections = [
            {
                "name": s.name,
                "title": s.title,
                "failed": s.failed or None,
                "tables": [
                    {"head": p.head, "rows": p.rows} for p in s.parts if isinstance(p, Table)
                ],
                "notes": [p for p in s.parts if isinstance(p, str)],
            }
            for s in self.sections
        ]
        data = {
            "schema": 1, "started": self.started, "machine": self.machine,
            "versions": self.versions, "left_out": self.left_out, "sections": sections,
        }  # fmt: skip
        return json.dumps(data, indent=1, ensure_ascii=False) + "\n"

    def html(self) -> str:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup

        folder = files(__package__) / "page"
        style = (folder / "page.css").read_text("utf-8")
        environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
        template = environment.from_string((folder / "page.html").read_text("utf-8"))
        missed, judged = self.budgets
        return template.render(
            report=self, style=Markup(style), style_hash=hashed(style), missed=missed,
            judged=judged, sections=[shown(s) for s in self.sections],
        )  # fmt: skip

    def write(self, folder: Path) -> None:
        """Write both files, each as a whole or not at all."""
        for name, text in ((JSON, self.json()), (HTML, self.html())):
            part = folder / f".{name}.part"
            part.write_text(text, "utf-8")
            os.replace(part, folder / name)


def section_markdown(section: Section) -> str:
    body = f"Failed: {section.failed}" if section.failed else markdown(section.parts)
    return f"\n## {section.title}\n\n{body}"


def hashed(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def machine() -> str:
    name = platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            found = next(
                (x.partition(":")[2].strip() for x in file if x.startswith("model name")), ""
            )
    except OSError:
        found = platform.processor()
    named = f"{found}, {name}" if found and found != name else name
    return (
        f"{named}, {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}, one thread"
    )


def versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


# The drawings of the page: sizes and positions are computed here, and the template inserts them.


def shown(section: Section) -> dict[str, Any]:
    return {
        "name": section.name, "title": section.title, "failed": section.failed,
        "parts": [
            {"note": part} if isinstance(part, str) else
            {"note": "", "table": part, "bars": bars(part.bars()), "plot": plot(part)}
            for part in section.parts
        ],
    }  # fmt: skip


def bars(found: list[Bar]) -> dict[str, Any] | None:
    """Bars of ratios: the longest fills the width, a tick marks the budget."""
    if not found:
        return None
    top = max([*(b.value for b in found), *(b.budget or 0 for b in found), 1.0])
    top = min(top, 5.0)  # one very long bar would hide the others
    scale = (WIDTH - LEFT - TEXT) / top
    rows = [
        {
            "label": b.label if len(b.label) <= LETTERS else f"…{b.label[1 - LETTERS :]}",
            "full": b.label,
            "text": f"{b.value:g}x",
            "beside": round(LEFT + min(max(b.value, b.budget or 0, 0), top) * scale + 6, 1),
            "width": round(max(min(b.value, top), 0) * scale, 1),
            "tick": None if b.budget is None else round(LEFT + min(b.budget, top) * scale, 1),
            "tone": {True: "met", False: "missed", None: "none"}[b.met],
            "sign": {True: "✓", False: "✗", None: ""}[b.met],
            "y": i * (BAR + 4) + 4,
        }
        for i, b in enumerate(found)
    ]
    over = sum(b.met is False for b in found)
    said = f"{len(found)} ratios from {min(b.value for b in found):g} to " \
           f"{max(b.value for b in found):g}, {over} over their budget"  # fmt: skip
    return {
        "rows": rows, "width": WIDTH, "left": LEFT, "bar": BAR, "said": said,
        "height": len(rows) * (BAR + 4) + 8, "one": round(LEFT + scale, 1),
    }  # fmt: skip


def plot(table: Table) -> dict[str, Any] | None:
    """Lines over sizes, both axes logarithmic: a line at 45° is linear growth."""
    lines = [line for line in table.series() if all(x > 0 and y > 0 for x, y in line.points)]
    if not lines or table.lines is None:
        return None
    xs = [math.log10(x) for line in lines for x, _ in line.points]
    ys = [math.log10(y) for line in lines for _, y in line.points]
    height, left, bottom, right = 320, 60, 40, 190
    across = lambda x: round(
        left + (math.log10(x) - min(xs)) / max(max(xs) - min(xs), 1e-9) * (WIDTH - left - right), 1
    )
    up = lambda y: round(
        height - bottom
        - (math.log10(y) - min(ys)) / max(max(ys) - min(ys), 1e-9) * (height - bottom - 20), 1
    )  # fmt: skip
    decades = range(math.ceil(min(ys)), math.floor(max(ys)) + 1)
    ends = spread([up(line.points[-1][1]) for line in lines])
    return {
        "width": WIDTH, "height": height, "left": left, "base": height - bottom,
        "lines": [
            {
                "label": line.label, "dash": DASHES[i % len(DASHES)], "tone": f"tone{i % 8}",
                "points": " ".join(f"{across(x)},{up(y)}" for x, y in line.points),
                "end": across(line.points[-1][0]) + 6, "y": ends[i],
            }
            for i, line in enumerate(lines)
        ],
        "xs": [{"at": across(x), "text": f"{x:g}"} for x in sizes(lines)],
        "ys": [{"at": up(10.0**d), "text": f"{10.0**d:g}"} for d in decades],
        "x_name": table.lines[0], "y_name": table.lines[1],
        "said": "; ".join(
            f"{line.label}: {line.points[0][1]:g} at {line.points[0][0]:g}, "
            f"{line.points[-1][1]:g} at {line.points[-1][0]:g}" for line in lines
        ),
    }  # fmt: skip


def sizes(lines: list[Line]) -> list[float]:
    return sorted({x for line in lines for x, _ in line.points})


def spread(places: list[float], apart: float = 15.0) -> list[float]:
    """The positions of labels, moved down where two would overlap."""
    order = sorted(range(len(places)), key=places.__getitem__)
    out, last = list(places), -math.inf
    for i in order:
        out[i] = last = max(places[i], last + apart)
    return out
