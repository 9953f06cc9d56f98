"""Promotion of two operands to the same dtype. array-api-compat promotes by the standard's rules,
which costs as much as a small call itself. It does not promote uint16, uint32 and uint64: torch
refuses them, or, if one operand has no axes, uses the dtype of the other for both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce, wraps
from typing import Any

import array_api_compat.torch as compat
import torch

from .private import is_functorch_wrapped_tensor

TORCH_NAME = {"equal": "eq"}  # torch.equal compares whole tensors


WIDE = (torch.uint16, torch.uint32, torch.uint64)
# The results of these functions do not have the integer dtype of the operands. So a Python number
# among the operands may exceed that dtype.
FREE = {
    "atan2", "copysign", "divide", "equal", "greater", "greater_equal", "less", "less_equal",
    "not_equal",
}  # fmt: skip


def direct(name: str) -> Callable[..., Any]:
    """A binary function: torch's own for two tensors of the same dtype, else array-api-compat's."""
    native, checked = getattr(torch, TORCH_NAME.get(name, name)), getattr(compat, name)

    @wraps(checked)
    def call(x1, x2, /):
        try:
            same = x1.dtype is x2.dtype
        except AttributeError:  # a Python number
            same = False
        if same:
            return native(x1, x2)
        if is_wide(x1) or is_wide(x2):
            return native(*promoted(*(_freed(x1, x2) if name in FREE else (x1, x2))))
        return checked(x1, x2)

    return call


def alike(func: Callable[..., Any]) -> Callable[..., Any]:
    """A function of array-api-compat, whose operands are promoted first if one of them is wide."""

    @wraps(func)
    def call(x1, x2, /, **options):
        return func(*evened(x1, x2), **options)

    return call


def evened(*arrays: Any) -> tuple[Any, ...]:
    """The arguments, all with the same dtype if one of them is wide. None stays None."""
    if not any([is_wide(x) for x in arrays]):  # noqa: C419
        return arrays
    dtype = result_type(*(x for x in arrays if x is not None))
    return tuple(x.to(dtype) if isinstance(x, torch.Tensor) else _number(x, dtype) for x in arrays)


def is_wide(x: Any) -> bool:
    """Whether a tensor or dtype is wide: uint16, uint32 or uint64, which torch does not promote."""
    return getattr(x, "dtype", x) in WIDE


def _freed(x1: Any, x2: Any) -> tuple[Any, Any]:
    """The operands, with the wide tensor cast if its dtype cannot hold the Python number next to
    it: to int64, or, if a uint64 is next to a negative number, to float64.
    """
    x, number = (x1, x2) if isinstance(x1, torch.Tensor) else (x2, x1)
    if not isinstance(number, int) or 0 <= number <= torch.iinfo(x.dtype).max:
        return x1, x2
    if x.dtype is not torch.uint64:
        x = x.to(torch.int64)
    elif number < 0:
        x = x.to(torch.float64)
    return (x, number) if isinstance(x1, torch.Tensor) else (number, x)


def _number(x: Any, dtype: torch.dtype) -> Any:
    """A Python number. Raises if it does not fit into the dtype: torch would cut off bits."""
    if isinstance(x, int) and not (dtype.is_floating_point or dtype.is_complex):
        limits = torch.iinfo(dtype) if dtype is not torch.bool else None
        if limits is not None and not limits.min <= x <= limits.max:
            raise OverflowError(f"needed a number that fits into {dtype}, got {x}")
    return x


def result_type(*arrays_and_dtypes):
    if not any([is_wide(x) for x in arrays_and_dtypes]):  # noqa: C419
        return compat.result_type(*arrays_and_dtypes)
    numbers = [x for x in arrays_and_dtypes if isinstance(x, (int, float, complex))]
    others = (x for x in arrays_and_dtypes if not isinstance(x, (int, float, complex)))
    dtype = reduce(_promote, (getattr(x, "dtype", x) for x in others))
    return compat.result_type(dtype, *numbers)


SIGNED = {torch.uint16: torch.int32, torch.uint32: torch.int64}  # the smallest that holds all


def _promote(a: torch.dtype, b: torch.dtype) -> torch.dtype:
    if b not in WIDE:
        a, b = b, a
    if b not in WIDE:
        return compat.result_type(a, b)
    if a is torch.bool:
        return b
    if a.is_floating_point or a.is_complex:
        return a
    if not a.is_signed:
        return a if a.itemsize > b.itemsize else b
    if b not in SIGNED:
        raise TypeError(f"result_type: the standard has no common dtype for {a} and {b}")
    return compat.result_type(a, SIGNED[b])


def differentiated(x: torch.Tensor) -> bool:
    """Whether a derivative of `x` may be needed."""
    return x.requires_grad or torch.compiler.is_compiling() or is_functorch_wrapped_tensor(x)


def promoted(x1: Any, x2: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The operands as tensors of the same dtype; one of them may be a Python number."""
    if isinstance(x1, torch.Tensor) and isinstance(x2, torch.Tensor) and x1.dtype is x2.dtype:
        return x1, x2
    dtype = result_type(x1, x2)
    device = x1.device if isinstance(x1, torch.Tensor) else x2.device

    def as_tensor(x: Any) -> torch.Tensor:
        if isinstance(x, torch.Tensor):
            return x.to(dtype)
        return torch.as_tensor(_number(x, dtype), dtype=dtype, device=device)

    return as_tensor(x1), as_tensor(x2)
