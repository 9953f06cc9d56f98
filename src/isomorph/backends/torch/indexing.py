"""NumPy's meaning of an index: torch refuses negative steps and has no functional update."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

REDUCE = {"multiply": "prod", "min": "amin", "max": "amax"}
COMBINE = {"add": torch.add, "multiply": torch.mul, "min": torch.minimum, "max": torch.maximum}


def get(x: torch.Tensor, index: Any) -> torch.Tensor:
    """`x[index]`."""
    x, index = _forward(x, _tensors(x, index))
    return x[index]


def update(x: torch.Tensor, index: Any, value: Any, how: str) -> torch.Tensor:
    """A copy of `x` with `x[index]` set or combined."""
    value = torch.as_tensor(value, dtype=x.dtype, device=x.device)
    index = _tensors(x, index)
    flips = _backward_axes(x, index)
    x, index = _forward(x, index)
    repeats = any(isinstance(i, torch.Tensor) and i.dtype != torch.bool for i in index)
    if how == "set" or not repeats:
        y = x.clone()
        y[index] = value if how == "set" else COMBINE[how](x[index], value)
    else:  # positions may repeat: go through flat positions, which every reduction takes
        where = torch.arange(x.numel(), device=x.device).reshape(x.shape)[index]
        flat, value = x.reshape(-1), value.broadcast_to(where.shape).reshape(-1)
        if how == "add":
            y = flat.index_put((where.reshape(-1),), value, accumulate=True)
        else:
            y = flat.scatter_reduce(0, where.reshape(-1), value, REDUCE[how])
        y = y.reshape(x.shape)
    return y.flip(flips) if flips else y


def _tensors(x: torch.Tensor, index: Any) -> tuple:
    """The index as a tuple; lists and NumPy arrays in it become tensors."""
    parts = index if isinstance(index, tuple) else (index,)
    return tuple(
        torch.as_tensor(i, device=x.device) if isinstance(i, (list, np.ndarray)) else i
        for i in parts
    )


def _axes(x: torch.Tensor, index: tuple) -> list[tuple[Any, int | None]]:
    """Each entry of the index with the first axis of `x` it applies to."""
    width = lambda i: 0 if i is None else i.ndim if getattr(i, "dtype", None) == torch.bool else 1
    taken = sum(width(i) for i in index if i is not Ellipsis)
    axis, out = 0, []
    for i in index:
        out.append((i, axis))
        axis += x.ndim - taken if i is Ellipsis else width(i)
    return out


def _backward_axes(x: torch.Tensor, index: tuple) -> list[int]:
    return [
        axis
        for i, axis in _axes(x, index)
        if isinstance(i, slice) and i.step is not None and i.step < 0 and axis is not None
    ]


def _forward(x: torch.Tensor, index: tuple) -> tuple[torch.Tensor, tuple]:
    """The same selection with positive steps, on `x` flipped along the axes walked backwards."""
    flips = _backward_axes(x, index)
    if not flips:
        return x, index
    turned = []
    for i, axis in _axes(x, index):
        if isinstance(i, slice) and axis in flips:
            n = x.shape[axis]  # type: ignore[index]
            start, stop, step = i.indices(n)
            i = slice(n - 1 - start, n - 1 - stop, -step)
        turned.append(i)
    return x.flip(flips), tuple(turned)
