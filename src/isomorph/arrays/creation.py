"""New arrays from a shape, numbers or other arrays, on the default backend or the one named.

Floating-point arrays are float32 on every backend, like the weights of layers, unless a dtype is
given or `use_backend` sets one. So new arrays fit the layers, and every backend can read a file
that another wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.default_backend import floating, home
from ..core.dispatch import find_backend, load
from .conversion import convert

if TYPE_CHECKING:
    from ..typing import BackendName, DType, Shape


def asarray(
    obj: Any,
    /,
    *,
    dtype: DType | None = None,
    device: Any = None,
    backend: BackendName | None = None,
) -> Any:
    """An array made from `obj`, a number or nested sequence of numbers; real floats become float32
    unless a dtype is given, here or to `use_backend`. An array is returned unchanged unless another
    backend, device or dtype is asked for.

    >>> iso.asarray([1.0, 2.0], backend="numpy")
    array([1., 2.], dtype=float32)
    """
    own = find_backend(obj)
    if own is not None and backend in (None, own.name):
        return own.asarray(obj, dtype=own.dtype(dtype), device=own.device(device))
    if own is not None:
        target = load(backend)  # type: ignore[arg-type]
        near: Any = target.name
        return target.asarray(
            convert(obj, near), dtype=target.dtype(dtype), device=target.device(device)
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
    shape: Shape,
    /,
    *,
    dtype: DType | None = None,
    device: Any = None,
    backend: BackendName | None = None,
) -> Any:
    """Zeros of a shape, float32 unless a dtype is given, here or to `use_backend`.

    >>> iso.zeros((1, 2))
    array([[0., 0.]], dtype=float32)
    """
    place = home(backend, device, dtype)
    return place.backend.zeros(shape, dtype=floating(place), device=place.device)


def ones(
    shape: Shape,
    /,
    *,
    dtype: DType | None = None,
    device: Any = None,
    backend: BackendName | None = None,
) -> Any:
    """Ones of a shape, float32 unless a dtype is given, here or to `use_backend`.

    >>> iso.ones(2, dtype="int32")
    array([1, 1], dtype=int32)
    """
    place = home(backend, device, dtype)
    return place.backend.ones(shape, dtype=floating(place), device=place.device)


def full(
    shape: Shape,
    value: Any,
    /,
    *,
    dtype: DType | None = None,
    device: Any = None,
    backend: BackendName | None = None,
) -> Any:
    """An array filled with one number. Unless a dtype is given the number decides it: a float gives
    the dtype of `zeros`.

    >>> iso.full(2, 7), iso.full(2, 0.5)
    (array([7, 7]), array([0.5, 0.5], dtype=float32))
    """
    place = home(backend, device, dtype)
    kept = floating(place) if dtype is not None or isinstance(value, float) else None
    return place.backend.full(shape, value, dtype=kept, device=place.device)


def arange(
    start: float, stop: float | None = None, step: float = 1, *,
    dtype: DType | None = None, device: Any = None, backend: BackendName | None = None,
) -> Any:  # fmt: skip
    """Evenly spaced numbers from `start` up to `stop`, which is left out; integers, or the dtype of
    `zeros` if one of the three arguments is a float.

    >>> iso.arange(3)
    array([0, 1, 2])
    """
    place = home(backend, device, dtype)
    floats = any(isinstance(x, float) for x in (start, stop, step))
    kept = floating(place) if dtype is not None or floats else None
    return place.backend.arange(start, stop, step, dtype=kept, device=place.device)


def linspace(
    start: float, stop: float, num: int, *, endpoint: bool = True,
    dtype: DType | None = None, device: Any = None, backend: BackendName | None = None,
) -> Any:  # fmt: skip
    """`num` evenly spaced numbers from `start` to `stop` inclusive, with the dtype of `zeros`.

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
    dtype: DType | None = None,
    device: Any = None,
    backend: BackendName | None = None,
) -> Any:
    """The identity matrix, `n` by `m`, with the dtype of `zeros`.

    >>> iso.eye(2)
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    place = home(backend, device, dtype)
    return place.backend.eye(n, m, dtype=floating(place), device=place.device)
