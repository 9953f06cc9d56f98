"""Training steps: time compared with the peers, and growth with the size.

Run `python -m benchmarks training`. With `--quick` it uses networks of toy size, which show that
all peers compute the same, not how fast they are.
"""

from __future__ import annotations

from ..tables import Part, Table
from ..timing import each_backend, installed

BACKENDS = ("numpy", "jax", "tensorflow", "torch")
ONE = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}


def run(quick: bool = False) -> list[Part]:
    from . import growth, steps  # these are also run as programs

    size = ["quick"] if quick else []
    there = {name: installed(name) for name in BACKENDS}
    there["numpy"] = there["torch"]  # NumPy is measured against torch
    names = [name for name in BACKENDS if there[name]]
    grown = each_backend(growth.__name__, names, *size, env=ONE | growth.ENV)
    return [
        Table(steps.HEAD, each_backend(steps.__name__, names, *size, env=ONE)),
        part(growth.HEAD, grown, 4),
        part(growth.HEAD, grown, 2),
    ]


def part(head: list[str], grown: list[list[str]], at: int) -> Table:
    """One of the two times in the table of growth, with its ratio."""
    cut = lambda row: [*row[:2], *row[at : at + 2]]
    return Table(cut(head), [cut(row) for row in grown], lines=("size", head[at]))
