"""Functions that create arrays. Their arguments may be tensors with a gradient; torch and
array-api-compat would copy only the numbers and lose the gradient.
"""

from __future__ import annotations

import math
from typing import Any

import array_api_compat.torch as compat
import torch
from torch.nn import functional

from ..edges import check_mode
from .promotion import is_wide, result_type


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    """`obj` as a tensor. Nested sequences that hold tensors are stacked. Without `dtype`, their
    stack has the common dtype of the tensors and Python numbers in them.
    """
    if isinstance(obj, torch.Tensor):
        return _converted(obj, dtype, device, copy)
    if not _holds_tensor(obj):
        return compat.asarray(obj, dtype=dtype, device=device, copy=copy)
    if copy is False:
        raise ValueError("asarray: a sequence of tensors cannot be stacked with copy=False")
    parts = _leaves(obj)
    if dtype is None:
        dtype = _dtype(*parts)
    if device is None:
        device = next(x.device for x in parts if isinstance(x, torch.Tensor))
    return _stacked(obj, dtype, device)


def _converted(x: torch.Tensor, dtype: Any, device: Any, copy: bool | None) -> torch.Tensor:
    if copy:
        return x.to(device=device, dtype=dtype, copy=True)
    y = x if dtype is None and device is None else x.to(device=device, dtype=dtype)
    if copy is False and y is not x:
        raise ValueError(
            f"asarray: a tensor of {x.dtype} on {x.device} cannot become one of {y.dtype} on "
            f"{y.device} with copy=False"
        )
    return y


def _holds_tensor(obj: Any) -> bool:
    return isinstance(obj, (list, tuple)) and any(
        isinstance(x, torch.Tensor) or _holds_tensor(x) for x in obj
    )


def _leaves(obj: Any) -> list:
    if not isinstance(obj, (list, tuple)):
        return [obj]
    return [leaf for x in obj for leaf in _leaves(x)]


def _dtype(*parts: Any) -> torch.dtype:
    """The common dtype of tensors and numbers, whatever their shapes."""
    numbers = [x for x in parts if isinstance(x, (int, float, complex))]
    arrays = [x for x in parts if not isinstance(x, (int, float, complex))]
    dtypes = {x.dtype if isinstance(x, torch.Tensor) else torch.as_tensor(x).dtype for x in arrays}
    # one number of each Python type is enough
    return result_type(*dtypes, *{type(x): x for x in numbers}.values())


def _stacked(obj: Any, dtype: Any, device: Any) -> torch.Tensor:
    if not isinstance(obj, (list, tuple)) or not obj:
        return torch.as_tensor(obj, dtype=dtype, device=device)
    parts = [_stacked(x, dtype, device) for x in obj]
    if len(shapes := {tuple(x.shape) for x in parts}) > 1:
        raise ValueError(f"asarray: needed items of the same shape in a list, got {sorted(shapes)}")
    return torch.stack(parts)


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """`start + step * (0, 1, …)`, up to but not including `stop`. Gradients flow to `start` and
    `step`; the number of elements is constant.
    """
    tensors = [x for x in (start, stop, step) if isinstance(x, torch.Tensor)]
    if not tensors:
        return compat.arange(start, stop, step, dtype=dtype, device=device)
    if stop is None:
        start, stop = 0, start
    inner = _dtype(start, stop, step)
    device = tensors[0].device if device is None else device
    first, last, by = (
        x.detach().item() if isinstance(x, torch.Tensor) else x for x in (start, stop, step)
    )
    count = max(math.ceil((last - first) / by), 0)
    y = start + step * torch.arange(count, dtype=inner, device=device)
    return y.to(inner if dtype is None else dtype)


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    """`num` numbers from `start` to `stop`, which may be tensors of the same shape."""
    tensors = [x for x in (start, stop) if isinstance(x, torch.Tensor)]
    if not tensors:
        return compat.linspace(start, stop, num, dtype=dtype, device=device, endpoint=endpoint)
    inner = _dtype(start, stop)
    if not (inner.is_floating_point or inner.is_complex):
        inner = torch.get_default_dtype()
    device = tensors[0].device if device is None else device
    start, stop = (torch.as_tensor(x, dtype=inner, device=device) for x in (start, stop))
    start, stop = torch.broadcast_tensors(start, stop)
    parts = num if endpoint else num + 1
    weights = torch.linspace(0, 1, parts, dtype=inner, device=device)[:num]
    y = torch.lerp(
        start, stop, weights.reshape(-1, *(1 for _ in start.shape))
    )  # exact at both ends
    return y.to(inner if dtype is None else dtype)


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    """Ones on diagonal `k`, zeros elsewhere. Nothing is written in place: array-api-compat fills
    the diagonal of zeros in place, and the compiler may read the zeros too early (`repairs`).
    """
    n_cols = n_rows if n_cols is None else n_cols
    if k == 0 and not is_wide(dtype):  # torch.eye supports no other k and no wide dtype
        return torch.eye(n_rows, n_cols, dtype=dtype, device=device)
    rows, columns = torch.arange(n_rows, device=device), torch.arange(n_cols, device=device)
    dtype = torch.get_default_dtype() if dtype is None else dtype
    k = max(-n_rows, min(k, n_cols))  # beyond the corners all is zero; k may exceed int64
    return (rows[:, None] + k == columns).to(dtype)


