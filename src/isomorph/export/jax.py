"""Export to JAX: a nest of parameters, and pure functions of it."""

from __future__ import annotations

from typing import Any

import jax

from ..core import tree
from ..modules.contents import STATE, VARIABLE
from ..modules.state import value_of
from .parts import is_array, taken_apart


class Exported:
    """See `iso.export.to_jax`."""

    params: Any
    state: Any

    def __init__(self, model: Any):
        form, *parts = taken_apart("to_jax", model, "jax")
        self._skeleton = form.skeleton
        held = {part.number: tree.map(_own, part.value) for each in parts for part in each}
        self._leaves = [held[n] for n in range(len(held))]
        self.params, self.state, _ = self._skeleton.held(self._leaves)

    def _with(self, params: Any, state: Any) -> list[Any]:
        """All leaves, with these parameters and this state; values of state as `State`."""
        leaves = list(self._leaves)
        self._skeleton.put(leaves, VARIABLE, params, "to_jax, params")
        self._skeleton.put(leaves, STATE, state, "to_jax, state")
        return leaves

    def apply(self, params: Any, state: Any, /, *args: Any, **kw: Any) -> tuple[Any, Any]:
        """Call the model with these parameters and this state; return `(out, new state)`."""
        leaves = self._with(params, state)
        out = self._skeleton.copy(leaves).forward(*args, **kw)
        return out, self._skeleton.held([value_of(x) for x in leaves]).state

    def __call__(self, params: Any, /, *args: Any, **kw: Any) -> Any:
        """Call a model without state."""
        if self.state:
            raise TypeError(
                "to_jax: needed a model without state in a call with params only, got state at "
                f"{', '.join(tree.paths(self.state))}; use apply(params, state, ...), which "
                "returns the new state too"
            )
        return self.apply(params, {}, *args, **kw)[0]

    def to_isomorph(self, params: Any, state: Any = None) -> Any:
        """The model with these parameters, and this state (by default the state at export)."""
        leaves = self._with(params, self.state if state is None else state)
        return self._skeleton.filled(self._skeleton.held([value_of(x) for x in leaves]))


def _own(x: Any) -> Any:
    """A copy that shares no memory with arrays of other frameworks."""
    return jax.numpy.array(x, copy=True) if is_array(x) else x
