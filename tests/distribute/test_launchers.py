"""Processes that a launcher started: what the environment says, complete or not, and the warning of
`fit` in a process that trains apart from the others.
"""

import json
import warnings

import numpy as np
import pytest

import isomorph as iso
from isomorph.distribute.launchers import VARIABLES, started

TORCHRUN = {
    "RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "MASTER_ADDR": "10.0.0.1",
    "MASTER_PORT": "29500", "GROUP_RANK": "0", "TORCHELASTIC_RUN_ID": "none",
}  # fmt: skip
SRUN = {
    "SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4", "SLURM_NTASKS": "4", "SLURM_STEP_ID": "0",
    "SLURM_JOB_ID": "17", "SLURM_LOCALID": "1",
}  # fmt: skip
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "0",
}  # fmt: skip
MPICH = {"PMI_RANK": "0", "PMI_SIZE": "2", "PMI_FD": "5"}


def tensorflow(kind, index, **cluster):
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})}


PAIR = ["a:1", "b:1"]
FOUND = {
    "torchrun": (TORCHRUN, (1, 4, "torchrun")),
    "srun": (SRUN, (3, 4, "SLURM")),
    "Open MPI": (OPEN_MPI, (2, 3, "Open MPI")),
    "MPICH": (MPICH, (0, 2, "MPICH")),
    "srun that starts MPICH": ({**SRUN, "PMI_RANK": "1", "PMI_SIZE": "2"}, (1, 2, "MPICH")),
    "workers": (tensorflow("worker", 1, worker=PAIR), (1, 2, "TF_CONFIG")),
    "a chief": (tensorflow("chief", 0, chief=["a:1"], worker=PAIR), (0, 3, "TF_CONFIG")),
    "beside a chief": (tensorflow("worker", 1, chief=["a:1"], worker=PAIR), (2, 3, "TF_CONFIG")),
}
ALONE = {
    "nothing": {},
    "a shell of SLURM": {"SLURM_JOB_ID": "17", "SLURM_NTASKS": "4", "SLURM_NNODES": "2"},
    "a batch script": {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "17"},
    "one task": {**SRUN, "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"},
    "one process": {**TORCHRUN, "RANK": "0", "WORLD_SIZE": "1"},
    "no number": {**MPICH, "PMI_RANK": "first"},
    "out of range": {**MPICH, "PMI_RANK": "2"},
    "an evaluator": tensorflow("evaluator", 0, worker=PAIR),
    "one worker": tensorflow("worker", 0, worker=["a:1"]),
    "no JSON": {"TF_CONFIG": "{"},
    "another JSON": {"TF_CONFIG": "[1]"},
    "no task": {"TF_CONFIG": json.dumps({"cluster": {"worker": PAIR}})},
    **{
        f"torchrun without {name}": {k: v for k, v in TORCHRUN.items() if k != name}
        for name in VARIABLES["torchrun"]
    },
}


@pytest.mark.parametrize("name", FOUND)
def test_a_launcher_is_recognised(name):
    environment, wanted = FOUND[name]
    found = started(environment)
    assert found is not None
    assert found[:3] == wanted


@pytest.mark.parametrize("name", ALONE)
def test_an_incomplete_set_is_one_process(name):
    assert started(ALONE[name]) is None


def train(tmp_path, **kw):
    x = np.ones((4, 2))
    loss = lambda v, x: iso.namespace(x).sum((x @ v) ** 2)
    return iso.fit(np.ones(2), (x,), loss, iso.optimizers.sgd(0.01), progress=False, **kw)


@pytest.mark.parametrize("saved", [False, True])
def test_fit_warns_where_it_trains_apart(monkeypatch, tmp_path, saved):
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    checkpoint = tmp_path / "file" if saved else None
    with pytest.warns(UserWarning, match="rank 1 of 4.*torchrun.*trains alone") as caught:
        train(tmp_path, checkpoint=checkpoint)
    assert ("the same file" in str(caught[0].message)) == saved
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "changed", [{"RANK": "0"}, {"ISOMORPH_DISTRIBUTE": "off"}, {"WORLD_SIZE": "1", "RANK": "0"}]
)
def test_the_first_process_and_one_that_is_meant_to_be_alone_do_not(monkeypatch, tmp_path, changed):
    for name, value in {**TORCHRUN, **changed}.items():
        monkeypatch.setenv(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert train(tmp_path).steps == 1
