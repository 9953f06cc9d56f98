"""Checks and small steps that the functions of this room share."""

from __future__ import annotations

from math import prod
from operator import index
from typing import Any

from ..core.dispatch import NUMBERS, dtype_of, find_backend
from ..core.dtypes import float_dtype, index_dtype


def array(xp: Any, x: Any, beside: Any) -> Any:
    """`x` as an array: a Python number is placed beside another array."""
    return xp.weak(x, [beside]) if type(x) in NUMBERS else x


def real(name: str, xp: Any, x: Any) -> Any:
    """`x`, checked to hold real numbers."""
    if xp.isdtype(x.dtype, "bool") or xp.is_complex(x.dtype):
        raise TypeError(f"{name}: needed real numbers, got {dtype_of(x)}; convert them")
    return x


def integers(name: str, what: str, xp: Any, x: Any) -> Any:
    """`x` in the dtype of indices, checked to be an integer array."""
    if find_backend(x) is not xp or not xp.isdtype(x.dtype, "integral"):
        came = dtype_of(x) if find_backend(x) is not None else f"a {type(x).__name__}"
        raise TypeError(f"{name}: needed {what} as an integer array, got {came}")
    return xp.astype(x, index_dtype(xp))


def floats(xp: Any, x: Any) -> Any:
    """`x`, or its integers and booleans in the default floating dtype."""
    return x if xp.is_float(x.dtype) else xp.astype(x, float_dtype(xp))


def limits(xp: Any, dtype: Any) -> tuple[Any, Any]:
    """The least and the greatest number of a dtype: infinities, if it has them."""
    if xp.is_float(dtype):
        return -float("inf"), float("inf")
    found = xp.iinfo(dtype)
    return int(found.min), int(found.max)


def size(name: str, what: str, n: Any, least: int = 0) -> int:
    """A number of elements."""
    try:
        number = -1 if isinstance(n, bool) else index(n)
    except TypeError:
        number = -1
    if number < least:
        raise ValueError(f"{name}: needed {what} as an integer of at least {least}, got {n!r}")
    return number


def axis_of(name: str, x: Any, axis: Any) -> int:
    """An axis, counted from the front."""
    n = len(x.shape)
    try:
        place = index(axis)
    except TypeError:
        place = n
    if not -n <= place < n:
        raise ValueError(f"{name}: needed an axis of shape {tuple(x.shape)}, got {axis!r}")
    return place % n


def axes_of(name: str, x: Any, axis: Any) -> tuple[int, ...]:
    """The axes that are reduced, counted from the front."""
    if axis is None:
        return tuple(range(len(x.shape)))
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple(axis_of(name, x, i) for i in given)
    if len(set(axes)) != len(axes):
        raise ValueError(f"{name}: needed each axis once, got {axis!r}")
    return axes


def lanes(xp: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """`x` with the reduced axes as one, the last."""
    rest = [i for i in range(len(x.shape)) if i not in axes]
    moved = xp.permute_dims(x, (*rest, *axes)) if len(x.shape) > 1 else x
    return xp.reshape(moved, (*(x.shape[i] for i in rest), prod(x.shape[i] for i in axes)))


def one_of(name: str, what: str, word: Any, known: tuple[str, ...]) -> None:
    if word not in known:
        raise ValueError(f"{name}: needed {what} as one of {', '.join(known)}, got {word!r}")


def places(xp: Any, n: int, beside: Any) -> Any:
    """0 … n - 1 on the device of an array."""
    return xp.arange(n, dtype=index_dtype(xp), device=xp.device_of(beside))
