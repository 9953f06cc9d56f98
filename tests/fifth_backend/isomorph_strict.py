"""array-api-strict as a backend of isomorph, in a package of its own: all that one needs.

Its namespace is the array API standard and nothing else. What isomorph asks for beyond that, NumPy
computes: the arrays go there and come back. It has no gradients, no compiler and no random numbers,
and says so in `lacks`; layers, losses and loops are composed of what it has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import array_api_strict as strict
import numpy as np

import isomorph as iso
from isomorph.backends.composed import Backend
from isomorph.dispatch import load

Array = type(strict.zeros(0))
CPU = strict.Device("CPU_DEVICE")
MOVE = "move the arrays with iso.convert to a backend that has one"
LACKS = {
    "vjp": f"it keeps no record of what is computed; {MOVE}",
    "compile": f"it has no compiler; {MOVE}",
    "quick": "the array API standard has no random numbers; leave out exact=False",
}


def by_numpy(verb: str) -> Callable[..., Any]:
    """A verb that NumPy's backend computes."""

    def call(xp: Any, *args: Any, **kw: Any) -> Any:
        device = next(xp.device_of(x) for x in args if isinstance(x, xp.arrays))
        return xp.from_numpy(getattr(load("numpy"), verb)(*iso.to_numpy(args), **kw), device)

    return call


class Rows(Array):
    """An array that can be taken apart, which the standard's cannot."""

    __slots__ = ()

    def __iter__(self):
        return iter(strict.unstack(self))


class Strict(Backend):
    name = "array_api_strict"
    arrays = (Array,)
    lacks = LACKS

    # What the vocabulary has beyond the standard, and indexing with NumPy's meaning.
    einsum, erf, pad = map(by_numpy, ("einsum", "erf", "pad"))
    index_get, index_update = map(by_numpy, ("index_get", "index_update"))

    # Differentiation and compiling: there is nobody to look on.

    def custom_call(xp, rule, arrays):
        return rule.func(*arrays)

    def stop_gradient(xp, x, preserve_type=True):
        return x

    def is_watched(xp, x):
        return False

    def is_tracing(xp, arrays):
        return False

    def signature(xp, arrays):
        return tuple((x.shape, x.dtype, x.device) for x in arrays)

    # Values, and the devices they are on.

    def to_numpy(xp, x):
        return np.asarray(x.to_device(CPU))

    def from_numpy(xp, x, device=None):
        x = np.asarray(x)
        return strict.asarray(x, dtype=xp.dtype(x.dtype.name), device=device)

    def at_hand(xp, x):
        return xp.to_numpy(x)

    def devices(xp):
        return ["cpu", "device1", "device2"]

    def named_device(xp, name):
        return CPU if name == "cpu" else strict.Device(name)

    def narrow(xp, name):
        return None

    # What is composed would do, but for these.

    def unpackable(xp, x):
        x.__class__ = Rows
        return x

    def is_inside(xp, x, size):
        return load("numpy").is_inside(xp.to_numpy(x), size)  # its values are always there

    def logsumexp(xp, x, axis, keepdims):
        with np.errstate(divide="ignore"):  # NumPy under it warns of the logarithm of nothing
            return super().logsumexp(x, axis, keepdims)


backend = Strict(strict, linalg=[strict.linalg], fft=[strict.fft])
