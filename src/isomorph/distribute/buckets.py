"""Many arrays as few flat ones, so that one message per dtype reduces them all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..core.dispatch import find_backend


class Plan:
    """How arrays lie in flat buckets, one or more for each dtype; half precision is added up in
    float32. A bucket has at most `full` numbers, or one array. The first one starts with a head of
    floats: the weight, then flags that are added up as they are.
    """

    def __init__(self, xp: Any, leaves: Sequence[Any], flags: int = 0, full: int = 1 << 26):
        self.xp = xp
        self.shapes = [tuple(x.shape) for x in leaves]
        self.dtypes = [x.dtype for x in leaves]
        self.head = 1 + flags
        self.buckets: list[tuple[Any, list[int]]] = []  # dtype, numbers of its leaves
        room: list[int] = []  # numbers that fit into each bucket
        for number, (dtype, shape) in enumerate(zip(self.dtypes, self.shapes)):
            wide = xp.float32 if xp.is_float(dtype) and xp.finfo(dtype).bits < 32 else dtype
            size = math.prod(shape)
            for at, (known, numbers) in enumerate(self.buckets):
                if known == wide and room[at] >= size:
                    numbers.append(number)
                    room[at] -= size
                    break
            else:
                self.buckets.append((wide, [number]))
                room.append(full - size)

    def packed(self, leaves: Sequence[Any], weight: Any, flags: Sequence[Any] = ()) -> list[Any]:
        """The buckets of the leaves, each multiplied with the weight. A weight of 0 makes zeros,
        whatever the leaves are.
        """
        xp, out = self.xp, []
        is_certain = find_backend(weight) is None and weight != 0
        for place, (dtype, numbers) in enumerate(self.buckets):
            w = self._number(weight, dtype, leaves[numbers[0]])
            some = w != 0
            rows = []
            if not place:
                rows = [w, *(self._number(x, dtype, leaves[numbers[0]]) for x in flags)]
                rows = [xp.reshape(x, (1,)) for x in rows]
            for i in numbers:
                x = xp.reshape(leaves[i], (-1,))
                x = x if x.dtype == dtype else xp.astype(x, dtype)
                rows.append(x * w if is_certain else xp.where(some, x * w, xp.zeros_like(x)))
            out.append(rows[0] if len(rows) == 1 else xp.concat(rows))
        return out

    def means(self, sums: Sequence[Any]) -> tuple[list[Any], Any, list[Any]]:
        """From the sums of buckets over all processes: the means of the leaves, NaN if the weight
        is 0; the whole weight; the sums of the flags.
        """
        xp = self.xp
        total = sums[0][0]
        found: list[Any] = [None] * len(self.shapes)
        for place, ((dtype, numbers), flat) in enumerate(zip(self.buckets, sums)):
            at = 0 if place else self.head
            whole = total if total.dtype == dtype else xp.astype(total, dtype)
            for i in numbers:
                size = math.prod(self.shapes[i])
                mean = xp.reshape(flat[at : at + size], self.shapes[i]) / whole
                found[i] = mean if mean.dtype == self.dtypes[i] else xp.astype(mean, self.dtypes[i])
                at += size
        return found, total, [sums[0][i] for i in range(1, self.head)]

    def _number(self, x: Any, dtype: Any, beside: Any) -> Any:
        """A number as an array without axes."""
        xp = self.xp
        if find_backend(x) is None:
            return xp.asarray(x, dtype=dtype, device=xp.device_of(beside))
        return x if x.dtype == dtype else xp.astype(x, dtype)
