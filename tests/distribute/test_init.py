"""`iso.distribute.init` without other processes: what it believes, its arguments; and the parts
that need no second process: buckets, the rows of a worker, the watchdog.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

import isomorph as iso
from isomorph.core.dispatch import load
from isomorph.distribute.buckets import Plan
from isomorph.distribute.launchers import first_node, started
from isomorph.distribute.watchdog import HUNG
from isomorph.distribute.world import bounds, check_same
from oracles import numpy_of

from .jobs import environment


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    for name in set(os.environ) - set(environment()):
        monkeypatch.delenv(name)


def test_a_mean_of_integers_is_refused(backend, xp):
    with iso.use_backend(backend):
        world = iso.distribute.init()
    with pytest.raises(TypeError, match=r"mean: needed floating-point arrays.*\bn\b"):
        world.mean({"n": xp.asarray([1, 2]), "x": xp.asarray([1.0])})


def test_a_process_that_nobody_launched_is_alone(backend, xp, capsys):
    if backend == "jax" and len(load("jax").devices()) > 2:
        pytest.skip("several devices here: they would all be used")
    with iso.use_backend(backend):
        world = iso.distribute.init()
    assert (world.rank, world.size, world.shares, world.backend) == (0, 1, 1, backend)
    assert capsys.readouterr().err == ""
    x = {"x": xp.asarray([[1.0], [2.0]])}
    for same in (world.mean(x, weight=3), world.share(x), world.fetch(x)):
        np.testing.assert_array_equal(numpy_of(same["x"]), [[1], [2]])
    world.barrier()
    loss = lambda v, x: xp.mean((v["x"] - x) ** 2)
    options = {"epochs": 2, "progress": False, "compiled": False}
    both = [
        iso.fit(x, x["x"], loss, iso.optimizers.sgd(0.1), distribute=w, **options)
        for w in (world, None)
    ]
    assert both[0].losses == both[1].losses


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rank": 0}, "needed rank, size and address together, got no size and no address"),
        ({"rank": 0, "size": 2}, "needed rank, size and address together, got no address"),
        ({"rank": 2, "size": 2, "address": "a:1"}, "needed rank < size, got rank 2 of 2"),
        ({"rank": -1, "size": 2, "address": "a:1"}, "needed rank as an int >= 0, got -1"),
        ({"rank": 0, "size": 2, "address": "a"}, "needed address as \"host:port\", got 'a'"),
        ({"backend": "cupy"}, "needed a backend of numpy, jax, tensorflow, torch, got 'cupy'"),
    ],
)
def test_wrong_arguments(given, said):
    with pytest.raises(ValueError, match=f"^distribute: {said}$"):
        iso.distribute.init(**given)


def test_a_launcher_that_does_not_say_where_to_meet(monkeypatch):
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "2")
    with pytest.raises(ValueError, match=r"needed the address .*from MPICH; set MASTER_ADDR"):
        iso.distribute.init(backend="torch")
    monkeypatch.setenv("ISOMORPH_DISTRIBUTE", "off")
    assert iso.distribute.init(backend="torch").size == 1


def test_what_is_no_world():
    with pytest.raises(TypeError, match=r"train_step: needed distribute as the world of .*a bool$"):
        iso.train_step(lambda v: v, iso.optimizers.sgd(0.1), distribute=True)


ONE_HOST = {"MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2", "PMI_PORT": "host:1234"}
PLACES = {
    "torchrun": (
        {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "MASTER_ADDR": "h",
         "MASTER_PORT": "29500"},
        (3, 1, "h:29500"),
    ),
    "Kubernetes": (
        {"JOB_COMPLETION_INDEX": "2", "WORLD_SIZE": "4", "MASTER_ADDR": "train-workers-0-0.train",
         "MASTER_PORT": "3389"},
        (2, 0, "train-workers-0-0.train:3389"),
    ),
    "an address beside MPICH": (
        {"PMI_RANK": "1", "PMI_SIZE": "2", "MASTER_ADDR": "h", "MASTER_PORT": "5"}, (1, 0, "h:5"),
    ),
    "MPICH on several machines": ({"PMI_RANK": "1", "PMI_SIZE": "2"}, (1, 0, "")),
    "a cluster of TensorFlow": (
        {"TF_CONFIG": '{"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", '
         '"index": 1}}'},
        (1, 0, "a:1"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_where_processes_meet(name):
    given, wanted = PLACES[name]
    found = started(given)
    assert found is not None
    assert (found.rank, found.local_rank, found.address) == wanted


def test_processes_of_one_job_find_the_same_port():
    here = [started({"PMI_RANK": r, "PMI_SIZE": "2", **ONE_HOST}) for r in "01"]
    assert here[0].address == here[1].address
    assert here[0].address.startswith("127.0.0.1:4")
    step = {"SLURM_STEP_NUM_TASKS": "8", "SLURM_STEP_NODELIST": "gpu[07-09]"}
    first, other, later = (
        started({**step, "SLURM_PROCID": rank, "SLURM_JOB_ID": job, "SLURM_LOCALID": "3"})
        for rank, job in (("0", "17"), ("7", "17"), ("0", "18"))
    )
    assert first.address == other.address != later.address
    assert first.address.startswith("gpu07:4")
    assert other.local_rank == 3


@pytest.mark.parametrize(
    ("nodes", "first"),
    [("a", "a"), ("a,b", "a"), ("n[1-3]", "n1"), ("n[03,7]", "n03"), ("b,n[1-3]", "b"),
     ("n[1-2]-ib,x", "n1-ib")],
)  # fmt: skip
def test_the_first_node(nodes, first):
    assert first_node(nodes) == first


@pytest.mark.parametrize("rows", [0, 1, 5, 8, 13])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_the_rows_of_all_workers_are_all_rows(rows, size):
    parts = [list(range(*bounds(rows, rank, size))) for rank in range(size)]
    assert [row for part in parts for row in part] == list(range(rows))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_buckets(backend, xp):
    """Sums of several workers, computed here one after the other, against plain means."""
    rng = np.random.default_rng(3)
    draw = lambda: [
        rng.normal(size=(2, 3)).astype(np.float32), rng.normal(size=()).astype(np.float32),
        rng.normal(size=4).astype(np.float16), rng.normal(size=(1, 2)).astype(np.float32),
    ]  # fmt: skip
    workers, weights = [draw() for _ in range(3)], [2.0, 0.0, 5.0]
    workers[1][0][:] = np.nan  # without weight, whatever it is
    plan = Plan(load(backend), [xp.asarray(x) for x in workers[0]], flags=2)
    packed = [
        plan.packed([xp.asarray(x) for x in leaves], weight, [1.0, weight])
        for leaves, weight in zip(workers, weights)
    ]
    assert len(packed[0]) == 1  # half precision is added up in float32
    assert packed[0][0].shape == (3 + 6 + 1 + 4 + 2,)
    means, total, flags = plan.means([packed[0][0] + packed[1][0] + packed[2][0]])
    assert float(numpy_of(total)) == 7
    assert [float(numpy_of(x)) for x in flags] == [3, 7]
    for i, mean in enumerate(means):
        wanted = (2 * workers[0][i].astype(float) + 5 * workers[2][i].astype(float)) / 7
        assert numpy_of(mean).dtype == workers[0][i].dtype
        rtol = 2**-10 if workers[0][i].dtype == np.float16 else 1e-6  # one rounding of float16
        np.testing.assert_allclose(numpy_of(mean), wanted, rtol=rtol)


def test_large_arrays_have_buckets_of_their_own(xp):
    leaves = [xp.ones(shape, dtype=xp.float32) for shape in (3, 9, 2, 4, 5)]
    plan = Plan(load(iso.namespace(leaves[0]).__name__.rpartition(".")[2]), leaves, full=6)
    assert [numbers for _, numbers in plan.buckets] == [[0, 2], [1], [3], [4]]
    packed = plan.packed(leaves, 2.0)
    assert [x.shape for x in packed] == [(1 + 5,), (9,), (4,), (5,)]
    means, total, flags = plan.means(packed)
    assert (float(numpy_of(total)), flags) == (2, [])
    for leaf, mean in zip(leaves, means):
        np.testing.assert_array_equal(numpy_of(mean), numpy_of(leaf))


def test_texts_that_differ_are_shown():
    check_same("things", ["a\nb", "a\nb"])
    with pytest.raises(ValueError, match="same things in all .*got b on rank 0 and c on rank 2$"):
        check_same("things", ["a\nb", "a\nb", "a\nc"])
    with pytest.raises(ValueError, match="got b on rank 0 and nothing more on rank 1$"):
        check_same("things", ["a\nb", "a"])


WATCH = """
import sys, time
from isomorph.distribute import watchdog
class Exchange:
    def tell(self, count): self.count = count
    def read(self): return [self.count, 0, self.count, None]
watchdog.TICK = 0.05
dog = watchdog.Watchdog(0, 4, 0.5, Exchange())
with dog.watching("compiling", "a program"):
    time.sleep(1.2)  # the first time it may take long
with dog.watching("a step", "a program"):
    time.sleep(0.1)
print("so far", flush=True)
with dog.watching("a step", "a program"):
    time.sleep(20)
print("not reached")
"""


def test_the_watchdog_names_who_did_not_come():
    done = subprocess.run(
        [sys.executable, "-c", WATCH], env=environment(), capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == HUNG
    assert done.stdout == "so far\n"
    assert "rank 0 of 4 waited 0 s for the others (a step); ranks that did not come: 1, 3." in (
        done.stderr
    )
