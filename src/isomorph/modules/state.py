"""Values in a module that a call may change."""

from __future__ import annotations

from numbers import Number
from typing import Any

from ..compile.compiling import TRACING
from ..core import tree
from ..core.dispatch import find_backend
from ..gradients.checkpointing import is_repeated


class State:
    """A value that a call may change and that is not trained: a running mean, a counter, a key.

    Set it as an attribute of a module. `forward` reads and sets `self.name.value`; `module.state`
    shows the values. `module(x)` keeps the change, `module(x, v=v)` does not, and `module.apply`
    returns the new state.

    >>> count = iso.State(0)
    >>> count.value += 1
    >>> count
    State(1)
    """

    __slots__ = ("_value", "lent")

    def __init__(self, value: Any, *, lent: bool = False):
        # A lent state is used in one call. It copies arrays, because `state.value += 1` may change
        # them in place.
        self._value, self.lent = tree.map(_own_copy if lent else _python_number, value), lent

    @property
    def value(self) -> Any:
        return self._value

    @value.setter
    def value(self, new: Any) -> None:
        if is_repeated():
            raise RuntimeError(
                "State: cannot set a value inside iso.checkpoint, which runs its function again "
                "for the gradient; set it outside"
            )
        if not self.lent and (TRACING.get() or any(map(is_local, tree.flatten(new)[0]))):
            raise RuntimeError(
                "State: cannot set a value during differentiation or compilation, as it would be "
                "invalid afterwards; use module.apply(v, state, ...), which returns the new state"
            )
        self._value = new

    def __repr__(self) -> str:
        return f"State({self._value!r})"


def value_of(x: Any) -> Any:
    """The value of a `State`, or `x` itself."""
    return x.value if type(x) is State else x


def is_local(x: Any) -> bool:
    """Whether `x` is valid only inside one differentiation or compilation, as tracers are."""
    backend = find_backend(x)
    return backend is not None and backend.is_local(x)


def _python_number(x: Any) -> Any:
    """A NumPy number as a Python number, which every backend accepts."""
    is_number = isinstance(x, Number) or type(x).__name__ in ("bool", "bool_")
    item = getattr(x, "item", None)
    return item() if is_number and item is not None else x


def _own_copy(x: Any) -> Any:
    backend = find_backend(x)
    return x if backend is None else backend.own(x)
