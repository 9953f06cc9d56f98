"""The structure of a module, as a table. The walk makes the table; all other code reads it.

A row is a module or a container. Arrays and state are numbered leaves. A shared object is one row
or one leaf. The table without arrays is a `Skeleton`: `jit` caches programs by it, and it builds
modules with other arrays. A `Snapshot` is a skeleton with the contents of one module. The module
caches it; before it is used again, it is compared object by object with the module.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import repeat
from operator import is_
from types import MethodType
from typing import Any, NamedTuple

from ..compile.compiling import TRACING
from ..core import tree
from ..core.code_readers import read_as
from ..core.dispatch import find_backend
from .state import State, is_local, value_of
from .walk import (
    PLAIN,
    STATE,
    Place,
    entries,
    is_module,
    is_number,
    kind_of,
)

Leaves = Sequence[Any] | Mapping[int, Any]  # by number
set_slot = object.__setattr__  # does not call `Module.__setattr__`


class Base(tree.Node):
    """The slots of a module."""

    __slots__ = ("__dict__", "__weakref__", "_call", "_frozen", "_parent", "_snapshot")


# Twice as fast as `object.__setattr__`.
_set_attributes = vars(Base)["__dict__"].__set__
_set_call = vars(Base)["_call"].__set__


def instance(cls: type, attributes: dict[str, Any], call: Any) -> Any:
    """A new module with a copy of these attributes."""
    new = object.__new__(cls)
    _set_attributes(new, attributes.copy())
    _set_call(new, call)
    return new


def _instance(cls: type, attributes: dict[str, Any], call: Any) -> Any:
    """`instance` for compilers that read code."""
    new = object.__new__(cls)
    set_slot(new, "_call", call)
    new.__dict__.update(attributes)
    return new


read_as(instance, _instance)


class Held(NamedTuple):
    """The contents of a module, as three nests."""

    variables: dict
    state: dict
    constants: dict


class Row:
    """A module or a container."""

    def __init__(self, node: Any, path: tuple, real: tuple, owner: int, key: Any, parent: int):
        self.cls = type(node)
        self.is_module, self.is_tuple = is_module(node), isinstance(node, tuple)
        self.frozen: frozenset = node._frozen if self.is_module else frozenset()
        self.path, self.real = path, real  # from the top: keys as in `v`; attribute names
        self.owner, self.key, self.parent = owner, key, parent  # rows: its holder, its module
        self.keys = [key for key, _ in entries(node)]
        self.leaves: list[tuple[Any, int]] = []
        self.rows: list[tuple[Any, int]] = []
        self.methods: list[tuple[Any, Callable]] = []  # of the module itself, as attributes
        self.marks: list[Any] = []  # one value for each entry, to compare rows by
        # a new copy starts with these: the settings, and None instead of leaves and rows
        begin = vars(node) if self.is_module else node
        self.settings: Any = list(node) if self.is_tuple else copy(begin)


class Nest(NamedTuple):
    """A nest of leaves: its structure, and the numbers and key paths of its leaves, in order."""

    form: Any
    numbers: list[int]
    routes: list[tuple]


class Setting:
    """A setting of any other type, with its contents at the time of the walk."""

    __slots__ = ("now", "value")

    def __init__(self, value: Any):
        self.value, self.now = value, contents(value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Setting) or self.now != other.now:
            return False
        return self.value is other.value or (self.value == other.value) is True

    __hash__ = None  # type: ignore[assignment]


def exactly(x: Any) -> Any:
    """A plain value with its type, to compare: 0.0 and -0.0 differ, NaN equals NaN."""
    return type(x), (x if type(x) in PLAIN and type(x) not in (float, complex) else repr(x))


def contents(x: Any) -> Any:
    """The current contents of a mutable object; None for other objects."""
    if isinstance(x, (set, bytearray)):
        return type(x)(x)
    if callable(x) or not hasattr(x, "__dict__"):
        return None
    return type(x), {name: exactly(y) for name, y in vars(x).items() if type(y) in PLAIN}


class Skeleton:
    """A module without its arrays and state, to compare modules and to build new ones."""

    def __init__(
        self, rows: list[Row], kinds: list[int], homes: list, nests: list[dict], objects: list,
        is_named: bool,
    ):  # fmt: skip
        self.rows, self.kinds = rows, kinds  # of leaves; a frozen array is a VARIABLE
        self.homes: list[tuple[int, Any]] = homes  # row and key of the first place of a leaf
        self.objects: list[Setting] = objects  # settings that may change in place
        self.states = [n for n, kind in enumerate(kinds) if kind == STATE]
        self.nests = [_nest(found) for found in nests]
        self._with_rows = [n for n, row in enumerate(rows) if row.rows and not row.is_tuple]
        self._plan = [
            (r.cls, r.is_module, r.parent, r.frozen, bool(r.rows), r.methods, r.leaves)
            for r in rows
        ]
        self.tuples: list[int] = []  # inner tuples first
        for number in range(len(rows)):
            self._add_tuple(number)
        named = [nest.routes for nest in self.nests] if is_named else None
        self._marks = [[(row.cls, row.keys, row.frozen, row.marks) for row in rows], named]
        self.order = [n for nest in self.nests for n in nest.numbers]
        self.chains = [
            f"{name}/{chain_of(route)}"
            for name, nest in zip(Held._fields, self.nests)
            for route in nest.routes
        ]
        self._hash = hash((*(row.cls for row in rows), *rows[0].keys))
        self._empty_nodes: Any = None

    def _add_tuple(self, number: int) -> None:
        row = self.rows[number]
        if row.is_tuple and number not in self.tuples:
            for _, inner in row.rows:
                self._add_tuple(inner)
            self.tuples.append(number)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Skeleton) and self._marks == other._marks)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return self.rows[0].cls.__name__

    def held(self, leaves: Leaves) -> Held:
        """The leaves as nests."""
        return Held(*(
            tree.unflatten(nest.form, [leaves[n] for n in nest.numbers]) for nest in self.nests
        ))  # fmt: skip

    def put(self, leaves: list[Any], kind: int, given: Any, what: str) -> None:
        """Set the leaves of one kind from a nest, which must have the same keys."""
        nest = self.nests[kind]
        try:
            new = flat_like(nest, given)
        except ValueError:  # other keys, or lists instead of dicts with numbers as keys
            routes = tree.routes(given)
            if routes == [()]:
                word = type(given).__name__
                raise TypeError(
                    f"{what}: needed a nest of arrays by their keys, got {word}"
                ) from None
            by_path = dict(zip(routes, tree.flatten(given)[0]))
            new = [by_path[path] for path in matched(what, nest.routes, by_path)]
        for number, x in zip(nest.numbers, new):
            leaves[number] = x
        for number in self.states if kind == STATE else ():
            leaves[number] = State(leaves[number], lent=True)

    def build(
        self, leaves: Leaves, settings: Sequence[Any], origins: Any = None, frame: Any = None
    ) -> list[Any]:
        """Build new modules and containers, one for each row, from leaves and `settings`. With
        `origins`, the new ones are copies of the origins for one call, and `frame` records it.
        """
        nodes: list[Any] = []
        links: dict[int, Any] = {}
        plan = zip(self._plan, settings, repeat(None) if origins is None else origins)
        for (cls, is_own, parent, frozen, has_rows, methods, held), begin, origin in plan:
            if is_own:
                link = links[parent] if nodes else None
                if origins is None:
                    new = instance(cls, begin, None)
                    set_slot(new, "_parent", link)
                    set_slot(new, "_frozen", frozen)
                    set_slot(new, "_snapshot", None)
                else:
                    new = instance(cls, begin, (origin, frame, link))
                if has_rows:
                    links[len(nodes)] = weakref.ref(new)
                inside = new.__dict__
                for key, func in methods:
                    inside[key] = MethodType(func, new)
            elif cls is list or cls is dict:
                new = inside = cls(begin)
            elif issubclass(cls, tuple):
                nodes.append(None)  # built below, after its contents
                continue
            else:
                new = inside = copy(begin)
            nodes.append(new)
            for key, leaf in held:
                inside[key] = leaves[leaf]
        for number in self.tuples:
            row, parts = self.rows[number], list(settings[number])
            for key, leaf in row.leaves:
                parts[key] = leaves[leaf]
            for key, inner in row.rows:
                parts[key] = nodes[inner]
            nodes[number] = rebuilt(row.cls, parts)
        for number in self._with_rows:
            row, new = self.rows[number], nodes[number]
            inside = new.__dict__ if row.is_module else new
            for key, inner in row.rows:
                inside[key] = nodes[inner]
        return nodes

    def filled(self, held: Held) -> Any:
        """A new module with this structure and the contents `held`. If all leaves are arrays, it is
        a normal module; if not, it is a copy that is used for one call only.
        """
        leaves: list[Any] = [None] * len(self.kinds)
        for kind, name in enumerate(Held._fields):
            self.put(leaves, kind, held[kind], f"{self}, {name}")
        return self.around(leaves)

    def refilled(self, values: Iterable[Any]) -> Any:
        """`filled`, from the values of all leaves, in the order `order`."""
        leaves: list[Any] = [None] * len(self.kinds)
        for number, x in zip(self.order, values):
            leaves[number] = x
        for number in self.states:
            leaves[number] = State(leaves[number], lent=True)
        return self.around(leaves)

    def around(self, leaves: list[Any], like: Sequence[Any] | None = None) -> Any:
        """`filled`, from leaves by number, with the settings of the modules `like`."""
        backends = [find_backend(x) for x in leaves]
        if any(xp is None and type(x) is not State for xp, x in zip(backends, leaves)):
            return self.copy(leaves, like)
        local = TRACING.get() or any(is_local(value_of(x)) for x in leaves)
        met: set[int] = set()
        for number, x in enumerate(leaves):
            if type(x) is State:
                x.lent = local
            else:
                leaves[number] = own_array(backends[number], x, id(x) in met)
            met.add(id(x))
        nodes = self.build(leaves, self.settings(like))
        if like is None and all(kind_of(x) == kind for x, kind in zip(leaves, self.kinds)):
            set_slot(nodes[0], "_snapshot", Snapshot(self, nodes, leaves))
        return nodes[0]

    def copy(self, leaves: Leaves, like: Sequence[Any] | None = None) -> Any:
        """A copy of the modules `like` for one call, with any objects as leaves, by number."""
        if like is None:
            self._empty_nodes = like = self._empty_nodes or self.empty()
        return self.build(leaves, self.settings(like), like)[0]

    def empty(self) -> list[Any]:
        """The module and all its contents, with placeholders instead of arrays."""
        places = [State(None) if kind == STATE else Place(kind) for kind in self.kinds]
        nodes = self.build(places, self.settings(None))
        set_slot(nodes[0], "_snapshot", Snapshot(self, nodes, places))
        return nodes

    def settings(self, like: Sequence[Any] | None) -> list[Any]:
        if like is None:
            return [row.settings for row in self.rows]
        return [x.__dict__ if row.is_module else x for row, x in zip(self.rows, like)]


@dataclass(eq=False)
class Rest:
    """A module without its trained arrays; two are equal if their skeletons are."""

    skeleton: Skeleton
    held: Held
    keys: tuple

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rest) and self.skeleton == other.skeleton

    def __hash__(self) -> int:
        return hash(self.skeleton)

    def __repr__(self) -> str:
        return repr(self.skeleton)


class Snapshot:
    """The contents of a module at the last walk."""

    __slots__ = ("_containers", "_modules", "_top", "leaves", "nodes", "skeleton")

    def __init__(self, skeleton: Skeleton, nodes: list[Any], leaves: list[Any]):
        # Without the module itself: it refers to this snapshot, and objects in a reference cycle
        # are not freed at once.
        self.skeleton, self.nodes, self.leaves = skeleton, nodes[1:], leaves
        self._modules: list[tuple[Any, list, frozenset, tuple]] = []
        self._containers: list[tuple[Any, list, tuple]] = []
        for row, node in zip(skeleton.rows, nodes):
            if row.is_module:
                values = tuple(node.__dict__.values())
                self._modules.append((node, row.keys, row.frozen, values))
            elif isinstance(node, dict):
                self._containers.append((node, row.keys, tuple(node.values())))
            elif not row.is_tuple:
                self._containers.append((node, row.keys, tuple(node)))
        self._top = self._modules.pop(0)[1:]

    def holds(self, module: Any) -> bool:
        """Whether nothing has changed: no attribute, no container, no mutable setting."""
        for node, keys, frozen, values in ((module, *self._top), *self._modules):
            inside = node.__dict__
            if [*inside] != keys or not all(map(is_, inside.values(), values)):
                return False
            if node._frozen is not frozen:
                return False
        for node, keys, values in self._containers:
            if len(node) != len(values):
                return False
            is_dict = isinstance(node, dict)
            if not all(map(is_, node.values() if is_dict else node, values)):
                return False
            if is_dict and [*node] != keys:
                return False
        return all(contents(setting.value) == setting.now for setting in self.skeleton.objects)


def _nest(found: dict) -> Nest:
    numbers, form = tree.flatten(found)
    return Nest(form, numbers, tree.routes(found))


def rebuilt(cls: type, parts: list[Any]) -> Any:
    return cls(parts) if cls is tuple else cls(*parts)  # a namedtuple takes separate arguments


def own_array(xp: Any, x: Any, is_shared: bool) -> Any:
    """`x` as an array of a module. A copy if it is a number, as some libraries return for shape (),
    or if another variable is the same object.
    """
    return xp.asarray(x, copy=True) if is_shared or is_number(x) else x


def chain_of(path: tuple) -> str:
    return "/".join(map(str, path))


def matched(
    what: str, needed: list[tuple], given: Iterable[tuple], partly: bool = False
) -> list[tuple]:
    """The needed paths that are given; raises if any is missing (not if `partly`) or unexpected."""
    known, came = set(needed), set(given)
    missing = [] if partly else [path for path in needed if path not in came]
    extra = [path for path in given if path not in known]
    if missing or extra:
        listed = ", ".join(map(chain_of, needed))
        parts = [f"{what}: needed " + (f"the keys {listed}" if needed else "no keys")]
        if missing:
            parts.append(f"missing keys: {', '.join(map(chain_of, missing))}")
        if extra:
            named = ", ".join(chain_of(path) or "(not a nest)" for path in extra)
            parts.append(f"unexpected keys: {named}")
        raise KeyError("; ".join(parts))
    return [path for path in needed if path in came]


def flat_like(nest: Nest, given: Any) -> list[Any]:
    """The leaves of a nest with the same keys; ValueError if the keys differ."""
    return nest.form.flatten_up_to(given)


def _flat_like(nest: Nest, given: Any) -> list[Any]:
    """`flat_like` for compilers that read code."""
    found = []
    for route in nest.routes:
        x = given
        for key in route:
            if type(x) is not dict or key not in x:
                raise ValueError("other keys")
            x = x[key]
        found.append(x)
    if _count(given) != len(found):
        raise ValueError("other keys")
    return found


def _count(nest: Any) -> int:
    return sum(map(_count, nest.values())) if type(nest) is dict else 1


read_as(flat_like, _flat_like)
