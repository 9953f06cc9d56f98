"""Names that go straight to torch when there is nothing to check, and those array-api-compat lacks.

array-api-compat promotes the operands of every binary function by the standard's rules, which costs
as much as a small call itself. Two tensors of one dtype need no promotion, floating reductions no
widening: they skip it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce, wraps
from typing import Any

import array_api_compat.torch as compat
import torch
from torch.nn import functional

from ..limits import FloatInfo, IntInfo

TORCH_NAME = {"equal": "eq"}  # torch.equal answers for the whole tensor


def direct(name: str) -> Callable[..., Any]:
    """A binary function: torch's own for two tensors of one dtype, else array-api-compat's."""
    native, checked = getattr(torch, TORCH_NAME.get(name, name)), getattr(compat, name)

    @wraps(checked)
    def call(x1, x2, /):
        try:
            same = x1.dtype is x2.dtype
        except AttributeError:  # a Python number
            same = False
        return native(x1, x2) if same else checked(x1, x2)

    return call


globals().update(
    (name, direct(name))
    for name in [
        "add",
        "atan2",
        "bitwise_and",
        "bitwise_left_shift",
        "bitwise_or",
        "bitwise_right_shift",
        "bitwise_xor",
        "copysign",
        "divide",
        "equal",
        "floor_divide",
        "greater",
        "greater_equal",
        "hypot",
        "less",
        "less_equal",
        "logaddexp",
        "logical_and",
        "logical_or",
        "logical_xor",
        "matmul",
        "maximum",
        "minimum",
        "multiply",
        "nextafter",
        "not_equal",
        "pow",
        "remainder",
        "subtract",
    ]
)


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    if dtype is None and x.dtype.is_floating_point:
        if axis is None and not keepdims:
            return torch.sum(x)
        if type(axis) is int:
            return torch.sum(x, axis, keepdims)
    return compat.sum(x, axis=axis, dtype=dtype, keepdims=keepdims)


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    if dtype is None and x.dtype.is_floating_point:
        if axis is None and not keepdims:
            return torch.prod(x)
        if type(axis) is int:
            return torch.prod(x, axis, keepdims)
    return compat.prod(x, axis=axis, dtype=dtype, keepdims=keepdims)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    if axis == ():  # torch takes this for all axes
        return torch.zeros_like(x)
    return torch.var(x, axis, correction=correction, keepdim=keepdims)


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    if axis == ():
        return torch.zeros_like(x)
    return torch.std(x, axis, correction=correction, keepdim=keepdims)


def max(x, /, *, axis=None, keepdims=False):
    if axis == ():
        return x.clone()
    return torch.amax(x, () if axis is None else axis, keepdims)


def min(x, /, *, axis=None, keepdims=False):
    if axis == ():
        return x.clone()
    return torch.amin(x, () if axis is None else axis, keepdims)


def sign(x, /):
    """By value, so that it can be mapped and differentiated: array-api-compat assigns in place."""
    if x.dtype.is_complex:
        return torch.sgn(x)
    if x.dtype.is_floating_point:
        return torch.where(torch.isnan(x), torch.nan, torch.sign(x))
    return torch.sign(x)


def broadcast_arrays(*arrays):
    return list(compat.broadcast_arrays(*arrays))


def meshgrid(*arrays, indexing: Any = "xy"):
    return list(compat.meshgrid(*arrays, indexing=indexing))


def unique_all(x, /):
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
    counts = torch.where(torch.isnan(values), 1, counts)  # each NaN is a value of its own
    places = torch.arange(x.numel(), device=x.device)
    first = torch.full_like(counts, x.numel()).scatter_reduce(
        0, inverse.reshape(-1), places, "amin"
    )
    return compat.UniqueAllResult(values, first, inverse, counts)


def finfo(type, /):
    """`torch.finfo` whose `dtype` is a dtype; of a dtype or a tensor."""
    limits = torch.finfo(getattr(type, "dtype", type))
    dtype = getattr(torch, limits.dtype)
    return FloatInfo(limits.bits, limits.eps, limits.max, limits.min, limits.smallest_normal, dtype)


def iinfo(type, /):
    """`torch.iinfo` whose `dtype` is a dtype; of a dtype or a tensor."""
    dtype = getattr(type, "dtype", type)
    limits = torch.iinfo(dtype)
    return IntInfo(limits.bits, limits.max, limits.min, dtype)


def result_type(*arrays_and_dtypes):
    try:
        return compat.result_type(*arrays_and_dtypes)
    except RuntimeError:  # torch promotes no uint16, uint32 and uint64
        numbers = [x for x in arrays_and_dtypes if isinstance(x, (int, float, complex))]
        others = (x for x in arrays_and_dtypes if not isinstance(x, (int, float, complex)))
        dtype = reduce(_promote, (getattr(x, "dtype", x) for x in others))
        return compat.result_type(dtype, *numbers)


SIGNED = {torch.uint16: torch.int32, torch.uint32: torch.int64}  # the smallest that holds it


def _promote(a: torch.dtype, b: torch.dtype) -> torch.dtype:
    if b not in (torch.uint16, torch.uint32, torch.uint64):
        a, b = b, a
    if b not in (torch.uint16, torch.uint32, torch.uint64):
        return compat.result_type(a, b)
    if a is torch.bool:
        return b
    if a.is_floating_point or a.is_complex:
        return a
    if not a.is_signed:
        return a if a.itemsize > b.itemsize else b
    if b not in SIGNED:
        raise TypeError(f"result_type: the standard has no dtype for {a} and {b} together")
    return compat.result_type(a, SIGNED[b])


class __array_namespace_info__(compat.__array_namespace_info__):
    def devices(self) -> Any:
        """Those present; array-api-compat's tries every kind that torch knows, with warnings."""
        accelerator = torch.accelerator.current_accelerator()
        count = torch.accelerator.device_count() if accelerator else 0
        kind = accelerator.type if accelerator else ""
        return [torch.device("cpu"), *(torch.device(kind, i) for i in range(count))]


def pad(x, widths, /, mode="constant", *, constant_values=0):
    """`np.pad` with a constant: `widths` is one (before, after) pair per axis."""
    if mode != "constant":
        raise ValueError(f"pad: needed mode 'constant', got {mode!r}")
    return functional.pad(x, [n for pair in reversed(widths) for n in pair], value=constant_values)
