"""What a module holds, found by walking over its attributes when asked.

Floating-point arrays are variables, a `State` is state, other arrays are constants; modules, lists,
tuples and dicts are walked through, and all else is static. What is met twice is one thing, at the
place where it was met first.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from numbers import Number
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, NamedTuple

from .. import tree
from ..compiling import TRACING
from ..dispatch import BACKENDS, find_backend
from ..gradients.checkpointing import is_repeated
from ..gradients.closures import is_empty

# Attributes of these types hold no arrays, whatever their values.
PLAIN = frozenset(
    (str, bytes, int, float, bool, complex, type(None), type, range, slice, BuiltinFunctionType)
)
WALKED = frozenset((list, tuple, dict))
HIDING = (set, frozenset)  # in these a module would never be found again: they have no keys
VARIABLE, STATE, CONSTANT = range(3)


class State:
    """A value that a call may change and that is not trained: a running mean, a counter, a key.

    An attribute of a module. `forward` reads and sets `self.name.value`; `module.state` shows the
    values. In `module(x)` the change stays; `module(x, v=v)` leaves the module as it was, and
    `module.apply` returns the new state.

    >>> count = iso.State(0)
    >>> count.value += 1
    >>> count
    State(1)
    """

    __slots__ = ("_value", "lent")

    def __init__(self, value: Any, *, lent: bool = False):
        # what is lent may be changed in place, `state.value += 1`, and the owner's shall not
        self._value, self.lent = tree.map(_private if lent else _plain, value), lent

    @property
    def value(self) -> Any:
        return self._value

    @value.setter
    def value(self, new: Any) -> None:
        if is_repeated():
            raise RuntimeError(
                "State: a value set inside iso.checkpoint, whose function is computed again on the "
                "way back; leave what changes state outside of it"
            )
        if not self.lent and (TRACING.get() or any(map(is_local, tree.flatten(new)[0]))):
            raise RuntimeError(
                "State: a value set under differentiation or compilation would outlive its call; "
                "use module.apply(v, state, ...), which returns the new state"
            )
        self._value = new

    def __repr__(self) -> str:
        return f"State({self._value!r})"


def _plain(x: Any) -> Any:
    """A number of NumPy's as a Python number, which every backend takes."""
    is_number = isinstance(x, Number) or type(x).__name__ in ("bool", "bool_")
    item = getattr(x, "item", None)
    return item() if is_number and item is not None else x


def _private(x: Any) -> Any:
    backend = find_backend(x)
    return x if backend is None else backend.own(x)


class Place:
    """Where an array was, in a module without its arrays."""

    __slots__ = ("kind",)

    def __init__(self, kind: int):
        self.kind = kind


class Held(NamedTuple):
    """The nests of what a module holds."""

    variables: dict
    state: dict
    constants: dict


def is_module(x: Any) -> bool:
    return isinstance(x, tree.Node)


def is_local(x: Any) -> bool:
    """Whether `x` means something only inside the differentiation or compilation that made it."""
    backend = find_backend(x)
    return backend is not None and backend.is_local(x)


def hides_module(x: Any, owner: Any) -> bool:
    """Whether a function holds a module: a call with other variables would not reach it."""
    if isinstance(x, MethodType):
        return is_module(x.__self__) and x.__self__ is not owner
    if isinstance(x, partial):
        held = [x.func, *x.args, *x.keywords.values()]
    elif isinstance(x, FunctionType) and x.__closure__:
        held = [cell.cell_contents for cell in x.__closure__ if not is_empty(cell)]
    else:
        return False
    return any(is_module(y) or hides_module(y, None) for y in held)


def is_number(x: Any) -> bool:
    """Whether `x` is a number and no array, though it may be of an array library."""
    return type(x).__hash__ is not None and isinstance(x, Number)


def kind_of(x: Any) -> int | None:
    """Whether `x` is a variable, state or a constant; None for anything else."""
    cls = type(x)
    if cls in WALKED or cls in PLAIN:
        return None
    if cls is State:
        return STATE
    if cls is Place:
        return x.kind
    backend = BACKENDS.get(cls)
    if backend is None:
        if isinstance(x, tree.Node):
            return None
        backend = BACKENDS.find(cls)
        if backend is None:
            return None
    if is_number(x):
        return None  # also one of the array library's: it is a setting
    dtype = x.dtype
    if dtype == backend.float32 or dtype == backend.float64:  # pyright: ignore
        return VARIABLE
    return VARIABLE if backend.is_float(dtype) else CONSTANT


