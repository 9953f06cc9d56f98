"""What a function depends on, read completely or not at all.

A program may be kept for a function that is defined anew at each call only if everything that the
function can see is known: its code, the values in its closure and its defaults, the globals that it
names, and the same for the functions that it calls. Arrays are listed, to be passed as arguments;
everything else becomes part of the key. Whatever can change unseen, or has an effect beyond its
result, raises `Unreadable`: objects of unknown classes, modules with layers, files, `print`, random
generators, assignments to globals, attributes and outer variables.

A copy of the function is made for tracing. It has copies of the lists and dicts that the function
sees, and `Reading.is_unchanged` tells afterwards whether the function wrote to one of them.
"""

from __future__ import annotations

import builtins
import dis
import sys
from collections import namedtuple
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from hashlib import blake2b
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from ..core.default_backend import host
from ..core.dispatch import ROOTS, find_backend
from ..core.vocabulary import DTYPES, Names

Make = Callable[[], Any]
BUILTINS = (
    "abs all any bool bytes callable complex dict divmod enumerate filter float frozenset "
    "int isinstance issubclass len list map max min pow range repr reversed round set slice sorted "
    "str sum tuple type zip"
)
PLAIN = [getattr(builtins, name) for name in BUILTINS.split()]
EXACT = (bool, int, str, bytes, type(None), type(...), type(NotImplemented))
# Packages whose functions depend on their arguments only, and names in them that are not so.
TRUSTED = {"math", "cmath", "operator", "functools", "itertools", "collections", *ROOTS}
BARRED = frozenset([
    "Variable", "config", "data", "debug", "debugging", "distribute", "executing_eagerly",
    "experimental", "export", "fromfile", "function", "host", "host_function", "inside_function",
    "io", "io_callback", "is_tensor", "load", "memmap", "modules", "numpy_function",
    "print", "pure_callback", "py_function", "save", "set_with_grads", "summary", "testing",
    "training", "unset_with_grads", "use_key",
])  # fmt: skip
WRITES = {
    "STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR", "IMPORT_NAME", "LOAD_BUILD_CLASS",
    "LOAD_LOCALS", "LOAD_NAME", "LOAD_SUPER_ATTR",
    "PUSH_EXC_INFO",  # try and with: a handler may catch what only tracing raises
}  # fmt: skip
OWN = __name__.partition(".")[0]
KINDS_OF_DTYPES = ("DType", "_ScalarMeta")
ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
HOST_BYTES = 65536  # larger arrays of the host would be constants of the programs that are kept


class Unreadable(Exception):
    """Something that a function sees may change unseen, or its use has other effects."""


class Uses(NamedTuple):
    """The globals and the outer variables that code names, each with the attributes after it."""

    outer: frozenset[tuple[str, ...]]
    free: frozenset[tuple[str, ...]]


