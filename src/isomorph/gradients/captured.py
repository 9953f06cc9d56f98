"""The arrays that a function captures, turned into arguments.

`checkpoint` and implicit functions run a function outside the surrounding differentiation. So they
need every array whose gradient matters as an argument. This module finds the arrays that a function
captures: in cells of its closure, defaults, partials, bound objects, and in functions it captures.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from ..core import tree
from ..core.code_readers import EMPTY
from ..core.dispatch import find_backend

SEQUENCES = (list, tuple, deque, set, frozenset)


def hoist(func: Any, every: bool = False) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """The floating-point arrays that `func` captures, each once, and a function `rebuild`. It takes
    other arrays for them, and returns a copy of `func` that captures the others instead.

    With `every`, arrays of all dtypes are found, and also global arrays that `func` uses. `func`
    may also be a tuple of functions.
    """
    arrays: list[Any] = []
    holds: dict[int, bool] = {}  # which objects hold one of the arrays, by id
    _find(func, arrays, holds, every)

    def rebuild(others: Sequence[Any]) -> Any:
        return _swap(func, {id(x): y for x, y in zip(arrays, others)}, holds, {})

    return arrays, rebuild


def _find(x: Any, arrays: list[Any], holds: dict[int, bool], every: bool) -> bool:
    if id(x) in holds:
        return holds[id(x)]
    holds[id(x)] = False  # until known: objects may refer to each other
    backend = find_backend(x)
    if backend is not None:
        if every or backend.is_float(x.dtype):
            arrays.append(x)
            holds[id(x)] = True
    else:
        # every part is searched, not only up to the first array found
        parts = [*_parts(x), *(_globals(x).values() if every else ())]
        found = [_find(part, arrays, holds, every) for part in parts]
        holds[id(x)] = any(found)
    return holds[id(x)]


def _parts(x: Any) -> list[Any]:
    """The objects that `x` holds, if `x` is of a kind that can be rebuilt with other objects."""
    if isinstance(x, FunctionType):
        cells = [c.cell_contents for c in x.__closure__ or () if c != EMPTY]
        defaults = [*(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()]
        return [*cells, *defaults, *x.__dict__.values()]
    if isinstance(x, partial):
        return [x.func, *x.args, *x.keywords.values()]
    if isinstance(x, MethodType):
        return [x.__self__, x.__func__]
    if isinstance(x, dict):
        return list(x.values())
    if isinstance(x, SEQUENCES):
        return list(x)
    if isinstance(x, tree.Node):
        return tree.flatten_whole(x)[0]
    if is_compiled(x):
        return [x.python_function]
    if isinstance(x, (type, ModuleType)) or find_backend(x) is not None:
        return []
    return list(_attributes(x).values())


def _globals(x: Any) -> dict[str, Any]:
    """The arrays that a function, or a function defined inside it, uses as globals."""
    if not isinstance(x, FunctionType):
        return {}
    codes, names = [x.__code__], set()
    while codes:
        code = codes.pop()
        names |= set(code.co_names)
        codes += [c for c in code.co_consts if isinstance(c, CodeType)]
    found = {k: x.__globals__[k] for k in names if k in x.__globals__}
    return {k: v for k, v in found.items() if find_backend(v) is not None}


def _attributes(x: Any) -> dict[str, Any]:
    """The attributes of an object, in its dict or in slots."""
    slots = [s for cls in type(x).__mro__ for s in _names(vars(cls).get("__slots__", ()))]
    held = {s: getattr(x, s) for s in slots if s != "__dict__" and hasattr(x, s)}
    return held | getattr(x, "__dict__", {})


def _names(slots: Any) -> tuple:
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _swap(x: Any, new: dict[int, Any], holds: dict[int, bool], done: dict[int, Any]) -> Any:
    """A copy of `x` that holds the new arrays; `x` itself if it holds none of the old ones."""
    if id(x) in new:
        return new[id(x)]
    if not holds.get(id(x)):
        return x
    if id(x) in done:
        return done[id(x)]
    swap = lambda part: _swap(part, new, holds, done)
    if isinstance(x, FunctionType):
        cells = tuple(CellType() for _ in x.__closure__ or ())
        own = {k: new[id(v)] for k, v in _globals(x).items() if id(v) in new}
        around = {**x.__globals__, **own} if own else x.__globals__
        made = FunctionType(x.__code__, around, x.__name__, None, cells or None)
        done[id(x)] = made  # before its cells: a function may capture itself
        for cell, old in zip(cells, x.__closure__ or ()):
            if old != EMPTY:
                cell.cell_contents = swap(old.cell_contents)
        made.__defaults__ = tuple(map(swap, x.__defaults__)) if x.__defaults__ else None
        made.__dict__.update({k: swap(v) for k, v in x.__dict__.items()})
        if x.__kwdefaults__:
            made.__kwdefaults__ = {k: swap(v) for k, v in x.__kwdefaults__.items()}
    elif isinstance(x, partial):
        made = partial(
            swap(x.func), *map(swap, x.args), **{k: swap(v) for k, v in x.keywords.items()}
        )
    elif isinstance(x, MethodType):
        made = MethodType(swap(x.__func__), swap(x.__self__))
    elif is_compiled(x):  # its programs hold the arrays that it was traced with
        made = swap(x.python_function)
    elif isinstance(x, tree.Node):
        leaves, form = tree.flatten_whole(x)
        made = tree.unflatten(form, map(swap, leaves))
    elif isinstance(x, dict):
        made = copy(x)
        made.update({k: swap(v) for k, v in x.items()})
    elif isinstance(x, SEQUENCES):
        made = getattr(type(x), "_make", type(x))(map(swap, x))
    else:
        made = copy(x)
        done[id(x)] = made
        if made is not x:  # otherwise x cannot be rebuilt, and keeps its contents
            for name, part in _attributes(x).items():
                object.__setattr__(made, name, swap(part))
    done[id(x)] = made
    return made


def is_compiled(x: Any) -> bool:
    """Whether `x` is a function compiled by its framework, which knows the original function."""
    return callable(x) and isinstance(getattr(x, "python_function", None), (FunctionType, partial))
