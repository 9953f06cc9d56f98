"""The support page: versions, rows of the board, ways of their own of the backends, the array API
suite, and GPUs, from the data of the repository.
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

from .api import public
from .measured import cells, read

ROOT = Path(__file__).parents[1]
WORDS = {"success": "passed"}  # what the badges say, and what we say
BACKENDS = ("numpy", "jax", "tensorflow", "torch")


def table(head: list[str], rows: list[list[str]]) -> str:
    line = lambda row: "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
    return "\n".join([line(head), "|" + "---|" * len(head), *map(line, rows)])


def versions() -> str:
    """The newest run of each framework and age in docs/versions.md."""
    text = (ROOT / "docs" / "versions.md").read_text("utf-8")
    found = {}
    for line in text.splitlines():
        row = cells(line) if line.startswith("| ") else []
        if row and row[0] in BACKENDS:
            name, age, version, python, _, said, *_ = row
            passed = re.match(r"[\d,]+ passed, \w+ failed", said)
            cell = f"{version}, Python {python}: {passed[0]}" if passed else ""
            found[name, age] = found.get((name, age)) or cell or "not run"
    ages = ("oldest", "pinned", "newest")
    return table(["", *ages], [[name, *(found[name, age] for age in ages)] for name in BACKENDS])


def board() -> str:
    """Every row of the tables in docs/scoreboard, with a column for each backend and device."""
    head, rows = [], []
    for path in sorted((ROOT / "docs" / "scoreboard").glob("*-*.md")):
        first = path.read_text("utf-8").partition("\n\n")[0].splitlines()
        head = cells(first[0])
        for line in first[2:]:
            name, *states = cells(line)
            words = [re.search(r"badge/-(\w+)-", state) for state in states]
            states = [WORDS.get(word[1], word[1]) if word else "" for word in words]
            rows.append([f"`{name}`", *states])
    return table(["row", *head[1:]], rows)


def methods(*files: Path) -> set[str]:
    """The names of all methods of classes in these files, and of what is assigned there."""
    found = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            for part in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(part, ast.FunctionDef):
                    found.add(part.name)
                elif isinstance(part, ast.Assign):
                    found |= {t.id for t in part.targets if isinstance(t, ast.Name)}
    return found


def own_ways() -> str:
    """Public functions that some backend overrides, and which."""
    folder = ROOT / "src" / "isomorph" / "backends"
    own = {name: methods(*(folder / name).rglob("*.py")) for name in BACKENDS}
    rows = []
    for name in public():
        word = name.said.removeprefix("iso.")
        if name.home.startswith("layers.") and any(word in found for found in own.values()):
            ways = ["own" if word in own[backend] else "shared" for backend in BACKENDS]
            rows.append([f"`{name.said}`", *ways])
    return table(["function", *BACKENDS], rows)


def conformance() -> str:
    """How many tests of the array API suite fail, always or for some examples, and why."""
    ledger = tomllib.loads((ROOT / "conformance" / "ledger.toml").read_text("utf-8"))
    rows = []
    for backend in BACKENDS:
        for group in ledger[backend]:
            always, some = group.get("tests", []), group.get("may_fail", {})
            counts = f"{len(always)}" if always else f"{len(some)} for some examples"
            rows.append([backend, counts, group["reason"]])
    return table(["namespace", "tests", "why"], rows)


def gpu() -> str:
    suite = next(iter(read("gpu-suite"))).table
    return table(suite.head, suite.rows)


def pages() -> dict[str, str]:
    text = f"""# What is supported

This page is made from data of the repository by `make docs`: from the results of `make versions`, the scoreboard, the
ledger of the array API suite and the source.

## Versions

How many tests of the core suite passed with which version. [All runs](versions.md).

{versions()}

`torch.compile` around `iso.execute_with_gradients` and around exported modules needs torch 2.13; `iso.jit` does not.

## Rows of the board

Each row is a test that runs on every backend; [the board](scoreboard/index.html) has errors, modes and assertions. A
column with a device is a run on an NVIDIA H200; skipped are tests that only make sense on a CPU, each with its reason.

{board()}

## Layers with a way of their own

Every layer works on every backend. *Shared* means that the formula is written once and runs with the backend's
operations. *Own* means that this backend has a kernel or a derivative of its own for it, which tests compare with the
shared formula.

{own_ways()}

## The array API suite

`make conformance SUITE=path` runs the external suite array-api-tests over the four namespaces. These are its tests that do
not always pass, with the reason; all others pass. The list with every test is `conformance/ledger.toml`.

{conformance()}

## GPUs

The quick tests with their arrays on an NVIDIA H200, [details](benchmarks/gpu-suite.md).

{gpu()}
"""
    return {"support.md": text}
