"""Random draws in torch. They are operators that the compiler does not look into, because Inductor
cannot handle the unrolled hash.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ...core.dispatch import load
from ...meanings import random as draws
from .. import random_words
from .private import is_functorch_wrapped_tensor, len_torch_dispatch_stack


def is_at_hand(x: torch.Tensor) -> bool:
    """Whether the values can be read now, at no cost."""
    # in a trace, numbers drawn now would become constants
    return not (is_traced(x) or x.device.type != "cpu" or is_functorch_wrapped_tensor(x))


def at_hand(x: torch.Tensor) -> np.ndarray | None:
    if not is_at_hand(x):
        return None
    # not x.numpy(), which finds no memory inside torch.func
    return np.array(x.tolist(), np.uint32 if x.dtype is torch.uint32 else np.int64)


def is_traced(key: torch.Tensor) -> bool:
    """Whether a program is being traced and `key` is one key, not one key per example of a vmap."""
    if torch.compiler.is_compiling():
        return True
    return len_torch_dispatch_stack() > 0 and not is_functorch_wrapped_tensor(key)


def traced(meaning: Any, key: torch.Tensor, start: int, shape: tuple, args: tuple) -> torch.Tensor:
    """A draw as one operator of a program, which takes no time to compile."""
    dtype = next((x for x in args if isinstance(x, str)), "")  # the first argument, if there is one
    numbers = [float(x) for x in args[bool(dtype) :]]
    return _draw(key, meaning.__name__, start, list(shape), dtype, numbers)


@torch.library.custom_op("isomorph::draw", mutates_args=())
def _draw(
    key: torch.Tensor, name: str, start: int, shape: list[int], dtype: str, numbers: list[float]
) -> torch.Tensor:
    backend = load("torch")
    args = (*([dtype] if dtype else ()), *numbers)
    return backend.draw(getattr(draws, name), key, start, tuple(shape), *args)


@_draw.register_fake
def _(
    key: torch.Tensor, name: str, start: int, shape: list[int], dtype: str, numbers: list[float]
) -> torch.Tensor:
    backend = load("torch")
    args = (*([dtype] if dtype else ()), *numbers)
    # a draw of zero numbers in NumPy, which shows their dtype
    like = load("numpy").draw(getattr(draws, name), np.zeros(2, np.uint32), 0, (0,), *args)
    kind = backend.dtype(like.dtype)
    return torch.empty((*shape, *like.shape[1:]), dtype=kind, device=key.device)


@_draw.register_vmap
def _(info: Any, in_dims: Any, key: torch.Tensor, *args: Any) -> tuple:
    return torch.stack([_draw(k, *args) for k in key.unbind(in_dims[0])]), 0


def words(key: torch.Tensor, counts: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The two random words for each counter, as int64, because torch cannot compute with uint32."""
    x, y = _words(key, counts.to(key.device)).unbind(0)
    return x, y


@torch.library.custom_op("isomorph::words", mutates_args=())
def _words(keys: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """The words `[2, *outer, n]` for keys `[*outer, 2]` and counters `[*outer, n]`, whose outer
    axes broadcast.
    """
    if keys.device.type == "cpu":
        pair = random_words.words(keys.numpy(), counts.numpy().astype(np.uint32))
        return torch.from_numpy(np.stack(pair).astype(np.int64))
    return _on_device(keys.to(torch.int64), counts)


def _on_device(keys: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """`_words` in torch itself, with int32, which wraps around on overflow."""
    first, second = (_signed(k) for k in (keys[..., :1], keys[..., 1:]))
    schedule = first, second, first ^ second ^ draws.PARITY
    y = _signed(counts) + second
    x = first.expand_as(y).clone()
    for i in range(5):
        for by in draws.ROTATIONS[i % 2]:
            x += y
            # a right shift repeats the sign bit; these copies are cut off
            y = ((y << by) | ((y >> (32 - by)) & ((1 << by) - 1))) ^ x
        x += schedule[(i + 1) % 3]
        y += schedule[(i + 2) % 3] + (i + 1)
    return torch.stack((x, y)).to(torch.int64) & draws.MASK


def _signed(word: torch.Tensor) -> torch.Tensor:
    """The int32 with the bits of a word stored in an int64."""
    word = word & draws.MASK
    return torch.where(word >= 2**31, word - 2**32, word).to(torch.int32)


@_words.register_fake
def _(keys: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    outer = torch.broadcast_shapes(keys.shape[:-1], counts.shape[:-1])
    return torch.empty((2, *outer, counts.shape[-1]), dtype=torch.int64, device=keys.device)


@_words.register_vmap
def _(info: Any, in_dims: Any, keys: torch.Tensor, counts: torch.Tensor) -> tuple:
    ndims = [x.ndim - (d is not None) for x, d in zip((keys, counts), in_dims)]

    def aligned(x: torch.Tensor, dim: int | None, ndim: int) -> torch.Tensor:
        x = x.unsqueeze(0) if dim is None else x.movedim(dim, 0)
        return x.reshape(x.shape[0], *(1 for _ in range(max(ndims) - ndim)), *x.shape[1:])

    rows = [aligned(*each) for each in zip((keys, counts), in_dims, ndims)]
    return _words(*rows), 1


@torch.library.custom_op("isomorph::quick", mutates_args=())
def quick(key: torch.Tensor, shape: list[int], dtype: torch.dtype, normal: bool) -> torch.Tensor:
    first, second = key.tolist()
    generator = torch.Generator(key.device).manual_seed((first << 32 | second) - 2**63)
    draw = torch.randn if normal else torch.rand
    return draw(shape, dtype=dtype, device=key.device, generator=generator)


@quick.register_fake
def _(key: torch.Tensor, shape: list[int], dtype: torch.dtype, normal: bool) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device=key.device)


@quick.register_vmap
def _(info: Any, in_dims: Any, key: torch.Tensor, shape: list[int], *kind: Any) -> tuple:
    return torch.stack([quick(k, shape, *kind) for k in key.unbind(in_dims[0])]), 0
