"""Copies of a module that hold something else: for one call, or for good.

What a copy shall hold is told by the identity of what the original holds. Which things are shared
is read from the module a copy was made of, never from what a caller handed in: that may be the same
object twice.
"""

from __future__ import annotations

import weakref
from copy import copy
from dataclasses import dataclass
from functools import partial
from types import FunctionType, MethodType
from typing import Any, NamedTuple

from .. import tree
from ..compiling import TRACING
from ..dispatch import BACKENDS
from .structure import (
    PLAIN,
    STATE,
    VARIABLE,
    Held,
    Place,
    State,
    entries,
    everything,
    gather,
    is_local,
    is_module,
    is_number,
    kind_of,
    matched,
    origin_of,
)

FUNCTIONS = (FunctionType, MethodType, partial)  # which may hold a module
set_slot = object.__setattr__  # past what a module does when its attributes are set


def substitutes(wanted: dict, given: Any, what: str) -> dict[int, Any]:
    """By the identity of each leaf of `wanted` what `given` has at the same key chain."""
    return _matched(wanted, *tree.flatten(wanted), given, what)


def _matched(wanted: dict, old: list[Any], form: Any, given: Any, what: str) -> dict[int, Any]:
    try:
        new = form.flatten_up_to(given)
    except ValueError:  # other keys, or lists where `v` has numbered dicts
        by_path = dict(zip(tree.routes(given), tree.flatten(given)[0]))
        new = [by_path[path] for path in matched(what, tree.routes(wanted), by_path)]
    return {id(x): State(y, lent=True) if type(x) is State else y for x, y in zip(old, new)}


class How(NamedTuple):
    """How a copy is made."""

    frame: Any = None  # what its calls report to
    lent: bool = True  # its state is its own, and may be what only lives inside a call
    free: bool = False  # a module in its own right, nobody's copy


def copied(ref: Any, node: Any, memo: dict[int, Any], how: How, parent: Any = None) -> Any:
    """A copy of `node` and all under it, with what `memo` has in the place of what `ref`, of the
    same form, has there, by identity.
    """
    new = object.__new__(type(ref))
    memo[id(ref)] = new
    if how.free:
        set_slot(new, "_frozen", ref._frozen)
        set_slot(new, "_parent", parent)
        set_slot(new, "_call", None)
    else:
        set_slot(new, "_call", (ref, how.frame, parent))
    values, own = node.__dict__, new.__dict__
    own.update(values)
    here = None
    for key, x in ref.__dict__.items():
        cls = type(x)
        if cls in PLAIN:
            continue
        found = memo.get(id(x), memo)
        if found is memo:
            if BACKENDS.get(cls) is not None:
                continue
            here = here or weakref.ref(new)
            found = _substituted(x, values[key], memo, how, here)
        own[key] = found
    return new


def _substituted(x: Any, value: Any, memo: dict[int, Any], how: How, parent: Any) -> Any:
    found = memo.get(id(x), memo)
    if found is not memo:
        return found
    cls = type(x)
    if BACKENDS.get(cls) is not None:
        return value
    if is_module(x):
        return copied(x, value, memo, how, parent)
    if cls is list or cls is tuple:
        return cls([_substituted(a, b, memo, how, parent) for a, b in zip(x, value)])
    if cls is dict:
        return {k: _substituted(e, value[k], memo, how, parent) for k, e in x.items()}
    if cls is State:
        memo[id(x)] = new = State(value.value, lent=True) if how.lent else value
        return new
    if cls is MethodType and is_module(x.__self__):
        return MethodType(x.__func__, _substituted(x.__self__, value.__self__, memo, how, parent))
    if isinstance(x, tuple):  # a named one takes its parts one by one
        return cls(*[_substituted(a, b, memo, how, parent) for a, b in zip(x, value)])
    if isinstance(x, (list, dict)):
        new = copy(value)
        for key, e in entries(x):
            new[key] = _substituted(e, value[key], memo, how, parent)
        return new
    return value


class Unusual(Exception):
    """A module or its variables are not what `bound` knows; the general way is to be taken."""


def bound(module: Any, v: Any, frame: Any, lent: bool) -> Any:
    """What `copied` makes of a module and a nest of all its variables, in one walk: what nearly
    every call needs. Where anything is unusual it raises.
    """
    if module._call is not None:
        raise Unusual
    return _bound(module, v, {}, frame, lent, None)


