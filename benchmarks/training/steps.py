"""The time of a training step compared with the peers: `python -m benchmarks.training.steps backend
[quick]` prints the rows of one backend. Its peers run in the same process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import isomorph as iso

from ..timing import installed, within
from .cases import CASES, Case, loss

SECONDS = 25.0  # for all turns of one network
STEPS = 4  # compared before the timing
NATIVE, KERAS, EAGER = 1.02, 0.8, 1.05
NUMPY = {"torch eager + fused": 1.2, "HIPS autograd": 0.6}


def ours(case: Case, backend: str, compiled: bool = True) -> Callable[[], Any]:
    step = iso.train_step(loss, case.optimizer, compiled=compiled)
    state, batch = step.init(case.model(backend)), iso.convert((case.x, case.y), backend)
    ready = waiting(backend)

    def run() -> Any:
        nonlocal state
        state, value = step(state, *batch)
        ready(state.arrays)
        return value

    return run


def waiting(backend: str) -> Callable[[Any], Any]:
    """A function that waits until a step is done: JAX returns before that."""
    if backend == "jax":
        import jax

        return jax.block_until_ready
    return lambda arrays: None


def one_thread(backend: str) -> None:
    """Use one thread on a processor; what ISOMORPH_BENCH_DEVICE names is torch's default device."""
    device = os.environ.get("ISOMORPH_BENCH_DEVICE")
    if device and backend == "torch":
        import torch

        torch.set_default_device(device)
    if backend in ("torch", "numpy"):
        import torch

        torch.set_num_threads(1)
    elif backend == "tensorflow":
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)


def groups(case: Case, backend: str) -> list[tuple[str, bool, dict[str, tuple[Any, Any]]]]:
    """Groups timed together: (our mode, whether it is compiled, peers by name with budgets)."""
    if backend == "numpy":
        from . import numpy_peers, torch_peers

        if case.kind == "resnet":
            return []
        peers = torch_peers.eager_peers(case) | numpy_peers.peers(case)
        return [("eager", False, {n: (p, NUMPY[n]) for n, p in peers.items()})]
    keras: dict[str, tuple[Any, Any]] = {}
    if installed("keras"):
        from . import keras_peers

        keras = {"Keras fit": (lambda: keras_peers.step(case), KERAS)}
    if backend == "jax":
        from . import jax_peers as native
    elif backend == "tensorflow":
        from . import tensorflow_peers as native
    else:
        from . import torch_peers as native
    found = [("compiled", True, {n: (p, NATIVE) for n, p in native.peers(case).items()} | keras)]
    if backend == "torch":
        eager = native.eager_peers(case)
        found.append(("eager", False, {n: (p, EAGER) for n, p in eager.items()}))
    return found


def agree(label: str, calls: dict[str, Callable[[], Any]]) -> None:
    """Check that all compute the same losses over the first steps."""
    found = {name: [float(call()) for _ in range(STEPS)] for name, call in calls.items()}
    (_, mine), *others = found.items()
    running = np.cumsum(mine) / np.arange(1, STEPS + 1)
    for name, values in others:
        wanted = running if name == "Keras fit" else mine  # it returns the mean so far
        text = f"{label}: {name}"
        np.testing.assert_allclose(values[0], wanted[0], rtol=1e-4, err_msg=text)
        # a residual net fits its only batch within a few steps, and rounding errors grow
        np.testing.assert_allclose(values, wanted, rtol=2e-3, err_msg=text)


def rows(case: Case, backend: str, seconds: float = SECONDS) -> list[list[str]]:
    out = []
    for what, compiled, peers in groups(case, backend):
        calls = {"isomorph": ours(case, backend, compiled)}
        calls |= {name: make() for name, (make, _) in peers.items()}
        agree(f"{backend}, {case.label}", calls)
        best = within(calls, seconds)
        mine = best["isomorph"]
        for name, (_, budget) in peers.items():
            ratio = mine / best[name]
            out.append([
                backend, case.label, what, f"{mine * 1e3:.2f}", name, f"{best[name] * 1e3:.2f}",
                f"{ratio:.2f}x", f"{budget}x", "yes" if ratio <= budget else "NO",
            ])  # fmt: skip
    return out


HEAD = ["backend", "network, float32", "step", "isomorph ms", "peer", "peer ms",
        "isomorph / peer", "budget", "met"]  # fmt: skip


if __name__ == "__main__":
    backend, quick = sys.argv[1], "quick" in sys.argv
    one_thread(backend)
    chosen = [name for name in CASES if name in sys.argv] or list(CASES)
    for name in chosen:
        for row in rows(CASES[name](quick), backend, 0.5 if quick else SECONDS):
            print("\t".join(row), flush=True)
