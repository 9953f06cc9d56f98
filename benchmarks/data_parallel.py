"""A calculation, not a measurement: the step of GPT-2 small with data parallel workers, from the
measured step on one GPU and stated bandwidths. `python -m benchmarks.data_parallel`.
"""

from __future__ import annotations

PARAMETERS = 124_000_000
BYTES = 4 * PARAMETERS  # gradients in float32
STEP = 61.3  # ms on one H200, 32 x 1,024 tokens, bfloat16: results/h200.md
CASES = [
    (8, "NVLink, 450 GB/s", 450.0),
    (64, "network, 50 GB/s a GPU", 50.0),
    (64, "network, 12.5 GB/s a GPU", 12.5),
]


def all_reduce(workers: int, gigabytes: float) -> float:
    """Milliseconds of a ring all-reduce that moves 2 (n - 1) / n of the data over each link."""
    return 1e3 * 2 * (workers - 1) / workers * BYTES / (gigabytes * 1e9)


def main() -> None:
    print("| GPUs | slowest link | all-reduce ms | step ms | of ideal speed |")
    print("|-----:|:-------------|--------------:|--------:|---------------:|")
    for workers, link, gigabytes in CASES:
        more = all_reduce(workers, gigabytes)
        share = STEP / (STEP + more)
        print(f"| {workers} | {link} | {more:.1f} | {STEP + more:.1f} | {share:.0%} |")


if __name__ == "__main__":
    main()
