"""Every engine with real workers on this machine, against one process: the same numbers, the same
bits in all processes; and controls, which must not give them.
"""

import json
import socket
import subprocess
import sys

import pytest

from .jobs import ENGINES, PROCESSES, WORKER, environment, results

ALL = ("equal", "state", "details", "together")
# programs compile slowly: these with four workers only
LATER = {
    "JAX devices": ["details", "together"],
    "JAX processes": ["state", "details", "together"],
    "mirrored": ["details", "together"],
}
TWO = [pytest.param(name, 2, id=f"{name}-2") for name in ENGINES]
FOUR = [pytest.param(name, 4, id=f"{name}-4", marks=pytest.mark.slow) for name in ENGINES]
BOTH = pytest.mark.parametrize(("engine", "workers"), [*TWO, *FOUR])
CLOSE = 1e-6  # in float32


@BOTH
@pytest.mark.takes("it starts processes")
def test_workers_compute_what_one_process_does(engine, workers, tmp_path):
    """One start for all of it: frameworks take seconds to start."""
    later = LATER.get(engine, []) if workers == 2 else []
    found = results(engine, workers, [job for job in ALL if job not in later], tmp_path)
    check_steps(found["equal"])
    if "state" in found:
        check_state(found["state"], engine, workers)
    if "details" in found:
        check_details(found["details"], engine)
    if "together" in found:
        check_training(found["together"])
        files = {p.name for p in tmp_path.iterdir() if not p.name.endswith(".json")}
        assert files == {"all.npy", "checkpoint", "log"}  # of rank 0, and nothing unfinished


def check_steps(ranks):
    for case, one in ranks[0].items():
        if case.startswith(("plain", "counted")):
            losses, leaves, with_gradient = one
            assert losses <= CLOSE, case
            assert (leaves if "sgd" in case else with_gradient) <= CLOSE, case
    assert len({x["bits plain"] for x in ranks}) == len({x["bits counted"] for x in ranks}) == 1


def check_training(ranks):
    for rank, one in enumerate(ranks):
        losses, _, with_gradient = one["fit"]
        assert max(losses, with_gradient, one["history"]) <= CLOSE
        assert one["steps"] == [6, "done", 2]
        assert max(one["evaluate"], one["predict"], one["file"]) <= CLOSE
        # the mean of (rank + 1) * [1, 2] with the rank as weight
        total = sum(range(len(ranks)))
        mean = sum(r * (r + 1) for r in range(len(ranks))) / total if total else 1.0
        assert one["mean"] == pytest.approx([mean, 2 * mean], rel=1e-6)
        assert one["fetch"] == [rank + 1.0, 2.0 * (rank + 1)]


def check_state(ranks, engine, workers):
    """JAX computes as one process does; elsewhere each worker has its own rows and masks."""
    assert len({x["bits"] for x in ranks}) == 1
    for one in ranks:
        assert one["finite"]
        if engine.startswith("JAX"):
            assert one["warned"] == []
            assert one["apart"] <= CLOSE
        else:
            assert len(one["warned"]) == 1
            assert f"averaged over {workers} workers" in one["warned"][0]
            assert one["by parts"] <= CLOSE
            assert one["apart"] > 1e-4  # each worker has its own rows and masks


def check_details(ranks, engine):
    """Options of a step: each against one process."""
    for one in ranks:
        assert one["frozen moved"] == 0
        assert one["warned"] == []  # nothing of a frozen model in eval() is averaged
        for name in ("accumulate", "few rows", "aux", "guard"):
            assert one[name] <= CLOSE, name
        assert one["float16"] <= 1e-3
        if engine != "MPI":
            assert one["bfloat16"] <= 2**-8  # its own rounding


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["gloo", "multi-worker"])
def test_compiled_steps_equal_those_of_one_process(engine, tmp_path):
    check_steps(results(engine, 2, ["equal"], tmp_path, "compiled=yes")["equal"])


@pytest.fixture(scope="module")
def two_of_torch(tmp_path_factory):
    """One start for two tests."""
    folder = tmp_path_factory.mktemp("two")
    return results("gloo", 2, ["equal", "peer"], folder, "explicit=yes")


def test_processes_that_say_who_they_are(two_of_torch):
    """`init(rank=, size=, address=)`, where no launcher has set anything."""
    check_steps(two_of_torch["equal"])


def test_steps_equal_those_of_the_parallel_module_of_torch(two_of_torch):
    """DistributedDataParallel reduces by itself: nothing of ours is in its gradients' way."""
    for one in two_of_torch["peer"]:
        assert one["leaves"] == one["theirs"] > 5
        assert one["apart"] <= CLOSE


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"])
def test_under_the_launcher_of_torch(backend, tmp_path):
    """torchrun listens at its port itself."""
    words = ["equal", backend, tmp_path, f"compiled={'yes' if backend == 'jax' else 'no'}"]
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*command, "--master-port", str(free_port()), str(WORKER), *map(str, words)],
        env=environment(), capture_output=True, text=True, timeout=150, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    check_steps([json.loads((tmp_path / f"equal.{r}.json").read_text()) for r in range(2)])


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.mark.takes("it starts another process")
@pytest.mark.parametrize("engine", PROCESSES)
def test_what_is_decided_together(engine, tmp_path):
    """And what a wrong reduction would give. JAX has none that could be forgotten: its programs see
    whole batches.
    """
    has_reduction = engine != "JAX processes"
    found = results(engine, 2, ["stops", *["controls"] * has_reduction], tmp_path)
    for one in found["controls"] if has_reduction else []:
        assert one["no reduction"] >= 1e-2
        assert one["unweighted"] >= 1e-3
        assert one["by rows"] >= 1e-2
    words = "the data of 1 of 2 processes ended before those of rank 0; they end for all"
    for rank, one in enumerate(found["stops"]):
        assert one["interrupted"] == ["interrupted", 4]
        *how, warned = one["early"]
        assert how == ["done", 3]
        assert [words in text for text in warned if "end for all" in text] == [True] * (rank == 0)
        for name in ("shapes", "settings", "model", "values"):
            assert "distribute: needed the same" in one[name]
            assert "on rank 0 and" in one[name]
            assert "on rank 1" in one[name]
        assert "[6]" in one["shapes"] or "[8, 6]" in one["shapes"]
        assert "accumulate 1" in one["settings"]
        assert "float32 (3,)" in one["model"]
        assert "not finite at step 1" in one["not finite"]
    assert "the first array that is not finite is batch/0" in found["stops"][1]["not finite"]
