"""What is in a module: found by a walk, kept as a table, read, set, and built anew.

    module ── walk ──> steps ── look ──> Snapshot: the objects met, and their Skeleton
                                            │ compared object by object before it is used again
                                            v
    Skeleton: a row for each module and container, a number for each leaf (array or State)
       │ gather, taken ──> Held: the nests `v`, `state` and constants
       │ put, assign <─── new values, into the module itself
       └ build, filled, copied ──> a module of the same structure with other leaves

Floating-point arrays are variables, `State` objects are state, and other arrays are constants. The
walk enters modules, lists, tuples and dicts; everything else is a setting. A shared object is one
row or one leaf. `jit` caches programs by the skeleton, which is a table without arrays.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from numbers import Number
from operator import is_
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, NamedTuple

from ..compile.compiling import LOOKED_AT, TRACING
from ..core import tree
from ..core.code_readers import EMPTY, read_as
from ..core.dispatch import BACKENDS, find_backend
from ..core.gradient_mode import is_off, is_on
from ..gradients.transforms import stop_gradient
from .state import State, is_local, value_of

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
        held = [cell.cell_contents for cell in x.__closure__ if cell != EMPTY]
    else:
        return False
    return any(is_module(y) or _hides_module(y, None) for y in held)


# The table.


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


# The contents of one module.


class CustomKeys:
    """The keys of variables that a module chooses in `_create_variables`."""

    def __init__(self, module: Any, path: tuple):
        self.where, self.path = f"{type(module).__name__}._create_variables", path
        named = module._create_variables()
        # keeps the arrays alive, because `routes` and `met` use their ids
        self.leaves = dict(zip(tree.routes(named), tree.flatten(named)[0]))
        self.routes: dict[int, tuple] = {}
        self.met: set[int] = set()
        for route, x in self.leaves.items():
            first = self.routes.setdefault(id(x), route)
            if first != route:
                raise ValueError(
                    f"{self.where}: needed each array once, got the same array at "
                    f"{chain_of(first)} and {chain_of(route)}"
                )

    def check(self) -> None:
        for route, x in self.leaves.items():
            if id(x) not in self.met or kind_of(x) != VARIABLE:
                raise TypeError(
                    f"{self.where}: needed floating-point arrays that are attributes of the "
                    f"module, got a {type(x).__name__} at {chain_of(route)} that is not"
                )


def look(module: Any) -> Snapshot:
    """The current snapshot of a module, or for a copy that of its original."""
    module = origin_of(module)
    known = module._snapshot
    if known is None or not (LOOKED_AT.get() or known.holds(module)):
        known = _new_snapshot(module)
        set_slot(module, "_snapshot", known)
    return known


def _new_snapshot(module: Any) -> Snapshot:
    rows, nodes, leaves = [Row(module, (), (), 0, None, 0)], [module], []
    numbers = {id(module): 0}  # of rows and leaves, by id
    customs = [CustomKeys(module, ()) if module.names_its_variables else None]  # for each row
    kinds, homes, objects = [], [], []
    nests: list[dict] = [{}, {}, {}]
    known_keys: list[dict] = [{}, {}, {}]
    for step in walk(module):
        path, owner, key, kind, x = step
        number = numbers[id(owner)]
        row, custom = rows[number], customs[number]
        if kind == SETTING:
            check_reachable(step)
            row.marks.append(_comparable(row, key, x, objects))
            continue
        is_row, is_new = kind in (MODULE, CONTAINER), id(x) not in numbers
        if is_new and is_row:
            numbers[id(x)] = len(rows)
            parent = number if row.is_module else row.parent
            rows.append(Row(x, path, (*row.real, key), number, key, parent))
            nodes.append(x)
            is_custom = custom is None and kind == MODULE and x.names_its_variables
            customs.append(CustomKeys(x, path) if is_custom else custom)
        elif is_new:
            numbers[id(x)] = len(leaves)
            module_row = row if row.is_module else rows[row.parent]
            nest, route = _nest_and_path(module_row, custom, path, kind, x)
            _check_key(known_keys[nest], rows, route, (*row.real, key) if route == path else route)
            put(nests[nest], route, len(leaves))
            kinds.append(kind)
            homes.append((number, key))
            leaves.append(x)
        if custom is not None:
            custom.met.add(id(x))
        row.settings[key] = None
        (row.rows if is_row else row.leaves).append((key, numbers[id(x)]))
        row.marks.append((kind, numbers[id(x)]))
    for custom in filter(None, customs):
        custom.check()
    skeleton = Skeleton(rows, kinds, homes, nests, objects, any(customs))
    return Snapshot(skeleton, nodes, leaves)


def _nest_and_path(
    module: Row, custom: CustomKeys | None, path: tuple, kind: int, x: Any
) -> tuple[int, tuple]:
    """The number of the nest that a leaf belongs to, and its path there."""
    if kind != VARIABLE:
        return kind, path
    if custom is not None:
        route = custom.routes.get(id(x))
        return (CONSTANT, path) if route is None else (VARIABLE, (*custom.path, *route))
    is_frozen = module.frozen and chain_of(path[len(module.path) :]) in module.frozen
    return (STATE if is_frozen else VARIABLE), path


def _check_key(known_keys: dict, rows: list[Row], path: tuple, real: tuple) -> None:
    """Raise if two attributes differ only by an underscore, and so have the same key."""
    for n in range(1, len(path) + 1):
        if known_keys.setdefault(path[:n], real[:n]) != real[:n]:
            owner = next(row.cls.__name__ for row in rows if row.real == real[: n - 1])
            name = path[n - 1]
            raise ValueError(
                f"{owner}: the attributes {name} and _{name} both give the key {name!r}; rename one"
            )


def _comparable(row: Row, key: Any, x: Any, objects: list[Setting]) -> Any:
    """A value to compare a setting by."""
    if type(x) is MethodType and is_module(x.__self__):  # the module's own; others were refused
        row.methods.append((key, x.__func__))
        row.settings[key] = None
        return MethodType, x.__func__
    if type(x) in PLAIN or is_number(x):
        return exactly(x)
    setting = Setting(x)
    objects += [setting] * (setting.now is not None)
    return setting


def put(nest: dict, path: tuple, value: Any) -> None:
    """Set the value at a path of nested dicts."""
    for key in path[:-1]:
        nest = nest.setdefault(key, {})
    nest[path[-1]] = value


# A copy for one call uses the snapshot of its original. Only that shows which variables are shared,
# because a caller may pass one array for two variables.


def origin_of(module: Any) -> Any:
    """The original of a copy; for other modules the module itself."""
    return module if module._call is None else module._call[0]


def parent_of(module: Any) -> Any:
    """The parent of a module, or None."""
    link = module._parent if module._call is None else module._call[2]
    return None if link is None else link()


def nodes_and_leaves(module: Any) -> tuple[Snapshot, list[Any], list[Any]]:
    """The snapshot of a module (of its original), and the nodes and leaves of the module itself."""
    seen = look(module)
    if module._call is None:
        return seen, [module, *seen.nodes], list(seen.leaves)
    rows, nodes = seen.skeleton.rows, [module]
    at = lambda row, key: nodes[row].__dict__[key] if rows[row].is_module else nodes[row][key]
    for row in rows[1:]:
        nodes.append(at(row.owner, row.key))
    return seen, nodes, [at(row, key) for row, key in seen.skeleton.homes]


def gather(module: Any) -> Held:
    """The values in a module, as nests keyed by attribute and position."""
    skeleton, values = taken(module)
    return skeleton.held(values)


def taken(module: Any) -> tuple[Skeleton, list[Any]]:
    """The skeleton of a module, and the values of its leaves."""
    seen, _, leaves = nodes_and_leaves(module)
    for n in seen.skeleton.states:
        leaves[n] = leaves[n].value
    return seen.skeleton, leaves


def copied(
    module: Any, v: Any = None, state: Any = None, *, frame: Any = None, lent: bool = True
) -> Any:
    """A copy of a module for one call, with other variables and state if given. With `lent`, the
    call does not change the state of the module.
    """
    seen, nodes, leaves = nodes_and_leaves(module)
    skeleton, name = seen.skeleton, type(module).__name__
    if v is not None:
        skeleton.put(leaves, VARIABLE, v, name)
    if state is not None:
        skeleton.put(leaves, STATE, state, f"{name}, state")
    elif lent:
        for n in skeleton.states:
            leaves[n] = State(leaves[n].value, lent=True)
    origins = [origin_of(module), *seen.nodes]
    return skeleton.build(leaves, skeleton.settings(nodes), origins, frame)[0]


def detached(v: Any) -> Any:
    """Variables for a `forward`: detached while `with_grads` is False."""
    return v if is_on() else stop_gradient(v, preserve_type=False)


def called_with(module: Any, v: Any) -> Any:
    """The variables for a call on a copy of a module: `v`, or else its own; None for those of a
    module that is a copy already.
    """
    if v is None and module._call is not None and not is_off():
        return None
    return detached(module.v if v is None else v)


def assign(module: Any, new: dict[int, Any]) -> None:
    """Set leaves of a module, by number."""
    seen, nodes, leaves = nodes_and_leaves(module)
    rows, fresh = seen.skeleton.rows, set()
    for n in [n for n in new if type(leaves[n]) is State]:
        leaves[n].value = new[n]
    arrays = {n: x for n, x in new.items() if type(leaves[n]) is not State}
    for number in seen.skeleton.tuples:
        row, parts = rows[number], list(nodes[number])
        changed = [(key, arrays[n]) for key, n in row.leaves if n in arrays]
        changed += [(key, nodes[inner]) for key, inner in row.rows if inner in fresh]
        for key, x in changed:
            parts[key] = x
        if changed:
            nodes[number] = rebuilt(row.cls, parts)
            fresh.add(number)
    for row, node in zip(rows, nodes):
        if not row.is_tuple:
            inside = node.__dict__ if row.is_module else node
            for key, n in row.leaves:
                if n in arrays:
                    inside[key] = arrays[n]
            for key, inner in row.rows:
                if inner in fresh:
                    inside[key] = nodes[inner]
    forget(module)


def forget(module: Any) -> None:
    """Drop the snapshots of a module and its ancestors, so that old arrays are freed."""
    while module is not None and module._call is None:
        if module._snapshot is not None:
            set_slot(module, "_snapshot", None)
        module = parent_of(module)
