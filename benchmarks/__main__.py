"""`make bench`: every table, or those named on the command line."""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import argparse
import platform
from importlib import import_module
from importlib.metadata import version

TABLES = {
    "imports": "Import",
    "calls": "Public call over native call, 8 x 8 float32",
    "tape": "NumPy tape",
    "gradients": "Gradients and optimizer updates over the framework's own",
    "layers": "Layers over the framework's own",
    "layers_tiny": "Layers on tiny arrays: a call over the framework's own",
    "modules": "Modules over the framework's own",
    "checkpoints": "Checkpoints over the safetensors library",
    "scoreboard": "The scoreboard at size",
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []], help="which tables (all)")
    chosen = parser.parse_args().tables or list(TABLES)
    packages = [
        "numpy",
        "jax",
        "tensorflow",
        "torch",
        "array-api-compat",
        "autoray",
        "eagerpy",
        "keras",
        "autograd",
        "safetensors",
    ]
    print(
        f"{platform.machine()}, Python {platform.python_version()}, one thread; "
        + ", ".join(f"{p} {version(p)}" for p in packages)
    )
    for name in chosen:
        print(f"\n## {TABLES[name]}\n\n{import_module(f'.{name}', __package__).run()}", flush=True)


if __name__ == "__main__":
    main()
