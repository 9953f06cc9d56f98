"""Making tensors: from Python and NumPy values, from DLPack, from shapes and from other tensors.

Shapes and limits may be Python integers or, inside `tf.function` with unknown sizes, scalar
tensors. `device` is a name as in `.device`. A tensor made "like" another is on its device.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import tensorflow as tf

from . import dtypes
from .dtypes import (
    SCALARS,
    DType,
    common_dtype,
    is_tensor,
    on_device,
    promote_all,
    refuse,
    result_type,
    tensor,
    weak,
)
from .kernels import ops

ALIGNMENT = 64  # bytes: TensorFlow's CPU kernels abort the process with less alignment
Size = Any  # a Python integer or a scalar integer tensor


def _placed(device: str | None, make: Callable[..., tf.Tensor], *args: Any) -> tf.Tensor:
    if device is None:
        return make(*args)
    with tf.device(device):
        return make(*args)


def _beside(x: Any, device: str | None, out: tf.Tensor) -> tf.Tensor:
    """`out` on `device`, or on that of `x`: eager ops otherwise drift to the default device."""
    wanted = x.device if device is None else device
    return out if not wanted or out.device == wanted else on_device(out, wanted)


def _dims(shape: Any) -> Any:
    """A shape for TensorFlow: a single size becomes a shape of one dimension."""
    if isinstance(shape, tuple | list | tf.TensorShape) or getattr(shape, "ndim", 0) == 1:
        return shape
    return (shape,)


# From values.


def asarray(
    obj: Any,
    /,
    *,
    dtype: DType | None = None,
    device: str | None = None,
    copy: builtins.bool | None = None,
) -> tf.Tensor:
    """A tensor from a tensor, a Python scalar, nested sequences of either, a NumPy array or a
    buffer.

    Gradients flow through tensors, also inside sequences. `copy=False` works only for a tensor that
    already has the requested dtype and device.
    """
    if is_tensor(obj):
        return _from_tensor(obj, dtype, device, copy)
    if copy is False:
        raise ValueError(f"asarray: needed a tensor for copy=False, got {type(obj).__name__}")
    inside = _inside(obj) if isinstance(obj, tuple | list) else set()
    if any(isinstance(kind, DType) for kind in inside):
        wanted = _common("asarray", inside) if dtype is None else dtype
        return _placed(device, _stacked, obj, wanted)
    if dtype is None and any(isinstance(kind, np.dtype) for kind in inside):
        dtype = _common_numpy(inside)
    return _placed(device, _from_values, obj, dtype)


def _inside(obj: Any) -> set[Any]:
    """The contents of nested sequences: the dtypes of arrays, and the types of everything else."""
    found = set()
    for x in obj:
        if isinstance(x, tuple | list):
            found |= _inside(x)
        elif hasattr(x, "dtype"):
            found.add(x.dtype if is_tensor(x) else np.asarray(x).dtype)
        else:
            found.add(type(x))
    return found


def _common(function: str, inside: set[Any]) -> DType:
    """The common dtype of arrays that include tensors; Python numbers next to them are weak."""
    strong = [tf.as_dtype(d) for d in inside if isinstance(d, DType | np.dtype)]
    return common_dtype(function, *strong, *(kind(1) for kind in SCALARS if kind in inside))


def _common_numpy(inside: set[Any]) -> DType:
    """The common dtype of NumPy arrays, which may mix kinds; Python numbers are weak."""
    dtype = np.result_type(*(d for d in inside if isinstance(d, np.dtype)))
    for kind, fits in SCALARS.items():
        if kind in inside and tf.as_dtype(dtype) not in fits:
            dtype = np.result_type(dtype, kind(1))
    return tf.as_dtype(dtype)


def _from_tensor(
    x: Any, dtype: DType | None, device: str | None, copy: builtins.bool | None
) -> tf.Tensor:
    recast = dtype is not None and dtype is not x.dtype
    moved = device is not None and device != x.device
    if copy is False and (recast or moved):
        raise ValueError("asarray: needed the tensor's own dtype and device for copy=False")
    if recast:
        return dtypes.astype(x, dtype or x.dtype, device=device)
    out = _copied(x) if copy else tensor(x)
    return on_device(out, device) if moved and device is not None else out


def _copied(x: Any) -> tf.Tensor:
    """New memory with the values of `x`: memory from DLPack may be overwritten elsewhere."""
    return ops.SelectV2(condition=True, t=x, e=x)  # tf.identity does not copy


def _stacked(obj: Any, dtype: DType) -> tf.Tensor:
    """A sequence that has tensors somewhere in it."""
    return tf.stack([asarray(x, dtype=dtype) for x in obj])


def _from_values(obj: Any, dtype: DType | None) -> tf.Tensor:
    # NumPy reads nested sequences of mixed Python scalars and any buffer; tf.constant only some.
    values = np.asarray(obj, None if dtype is None else dtype.as_numpy_dtype)
    if values.dtype.kind in "OSUMm":
        raise TypeError(f"asarray: needed numbers, got {type(obj).__name__} of {values.dtype}")
    if dtype is None and not hasattr(obj, "dtype") and not isinstance(obj, memoryview):
        dtype = DEFAULTS.get(values.dtype.kind)  # Python numbers take the default of their kind
        if dtype is dtypes.default_int and values.size and values.dtype != np.int64:
            raise OverflowError("asarray: needed values that fit int64; pass dtype for more")
    return tf.constant(values, dtype)


DEFAULTS = {
    "b": dtypes.bool,
    "i": dtypes.default_int,
    "u": dtypes.default_int,
    "f": dtypes.default_float,
    "c": dtypes.default_complex,
}


def from_dlpack(
    x: Any, /, *, device: str | None = None, copy: builtins.bool | None = None
) -> tf.Tensor:
    """A tensor sharing the memory of an array that supports DLPack, or a copy if that fails."""
    if is_tensor(x):
        return asarray(x, device=device, copy=copy)
    if x.__dlpack_device__()[0] == 1 and not _shareable(np.from_dlpack(x)):  # 1: CPU
        if copy is False:
            raise ValueError("from_dlpack: needed aligned, row-major memory for copy=False")
        return asarray(np.from_dlpack(x), device=device)
    out = tf.experimental.dlpack.from_dlpack(x.__dlpack__())
    if device is not None and device != out.device:
        if copy is False:
            raise ValueError(
                f"from_dlpack: needed device {out.device} for copy=False, got {device}"
            )
        return on_device(out, device)
    return _copied(out) if copy else out


def _shareable(x: np.ndarray) -> builtins.bool:
    return x.flags.c_contiguous and x.ctypes.data % ALIGNMENT == 0


# From shapes.


def zeros(shape: Any, *, dtype: DType | None = None, device: str | None = None) -> tf.Tensor:
    """A tensor of zeros."""
    return _placed(device, tf.zeros, _dims(shape), dtype or dtypes.default_float)


def ones(shape: Any, *, dtype: DType | None = None, device: str | None = None) -> tf.Tensor:
    """A tensor of ones."""
    return _placed(device, tf.ones, _dims(shape), dtype or dtypes.default_float)


def empty(shape: Any, *, dtype: DType | None = None, device: str | None = None) -> tf.Tensor:
    """Zeros: a tensor cannot be filled later, so uninitialised memory is of no use."""
    return zeros(shape, dtype=dtype, device=device)


def full(
    shape: Any, fill_value: Any, *, dtype: DType | None = None, device: str | None = None
) -> tf.Tensor:
    """A tensor filled with one value; gradients flow to a value that is a 0-d tensor."""
    value = _fill_value("full", fill_value, dtype)
    return _placed(device, tf.fill, _dims(shape), value)


def _fill_value(function: str, value: Any, dtype: DType | None) -> tf.Tensor:
    if is_tensor(value):
        return tensor(value) if dtype is None else dtypes.astype(value, dtype)
    return asarray(value) if dtype is None else weak(value, dtype, function)


def zeros_like(x: Any, /, *, dtype: DType | None = None, device: str | None = None) -> tf.Tensor:
    """Zeros of the shape, dtype and device of `x`."""
    out = ops.ZerosLike(x=x) if dtype is None else tf.zeros_like(x, dtype)
    return _beside(x, device, out)


def ones_like(x: Any, /, *, dtype: DType | None = None, device: str | None = None) -> tf.Tensor:
    """Ones of the shape, dtype and device of `x`."""
    out = ops.OnesLike(x=x) if dtype is None else tf.ones_like(x, dtype)
    return _beside(x, device, out)


def empty_like(x: Any, /, *, dtype: DType | None = None, device: str | None = None) -> tf.Tensor:
    """Zeros of the shape, dtype and device of `x`."""
    return zeros_like(x, dtype=dtype, device=device)


def full_like(
    x: Any, /, fill_value: Any, *, dtype: DType | None = None, device: str | None = None
) -> tf.Tensor:
    """One value in the shape, dtype and device of `x`."""
    value = _fill_value("full_like", fill_value, dtype or x.dtype)
    return _beside(x, device, tf.fill(tf.shape(x), value))


# Ranges and grids.


def arange(
    start: Any,
    /,
    stop: Any = None,
    step: Any = 1,
    *,
    dtype: DType | None = None,
    device: str | None = None,
) -> tf.Tensor:
    """Evenly spaced values from `start` up to `stop`, which is left out."""
    if stop is None:
        start, stop = 0, start
    if any(is_tensor(x) for x in (start, stop, step)):
        return _placed(device, _range_of_tensors, start, stop, step, dtype)
    whole = all(isinstance(x, int) for x in (start, stop, step))
    dtype = dtype or (dtypes.default_int if whole else dtypes.default_float)
    if dtype not in dtypes.REAL:
        refuse("arange", "a real dtype", dtype)
    if whole:
        size = len(range(start, stop, step))
    else:
        size = builtins.max(0, math.ceil((stop - start) / step))
    return _placed(device, _progression, start, step, size, dtype)


def _range_of_tensors(start: Any, stop: Any, step: Any, dtype: DType | None) -> tf.Tensor:
    out = tf.range(*promote_all(start, stop, step, function="arange"))
    return out if dtype is None else dtypes.astype(out, dtype)


def _progression(start: Any, step: Any, size: int, dtype: DType) -> tf.Tensor:
    """start + step * (0, …, size - 1): TensorFlow's Range has no kernels for most integer dtypes.

    Integers are computed modulo 2**64, so that uint64 is right through int64; floats in float64, so
    that every element is rounded once.
    """
    if dtype.is_integer and isinstance(start, int) and isinstance(step, int):
        steps = tf.range(size, dtype=tf.int64)
        return dtypes.cast(_wrapped(start) + _wrapped(step) * steps, dtype)
    steps = tf.cast(tf.range(size), tf.float64)
    out = tf.constant(float(start), tf.float64) + tf.constant(float(step), tf.float64) * steps
    return dtypes.cast(out, dtype)


def _wrapped(value: int) -> tf.Tensor:
    return tf.constant((value + 2**63) % 2**64 - 2**63, tf.int64)


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: DType | None = None,
    device: str | None = None,
    endpoint: builtins.bool = True,
) -> tf.Tensor:
    """`num` evenly spaced values from `start` to `stop`, which is included if `endpoint`."""
    if num < 0:
        raise ValueError(f"linspace: needed a number of samples, got {num}")
    return _placed(device, _linspace, start, stop, num, dtype, endpoint)


def _linspace(
    start: Any, stop: Any, num: int, dtype: DType | None, endpoint: builtins.bool
) -> tf.Tensor:
    if is_tensor(start) or is_tensor(stop):
        ends = promote_all(start, stop, function="linspace")
        wanted = dtype or result_type(*ends)
    else:  # Python numbers: computed in double precision and rounded once
        curved = isinstance(start, complex) or isinstance(stop, complex)
        wanted = dtype or (dtypes.default_complex if curved else dtypes.default_float)
        wide = dtypes.complex128 if curved else dtypes.float64
        ends = [weak(x, wide, "linspace") for x in (start, stop)]
    intervals = builtins.max(num - 1 if endpoint else num, 1)
    steps = dtypes.cast(tf.range(num), ends[0].dtype)
    out = ends[0] + steps * ((ends[1] - ends[0]) / intervals)
    if endpoint and num > 1:  # the last step may miss the end by a rounding error
        out = tf.concat([out[:-1], tf.reshape(ends[1], [1])], 0)
    return dtypes.cast(out, wanted)


def meshgrid(*arrays: Any, indexing: Literal["xy", "ij"] = "xy") -> list[tf.Tensor]:
    """Coordinate tensors of a grid. (tf.meshgrid multiplies by ones: no bool, no mixed dtypes.)"""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: needed indexing 'xy' or 'ij', got {indexing!r}")
    flat = [tf.reshape(x, [-1]) for x in arrays]
    axes = list(range(len(flat)))
    if indexing == "xy" and len(flat) > 1:
        axes[:2] = 1, 0
    sizes: list[Size] = [x.shape[0] if x.shape[0] is not None else tf.shape(x)[0] for x in flat]
    shape = [sizes[axes[i]] for i in range(len(flat))]
    columns = [
        tf.reshape(x, [-1 if i == axis else 1 for i in range(len(flat))])
        for x, axis in zip(flat, axes)
    ]
    return [tf.broadcast_to(x, shape) for x in columns]


def eye(
    n_rows: Size,
    n_cols: Size | None = None,
    /,
    *,
    k: int = 0,
    dtype: DType | None = None,
    device: str | None = None,
) -> tf.Tensor:
    """Ones on the k-th diagonal, zeros elsewhere."""
    n_cols = n_rows if n_cols is None else n_cols
    diagonal = lambda: tf.cast(
        _offsets(n_rows, n_cols) == _bounded(k), dtype or dtypes.default_float
    )
    return _placed(device, diagonal)


def tril(x: Any, /, *, k: int = 0) -> tf.Tensor:
    """`x` with zeros above the k-th diagonal."""
    if k == 0:
        return tf.linalg.band_part(x, -1, 0)
    return _masked(x, lambda offsets: offsets <= _bounded(k))


def triu(x: Any, /, *, k: int = 0) -> tf.Tensor:
    """`x` with zeros below the k-th diagonal."""
    if k == 0:
        return tf.linalg.band_part(x, 0, -1)
    return _masked(x, lambda offsets: offsets >= _bounded(k))


def _masked(x: Any, keep: Callable[[tf.Tensor], tf.Tensor]) -> tf.Tensor:
    shape = tf.shape(x)
    mask = keep(_offsets(shape[-2], shape[-1]))
    return tf.where(mask, x, tf.zeros((), x.dtype))


def _offsets(n_rows: Size, n_cols: Size) -> tf.Tensor:
    """Column minus row: the number of each element's diagonal."""
    return tf.range(n_cols)[None, :] - tf.range(n_rows)[:, None]


def _bounded(k: int) -> int:
    return builtins.max(builtins.min(k, 2**31 - 1), -(2**31))  # tf.range counts in int32
