"""How a function or an object of SciPy is replaced: for traced arguments only."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, NoReturn

from ..backends.numpy.nested import holds_traced
from ..numpy.lists import as_array


def replaces(theirs: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates a version of `theirs` for traced arguments, with SciPy's parameters. The result
    calls `theirs` if no argument is traced. Lists that hold traced values arrive as arrays.
    """

    def register(body: Callable[..., Any]) -> Callable[..., Any]:
        takes_any = any(p.kind is p.VAR_KEYWORD for p in signature(body).parameters.values())
        words = set(signature(theirs).parameters) if takes_any else None

        @wraps(theirs)
        def call(*args: Any, **kw: Any) -> Any:
            if not any(map(holds_traced, args)) and not any(map(holds_traced, kw.values())):
                return theirs(*args, **kw)
            if words is not None and not words.issuperset(kw):
                unknown = ", ".join(sorted(set(kw) - words))
                raise TypeError(f"{theirs.__name__}: got unknown keywords {unknown}")
            # a tuple may be a pair of arguments, as in solve_toeplitz
            arrays = {word: as_array(x, list) for word, x in kw.items()}
            return body(*(as_array(x, list) for x in args), **arrays)

        return call

    return register


class Wrapped:
    """An object of SciPy, `_theirs`, inside one of ours: what ours lacks is SciPy's."""

    _theirs: Any

    def __getattr__(self, name: str) -> Any:
        # while a copy is made, or read from a file, it has no attributes yet
        if name.startswith("__") or "_theirs" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._theirs, name)


def refuse(name: str, what: str = "", remedy: str = "") -> NoReturn:
    """Raise because a function, or an argument of it, has no derivative here."""
    raise NotImplementedError(
        f"isomorph.scipy.{name}{what}: no derivative rule; "
        + (remedy or "use iso.stop_gradient(x) where no gradient should flow")
        + ", or iso.host_function with a derivative of your own"
    )
