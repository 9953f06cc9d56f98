"""Minima over interleaved repeats: the machine is noisy, and noise only ever adds."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping


def minima(
    calls: Mapping[str, Callable[[], object]], rounds: int = 150, slice_s: float = 2e-3
) -> dict[str, float]:
    """Seconds per call of each function: the best of `rounds` slices, taking turns."""
    counts = {name: _count(call, slice_s) for name, call in calls.items()}
    best = dict.fromkeys(calls, float("inf"))
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, call in calls.items():
                n = counts[name]
                start = time.perf_counter()
                for _ in range(n):
                    call()
                best[name] = min(best[name], (time.perf_counter() - start) / n)
    finally:
        gc.enable()
    return best


def _count(call: Callable[[], object], slice_s: float) -> int:
    for _ in range(3):
        call()
    start = time.perf_counter()
    call()
    return max(1, int(slice_s / max(time.perf_counter() - start, 1e-7)))


def table(head: list[str], rows: list[list[str]]) -> str:
    """Rows under a head, as Markdown with aligned columns."""
    widths = [max(len(r[i]) for r in [head, *rows]) for i in range(len(head))]
    line = lambda r: "| " + " | ".join(c.ljust(w) for c, w in zip(r, widths)) + " |"
    rule = "|" + "|".join("-" * (w + 2) for w in widths) + "|"
    return "\n".join([line(head), rule, *map(line, rows)])
