"""How a function of SciPy is replaced: for traced arguments only."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn

from ..backends.numpy.nested import gathered, holds_traced


def replaces(theirs: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates a version of `theirs` for traced arguments, with SciPy's parameters. The result
    calls `theirs` if no argument is traced. Lists that hold traced values arrive as arrays.
    """

    def register(body: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(theirs)
        def call(*args: Any, **kw: Any) -> Any:
            if not any(map(holds_traced, args)) and not any(map(holds_traced, kw.values())):
                return theirs(*args, **kw)
            return body(*map(_array, args), **{word: _array(x) for word, x in kw.items()})

        return call

    return register


def _array(x: Any) -> Any:
    return gathered(x) if isinstance(x, list) and holds_traced(x) else x


def refuse(name: str, what: str = "", remedy: str = "") -> NoReturn:
    """Raise because a function, or an argument of it, has no derivative here."""
    raise NotImplementedError(
        f"isomorph.scipy.{name}{what}: no derivative rule; "
        + (remedy or "use iso.stop_gradient(x) where no gradient should flow")
        + ", or iso.host_function with a derivative of your own"
    )
