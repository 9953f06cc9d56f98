"""An error of torch's compiler, repaired while a program is compiled here.

Inductor's C++ programs (seen in torch 2.13, gone in 2.15) may read an array before it is written:
where the loops of two operations are made alike to be fused, the one that reads forgets that what
it reads was changed by a third (`index_put`, `scatter_add`, `diagonal_scatter`, the gradient of a
gather; a write in place). The values are wrong without a word, in `torch.compile` too. A canary
tells when a version of torch has no such error any more (`tests/core/test_compiled_writes.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._inductor import scheduler

NODE: Any = scheduler.SchedulerNode
# Programs that torch keeps on disk are told apart from those it compiled without the repair.
TAG = "isomorph: what reads waits for what writes"


@contextmanager
def repaired() -> Iterator[None]:
    """While this lasts, an operation whose loops are changed still waits for the writes that it
    waited for before.
    """
    original = NODE.recompute_size_and_body

    def recompute(self: Any, *args: Any, **kw: Any) -> None:
        original(self, *args, **kw)
        self.set_read_writes(self.read_writes.rename(self.mutation_renames))

    NODE.recompute_size_and_body = recompute
    config: Any = torch.compiler.config
    try:
        with config.patch(cache_key_tag=f"{config.cache_key_tag} {TAG}"):
            yield
    finally:
        NODE.recompute_size_and_body = original
