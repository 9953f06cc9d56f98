"""What a person waits for: the first training step, with tracing and compiling, and the first step
of a second process that finds what the first one compiled (`iso.cache`). Imports at the top of a
script and the making of the network are not counted; of what a framework imports when it compiles
for the first time, the last column tells how long it takes.

`python -m benchmarks.first BACKEND NETWORK PROGRAM FOLDER` measures one program: every figure is
from a process of its own, with a folder for compiled programs that is empty at first.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from .tables import Table
from .timing import installed

BACKENDS = ("jax", "tensorflow", "torch")
NETWORKS = ("mlp", "resnet", "gpt")
DEMO = ("digits", "letters")  # the models of `make demo`
WARM = 5.0  # seconds without imports in which a second process takes the first step of the demo
OURS = "isomorph"
# The first step of ours over the peer's, where there is a budget.
BUDGETS = {"whole step in torch.compile": 1.2, "torch.compile + fused": 1.5}
LIMIT = 900  # seconds for one process
HEAD = ["backend", "network", "program", "first step s", "isomorph / it", "budget", "met",
        "second process s", "imports in it s"]  # fmt: skip
MARK = "the clock starts"


def run(quick: bool = False) -> Table:
    size = ["quick"] if quick else []
    rows: list[list[str]] = []
    for backend in filter(installed, BACKENDS):
        for network in NETWORKS[:1] if quick else NETWORKS:
            mine: float | None = None
            for program in named(backend):
                cold, warm, _ = both(backend, network, program, size)
                mine = cold if mine is None else mine
                ratio, budget = mine / cold, BUDGETS.get(program)
                rows.append([
                    backend, network, program, f"{cold:.1f}",
                    "" if program == OURS else f"{ratio:.2f}x",
                    "" if budget is None else f"{budget}x",
                    "" if budget is None else "yes" if ratio <= budget else "NO", f"{warm:.1f}", "",
                ])  # fmt: skip
                print("  ".join(rows[-1]), file=sys.stderr, flush=True)
        for network in DEMO[:1] if quick else DEMO:
            cold, warm, imports = both(backend, network, OURS, size)
            met = "yes" if warm - imports <= WARM else "NO"
            found = [
                f"{cold:.1f}",
                "",
                f"second {WARM:.0f} s",
                met,
                f"{warm:.1f}",
                f"{imports:.1f}",
            ]
            rows.append([backend, f"demo, {network}", OURS, *found])
            print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    return Table(HEAD, rows)


def named(backend: str) -> list[str]:
    """The names of the programs: ours first."""
    peers = {
        "jax": ["jax.jit + optax", "Flax NNX", "Equinox"],
        "tensorflow": ["tf.function + Adam by hand", "tf.function + Keras Adam"],
        "torch": ["whole step in torch.compile", "torch.compile + fused"],
    }[backend]
    return [OURS, *peers, "Keras fit"]


def both(backend: str, network: str, program: str, size: list[str]) -> tuple[float, float, float]:
    """Seconds of the first step: in a process that compiles, in one that finds the programs, and
    how many of them are imports.
    """
    own = {"KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"}
    own["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    with tempfile.TemporaryDirectory() as folder:
        command = ["-m", __name__, backend, network, program, folder, *size]
        runs = []
        for flags in ((), (), ("-X", "importtime")):
            done = subprocess.run(
                [sys.executable, *flags, *command],
                env=os.environ | own, capture_output=True, text=True, timeout=LIMIT,
            )  # fmt: skip
            if done.returncode:
                raise RuntimeError(done.stderr)
            runs.append((float(done.stdout.splitlines()[-1]), done.stderr))
    (cold, _), (warm, _), (_, told) = runs
    return cold, warm, imported(told.partition(MARK)[2])


def imported(told: str) -> float:
    """Seconds of all imports, of which Python tells one in a line, with its own microseconds."""
    lines = (line.removeprefix("import time:") for line in told.splitlines() if "|" in line)
    own = (line.partition("|")[0].strip() for line in lines)
    return sum(int(us) for us in own if us.isdigit()) / 1e6


def prepared(backend: str, network: str, program: str, quick: bool) -> Any:
    """The step as a function without arguments."""
    from .training import steps
    from .training.cases import CASES

    steps.one_thread(backend)
    if network in DEMO:
        return of_the_demo(backend, network)
    case = CASES[network](quick)
    if program == OURS:
        return steps.ours(case, backend)
    (_, _, peers), *_ = steps.groups(case, backend)
    make, _ = peers[program]
    return make()


def of_the_demo(backend: str, name: str) -> Any:
    import isomorph as iso

    make, batch, loss = demo_task(name, backend)
    with iso.use_backend(backend, dtype="float32"), iso.use_key(0):
        model = make()
    step = iso.train_step(loss, iso.optimizers.adamw(2e-3))
    state = step.init(model)
    return lambda: step(state, *batch)[1]


def demo_task(name: str, backend: str) -> tuple[Any, tuple, Any]:
    """What makes the model, a batch, and the loss."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
    import demo  # pyright: ignore[reportMissingImports]

    make, data, size = next((t[1], t[2], t[-1]) for t in demo.tasks() if t[0] == name)
    return make, tuple(x[:size] for x in demo.moved(data, backend, "float32")), demo.loss


if __name__ == "__main__":
    import isomorph as iso
    from isomorph.core.dispatch import load

    backend, network, program, folder, *size = sys.argv[1:]
    iso.cache(folder)
    load(backend)  # it gets the folder
    step = prepared(backend, network, program, bool(size))
    print(MARK, file=sys.stderr, flush=True)
    start = time.perf_counter()
    float(step())
    print(time.perf_counter() - start)
