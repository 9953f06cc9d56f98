"""Whether a run is complete: every session of it finished, every part of it was recorded, and no
sample left a test out.
"""

from __future__ import annotations

import json
import re
import sqlite3
from typing import NamedTuple

from .states import NOT_SAMPLED
from .store import Store


class Sample(NamedTuple):
    """How many tests of a run a sample drew."""

    drawn: int
    of: int
    seeds: list[str]

    def counts(self) -> str:
        seeds = f"seed{'s' * (len(self.seeds) > 1)} {', '.join(self.seeds)}"
        return f"{self.drawn:,} of {self.of:,} ({seeds})"

    def __str__(self) -> str:
        return f"sampled: {self.counts()}"


def complete(store: Store, run: int) -> bool:
    return finished(store, run) and not sample(store, run) and not parts(store, run)


def finished(store: Store, run: int) -> bool:
    """Whether every job of a run finished and ran all that it planned."""
    jobs = store.db.execute("SELECT min(complete) FROM job WHERE run = ?", (run,)).fetchone()[0]
    return bool(jobs) and not store.planned(run)


def sample(store: Store, run: int) -> Sample | None:
    """What a sample drew; None if there was no sample, or if every test ran in some session."""
    left, of = store.db.execute(
        f"SELECT sum(out), count(*) FROM (SELECT min(state = {NOT_SAMPLED}) AS out FROM"
        " (SELECT test, backend, state FROM result JOIN cell USING (cell) WHERE run = ?1"
        " UNION ALL SELECT test, backend, 0 FROM plan WHERE run = ?1) GROUP BY test, backend)",
        (run,),
    ).fetchone()
    if not left:
        return None
    return Sample(of - left, of, sorted({facts["seed"] for facts in _facts(store, run, "seed")}))


def parts(store: Store, run: int) -> str:
    """Which parts of a run there are, as "part 2 of 6", if others are missing; else ''."""
    found: dict[str, dict[int, set[int]]] = {}  # device -> number of parts -> those recorded
    for facts in _facts(store, run, "part"):
        number, of = map(int, facts["part"].split("/"))
        found.setdefault(facts.get("device", ""), {}).setdefault(of, set()).add(number)
    return "; ".join(
        f"part{'s' * (len(seen) > 1)} {', '.join(map(str, sorted(seen)))} of {of}"
        + (f" on {device}" if device else "")
        for device, by_number in found.items()
        if all(len(seen) < of for of, seen in by_number.items())
        for of, seen in by_number.items()
    )


def _facts(store: Store, run: int, name: str) -> list[dict[str, str]]:
    """The facts of the sessions that have one of this name."""
    every = [json.loads(job["facts"] or "{}") for job in store.jobs(run)]
    return [facts for facts in every if name in facts]


def part(text: str) -> str:
    """The part that was asked for; '' if none was.

    >>> part("2/6"), part("")
    ('2/6', '')
    """
    found = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", text)
    if text and not (found and int(found[1]) <= int(found[2])):
        raise ValueError(f"--scoreboard-part: needed a part such as 2/6, got {text!r}")
    return text


def before(store: Store, run: int, whole: bool = False) -> sqlite3.Row | None:
    """The run before `run`, or None; with `whole`, the last one that is complete, if there is one.
    Run 0, the imported seeds, counts as a run.
    """
    runs = store.runs()
    at = [row["run"] for row in runs].index(run)
    earlier = runs[:at][::-1]
    last = next((row for row in earlier if whole and complete(store, row["run"])), None)
    return last or next(iter(earlier), None)
