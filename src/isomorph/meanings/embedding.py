"""Rows of a table."""

from __future__ import annotations

from typing import Any

from .bounds import strays


def take_rows(xp: Any, weight: Any, ids: Any) -> Any:
    """The formula of `iso.embedding`: the row of `weight` for each id."""
    shape = (*tuple(ids.shape), *tuple(weight.shape)[1:])
    lost = strays(xp, "embedding", ids, weight.shape[0], "ids")
    if lost is not None:
        ids = xp.clip(ids, 0, weight.shape[0] - 1)
    found = xp.reshape(xp.take(weight, xp.reshape(ids, (-1,)), axis=0), shape)
    if lost is None or not xp.is_float(weight.dtype):
        return found
    lost = xp.reshape(lost, (*tuple(ids.shape), *(1 for _ in shape[len(ids.shape) :])))
    return xp.where(lost, xp.nan * xp.ones_like(found), found)
