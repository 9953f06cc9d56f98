"""Whether a module's variables are differentiated: a stack of flags in a context variable.

Other threads and tasks do not see the mode, and a block that raises restores it. It decides one
thing only: whether a module's `forward` gets the module's variables unchanged or detached.
"""

from __future__ import annotations

from contextvars import ContextVar

from .code_readers import constant

MODES: ContextVar[tuple[bool, ...]] = ContextVar("isomorph.with_grads", default=())


def is_on() -> bool:
    """The current mode, which is True until it is set."""
    modes = MODES.get()
    return modes[-1] if modes else True


@constant
def is_off() -> bool:
    """Whether the mode is False."""
    modes = MODES.get()
    return bool(modes) and not modes[-1]
