"""Rows of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.dispatch import backend_of, dtype_of

if TYPE_CHECKING:
    from ..types.array_types import A, Shaped


def embedding(ids: Shaped, weight: A, /) -> A:
    """The rows of `weight` `[rows, *sizes]` at the integers `ids`: `[*ids.shape, *sizes]`.

    Gradients of rows taken twice add up. An id outside the table raises IndexError if ids can be
    read without waiting for a device; otherwise, as in a compiled program, its row is NaN, or for
    integers the nearest row.

    >>> iso.embedding(np.array([1, 0, 1]), np.array([[1.0], [2.0]])).tolist()
    [[2.0], [1.0], [2.0]]
    """
    xp = backend_of(ids, weight)
    if not xp.isdtype(ids.dtype, "integral"):
        raise TypeError(f"embedding: needed integer ids, got {dtype_of(ids)}")
    if len(weight.shape) < 1:
        raise ValueError("embedding: needed weight [rows, *sizes], got a 0-d array")
    return xp.take_rows(weight, ids)
