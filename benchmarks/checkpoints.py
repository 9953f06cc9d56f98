"""Saving and loading compared with the safetensors library. Time is measured in turns, peak memory
in separate processes.

`python -m benchmarks.checkpoints [megabytes]` sets another size than 1,000.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

from .tables import Table

BUDGETS = {"seconds": 1.2, "memory": 1.1}
# A peak is the memory that a process reached above what it had with its packages loaded. Peaks are
# measured first, while this process is small: a process starts with the peak of its parent.
CODE = """
import resource, sys
import numpy as np
import isomorph as iso
from safetensors.numpy import load_file, save_file

what, path, megabytes = sys.argv[1], sys.argv[2], int(sys.argv[3])
tensor = lambda: np.ones(megabytes * 1_000_000 // 80, np.float32)
iso.save(path + ".tiny", {"a": np.ones(3)}); iso.load(path + ".tiny")
save_file({"a": np.ones(3)}, path + ".tiny"); load_file(path + ".tiny")


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


before = peak()
if what.startswith("save"):
    nest = {f"layer{i}": tensor() for i in range(20)}
    save_file(nest, path) if what.endswith("theirs") else iso.save(path, nest)
else:
    nest = load_file(path) if what.endswith("theirs") else iso.load(path)
print((peak() - before) / sum(x.nbytes for x in nest.values()))
"""


def _peak(what: str, path: str, megabytes: int) -> float:
    command = [sys.executable, "-c", CODE, what, path, str(megabytes)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def run(megabytes: int = 1000, repeats: int = 5) -> Table:
    import numpy as np
    from safetensors.numpy import load_file, save_file

    import isomorph as iso

    rng, rows = np.random.default_rng(0), []
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = os.path.join(folder, "ours"), os.path.join(folder, "theirs")
        peaks = {
            name: [_peak(f"{name} {who}", os.path.join(folder, who), megabytes)
                   for who in ("ours", "theirs")]
            for name in ("save", "load")
        }  # fmt: skip
        nest = {
            f"layer{i}": rng.standard_normal(megabytes * 1_000_000 // 80, np.float32)
            for i in range(20)
        }  # fmt: skip

        def synced() -> None:
            save_file(nest, theirs)
            with open(theirs, "rb") as file:
                os.fsync(file.fileno())

        calls = {
            "save": (lambda: iso.save(ours, nest), lambda: save_file(nest, theirs), synced),
            "load": (lambda: iso.load(ours), lambda: load_file(theirs)),
        }
        for name, functions in calls.items():
            best = [float("inf")] * len(functions)
            for _ in range(repeats):
                for i, function in enumerate(functions):
                    start = time.perf_counter()
                    kept = function()
                    best[i] = min(best[i], time.perf_counter() - start)
                    del kept
            ratio = best[0] / best[1]
            met = ratio <= BUDGETS["seconds"] and peaks[name][0] <= BUDGETS["memory"]
            safe = f"{best[0] / best[2]:.2f}" if len(best) > 2 else ""
            rows.append([
                f"{name} {megabytes} MB", f"{best[0]:.2f}", f"{best[1]:.2f}", f"{ratio:.2f}",
                safe, f"{peaks[name][0]:.2f}", f"{peaks[name][1]:.2f}", "yes" if met else "NO",
            ])  # fmt: skip
    head = [
        "", "s", "safetensors s", "ratio (1.2)", "ratio to it with fsync", "peak / size (1.1)",
        "safetensors peak", "met",
    ]  # fmt: skip
    return Table(head, rows)


if __name__ == "__main__":
    print(run(*map(int, sys.argv[1:2])).markdown)
