"""Several processes or devices that train one model on their parts of each batch, by the engine of
each framework.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..core.default_backend import HOME
from ..core.dispatch import OWN, load
from .launchers import Process, is_off, started
from .world import World

if TYPE_CHECKING:
    from ..typing import BackendName

__all__ = ["World", "init"]


def __dir__() -> list[str]:
    """The public names."""
    return [*__all__, *(name for name in globals() if name.startswith("__"))]


def init(
    backend: BackendName | None = None,
    *,
    rank: int | None = None,
    size: int | None = None,
    address: str | None = None,
    devices: Sequence[Any] | None = None,
    timeout: float = 300.0,
) -> World:
    """Join the other processes of this job and return the `World` they form. Call it before
    anything is computed, once in each process.

    Explicit `rank`, `size` and `address` ("host:port" of rank 0) are used if given. Otherwise the
    launcher decides: torchrun, Kubernetes, Open MPI, MPICH, SLURM, TF_CONFIG, `isomorph launch`. A
    process that no launcher started is alone: `size` is 1, and the same script works. Rank 0 prints
    what it found. `ISOMORPH_DISTRIBUTE=off` in the environment makes every process work alone.

    `backend` is that of the arrays; by default the one of `use_backend`, else the framework that is
    imported. JAX uses all devices, TensorFlow all GPUs (or logical CPUs) of a single process;
    `devices` chooses. A process that waits for others longer than `timeout` seconds, compilation
    excepted, ends and says which ranks did not come.

    >>> world = iso.distribute.init(backend="numpy")
    >>> world
    World(rank 0 of 1, numpy, one process)
    """
    process = _process(rank, size, address)
    name = _chosen(backend)
    if is_off():
        return World(name, timeout=timeout)
    if process is not None and not process.address and name != OWN[0]:
        raise ValueError(
            f"distribute: needed the address where {process.size} processes meet, got none from "
            f'{process.launcher}; set MASTER_ADDR and MASTER_PORT, or give address="host:port"'
        )
    load(name)
    engine: Any = importlib.import_module(f".engines.{name}", __name__)
    world: World = engine.join(process, timeout, devices)
    if not world.rank and (world.size > 1 or world.shares > 1):
        by = process.launcher if process is not None else "no launcher"
        print(f"isomorph: started by {by}: {world}", file=sys.stderr, flush=True)
    return world


def _process(rank: int | None, size: int | None, address: str | None) -> Process | None:
    given = {"rank": rank, "size": size, "address": address}
    missing = [name for name, value in given.items() if value is None]
    if len(missing) == len(given):
        return started(os.environ)
    if missing and not (missing == ["address"] and size == 1):
        raise ValueError(
            f"distribute: needed rank, size and address together, got no {' and no '.join(missing)}"
        )
    for name, value, least in (("rank", rank, 0), ("size", size, 1)):
        if type(value) is not int or value < least:
            raise ValueError(f"distribute: needed {name} as an int >= {least}, got {value!r}")
    number, count, place = int(rank or 0), int(size or 1), address or ""
    if number >= count:
        raise ValueError(f"distribute: needed rank < size, got rank {number} of {count}")
    if count == 1:
        return None
    workers = tuple(place.split(","))
    if any(not word.rpartition(":")[2].isdigit() for word in workers):
        raise ValueError(f'distribute: needed address as "host:port", got {place!r}')
    return Process(
        number, count, "arguments", int(os.environ.get("LOCAL_RANK", "0")), workers[0],
        workers if len(workers) == count else (),
    )  # fmt: skip


def _chosen(backend: str | None) -> str:
    if backend is not None:
        if backend not in OWN:
            known = ", ".join(OWN)
            raise ValueError(f"distribute: needed a backend of {known}, got {backend!r}")
        return backend
    here = HOME.get()
    if here is not None:
        return here.backend.name
    said = os.environ.get("ISOMORPH_BACKEND")
    if said in OWN:
        return str(said)
    found = [name for name in OWN[1:] if name in sys.modules]
    if len(found) > 1:
        raise ValueError(
            f"distribute: needed backend= to choose among {', '.join(found)}, which are all "
            "imported, got none"
        )
    return found[0] if found else OWN[0]
