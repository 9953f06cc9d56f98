"""NumPy's indexing. Torch's own differs: it refuses negative steps, narrow integers and sequences,
takes uint8 as a mask, treats an index that mixes ints and arrays in its own way, and has no
functional update.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from .. import affine
from ..repeating import multiplied
from . import private
from .compiling import is_tracing
from .creation import asarray
from .private import (
    get_proxy_mode,
    get_unwrapped,
    is_batchedtensor,
    is_functorch_wrapped_tensor,
    len_torch_dispatch_stack,
    maybe_get_bdim,
    maybe_get_level,
)

BASIC = {int, slice, type(None), type(Ellipsis)}
REDUCE = {"multiply": "prod", "min": "amin", "max": "amax"}
COMBINE = {"add": torch.add, "multiply": torch.mul, "min": torch.minimum, "max": torch.maximum}


def get(x: torch.Tensor, index: Any) -> torch.Tensor:
    """`x[index]`."""
    x, index = _forward(*_ready(x, index))
    return x[index]


def update(xp: Any, x: torch.Tensor, index: Any, value: Any, how: str) -> torch.Tensor:
    """A copy of `x` with `x[index]` set to `value`, or combined with it as `how` says."""
    ready, index = _ready(x, index)
    value = torch.as_tensor(value, dtype=x.dtype, device=x.device)
    flips = _backward_axes(ready, index)
    turned, index = _forward(ready, index)
    try:
        y = _updated(xp, turned, index, value, how)
    except RuntimeError:
        value = _fitted(tuple(turned[index].shape), value, how)
        y = _updated(xp, turned, index, value, how)
    y = y.flip(flips) if flips else y
    return y if ready is x else y.reshape(x.shape)


def distance(start: Any, stop: Any) -> int | None:
    """`Backend.distance`. In a trace, the graph shows how `start` and `stop` were computed."""
    mode = get_proxy_mode()
    if mode is None:
        return affine.constant_difference(_mapped(start), _mapped(stop))
    node = partial(_node, mode.tracer)
    return affine.distance(node(start), node(stop), _step, operator.is_)


def _mapped(x: Any) -> tuple[tuple, Any]:
    """The levels and axes of the vmaps that map `x`, and the tensor that holds all examples."""
    maps: tuple = ()
    while isinstance(x, torch.Tensor) and is_functorch_wrapped_tensor(x):
        if is_batchedtensor(x):
            maps += (maybe_get_level(x), maybe_get_bdim(x))
        x = get_unwrapped(x)
    return maps, x if isinstance(x, torch.Tensor) else None


def _node(tracer: Any, x: Any) -> Any:
    """The node of a traced number; the number itself, if it is not traced."""
    while isinstance(x, torch.Tensor) and is_functorch_wrapped_tensor(x):
        x = get_unwrapped(x)
    return private.get_proxy_slot(x, tracer, x, lambda slot: slot.proxy.node)


def _step(node: Any) -> tuple[Any, int] | None:
    target, meta = getattr(node, "target", None), getattr(node, "meta", {})
    dtype = getattr(meta.get("val"), "dtype", torch.float32)
    if dtype.is_floating_point or dtype.is_complex:
        return None
    if target is torch.ops.aten.add.Tensor or target is torch.ops.aten.sub.Tensor:
        left, right = node.args
        if type(right) is not int or node.kwargs:
            return None
        return left, right if target is torch.ops.aten.add.Tensor else -right
    copies = (torch.ops.aten.clone.default, torch.ops.aten._to_copy.default)
    return (node.args[0], 0) if target in copies else None


def _updated(xp: Any, x: torch.Tensor, index: tuple, value: torch.Tensor, how: str) -> torch.Tensor:
    if how == "set" or not _repeats(index):
        return written(x, index, value if how == "set" else COMBINE[how](x[index], value))
    # positions may repeat: use flat positions, which every reduction takes
    where = _positions(x, index)
    flat, value = x.reshape(-1), value.broadcast_to(where.shape).reshape(-1)
    where = where.reshape(-1)
    if how == "add":
        y = flat.index_put((where,), value, accumulate=True)
    elif how == "multiply" and _may_differentiate(x, value):
        y = multiplied(xp, flat, value, where, torch.arange(x.numel(), device=x.device))
    else:
        y = flat.scatter_reduce(0, where, value, REDUCE[how])
    return y.reshape(x.shape)


def _positions(x: torch.Tensor, index: tuple) -> torch.Tensor:
    """The positions in the flattened `x` that an index selects."""
    return torch.arange(x.numel(), device=x.device).reshape(x.shape)[index]


def written(x: torch.Tensor, index: tuple, value: torch.Tensor) -> torch.Tensor:
    """A copy of `x` with `x[index]` set to `value`; the steps of slices must be positive. If
    nothing is traced, the copy is written in place. Inside a trace or transform, where writes in
    place can go wrong, functional operations are used.
    """
    watched = is_tracing() or x.requires_grad or value.requires_grad
    if _repeats(index) and (watched or not x.is_cpu):  # a GPU writes in an unknown order
        return _last(x, _positions(x, index), value)
    if not is_tracing():
        y = x.clone()
        y[index] = value
        return y
    if all(isinstance(i, torch.Tensor) for i in index):
        return x.index_put(index, value)
    if any(isinstance(i, torch.Tensor) for i in index):
        where = _positions(x, index)
        flat = value.broadcast_to(where.shape).reshape(-1)
        return x.reshape(-1).index_put((where.reshape(-1),), flat).reshape(x.shape)
    return _scattered(x, index, value)


def _last(x: torch.Tensor, where: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """A copy of `x` with values set at the flat positions `where`. If a position occurs twice, the
    last value is kept, and only that value gets the gradient; torch would give it to all.
    """
    where, value = where.reshape(-1), value.broadcast_to(where.shape).reshape(-1)
    if not where.numel():
        return x.clone()
    turns = torch.arange(where.numel(), device=x.device)
    none = torch.full((x.numel(),), -1, device=x.device)
    last = none.scatter_reduce(0, where, turns, "amax")
    found = torch.where(last < 0, x.reshape(-1), value[last.clamp(min=0)])
    return found.reshape(x.shape)


def _scattered(x: torch.Tensor, index: tuple, value: torch.Tensor) -> torch.Tensor:
    """A copy of `x` with `x[index]` set, for an index of ints, slices, None and an ellipsis. Each
    entry makes a view of the view before it; then the changed views are put back, the last one
    first.
    """
    free = [slice(None)] * (x.ndim - sum(map(_width, index)))
    entries = [j for i in index for j in (free if i is Ellipsis else [i])]
    back: list[Callable[[torch.Tensor], torch.Tensor]] = []
    part, axis = x, 0
    for i in entries:
        if i is None:
            back.append(partial(torch.squeeze, dim=axis))
            part = part.unsqueeze(axis)
        elif isinstance(i, slice):
            start, stop, step = i.indices(part.shape[axis])
            cut = {"start": start, "end": max(start, stop), "step": step}
            back.append(partial(torch.slice_scatter, part, dim=axis, **cut))
            part = part[(slice(None),) * axis + (i,)]
        else:
            back.append(partial(torch.select_scatter, part, dim=axis, index=i))
            part = part.select(axis, i)
            continue
        axis += 1
    value = value.broadcast_to(part.shape)
    for put in reversed(back):
        value = put(value)
    return value if back else value.clone()


def _repeats(index: tuple) -> bool:
    """Whether an index may select a position twice."""
    return any(isinstance(i, torch.Tensor) and i.dtype != torch.bool for i in index)


def _may_differentiate(*arrays: torch.Tensor) -> bool:
    inexact = arrays[0].is_floating_point() or arrays[0].is_complex()
    return inexact and (is_tracing() or any(x.requires_grad for x in arrays))


def _fitted(place: tuple[int, ...], value: torch.Tensor, how: str) -> torch.Tensor:
    """`value` without the leading axes of size 1 that NumPy ignores. Raises if it does not
    broadcast to the shape `place`.
    """
    shape = tuple(value.shape)
    extra = max(len(shape) - len(place), 0)
    pairs = zip(reversed(shape[extra:]), reversed(place))
    if any(n != 1 for n in shape[:extra]) or any(n not in (1, m) for n, m in pairs):
        raise ValueError(
            f"at(x)[index].{how}: needed a value that broadcasts to the selected shape {place}, "
            f"got shape {shape}"
        )
    return value.reshape(shape[extra:])


def _ready(x: torch.Tensor, index: Any) -> tuple[torch.Tensor, tuple]:
    """A tensor and an index with which torch selects what NumPy selects by `x[index]`: either `x`
    and an equivalent index, or `x` flattened and the positions in it. Steps may still be negative.
    """
    parts = index if isinstance(index, tuple) else (index,)
    basic = BASIC.issuperset(map(type, parts))
    if not basic:
        parts = tuple(_part(x, i) for i in parts)
    ellipses = sum(i is Ellipsis for i in parts)
    if ellipses > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if basic:
        return x, parts
    arrays = any(isinstance(i, torch.Tensor) and i.ndim for i in parts)
    if (arrays and ellipses and _is_closed(x, parts)) or any(isinstance(i, bool) for i in parts):
        host = tuple(i.cpu().numpy() if isinstance(i, torch.Tensor) else i for i in parts)
        where = np.arange(x.numel()).reshape(x.shape)[host]
        return x.reshape(-1), (torch.from_numpy(where).to(x.device),)
    if arrays:  # next to arrays, numbers count as arrays
        parts = tuple(_beside_arrays(x, i, axis) for i, axis in _axes(x, parts))
    return x, parts


def _is_closed(x: torch.Tensor, parts: tuple) -> bool:
    """Whether an ellipsis that covers no axis stands between arrays. NumPy then counts the arrays
    as separated and puts their axes first; torch does not.
    """
    if sum(map(_width, parts)) != x.ndim:
        return False
    chosen = [isinstance(i, (int, torch.Tensor)) for i in parts]
    place = next(n for n, i in enumerate(parts) if i is Ellipsis)
    return any(chosen[:place]) and any(chosen[place:])


def _part(x: torch.Tensor, i: Any) -> Any:
    """One entry of an index: a number as an int, a boolean as a bool, an array or a sequence as a
    tensor of int64 or bool.
    """
    if type(i) in BASIC or isinstance(i, bool):
        return i
    if hasattr(i, "__index__") and not hasattr(i, "shape"):
        return operator.index(i)
    if isinstance(i, (list, tuple, range)):
        i = asarray(i) if _holds_tensor(i) else np.asarray(i)
        if 0 in i.shape:  # empty: NumPy accepts [] as integers
            i = np.empty(tuple(i.shape), np.int64)
    if isinstance(i, (np.ndarray, np.generic)) and i.dtype.kind in "biu":
        if i.ndim == 0:
            return i.item()
        i = torch.from_numpy(i.astype(bool if i.dtype.kind == "b" else np.int64))
    if isinstance(i, torch.Tensor) and not (i.is_floating_point() or i.is_complex()):
        if i.dtype is torch.bool:
            return i.to(x.device) if i.ndim else bool(i)
        return i.long() if i.ndim else i.to(x.device, torch.int64)
    if hasattr(i, "shape") and not isinstance(i, (np.ndarray, np.generic, torch.Tensor)):
        raise TypeError(
            f"at(x)[index]: needed an index of ints, slices, and arrays of torch or NumPy, got "
            f"{type(i).__module__}.{type(i).__qualname__}; move it with iso.convert first"
        )
    raise IndexError(
        "at(x)[index]: needed ints, slices, None, Ellipsis and arrays of integers or booleans, "
        f"got {getattr(i, 'dtype', type(i).__name__)}"
    )


def _holds_tensor(i: Any) -> bool:
    return isinstance(i, torch.Tensor) or (
        isinstance(i, (list, tuple)) and any(_holds_tensor(x) for x in i)
    )


def _beside_arrays(x: torch.Tensor, i: Any, axis: int) -> Any:
    if isinstance(i, torch.Tensor):
        i = i if i.ndim else i.reshape(1)
        if i.device == x.device:
            return i
        if i.is_cpu and axis < x.ndim:  # on a GPU, a wrong index would end the CUDA context
            _check_bounds(i, x, axis)
        return i.to(x.device)
    if not isinstance(i, int):
        return i
    if axis < x.ndim and not -x.shape[axis] <= i < x.shape[axis]:
        raise _out_of_bounds(i, x, axis)
    return torch.tensor([i], device=x.device)


def _check_bounds(i: torch.Tensor, x: torch.Tensor, axis: int) -> None:
    """Raise if an index tensor in the memory of the host is out of bounds. If it is traced or
    mapped, it cannot be read and is not checked.
    """
    maps, values = _mapped(i)
    if maps or values is None or len_torch_dispatch_stack() or torch.compiler.is_compiling():
        return
    for wrong in values[(values < -x.shape[axis]) | (values >= x.shape[axis])].tolist():
        raise _out_of_bounds(wrong, x, axis)


def _out_of_bounds(i: int, x: torch.Tensor, axis: int) -> IndexError:
    return IndexError(f"index {i} is out of bounds for axis {axis} with size {x.shape[axis]}")


def _axes(x: torch.Tensor, index: tuple) -> list[tuple[Any, int]]:
    """Each entry of the index with the first axis of `x` it applies to."""
    taken = sum(map(_width, index))
    axis, out = 0, []
    for i in index:
        out.append((i, axis))
        axis += x.ndim - taken if i is Ellipsis else _width(i)
    return out


def _width(i: Any) -> int:
    """How many axes an entry of an index consumes."""
    if i is None or i is Ellipsis:
        return 0
    return i.ndim if isinstance(i, torch.Tensor) and i.dtype is torch.bool else 1


def _backward_axes(x: torch.Tensor, index: tuple) -> list[int]:
    """The axes that a slice traverses backwards."""
    if not any(_is_backward(i) for i in index):
        return []
    axes = [axis for i, axis in _axes(x, index) if _is_backward(i)]
    if axes[-1] >= x.ndim:
        raise IndexError(f"too many indices for a tensor of {x.ndim} axes")
    return axes


def _is_backward(i: Any) -> bool:
    return isinstance(i, slice) and i.step is not None and i.step < 0


def _forward(x: torch.Tensor, index: tuple) -> tuple[torch.Tensor, tuple]:
    """The same selection with positive steps, on `x` flipped along the axes traversed backwards."""
    flips = _backward_axes(x, index)
    if not flips:
        return x, index
    turned = []
    for i, axis in _axes(x, index):
        if isinstance(i, slice) and axis in flips:
            n = x.shape[axis]
            start, stop, step = i.indices(n)
            i = slice(n - 1 - start, n - 1 - stop, -step)
        turned.append(i)
    return x.flip(flips), tuple(turned)
