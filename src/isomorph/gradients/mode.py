"""Whether a module's variables are differentiated: a stack of flags in a context variable.

Other threads and tasks do not see the mode, and a block that raises restores it. It decides one
thing only: whether a module's `forward` gets the module's variables unchanged or detached.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..compile.kept_programs import AROUND
from ..core.code_readers import constant
from .transforms import stop_gradient

MODES: ContextVar[tuple[bool, ...]] = ContextVar("isomorph.with_grads", default=())


def with_grads(*, with_grads: bool | None = None) -> bool:
    """`with_grads` if it is given, else the current mode, which is True until it is set.

    >>> iso.with_grads(), iso.with_grads(with_grads=False)
    (True, False)
    """
    if with_grads is not None:
        return _flag("with_grads", with_grads)
    modes = MODES.get()
    return modes[-1] if modes else True


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


@constant
def is_off() -> bool:
    """Whether the mode is False."""
    modes = MODES.get()
    return bool(modes) and not modes[-1]


def variables(nest: Any) -> Any:
    """A module's variables for its `forward`: detached while the mode is False."""
    return nest if with_grads() else stop_gradient(nest, preserve_type=False)


def _flag(name: str, flag: Any) -> bool:
    if not isinstance(flag, bool):
        raise TypeError(f"{name}: needed True or False, got {flag!r}")
    return flag


AROUND.append(with_grads)  # a kept program computes what its mode says
