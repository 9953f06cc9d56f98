"""Where arrays are made when no array is there to say: an explicit argument, else `use_backend`,
else NumPy.

Floating-point arrays are float32 unless a dtype is given or `use_backend` names one, on every
backend: what layers are made in. So arrays made here fit them, and a file written by one backend
is read by another.

The choice lives in a context variable, so threads and tasks do not see each other's, and it touches
creation only: what is done to an array is decided by the array.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from .dispatch import BACKENDS, backend_of, find_backend, load

if TYPE_CHECKING:
    from .backends.contract import Contract
    from .backends.vocabulary import Names


class Home(NamedTuple):
    backend: Contract
    device: Any = None
    dtype: Any = None


NOTHING = object()  # what stands for an argument that was not given
HOME: ContextVar[Home | None] = ContextVar("isomorph.home", default=None)


@contextmanager
def use_backend(name: str, device: Any = None, dtype: Any = None) -> Iterator[Names]:
    """Within the block, arrays made from nothing are made on this backend, device and floating
    dtype, float32 where none is given.

    >>> with iso.use_backend("numpy", dtype="float64"):
    ...     iso.zeros(2).dtype
    dtype('float64')
    """
    backend = load(name)
    kind = backend.dtype(dtype)
    if kind is not None and not backend.is_float(kind):
        raise TypeError(
            f"use_backend: needed a floating dtype, got {dtype!r}; "
            "integers are asked for one by one"
        )
    token = HOME.set(Home(backend, backend.device(device), kind))
    try:
        yield backend.namespace
    finally:
        HOME.reset(token)


def home(backend: str | None = None, device: Any = None, dtype: Any = None) -> Home:
    """The home of a new array: what was given, completed from the enclosing `use_backend` if that
    is the same backend.
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
    """NumPy's backend, which speaks for plain memory."""
    return load("numpy")


def namespace(x: Any = NOTHING, y: Any = None, /, *others: Any) -> Names:
    """The array API namespace of the arrays given, Python scalars and None passed over; of the home
    if none is given.

    Arrays of two frameworks raise. The namespace has the Python array API standard 2024.12 with
    `linalg` and `fft`, `einsum`, `erf`, and `pad` with a constant, and nothing else.

    >>> iso.namespace(np.ones(3)).tanh is np.tanh
    True
    """
    if x is NOTHING:
        return home().backend.namespace
    found = BACKENDS[type(x)]
    if found is not None and not others and (y is None or BACKENDS[type(y)] is found):
        return found.namespace  # one or two arrays, the usual cases, without a loop
    return backend_of(x, y, *others).namespace


def asarray(
    obj: Any, /, *, dtype: Any = None, device: Any = None, backend: str | None = None
) -> Any:
    """An array of `obj`, a number or nested sequence of numbers; real floating ones are float32
    unless a dtype is given, here or to `use_backend`. An array stays as it is unless asked to move.

    >>> iso.asarray([1.0, 2.0], backend="numpy")
    array([1., 2.], dtype=float32)
    """
    own = find_backend(obj)
    if own is not None and backend in (None, own.name):
        return own.asarray(obj, dtype=own.dtype(dtype), device=own.device(device))
    if own is not None:
        from .moving import convert  # the way between two frameworks

        target = load(backend)  # type: ignore[arg-type]
        return target.asarray(
            convert(obj, target.name), dtype=target.dtype(dtype), device=target.device(device)
        )
    place = home(backend, device)
    if dtype is None:
        array = place.backend.asarray(obj, device=place.device)
        real = place.backend.is_float(array.dtype) and not place.backend.is_complex(array.dtype)
        if not real or array.dtype == floating(place):
            return array
    wanted = floating(place) if dtype is None else place.backend.dtype(dtype)
    return place.backend.asarray(obj, dtype=wanted, device=place.device)


def zeros(
    shape: Any, /, *, dtype: Any = None, device: Any = None, backend: str | None = None
) -> Any:
    """Zeros of a shape, float32 unless a dtype is given, here or to `use_backend`.

    >>> iso.zeros((1, 2))
    array([[0., 0.]], dtype=float32)
    """
    place = home(backend, device, dtype)
    return place.backend.zeros(shape, dtype=floating(place), device=place.device)


def ones(
    shape: Any, /, *, dtype: Any = None, device: Any = None, backend: str | None = None
) -> Any:
    """Ones of a shape, float32 unless a dtype is given, here or to `use_backend`.

    >>> iso.ones(2, dtype="int32")
    array([1, 1], dtype=int32)
    """
    place = home(backend, device, dtype)
    return place.backend.ones(shape, dtype=floating(place), device=place.device)


def full(
    shape: Any, value: Any, /, *, dtype: Any = None, device: Any = None, backend: str | None = None
) -> Any:
    """One number in every place; its kind decides the dtype unless one is given: of a float, that
    of `zeros`.

    >>> iso.full(2, 7), iso.full(2, 0.5)
    (array([7, 7]), array([0.5, 0.5], dtype=float32))
    """
    place = home(backend, device, dtype)
    kept = floating(place) if dtype is not None or isinstance(value, float) else None
    return place.backend.full(shape, value, dtype=kept, device=place.device)


def arange(
    start: float, stop: float | None = None, step: float = 1, *,
    dtype: Any = None, device: Any = None, backend: str | None = None,
) -> Any:  # fmt: skip
    """Evenly spaced numbers from `start` up to `stop`, which is left out; integers, or where one of
    the three is a float, of the dtype of `zeros`.

    >>> iso.arange(3)
    array([0, 1, 2])
    """
    place = home(backend, device, dtype)
    floats = any(isinstance(x, float) for x in (start, stop, step))
    kept = floating(place) if dtype is not None or floats else None
    return place.backend.arange(start, stop, step, dtype=kept, device=place.device)


def linspace(
    start: float, stop: float, num: int, *, endpoint: bool = True,
    dtype: Any = None, device: Any = None, backend: str | None = None,
) -> Any:  # fmt: skip
    """`num` numbers from `start` to `stop`, of the dtype of `zeros`.

    >>> iso.linspace(0.0, 1.0, 3)
    array([0. , 0.5, 1. ], dtype=float32)
    """
    place = home(backend, device, dtype)
    return place.backend.linspace(
        start, stop, num, dtype=floating(place), device=place.device, endpoint=endpoint
    )


def eye(
    n: int,
    m: int | None = None,
    /,
    *,
    dtype: Any = None,
    device: Any = None,
    backend: str | None = None,
) -> Any:
    """The identity matrix, `n` by `m`, of the dtype of `zeros`.

    >>> iso.eye(2)
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    place = home(backend, device, dtype)
    return place.backend.eye(n, m, dtype=floating(place), device=place.device)
