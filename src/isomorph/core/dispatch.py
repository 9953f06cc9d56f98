"""Which backend handles this array? One dict lookup; the search runs once per type.

Keyed by the exact type, so a JAX tracer, a TensorFlow symbolic tensor, a torch parameter and a
user's subclass each find their backend the first time through their MRO, and later by a plain
lookup. No framework is imported to answer: an array's type can only exist if its framework is
imported already.
"""

from __future__ import annotations

import copyreg
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .code_readers import constant
from .contract import Contract
from .vocabulary import Names

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..types.standard import Namespace
    from ..typing import BackendName

# A type's package -> its backend; isomorph's own types are NumPy arrays under differentiation.
ROOTS = {name: name for name in ("numpy", "jax", "tensorflow", "torch")}
ROOTS |= {"jaxlib": "jax", "isomorph": "numpy"}
OWN = tuple(dict.fromkeys(ROOTS.values()))
# Entry-point group of backends in other packages; the name is the package of the backend's arrays.
GROUP = "isomorph.backends"
LOADED: dict[str, Contract] = {}
ON_LOAD: dict[str, Callable[[Contract], object]] = {}  # what -> called with a new backend
REGISTERED: dict[str, dict[str, Any]] = {}  # group -> entry points, filled at the first lookup


class Backends(dict[type, "Contract | None"]):
    """type -> backend; None for Python scalars, which may be passed together with arrays."""

    def __missing__(self, cls: type) -> Contract:
        backend = self.find(cls)
        if backend is None:
            *most, last = names()
            raise TypeError(
                f"no backend handles {cls.__module__}.{cls.__qualname__}: "
                f"needed an array of {', '.join(most)} or {last}"
            )
        return backend

    def find(self, cls: type) -> Contract | None:
        """The backend of a type, or None; the answer is cached."""
        if cls in self:
            return self[cls]
        for base in cls.__mro__:
            root = base.__module__.partition(".")[0]
            name = ROOTS.get(root)
            if name is None and root != "builtins" and root in registered():
                name = root
            if name is not None and issubclass(cls, (backend := load(name)).arrays):
                if issubclass(cls, backend.refused):
                    return None
                self[cls] = backend
                NAMESPACES[cls] = backend.namespace
                return backend
        return None


NUMBERS = (bool, int, float, complex)  # may be passed together with arrays
BACKENDS = Backends(dict.fromkeys((*NUMBERS, type(None))))


class Namespaces(dict[type, "Namespace | None"]):
    """type -> namespace, cached: `iso.namespace` costs one lookup."""

    def __missing__(self, cls: type) -> Namespace | None:
        backend = BACKENDS[cls]
        return None if backend is None else backend.namespace


NAMESPACES = Namespaces(dict.fromkeys(BACKENDS))


@constant
def registered() -> dict[str, Any]:
    """The entry points of backends in other packages, by name."""
    if GROUP not in REGISTERED:
        from importlib.metadata import entry_points  # a third of the import time of isomorph

        found: dict[str, Any] = {}
        for entry in entry_points(group=GROUP):
            known = found.setdefault(entry.name, entry)
            first = "isomorph itself" if entry.name in OWN else known.value
            if first != entry.value:
                raise ImportError(
                    f"backend {entry.name!r} is registered by {first} and by {entry.value}: a name "
                    "can stand for one backend only; uninstall one of them"
                )
        REGISTERED[GROUP] = found
    return REGISTERED[GROUP]


def names() -> tuple[BackendName, ...]:
    """The names of all backends, whether their frameworks are installed or not."""
    return (*OWN, *sorted(registered()))  # pyright: ignore[reportReturnType]


