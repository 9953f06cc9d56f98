"""Nests of dicts, lists, tuples and None with arrays as leaves.

One tree library for all backends (optree: sorted dict keys, None is an empty nest), never a
framework's own: they disagree on the order of keys and on None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import optree

# Typed as what they are to callers: any nest in, any nest out.
flatten: Callable[[Any], tuple[list[Any], Any]] = optree.tree_flatten
unflatten: Callable[[Any, Any], Any] = optree.tree_unflatten


def map(func: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """The nest of `func(leaf, ...)`."""
    return optree.tree_map(func, tree, *rest)


def keys(tree: Any) -> list[Any]:
    """The keys of a dict, list or tuple in the order of `flatten`."""
    return list(optree.tree_flatten_one_level(tree).entries)


def paths(tree: Any) -> list[str]:
    """The key chain of each leaf, joined with `/`, in the order of `flatten`."""
    return ["/".join(str(key) for key in path) for path in optree.tree_paths(tree)]
