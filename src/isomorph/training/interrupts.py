"""Ctrl-C during a training."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C is only recorded, so that a step is never cut in two; the second acts as
    usual. Threads other than the main one are never interrupted.
    """
    asked: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.getsignal(signal.SIGINT)
    if before in (None, signal.SIG_IGN):  # not handled by Python, or ignored
        yield lambda: False
        return

    def note(number: int, frame: Any) -> None:
        asked.append(number)
        signal.signal(signal.SIGINT, before)

    try:
        signal.signal(signal.SIGINT, note)
        yield lambda: bool(asked)
    finally:
        signal.signal(signal.SIGINT, before)
