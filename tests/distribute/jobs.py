"""Start the jobs of `worker.py`: real processes on this machine, bounded in time."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

WORKER = Path(__file__).parent / "worker.py"
SOURCE = Path(__file__).parents[2] / "src"
# engine -> backend, whether its workers are devices of one process, options of the worker.
# Compiling for torch and TensorFlow takes long: one job each does it.
ENGINES = {
    "MPI": ("numpy", False, ()),
    "JAX devices": ("jax", True, ()),
    "JAX processes": ("jax", False, ()),
    "gloo": ("torch", False, ("compiled=no",)),
    "mirrored": ("tensorflow", True, ()),
    "multi-worker": ("tensorflow", False, ("compiled=no",)),
}
PROCESSES = [name for name, (_, devices, _) in ENGINES.items() if not devices]


def environment():
    """Without the variables of a launcher that may have started the tests."""
    ours = ("RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "PMI", "MPI_", "OMPI", "SLURM", "TF_CONFIG")
    kept = {k: v for k, v in os.environ.items() if not k.startswith((*ours, "ISOMORPH", "XLA_"))}
    path = os.pathsep.join([str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**kept, "PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"}


def need_mpi(backend):
    if backend == "numpy":
        pytest.importorskip("mpi4py")


def launched(backend, workers, *words, limit=150):
    """A finished `isomorph launch`, and how long it took."""
    need_mpi(backend)
    command = [sys.executable, "-m", "isomorph", "launch", "--workers", str(workers)]
    began = time.monotonic()
    done = subprocess.run(
        [*command, "--backend", backend, str(WORKER), *map(str, words)],
        env=environment(), capture_output=True, text=True, timeout=limit, check=False,
    )  # fmt: skip
    return done, time.monotonic() - began


def results(engine, workers, jobs, folder, *more):
    """What each rank found, by job."""
    backend, devices, options = ENGINES[engine]
    words = ["+".join(jobs), backend, folder, *options, *more]
    if devices:
        several = {"XLA_FLAGS": f"--xla_force_host_platform_device_count={workers}"}
        done = subprocess.run(
            [sys.executable, str(WORKER), *map(str, words), f"devices={workers}"],
            env={**environment(), **several}, capture_output=True, text=True, timeout=150,
            check=False,
        )  # fmt: skip
    else:
        done, _ = launched(backend, workers, *words)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    ranks = range(1 if devices else workers)
    read = lambda job, rank: json.loads((Path(folder) / f"{job}.{rank}.json").read_text())
    found = {job: [read(job, rank) for rank in ranks] for job in jobs}
    for every in found.values():
        assert [x["world"] for x in every] == [[rank, len(ranks), workers] for rank in ranks]
    return found