class Reading:
    """The objects of one call, read: their arrays, the key of the rest, and the codes in it."""

    def __init__(self, nest: Any):
        self.arrays: list[Any] = []
        self.codes: list[CodeType] = []
        self.pinned: list[Any] = []  # what the key knows by its identity
        self._places: dict[int, int] = {}  # arrays, by id
        self._seen: dict[int, int] = {}  # functions, by id
        self._values: list[Any] = []
        self._made: dict[int, Any] = {}
        self._watched: list[tuple[Any, Any]] = []
        self._writable = 0
        self.key, self._make = self._read(nest)

    def built(self, arrays: list[Any]) -> Any:
        """A copy of the objects, with these arrays."""
        self._values, self._made, self._watched = list(arrays), {}, []
        try:
            return self._make()
        finally:
            self._values = []

    def is_unchanged(self) -> bool:
        """Whether the lists, dicts and arrays of the host in the last copy are what they were."""
        return all(_state(x) == before for x, before in self._watched)

    def _read(self, x: Any) -> tuple[Any, Make]:
        kind = type(x)
        if kind in EXACT:
            return (kind, x), lambda: x
        if kind is float or kind is complex:  # 0.0 is not -0.0, and nan is nan
            return (kind, repr(x)), lambda: x
        backend = find_backend(x)
        if backend is not None:
            return self._host(x) if backend is host() else self._array(x)
        if kind is tuple or kind is list:
            return self._sequence(x, kind)
        if kind is dict:
            return self._dict(x)
        if isinstance(x, tuple) and _is_named(kind):
            key, make = self._sequence(x, tuple)
            return (self._pin(kind), key), lambda: kind(*make())
        if isinstance(x, slice):
            key, make = self._sequence((x.start, x.stop, x.step), tuple)
            return (kind, key), lambda: slice(*make())
        if kind is range:
            return (kind, x), lambda: x
        if isinstance(x, FunctionType):
            return self._function(x)
        if isinstance(x, partial) and kind is partial:
            key, make = self._sequence((x.func, x.args, x.keywords), tuple)
            return (kind, key), lambda: _partial(*make())
        if isinstance(x, MethodType) and isinstance(x.__self__, Names):
            return ("method", self._pin(x.__func__), self._pin(x.__self__)), lambda: x
        if isinstance(x, Names) or _is_constant(x) or _is_of_a_library(x):
            return self._as_it_is(x)
        raise Unreadable(f"a {kind.__module__}.{kind.__qualname__}")

    def _pin(self, x: Any) -> int:
        self.pinned.append(x)
        return id(x)

    def _as_it_is(self, x: Any) -> tuple[Any, Make]:
        return ("itself", self._pin(x)), lambda: x

    def _array(self, x: Any) -> tuple[Any, Make]:
        if hasattr(x, "assign"):
            raise Unreadable("a variable, to which the function may assign")
        place = self._places.setdefault(id(x), len(self.arrays))
        if place == len(self.arrays):
            self.arrays.append(x)
        return ("array", place), lambda: self._values[place]

    def _host(self, x: Any) -> tuple[Any, Make]:
        """An array in the memory of the host, beside arrays of a framework: a constant."""
        if not hasattr(x, "tobytes") or x.dtype.hasobject or x.nbytes > HOST_BYTES:
            raise Unreadable(f"a {type(x).__name__} of {getattr(x, 'nbytes', 0)} bytes")
        self._writable += 1
        key = (type(x), x.dtype, x.shape, blake2b(x.tobytes(), digest_size=16).digest())
        return key, lambda: self._watch(x.copy())

    def _watch(self, x: Any) -> Any:
        self._watched.append((x, _state(x)))
        return x

    def _sequence(self, x: Any, kind: type) -> tuple[Any, Make]:
        read = [self._read(part) for part in x]
        makes = [make for _, make in read]
        key = (kind, tuple(part for part, _ in read))
        if kind is tuple:
            return key, lambda: tuple(make() for make in makes)
        self._writable += 1
        return key, lambda: self._watch([make() for make in makes])

    def _dict(self, x: dict) -> tuple[Any, Make]:
        names, parts = self._read(tuple(x)), self._read(tuple(x.values()))
        self._writable += 1
        return (
            (dict, names[0], parts[0]),
            lambda: self._watch(dict(zip(names[1](), parts[1]()))),
        )

    def _function(self, f: Any) -> tuple[Any, Make]:
        again = self._seen.get(id(f))
        if again is not None:
            return ("again", again), lambda: self._made[again]
        number = self._seen[id(f)] = len(self._seen)
        around, code = f.__globals__, f.__code__
        home = str(around.get("__name__"))
        trusted = _is_trusted(home)
        if trusted and (home == f"{__package__}.compiling" or _is_barred(home)):
            raise Unreadable(f"a function of {home}")
        self.codes.append(code)
        cells = [self._cell(c, name, f) for name, c in zip(code.co_freevars, f.__closure__ or ())]
        defaults = self._read(f.__defaults__ or ())
        by_name = self._read(tuple(sorted((f.__kwdefaults__ or {}).items())))
        named = {} if trusted else self._globals(f)
        key = (
            "function", code, tuple(c[0] for c in cells), defaults[0], by_name[0],
            tuple((name, part[0]) for name, part in named.items()),
        )  # fmt: skip

        def make() -> Any:
            if number in self._made:
                return self._made[number]
            new = tuple(CellType() for _ in cells)
            made = self._made[number] = FunctionType(code, around, f.__name__, None, new)
            other = {n: part() for n, (_, part) in named.items() if part is not None}
            if other:
                whole = FunctionType(code, {**around, **other}, f.__name__, None, new)
                made = self._made[number] = whole
            for cell, (_, part) in zip(new, cells):
                cell.cell_contents = part()
            made.__defaults__ = defaults[1]() or None
            made.__kwdefaults__ = dict(by_name[1]()) or None
            made.__qualname__ = f.__qualname__
            return made

        return key, make

    def _cell(self, cell: CellType, name: str, f: Any) -> tuple[Any, Make]:
        try:
            x = cell.cell_contents
        except ValueError:
            raise Unreadable(f"{name}, which has no value yet") from None
        if not isinstance(x, ModuleType):
            chains = [c for c in uses(f.__code__).free if c[0] == name]
            _check_attributes(x, chains)
            return self._read(x)
        chains = sorted(c for c in uses(f.__code__).free if c[0] == name)
        keys = tuple(self._chain(x, chain[1:]) for chain in chains)
        return ("module", self._pin(x), keys), lambda: x

    def _globals(self, f: Any) -> dict[str, tuple[Any, Make | None]]:
        """For each global that the function names, its key, and how to copy it if necessary."""
        found: dict[str, tuple[Any, Make | None]] = {}
        chains: dict[str, list[tuple[str, ...]]] = {}
        for chain in sorted(uses(f.__code__).outer):
            chains.setdefault(chain[0], []).append(chain)
        inside = f.__globals__.get("__builtins__", builtins)
        inside = inside if isinstance(inside, dict) else vars(inside)
        for name, all_chains in chains.items():
            if name not in f.__globals__:
                x = inside.get(name)
                if not _is_plain(x):
                    raise Unreadable(name)
                found[name] = ("builtin", self._pin(x)), None
                continue
            x = f.__globals__[name]
            if isinstance(x, ModuleType):
                keys = tuple(self._chain(x, chain[1:]) for chain in all_chains)
                found[name] = ("module", self._pin(x), keys), None
            else:
                _check_attributes(x, all_chains)
                found[name] = self._read(x)
        return found

    def _chain(self, x: Any, names: tuple[str, ...]) -> Any:
        """The key of what the names lead to, from a module."""
        for i, name in enumerate(names):
            if not isinstance(x, ModuleType):
                _check_attributes(x, [(names[i - 1], *names[i:])])
                break
            home = x.__name__
            if _is_trusted(home) and _is_barred(f"{home}.{name}"):
                raise Unreadable(f"{home}.{name}")
            try:
                x = getattr(x, name)
            except Exception:  # some modules import others at this moment
                raise Unreadable(f"{home}.{name}") from None
            if _is_trusted(home) and callable(x) and not isinstance(x, type):
                return "itself", self._pin(x)
        if isinstance(x, ModuleType):
            raise Unreadable(f"the module {x.__name__}")
        before = len(self.arrays), self._writable
        key = self._read(x)[0]
        if (len(self.arrays), self._writable) != before:
            raise Unreadable("an array of another module")
        return key


