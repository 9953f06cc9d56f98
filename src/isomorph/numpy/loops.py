"""Functions that call a Python function for each element."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy

from ..backends.numpy.nested import holds_traced
from ..backends.numpy.traced import Traced
from .creation import array, asarray

__all__ = [
    "ndenumerate",
    "vectorize",
]

np: Any = numpy  # its type stubs do not know traced values


class vectorize(numpy.vectorize):  # pyright: ignore[reportIncompatibleVariableOverride]
    """`numpy.vectorize`, also for traced values; `signature=` needs plain ones."""

    def __call__(self, *args: Any, **kw: Any) -> Any:
        if self.pyfunc is np._NoValue or not any(map(holds_traced, (*args, *kw.values()))):
            return super().__call__(*args, **kw)
        if self.signature is not None:
            raise NotImplementedError(
                "isomorph.numpy.vectorize with signature=: no derivative rule for traced values; "
                "write a loop and np.stack, or use iso.vmap"
            )
        fixed = {k: kw.pop(k) for k in list(kw) if k in self.excluded}
        places = [i for i in range(len(args)) if i not in self.excluded]
        given = [asarray(args[i]) for i in places] + [asarray(x) for x in kw.values()]
        shape = np.broadcast_shapes(*[x.shape for x in given])
        flat = [np.reshape(np.broadcast_to(x, shape), -1) for x in given]
        found = []
        for row in zip(*flat):
            full: list[Any] = list(args)
            for i, x in zip(places, row):
                full[i] = x
            found.append(self.pyfunc(*full, **dict(zip(kw, row[len(places) :])), **fixed))
        if not found:
            raise ValueError("isomorph.numpy.vectorize: needed elements, got arrays of size 0")
        if isinstance(found[0], tuple):
            return tuple(np.reshape(array(list(part)), shape) for part in zip(*found))
        return np.reshape(array(found), shape)


class ndenumerate(numpy.ndenumerate):
    """`numpy.ndenumerate`, also of a traced value."""

    def __new__(cls, arr: Any) -> Any:
        return _pairs(arr) if type(arr) is Traced else numpy.ndenumerate(arr)


def _pairs(x: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    return ((i, x[i]) for i in np.ndindex(x.shape))
