"""torch.distributed: gloo for the memory of the host, NCCL for CUDA."""

from __future__ import annotations

import atexit
from datetime import timedelta
from typing import Any

import torch
from torch import distributed

from ..launchers import Process
from ..world import World
from . import private

LATER = 60.0  # seconds: torch's own error names nobody, so the watchdog comes first


def join(process: Process | None, timeout: float, devices: Any) -> World:
    if distributed.is_available() and distributed.is_initialized():  # the user did it
        return TorchWorld(timeout)
    if process is None:
        return World("torch", timeout=timeout)
    has_cuda = torch.cuda.is_available()
    if process.local_rank < torch.cuda.device_count():
        torch.cuda.set_device(process.local_rank)
    # a launcher of torch may serve the address itself: only "env://" asks for that
    method = "env://" if process.launcher == "torchrun" else f"tcp://{process.address}"
    distributed.init_process_group(
        "cpu:gloo,cuda:nccl" if has_cuda else "gloo",
        init_method=method,
        rank=process.rank,
        world_size=process.size,
        timeout=timedelta(seconds=timeout + LATER),
    )
    atexit.register(_leave)
    return TorchWorld(timeout)


def _leave() -> None:
    if distributed.is_initialized():
        distributed.destroy_process_group()


class TorchWorld(World):
    """Each process computes with its rows; torch.distributed adds up."""

    def __init__(self, timeout: float):
        self.engine = f"torch.distributed {distributed.get_backend()}"
        super().__init__("torch", distributed.get_rank(), distributed.get_world_size(), timeout)

    def sum(self, flat: Any) -> Any:
        flat = flat.detach().contiguous()
        distributed.all_reduce(flat)
        return flat

    def count(self, yes: bool) -> int:
        device = "cuda" if distributed.get_backend() == "nccl" else "cpu"
        return int(self.sum(torch.tensor([int(yes)], device=device)))

    def gather(self, text: str) -> list[str]:
        found: list[Any] = [None] * self.size
        distributed.all_gather_object(found, text)
        return found

    def exchange(self) -> Any:
        found = private.store()
        return None if found is None else _Store(found, self.rank, self.size)


class _Store:
    """A connection of our own: torch's waits for the answer to its last question."""

    def __init__(self, store: Any, rank: int, size: int):
        self.store, self.rank, self.size = store.clone(), rank, size
        self.store.set_timeout(timedelta(seconds=5))
        self.tell(0)

    def tell(self, count: int) -> None:
        self.store.set(f"isomorph/{self.rank}", str(count))

    def read(self) -> list[int | None]:
        found: list[int | None] = []
        for rank in range(self.size):
            key = f"isomorph/{rank}"
            found.append(int(self.store.get(key)) if self.store.check([key]) else None)
        return found
