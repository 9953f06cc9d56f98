"""Private names of a framework: each backend lists those it uses, once, in `private.py`.

A missing name disables only what needs it. Namespaces, gradients and layers work without it, by a
slower or stricter fallback; anything else raises an error that names the versions it was made for.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from operator import attrgetter
from typing import Any, NamedTuple


class Name(NamedTuple):
    """The module of a name, its purpose, its replacement if it is missing (None: what needs it
    raises), and the first version in which it was seen.
    """

    module: str
    attribute: str
    use: str
    instead: Any = None
    since: str = ""


class Gone(NotImplementedError):
    """Raised by functions that need a name which this version of a framework does not have."""


class Names:
    """The private names of one framework, seen in some of its versions."""

    def __init__(self, framework: str, seen: str, names: Mapping[str, Name]):
        self.framework, self.seen, self.names = framework, seen, names

    def found(self, word: str) -> Any:
        """The value of a name; an ImportError or AttributeError if it is missing."""
        name = self.names[word]
        return attrgetter(name.attribute)(import_module(name.module))

    def first(self, *words: str) -> Any:
        """The value of the first of some names that exists; None if all are missing."""
        for word in words:
            try:
                return self.found(word)
            except (ImportError, AttributeError):  # moved
                continue
        return None

    def get(self, module: dict[str, Any], word: str) -> Any:
        """The value of a module's attribute of that name, which is cached in the module."""
        if word not in self.names:
            raise AttributeError(f"module {module['__name__']!r} has no attribute {word!r}")
        try:
            value = self.found(word)
        except (ImportError, AttributeError):
            if not self.is_newer(word):
                warnings.warn(self.said(word), stacklevel=3)
            instead = self.names[word].instead
            value = self._refusing(word) if instead is None else instead
        module[word] = value
        return value

    def is_newer(self, word: str) -> bool:
        """Whether the installed version is older than the name: then it is missed by nobody."""
        first, installed = (
            [int(part) for part in re.findall(r"\d+", version)[:2]]
            for version in (self.names[word].since, self.version())
        )
        return installed < first

    def version(self) -> str:
        return getattr(import_module(self.framework), "__version__", "")

    def said(self, word: str) -> str:
        name = self.names[word]
        return (
            f"{name.use}: needed {name.module}.{name.attribute}, which {self.framework} "
            f"{self.version()} does not have; isomorph was made for {self.seen}"
        )

    def _refusing(self, word: str) -> Callable[..., Any]:
        def refuse(*args: Any, **kw: Any) -> Any:
            raise Gone(self.said(word))

        refuse.is_gone = True  # pyright: ignore[reportFunctionMemberAccess]
        return refuse


def is_there(value: Any) -> bool:
    """Whether a name was found, or has a replacement."""
    return not getattr(value, "is_gone", False)
