"""The command line of the examples: on which backends, how long, and where the picture goes.

python examples/sinkhorn.py                      # on all backends that are installed
python examples/sinkhorn.py numpy torch --quick  # on two of them, in a few seconds
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
from pictures import table

import isomorph as iso


def main(doc, run, show, file):
    """Run an example on each backend that is asked for, print what it found on each, how far that
    is from the first, and the time; write `show(result)` of the first to `file`.

    `run(backend, quick, compiled)` returns a dict of NumPy arrays; its entry "found" is a dict of
    numbers for the table.
    """
    os.environ.setdefault("JAX_ENABLE_X64", "1")  # JAX has no float64 otherwise
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("ONEDNN_JIT_PROFILE", "0")
    known = iso.backends()
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("backends", nargs="*", help="numpy, jax, tensorflow, torch (default: all)")
    parser.add_argument("--quick", action="store_true", help="a short form, for tests")
    parser.add_argument("--eager", action="store_true", help="do not compile")
    parser.add_argument("--out", type=Path, default=Path("pictures"), help="folder for the result")
    given = parser.parse_args()
    for name in given.backends:
        if name not in known or not known[name].installed:
            there = [name for name in known if known[name].installed]
            parser.error(f"needed backends that are installed, of {', '.join(there)}, got {name}")
    results, rows = {}, []
    for name in given.backends or [name for name in known if known[name].installed]:
        began = time.perf_counter()
        results[name] = run(name, given.quick, not given.eager)
        seconds = time.perf_counter() - began
        found, first = results[name]["found"], next(iter(results.values()))["found"]
        numbers = [f"{value:.5g}" for value in found.values()]
        rows.append([name, *numbers, f"{apart(found, first):.0e}", f"{seconds:.1f}"])
    print(table(["backend", *found, "apart", "seconds"], rows))
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / file).write_text(show(next(iter(results.values()))), "utf-8")
    print("\napart: the largest relative difference from the first line")
    print(f"written: {given.out / file}")


def apart(found, first):
    """The largest relative difference between two dicts of numbers."""
    return max(abs(found[k] - first[k]) / max(abs(first[k]), 1e-300) for k in found)


def numbers(nest):
    """The arrays of a nest in NumPy; those without axes as Python's floats."""
    if isinstance(nest, dict):
        return {name: numbers(part) for name, part in nest.items()}
    array = np.asarray(iso.to_numpy(nest))
    return float(array) if array.ndim == 0 else array
