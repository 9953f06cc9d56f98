"""Less memory for more time: functions that are computed again in the backward pass."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any

from ..compile.kept_programs import AROUND
from ..core import tree
from ..core.code_readers import constant
from ..core.dispatch import backend_of, check_callable, find_backend
from .captured import hoist
from .custom import gradients_of, ruled, unseen

if TYPE_CHECKING:
    from ..types.array_types import P, R

# True while a function runs that will be computed again. It must not change any state.
AGAIN: ContextVar[bool] = ContextVar("isomorph.again", default=False)
AROUND.append(AGAIN.get)


@constant
def is_repeated() -> bool:
    """Whether the running function will be computed again in the backward pass."""
    return AGAIN.get()


def checkpoint(func: Callable[P, R]) -> Callable[P, R]:
    """`func`, but only its arguments are kept for the gradient. The values in between are computed
    again in the backward pass, which takes less memory and more time.

    Gradients reach the arguments and the arrays that `func` captures in its closure, also inside
    objects and functions that it captures; a global array under differentiation raises. `func` must
    be pure: what it writes to its closure is lost. Torch's own random generator is reset, so the
    second run draws the same numbers; other random numbers should use explicit keys. A module that
    changes its state inside `func` raises.

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
    """`checkpoint` by a custom rule: only the arguments and captured arrays are saved, and the
    backward pass runs `func` again.
    """
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
