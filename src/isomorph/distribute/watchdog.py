"""A thread that notices when this process waits for others too long, and says who did not come."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

TICK = 0.5  # seconds between two looks
HUNG = 75  # the status with which a process ends that waited in vain


class Exchange(Protocol):
    """How far each process is, where all can read it without the help of the others."""

    def tell(self, count: int) -> None:
        """Say how many meetings this process has come to."""

    def read(self) -> list[int | None]:
        """The counts of all processes, by rank; None for one that cannot be read."""
        ...


class Watchdog:
    """Counts the meetings of this process with the others: reductions, steps. The first meetings of
    a kind may take as long as they want: programs are compiled then.
    """

    def __init__(self, rank: int, size: int, timeout: float, exchange: Exchange | None):
        self.rank, self.size, self.timeout, self.exchange = rank, size, timeout, exchange
        self.count = 0
        self.since: float | None = None
        self.what = ""
        self.known: set[Any] = set()
        self.is_ready: Callable[[], bool] | None = None
        self.over = threading.Event()
        self.thread: threading.Thread | None = None

    @contextmanager
    def watching(self, what: str, program: Any = None) -> Iterator[None]:
        """Within the block, this process meets the others. `program` marks what is compiled at its
        first use.
        """
        if self.exchange is None:
            yield
            return
        if self.thread is None:
            self.thread = threading.Thread(target=self._look, daemon=True, name="isomorph watchdog")
            self.thread.start()
            # before the engine ends: what the thread reads is gone then. Such functions are called
            # in reverse order, and the engine's came first.
            atexit.register(self._stop)
        self.count += 1
        self.what, self.is_ready = what, None
        is_first = program is not None and program not in self.known
        self.since = None if is_first else time.monotonic()
        try:
            yield
        except Exception as error:
            self.since = None
            self._note(error)
            raise
        finally:
            self.since = None
            self.known.add(program)

    def expect(self, is_ready: Callable[[], bool]) -> None:
        """Watch a program that still runs after its call has returned."""
        if self.exchange is not None:
            self.is_ready, self.since = is_ready, time.monotonic()

    def _stop(self) -> None:
        self.over.set()
        if self.thread is not None:
            self.thread.join(10)

    def _look(self) -> None:
        told = -1
        exchange: Any = self.exchange
        while not self.over.wait(TICK):
            try:
                if self.is_ready is not None and self.is_ready():
                    self.is_ready = self.since = None
                if told != self.count:
                    told = self.count
                    exchange.tell(told)
                since = self.since
                if since is not None and time.monotonic() - since > self.timeout:
                    self._end(exchange.read())
            except Exception:  # the engine is gone: what waits for it will say so
                continue

    def _note(self, error: Exception) -> None:
        """Say in an error of the engine who was not there."""
        with suppress(Exception):  # the engine may be gone
            time.sleep(3 * TICK)  # until all have said how far they are
            exchange: Any = self.exchange
            if named := self._late(exchange.read()):
                error.add_note(f"isomorph: rank {self.rank} waited for ranks {named} ({self.what})")

    def _late(self, counts: list[int | None]) -> str:
        """The ranks that have not come to this meeting."""
        late = [r for r, n in enumerate(counts) if r != self.rank and (n is None or n < self.count)]
        return ", ".join(map(str, late))

    def _end(self, counts: list[int | None]) -> None:
        """End this process, unless it has gone on in the meantime."""
        if self.since is None:
            return
        named = self._late(counts) or "unknown"
        print(
            f"isomorph: rank {self.rank} of {self.size} waited {self.timeout:.0f} s for the others "
            f"({self.what}); ranks that did not come: {named}. This process ends now. A longer "
            "wait: iso.distribute.init(timeout=...)",
            file=sys.stderr,
            flush=True,
        )
        os._exit(HUNG)


def of_launcher(rank: int, size: int) -> Exchange | None:
    """The folder of `isomorph launch`, which all processes of the machine can read."""
    folder = os.environ.get("ISOMORPH_LAUNCH")
    return None if folder is None else _Files(Path(folder), rank, size)


class _Files:
    def __init__(self, folder: Path, rank: int, size: int):
        self.folder, self.rank, self.size = folder, rank, size

    def tell(self, count: int) -> None:
        (self.folder / f"at.{self.rank}").write_text(str(count))

    def read(self) -> list[int | None]:
        return [self._of(rank) for rank in range(self.size)]

    def _of(self, rank: int) -> int | None:
        try:
            return int((self.folder / f"at.{rank}").read_text())
        except (OSError, ValueError):  # it has not come to any meeting yet, or writes just now
            return None
