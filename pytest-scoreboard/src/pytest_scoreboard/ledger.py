"""The two-sided ledger: expected failures, each with a reason and a date, in a TOML file. An
expected failure is yellow; a failure that is not in the file is red, and so is an entry that
passes. `scoreboard ledger` writes it.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

NEEDED = ("suite", "test", "backend", "reason", "since")


@dataclass(frozen=True)
class Expected:
    suite: str
    test: str
    backend: str
    reason: str
    since: str
    variant: str = "*"  # the id of the other parameters; * means all


@dataclass(frozen=True)
class Ledger:
    entries: tuple[Expected, ...] = ()

    @classmethod
    def read(cls, path: Path) -> Ledger:
        if not path.is_file():
            return cls()
        entries = []
        try:
            said = tomllib.loads(path.read_text("utf-8")).get("expected", [])
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{path}: {error}") from error
        for i, entry in enumerate(said if isinstance(said, list) else [said]):
            if not isinstance(entry, dict):
                raise ValueError(f"{path}: needed [[expected]] tables, got expected = {said!r}")
            if missing := [k for k in NEEDED if not entry.get(k)]:
                raise ValueError(
                    f"{path}: entry {i + 1} of [[expected]] needed {', '.join(missing)}, "
                    f"got {entry}"
                )
            if unknown := sorted(set(entry) - {*NEEDED, "variant"}):
                raise ValueError(
                    f"{path}: entry {i + 1} of [[expected]] needed keys among {', '.join(NEEDED)} "
                    f"and variant, got {', '.join(unknown)}"
                )
            entries.append(Expected(**{k: str(v) for k, v in entry.items()}))
        return cls(tuple(entries))

    def find(self, suite: str, test: str, variant: str, backend: str) -> Expected | None:
        """
        >>> one = Expected("suite", "test_a", "jax", "jaxlib 0.9 lacks it", "2026-11-01")
        >>> Ledger((one,)).find("suite", "test_a", "float32", "jax").reason
        'jaxlib 0.9 lacks it'
        """
        for e in self.entries:
            if (e.suite, e.test, e.backend) == (suite, test, backend) and e.variant in (
                "*",
                variant,
            ):
                return e
        return None


def write(path: Path, entries: Iterable[Expected]) -> None:
    """Write the file in a fixed order, so that the same entries give the same file."""
    lines = [
        "# Expected failures of the scoreboard: a failure that is not in here is red, and so is an",
        "# entry that passes. `scoreboard ledger` writes this file; edit the reasons.",
    ]
    for e in sorted(entries, key=lambda e: (e.suite, e.test, e.backend, e.variant)):
        lines.append("\n[[expected]]")
        for key in ("suite", "test", "variant", "backend", "reason", "since"):
            if key != "variant" or e.variant != "*":
                lines.append(f"{key} = {json.dumps(getattr(e, key), ensure_ascii=True)}")
    path.write_text("\n".join(lines) + "\n", "utf-8")
