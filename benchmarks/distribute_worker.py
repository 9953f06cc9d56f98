"""A process of the benchmark `distribute`: times a step with its reduction, the same step without,
and the engine's own all-reduce of one prepared buffer, in turns. Started by `isomorph launch`.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import isomorph as iso

LEAVES = 12


def loss(v: Any, x: Any) -> Any:
    """Cheap, with a gradient as large as the variables."""
    xp = iso.namespace(x)
    scale = xp.mean(x)
    return sum(xp.sum(leaf * leaf) for leaf in v.values()) * scale


def done(nest: Any) -> None:
    """Wait until an array is computed."""
    np.asarray(iso.to_numpy(nest))


def measured(world: Any, megabytes: int, turns: int) -> dict[str, Any]:
    size = megabytes * 2**20 // 4 // LEAVES
    with iso.use_backend(world.backend) as xp:
        v = {f"v{i}": xp.ones(size, dtype=xp.float32) for i in range(LEAVES)}
        x = xp.ones((2, 1), dtype=xp.float32)
        flat = xp.ones(size * LEAVES, dtype=xp.float32)
    calls: dict[str, Callable[[], Any]] = {}
    for name, given in (("step", world), ("without", None)):
        step = iso.train_step(loss, iso.optimizers.sgd(1e-6), distribute=given)
        box = [step.init(v)]

        def run(step: Any = step, box: list = box) -> None:
            box[0], value = step(box[0], x)
            done(value)

        calls[name] = run
    calls["all-reduce"] = lambda: world.sum(flat)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(turns + 3):
        for name, call in calls.items():
            world.barrier()
            began = time.perf_counter()
            call()
            if turn >= 3:
                times[name].append(1e3 * (time.perf_counter() - began))
    return {
        name: [statistics.median(found), *statistics.quantiles(found, n=4)[::2]]
        for name, found in times.items()
    }


if __name__ == "__main__":
    name: Any = sys.argv[1]
    world = iso.distribute.init(name)
    found = measured(world, int(sys.argv[2]), int(sys.argv[3]))
    if not world.rank:
        print("RESULT " + json.dumps(found), flush=True)
