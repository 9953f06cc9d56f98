"""Which tests `make test` runs, and how a run is divided.

`tests/times.json` holds the seconds that each test took in a recorded run of all of them. A test
that takes no longer than ALLOWANCE always runs. One that takes `n` times as long is drawn by every
n-th seed, and at least by every ROUNDS-th, so that ROUNDS seeds in a row draw every test. Of each
test function at least one case runs, and one on each backend where a case takes no longer than
SHARE; and everything marked `whole`. A test that is not in the file is new: it always runs.

`make times` writes the file again.
"""

import json
import math
import os
import platform
import re
import sys
import tomllib
from collections import defaultdict
from datetime import date
from functools import cache
from hashlib import blake2b
from pathlib import Path

from frameworks import BACKENDS

MOVED = Path(__file__).with_name("moved.toml")
TIMES = Path(__file__).with_name("times.json")
FIRST_NAMES = {new: old for old, new in tomllib.loads(MOVED.read_text("utf-8")).items()}  # of files
ALLOWANCE = 0.01  # seconds
SHARE = 0.5  # seconds
ROUNDS = 30
GROUPS = (*BACKENDS, "none")
BACKEND = re.compile(rf"\b({'|'.join(BACKENDS)})\b")
SHORT = 2.0  # seconds; a longer test of `make test` says why (the mark `takes`)


@cache
def recorded():
    """The seconds of each test by its id, without those that took very little."""
    table = json.loads(TIMES.read_text())["seconds"]
    return {
        f"{file}::{name}{case}": seconds
        for file, names in table.items()
        for name, cases in names.items()
        for case, seconds in cases.items()
    }


def seed_of(word):
    """The number of a seed."""
    if not word.isdecimal():
        raise ValueError(f"ISOMORPH_SEED: needed a whole number, got {word!r}")
    return int(word)


def period(seconds, allowance=ALLOWANCE):
    """A test of so many seconds is drawn by one seed in so many."""
    return min(ROUNDS, max(1, math.ceil(seconds / allowance)))


def wait(name, seconds, seed, allowance=ALLOWANCE):
    """How many seeds from this one a test is drawn; 0 if by this one. In a file that was moved, it
    keeps its turn.
    """
    file, _, rest = name.partition("::")
    first = f"{FIRST_NAMES.get(file, file)}::{rest}"
    turn = int.from_bytes(blake2b(first.encode(), digest_size=8).digest(), "big")
    return -(seed + turn) % period(seconds, allowance)


def drawn(ids, seed, always=frozenset(), seconds=None, allowance=ALLOWANCE):
    """The ids that a seed draws, and `always`. A function none of whose cases is drawn gets the one
    whose turn is next of those that take little longer than its shortest; so do the cases of a
    function on a backend, if the shortest takes no longer than SHARE.
    """
    seconds = recorded() if seconds is None else seconds
    functions, on_backends = defaultdict(dict), defaultdict(dict)
    for name in ids:
        turn = wait(name, seconds.get(name, 0.0), seed, allowance)
        function, _, case = name.partition("[")
        on_backends[function, *BACKEND.findall(case)][name] = functions[function][name] = turn
    chosen = set(always)
    for groups, longest in ((on_backends, SHARE), (functions, math.inf)):
        for waits in groups.values():
            due = {name for name, turn in waits.items() if turn == 0}
            least = min(seconds.get(name, 0.0) for name in waits)
            if not due and chosen.isdisjoint(waits) and least <= longest:
                short = [name for name in waits if seconds.get(name, 0.0) <= 1.5 * least]
                due = {min(short, key=waits.__getitem__)}
            chosen |= due
    return chosen


def part_of(ids, part, parts, seconds=None):
    """Part number `part` (from 1) of all tests in their order, divided by recorded time."""
    seconds = recorded() if seconds is None else seconds
    each = [seconds.get(name, ALLOWANCE / 3) for name in ids]
    total, before, chosen = sum(each), 0.0, set()
    for name, time in zip(ids, each):
        if int((before + time / 2) / total * parts) == part - 1:
            chosen.add(name)
        before += time
    return chosen


def part_and_parts(text):
    """`2/6` as (2, 6)."""
    part, _, parts = text.partition("/")
    if part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts):
        return int(part), int(parts)
    raise ValueError(f"--part: needed one of some parts, like 2/6, got {text!r}")


def share_of(backend, part):
    """What a run is of all tests, as a part of a number of parts: `--backend` is one of five, for
    each backend and for the tests without one.
    """
    share, shares = part_and_parts(part or "1/1")
    if backend:
        share, shares = share + shares * GROUPS.index(backend), shares * len(GROUPS)
    return f"{share}/{shares}" if shares > 1 else ""


def main():
    """Write the file from what `scoreboard slowest --json -` prints. Tests that did not
    run keep the times that they had, if they are still there.
    """
    seconds = (recorded() if TIMES.exists() else {}) | json.load(sys.stdin)
    table = defaultdict(lambda: defaultdict(dict))
    for name in sorted(seconds):
        if seconds[name] >= ALLOWANCE and is_there(name):
            file, _, rest = name.partition("::")
            test, bracket, case = rest.partition("[")
            table[file][test][bracket + case] = float(f"{seconds[name]:.2g}")
    about = {"machine": platform.machine(), "cores": os.cpu_count(), "date": str(date.today())}
    files = ",\n".join(f"{json.dumps(file)}: {lines_of(table[file])}" for file in sorted(table))
    TIMES.write_text(f'{{"about": {json.dumps(about)},\n"seconds": {{\n{files}}}}}\n')


def is_there(name):
    """Whether there is a test function of that name."""
    file, _, test = name.partition("[")[0].partition("::")
    return f"def {test.rpartition('::')[2]}(" in text_of(file)


@cache
def text_of(file):
    path = TIMES.parents[1] / file
    return path.read_text("utf-8") if path.exists() else ""


def lines_of(tests):
    """A line for each test function."""
    lines = (f"  {json.dumps(test)}: {json.dumps(tests[test])}" for test in sorted(tests))
    return "{\n" + ",\n".join(lines) + "}"


if __name__ == "__main__":
    main()
