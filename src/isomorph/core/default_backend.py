"""Where new arrays are made when no array decides it: an explicit argument, else `use_backend`,
else NumPy.

The choice is a context variable, so threads and tasks do not see each other's. It affects creation
only: operations on an array follow the array.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from .dispatch import load

if TYPE_CHECKING:
    from ..types.standard import Namespace
    from ..typing import BackendName, DType
    from .contract import Contract


class Home(NamedTuple):
    backend: Contract
    device: Any = None
    dtype: Any = None


HOME: ContextVar[Home | None] = ContextVar("isomorph.home", default=None)


@contextmanager
def use_backend(
    name: BackendName, device: Any = None, dtype: DType | None = None
) -> Iterator[Namespace]:
    """Within the block, new arrays are made on this backend and device; floating-point ones have
    this dtype, or float32 if none is given.

    >>> with iso.use_backend("numpy", dtype="float64"):
    ...     iso.zeros(2).dtype
    dtype('float64')
    """
    backend = load(name)
    kind = backend.dtype(dtype)
    if kind is not None and not backend.is_float(kind):
        raise TypeError(
            f"use_backend: needed a floating dtype, got {dtype!r}; "
            "for integer arrays, pass dtype= where each is made"
        )
    token = HOME.set(Home(backend, backend.device(device), kind))
    try:
        yield backend.namespace
    finally:
        HOME.reset(token)


def home(backend: str | None = None, device: Any = None, dtype: Any = None) -> Home:
    """Backend, device and dtype for a new array: the given ones, completed from the enclosing
    `use_backend` if that names the same backend.
    """
    around = HOME.get() or Home(host())
    chosen = around.backend if backend is None else load(backend)
    if chosen is not around.backend:
        around = Home(chosen)
    return Home(
        chosen,
        around.device if device is None else chosen.device(device),
        around.dtype if dtype is None else chosen.dtype(dtype),
    )


def floating(place: Home) -> Any:
    """The dtype of new floating-point arrays."""
    return place.backend.float32 if place.dtype is None else place.dtype  # pyright: ignore


def host() -> Contract:
    """NumPy's backend, which handles memory of the host."""
    return load("numpy")