def uses(code: CodeType) -> Uses:
    """What code names; raises `Unreadable` if it writes to something that outlives the call."""
    found = _uses(code)
    if isinstance(found, str):
        raise Unreadable(found)
    return found


@lru_cache(maxsize=2048)
def _uses(code: CodeType) -> Uses | str:
    """The same with the reason in place of the error, so that it is found once."""
    outer, free = set(), set()
    own = set(code.co_freevars)
    for one in _codes(code):
        steps = list(dis.get_instructions(one))
        for i, step in enumerate(steps):
            if step.opname in WRITES:
                return f"{step.opname} {step.argval}"
            if step.opname in ("STORE_DEREF", "DELETE_DEREF") and step.argval in own:
                return f"an assignment to the outer variable {step.argval}"
            found = None
            if step.opname == "LOAD_GLOBAL":
                found = outer
            elif step.opname == "LOAD_DEREF" and step.argval in own:
                found = free
            if found is not None:
                chain = [step.argval]
                for later in steps[i + 1 :]:
                    if later.opname not in ATTRIBUTES:
                        break
                    chain.append(later.argval)
                found.add(tuple(chain))
    return Uses(frozenset(outer), frozenset(free))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _codes(part)


def _check_attributes(x: Any, chains: list[tuple[str, ...]]) -> None:
    """Functions and classes may have attributes that are not read."""
    held = isinstance(x, type) or (callable(x) and find_backend(x) is None)
    if held and not isinstance(x, Names) and any(len(chain) > 1 for chain in chains):
        raise Unreadable(f"an attribute of {x!r}")


