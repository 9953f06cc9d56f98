"""Peak memory of one training step: `python -m benchmarks.memory backend who [quick]` prints
megabytes, in a separate process.

The kernel's high-water mark of the resident set is reset before a step and read after it. The
memory that the process held before the step is subtracted: weights, optimizer state and batch do
not count; gradients, activations and copies do. malloc is told to return freed blocks at once;
otherwise memory freed by an earlier step would hide what the next one needs. The result is the
minimum over several steps.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from .tables import Part, Table
from .timing import installed
from .training.cases import Case, gpt
from .training.steps import one_thread, ours

ENV = {
    "MALLOC_MMAP_THRESHOLD_": "65536",
    "MALLOC_TRIM_THRESHOLD_": "65536",
    "MALLOC_ARENA_MAX": "1",
}
NATIVE, CHECKPOINTED = 1.05, 0.5
HEAD = ["backend", "transformer", "isomorph MB", "against", "its MB", "ratio", "budget", "met"]
PEERS = {
    "jax": ("jax.jit + optax",),
    "tensorflow": ("tf.function + Adam by hand",),
    "torch": ("torch.compile + fused", "whole step in torch.compile"),
    "numpy": ("torch eager + fused",),
}


def case(quick: bool, checkpointed: bool) -> Case:
    return gpt(quick, tokens=128, width=128, heads=4, batch=16, checkpointed=checkpointed)


def risen(call: Callable[[], Any]) -> float:
    """Megabytes by which one call raised the memory of the process."""
    gc.collect()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = status("VmRSS")
    call()
    return (status("VmHWM") - before) / 2**10


def status(field: str) -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(f"{field}:"))


def step(backend: str, who: str, quick: bool) -> Callable[[], Any]:
    one = case(quick, who == "checkpointed")
    if who in ("isomorph", "checkpointed"):
        return ours(one, backend)
    if backend == "jax":
        from .training.jax_peers import peers
    elif backend == "tensorflow":
        from .training.tensorflow_peers import peers
    elif backend == "torch":
        from .training.torch_peers import peers
    else:
        from .training.torch_peers import eager_peers as peers
    return peers(one)[who]()


def peak(backend: str, who: str, quick: bool) -> float:
    """The peak in megabytes, measured in a separate process."""
    own = {"KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"}
    size = ["quick"] if quick else []
    done = subprocess.run(
        [sys.executable, "-m", __name__, backend, who, *size],
        env=os.environ | own | ENV, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr)
    return float(done.stdout.split()[-1])


def run(quick: bool = False) -> Part:
    if not os.path.exists("/proc/self/clear_refs"):
        return "Peak memory is measured on Linux only."
    there = {name: installed(name) for name in PEERS}
    there["numpy"] = there["torch"]  # NumPy is measured against torch
    out = []
    for backend in filter(there.get, there):
        mine = peak(backend, "isomorph", quick)
        theirs, name = min((peak(backend, who, quick), who) for who in PEERS[backend])
        less = peak(backend, "checkpointed", quick)
        print(f"{backend} done", file=sys.stderr)
        label = case(quick, False).label
        budget = None if backend == "numpy" else NATIVE
        out.append([backend, label, *line(mine, name, theirs, budget)])
        whole = "isomorph without checkpoints"
        out.append([backend, f"{label}, checkpointed", *line(less, whole, mine, CHECKPOINTED)])
    return Table(HEAD, out)


def line(mine: float, name: str, theirs: float, budget: float | None) -> list[str]:
    if min(mine, theirs) < 1:  # TensorFlow's allocator keeps its memory, so nothing rises
        return ["-", name, "-", "-", "-" if budget is None else f"{budget}x", "-"]
    ratio = mine / theirs
    met = "-" if budget is None else "yes" if ratio <= budget else "NO"
    return [
        f"{mine:.1f}", name, f"{theirs:.1f}", f"{ratio:.2f}x",
        "-" if budget is None else f"{budget}x", met,
    ]  # fmt: skip


if __name__ == "__main__":
    one_thread(sys.argv[1])
    call = step(sys.argv[1], sys.argv[2], "quick" in sys.argv)
    for _ in range(3):
        float(call())
    print(min(risen(call) for _ in range(5)))
