"""Run the tests and the examples of HIPS autograd on isomorph.

autograd is https://github.com/HIPS/autograd; this repository has no copy of it. Check it out. Its
tests import `autograd`, and get the names of `names/autograd`: `autograd.numpy` is
`isomorph.numpy`, `autograd.scipy` is `isomorph.scipy`, and `grad` and the other operators are made
of `iso.vjp` and `iso.jvp`. The checks of gradients are autograd's own.

    python conformance/hips/run.py tests --checkout ../autograd
    python conformance/hips/run.py examples --checkout ../autograd

`ledger.toml` lists every test and example that fails, with the reason. It is two-sided: a failure
that is not listed and a listed one that does not fail are both reported, and the exit status is 1.
The examples need matplotlib. They run unchanged, with made-up images in place of MNIST, until they
end or `--seconds` have passed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as Xml
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = HERE / "names"
# what is no program that differentiates something
NOT_EXAMPLES = ("__init__.py", "data.py", "data_mnist.py")


def setting(checkout: Path) -> dict[str, str]:
    """The environment in which `import autograd` finds our names."""
    path = os.pathsep.join((str(NAMES), *filter(None, [os.environ.get("PYTHONPATH")])))
    return os.environ | {
        "HIPS_AUTOGRAD": str(checkout), "PYTHONPATH": path, "MPLBACKEND": "Agg",
        "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
    }  # fmt: skip


def run_tests(checkout: Path) -> dict[str, str]:
    """The outcome of each test, by its name."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [
            *(sys.executable, "-m", "pytest", ".", "-q", "--tb=no", "-p", "no:cacheprovider"),
            *("-c", os.devnull, "--rootdir", ".", f"--junitxml={report}"),
        ]
        done = subprocess.run(
            command, cwd=checkout / "tests", env=setting(checkout), capture_output=True, text=True
        )
        if not report.exists():
            print(done.stdout[-3000:], done.stderr[-3000:], file=sys.stderr)
            return {f"the suite (no report, exit status {done.returncode})": "failed"}
        found = {}
        for case in Xml.parse(report).iter("testcase"):
            kinds = {child.tag for child in case}
            word = "failed" if kinds & {"failure", "error"} else "passed"
            name = f"{case.get('classname')}::{case.get('name')}"
            found[name] = "skipped" if "skipped" in kinds else word
        return found


def run_examples(checkout: Path, seconds: int, only: list[str]) -> dict[str, str]:
    """The outcome of each example, by the name of its file."""
    folder = checkout / "examples"
    paths = sorted([*folder.glob("*.py"), *folder.glob("fluidsim/*.py")])
    found = {}
    for path in paths:
        name = path.relative_to(folder).as_posix()
        if path.name in NOT_EXAMPLES or (only and name not in only):
            continue
        with tempfile.TemporaryDirectory() as scratch:
            done = subprocess.run(
                [sys.executable, str(HERE / "one_example.py"), str(path), str(seconds)],
                cwd=scratch, env=setting(checkout), capture_output=True, text=True,
            )  # fmt: skip
        said = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
        found[name] = "passed" if done.returncode == 0 else "failed"
        print(f"{found[name]} {name}: {said[-1] if said else ''}", flush=True)
    return found


def read_ledger(part: str) -> dict[str, str]:
    """The tests or examples that fail, with the reasons."""
    groups = tomllib.loads((HERE / "ledger.toml").read_text())[part]
    return {name: group["reason"] for group in groups for name in group["names"]}


def compare(part: str, found: dict[str, str]) -> list[str]:
    """Where the ledger and the run disagree."""
    known = read_ledger(part)
    lines = []
    for name in sorted(known.keys() | found.keys()):
        word = found.get(name, "not there")
        if name not in known and word == "failed":
            lines.append(f"failed, not in the ledger: {name}")
        elif name in known and word not in ("failed", "skipped"):
            lines.append(f"in the ledger, but {word}: {name} ({known[name]})")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description="Run HIPS autograd's tests and examples.")
    parser.add_argument("part", choices=("tests", "examples"))
    parser.add_argument("--checkout", type=Path, required=True, help="checkout of HIPS/autograd")
    parser.add_argument("--seconds", type=int, default=60, help="limit of an example (default 60)")
    parser.add_argument("--only", nargs="*", default=[], help="run only these examples")
    args = parser.parse_args()
    checkout = args.checkout.resolve()
    if not (checkout / "autograd" / "test_util.py").exists():
        raise SystemExit(f"run.py: needed a checkout of HIPS/autograd, got {args.checkout}")
    if args.part == "tests":
        found = run_tests(checkout)
    else:
        found = run_examples(checkout, args.seconds, args.only)
    count = Counter(found.values())
    ledger = read_ledger(args.part)
    inner = [name for name, why in ledger.items() if why.startswith("internals") and name in found]
    print(
        f"HIPS autograd, {args.part}: {len(found)} in all, {count['passed']} passed, "
        f"{count['failed']} failed ({len(inner)} of them about autograd's internals), "
        f"{count['skipped']} skipped"
    )
    lines = compare(args.part, found)
    if args.only:  # what was not run is no difference
        lines = [line for line in lines if ", but not there:" not in line]
    print("\n".join(lines) or "The ledger agrees.")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
