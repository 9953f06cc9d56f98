"""Programs that eager loops and transforms keep, so that a call compiles once and not each time.

A loop or transform is mostly called with a function that was defined just before, and frameworks
keep compiled programs by function. Here they are kept by what the function depends on, which
`faithful` reads: the same code with equal numbers in its closure is the same program, and arrays
are its arguments. What cannot be read faithfully, what cannot be traced, and what changes at each
call runs as it would without this module, and so does every call that raises: the error is that of
the plain call.

The programs hold neither functions nor arrays of the caller. While one is traced, the call is in
`CURRENT`. Loops and transforms inside it are parts of it.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable
from contextvars import ContextVar
from threading import Lock
from typing import Any

from ..core import tree
from ..core.default_backend import HOME
from ..core.dispatch import NUMBERS, find_backend
from ..core.gradient_mode import is_on
from .faithful import Reading, Unreadable
from .slow_compilation import noticed

PROGRAMS, CALLS = 64, 1024  # how many are remembered
# A function whose numbers or shapes change is compiled so often at once; then only for those that
# come a second time, and never more often than there are programs.
AT_ONCE = 8
CURRENT: ContextVar[Reading | None] = ContextVar("isomorph.kept", default=None)
# Settings that change what a function computes; each entry is read at every call.
AROUND: list[Callable[[], Any]] = [HOME.get, is_on]
# Where no programs are kept: inside others, and where a call must run as it is.
STOPS: list[Callable[[], Any]] = [lambda: CURRENT.get() is not None]


class Recent(OrderedDict[Any, Any]):
    """A dict of the entries that were used last."""

    def __init__(self, size: int):
        super().__init__()
        self.size, self.lock = size, Lock()

    def find(self, key: Any) -> Any:
        with self.lock:
            if key in self:
                self.move_to_end(key)
                return self[key]
        return None

    def put(self, key: Any, x: Any) -> None:
        with self.lock:
            self[key] = x
            while len(self) > self.size:
                self.popitem(last=False)


class Program:
    """A compiled function of arrays, and how its results become the nest that the call returns."""

    def __init__(self, run: Callable[..., Any], after: dict[str, Any], pinned: list[Any]):
        self.run, self.after, self.pinned = run, after, pinned

    def __call__(self, reading: Reading) -> Any:
        token = CURRENT.set(reading)
        try:
            arrays = self.run(*reading.arrays)
        finally:
            CURRENT.reset(token)
        whole = list(self.after["others"])
        for i, x in zip(self.after["where"], arrays):
            whole[i] = x
        return tree.unflatten(self.after["form"], whole)


class Family:
    """How many programs were made for functions of the same code, and whether that failed."""

    programs = 0
    is_refused = False


RUNS = Recent(PROGRAMS)
FAMILIES = Recent(CALLS)
SEEN = Recent(CALLS)


def kept(xp: Any, plain: Callable[..., Any], nest: tuple, at_once: bool = True) -> Any:
    """`plain(*nest)`, by a kept program of the backend where that gives the same.

    The nest has the functions and arrays of the call; `plain` itself captures nothing. A program is
    made at the first call, or, unless `at_once`, at the second one like it.
    """
    if not xp.keeps_programs() or any(stop() for stop in STOPS):
        return plain(*nest)
    try:
        reading = Reading(nest)
    except (Unreadable, RecursionError):
        return plain(*nest)
    if not reading.arrays or any(find_backend(x) is not xp for x in reading.arrays):
        return plain(*nest)
    around = tuple(setting() for setting in AROUND)
    key = (plain, reading.key, xp.kept_signature(reading.arrays), around)
    program = RUNS.find(key)
    if program is None:
        if not _may_compile(xp, plain, reading, key, at_once):
            return plain(*nest)
        with noticed(next(filter(callable, nest)), xp.name):
            program = _program(xp, plain, reading)
            if program is not None:
                with contextlib.suppress(Exception):  # some programs compile at this call
                    out = program(reading)
                    RUNS.put(key, program)
                    return out
        return _without(xp, plain, nest, reading, key)
    try:
        return program(reading)
    except Exception:
        return _without(xp, plain, nest, reading, key)


def _without(xp: Any, plain: Callable, nest: tuple, reading: Reading, key: Any) -> Any:
    """`plain(*nest)` after a program failed: it raises what it would raise without programs. If it
    does not, the function is one that only runs as it is.
    """
    out = plain(*nest)
    _family(xp, plain, reading).is_refused = True
    RUNS.pop(key, None)
    return out


def keeper(nest: Any) -> Any:
    """The backend of all arrays among the leaves, if it keeps programs; else None."""
    found = None
    for x in tree.flatten_whole(nest)[0]:
        backend = find_backend(x)
        if backend is not None:
            if found is not None and backend is not found:
                return None
            found = backend
    return found if found is not None and found.keeps_programs() else None  # pyright: ignore


def _family(xp: Any, plain: Callable, reading: Reading) -> Family:
    key = (xp.name, plain, tuple(reading.codes))
    family = FAMILIES.find(key)
    if family is None:
        family = Family()
        FAMILIES.put(key, family)
    return family


def _may_compile(xp: Any, plain: Callable, reading: Reading, key: Any, at_once: bool) -> bool:
    family = _family(xp, plain, reading)
    if family.is_refused or family.programs >= PROGRAMS:
        return False
    if not (at_once and family.programs < AT_ONCE) and not SEEN.find(key):
        SEEN.put(key, True)
        return False
    family.programs += 1
    return True


def _program(xp: Any, plain: Callable, reading: Reading) -> Program | None:
    """The program, traced; None if the function cannot be traced, or writes to what it sees."""
    after: dict[str, Any] = {}

    def flat(*arrays: Any) -> tuple:
        now = CURRENT.get()
        assert now is not None, "traced outside of a call"
        out = plain(*now.built(list(arrays)))
        leaves, form = tree.flatten_whole(out)
        where = [i for i, x in enumerate(leaves) if find_backend(x) is xp]
        others = [None if i in where else x for i, x in enumerate(leaves)]
        if any(x is not None and type(x) not in (*NUMBERS, str) for x in others):
            raise Unreadable("an output that is not an array")
        if not now.is_unchanged():
            raise Unreadable("a function that writes to a list or dict from outside")
        after.update(form=form, where=where, others=others)
        return tuple(leaves[i] for i in where)

    flat.__name__ = flat.__qualname__ = getattr(plain, "__name__", "kept").strip("_")
    token = CURRENT.set(reading)
    try:
        run = xp.kept_program(flat, reading.arrays)
    except Exception:  # whatever it is, the plain call raises it, or has none
        return None
    finally:
        CURRENT.reset(token)
    return None if run is None else Program(run, after, reading.pinned)
