"""Keeps the memory of a test process small: what frameworks keep for a next call is dropped when it
has become much. Compiled programs of JAX take most of it.
"""

import ctypes
import gc
import sys
from pathlib import Path

LIMIT = 2200  # MB that a process may hold before anything is dropped, which takes a second
MORE = 500  # MB on top of what is left then, until the next time
PAGE = 4096 / 2**20


def resident():
    """The memory of this process in MB; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE
    except OSError:
        return 0


def drop():
    """Drop what can be made again."""
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()
    if "torch" in sys.modules:
        sys.modules["torch"].compiler.reset()
    if "tensorflow" in sys.modules:
        from tensorflow.python.eager import context

        context.context().clear_kernel_cache()
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)  # gives free memory back to the system


class Keeper:
    """Drops once more than LIMIT is held, and again once MORE has come to what was left."""

    def __init__(self):
        self.limit = LIMIT

    def look(self):
        if resident() > self.limit:
            drop()
            self.limit = max(LIMIT, resident() + MORE)
