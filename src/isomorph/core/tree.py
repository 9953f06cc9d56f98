"""Nests (pytrees): dicts, lists, tuples, None and our own node classes, with arrays as leaves.

All backends use one tree library (optree: sorted dict keys, None is an empty nest), never the
frameworks' own, which disagree on the order of keys and on None. A node class, such as a module,
is seen in two ways: gradients and updates see the trained arrays; compiling, moving and saving see
all arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import optree

TRAINED, WHOLE = "isomorph.trained", "isomorph.whole"

# Typed for callers: any nest in, any nest out.
flatten: Callable[[Any], tuple[list[Any], Any]] = partial(optree.tree_flatten, namespace=TRAINED)
flatten_whole: Callable[[Any], tuple[list[Any], Any]] = partial(
    optree.tree_flatten, namespace=WHOLE
)
unflatten: Callable[[Any, Any], Any] = optree.tree_unflatten


class Node:
    """A class whose objects are nests: it returns the parts of an object, and builds an object from
    other parts.
    """

    __slots__ = ()

    def __init_subclass__(cls, **kw: Any) -> None:
        super().__init_subclass__(**kw)
        known: Any = optree.register_pytree_node
        known(cls, cls.take_trained, cls.put_trained, namespace=TRAINED)
        known(cls, cls.take_whole, cls.put_whole, namespace=WHOLE)
        for register in REGISTERS:
            register(cls)

    def take_trained(self) -> tuple[Iterable[Any], Any, Iterable[Any]]:
        """The trained parts, the rest of the object, and the keys of the parts."""
        raise NotImplementedError

    @staticmethod
    def put_trained(rest: Any, parts: Iterable[Any]) -> Any:
        """The object with other trained parts."""
        raise NotImplementedError

    def take_whole(self) -> tuple[Iterable[Any], Any, Iterable[Any]]:
        """All parts with arrays, the rest of the object, and the keys of the parts."""
        raise NotImplementedError

    @staticmethod
    def put_whole(rest: Any, parts: Iterable[Any]) -> Any:
        """The object with other parts."""
        raise NotImplementedError

    def take_saved(self) -> dict:
        """Everything that a file keeps, as one nest."""
        raise NotImplementedError

    def put_saved(self, nest: dict) -> Any:
        """An object like this one with the contents of a file."""
        raise NotImplementedError

    def part(self, key: Any) -> Any:
        """The trained part at a key."""
        raise NotImplementedError


REGISTERS: list[Callable[[type], None]] = []


class Form:
    """The structure of a nest and the order of its keys, hashed once."""

    __slots__ = ("names", "number", "order", "structure")

    def __init__(self, structure: Any, order: tuple):
        self.structure, self.order = structure, order
        self.number = hash((structure, order))
        self.names = _joined(structure.paths())

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Form):
            return self is other
        return self.structure == other.structure and self.order == other.order


class Flat(Node):
    """A nest that was taken apart: its leaves in a list, which nobody needs to look for again."""

    __slots__ = ("form", "leaves")

    def __init__(self, form: Form, leaves: Iterable[Any]):
        self.form, self.leaves = form, leaves

    @classmethod
    def of(cls, nest: Any) -> Flat:
        leaves, structure = flatten_whole(nest)
        return cls(Form(structure, tuple(key_order(nest))), leaves)

    @property
    def nest(self) -> Any:
        return unflatten(self.form.structure, self.leaves)

    def take_whole(self) -> tuple[Iterable[Any], Any, Iterable[Any]]:
        return self.leaves, self.form, self.form.names

    @staticmethod
    def put_whole(rest: Any, parts: Iterable[Any]) -> Any:
        return Flat(rest, parts)

    take_trained, put_trained = take_whole, put_whole


# Structures are equal whatever the order of the keys of dicts, but whoever stacks `d.values()` gets
# other numbers.


def key_order(nest: Any) -> list[Any]:
    """The keys of all dicts, each followed by those of what is in it."""
    found: list[Any] = []
    _add_keys(nest, found)
    return found


def _add_keys(nest: Any, found: list[Any]) -> None:
    if type(nest) is dict:
        found += nest
        nest = nest.values()
    elif not isinstance(nest, list | tuple):
        return
    for x in nest:
        _add_keys(x, found)


def ordered(nest: Any, keys: Iterator[Any]) -> Any:
    """The nest with the keys of its dicts in the order that `key_order` found."""
    if type(nest) is dict:
        own = [next(keys) for _ in nest]
        return {key: ordered(nest[key], keys) for key in own}
    if not isinstance(nest, list | tuple):
        return nest
    parts = [ordered(x, keys) for x in nest]
    if type(nest) in (list, tuple):
        return type(nest)(parts)
    make = getattr(nest, "_make", None)  # a namedtuple
    return nest if make is None else make(parts)


def register_nodes(register: Callable[[type], None]) -> None:
    """Call `register` with every class of nodes, those that will be defined later included: for a
    framework with pytrees of its own.
    """
    REGISTERS.append(register)
    for cls in nodes():
        register(cls)


def nodes(cls: type = Node) -> Iterator[type]:
    """Every subclass of a node class."""
    for sub in cls.__subclasses__():
        yield sub
        yield from nodes(sub)


def map(func: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """The nest of `func(leaf, ...)`."""
    return optree.tree_map(func, tree, *rest, namespace=TRAINED)


def map_whole(func: Callable[..., Any], tree: Any) -> Any:
    """The nest of `func(leaf)`, over all arrays that nodes hold."""
    return optree.tree_map(func, tree, namespace=WHOLE)


def flatten_to(tree: Any, kind: type) -> tuple[list[Any], Any]:
    """As `flatten`, with objects of a class as leaves."""
    is_leaf = lambda x: isinstance(x, kind)
    return optree.tree_flatten(tree, is_leaf=is_leaf, namespace=TRAINED)


def renewed(tree: Any) -> Any:
    """The nest with copies of its nodes; itself if it has no nodes."""
    leaves, form = flatten_whole(tree)
    return unflatten(form, leaves) if form.namespace else tree


def keys(tree: Any) -> list[Any]:
    """The keys of a dict, list, tuple or node in the order of `flatten`."""
    return list(optree.tree_flatten_one_level(tree, namespace=TRAINED).entries)


def routes(tree: Any) -> list[tuple]:
    """The keys from the root to each leaf, in the order of `flatten`."""
    return optree.tree_paths(tree, namespace=TRAINED)


def paths(tree: Any, whole: bool = False) -> list[str]:
    """The key chain of each leaf, joined with `/`, in the order of `flatten` or `flatten_whole`."""
    return _joined(optree.tree_paths(tree, namespace=WHOLE if whole else TRAINED))


def _joined(found: list[tuple]) -> list[str]:
    return ["/".join(str(key) for key in path) for path in found]
