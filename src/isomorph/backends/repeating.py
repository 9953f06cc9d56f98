"""Products over positions that may repeat, of operations that every framework differentiates as
often as one likes. Frameworks have kernels for these, of which the derivatives are missing, or
wrong where factors are zero.
"""

from __future__ import annotations

from typing import Any


def multiplied(xp: Any, x: Any, value: Any, where: Any, rows: Any) -> Any:
    """`x`, row `where[i]` of it multiplied by `value[i]`, `rows` counting its rows. Sorted, the
    factors of a row lie side by side, and each round multiplies stretches twice as long. What
    `where` says of rows that are not there is passed over.
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
    # a row of ones before all others, where those without a factor look
    where = xp.concat([xp.zeros_like(rows[:1]) - 1, where])
    value = xp.concat([xp.ones_like(x[:1]), value])
    last = xp.searchsorted(where, rows, side="right") - 1
    has = xp.reshape(xp.take(where, last) == rows, of_rows)
    return x * xp.where(has, xp.take(value, last, axis=0), xp.ones_like(x))
