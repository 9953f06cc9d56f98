"""isomorph: gradients for the arrays you already have.

Write a function once over `iso.namespace(x)`; run and differentiate it on NumPy, JAX, TensorFlow
and PyTorch, the caller's own arrays in, the same kind out.
"""

from importlib import import_module as _import
from pkgutil import get_data as _get_data
from typing import Any

from .core.dispatch import prepare as _prepare

# What is public stands in `__init__.pyi`, a line a name: `from .flow import cond as cond`.
_STUB = (_get_data(__name__, "__init__.pyi") or b"").decode()
_LINES = [line.split() for line in _STUB.splitlines() if line.startswith("from ")]
_PLACES = {name: place for _, place, *_, name in _LINES}

# What is imported when it is asked for: most programs need little of it.
_LATER = (
    "distribute",
    "export",
    "linalg",
    "modules",
    "old_words.updates",
    "optimizers",
    "special",
    "training",
)
_RECIPES = ("adam", "adamw", "lamb", "lars", "lion", "rmsprop", "sgd")


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        other = f"; write iso.optimizers.{name}(lr)" if name in _RECIPES else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{other}")
    place = _PLACES[name]
    module = _import(place, __name__)
    if hasattr(module, "__path__"):
        found: Any = _import(f"{place.rstrip('.')}.{name}", __name__)
    else:
        found = getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """What is public."""
    return [*__all__, *(name for name in globals() if name.startswith("__"))]


# `iso.backends` is bound here, after the package of that name: it is the function.
_import(".backends", __name__)
for _name, _place in _PLACES.items():
    if not (_place.strip(".") or _name).startswith(_LATER):
        __getattr__(_name)
_prepare()

__all__ = sorted(name for name in _PLACES if not name.startswith("_"))  # pyright: ignore
