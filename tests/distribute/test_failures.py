"""Workers that die, raise, hang or leave early: the job ends in time, and the rank is named. A
training that was killed goes on with other numbers of workers and on another backend.
"""

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from frameworks import ABSENT, MISSING

import isomorph as iso

from . import problem
from .jobs import ENGINES, PROCESSES, WORKER, environment, launched

WAIT = 6  # seconds until the watchdog acts
START = 25  # seconds to start the frameworks on two busy cores
QUICK = {("MPI", how) for how in ("kill", "raise", "hang", "early")} | {
    ("gloo", "kill"), ("gloo", "hang"), ("JAX processes", "hang"),
    ("multi-worker", "kill"),
}  # fmt: skip
CASES = [
    pytest.param(engine, how, marks=[] if (engine, how) in QUICK else [pytest.mark.slow])
    for engine in PROCESSES for how in ("kill", "raise", "hang", "early")
]  # fmt: skip
LAST = {"kill": "signal SIGKILL", "raise": "ValueError: a mistake of the user"}


@pytest.mark.parametrize(("engine", "how"), CASES)
def test_one_that_fails_ends_all(engine, how, tmp_path):
    backend, _, options = ENGINES[engine]
    words = ("fails", backend, tmp_path, *options, f"how={how}", f"timeout={WAIT}")
    done, seconds = launched(backend, 2, *words)
    assert done.returncode not in (0, 2)
    assert "rank 1 is at step 3" in done.stdout
    said = done.stderr
    if how in LAST:
        assert "isomorph launch: rank 1 ended with" in said
        assert LAST[how] in said
        assert seconds < START + 10
    else:  # the other one waits, and says for whom
        assert "isomorph launch: rank 0 ended with" in said
        waited = f"waited {WAIT} s for the others" in said and "ranks that did not come: 1." in said
        assert waited or "rank 0 waited for ranks 1 (a training step)" in said
        assert seconds < START + WAIT + 10


@pytest.mark.parametrize("engine", PROCESSES)
def test_the_end_of_a_process_is_quiet(engine, tmp_path):
    """JAX's client crashes if a thread uses it while the process ends."""
    backend, _, options = ENGINES[engine]
    done, _ = launched(backend, 2, "leaves", backend, tmp_path, *options)
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / "leaves.1.json").exists()


@pytest.fixture(scope="module")
def unbroken():
    done = iso.fit(
        problem.made("numpy"), problem.data(20), problem.counted_loss,
        iso.optimizers.sgd(0.1), epochs=3, batch_size=6, progress=False, compiled=False,
    )  # fmt: skip
    assert len(done.losses) == 12
    return done.losses, problem.flat(done.model)


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """What four processes saved, one of which is killed."""
    folder = tmp_path_factory.mktemp("killed")
    done, _ = launched("numpy", 4, "resumes", "numpy", folder, "dies=8")
    assert done.returncode
    assert "isomorph launch: rank 3 ended with signal SIGKILL" in done.stderr
    return (folder / "training").read_bytes()


@pytest.mark.parametrize(
    "others", [(2, "numpy"), (1, "numpy"), (1, "torch")], ids=lambda pair: "{} of {}".format(*pair)
)
def test_a_training_that_was_killed_goes_on_elsewhere(others, unbroken, killed, tmp_path):
    """Resumed by two processes, by one, and by torch."""
    workers, backend = others
    if backend in ABSENT:
        pytest.skip(MISSING.format(backend))
    losses, leaves = unbroken
    (tmp_path / "training").write_bytes(killed)
    done, _ = launched(backend, workers, "resumes", backend, tmp_path, "compiled=no")
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads((tmp_path / "resumes.0.json").read_text())
    np.testing.assert_allclose(found["losses"], losses, rtol=0, atol=1e-6)
    for name, x in leaves.items():
        np.testing.assert_allclose(found["leaves"][name], x, rtol=0, atol=1e-6)


@pytest.mark.takes("it starts another process")
def test_the_launcher_ends_with_its_processes(tmp_path):
    """Ended by a signal, it leaves nothing behind, even if a process does not want to end."""
    script = tmp_path / "stubborn.py"
    script.write_text(
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('pid', os.getpid(), flush=True)\n"
        "time.sleep(100)\n"
    )
    command = [sys.executable, "-m", "isomorph", "launch", "--workers", "2", str(script)]
    job = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True)
    lines = [job.stdout.readline() for _ in range(2)]
    pids = [int(line.split()[-1]) for line in lines]
    job.terminate()
    assert job.wait(20) == 130
    time.sleep(0.2)
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    job.stdout.close()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--workers", "0", str(WORKER)], "needed --workers as a number >= 1, got 0"),
        (["--workers", "2", "nowhere.py"], "needed a script that exists, got nowhere.py"),
    ],
)
def test_wrong_arguments_of_the_launcher(words, said, capsys):
    from isomorph.cli.command import main

    with pytest.raises(SystemExit) as ended:
        main(["launch", *words])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
