"""Run the public conformance suite of the array API standard against our namespaces.

The suite is https://github.com/data-apis/array-api-tests. Check it out with its submodule; this
repository has no copy of it.
Needs `pip install hypothesis ndindex pytest-json-report pytest-xdist`.

    python conformance/run.py numpy jax tensorflow torch --suite ../array-api-tests --baseline

`ledger.toml` lists every test that fails, with the reason. It is two-sided: a failure that is not
listed and a listed test that does not fail are both reported, and the exit status is 1. A test that
fails only for some examples is listed under `may_fail`, with an example that fails; `make test`
checks that these examples still fail. Hypothesis draws the examples from a seed that is new for
each run. The seed is printed, and `--seed` repeats a run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

HERE = str(Path(__file__).resolve().parent)  # where pytest finds the plugin `seed`
LEDGER = Path(HERE, "ledger.toml")
VERSION = "2024.12"
OURS = {
    name: f"exec('from isomorph.core.dispatch import load; xp = load(\"{name}\").namespace')"
    for name in ("numpy", "jax", "torch")
} | {"tensorflow": "exec('from tuple_shapes import xp')"}  # see the docstring of that file
PLAIN = {
    "numpy": "numpy",
    "jax": "jax.numpy",
    "torch": "array_api_compat.torch",
}  # TensorFlow: none
SETTING = {
    "ARRAY_API_TESTS_VERSION": VERSION,
    "JAX_ENABLE_X64": "1",  # without it JAX has no 64-bit types, which the standard requires
    "OMP_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}

Outcomes = dict[str, str]  # test id -> passed, failed or skipped


@dataclass(frozen=True)
class Run:
    """The settings of a run of the suite, and the messages of its failures."""

    suite: Path
    examples: int
    seed: int
    processes: int
    shrink: bool  # whether to search for the smallest example of a failure
    said: dict[str, str]  # module and test id -> the message of a failure


def run_suite(run: Run, module: str) -> Outcomes:
    """Run the suite on the array module `module` and return the outcome of each test."""
    if not (run.suite / "array_api_tests").is_dir():
        raise SystemExit(f"run.py: needed a checkout of array-api-tests, got --suite {run.suite}")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [
            *(sys.executable, "-m", "pytest", "array_api_tests", "-q", "--tb=short"),
            *("-p", "no:cacheprovider", "-p", "seed", "--disable-deadline"),
            *("-n", str(run.processes), "--dist", "worksteal"),
            *(f"--max-examples={run.examples}", f"--hypothesis-seed={run.seed}"),
            *("--json-report", f"--json-report-file={report}"),
            *("--json-report-omit", "collectors", "log", "streams", "warnings", "keywords"),
        ]
        setting = os.environ | SETTING | {"ARRAY_API_TESTS_MODULE": module}
        setting |= {"SUITE_SEED": str(run.seed), "HYPOTHESIS_STORAGE_DIRECTORY": folder}
        setting |= {"SUITE_SHRINK": "1"} if run.shrink else {}
        setting["PYTHONPATH"] = os.pathsep.join(
            (HERE, *filter(None, [os.environ.get("PYTHONPATH")]))
        )
        done = subprocess.run(command, cwd=run.suite, env=setting, capture_output=True, text=True)
        tests = json.loads(report.read_text())["tests"] if report.exists() else []
        if not tests:
            print(done.stdout[-2000:], done.stderr[-2000:], sep="\n", file=sys.stderr)
            return {f"the suite (no tests, exit status {done.returncode})": "failed"}
        for test in tests:
            if outcome(test["outcome"]) == "failed":
                parts = [test.get(part, {}).get("longrepr", "") for part in ("setup", "call")]
                run.said[f"{module} {test['nodeid']}"] = "\n".join(filter(None, parts))
        found = {test["nodeid"]: outcome(test["outcome"]) for test in tests}
        if done.returncode > 1:  # the run did not finish
            found[f"the suite (exit status {done.returncode})"] = "failed"
        return found


def outcome(word: str) -> str:
    """pytest's outcome as one of three: errors are failures, expected failures are skips."""
    return {"passed": "passed", "failed": "failed", "error": "failed"}.get(word, "skipped")


class Known(NamedTuple):
    """A ledger entry: the reason, whether the test always fails, and a pattern of its message."""

    reason: str
    always: bool
    says: str


def read_ledger(backend: str) -> dict[str, Known]:
    """The ledger entries of a backend, by test id."""
    known: dict[str, Known] = {}
    for group in tomllib.loads(LEDGER.read_text()).get(backend, []):
        known |= dict.fromkeys(group.get("tests", ()), Known(group["reason"], True, ""))
        some = Known(group["reason"], False, group.get("says", ""))
        known |= dict.fromkeys(group.get("may_fail", ()), some)
    return known


def compare(backend: str, outcomes: Outcomes, said: dict[str, str]) -> list[str]:
    """Where the ledger and the run disagree; `said` has the messages of the failures."""
    known = read_ledger(backend)
    lines: list[str] = []
    for test in sorted(
        known.keys() | {test for test, word in outcomes.items() if word == "failed"}
    ):
        word, entry = outcomes.get(test, "not there"), known.get(test)
        if entry is None:
            lines.append(f"fails, not in the ledger: {test}")
        elif word == "not there" or (entry.always and word != "failed"):
            lines.append(f"in the ledger, but {word}: {test} ({entry.reason})")
        elif word == "failed" and not re.search(entry.says, said.get(test, "")):
            lines.append(f"fails in another way than the ledger says: {test} ({entry.reason})")
    return [f"{backend}: {line}" for line in lines]


def table(rows: Iterable[tuple[str, Outcomes]]) -> str:
    """The numbers of passed, failed and skipped tests by namespace, as a Markdown table."""
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
        "--examples", type=int, default=25, help="Hypothesis examples per test (default 25)"
    )
    parser.add_argument(
        "--seed", type=int, help="repeat the run with this seed (default: a new one)"
    )
    parser.add_argument("--processes", type=int, default=2, help="number of processes (default 2)")
    parser.add_argument(
        "--shrink", action="store_true", help="search for the smallest example of each failure"
    )
    parser.add_argument(
        "--baseline", action="store_true", help="also run the plain module of each backend"
    )
    parser.add_argument("--save", type=Path, help="write all outcomes and failure messages as JSON")
    args = parser.parse_args()
    seed = random.SystemRandom().randrange(2**32) if args.seed is None else args.seed
    run = Run(args.suite.resolve(), args.examples, seed, args.processes, args.shrink, {})
    print(f"array-api-tests, standard {VERSION}, {run.examples} examples per test, --seed {seed}\n")

    rows: list[tuple[str, Outcomes]] = []
    differences: list[str] = []
    for backend in args.backends:
        modules = {f"isomorph {backend}": OURS[backend]}
        if args.baseline and backend in PLAIN:
            modules[f"plain {PLAIN[backend]}"] = PLAIN[backend]
        for name, module in modules.items():
            outcomes = run_suite(run, module)
            rows.append((name, outcomes))
        said = {k.removeprefix(f"{OURS[backend]} "): v for k, v in run.said.items()}
        differences += compare(backend, dict(rows)[f"isomorph {backend}"], said)
    print(f"{table(rows)}\n")
    print(
        "\n".join(differences)
        or "The ledger agrees: every failure is listed, and every test that must fail failed."
    )
    if args.save:
        found = {"seed": seed, "outcomes": dict(rows), "said": run.said}
        args.save.write_text(json.dumps(found, indent=1))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
