"""The slow-compilation warning: the first call of a compiled function may take seconds or minutes,
and looks like a program that hangs.

The warning goes to the logger `isomorph`, so it is shown even where logging is not set up;
`logging.getLogger("isomorph").setLevel("ERROR")` turns it off. A thread that lives as long as the
compilation writes it; calls of compiled programs do not come here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Timer, get_ident
from time import perf_counter
from typing import Any

LOG = logging.getLogger("isomorph")
PATIENCE: ContextVar[float] = ContextVar("isomorph.patience", default=5.0)  # seconds


class Notice:
    """The compilation of one program."""

    def __init__(self, func: Callable[..., Any], backend: str):
        self.what = f"{name_of(func)} for {backend}"
        self.began = perf_counter()
        self.spoke = False
        self.timer = Timer(PATIENCE.get(), self._speak)
        self.timer.daemon = True
        self.timer.start()

    def _speak(self) -> None:
        self.spoke = True
        LOG.warning("isomorph: still compiling %s after %.3g s", self.what, self._seconds())

    def end(self, done: bool) -> None:
        """Log that the compilation ended, if the warning was logged before."""
        self.timer.cancel()
        self.timer.join()
        if self.spoke:
            word = "compiled" if done else "gave up compiling"
            LOG.warning("isomorph: %s %s in %.3g s", word, self.what, self._seconds())

    def _seconds(self) -> float:
        return perf_counter() - self.began


@contextmanager
def noticed(func: Callable[..., Any], backend: str) -> Iterator[None]:
    """Around the compilation of a program: warns if it takes long."""
    notice = Notice(func, backend)
    done = False
    try:
        yield
        done = True
    finally:
        notice.end(done)


def end(notices: dict[int, Notice], done: bool) -> None:
    """End this thread's notice, if it has one."""
    notice = notices.pop(get_ident(), None)
    if notice is not None:
        notice.end(done)


def name_of(func: Callable[..., Any]) -> str:
    """The qualified name of a function."""
    found = getattr(func, "__qualname__", None) or type(func).__qualname__
    return found.rpartition("<locals>.")[2]
