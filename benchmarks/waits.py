"""Whether to compile: what a first step and a later one take, compiled and not, each in a process
of its own with nothing compiled before; with that, what N steps take, and which way
`compiled="auto"` goes.

`python -m benchmarks.waits BACKEND NETWORK compiled|eager FOLDER` measures one.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

import isomorph as iso
from isomorph.core import tree
from isomorph.training.choosing import pays

from .tables import Part, Table
from .timing import installed

BACKENDS = ("jax", "tensorflow", "torch")
NETWORKS = ("tiny", "dropout", "lstm", "chain", "mlp", "wide", "digits", "letters", "resnet-small",
            "resnet", "gpt-small", "gpt")  # fmt: skip
STEPS = (50, 500, 5000)
NEAR = 1.15
HEAD = ["backend", "network", "arrays", "numbers", "way", "first step s", "later step ms", "MB"]
CHOICES = ["backend", "network", "steps", "compiled s", "uncompiled s", "auto", "over the better",
           "budget", "met"]  # fmt: skip
LIMIT = 900  # seconds for one process


def case(name: str, backend: str) -> tuple[Any, tuple, Any, Any]:
    """Model, batch, loss and optimizer."""
    from . import chains, small
    from .training import cases

    def model(make: Any) -> Any:
        with iso.use_backend(backend, dtype="float32"), iso.use_key(0):
            return make()

    if name in ("digits", "letters"):
        from .first import demo_task

        make, batch, loss = demo_task(name, backend)
        return model(make), batch, loss, iso.optimizers.adamw(2e-3)
    if name in ("tiny", "dropout", "lstm"):
        found = small.cases(64)[("tiny", "dropout", "lstm").index(name)]
        batch = (found.x[: found.size], found.y[: found.size])
        made, loss = found.model(backend), small.loss
    elif name == "chain":
        batch = (np.ones((8, 8), np.float32), np.zeros(8, np.int32))
        made, loss = model(lambda: chains.Chain(24)), chains.of_module
    elif name == "wide":
        batch = (np.ones((256, 1024), np.float32), np.zeros(256, np.int32))
        made, loss = model(lambda: cases.MLP((1024, 4096, 4096, 10))), cases.loss
    else:
        kind, _, size = name.partition("-")
        found = cases.CASES[kind](bool(size))
        batch, made, loss = (found.x, found.y), found.model(backend), cases.loss
    return made, iso.convert(batch, backend), loss, iso.optimizers.adam(1e-3)


def measured(backend: str, name: str, compiled: bool) -> dict[str, Any]:
    from .training.steps import one_thread, waiting

    one_thread(backend)
    made, batch, loss, rule = case(name, backend)
    wait = waiting(backend)
    step = iso.train_step(loss, rule, compiled=compiled, guard=True)
    start = time.perf_counter()
    state = step.init(made)
    state, value = step(state, *batch)
    wait(state.arrays), float(value)
    first, times = time.perf_counter() - start, []
    while len(times) < 5 or (sum(times) < 3 and len(times) < 300):
        start = time.perf_counter()
        state, value = step(state, *batch)
        wait(state.held), float(value)
        times.append(time.perf_counter() - start)
    leaves = tree.flatten(state.arrays["variables"])[0]
    rows = int(batch[0].shape[0])
    return {
        "auto": {n: pays(made, n, rows) for n in STEPS},
        "arrays": len(leaves), "numbers": int(sum(np.prod(x.shape) for x in leaves)),
        "first": first, "later": float(np.median(times)),
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }  # fmt: skip


def run(quick: bool = False) -> list[Part]:
    rows, choices = [], []
    for backend in filter(installed, BACKENDS):
        for name in NETWORKS[: 1 if quick else None]:
            found = {way: apart(backend, name, way) for way in ("compiled", "eager")}
            for way, x in found.items():
                rows.append([
                    backend, name, f"{x['arrays']}", f"{x['numbers']:,}", way, f"{x['first']:.2f}",
                    f"{x['later'] * 1e3:.2f}", f"{x['megabytes']:.0f}",
                ])  # fmt: skip
                print("  ".join(rows[-1]), file=sys.stderr, flush=True)
            choices += chosen(backend, name, found["compiled"], found["eager"])
    return [Table(HEAD, rows), Table(CHOICES, choices)]


def chosen(backend: str, name: str, fast: dict[str, Any], slow: dict[str, Any]) -> list[list[str]]:
    """What each number of steps takes, and which way `auto` goes."""
    found = []
    for steps, compiles in fast["auto"].items():
        both = [x["first"] + (int(steps) - 1) * x["later"] for x in (fast, slow)]
        took = both[0] if compiles else both[1]
        over = took / min(both)
        found.append([
            backend, name, steps, f"{both[0]:.1f}", f"{both[1]:.1f}",
            "compiled" if compiles else "uncompiled", f"{over:.2f}x", f"{NEAR}x",
            "yes" if over <= NEAR else "NO",
        ])  # fmt: skip
    return found


def apart(backend: str, name: str, way: str) -> dict[str, Any]:
    own = {"TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"}
    own["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", __name__, backend, name, way, folder], env=os.environ | own,
            capture_output=True, text=True, timeout=LIMIT,
        )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    backend, name, way, folder = sys.argv[1:]
    iso.cache(folder)
    print(json.dumps(measured(backend, name, way == "compiled")))
