"""Arrays that are read-only for some time, and whether they can be made writeable again."""

from __future__ import annotations

from typing import Any

from numpy import ndarray

TRIES = 1000


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
