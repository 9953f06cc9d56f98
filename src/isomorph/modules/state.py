"""Values that a module holds and a call may change."""

from __future__ import annotations

from numbers import Number
from typing import Any

from .. import tree
from ..compiling import TRACING
from ..dispatch import find_backend
from ..gradients.checkpointing import is_repeated


class State:
    """A value that a call may change and that is not trained: a running mean, a counter, a key.

    An attribute of a module. `forward` reads and sets `self.name.value`; `module.state` shows the
    values. In `module(x)` the change stays; `module(x, v=v)` leaves the module as it was, and
    `module.apply` returns the new state.

    >>> count = iso.State(0)
    >>> count.value += 1
    >>> count
    State(1)
    """

    __slots__ = ("_value", "lent")

    def __init__(self, value: Any, *, lent: bool = False):
        # what is lent may be changed in place, `state.value += 1`, and the owner's shall not
        self._value, self.lent = tree.map(_private if lent else _plain, value), lent

    @property
    def value(self) -> Any:
        return self._value

    @value.setter
    def value(self, new: Any) -> None:
        if is_repeated():
            raise RuntimeError(
                "State: a value set inside iso.checkpoint, whose function is computed again on the "
                "way back; leave what changes state outside of it"
            )
        if not self.lent and (TRACING.get() or any(map(is_local, tree.flatten(new)[0]))):
            raise RuntimeError(
                "State: a value set under differentiation or compilation would outlive its call; "
                "use module.apply(v, state, ...), which returns the new state"
            )
        self._value = new

    def __repr__(self) -> str:
        return f"State({self._value!r})"


def value_of(x: Any) -> Any:
    """The value of a `State`, or `x` itself."""
    return x.value if type(x) is State else x


def is_local(x: Any) -> bool:
    """Whether `x` means something only inside the differentiation or compilation that made it."""
    backend = find_backend(x)
    return backend is not None and backend.is_local(x)


def _plain(x: Any) -> Any:
    """A number of NumPy's as a Python number, which every backend takes."""
    is_number = isinstance(x, Number) or type(x).__name__ in ("bool", "bool_")
    item = getattr(x, "item", None)
    return item() if is_number and item is not None else x


def _private(x: Any) -> Any:
    backend = find_backend(x)
    return x if backend is None else backend.own(x)
