"""A module as a nest of parameters and pure functions of them."""

from __future__ import annotations

from typing import Any

import jax

from .. import tree
from ..modules.copying import substitutes
from ..modules.structure import State, gather
from .parts import is_array, taken_apart


class Exported:
    """See `iso.export.to_jax`."""

    params: Any
    state: Any

    def __init__(self, model: Any):
        self._form, *parts = taken_apart("to_jax", model, "jax")
        self._wanted = gather(self._form.husk, raw=True)
        held = {id(part.place): tree.map(_own, part.value) for each in parts for part in each}
        self.params, self.state, constants = (
            tree.map(lambda place: held[id(place)], nest) for nest in self._wanted
        )
        self._constants = substitutes(self._wanted.constants, constants, "to_jax")

    def apply(self, params: Any, state: Any, /, *args: Any, **kw: Any) -> tuple[Any, Any]:
        """`(out, new state)` of the model with these parameters and this state."""
        memo = substitutes(self._wanted.variables, params, "to_jax, params")
        memo |= substitutes(self._wanted.state, state, "to_jax, state")
        states = {i: x for i, x in memo.items() if type(x) is State}
        out = self._form.copy(memo | self._constants).forward(*args, **kw)

        def new(place: Any) -> Any:
            return states[id(place)].value if type(place) is State else memo[id(place)]

        return out, tree.map(new, self._wanted.state)

    def __call__(self, params: Any, /, *args: Any, **kw: Any) -> Any:
        """What a model without state computes."""
        if self._wanted.state:
            raise TypeError(
                "to_jax: needed a model without state to be called with parameters alone, got "
                f"state at {', '.join(tree.paths(self._wanted.state))}; use apply(params, state, "
                "...), which returns the new state too"
            )
        return self.apply(params, {}, *args, **kw)[0]

    def to_isomorph(self, params: Any, state: Any = None) -> Any:
        """The model with these parameters, and this state, or that of the export."""
        values = substitutes(self._wanted.variables, params, "to_jax, params") | self._constants
        state = self.state if state is None else state
        for i, x in substitutes(self._wanted.state, state, "to_jax, state").items():
            values[i] = x.value if type(x) is State else x
        return self._form.filled(values)


def _own(x: Any) -> Any:
    """A copy, which no array of another framework shares memory with."""
    return jax.numpy.array(x, copy=True) if is_array(x) else x
