"""The benchmark page: totals, and a plot of every table of ratios in benchmarks/results."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.report import plot
from benchmarks.tables import RATIO, Table

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
# The order of the files, and what each is.
FILES = {
    "small": "small networks and short runs: a step of `fit`, and whether compiling pays",
    "cpu": "on a CPU: calls, gradients, layers, modules, training steps, memory",
    "waiting": "what a person waits for: first steps, small calls, eager loops, special functions",
    "h200": "on an NVIDIA H200: kernels, and a training step of GPT-2 small",
    "distribute": "what a data parallel step adds to its all-reduce",
    "modules": "what a module costs, before and after its rewrite",
    "house": "before and after the source was put in order",
    "scoreboard": "the scoreboard at size",
    "gpu-suite": "the test suite on a GPU",
}
# Columns with ratios of another kind.
NOT_OURS = ("over twice half", "over native, best", "median", "Keras", "before", "now")
LOW, HIGH = 0.25, 4.0
WIDTH, LEFT, RIGHT, ROW = 800, 170, 20, 30
MARKS = {
    "yes": ("#0d6b3c", "keeps its budget"),
    "NO": ("#b4232f", "over its budget"),
    "": ("#5a5a66", "has no budget"),
}


class Measured(NamedTuple):
    """A table of a result file."""

    file: str
    title: str  # of its section
    table: Table

    @property
    def judged(self) -> list[str]:
        """Whether it was kept, "yes" or "NO", for every row with a budget."""
        if "met" not in self.table.head:
            return []
        met = self.table.head.index("met")
        return [row[met] for row in self.table.rows if row[met] in ("yes", "NO")]

    @property
    def ratios(self) -> list[tuple[str, str, float, str]]:
        """(group, label, ratio, "yes", "NO" or "") of every row with a ratio of ours to another."""
        head = self.table.head
        columns = [
            i for i, word in enumerate(head)
            if i and not word.startswith(NOT_OURS)
            and 2 * sum(bool(RATIO.search(row[i])) for row in self.table.rows)
            > len(self.table.rows)
        ]  # fmt: skip
        if not columns:
            return []
        met = head.index("met") if "met" in head else None
        found = []
        for row in self.table.rows:
            ratio = RATIO.search(row[columns[0]])
            if ratio:
                judged = row[met] if met is not None and row[met] in MARKS else ""
                label = ", ".join(cell for cell in row[1:3] if not re.fullmatch(r"[-+.\d]+", cell))
                found.append((group(row[0]), label, float(ratio[1]), judged))
        return found


def group(cell: str) -> str:
    """The framework that a row begins with, if it does."""
    word = re.match(r"\w+", cell)
    named = word and word[0].lower() in ("numpy", "jax", "tensorflow", "torch")
    return word[0].lower() if word and named else "all"


def cells(line: str) -> list[str]:
    inner = re.split(r"(?<!\\)\|", line.strip().strip("|"))
    return [cell.strip().replace("\\|", "|") for cell in inner]


def read(name: str) -> Iterator[Measured]:
    """The tables of a result file, with the titles of their sections."""
    title, lines = "", []
    for line in [*(RESULTS / f"{name}.md").read_text("utf-8").splitlines(), ""]:
        if line.startswith("|"):
            lines.append(cells(line))
            continue
        if lines:
            head, _, *rows = lines
            sizes = ("size", "step ms") if {"size", "step ms"} <= set(head) else None
            yield Measured(name, title, Table(head, rows, sizes))
            lines = []
        if line.startswith("#"):
            title = line.lstrip("# ")


def everything() -> list[Measured]:
    return [measured for name in FILES for measured in read(name)]


def totals(found: list[Measured]) -> tuple[int, int]:
    """(rows that keep their budget, rows with a budget)"""
    judged = [cell for measured in found for cell in measured.judged]
    return judged.count("yes"), len(judged)


def strip(measured: Measured) -> str:
    """A picture with a mark for every ratio, one line a framework, over a logarithmic axis."""
    rows = measured.ratios
    names = list(dict.fromkeys(name for name, *_ in rows))
    height = len(names) * ROW + 62
    scale = (WIDTH - LEFT - RIGHT) / math.log(HIGH / LOW)
    across = lambda x: round(LEFT + math.log(min(max(x, LOW), HIGH) / LOW) * scale, 1)
    said = "; ".join(
        f"{name}: median {median(r for n, _, r, _ in rows if n == name):.2f} of "
        f"{sum(n == name for n, *_ in rows)}" for name in names
    )  # fmt: skip
    base = len(names) * ROW + 12
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'font-family="sans-serif" font-size="13">',
        f"<title>{escape(measured.title)}: isomorph over the other. {escape(said)}</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="6" fill="#fbfbfd"/>',
    ]
    for x in (0.25, 0.5, 1, 2, 4):
        ink = "#33333d" if x == 1 else "#d3d3dc"
        out.append(f'<path d="M{across(x)} 6V{base}" stroke="{ink}"/>')
        out.append(f'<text x="{across(x)}" y="{base + 16}" text-anchor="middle">{x:g}x</text>')
    for i, name in enumerate(names):
        y = i * ROW + ROW // 2 + 8
        out.append(f'<text x="{LEFT - 12}" y="{y + 5}" text-anchor="end">{escape(name)}</text>')
        for _, label, ratio, judged in (row for row in rows if row[0] == name):
            ink, x = MARKS[judged][0], across(ratio)
            shape = (
                f"M{x - 5} {y - 5}L{x + 5} {y + 5}M{x - 5} {y + 5}L{x + 5} {y - 5}"
                if judged == "NO"
                else f"M{x} {y - 6}V{y + 6}"
            )
            out.append(f'<path d="{shape}" stroke="{ink}" stroke-width="2">'
                       f"<title>{escape(label)}: {ratio:g}x</title></path>")  # fmt: skip
    kinds = [kind for kind in MARKS if any(row[3] == kind for row in rows)]
    for i, kind in enumerate(kinds):
        ink, words = MARKS[kind]
        sign = "×" if kind == "NO" else "|"
        out.append(f'<text x="{LEFT + i * 180}" y="{base + 40}" fill="{ink}">{sign} {words}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


TONES = ("#1b5fb4", "#b4481b", "#0d6b3c", "#7a3fb0")


def growth(measured: Measured) -> str:
    """Lines of milliseconds a step over the size, both logarithmic."""
    drawn = plot(measured.table)
    assert drawn is not None, measured.title
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {drawn["width"]} '
        f'{drawn["height"]}" role="img" font-family="sans-serif" font-size="13">',
        f"<title>{escape(measured.title)}: {escape(drawn['said'])}</title>",
        f'<rect width="{drawn["width"]}" height="{drawn["height"]}" rx="6" fill="#fbfbfd"/>',
        f'<text x="{drawn["left"]}" y="14">ms a step over the size</text>',
    ]
    for y in drawn["ys"]:
        out.append(f'<path d="M{drawn["left"]} {y["at"]}H{drawn["width"] - 190}" stroke="#d3d3dc"/>'
                   f'<text x="{drawn["left"] - 6}" y="{y["at"] + 4}" text-anchor="end">'
                   f'{y["text"]}</text>')  # fmt: skip
    for x in drawn["xs"]:
        out.append(f'<text x="{x["at"]}" y="{drawn["base"] + 18}" text-anchor="middle">'
                   f'{x["text"]}</text>')  # fmt: skip
    for i, line in enumerate(drawn["lines"]):
        dash = f' stroke-dasharray="{line["dash"]}"' if line["dash"] else ""
        ink = TONES[i // 2 % len(TONES)]
        out.append(f'<polyline points="{line["points"]}" fill="none" stroke="{ink}" '
                   f'stroke-width="2"{dash}/><text x="{line["end"]}" y="{line["y"] + 4}" '
                   f'fill="{ink}">{escape(line["label"])}</text>')  # fmt: skip
    return "\n".join([*out, "</svg>"]) + "\n"


def slug(measured: Measured, count: int) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", measured.title.lower()).strip("-")
    return f"benchmarks/{measured.file}-{words[:40].strip('-')}{f'-{count}' if count else ''}.svg"


HEAD = """# Benchmarks

