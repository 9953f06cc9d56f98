"""Names of a framework that it does not promise: each backend lists its own, once, in `private.py`.

One that is gone takes with it only what needs it. What namespaces, gradients and layers ask has an
answer without it, the careful one; what cannot be done says for which versions it was made.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from operator import attrgetter
from typing import Any, NamedTuple


class Name(NamedTuple):
    """Where a name lives, what it is for, what stands in for it where it is gone (nothing: what
    needs it is refused), and the first version in which it was seen.
    """

    module: str
    attribute: str
    use: str
    instead: Any = None
    since: str = ""


class Gone(NotImplementedError):
    """What needs a name that this version of a framework has not."""


class Names:
    """The unpromised names of one framework, seen in some versions of it."""

    def __init__(self, framework: str, seen: str, names: Mapping[str, Name]):
        self.framework, self.seen, self.names = framework, seen, names

    def found(self, word: str) -> Any:
        """What a name stands for; an ImportError or AttributeError where it is gone."""
        name = self.names[word]
        return attrgetter(name.attribute)(import_module(name.module))

    def first(self, *words: str) -> Any:
        """What the first of some names that is there stands for; None where all are gone."""
        for word in words:
            try:
                return self.found(word)
            except (ImportError, AttributeError):  # moved
                continue
        return None

    def get(self, module: dict[str, Any], word: str) -> Any:
        """The value of a module's attribute of that name, which it keeps from then on."""
        if word not in self.names:
            raise AttributeError(f"module {module['__name__']!r} has no attribute {word!r}")
        try:
            value = self.found(word)
        except (ImportError, AttributeError):
            warnings.warn(self.said(word), stacklevel=3)
            instead = self.names[word].instead
            value = self._refusing(word) if instead is None else instead
        module[word] = value
        return value

    def said(self, word: str) -> str:
        name = self.names[word]
        version = getattr(import_module(self.framework), "__version__", "")
        return (
            f"{name.use}: needed {name.module}.{name.attribute}, which {self.framework} {version} "
            f"has not; isomorph was made for {self.seen}"
        )

    def _refusing(self, word: str) -> Callable[..., Any]:
        def refuse(*args: Any, **kw: Any) -> Any:
            raise Gone(self.said(word))

        refuse.is_gone = True  # pyright: ignore[reportFunctionMemberAccess]
        return refuse


def is_there(value: Any) -> bool:
    """Whether a name was found, or has something in its place."""
    return not getattr(value, "is_gone", False)
