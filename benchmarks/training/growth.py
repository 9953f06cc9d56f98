"""How the time of a training step grows with the number of blocks and with the batch size:
`python -m benchmarks.training.growth backend [quick]` prints the rows of one backend.

A ratio is the time divided by twice the time at half the size: 1 is linear growth, and more than 1
is worse. The first call includes tracing and compiling. A small step is compiled before it, so that
it does not include loading the compiler.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from ..timing import within
from .cases import Case, gpt, mlp
from .steps import one_thread, ours

BLOCKS, BATCHES = (1, 2, 4, 8, 16, 32), (4, 8, 16, 32, 64)
SECONDS = 3.0
HEAD = ["backend", "size", "first call s", "over twice half", "step ms", "over twice half"]
# Otherwise Inductor would find programs of another run on disk.
ENV = {"TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}


def narrow(blocks: int = 2, batch: int = 4) -> Case:
    return gpt(vocabulary=256, tokens=32, width=64, heads=4, blocks=blocks, batch=batch)


def rows(
    backend: str, what: str, sizes: tuple[int, ...], make: Callable[[int], Case], seconds: float
) -> Iterator[list[str]]:
    before: tuple[float, float] | None = None
    for size in sizes:
        first, each = measured(make(size), backend, seconds)
        twice = ["-", "-"]
        if before is not None:
            twice = [f"{now / (2 * then):.2f}x" for now, then in zip((first, each), before)]
        yield [backend, f"{size} {what}", f"{first:.2f}", twice[0], f"{each * 1e3:.2f}", twice[1]]
        before = first, each


def measured(case: Case, backend: str, seconds: float) -> tuple[float, float]:
    """Seconds of the first call, and of a later one."""
    call: Any = ours(case, backend)
    start = time.perf_counter()
    float(call())
    first = time.perf_counter() - start
    return first, within({"step": call}, seconds)["step"]


if __name__ == "__main__":
    backend, quick = sys.argv[1], "quick" in sys.argv
    one_thread(backend)
    float(ours(mlp(quick=True), backend)())
    blocks, batches = (BLOCKS[:2], BATCHES[:2]) if quick else (BLOCKS, BATCHES)
    seconds = 0.2 if quick else SECONDS
    by_blocks = rows(backend, "blocks", blocks, lambda n: narrow(blocks=n), seconds)
    by_batch = rows(backend, "examples", batches, lambda n: narrow(batch=n), seconds)
    for row in chain(by_batch, by_blocks):
        print("\t".join(row), flush=True)
