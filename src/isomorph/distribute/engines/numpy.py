"""NumPy over MPI, by mpi4py."""

from __future__ import annotations

import math
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..buckets import Plan
from ..launchers import Process
from ..world import World


def join(process: Process | None, timeout: float, devices: Any) -> World:
    if process is None:
        return World("numpy", timeout=timeout)
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise ImportError(
            "distribute: needed mpi4py for several processes with NumPy, got none; "
            "pip install mpi4py mpich, then isomorph launch --backend numpy script.py"
        ) from error
    if "ISOMORPH_LAUNCH" in os.environ and signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell turned Ctrl-C off
    comm = MPI.COMM_WORLD
    if (comm.rank, comm.size) != process[:2]:
        raise RuntimeError(
            f"distribute: needed rank {process.rank} of {process.size}, as {process.launcher} "
            f"says, got rank {comm.rank} of {comm.size} from MPI; start the script with mpiexec, "
            "or isomorph launch --backend numpy, and the MPI that mpi4py was built for"
        )
    return MpiWorld(MPI, timeout)


class MpiWorld(World):
    """Each process computes with its rows; MPI adds up."""

    engine = "MPI"
    full = 1 << 22  # the C library gives larger memory back, and asks for it again at a price

    def __init__(self, mpi: Any, timeout: float):
        self.mpi = mpi
        # a communicator of our own: messages of the user's program cannot be mistaken for ours
        self.comm = mpi.COMM_WORLD.Dup()
        super().__init__("numpy", self.comm.rank, self.comm.size, timeout)

    def sum(self, flat: Any) -> Any:
        flat = np.ascontiguousarray(flat)
        self.comm.Allreduce(self.mpi.IN_PLACE, flat)
        return flat

    def packed(
        self, plan: Plan, leaves: Sequence[Any], weight: Any, flags: Sequence[Any] = ()
    ) -> list[Any]:
        """As `plan.packed`, in one pass over the memory."""
        out = []
        for place, (kind, numbers) in enumerate(plan.buckets):
            dtype = np.dtype(kind)
            head = [] if place else [weight, *flags]
            flat = np.empty(len(head) + sum(math.prod(plan.shapes[i]) for i in numbers), dtype)
            flat[: len(head)] = head
            at = len(head)
            w = dtype.type(weight)
            for i in numbers:
                part = flat[at : at + math.prod(plan.shapes[i])].reshape(plan.shapes[i])
                if weight:
                    np.multiply(leaves[i], w, out=part, casting="same_kind")
                else:
                    part[...] = 0
                at += part.size
            out.append(flat)
        return out

    def means(self, plan: Plan, sums: Sequence[Any]) -> tuple[list[Any], Any, list[Any]]:
        total, flags = sums[0][0].copy(), list(sums[0][1 : plan.head].copy())
        found: list[Any] = [None] * len(plan.shapes)
        for place, ((kind, numbers), flat) in enumerate(zip(plan.buckets, sums)):
            with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0, if no worker had rows
                np.divide(flat, np.dtype(kind).type(total), out=flat)
            at = 0 if place else plan.head
            for i in numbers:
                part = flat[at : at + math.prod(plan.shapes[i])].reshape(plan.shapes[i])
                found[i] = part.astype(plan.dtypes[i], copy=False)
                at += part.size
        return found, total, flags

    def count(self, yes: bool) -> int:
        return int(self.comm.allreduce(int(yes)))

    def gather(self, text: str) -> list[str]:
        return self.comm.allgather(text)

    def abandon(self) -> None:
        self.mpi.COMM_WORLD.Abort(1)

    def exchange(self) -> Any:
        near = self.comm.Split_type(self.mpi.COMM_TYPE_SHARED)
        return _Shared(self.mpi, near) if near.size == self.comm.size else _Silent(self.comm.size)


class _Shared:
    """A number of each process, in memory that all of them can read."""

    def __init__(self, mpi: Any, near: Any):
        self.rank, size = near.rank, near.size
        self.window = mpi.Win.Allocate_shared(8, 8, comm=near)
        self.counts = []
        for rank in range(size):
            memory, _ = self.window.Shared_query(rank)
            self.counts.append(np.ndarray((1,), np.int64, memory))
        self.counts[self.rank][0] = 0
        near.Barrier()

    def tell(self, count: int) -> None:
        self.counts[self.rank][0] = count

    def read(self) -> list[int | None]:
        return [int(x[0]) for x in self.counts]


class _Silent:
    """Processes on several machines: one that hangs does not answer, so nobody can be named, but
    waiting for it ends.
    """

    def __init__(self, size: int):
        self.size = size

    def tell(self, count: int) -> None:
        """Nobody could read it."""

    def read(self) -> list[int | None]:
        return [sys.maxsize] * self.size
