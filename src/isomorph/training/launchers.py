"""Which process of several this one is, as the program that started it says in the environment."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from typing import NamedTuple

# launcher -> the variables with the rank and the number of processes, then others that it sets too.
# Only a complete set counts: the shell of a SLURM job has some of them, and is one process.
VARIABLES = {
    "torchrun": ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"),
    "Open MPI": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    "MPICH": ("PMI_RANK", "PMI_SIZE"),
    "SLURM": ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
}


class Process(NamedTuple):
    """One of several processes."""

    rank: int
    size: int
    launcher: str


def started(environment: Mapping[str, str]) -> Process | None:
    """This process among those that a launcher started, or None if it was started alone.

    >>> started({"PMI_RANK": "1", "PMI_SIZE": "4"})
    Process(rank=1, size=4, launcher='MPICH')
    >>> started({"SLURM_PROCID": "0", "SLURM_NTASKS": "4"})
    """
    for launcher, names in VARIABLES.items():
        if all(name in environment for name in names):
            found = _process(environment[names[0]], environment[names[1]], launcher)
            if found is not None:
                return found
    return _of_cluster(environment.get("TF_CONFIG", ""))


def _process(rank: str, size: str, launcher: str) -> Process | None:
    try:
        found = Process(int(rank), int(size), launcher)
    except ValueError:
        return None
    return found if 0 <= found.rank < found.size and found.size > 1 else None


def _of_cluster(text: str) -> Process | None:
    """The process that TF_CONFIG describes: chiefs come before workers."""
    try:
        config = json.loads(text)
        cluster, task = config["cluster"], config["task"]
        counts = {kind: len(cluster.get(kind, [])) for kind in ("chief", "worker")}
        before = 0 if task["type"] == "chief" else counts["chief"]
        if task["type"] not in counts:  # an evaluator, a parameter server
            return None
        return _process(str(before + int(task["index"])), str(sum(counts.values())), "TF_CONFIG")
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def warn_if_apart(saves: bool) -> None:
    """Warn the caller of `fit` in each process but the first that a launcher started."""
    process = started(os.environ)
    if process is None or not process.rank or os.environ.get("ISOMORPH_DISTRIBUTE") == "off":
        return
    rank, size, launcher = process
    files = ", and all may write the same file" if saves else ""
    warnings.warn(
        f"fit: this process is rank {rank} of {size}, as {launcher} says, but fit trains alone: "
        f"every process trains a model of its own{files}; set ISOMORPH_DISTRIBUTE=off if that is "
        "meant",
        stacklevel=3,
    )
