"""Read the contents of a module, set them, and copy the module for a call."""

from __future__ import annotations

from types import MethodType
from typing import Any

from ..compile.compiling import LOOKED_AT
from ..core import tree
from ..core.gradient_mode import is_off, is_on
from ..gradients.transforms import stop_gradient
from .skeleton import (
    Held,
    Row,
    Setting,
    Skeleton,
    Snapshot,
    chain_of,
    exactly,
    rebuilt,
    set_slot,
)
from .state import State
from .walk import (
    CONSTANT,
    CONTAINER,
    MODULE,
    PLAIN,
    SETTING,
    STATE,
    VARIABLE,
    check_reachable,
    is_module,
    is_number,
    kind_of,
    walk,
)


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
