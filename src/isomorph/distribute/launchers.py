"""Which process of several this one is, as the program that started it says in the environment."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from typing import NamedTuple
from zlib import crc32

# launcher -> the variables with the rank and the number of processes, then others that it sets too.
# Only a complete set counts: the shell of a SLURM job has some of them, and is one process.
VARIABLES = {
    "torchrun": ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"),
    "Kubernetes": ("JOB_COMPLETION_INDEX", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
    "Open MPI": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    "MPICH": ("PMI_RANK", "PMI_SIZE"),
    "SLURM": ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
}
# the rank among the processes of one machine, and how many there are
LOCAL = {
    "torchrun": ("LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    "Open MPI": ("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    "MPICH": ("MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    "SLURM": ("SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"),
}
LOOPBACK = "127.0.0.1"
PORTS = range(41_000, 49_000)  # for jobs whose launcher names none


class Process(NamedTuple):
    """One of several processes."""

    rank: int
    size: int
    launcher: str
    local_rank: int = 0
    address: str = ""  # of the first process, "host:port"; empty if the launcher does not say it
    workers: tuple[str, ...] = ()  # the addresses of all, where the launcher says them


def started(environment: Mapping[str, str]) -> Process | None:
    """This process among those that a launcher started, or None if it was started alone.

    >>> started({"PMI_RANK": "1", "PMI_SIZE": "4"})[:3]
    (1, 4, 'MPICH')
    >>> started({"SLURM_PROCID": "0", "SLURM_NTASKS": "4"})
    """
    for launcher, names in VARIABLES.items():
        if all(name in environment for name in names):
            found = _process(environment[names[0]], environment[names[1]], launcher)
            if found is not None:
                return _placed(found, environment)
    return _of_cluster(environment.get("TF_CONFIG", ""))


def _process(rank: str, size: str, launcher: str) -> Process | None:
    try:
        found = Process(int(rank), int(size), launcher)
    except ValueError:
        return None
    return found if 0 <= found.rank < found.size and found.size > 1 else None


def _placed(process: Process, environment: Mapping[str, str]) -> Process:
    """The process with its rank on its machine and the address where all of them meet."""
    local, beside = LOCAL.get(process.launcher, ("", ""))
    try:
        rank = int(environment.get(local, "0"))
    except ValueError:
        rank = 0
    is_one_machine = environment.get(beside, "") == str(process.size)
    address = ""
    if "MASTER_ADDR" in environment and "MASTER_PORT" in environment:
        address = f"{environment['MASTER_ADDR']}:{environment['MASTER_PORT']}"
    elif process.launcher == "SLURM" and (nodes := environment.get("SLURM_STEP_NODELIST")):
        address = f"{first_node(nodes)}:{_port(environment.get('SLURM_JOB_ID', ''))}"
    elif is_one_machine:
        job = next((environment[k] for k in ("PMIX_NAMESPACE", "PMI_PORT") if k in environment), "")
        address = f"{LOOPBACK}:{_port(job)}"
    return process._replace(local_rank=rank, address=address)


def first_node(nodes: str) -> str:
    """The first machine of a list as SLURM writes it.

    >>> first_node("gpu[003-005,9],login1"), first_node("a,b")
    ('gpu003', 'a')
    """
    name, bracket, rest = nodes.partition("[")
    if not bracket or "," in name:
        return nodes.split(",")[0]
    numbers, _, after = rest.partition("]")
    first = numbers.split(",")[0].split("-")[0]
    return name + first + after.split(",")[0]


def _port(job: str) -> int:
    """A port that all processes of a job agree on."""
    return PORTS[crc32(job.encode()) % len(PORTS)]


def _of_cluster(text: str) -> Process | None:
    """The process that TF_CONFIG describes: chiefs come before workers."""
    try:
        config = json.loads(text)
        cluster, task = config["cluster"], config["task"]
        kinds = {kind: list(cluster.get(kind, [])) for kind in ("chief", "worker")}
        before = 0 if task["type"] == "chief" else len(kinds["chief"])
        if task["type"] not in kinds:  # an evaluator, a parameter server
            return None
        workers = tuple(map(str, (*kinds["chief"], *kinds["worker"])))
        found = _process(str(before + int(task["index"])), str(len(workers)), "TF_CONFIG")
        return found and found._replace(address=workers[0], workers=workers)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def is_off() -> bool:
    """Whether the environment says that processes work apart."""
    return os.environ.get("ISOMORPH_DISTRIBUTE") == "off"


def warn_if_apart(saves: bool) -> None:
    """Warn the caller of `fit` in each process but the first that a launcher started."""
    process = started(os.environ)
    if process is None or not process.rank or is_off():
        return
    rank, size, launcher = process[:3]
    files = ", and all may write the same file" if saves else ""
    warnings.warn(
        f"fit: this process is rank {rank} of {size}, as {launcher} says, but fit trains alone: "
        f"every process trains a model of its own{files}; give "
        "distribute=iso.distribute.init(), or set ISOMORPH_DISTRIBUTE=off if that is meant",
        stacklevel=3,
    )
