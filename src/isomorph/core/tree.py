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
    found = optree.tree_paths(tree, namespace=WHOLE if whole else TRAINED)
    return ["/".join(str(key) for key in path) for path in found]
