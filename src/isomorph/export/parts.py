"""A model taken apart for a framework that keeps the arrays itself: what there is, under which
names, and a copy of the model around arrays for one call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import optree

from .. import tree
from ..dispatch import find_backend
from ..modules.copying import How, Skeleton, copied
from ..modules.module import Module
from ..modules.structure import Held, State, gather, submodules
from ..moving import convert

if TYPE_CHECKING:
    from ..typing import BackendName


class Part(NamedTuple):
    """A variable, a constant, or a value of state: any nest, mostly one array."""

    path: tuple
    place: Any  # what stands for it in the model without arrays
    value: Any

    @property
    def is_state(self) -> bool:
        """Whether a call may change it; a frozen array is in the state of a model too."""
        return type(self.place) is State


class Form:
    """A model without its arrays."""

    def __init__(self, model: Any):
        self.skeleton = Skeleton(model)
        self.husk: Any = self.skeleton.husk

    def copy(self, values: dict[int, Any]) -> Any:
        """The model for one call, with arrays, and `State` for state, by the identity of their
        places.
        """
        return copied(self.husk, self.husk, values, How())

    def filled(self, values: dict[int, Any]) -> Any:
        """A model in its own right, with values by the identity of their places."""
        nests = gather(self.husk, raw=True)
        return self.skeleton.filled(
            Held(*(tree.map(lambda place: values[id(place)], nest) for nest in nests))
        )

    def modules(self, path: tuple = ()) -> list[Any]:
        """The modules at a path and below it."""
        every = [((), self.husk), *((where, sub) for where, sub, _ in submodules(self.husk))]
        return [sub for where, sub in every if where[: len(path)] == path]


def taken_apart(
    name: str, model: Any, backend: BackendName
) -> tuple[Form, list[Part], list[Part], list[Part]]:
    """The form of a model, and its variables, state and constants on a backend."""
    if not isinstance(model, Module):
        raise TypeError(f"{name}: needed an iso.Module, got {type(model).__name__}")
    moved = convert(model, backend)
    form = Form(moved)
    variables, state, constants = (
        [
            Part(path, place, value)
            for (path, place), value in zip(_leaves(nest), tree.flatten(nest)[1].flatten_up_to(has))
        ]
        for nest, has in zip(gather(form.husk, raw=True), gather(moved))
    )
    return form, variables, state, constants


def _leaves(nest: Any) -> list[tuple[tuple, Any]]:
    return list(zip(optree.tree_paths(nest, namespace=tree.TRAINED), tree.flatten(nest)[0]))


def is_array(x: Any) -> bool:
    return find_backend(x) is not None


# The nests of a value of state, in plain Python: a compiler must follow it.


def spread(nest: Any, path: tuple = ()) -> tuple[list[tuple[tuple, Any]], Any]:
    """The leaves of a nest of dicts, lists and tuples with their paths, and its form."""
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
    """The nest of a form; `leaves` is used up from its beginning."""
    if form is None:
        return leaves.pop(0)
    cls, keys, forms = form
    parts = [joined(inner, leaves) for inner in forms]
    if issubclass(cls, dict):
        return cls(zip(keys, parts))
    return cls(*parts) if hasattr(cls, "_fields") else cls(parts)


def leaves_again(name: str, old: Any, new: Any, was: list[bool]) -> list[Any]:
    """The leaves of state after a call, which must have the form it began with."""
    leaves, form = spread(new)
    if old != form or was != [is_array(x) for _, x in leaves]:
        kinds = ", ".join(f"{'/'.join(map(str, p))} {type(x).__name__}" for p, x in leaves)
        raise TypeError(f"{name}: needed state of the form it began with, got {kinds or 'nothing'}")
    return [x for _, x in leaves]
