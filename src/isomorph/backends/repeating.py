"""Products over positions that may repeat, made of operations that every framework differentiates
to any order. The frameworks' own kernels have no derivatives, or wrong ones where factors are
zero.
"""

from __future__ import annotations

from typing import Any


def multiplied(xp: Any, x: Any, value: Any, where: Any, rows: Any) -> Any:
    """`x` with row `where[i]` multiplied by `value[i]`; `rows` counts its rows. After sorting, the
    factors of a row are adjacent, and each round multiplies stretches twice as long. Positions in
    `where` outside of `x` are ignored.
    """
    count = where.shape[0]
    of_rows = (-1, *(1,) * (len(x.shape) - 1))
    order = xp.argsort(where)
    where, value = xp.take(where, order), xp.take(value, order, axis=0)
    stretch = 1
    while stretch < (2**31 if count is None else count):
        together = xp.reshape(where[stretch:] == where[:-stretch], of_rows)
        before = xp.where(together, value[:-stretch], xp.ones_like(value[:-stretch]))
        value = xp.concat([value[:stretch], value[stretch:] * before])
        stretch *= 2
    # a row of ones in front, for rows without a factor
    where = xp.concat([xp.zeros_like(rows[:1]) - 1, where])
    value = xp.concat([xp.ones_like(x[:1]), value])
    last = xp.searchsorted(where, rows, side="right") - 1
    has = xp.reshape(xp.take(where, last) == rows, of_rows)
    return x * xp.where(has, xp.take(value, last, axis=0), xp.ones_like(x))
