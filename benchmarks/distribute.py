"""The reduction of a data parallel step over the engine's own all-reduce of one prepared buffer:
two processes on this machine. Medians of interleaved turns, with their quartiles.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from .tables import Table

WORKER = Path(__file__).parent / "distribute_worker.py"
NEEDS = {"numpy": "mpi4py", "torch": "torch", "tensorflow": "tensorflow"}
BUDGET, LIMIT = 1.1, 300


def run(turns: int = 25) -> Table:
    rows = []
    for backend in (name for name, package in NEEDS.items() if find_spec(package)):
        for megabytes in (4, 64):
            found = _measured(backend, megabytes, turns)
            reduction = found["step"][0] - found["without"][0]
            ratio = reduction / found["all-reduce"][0]
            shown = [f"{x[0]:.2f} ({x[1]:.2f} to {x[2]:.2f})" for x in found.values()]
            met = "yes" if ratio <= BUDGET else "NO"
            rows.append([backend, f"{megabytes} MB", *shown, f"{ratio:.2f}x", f"{BUDGET}x", met])
    head = ["backend", "gradients", "step ms", "without reduction ms", "all-reduce ms", "ratio"]
    return Table([*head, "budget", "met"], rows)


def _measured(backend: str, megabytes: int, turns: int) -> dict[str, list[float]]:
    launch = [sys.executable, "-m", "isomorph", "launch", "--workers", "2", "--backend", backend]
    done = subprocess.run(
        [*launch, str(WORKER), backend, str(megabytes), str(turns)],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False,
        timeout=LIMIT,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if "RESULT " in line]
    if not lines:
        raise RuntimeError(f"distribute: no result of {backend}: {done.stderr[-2000:]}")
    return json.loads(lines[0].partition("RESULT ")[2])
