"""The progress of a run per backend: a live table on a terminal with rich, else plain lines."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from . import states
from .config import Config
from .store import Planned

EVERY = 30.0  # seconds between plain lines


class Progress:
    def __init__(self, config: pytest.Config, settings: Config) -> None:
        self.config, self.order = config, list(settings.columns)
        self.planned: Counter[str] = Counter()
        self.ran: dict[str, Counter[int]] = {}
        self.told = time.monotonic()
        self.screen: Any = None
        self.live = self._terminal()
        # pytest captures stdout while a test runs: the table writes to the terminal directly.
        self.terminal = os.dup(sys.stdout.fileno()) if self.live else None

    def _terminal(self) -> bool:
        if not sys.stdout.isatty() or int(self.config.getoption("verbose") or 0) > 0:
            return False
        try:
            import rich.live  # noqa: F401
        except ImportError:
            return False
        return True

    def total(self, planned: Iterable[Planned]) -> None:
        self.planned = Counter(p.backend for p in planned)
        if self.terminal is not None and self.screen is None:
            from rich.console import Console
            from rich.live import Live

            reporter = self.config.pluginmanager.get_plugin("terminalreporter")
            if reporter is not None:
                reporter.showfspath = False  # file names would break the table
            file = open(self.terminal, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
            self.screen = Live(
                self._table(),
                console=Console(file=file, force_terminal=True),
                refresh_per_second=4,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self.screen.start()

    def count(self, backend: str, state: int) -> None:
        self.ran.setdefault(backend, Counter())[state] += 1
        now = time.monotonic()
        if self.screen is not None:
            if now - self.told > 0.25:
                self.told = now
                self.screen.update(self._table())
        elif not self.live and now - self.told > EVERY:
            self.told = now
            reporter = self.config.pluginmanager.get_plugin("terminalreporter")
            if reporter is not None:
                reporter.ensure_newline()
                reporter.write_line(" | ".join(self.lines()))

    def stop(self) -> None:
        if self.screen is not None:
            self.screen.stop()
            self.screen = None
        if self.terminal is not None:
            os.close(self.terminal)
            self.terminal = None

    def lines(self) -> list[str]:
        """One line per backend; every number has its word."""
        lines = []
        for name in self._names():
            ran = self.ran.get(name, Counter())
            parts = [
                f"{ran[s.code]} {s.word}"
                for s in sorted(states.STATES, key=lambda s: s.rank)
                if ran[s.code]
            ]
            total = max(self.planned[name], sum(ran.values()))
            lines.append(f"{name or 'no backend'} {sum(ran.values())}/{total}: {', '.join(parts)}")
        return lines

    def _names(self) -> list[str]:
        known = set(self.planned) | set(self.ran)
        first = [name for name in self.order if name in known]
        return first + sorted(known - set(first))

    def _table(self) -> Any:
        from rich.table import Table

        table = Table(title="scoreboard", title_justify="left")
        for head in ("backend", "done", "green", "red", "other"):
            table.add_column(head, justify="left" if head == "backend" else "right")
        for name in self._names():
            ran = self.ran.get(name, Counter())
            red = sum(n for code, n in ran.items() if states.red(code))
            table.add_row(
                name or "no backend",
                f"{sum(ran.values())}/{self.planned[name]}",
                f"[green]✓ {ran[states.PASSED]}[/]",
                f"[bold red]✗ {red}[/]" if red else "0",
                str(sum(ran.values()) - red - ran[states.PASSED]),
            )
        return table
