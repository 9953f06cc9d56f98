"""Arrays made from values that may be traced."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from itertools import islice
from typing import Any

import numpy

from ..backends.numpy.buffers import Buffer, bare, made, result
from ..backends.numpy.layouts import in_layout_of
from ..backends.numpy.levels import OPEN
from ..backends.numpy.nested import gathered, holds_traced
from ..backends.numpy.storage import ACTIVE, is_number, layout
from ..backends.numpy.traced import Traced, concrete, floating

__all__ = [
    "arange",
    "array",
    "asanyarray",
    "asarray",
    "asarray_chkfinite",
    "ascontiguousarray",
    "asfortranarray",
    "fromiter",
    "full",
    "full_like",
    "require",
]

np: Any = numpy  # its type stubs do not know traced values


def _kept(x: Any, given: Any, func: Callable[[Any], Any]) -> Any:
    """What NumPy made of a list, a buffer or an array: the array of a caller stays what it is."""
    if type(given) is Buffer:
        return result(x, given, func, (), {})
    return x if x is given or getattr(x, "base", None) is not None else made(x)


def makes(func: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's function, whose array may be written to where a function is differentiated."""

    @wraps(func)
    def make(*args: Any, **kw: Any) -> Any:
        return made(func(*args, **kw)) if OPEN else func(*args, **kw)

    return make


MADE = (
    "copy", "empty", "empty_like", "eye", "fromfunction", "geomspace", "identity", "linspace",
    "logspace", "ones", "ones_like", "tri", "zeros", "zeros_like",
)  # fmt: skip


def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
    **other: Any,
) -> Any:
    """`numpy.array`, also of nested lists and tuples that hold traced values."""
    if not holds_traced(object):
        x = np.array(bare(object), dtype, copy=copy, order=order, subok=subok, ndmin=ndmin, **other)
        if ACTIVE.get() is None:
            return x
        shape = x.shape
        return _kept(x, object, lambda a: np.reshape(a, shape))
    floating("isomorph.numpy.array", dtype)
    x = gathered(object, dtype)
    turned = order in ("C", "F") and not layout(x).flags[f"{order}_CONTIGUOUS"]
    if turned or is_number(x) or (copy and type(object) is Traced):
        x = np.copy(x, order or "K")
    return np.reshape(x, (1,) * (ndmin - x.ndim) + x.shape) if x.ndim < ndmin else x


def asarray(
    a: Any, dtype: Any = None, order: Any = None, *, copy: bool | None = None, **other: Any
) -> Any:
    """`numpy.asarray`, also of nested lists and tuples that hold traced values."""
    if not holds_traced(a):
        return _kept(np.asarray(bare(a), dtype, order, copy=copy, **other), a, asarray)
    return array(a, dtype, copy=bool(copy), order=order)


def asanyarray(
    a: Any, dtype: Any = None, order: Any = None, *, copy: bool | None = None, **other: Any
) -> Any:
    """`numpy.asanyarray`, also of nested lists and tuples that hold traced values."""
    if not holds_traced(a):
        return _kept(np.asanyarray(bare(a), dtype, order, copy=copy, **other), a, asanyarray)
    return array(a, dtype, copy=bool(copy), order=order)


def ascontiguousarray(a: Any, dtype: Any = None, **other: Any) -> Any:
    """`numpy.ascontiguousarray`, also of nested lists and tuples that hold traced values."""
    if not holds_traced(a):
        return _kept(np.ascontiguousarray(bare(a), dtype, **other), a, ascontiguousarray)
    x = array(a, dtype, copy=False, ndmin=1)
    return x if layout(x).flags.c_contiguous else np.copy(x, order="C")


def asfortranarray(a: Any, dtype: Any = None, **other: Any) -> Any:
    """`numpy.asfortranarray`, also of nested lists and tuples that hold traced values."""
    if not holds_traced(a):
        return _kept(np.asfortranarray(bare(a), dtype, **other), a, asfortranarray)
    x = array(a, dtype, copy=False, ndmin=1)
    return x if layout(x).flags.f_contiguous else np.copy(x, order="F")


def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Any:
    """`numpy.asarray_chkfinite`, also of nested lists and tuples that hold traced values."""
    if not holds_traced(a):
        return _kept(np.asarray_chkfinite(bare(a), dtype, order), a, asarray_chkfinite)
    x = asarray(a, dtype)
    if not np.all(np.isfinite(x)):
        raise ValueError("array must not contain infs or NaNs")
    return x


def require(a: Any, dtype: Any = None, requirements: Any = None, **other: Any) -> Any:
    """`numpy.require`; a traced value has no memory layout, and cannot be made writeable."""
    if not holds_traced(a):
        return _kept(np.require(bare(a), dtype, requirements, **other), a, require)
    asked = [requirements] if isinstance(requirements, str) else list(requirements or ())
    if any(word.upper() in ("W", "WRITEABLE") for word in asked):
        raise TypeError(
            "isomorph.numpy.require: needed a plain array to make it writeable, got a traced "
            "value; write np.array(x), a copy that can be written"
        )
    return asarray(a, dtype)


def full(shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", **other: Any) -> Any:
    """`numpy.full`, also of a traced value."""
    if not holds_traced(fill_value):
        return made(np.full(shape, bare(fill_value), dtype, order, **other))
    floating("isomorph.numpy.full", dtype)
    return np.copy(np.broadcast_to(asarray(fill_value, dtype), shape), order=order)


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
    **other: Any,
) -> Any:
    """`numpy.full_like`, also of a traced value. An integer array takes no traced value, whose
    gradient would be lost.
    """
    if not holds_traced(fill_value):
        return made(np.full_like(bare(a), bare(fill_value), dtype, order, subok, shape, **other))
    kind = np.dtype(np.asarray(a).dtype if not hasattr(a, "dtype") else a.dtype)
    kind = kind if dtype is None else np.dtype(dtype)
    floating("isomorph.numpy.full_like", kind)
    like = np.empty_like(concrete(asarray(a)), kind, order, subok, shape)
    return in_layout_of(like, full(like.shape, fill_value, kind))


def fromiter(iter: Iterable[Any], dtype: Any, count: int = -1, **other: Any) -> Any:
    """`numpy.fromiter`, also of traced values."""
    found = list(iter if count < 0 else islice(iter, count))  # which may have no end
    if not holds_traced(found):
        return made(np.fromiter(found, dtype, count, **other))
    floating("isomorph.numpy.fromiter", dtype)
    if count > len(found):
        raise ValueError(
            f"iterator too short: Expected {count} but iterator had {len(found)} items"
        )
    return array(found, dtype)


def arange(*args: Any, **kw: Any) -> Any:
    """`numpy.arange`, also from a traced start in traced steps. How many numbers there are does not
    change with them.
    """
    given = dict(zip(("start", "stop", "step"), args)) | kw
    if not any(type(given.get(word)) is Traced for word in ("start", "stop", "step")):
        return made(np.arange(*args, **kw))
    floating("isomorph.numpy.arange", given.get("dtype"))
    if "stop" not in given or given["stop"] is None:
        given |= {"start": 0, "stop": given["start"]}
    start, step = given.get("start", 0), given.get("step", 1)
    length = np.ceil((np.asarray(concrete(given["stop"])) - concrete(start)) / concrete(step))
    y = start + step * np.arange(max(int(length), 0))
    dtype = given.get("dtype")
    return y if dtype is None else y.astype(dtype)
