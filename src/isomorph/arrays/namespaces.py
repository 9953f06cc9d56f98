"""The namespace of arrays: the functions that a user's code computes with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.default_backend import home
from ..core.dispatch import NAMESPACES, backend_of

if TYPE_CHECKING:
    from ..types.standard import Namespace

NOTHING = object()  # default for an argument that was not given


def namespace(x: Any = NOTHING, y: Any = None, /, *others: Any) -> Namespace:
    """The array API namespace of the given arrays; Python scalars and None are ignored. Without
    arguments, the namespace of the default backend.

    Arrays of two frameworks raise. The namespace has the Python array API standard 2024.12 with
    `linalg` and `fft`, `einsum`, `erf`, and `pad` with a constant, and nothing else.

    >>> iso.namespace(np.ones(3)).tanh is np.tanh
    True
    """
    if x is NOTHING:
        return home().backend.namespace
    found = NAMESPACES[type(x)]
    if found is not None and not others and (y is None or NAMESPACES[type(y)] is found):
        return found  # one or two arrays, the usual cases, skip the loop
    return backend_of(x, *(() if y is None else (y,)), *others).namespace
