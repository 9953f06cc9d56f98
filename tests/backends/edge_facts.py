"""Write docs/edges.md: what this machine gives at edges where nothing is promised. `make test-all`
runs it. The tables of other kinds of processors stay.

`python tests/backends/edge_facts.py [NOTE]`; the note is written beside the versions.
"""

import platform
import re
import sys
from datetime import date
from fnmatch import fnmatch
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from edge_ledger import LEDGER
from edge_running import CASES, difference, made, outcome, reference, without
from frameworks import BACKENDS, NOT_INSTALLED, enable_x64

PAGE = Path(__file__).parents[2] / "docs" / "edges.md"
HEAD = """# Edges

Where a function has no finite answer, kernels differ, and with them processors.
[Numerics](numerics.md#edges) says what is the same everywhere. This page says what was seen beyond
that: nothing on it is promised. `make test-all` writes the table of its processor again.

The cells have the functions whose values, or derivatives, were not NumPy's for the reason on the
left. In the last row they raised an error for a matrix that is not finite; elsewhere it gave NaN.
"""
LOST = ("an error for a matrix that is not finite", "value")
WHATS = {"value": "value", "grad": "derivative"}


def facts():
    """For each reason and what differs, value or derivative: the functions of each backend."""
    found = {}
    for entry in LEDGER:
        if entry.free:
            row = found.setdefault((entry.reason, WHATS[entry.what]), {})
            for backend in installed(entry.backends.split()):
                row.setdefault(backend, {}).update(dict.fromkeys(differing(entry, backend)))
    lost = [number for number, case in enumerate(CASES) if case.lost]
    found[LOST] = {
        backend: {
            CASES[number].name: None
            for number in lost
            if isinstance(on(backend, number, "float64").value, Exception)
        }
        for backend in installed(BACKENDS)
    }
    return found


def installed(names):
    return [name for name in names if name not in NOT_INSTALLED]


def differing(entry, backend):
    """The functions of an entry that differ from NumPy at a place that it explains."""
    for name in entry.names.split():
        cases = [
            number
            for number, case in enumerate(CASES)
            if case.name == name and fnmatch(case.edge, entry.edge)
        ]
        kinds = entry.dtypes.split()
        apart = [d for d in kinds if any(is_apart(entry, backend, n, d) for n in cases)]
        if apart:
            yield name if apart == kinds else f"{name} ({', '.join(apart)})"


def on(backend, number, dtype):
    with enable_x64(True):
        return outcome(backend, number, dtype)


def is_apart(entry, backend, number, dtype):
    """Whether a backend differs from NumPy at a place that the entry explains."""
    expected, got = reference(number, dtype), on(backend, number, dtype)
    apart = difference(CASES[number], entry.what, expected, got, dtype)
    found = getattr(got, entry.what)
    return without(apart, entry, made(number, dtype), expected.value, found)[1]


def section(note):
    packages = [f"{name} {version(name)}" for name in installed(BACKENDS)]
    said = ", ".join([f"{platform.system()}, {', '.join(packages)}, {date.today()}", *note])
    table = [["reason", "of", *BACKENDS]]
    for (reason, what), cells in facts().items():
        words = [", ".join(f"`{name}`" for name in cells.get(backend, ())) for backend in BACKENDS]
        table.append([reason, what, *words])
    lines = ["| " + " | ".join(row) + " |" for row in table]
    lines.insert(1, "|" + "---|" * len(table[0]))
    return f"## {platform.machine()}\n\n{said}.\n\n" + "\n".join(lines) + "\n"


def main(note):
    text = PAGE.read_text("utf-8") if PAGE.exists() else ""
    kept = {part.split()[0]: f"## {part}" for part in re.split(r"^## ", text, flags=re.M)[1:]}
    kept[platform.machine()] = section(note)
    parts = [part.rstrip("\n") + "\n" for _, part in sorted(kept.items())]
    PAGE.write_text("\n".join([HEAD, *parts]), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