def load(name: str) -> Contract:
    """The backend of that name; imports its framework if necessary."""
    found = LOADED.get(name)
    if found is not None:
        return found
    if name not in OWN and name not in registered():
        raise ValueError(f"no backend is called {name!r}: needed one of {', '.join(names())}")
    if name not in OWN:
        backend = registered()[name].load()
        if not isinstance(backend, Contract) or backend.name != name:
            raise TypeError(
                f"backend {name!r}: needed an instance of a subclass of "
                f"isomorph.backends.composed.Backend with name {name!r}, got {backend!r}"
            )
    elif find_spec(name) is not None:
        backend = import_module(f"..backends.{name}", __package__).backend
    else:
        raise ImportError(f"backend {name!r} is not installed: pip install 'isomorph[{name}]'")
    LOADED[name] = backend
    copyreg.pickle(type(backend), _by_name)
    BACKENDS.update(dict.fromkeys(backend.arrays, backend))
    NAMESPACES.update(dict.fromkeys(backend.arrays, backend.namespace))
    for call in ON_LOAD.values():
        call(backend)
    return backend


def named(title: str) -> Any:
    """The namespace of that name, or its `linalg` or `fft`."""
    _, name, *part = title.split(".")
    found = load(name).namespace
    return getattr(found, part[0]) if part else found


def _by_name(space: Names) -> tuple:
    return named, (space.__name__,)


copyreg.pickle(Names, _by_name)  # there is one of each: copies and pickles hold its name


def on_load(what: str, call: Callable[[Contract], object]) -> None:
    """Call a function with every backend: at once if it is loaded, else when it is. There is one
    function for each `what`.
    """
    ON_LOAD[what] = call
    for backend in loaded():
        call(backend)


def loaded() -> list[Contract]:
    """The backends that are loaded already."""
    return list(LOADED.values())


def prepare() -> None:
    """Load torch's backend if torch is installed: a compiler cannot load it while it traces."""
    if "torch" in sys.modules:
        load("torch")


def check_callable(name: str, func: Any) -> None:
    if not callable(func):
        raise TypeError(f"{name}: needed a function, got {type(func).__name__}")
    prepare()


def backend_of(x: Any, *others: Any) -> Contract:
    """The backend of the given arrays; Python scalars and None among them are ignored.

    Internal; users get its `namespace` from `iso.namespace`.
    """
    kind = type(x)
    found = BACKENDS[kind]
    if not others and found is not None:
        return found
    for other in others:
        if other is None or type(other) is kind:  # mostly; then nothing is looked up
            continue
        backend = BACKENDS[type(other)]
        if backend is not found and backend is not None:
            if found is not None:
                raise TypeError(_mixed(x, *others))
            found = backend
    if found is None:
        raise TypeError(f"needed at least one array, got {_types((x, *others))}")
    if found.has_devices():
        check_one_device(found, [y for y in (x, *others) if BACKENDS[type(y)] is found])
    return found


def check_one_device(backend: Any, arrays: list, what: str = "one call") -> None:
    """Raise if arrays of this backend are on different devices."""
    if len(arrays) < 2 or backend.is_one_device(arrays):
        return
    found = [device for x in arrays if (device := backend.fixed_device(x)) is not None]
    if any(device != found[0] for device in found):
        devices = list(dict.fromkeys(map(str, found)))
        best = next((name for name in devices if not name.startswith(("cpu", "meta"))), devices[0])
        raise ValueError(
            f"arrays on {len(devices)} devices in {what}: {' and '.join(devices)}; move them with "
            f"iso.convert(x, {backend.name!r}, device={best!r}) first"
        )


def find_backend(x: Any) -> Contract | None:
    """The backend of `x`, or None if `x` is not an array."""
    return BACKENDS.find(type(x))


def dtype_of(x: Any) -> str:
    """The dtype of an array as error messages show it: the same name on every backend."""
    return getattr(x.dtype, "name", None) or str(x.dtype).rpartition(".")[2]


def _mixed(*arrays: Any) -> str:
    kinds = {b.name: type(x) for x in arrays if (b := BACKENDS[type(x)]) is not None}
    listed = " and ".join(f"{n} ({t.__module__}.{t.__qualname__})" for n, t in kinds.items())
    return (
        f"arrays of {len(kinds)} backends in one call: {listed}; move them with iso.convert first"
    )


def _types(arrays: tuple[Any, ...]) -> str:
    return ", ".join(type(x).__name__ for x in arrays)
