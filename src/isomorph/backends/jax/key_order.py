"""The order of keys in dicts that are results of a program: JAX sorts them, other frameworks and
eager code do not.
"""

from __future__ import annotations

from typing import Any

from ...core import tree


def kept(nest: Any) -> Any:
    """The nest, a result of a program; taken apart, if it has a dict whose keys are not sorted."""
    return nest if _is_sorted(nest) else tree.Flat.of(nest)


def released(nest: Any) -> Any:
    """The nest `kept`, after the program."""
    return nest.nest if type(nest) is tree.Flat else nest


def _is_sorted(nest: Any) -> bool:
    if type(nest) is dict:
        try:
            return sorted(nest) == list(nest) and all(map(_is_sorted, nest.values()))
        except TypeError:  # keys of several types
            return False
    return not isinstance(nest, list | tuple) or all(map(_is_sorted, nest))
