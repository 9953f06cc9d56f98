"""Rows of a table."""

from __future__ import annotations

from typing import Any

from ..dispatch import backend_of, dtype_of
from .canonical import strays


def embedding(ids: Any, weight: Any, /) -> Any:
    """The rows of `weight` `[rows, *sizes]` at the integers `ids`: `[*ids.shape, *sizes]`.

    Gradients of rows taken twice add up. An id that is no row's raises IndexError where ids can be
    read without waiting for a device; elsewhere, compiled say, its row is NaN, or of integers the
    nearest.

    >>> iso.embedding(np.array([1, 0, 1]), np.array([[1.0], [2.0]])).tolist()
    [[2.0], [1.0], [2.0]]
    """
    xp = backend_of(ids, weight)
    if not xp.isdtype(ids.dtype, "integral"):
        raise TypeError(f"embedding: needed integer ids, got {dtype_of(ids)}")
    if len(weight.shape) < 1:
        raise ValueError("embedding: needed weight [rows, *sizes], got a 0-d array")
    return xp.take_rows(weight, ids)


def rows(xp: Any, weight: Any, ids: Any) -> Any:
    """The meaning of `embedding`."""
    shape = (*tuple(ids.shape), *tuple(weight.shape)[1:])
    lost = strays(xp, "embedding", ids, weight.shape[0], "ids")
    if lost is not None:
        ids = xp.clip(ids, 0, weight.shape[0] - 1)
    found = xp.reshape(xp.take(weight, xp.reshape(ids, (-1,)), axis=0), shape)
    if lost is None or not xp.is_float(weight.dtype):
        return found
    lost = xp.reshape(lost, (*tuple(ids.shape), *(1 for _ in shape[len(ids.shape) :])))
    return xp.where(lost, xp.nan * xp.ones_like(found), found)