def _bound(ref: Any, v: Any, memo: dict[int, Any], frame: Any, lent: bool, parent: Any) -> Any:
    if type(v) is not dict or ref._frozen or ref.names_its_variables:
        raise Unusual
    new = object.__new__(type(ref))
    memo[id(ref)] = new
    set_slot(new, "_call", (ref, frame, parent))
    own = new.__dict__
    own.update(ref.__dict__)
    here, used = None, 0
    for key, x in ref.__dict__.items():
        cls = type(x)
        if cls in PLAIN:
            continue
        place = id(x)
        if place in memo:
            own[key] = memo[place]
            continue
        part = v.get(key[1:] if key[0] == "_" else key, memo)  # `memo`: there is none
        if part is not memo:
            used += 1
            backend = BACKENDS.get(cls)
            if backend is not None and (x.dtype == backend.float32 or kind_of(x) == VARIABLE):
                own[key] = memo[place] = part
                continue
        if here is None:
            here = weakref.ref(new)
        if isinstance(x, tree.Node):
            own[key] = _bound(x, {} if part is memo else part, memo, frame, lent, here)
        else:
            own[key] = _bound_part(x, cls, part, memo, frame, lent, here)
    if used != len(v):
        raise Unusual
    return new


def _bound_part(
    x: Any, cls: type, v: Any, memo: dict[int, Any], frame: Any, lent: bool, parent: Any
) -> Any:
    if isinstance(x, tree.Node):
        return _bound(x, {} if v is memo else v, memo, frame, lent, parent)
    if BACKENDS.get(cls) is not None:
        if (kind_of(x) == VARIABLE) is (v is memo):
            raise Unusual
        if v is not memo:
            memo[id(x)] = v
        return x if v is memo else v
    if cls is list or cls is tuple or cls is dict:
        if v is not memo and type(v) is not dict:
            raise Unusual
        parts, used = [], 0
        for key, e in x.items() if cls is dict else enumerate(x):
            found = memo.get(id(e), memo)
            if found is memo and type(e) not in PLAIN:
                part = memo if v is memo else v.get(key, memo)
                used += part is not memo
                found = _bound_part(e, type(e), part, memo, frame, lent, parent)
            parts.append(e if found is memo else found)
        if used != (0 if v is memo else len(v)):
            raise Unusual
        return dict(zip(x, parts)) if cls is dict else cls(parts)
    if cls is State and v is memo:
        memo[id(x)] = new = State(x.value, lent=True) if lent else x
        return new
    if cls is FunctionType and x.__closure__ is None and v is memo:
        return x
    if v is not memo or isinstance(x, (list, tuple, dict, *FUNCTIONS)) or kind_of(x) is not None:
        raise Unusual
    return x


def own_array(xp: Any, x: Any, copied: bool) -> Any:
    """`x` as a module can hold it: an array also where the library gives a number for one without
    axes; an object of its own, as one object for two variables would be one the next time.
    """
    return xp.asarray(x, copy=True) if copied or is_number(x) else x


def replace(ref: Any, node: Any, memo: dict[int, Any]) -> None:
    """Put what `memo` has in the place of what `ref` has, into `node` itself."""
    met: set[int] = set()

    def new(x: Any, value: Any) -> Any:
        if id(x) in memo:
            if type(value) is not State:
                return memo[id(x)]
            value.value = memo[id(x)]
        elif is_module(x) or isinstance(x, (list, dict)):
            walk(x, value)
        elif isinstance(x, tuple):
            parts = [new(a, b) for a, b in zip(x, value)]
            if any(a is not b for a, b in zip(parts, value)):
                return type(x)(parts) if type(x) is tuple else type(x)(*parts)
        return value

    def walk(ref: Any, node: Any) -> None:
        if id(ref) in met:
            return
        met.add(id(ref))
        inside = vars(node) if is_module(node) else node
        for key, x in list(entries(ref)):
            if type(x) not in PLAIN:
                inside[key] = new(x, inside[key])

    alive = everything(ref, ref)  # an identity is one's own only while one lives
    walk(ref, node)
    del alive


