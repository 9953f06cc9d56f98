"""The results of functions of NumPy arrays that programs call: `iso.host_function`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def like(host: Any, kinds: Sequence[tuple]) -> list[np.ndarray]:
    """Arrays like the results of a host function for arguments of `(shape, dtype)`."""
    return [np.asarray(y) for y in host.like(*(np.ones(*kind) for kind in kinds))]


def results(outs: Sequence[Any], likes: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of a host function, checked to be like `likes`, which a program expects."""
    found = [np.asarray(y) for y in outs]
    kinds = [(y.shape, y.dtype.name) for y in found]
    wanted = [(y.shape, y.dtype.name) for y in likes]
    casts = lambda: all(np.can_cast(y.dtype, z.dtype, "same_kind") for y, z in zip(found, likes))
    if [k[0] for k in kinds] != [k[0] for k in wanted] or not casts():
        raise ValueError(f"host_function: needed results like {wanted}, got {kinds}")
    # copies: they must not share memory with the arguments
    return [np.array(y, like.dtype) for y, like in zip(found, likes)]
