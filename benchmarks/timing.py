"""Minima over interleaved repeats: the machine is noisy, and noise only ever adds time."""

from __future__ import annotations

import gc
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from tempfile import TemporaryFile
from threading import Event, Thread


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


def within(calls: Mapping[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """`minima` in about `seconds`, with at least one call per slice."""
    for call in calls.values():
        call()
    start = time.perf_counter()
    for call in calls.values():
        call()
    once = max(time.perf_counter() - start, len(calls) * 2e-3)
    return minima(calls, rounds=min(60, max(4, int(seconds / once))), slice_s=2e-3)


def peak(call: Callable[[], object]) -> float | None:
    """Megabytes by which a call raises the memory of the process, sampled every half millisecond;
    on Linux only.
    """
    gc.collect()
    if not os.path.exists("/proc/self/statm"):
        return None
    seen, over = [_pages()], Event()

    def watch() -> None:
        while not over.is_set():
            seen.append(_pages())
            time.sleep(5e-4)

    watcher = Thread(target=watch)
    watcher.start()
    call()
    over.set()
    watcher.join()
    return (max(seen) - seen[0]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def _pages() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])


def installed(name: str) -> bool:
    """Whether a package is installed, without importing it."""
    return importlib.util.find_spec(name) is not None


def each_backend(
    module: str, names: Sequence[str], *args: str, env: Mapping[str, str] | None = None
) -> list[list[str]]:
    """The rows that `python -m module name *args` prints for each installed backend. Each has its
    own process: Keras allows one backend per process, and frameworks slow each other down.
    """
    rows = []
    for name in filter(installed, names):
        own = {"KERAS_BACKEND": name, "TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"}
        with (
            TemporaryFile("w+") as errors,
            subprocess.Popen(
                [sys.executable, "-m", module, name, *args],
                env=os.environ | own | dict(env or {}),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            ) as run,
        ):
            for line in run.stdout or ():
                if line.startswith(f"{name}\t"):
                    rows.append(line.rstrip("\n").split("\t"))
                    print("  ".join(rows[-1]), file=sys.stderr, flush=True)
            if run.wait():
                errors.seek(0)
                raise RuntimeError(errors.read())
    return rows
