"""Factors L and U of matrices whose rows are exchanged, column by column, so that the largest
element left is divided by.
"""

from __future__ import annotations

from typing import Any


def pivoted(xp: Any, a: Any) -> tuple[Any, Any]:
    """L without its diagonal of ones below U, in one matrix; and the order of the rows: row i of
    L U is row `order[i]` of `a`.
    """
    *batch, m, n = a.shape
    device = xp.device_of(a)
    rows, columns = (xp.arange(size, device=device) for size in (m, n))
    order = xp.broadcast_to(rows, (*batch, m)) + 0
    if 0 in a.shape:
        return a, order

    def step(k: Any, a: Any, order: Any) -> tuple[Any, Any]:
        k = xp.asarray(k, dtype=rows.dtype, device=device)
        at = xp.reshape(k, (1,))
        column = xp.take(a, at, axis=-1)[..., 0]
        size = _size(xp, column)
        size = xp.where(rows >= k, size, -xp.ones_like(size))
        # the first of the largest; argmax takes a NaN for the largest
        best = xp.astype(xp.argmax(size, axis=-1), rows.dtype)[..., None]
        swapped = xp.where(rows == k, best, xp.where(rows == best, k, rows))
        order = xp.take_along_axis(order, swapped, axis=-1)
        wide = xp.broadcast_to(swapped[..., None], (*batch, m, n))
        a = xp.take_along_axis(a, wide, axis=-2)
        row = xp.take(a, at, axis=-2)
        pivot = xp.take(row, at, axis=-1)
        factor = xp.take(a, at, axis=-1) / xp.where(pivot == 0, xp.ones_like(pivot), pivot)
        below = (rows > k)[:, None]
        a = xp.where(below & (columns == k), factor, a)
        return xp.where(below & (columns > k), a - factor * row, a), order

    return xp.fori_loop(0, min(m, n), step, (a, order))


def _size(xp: Any, x: Any) -> Any:
    """How large numbers are, as LAPACK compares them."""
    if xp.is_complex(x.dtype):
        return xp.abs(xp.real(x)) + xp.abs(xp.imag(x))
    return xp.abs(x)