def entries(node: Any) -> Iterable[tuple[Any, Any]]:
    """The keys and values of a module, dict, list or tuple."""
    if isinstance(node, dict):
        return node.items()
    if isinstance(node, (list, tuple)):
        return enumerate(node)
    return vars(node).items()


def key_of(node: Any, key: Any) -> Any:
    """The key in `v` of an attribute or an entry."""
    return key if isinstance(node, (dict, list, tuple)) else key[key[:1] == "_" :]


def at(node: Any, key: Any) -> Any:
    return node[key] if isinstance(node, (dict, list, tuple)) else vars(node)[key]


def origin_of(module: Any) -> Any:
    """The module that says what is shared: the one a copy was made of."""
    return module if module._call is None else module._call[0]


def parent_of(module: Any) -> Any:
    """The module that holds a module, while there is one."""
    link = module._parent if module._call is None else module._call[2]
    return None if link is None else link()


def gather(module: Any, raw: bool = False) -> Held:
    """What a module holds, in nests keyed by attribute and position: values, or, `raw`, what the
    module has that a copy is made of, `State` and all.
    """
    ref = origin_of(module)
    return _gather(ref, ref if raw else module, {id(ref)}, frozenset(), "", raw)


def _gather(ref: Any, node: Any, seen: set[int], frozen: frozenset, chain: str, raw: bool) -> Held:
    # `ref` says what there is, `node`, of the same form, what its values are
    held = Held({}, {}, {})
    inside = is_module(ref)
    if inside:
        if ref.names_its_variables:
            return _own(ref, node, seen, raw)
        frozen, chain = ref._frozen, ""
    for key, x in entries(ref):
        if type(x) in PLAIN:
            continue
        name = key[key[:1] == "_" :] if inside else key
        kind = kind_of(x)
        if kind is not None:
            if id(x) in seen:
                continue
            seen.add(id(x))
            value = at(node, key)
            if kind == VARIABLE and frozen and f"{chain}{name}" in frozen:
                kind = STATE
            if type(value) is State and not raw:
                value = value.value
            _add(held[kind], name, value, ref)
        elif is_module(x) or isinstance(x, (list, tuple, dict)):
            if is_module(x):
                if id(x) in seen:
                    continue
                seen.add(id(x))
            inner = _gather(x, at(node, key), seen, frozen, f"{chain}{name}/", raw)
            for parts, found in zip(held, inner):
                if found:
                    _add(parts, name, found, ref)
        elif isinstance(x, HIDING) and any(is_module(e) or kind_of(e) is not None for e in x):
            raise TypeError(
                f"{type(ref).__name__}: needed modules and arrays in lists, tuples or dicts, "
                f"got a {type(x).__name__} of them at {name}"
            )
        elif hides_module(x, ref):
            raise TypeError(
                f"{type(ref).__name__}: needed modules as attributes, got a {type(x).__name__} at "
                f"{name} that holds one where it cannot be exchanged; make it a method"
            )
    return held


def _add(parts: dict, name: Any, value: Any, ref: Any) -> None:
    if name in parts:
        raise ValueError(
            f"{type(ref).__name__}: the attributes {name} and _{name} both give the key {name!r}; "
            "rename one"
        )
    parts[name] = value


def _own(ref: Any, node: Any, seen: set[int], raw: bool) -> Held:
    """What a module holds whose author names the variables; other arrays are constants."""
    where = f"{type(ref).__name__}._create_variables"
    named = ref._create_variables()
    leaves, paths = tree.flatten(named)[0], tree.paths(named)
    found = everything(ref, node)
    held = {id(x) for _, x, _ in found}
    listed: dict[int, str] = {}
    for x, path in zip(leaves, paths):
        if kind_of(x) != VARIABLE or id(x) not in held:
            raise TypeError(
                f"{where}: needed floating-point arrays that attributes of the module hold, got a "
                f"{type(x).__name__} at {path} that none holds"
            )
        if id(x) in listed:
            raise ValueError(f"{where}: the array at {path} is listed at {listed[id(x)]} already")
        listed[id(x)] = path
    rest = Held(named if ref is node else node._create_variables(), {}, {})
    for path, x, value in found:
        kind = kind_of(x)
        if id(x) not in seen and id(x) not in listed and kind is not None:
            parts = rest[CONSTANT if kind == VARIABLE else kind]
            put(parts, path, value.value if type(value) is State and not raw else value)
        seen.add(id(x))
    return rest


