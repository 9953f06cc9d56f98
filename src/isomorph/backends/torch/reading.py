"""`float(x)`, `int(x)` and `x.item()` of a tensor under differentiation: torch returns the number
and silently loses its gradient. Inside a function that isomorph differentiates this raises.

For this, the kernel that torch.func uses for `aten::item` is replaced; outside of torch.func this
costs nothing. In transforms that are not isomorph's own, the new kernel does what torch's does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import torch

from .private import (
    get_unwrapped,
    is_functorch_wrapped_tensor,
    maybe_current_level,
    maybe_get_level,
)

# The torch.func levels at which isomorph differentiates, in this thread or task.
LEVELS: ContextVar[frozenset[int | None]] = ContextVar("isomorph.torch.levels", default=frozenset())


def guarded(func: Callable[..., Any]) -> Callable[..., Any]:
    """`func`, inside which reading the value of a tensor raises if the tensor is differentiated at
    the torch.func level at which `func` is called.
    """
    if torch.compiler.is_compiling():  # torch.compile raises by itself
        return func

    def run(*leaves: Any) -> Any:
        token = LEVELS.set(LEVELS.get() | {maybe_current_level()})
        try:
            return func(*leaves)
        finally:
            LEVELS.reset(token)

    return run


def _item(x: torch.Tensor) -> Any:
    """`x.item()` inside torch.func."""
    levels = LEVELS.get()
    if levels and _is_watched(x, levels) and not _is_shown():
        raise TypeError(
            "float(x), int(x) or x.item(): needed a tensor that is not differentiated, got one "
            "whose gradient would be lost; keep it as a tensor, put it into another with "
            "iso.at(a)[i].set(x), or use iso.stop_gradient(x)"
        )
    if x.numel() != 1:
        raise RuntimeError(f"a Tensor with {x.numel()} elements cannot be converted to Scalar")
    dense = x if x.layout is torch.strided else x.to_dense()
    return torch.ops.aten._local_scalar_dense(dense)


def _is_watched(x: torch.Tensor, levels: frozenset[int | None]) -> bool:
    while is_functorch_wrapped_tensor(x):
        if x.requires_grad and maybe_get_level(x) in levels:
            return True
        x = get_unwrapped(x)
    return False


def _is_shown() -> bool:
    """Whether a number is read only to be displayed, as in `f"{x:.3f}"`."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename == _LIBRARY:
        frame = frame.f_back
    return frame is not None and frame.f_code is torch.Tensor.__format__.__code__


_LIBRARY = torch.library.__file__
_ATEN = torch.library.Library("aten", "IMPL")  # keeps the kernel registered
_ATEN.impl("item", _item, "FuncTorchDynamicLayerFrontMode")