A speed is the ratio of two times measured in the same run: ours and a peer's. Below 1x isomorph is faster, or takes less memory. A budget is
what we ask of a row before it is measured; rows that do not keep theirs are shown like the others. No test asserts a
time. To measure your own machine: `pip install -e '.[bench]'`, then `isomorph bench -o FOLDER` prints the tables and
writes them as `bench.json` and as one page with plots, `bench.html`. `isomorph bench training imports` runs only these
two; `--quick` uses toy sizes where a benchmark has them. `training` compares compiled training steps of an MLP, a
ResNet-18 and a transformer with optax, Flax NNX, Equinox, `torch.compile`, `tf.function`, Keras and HIPS autograd. All
start from the same weights, and their first losses are checked to agree.

This page is made from the files in `benchmarks/results` by `make docs`. Each of them says machine, versions and date. In
the plots every mark is a row; marks at the edge are beyond it.
"""


def summary(found: list[Measured]) -> str:
    """The totals as one sentence."""
    kept, judged = totals(found)
    return f"{kept} of {judged} rows with a budget keep it, {judged - kept} do not."


def headline() -> str:
    """The totals for the README."""
    found = everything()
    ratios = {m.title: median(r for _, _, r, _ in m.ratios) for m in found if m.ratios}
    steps, kernels = ratios["A step of training"], ratios["NVIDIA H200"]
    return (
        f"[Benchmarks](docs/benchmarks.md): {summary(found)}\nMedians of our time over the other's: "
        f"{steps:.2f} for training steps on a CPU, {kernels:.2f} for kernels on an NVIDIA H200."
    )


def pages() -> dict[str, str]:
    found = everything()
    out = [HEAD, f"**{summary(found)}**\n"]
    out += ["| measured | rows with a budget | keep it | median ratio |", "|---|---:|---:|---:|"]
    pictures, body, seen = {}, [], ""
    for measured in found:
        kept, judged = totals([measured])
        ratios = [ratio for _, _, ratio, _ in measured.ratios]
        if judged or ratios:
            middle = f"{median(ratios):.2f}x" if ratios else ""
            where = f"[{measured.title}](benchmarks/{measured.file}.md)"
            out.append(f"| {where} | {judged or ''} | {kept if judged else ''} | {middle} |")
        drawn = strip if len(ratios) > 2 else growth if measured.table.lines else None
        if drawn is None:
            continue
        if measured.file != seen:
            seen = measured.file
            body += [f"\n## {seen_title(seen)}\n"]
            body += [f"All tables: [{FILES[seen]}](benchmarks/{seen}.md).\n"]
        same = sum(path.startswith(slug(measured, 0)[:-4]) for path in pictures)
        path = slug(measured, same)
        pictures[path] = drawn(measured)
        if measured.title != seen_title(seen):
            body += [f"### {measured.title}{f' ({same + 1})' if same else ''}\n"]
        body += [f"![{measured.title}: {told(measured)}]({path})\n"]
    for name in FILES:
        pictures[f"benchmarks/{name}.md"] = f'--8<-- "benchmarks/results/{name}.md"\n'
    return {"benchmarks.md": "\n".join([*out, *body]), **pictures}


def told(measured: Measured) -> str:
    """What a picture shows, in words."""
    rows = measured.ratios
    if not rows:
        return "milliseconds a step over the size, for each backend"
    values = [ratio for _, _, ratio, _ in rows]
    return f"{len(rows)} ratios from {min(values):g} to {max(values):g}"


def seen_title(name: str) -> str:
    return (RESULTS / f"{name}.md").read_text("utf-8").splitlines()[0].lstrip("# ")
