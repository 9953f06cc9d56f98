"""The slow-compilation warning: the first call of a compiled function may take seconds or minutes,
and looks like a program that hangs.

The warning goes to the logger `isomorph`, so it is shown even where logging is not set up;
`logging.getLogger("isomorph").setLevel("ERROR")` turns it off. A thread that lives as long as the
compilation writes it; calls of compiled programs do not come here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event, Thread, get_ident
from time import perf_counter
from typing import Any

LOG = logging.getLogger("isomorph")
TIMES: MutableMapping[str, float] = {}  # how long compilations took; `iso.cache` keeps it in a file
PATIENCE: ContextVar[float] = ContextVar("isomorph.patience", default=5.0)  # seconds


class Notice:
    """The compilation of one program."""

    def __init__(self, func: Callable[..., Any], backend: str):
        self.what = f"{name_of(func)} for {backend}"
        self.known = f"{getattr(func, '__module__', None)} {self.what}"
        self.began = perf_counter()
        self.spoke = False
        self.over = Event()
        name, args = f"isomorph compiling {self.what}", (PATIENCE.get(),)
        self.thread = Thread(target=self._watch, args=args, name=name, daemon=True)
        self.thread.start()

    def _watch(self, patience: float) -> None:
        """Warn when it takes long, and again after twice the time."""
        while not self.over.wait(self.began + patience - perf_counter()):
            self.spoke = True
            before = TIMES.get(self.known)
            last = "" if before is None else f"; it took {before:.3g} s last time"
            LOG.warning("isomorph: still compiling %s after %.3g s%s", self.what, patience, last)
            patience *= 2

    def end(self, done: bool) -> None:
        """Log that the compilation ended, if the warning was logged before."""
        self.over.set()
        self.thread.join()
        seconds = perf_counter() - self.began
        if self.spoke:
            word = "compiled" if done else "gave up compiling"
            LOG.warning("isomorph: %s %s in %.3g s", word, self.what, seconds)
            if done:
                TIMES[self.known] = seconds


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