class Skeleton:
    """A module without its arrays and state: the rest, to be compared and to be filled again.

    What `jit` keys its programs by: two modules with equal skeletons run the same program.
    """

    __slots__ = ("_wanted", "husk", "settings")

    def __init__(self, module: Any):
        self._wanted: list[tuple[dict, list, Any]] = []
        ref = origin_of(module)
        memo: dict[int, Any] = {}
        for _, x, _ in everything(ref, ref):
            kind = kind_of(x)
            memo[id(x)] = State(None) if kind == STATE else Place(kind)  # type: ignore[arg-type]
        self.husk = copied(ref, module, memo, How(free=True))
        # what may be changed in place is kept as it is now
        self.settings = [_now(x) for x in _settings(self.husk)]

    def filled(self, held: Held) -> Any:
        """A module of this form that holds other things: a module in its own right where they are
        arrays.
        """
        memo: dict[int, Any] = {}
        for name, need, give in zip(Held._fields, self._needs(), held):
            memo |= _matched(*need, give, f"{self}, {name}")
        arrays = [x for x in memo.values() if type(x) is not State]
        backends = {cls: BACKENDS.find(cls) for cls in {type(x) for x in arrays}}
        if None in backends.values():
            return copied(self.husk, self.husk, memo, How())
        values = [x.value if type(x) is State else x for x in memo.values()]
        local = TRACING.get() or any(map(is_local, values))
        met: set[int] = set()
        for place, x in memo.items():
            if type(x) is State:
                x.lent = local
            else:
                memo[place] = own_array(backends[type(x)], x, id(x) in met)
            met.add(id(x))
        return copied(self.husk, self.husk, memo, How(lent=local, free=True))

    def state_of(self, module: Any) -> dict[str, Any]:
        """The state that a module which this one was filled to has come to."""
        _, (_, leaves, _), _ = self._needs()
        return gather(module).state if leaves or _has_grown(self.husk, module, set()) else {}

    def _needs(self) -> list[tuple[dict, list, Any]]:
        """What it is filled with, nest by nest with leaves and form: nobody changes a husk."""
        if not self._wanted:
            self._wanted = [(x, *tree.flatten(x)) for x in gather(self.husk, raw=True)]
        return self._wanted

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Skeleton) or self.settings != other.settings:
            return False
        return _same(self.husk, other.husk, {})

    def __hash__(self) -> int:
        return hash((type(self.husk), tuple(self.husk.__dict__)))

    def __repr__(self) -> str:
        return type(self.husk).__name__


def _has_grown(ref: Any, node: Any, met: set[int]) -> bool:
    """Whether a module or a container may hold what the one it was copied from does not: other
    entries, or something else in the place of a setting or an array.
    """
    if type(node) is not type(ref):
        return True
    met.add(id(ref))
    mine, others = dict(entries(ref)), dict(entries(node))
    if mine.keys() != others.keys():
        return True
    for key, x in mine.items():
        cls, kind = type(x), type(others[key])
        if cls in PLAIN:
            grown = kind not in PLAIN
        elif cls is Place:
            grown = BACKENDS.find(kind) is None
        elif isinstance(x, (tree.Node, list, tuple, dict)):
            grown = id(x) not in met and _has_grown(x, others[key], met)
        else:
            grown = others[key] is not x
        if grown:
            return True
    return False


@dataclass(eq=False)
class Rest:
    """What is beside the trained parts of a module; equal where the form is."""

    skeleton: Skeleton
    held: Held
    keys: tuple

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rest) and self.skeleton == other.skeleton

    def __hash__(self) -> int:
        return hash(self.skeleton)

    def __repr__(self) -> str:
        return repr(self.skeleton)


def _settings(module: Any) -> list[Any]:
    """The objects under a module that are none of ours and that can be changed in place."""
    found, met = [], {id(module)}

    def walk(node: Any) -> None:
        for _, x in entries(node):
            if is_module(x) or isinstance(x, (list, tuple, dict)):
                if id(x) not in met:
                    met.add(id(x))
                    walk(x)
            elif isinstance(x, (set, bytearray)) or (hasattr(x, "__dict__") and not callable(x)):
                found.append(x)

    walk(module)
    return found


def _now(x: Any) -> Any:
    """An object by what it holds now."""
    if isinstance(x, (set, bytearray)):
        return type(x)(x)
    return type(x), {name: value for name, value in vars(x).items() if type(value) in PLAIN}


def _same(a: Any, b: Any, met: dict[int, int]) -> bool:
    """Whether two modules without arrays, or parts of them, are alike, and alike in what they
    share.
    """
    if type(a) is not type(b):
        return False
    if type(a) in PLAIN:  # 0.0 and -0.0 are not the same setting; NaN and NaN are
        return a is b or (str(a) == str(b) and (a == b or a != a))
    if type(a) is MethodType:
        return a.__func__ is b.__func__
    if id(a) in met or id(b) in met.values():
        return met.get(id(a)) == id(b)
    if type(a) is Place:
        met[id(a)] = id(b)
        return a.kind == b.kind
    if type(a) is State:
        met[id(a)] = id(b)
        return True
    if is_module(a):
        met[id(a)] = id(b)
        if a._frozen != b._frozen:
            return False
    if is_module(a) or isinstance(a, (dict, list, tuple)):
        mine, others = dict(entries(a)), dict(entries(b))
        return list(mine) == list(others) and all(_same(x, others[k], met) for k, x in mine.items())
    same = a is b or a == b
    return same if isinstance(same, bool) else False
