"""Which leaves of a nest are selected: by pattern, by a function, or by a nest of bools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from ..core import tree
from .lifting import Lift

Mask = str | Sequence[str] | Callable[[str, Any], bool] | dict | list | tuple | bool | None


def chosen(lift: Lift, mask: Mask) -> list[bool]:
    """Whether a mask selects it, for each leaf of a call's first nest.

    None selects every leaf. A pattern is compared with the keys of a leaf joined with `/`, as in a
    shell (but `*` also matches `/`). With several patterns a leaf is selected if one matches; each
    must match some leaf. A function is called with the path and the array. Anything else is a nest
    of bools like the first nest.
    """
    leaves = lift.columns[0]
    if mask is None:
        return [True] * len(leaves)
    patterns = _patterns(mask)
    if patterns is None and not callable(mask):
        return [_bool(lift, i, x) for i, x in enumerate(lift.like("mask", mask))]
    paths = tree.paths(lift.nests[lift.first])
    if patterns is None:
        return [_bool(lift, i, mask(p, x)) for i, (p, x) in enumerate(zip(paths, leaves))]  # type: ignore[operator]
    for pattern in patterns:
        if not any(fnmatchcase(path, pattern) for path in paths):
            raise ValueError(
                f"{lift.name}: mask {pattern!r} matches no path of {lift.first}, which has "
                f"{', '.join(paths) or 'none'}"
            )
    return [any(fnmatchcase(path, pattern) for pattern in patterns) for path in paths]


def _patterns(mask: Any) -> list[str] | None:
    if isinstance(mask, str):
        return [mask]
    if isinstance(mask, (list, tuple)) and mask and all(isinstance(x, str) for x in mask):
        return list(mask)
    return None


def _bool(lift: Lift, i: int, x: Any) -> bool:
    if not isinstance(x, bool):
        raise TypeError(
            f"{lift.name}: needed True or False as mask{lift.at(i)}, got {type(x).__name__}"
        )
    return x