def _is_plain(x: Any) -> bool:
    """Whether a builtin has no effect beyond its result."""
    if isinstance(x, type) and issubclass(x, BaseException):
        return x.__module__ == "builtins"
    return isinstance(x, type | BuiltinFunctionType) and any(x is one for one in PLAIN)


@lru_cache(maxsize=256)
def _is_named(kind: type) -> bool:
    """Whether a class is a named tuple without methods or values of its own."""
    fields = getattr(kind, "_fields", None)
    if kind.__bases__ != (tuple,) or not isinstance(fields, tuple):
        return False
    names = {*vars(namedtuple("Plain", "")), *fields, "__annotations__", "__orig_bases__"}
    return names.issuperset(vars(kind))


def _is_constant(x: Any) -> bool:
    """Whether `x` is a dtype, or a class that only converts or names its arguments."""
    if _is_plain(x):
        return True
    if type(x).__module__.partition(".")[0] in ROOTS and type(x).__name__.endswith(KINDS_OF_DTYPES):
        return True
    if not isinstance(x, type):
        return False
    return _is_named(x) or (x.__module__ in ROOTS and x.__name__.rstrip("_") in DTYPES)


def _is_of_a_library(x: Any) -> bool:
    """Whether a callable is found under its name in a trusted package."""
    if not callable(x):
        return False
    home, name = getattr(x, "__module__", None), getattr(x, "__qualname__", None)
    if isinstance(x, BuiltinFunctionType) and not isinstance(x.__self__, ModuleType):
        return False  # a method of an object
    if not isinstance(home, str) or not isinstance(name, str):
        return False
    if not _is_trusted(home) or _is_barred(f"{home}.{name}"):
        return False
    return getattr(sys.modules.get(home), name, None) is x and not isinstance(x, type)


def _is_trusted(home: str) -> bool:
    return home.partition(".")[0] in TRUSTED


def _is_barred(name: str) -> bool:
    """Whether something of a trusted package has other effects, or depends on more than arguments.
    Our own random numbers have explicit keys.
    """
    words = name.split(".")
    return not BARRED.isdisjoint(words) or ("random" in words and words[0] != OWN)


def _partial(func: Any, args: tuple, keywords: dict) -> Any:
    return partial(func, *args, **keywords)


def _state(x: Any) -> Any:
    """What changes if `x` is written to."""
    if isinstance(x, dict):
        return [(k, id(v)) for k, v in x.items()]
    return [id(part) for part in x] if isinstance(x, list) else x.tobytes()
