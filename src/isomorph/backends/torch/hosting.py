"""Host functions inside torch's transforms and compiled programs. One custom operator calls all of
them; its argument `number` says which one.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import torch

from ..hosting import like, results
from . import private
from .private import len_torch_dispatch_stack

HOSTED: dict[int, Hosted] = {}  # by number, while a program may call it
NUMBERS = count()


class Hosted:
    """A host function, and examples of its results, whose shapes and dtypes a program relies on."""

    def __init__(self, xp: Any, host: Any):
        self.xp, self.host = xp, host
        self.likes: list[np.ndarray] | None = None

    def run(self, arrays: list[torch.Tensor]) -> list[np.ndarray]:
        outs = self.host.func(*map(self.xp.to_numpy, arrays))
        likes = [np.asarray(y) for y in outs] if self.likes is None else self.likes
        return results(outs, likes)

    def outline(self, arrays: list[torch.Tensor]) -> list[torch.Tensor]:
        with private.unset_fake_temporarily():
            kinds = [(tuple(x.shape), self._dtype(x.dtype)) for x in arrays]
            self.likes = likes = like(self.host, kinds)
            return [self.xp.from_numpy(y) for y in likes]

    def _dtype(self, dtype: torch.dtype) -> Any:
        return self.xp.to_numpy(torch.empty(0, dtype=dtype)).dtype


def call(xp: Any, host: Any, arrays: tuple) -> tuple:
    """Call `host` with tensors that have no values of their own: tensors inside a vmap, or
    placeholders of a trace.
    """
    number = next(NUMBERS)
    HOSTED[number] = Hosted(xp, host)
    try:
        return tuple(_host(list(arrays), number))
    finally:
        if not len_torch_dispatch_stack():  # no program was traced
            del HOSTED[number]


@torch.library.custom_op("isomorph::host", mutates_args=())
def _host(arrays: list[torch.Tensor], number: int) -> list[torch.Tensor]:
    hosted = HOSTED[number]
    device = arrays[0].device if arrays else None
    return [hosted.xp.from_numpy(y, device) for y in hosted.run(arrays)]


@_host.register_fake
def _(arrays: list[torch.Tensor], number: int) -> list[torch.Tensor]:
    device = arrays[0].device if arrays else None
    likes = HOSTED[number].outline(arrays)
    return [torch.empty(y.shape, dtype=y.dtype, device=device) for y in likes]


@_host.register_vmap
def _(info: Any, in_dims: Any, arrays: list[torch.Tensor], number: int) -> tuple:
    rows = [
        _host([x if d is None else x.select(d, i) for x, d in zip(arrays, in_dims[0])], number)
        for i in range(info.batch_size)
    ]
    return [torch.stack(parts) for parts in zip(*rows)], [0] * len(rows[0])
