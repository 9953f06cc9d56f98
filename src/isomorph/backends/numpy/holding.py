"""One differentiation, and the arrays that are read-only while its function runs."""

from __future__ import annotations

from itertools import count
from threading import Lock
from typing import Any

import numpy
from numpy import ndarray

from .levels import LEVELS, LIFTED
from .mapped import Mapped

TRIES = 1000
RELEASE = Lock()
COPIED = 1 << 20  # bytes of an array up to which a copy costs little beside computing with it


class Tape:
    """One differentiation: its level, a counter for its nodes, whether its function still runs, and
    the arrays that are read-only meanwhile.
    """

    __slots__ = ("changed", "given", "held", "level", "order", "running")

    def __init__(self) -> None:
        self.level = next(LEVELS)
        self.order = count(0, -1)  # counts down, so that the newest node comes first in a heap
        self.running = True
        self.held: list[ndarray] = []
        self.given: dict[int, ndarray] = {}  # the caller's arrays, by the nodes of the arguments
        self.changed: list[ndarray] = []  # those whose argument was written

    def check(self, x: Any) -> None:
        """Raise if the caller's own array is read where its copy, the argument, was written."""
        if isinstance(x, ndarray) and any(numpy.may_share_memory(x, y) for y in self.changed):
            raise ValueError(
                f"isomorph: an array of shape {x.shape} is an argument, which is a copy and was "
                "written, and it is also captured by the function, which needed the written one; "
                "use the argument alone, or write into np.array(x) of isomorph.numpy"
            )

    def hold(self, x: Any) -> Any:
        """Protect an array that a rule will read again: if it were overwritten before that, the
        gradient would be wrong. The array, and those that own its memory, are made read-only until
        the function returns. What is returned is a copy, which no older view can overwrite, unless
        the array is large.
        """
        y = self._locked(x)
        return x.copy(order="K") if y is x and isinstance(x, ndarray) and x.nbytes <= COPIED else y

    def _locked(self, x: Any) -> Any:
        """`x`, locked; a copy if it is only a part of its memory, or if NumPy could not make the
        memory writeable again.
        """
        if not isinstance(x, ndarray):
            return Mapped(self.hold(x.value), x.tape) if type(x) is Mapped else snapshot(x)
        flags = x.flags
        if not flags.owndata:
            return self._hold_view(x)
        if flags.writeable:
            flags.writeable = False
            self.held.append(x)
        return x

    def _hold_view(self, x: ndarray) -> ndarray:
        writeable = [each for each in (*reversed(owners(x)), x) if each.flags.writeable]
        if not writeable:
            return x
        if x.nbytes < writeable[0].nbytes or not all(map(is_releasable, writeable)):
            return x.copy(order="K")
        for each in writeable:
            each.flags.writeable = False
        self.held += writeable
        return x

    def close(self) -> None:
        """Make the held arrays writeable again. Only one tape does so at a time, because two
        threads may hold parts of one array.
        """
        self.running = False
        with RELEASE:
            for x in self.held:
                release(x)


def snapshot(x: Any) -> Any:
    """A value as it is now: one that an outer transform traces may be written later."""
    kind = type(x)
    return kind(x.value, x.tape, x.node) if kind in LIFTED and kind is not Mapped else x


def release(x: ndarray) -> None:
    """Make an array writeable again, without changing the flags of the arrays that own its memory.
    NumPy refuses this while an owner is read-only, so owners become writeable for a moment. If
    another thread makes one read-only at that moment, this tries again.
    """
    for attempt in range(TRIES):
        try:
            x.flags.writeable = True
            return
        except ValueError:  # a view, while its owner is read-only
            if attempt == TRIES - 1:
                raise
        held = [owner for owner in owners(x) if not owner.flags.writeable]
        try:
            for owner in reversed(held):
                owner.flags.writeable = True
            x.flags.writeable = True
            return
        except ValueError:
            continue
        finally:
            for owner in held:
                owner.flags.writeable = False


def owners(x: ndarray) -> list[ndarray]:
    """The arrays that an array is a view of, the nearest first. Between two of them there may be an
    object that is not an array, as in `sliding_window_view`.
    """
    found = []
    base = x.base
    while base is not None:
        if isinstance(base, ndarray):
            found.append(base)
        base = getattr(base, "base", None)
    return found


def is_releasable(x: ndarray) -> bool:
    """Whether an array can be made writeable again. NumPy refuses this if it knows only the address
    of the memory, as for the memory of a tensor.
    """
    last = x
    while isinstance(last.base, ndarray):
        last = last.base
    if last.base is None:
        return last.flags.owndata
    try:
        with memoryview(last.base) as view:  # type: ignore[arg-type]
            return view.contiguous and not view.readonly
    except TypeError:
        return False


def memory(x: Any) -> Any:
    """The array whose memory it is, if it is a view."""
    while getattr(x, "base", None) is not None:
        x = x.base
    return x
