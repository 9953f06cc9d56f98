"""A word while a program is being compiled for long: the first call of a compiled function may take
seconds or minutes, and looks like a program that hangs.

It goes to the logger `isomorph`, as a warning, so that it is seen where nobody has set up logging;
`logging.getLogger("isomorph").setLevel("ERROR")` turns it off. It comes from a thread that lives as
long as the compiling does; calls of what is compiled already do not pass here.
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
    """One program that is being compiled."""

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
        """Say that it is compiled, if anything was said before."""
        self.timer.cancel()
        self.timer.join()
        if self.spoke:
            word = "compiled" if done else "gave up compiling"
            LOG.warning("isomorph: %s %s in %.3g s", word, self.what, self._seconds())

    def _seconds(self) -> float:
        return perf_counter() - self.began


@contextmanager
def noticed(func: Callable[..., Any], backend: str) -> Iterator[None]:
    """A block in which a program is compiled."""
    notice = Notice(func, backend)
    done = False
    try:
        yield
        done = True
    finally:
        notice.end(done)


def end(notices: dict[int, Notice], done: bool) -> None:
    """End the notice of this thread, if there is one."""
    notice = notices.pop(get_ident(), None)
    if notice is not None:
        notice.end(done)


def name_of(func: Callable[..., Any]) -> str:
    """The name of a function, as it is called where it is written."""
    found = getattr(func, "__qualname__", None) or type(func).__qualname__
    return found.rpartition("<locals>.")[2]