def everything(ref: Any, node: Any) -> list[tuple[tuple, Any, Any]]:
    """Every array and state under a module, once: its path, itself, and what `node`, of the same
    form, has in its place.
    """
    found: list[tuple[tuple, Any, Any]] = []
    seen = {id(ref)}

    def walk(ref: Any, node: Any, path: tuple) -> None:
        for key, x in entries(ref):
            here = (*path, key_of(ref, key))
            if id(x) in seen or type(x) in PLAIN:
                continue
            if kind_of(x) is not None:
                seen.add(id(x))
                found.append((here, x, at(node, key)))
            elif is_module(x) or isinstance(x, (list, tuple, dict)):
                if is_module(x):
                    seen.add(id(x))
                walk(x, at(node, key), here)

    walk(ref, node, ())
    return found


def put(nest: dict, path: tuple, value: Any) -> None:
    """Set the leaf at a path."""
    for key in path[:-1]:
        nest = nest.setdefault(key, {})
    nest[path[-1]] = value


def merge(whole: dict, nest: dict, name: str) -> None:
    """Add a nest to another that has other leaves."""
    for key, x in nest.items():
        if isinstance(x, dict) and isinstance(whole.get(key, {}), dict):
            merge(whole.setdefault(key, {}), x, f"{name}, {key}")
        elif key in whole:
            raise ValueError(f"{name}: a variable and something else both have the key {key!r}")
        else:
            whole[key] = x


def chosen(like: Any, nest: Any) -> Any:
    """Of a nest the part that is keyed like another."""
    return {k: chosen(x, nest[k]) for k, x in like.items()} if isinstance(like, dict) else nest


def direct(module: Any) -> list[tuple[tuple, Any]]:
    """The modules, arrays and state a module holds itself, with their paths: through lists, tuples
    and dicts, not through modules.
    """
    found: list[tuple[tuple, Any]] = []

    def walk(node: Any, path: tuple) -> None:
        for key, x in entries(node):
            if type(x) in PLAIN:
                continue
            here = (*path, key_of(node, key))
            if isinstance(x, (list, tuple, dict)):
                walk(x, here)
            elif is_module(x) or kind_of(x) is not None:
                found.append((here, x))

    walk(module, ())
    return found


def occurrences(module: Any) -> list[tuple[tuple, Any]]:
    """Every variable under a module at every path that leads to it."""
    found: list[tuple[tuple, Any]] = []

    def walk(node: Any, path: tuple, above: tuple) -> None:
        for local, x in direct(node):
            if is_module(x):
                if all(x is not y for y in above):
                    walk(x, (*path, *local), (*above, x))
            elif kind_of(x) == VARIABLE:
                found.append(((*path, *local), x))

    walk(module, (), (module,))
    return found


def submodules(module: Any, depth: int | None = None) -> list[tuple[tuple, Any, int]]:
    """Every module below a module with its path and how far below it is, once, in the order of the
    attributes.
    """
    found: list[tuple[tuple, Any, int]] = []
    seen = {id(module)}

    def walk(node: Any, path: tuple, level: int) -> None:
        for local, x in direct(node) if depth is None or level <= depth else ():
            if is_module(x) and id(x) not in seen:
                seen.add(id(x))
                found.append(((*path, *local), x, level))
                walk(x, (*path, *local), level + 1)

    walk(module, (), 1)
    return found


def check_nest(name: str, word: str, new: Any) -> None:
    """Refuse what is no nest of arrays as `v` or `state`: most often an attribute of that name was
    meant.
    """
    if is_module(new) or not isinstance(new, dict):
        what = "variables" if word == "v" else "state"
        raise TypeError(
            f"{name}: needed a nest of {what} as {word}, got {type(new).__name__}; an attribute "
            f"cannot be called {word}"
        )


def chain_of(path: tuple) -> str:
    return "/".join(map(str, path))


def matched(
    what: str, needed: list[tuple], given: Iterable[tuple], partly: bool = False
) -> list[tuple]:
    """The paths needed, if those given are the same; `partly`, some of them."""
    known, came = set(needed), set(given)
    missing = [] if partly else [path for path in needed if path not in came]
    extra = [path for path in given if path not in known]
    if missing or extra:
        said = [f"nothing for {', '.join(map(chain_of, missing))}"] * bool(missing)
        named = ", ".join(chain_of(path) or "all of it" for path in extra)
        said += [f"something for {named}, which there is not"] * bool(extra)
        listed = ", ".join(map(chain_of, needed)) or "nothing"
        raise KeyError(f"{what}: needed variables for {listed}; got {' and '.join(said)}")
    return [path for path in needed if path in came]
