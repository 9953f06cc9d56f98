"""Run the public conformance suite of the array API standard against the namespaces.

The suite is https://github.com/data-apis/array-api-tests, checked out with its submodule; none of
it is kept here. Needs `pip install pytest hypothesis ndindex pytest-json-report`.

    python conformance/run.py numpy jax tensorflow torch --suite ../array-api-tests --baseline

`ledger.toml` lists every test that fails, with the reason. It is two-sided: a failure that is not
listed and a listed test that does not fail are both reported, and the exit status is 1. Hypothesis
draws the examples from a fixed seed (`--derandomize` and `seed.py`), so a run can be repeated. Each
file of the suite is a process of its own: a crash costs one file.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = str(Path(__file__).resolve().parent)  # where pytest finds the plugin `seed`
LEDGER = Path(HERE, "ledger.toml")
VERSION = "2024.12"
OURS = {
    name: f"exec('from isomorph.dispatch import load; xp = load(\"{name}\")')"
    for name in ("numpy", "jax", "torch")
} | {"tensorflow": "exec('from tuple_shapes import xp')"}  # that file says why
PLAIN = {
    "numpy": "numpy",
    "jax": "jax.numpy",
    "torch": "array_api_compat.torch",
}  # TensorFlow: none
SETTING = {
    "ARRAY_API_TESTS_VERSION": VERSION,
    "JAX_ENABLE_X64": "1",  # without it JAX has no 64-bit types, which the standard demands
    "OMP_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}

Outcomes = dict[str, str]  # test id -> passed, failed or skipped


def run_file(module: str, suite: Path, file: str, examples: int) -> Outcomes:
    """The outcome of each test in one file of the suite, against the array module `module`."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [
            *(sys.executable, "-m", "pytest", file, "-q", "--tb=no", "-p", "no:cacheprovider"),
            *("-p", "seed", "--disable-deadline", "--derandomize", f"--max-examples={examples}"),
            *("--json-report", f"--json-report-file={report}"),
            *("--json-report-omit", "collectors", "log", "streams", "warnings", "keywords"),
        ]
        setting = os.environ | SETTING | {"ARRAY_API_TESTS_MODULE": module}
        setting["PYTHONPATH"] = os.pathsep.join(
            (HERE, *filter(None, [os.environ.get("PYTHONPATH")]))
        )
        done = subprocess.run(command, cwd=suite, env=setting, capture_output=True, text=True)
        if not report.exists():
            print(done.stdout[-2000:], done.stderr[-2000:], sep="\n", file=sys.stderr)
            return {f"{file} (no report, exit status {done.returncode})": "failed"}
        tests = json.loads(report.read_text())["tests"]
        if not tests:
            return {f"{file} (no tests, exit status {done.returncode})": "failed"}
        return {test["nodeid"]: outcome(test["outcome"]) for test in tests}


def outcome(word: str) -> str:
    """pytest's word in one of three: an error is a failure, an expected failure is a skip."""
    return {"passed": "passed", "failed": "failed", "error": "failed"}.get(word, "skipped")


def run_suite(module: str, suite: Path, examples: int, processes: int) -> Outcomes:
    """The outcome of each test of the whole suite, the slowest files first."""
    slow = ("special_cases", "operators", "signatures", "array_object", "linalg")
    rank = lambda name: next((i for i, part in enumerate(slow) if part in name), len(slow))
    files = sorted(
        (f"array_api_tests/{p.name}" for p in suite.glob("array_api_tests/test_*.py")), key=rank
    )
    if not files:
        raise SystemExit(f"run.py: needed a checkout of array-api-tests at --suite, got {suite}")
    with ThreadPoolExecutor(processes) as pool:
        parts = pool.map(lambda file: run_file(module, suite, file, examples), files)
        return {test: word for part in parts for test, word in part.items()}


def read_ledger(backend: str) -> dict[str, str]:
    """test id -> the reason why it fails on this backend."""
    groups = tomllib.loads(LEDGER.read_text()).get(backend, [])
    return {test: group["reason"] for group in groups for test in group["tests"]}


def compare(backend: str, outcomes: Outcomes) -> list[str]:
    """What the ledger and the run disagree on."""
    known = read_ledger(backend)
    failed = {test for test, word in outcomes.items() if word == "failed"}
    new = [f"fails, not in the ledger: {test}" for test in sorted(failed - known.keys())]
    old = [
        f"in the ledger, but {outcomes.get(test, 'not there')}: {test} ({known[test]})"
        for test in sorted(known.keys() - failed)
    ]
    return [f"{backend}: {line}" for line in new + old]


def table(rows: Iterable[tuple[str, Outcomes]]) -> str:
    """Passed, failed and skipped by namespace, as markdown."""
    lines = ["| namespace | passed | failed | skipped |", "|---|---|---|---|"]
    for name, outcomes in rows:
        count = Counter(outcomes.values())
        lines.append(f"| {name} | {count['passed']} | {count['failed']} | {count['skipped']} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the array API conformance suite.")
    parser.add_argument("backends", nargs="+", choices=("numpy", "jax", "tensorflow", "torch"))
    parser.add_argument(
        "--suite", type=Path, required=True, help="checkout of data-apis/array-api-tests"
    )
    parser.add_argument(
        "--examples", type=int, default=5, help="Hypothesis examples a test (default 5)"
    )
    parser.add_argument("--processes", type=int, default=2, help="files run at once (default 2)")
    parser.add_argument(
        "--baseline", action="store_true", help="also run the plain module of each backend"
    )
    parser.add_argument("--save", type=Path, help="write every outcome to this file, as JSON")
    args = parser.parse_args()

    rows: list[tuple[str, Outcomes]] = []
    differences: list[str] = []
    for backend in args.backends:
        modules = {f"isomorph {backend}": OURS[backend]}
        if args.baseline and backend in PLAIN:
            modules[f"plain {PLAIN[backend]}"] = PLAIN[backend]
        for name, module in modules.items():
            outcomes = run_suite(module, args.suite.resolve(), args.examples, args.processes)
            rows.append((name, outcomes))
        differences += compare(backend, dict(rows)[f"isomorph {backend}"])
    print(
        f"array-api-tests, standard {VERSION}, {args.examples} examples a test\n\n{table(rows)}\n"
    )
    print(
        "\n".join(differences)
        or "The ledger agrees: every failure is listed, every listed test fails."
    )
    if args.save:
        args.save.write_text(json.dumps(dict(rows), indent=1))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
