"""Names of the standard that go straight to torch when there is nothing to check.

array-api-compat promotes the operands of every binary function by the standard's rules, which costs as much as a
small call itself. Two tensors of one dtype need no promotion, floating reductions no widening: they skip it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import array_api_compat.torch as compat
import torch
from torch.nn import functional

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
    for name in (
        "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal "
        "floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor "
        "matmul maximum minimum multiply nextafter not_equal pow remainder subtract"
    ).split()
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
    if axis is not None and axis != ():
        return torch.var(x, axis, correction=correction, keepdim=keepdims)
    return compat.var(x, axis=axis, correction=correction, keepdims=keepdims)


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    if axis is not None and axis != ():
        return torch.std(x, axis, correction=correction, keepdim=keepdims)
    return compat.std(x, axis=axis, correction=correction, keepdims=keepdims)


def max(x, /, *, axis=None, keepdims=False):
    return torch.amax(x, () if axis is None else axis, keepdims)


def min(x, /, *, axis=None, keepdims=False):
    return torch.amin(x, () if axis is None else axis, keepdims)


def pad(x, widths, /, mode="constant", *, constant_values=0):
    """`np.pad` with a constant: `widths` is one (before, after) pair per axis."""
    if mode != "constant":
        raise ValueError(f"pad: needed mode 'constant', got {mode!r}")
    return functional.pad(x, [n for pair in reversed(widths) for n in pair], value=constant_values)
