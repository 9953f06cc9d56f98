"""Which backend speaks for this array? One dict lookup; the slow road is walked once per type.

Keyed by the exact type, so a JAX tracer, a TensorFlow symbolic tensor, a torch parameter and a
user's subclass each find their backend the first time by walking their MRO, and by a plain lookup
ever after. A framework is never imported to answer: an array's type can only exist if its framework
is imported already.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .backends.base import Backend

NAMES = ("numpy", "jax", "tensorflow", "torch")
# The package a type lives in -> its backend; our own types are NumPy arrays under differentiation.
ROOTS = {name: name for name in NAMES} | {"jaxlib": "jax", "isomorph": "numpy"}


class Backends(dict[type, "Backend | None"]):
    """type -> backend; None for the Python scalars that may stand beside arrays."""

    def __missing__(self, cls: type) -> Backend:
        backend = self.find(cls)
        if backend is None:
            raise TypeError(
                f"no backend speaks for {cls.__module__}.{cls.__qualname__}: "
                f"needed an array of {', '.join(NAMES[:-1])} or {NAMES[-1]}"
            )
        return backend

    def find(self, cls: type) -> Backend | None:
        """The backend of a type, or None; found once, it is remembered."""
        if cls in self:
            return self[cls]
        for base in cls.__mro__:
            name = ROOTS.get(base.__module__.partition(".")[0])
            if name is not None and issubclass(cls, (backend := load(name)).arrays):
                if issubclass(cls, backend.refused):
                    return None
                self[cls] = backend
                return backend
        return None


NUMBERS = (bool, int, float, complex)  # may stand beside arrays
BACKENDS = Backends(dict.fromkeys((*NUMBERS, type(None))))


def load(name: str) -> Backend:
    """The backend of that name, importing its framework if need be."""
    there = sys.modules.get(f"{__package__}.backends.{name}")
    if hasattr(there, "backend"):
        return there.backend  # pyright: ignore
    if name not in NAMES:
        raise ValueError(f"no backend is called {name!r}: needed one of {', '.join(NAMES)}")
    if find_spec(name) is None:
        raise ImportError(f"backend {name!r} is not installed: pip install 'isomorph[{name}]'")
    backend = import_module(f".backends.{name}", __package__).backend
    for cls in backend.arrays:  # a compiler cannot look for them while it traces
        BACKENDS.find(cls)
    return backend


def loaded() -> list[Backend]:
    """The backends that are there already."""
    modules = (sys.modules.get(f"{__package__}.backends.{name}") for name in NAMES)
    return [module.backend for module in modules if hasattr(module, "backend")]  # pyright: ignore


def prepare() -> None:
    """Load what a compiler cannot while it traces: torch's backend, where torch is there."""
    if "torch" in sys.modules:
        load("torch")


def backend_of(x: Any, *others: Any) -> Backend:
    """The backend of the arrays given; Python scalars and None beside them are passed over.

    For doors: `iso.namespace` is its public name.
    """
    found = BACKENDS[type(x)]
    if not others and found is not None:
        return found
    for other in others:
        backend = BACKENDS[type(other)]
        if backend is not found and backend is not None:
            if found is not None:
                raise TypeError(_mixed(x, *others))
            found = backend
    if found is None:
        raise TypeError(f"needed at least one array, got {_types((x, *others))}")
    return found


def find_backend(x: Any) -> Backend | None:
    """The backend of `x`, or None when `x` is no array."""
    return BACKENDS.find(type(x))


def dtype_of(x: Any) -> str:
    """The dtype of an array as messages show it, by one name on every backend."""
    return getattr(x.dtype, "name", None) or str(x.dtype).removeprefix("torch.")


def _mixed(*arrays: Any) -> str:
    kinds = {b.name: type(x) for x in arrays if (b := BACKENDS[type(x)]) is not None}
    listed = " and ".join(f"{n} ({t.__module__}.{t.__qualname__})" for n, t in kinds.items())
    return (
        f"arrays of {len(kinds)} backends in one call: {listed}; move them with iso.convert first"
    )


def _types(arrays: tuple[Any, ...]) -> str:
    return ", ".join(type(x).__name__ for x in arrays)
