"""array-api-strict as an isomorph backend in its own package: all the code that a backend needs.

Its namespace is the array API standard and nothing else. NumPy computes what isomorph needs beyond
that: arrays convert to it and back. The backend has no gradients, no compiler and no random
numbers, and says so in `lacks`. Layers, losses and loops are composed from its namespace.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import array_api_strict as strict
import numpy as np

import isomorph as iso
from isomorph.backends.composed import Backend
from isomorph.core.dispatch import load

Array = type(strict.zeros(0))
CPU = strict.Device("CPU_DEVICE")
MOVE = "move the arrays with iso.convert to a backend that has one"
LACKS = {
    "vjp": f"it keeps no record of what is computed; {MOVE}",
    "compile": f"it has no compiler; {MOVE}",
    "quick": "the array API standard has no random numbers; leave out exact=False",
}


def by_numpy(verb: str) -> Callable[..., Any]:
    """A verb computed by NumPy's backend."""

    def call(xp: Any, *args: Any, **kw: Any) -> Any:
        device = next(xp.device_of(x) for x in args if isinstance(x, xp.arrays))
        return xp.from_numpy(getattr(load("numpy"), verb)(*iso.to_numpy(args), **kw), device)

    return call


class Rows(Array):
    """An array that can be iterated over; the standard's cannot."""

    __slots__ = ()

    def __iter__(self):
        return iter(strict.unstack(self))


class Strict(Backend):
    name = "array_api_strict"
    arrays = (Array,)
    lacks = LACKS

    # What the vocabulary adds to the standard, and NumPy's indexing.
    einsum, erf, pad = map(by_numpy, ("einsum", "erf", "pad"))
    index_get, index_update = map(by_numpy, ("index_get", "index_update"))

    # Differentiation and compilation: nothing is ever traced.

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

    # Values and their devices.

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

    # The composed versions would work, except for these.

    def unpackable(xp, x):
        x.__class__ = Rows
        return x

    def is_inside(xp, x, size):
        return load("numpy").is_inside(xp.to_numpy(x), size)  # values are always available

    def logsumexp(xp, x, axis, keepdims):
        with np.errstate(divide="ignore"):  # its NumPy arrays warn about log(0)
            return super().logsumexp(x, axis, keepdims)


backend = Strict(strict, linalg=[strict.linalg], fft=[strict.fft])
