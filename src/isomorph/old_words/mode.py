"""Whether a module's variables are differentiated: the mode that `core/gradient_mode.py` keeps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..core.gradient_mode import MODES, is_on


def with_grads(*, with_grads: bool | None = None) -> bool:
    """`with_grads` if it is given, else the current mode, which is True until it is set.

    >>> iso.with_grads(), iso.with_grads(with_grads=False)
    (True, False)
    """
    if with_grads is not None:
        return _flag("with_grads", with_grads)
    return is_on()


def set_with_grads(flag: bool, /) -> None:
    """Set the mode in this thread or task until `unset_with_grads` is called; calls can be nested.

    >>> iso.set_with_grads(False)
    >>> iso.with_grads()
    False
    >>> iso.unset_with_grads()
    """
    MODES.set((*MODES.get(), _flag("set_with_grads", flag)))


def unset_with_grads() -> None:
    """Undo the last `set_with_grads`; if there is none, nothing changes.

    >>> iso.unset_with_grads()
    >>> iso.with_grads()
    True
    """
    MODES.set(MODES.get()[:-1])


@contextmanager
def gradient_tracking(flag: bool, /) -> Iterator[None]:
    """Within the block the mode is `flag`; afterwards the previous mode is restored, also if the
    block raises.

    >>> with iso.gradient_tracking(False):
    ...     iso.with_grads()
    False
    """
    token = MODES.set((*MODES.get(), _flag("gradient_tracking", flag)))
    try:
        yield
    finally:
        MODES.reset(token)


def _flag(name: str, flag: Any) -> bool:
    if not isinstance(flag, bool):
        raise TypeError(f"{name}: needed True or False, got {flag!r}")
    return flag
