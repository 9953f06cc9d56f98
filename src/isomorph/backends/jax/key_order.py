"""The order of keys in dicts that go through a program. JAX sorts them, other frameworks and eager
code do not; whoever stacks `d.values()` would get other numbers from a program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax


class Ordered:
    """A dict whose keys are not sorted, among the results of a program."""

    __slots__ = ("found",)

    def __init__(self, found: dict):
        self.found = found


jax.tree_util.register_pytree_node(
    Ordered,
    lambda x: (tuple(x.found.values()), tuple(x.found)),
    lambda keys, values: Ordered(dict(zip(keys, values))),
)


def restored(nest: Any, given: Any) -> Any:
    """The nest with the keys of its dicts in the order in which they were given."""
    if type(nest) is dict and type(given) is dict and nest.keys() == given.keys():
        return {key: restored(nest[key], x) for key, x in given.items()}
    if isinstance(nest, list | tuple) and type(given) is type(nest) and len(given) == len(nest):
        return _like(nest, map(restored, nest, given))
    return nest


def kept(nest: Any, met: list[bool]) -> Any:
    """The nest, a result of a program, with the order of its keys known to JAX. If there is a dict
    whose keys are not sorted, True is added to `met`.
    """
    if type(nest) is dict:
        found = {key: kept(x, met) for key, x in nest.items()}
        if _is_sorted(list(found)):
            return found
        met.append(True)
        return Ordered(found)
    return _like(nest, [kept(x, met) for x in nest]) if isinstance(nest, list | tuple) else nest


def released(nest: Any) -> Any:
    """The nest `kept`, after the program."""
    kind = type(nest)
    if kind is Ordered:
        nest, kind = nest.found, dict
    if kind is dict:
        return {key: released(x) if isinstance(x, NESTS) else x for key, x in nest.items()}
    return _like(nest, map(released, nest)) if isinstance(nest, list | tuple) else nest


NESTS = (dict, list, tuple, Ordered)


def _like(nest: list | tuple, parts: Any) -> Any:
    if type(nest) in (list, tuple):
        return type(nest)(parts)
    make: Callable | None = getattr(nest, "_make", None)  # a namedtuple; JAX knows no other class
    return nest if make is None else make(parts)


def _is_sorted(keys: list) -> bool:
    try:
        return sorted(keys) == keys
    except TypeError:  # keys of several types
        return False
