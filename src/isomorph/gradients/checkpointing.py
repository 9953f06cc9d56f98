"""Memory for time: functions that differentiation computes again on the way back."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any

from .. import tree
from ..code_readers import constant
from ..dispatch import backend_of, find_backend
from .calls import check_callable
from .closures import hoist
from .custom import gradients_of, ruled, unseen

if TYPE_CHECKING:
    from ..array_types import P, R

# Whether a function is running that will be computed again: it may change nothing.
AGAIN: ContextVar[bool] = ContextVar("isomorph.again", default=False)


@constant
def is_repeated() -> bool:
    """Whether what is being computed will be computed again."""
    return AGAIN.get()


def checkpoint(func: Callable[P, R]) -> Callable[P, R]:
    """`func`, of which differentiation keeps the arguments only, and computes the rest anew on the
    way back: less memory, more time.

    Gradients reach the arguments and the arrays that `func` captures in its closure, in objects and
    functions it holds; an array under differentiation that it reaches through a global raises.
    `func` shall be pure: what it writes to its closure is lost. Random numbers of torch's own
    generator are drawn again as they were; others should come from explicit keys. A module that
    changes its state inside raises.

    >>> iso.grad(iso.checkpoint(lambda x: np.sum(np.sin(x) ** 2)))(np.array([0.0]))
    array([0.])
    """
    check_callable("checkpoint", func)

    @wraps(func)
    def call(*args: Any, **kw: Any) -> Any:
        arrays = [x for x in tree.flatten((args, kw))[0] if find_backend(x) is not None]
        arrays = arrays or hoist(func)[0]
        if not arrays:
            return func(*args, **kw)
        token = AGAIN.set(True)
        try:
            return backend_of(*arrays).checkpoint(func, args, kw)
        finally:
            AGAIN.reset(token)

    return call


def recomputed(xp: Any, func: Callable, args: tuple, kw: dict[str, Any]) -> Any:
    """The meaning of `checkpoint`."""
    captured, rebuild = hoist(func)
    again = xp.replay()

    def explicit(captured: list, args: tuple, kw: dict[str, Any]) -> Any:
        with again():
            return rebuild(captured)(*args, **kw)

    def back(saved: tuple, upstream: Any) -> tuple:
        return gradients_of(xp, explicit, saved, upstream)

    forth = lambda *a: (unseen("checkpoint", xp, explicit, a), a)
    run = ruled("checkpoint", explicit, forth, back)
    return run(captured, args, kw)
