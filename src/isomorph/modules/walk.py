"""The walk over a module. All code that needs the contents of a module uses it.

Floating-point arrays are variables, `State` objects are state, and other arrays are constants. The
walk enters modules, lists, tuples and dicts. Everything else is a setting.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from numbers import Number
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, NamedTuple

from ..core import tree
from ..core.dispatch import BACKENDS
from ..gradients.captured import is_empty
from .state import State

# Attributes of these types hold no arrays, whatever their values.
PLAIN = frozenset(
    (str, bytes, int, float, bool, complex, type(None), type, range, slice, BuiltinFunctionType)
)
CONTAINERS = (list, tuple, dict)
VARIABLE, STATE, CONSTANT, MODULE, CONTAINER, SETTING = range(6)


class Step(NamedTuple):
    """One entry of a module or of a container in it."""

    path: tuple  # from the top module, with the keys of `v`: without a leading underscore
    owner: Any  # the module or container
    key: Any
    kind: int
    value: Any


class Place:
    """A placeholder for an array, in a module without arrays."""

    __slots__ = ("kind",)

    def __init__(self, kind: int):
        self.kind = kind


def walk(module: Any, *, below: bool = True, every: bool = False) -> Iterator[Step]:
    """Yield every entry of a module and of its contents, depth first, in the order of attributes.

    A shared module or container is yielded at each of its places, but entered only at the first;
    with `every`, at each. Without `below`, submodules are not entered.
    """
    entered = {id(module)}
    stack: list[tuple[tuple, Any, Iterator]] = [((), module, iter(entries(module)))]
    while stack:
        path, owner, rest = stack[-1]
        is_container = isinstance(owner, CONTAINERS)
        for key, x in rest:
            kind = kind_of(x)
            here = (*path, key if is_container else key[key[:1] == "_" :])
            yield Step(here, owner, key, kind, x)
            if (kind == CONTAINER or (kind == MODULE and below)) and id(x) not in entered:
                entered.add(id(x))
                stack.append((here, x, iter(entries(x))))
                break
        else:
            stack.pop()
            if every:
                entered.discard(id(owner))


def entries(node: Any) -> list[tuple[Any, Any]]:
    """The keys and values of a module, dict, list or tuple, as a copy."""
    if isinstance(node, dict):
        return list(node.items())
    if isinstance(node, (list, tuple)):
        return list(enumerate(node))
    return list(node.__dict__.items())


def kind_of(x: Any) -> int:
    """The kind of an entry: VARIABLE, STATE, CONSTANT, MODULE, CONTAINER or SETTING."""
    cls = type(x)
    if cls in PLAIN:
        return SETTING
    if cls is State:
        return STATE
    if cls is Place:
        return x.kind
    backend = BACKENDS.get(cls)
    if backend is None:
        if isinstance(x, tree.Node):
            return MODULE
        if isinstance(x, CONTAINERS):
            return CONTAINER
        backend = BACKENDS.find(cls)
        if backend is None:
            return SETTING
    if is_number(x):
        return SETTING  # including numbers of array libraries
    dtype = x.dtype
    if dtype == backend.float32 or dtype == backend.float64:  # pyright: ignore
        return VARIABLE
    return VARIABLE if backend.is_float(dtype) else CONSTANT


def is_module(x: Any) -> bool:
    return isinstance(x, tree.Node)


def is_number(x: Any) -> bool:
    """Whether `x` is a number and not an array; it may be a number of an array library."""
    return type(x).__hash__ is not None and isinstance(x, Number)


def own(module: Any) -> list[Step]:
    """The modules, arrays and state in the attributes of a module, and in containers there."""
    return [step for step in walk(module, below=False, every=True) if step.kind <= MODULE]


def submodules(module: Any) -> list[tuple[tuple, Any, int]]:
    """Every submodule, once: its path, the module, and its level (1 for a child)."""
    levels = {id(module): 0}
    found = []
    for path, owner, _, kind, x in walk(module):
        if kind in (MODULE, CONTAINER) and id(x) not in levels:
            levels[id(x)] = levels[id(owner)] + (kind == MODULE)
            if kind == MODULE:
                found.append((path, x, levels[id(x)]))
    return found


def check_reachable(step: Step) -> None:
    """Raise if a setting contains modules or arrays, which the walk does not find there."""
    x, owner, name = step.value, type(step.owner).__name__, step.path[-1]
    if isinstance(x, (set, frozenset)) and any(kind_of(e) <= MODULE for e in x):
        raise TypeError(
            f"{owner}: needed modules and arrays in lists, tuples or dicts, got a "
            f"{type(x).__name__} of them at {name}"
        )
    if _hides_module(x, step.owner):
        raise TypeError(
            f"{owner}: needed modules as attributes, got a {type(x).__name__} at {name} that "
            "contains a module, whose variables could not be replaced; make it a method"
        )


def _hides_module(x: Any, owner: Any) -> bool:
    if isinstance(x, MethodType):
        return is_module(x.__self__) and x.__self__ is not owner
    if isinstance(x, partial):
        held = [x.func, *x.args, *x.keywords.values()]
    elif isinstance(x, FunctionType) and x.__closure__:
        held = [cell.cell_contents for cell in x.__closure__ if not is_empty(cell)]
    else:
        return False
    return any(is_module(y) or _hides_module(y, None) for y in held)
