"""`make bench`: print every table, or those named on the command line."""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("ONEDNN_JIT_PROFILE", "0")

import sys

from .command import main

if __name__ == "__main__":
    installed = __package__ == "isomorph_benchmarks"
    sys.exit(main(prog="isomorph bench" if installed else f"python -m {__package__}"))