def full(shape, fill_value, *, dtype=None, device=None):
    if not isinstance(fill_value, torch.Tensor):
        return compat.full(shape, fill_value, dtype=dtype, device=device)
    filled = fill_value.to(device=device, dtype=dtype)
    return filled.broadcast_to((shape,) if isinstance(shape, int) else tuple(shape)).clone()


def full_like(x, /, fill_value, *, dtype=None, device=None):
    if not isinstance(fill_value, torch.Tensor):
        return torch.full_like(x, fill_value, dtype=dtype, device=device)
    dtype, device = x.dtype if dtype is None else dtype, x.device if device is None else device
    return full(tuple(x.shape), fill_value, dtype=dtype, device=device)


def pad(x, widths, /, mode="constant", *, constant_values=0):
    """`np.pad` with one constant: `widths` is a number, a pair (before, after), or one pair per
    axis.
    """
    check_mode(mode)
    flat = [n for pair in reversed(_pairs(widths, x.ndim)) for n in pair]
    if isinstance(constant_values, (bool, int, float)):
        return functional.pad(x, flat, value=constant_values)
    constant = torch.as_tensor(constant_values, dtype=x.dtype, device=x.device)
    if constant.ndim:
        raise ValueError(f"pad: needed one constant, got shape {tuple(constant.shape)}")
    inside = torch.ones(x.shape, dtype=torch.bool, device=x.device)
    return torch.where(functional.pad(inside, flat), functional.pad(x, flat), constant)


def _pairs(widths: Any, ndim: int) -> list[tuple[Any, Any]]:
    """One pair (before, after) per axis, from any form of `widths` that NumPy takes."""
    rows = widths.tolist() if hasattr(widths, "tolist") else widths
    rows = rows if isinstance(rows, (list, tuple)) else [rows]
    if not all(isinstance(row, (list, tuple)) for row in rows):
        rows = [rows]  # (both,) or (before, after), for every axis
    pairs = [tuple(row) for row in rows]
    pairs = [pair * 2 if len(pair) == 1 else pair for pair in pairs]
    pairs = pairs * ndim if len(pairs) == 1 else pairs
    whole = all(_is_whole(n) and n >= 0 for pair in pairs for n in pair)
    if len(pairs) != ndim or any(len(pair) != 2 for pair in pairs) or not whole:
        raise ValueError(
            "pad: needed widths as one number, one (before, after), or one such pair for each of "
            f"{ndim} axes, none negative, got {widths!r}"
        )
    plain = lambda n: n if isinstance(n, torch.SymInt) else int(n)
    return [(plain(before), plain(after)) for before, after in pairs]


def _is_whole(n: Any) -> bool:
    return isinstance(n, (int, torch.SymInt)) or hasattr(n, "__index__")
