"""Take a model apart, for frameworks that store the arrays themselves: a list of the arrays and
their names, and a structure that makes a copy of the model for each call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..arrays.conversion import convert
from ..core.dispatch import find_backend
from ..modules.contents import STATE, Skeleton, gather, look
from ..modules.module import Module
from ..modules.state import State

if TYPE_CHECKING:
    from ..typing import BackendName


class Part(NamedTuple):
    """A variable, a constant, or a value of state, which may be any nest."""

    path: tuple
    number: int  # of the leaf in the skeleton
    value: Any
    is_state: bool  # whether a call may change it; not true of frozen arrays in `state`


class Form:
    """A model without its arrays. Its settings, such as `training`, can be changed."""

    def __init__(self, skeleton: Skeleton):
        self.skeleton, self.nodes = skeleton, skeleton.empty()

    def copy(self, leaves: dict[int, Any]) -> Any:
        """A copy for one call, from leaves by number: arrays, and `State` for state."""
        return self.skeleton.copy(leaves, self.nodes)

    def filled(self, values: dict[int, Any]) -> Any:
        """A normal module, from values of leaves by number."""
        leaves = [values[n] for n in range(len(values))]
        for n in self.skeleton.states:
            leaves[n] = State(values[n], lent=True)
        return self.skeleton.around(leaves, self.nodes)

    def modules(self, path: tuple = ()) -> list[Any]:
        """The modules at a path and below it."""
        rows = zip(self.skeleton.rows, self.nodes)
        return [x for row, x in rows if row.is_module and row.path[: len(path)] == path]


def taken_apart(
    name: str, model: Any, backend: BackendName
) -> tuple[Form, list[Part], list[Part], list[Part]]:
    """The structure of a model, and its variables, state and constants on a backend."""
    if not isinstance(model, Module):
        raise TypeError(f"{name}: needed an iso.Module, got {type(model).__name__}")
    moved = convert(model, backend)
    skeleton = look(moved).skeleton
    variables, state, constants = (
        [
            Part(path, number, value, skeleton.kinds[number] == STATE)
            for path, number, value in zip(nest.routes, nest.numbers, nest.form.flatten_up_to(has))
        ]
        for nest, has in zip(skeleton.nests, gather(moved))
    )
    return Form(skeleton), variables, state, constants


def is_array(x: Any) -> bool:
    return find_backend(x) is not None


# Values of state may be nests. These functions are plain Python, so that compilers can trace them.


def spread(nest: Any, path: tuple = ()) -> tuple[list[tuple[tuple, Any]], Any]:
    """The leaves of a nest of dicts, lists and tuples with their paths, and its structure."""
    if not isinstance(nest, (dict, list, tuple)):
        return [(path, nest)], None
    keys = tuple(nest) if isinstance(nest, dict) else tuple(range(len(nest)))
    leaves, forms = [], []
    for key in keys:
        inner, form = spread(nest[key], (*path, key))
        leaves += inner
        forms.append(form)
    return leaves, (type(nest), keys, tuple(forms))


def joined(form: Any, leaves: list[Any]) -> Any:
    """Rebuild a nest. It removes its leaves from the front of `leaves`."""
    if form is None:
        return leaves.pop(0)
    cls, keys, forms = form
    parts = [joined(inner, leaves) for inner in forms]
    if issubclass(cls, dict):
        return cls(zip(keys, parts))
    return cls(*parts) if hasattr(cls, "_fields") else cls(parts)


def leaves_again(name: str, old: Any, new: Any, were_arrays: list[bool]) -> list[Any]:
    """The leaves of state after a call; raises if the structure has changed."""
    leaves, form = spread(new)
    if old != form or were_arrays != [is_array(x) for _, x in leaves]:
        kinds = ", ".join(f"{'/'.join(map(str, p))} {type(x).__name__}" for p, x in leaves)
        raise TypeError(
            f"{name}: needed state of the same structure as before, got {kinds or 'none'}"
        )
    return [x for _, x in leaves]
