"""`numpy.emath`: functions that become complex where their real version is not defined."""

import numpy as np

from ..tape import composed
from ..traced import concrete
from .shaping import arrayed


def widened(x, outside):
    """`x`, made complex if the real numbers of `x` are anywhere `outside` of the domain."""
    x = arrayed(x)
    plain = concrete(x)
    if plain.dtype.kind != "c" and np.any(outside(plain)):
        return x.astype(np.result_type(plain.dtype, np.complex64))
    return x


def negative(x):
    return x < 0


def beyond_one(x):
    return np.abs(x) > 1


def _register(name, outside):
    plain = getattr(np, name)
    composed(getattr(np.emath, name))(lambda x: plain(widened(x, outside)))


for _name in ("sqrt", "log", "log2", "log10"):
    _register(_name, negative)
for _name in ("arccos", "arcsin", "arctanh"):
    _register(_name, beyond_one)


@composed(np.emath.logn)
def logn(n, x):
    return np.log(widened(x, negative)) / np.log(widened(n, negative))


@composed(np.emath.power)
def power(x, p):
    p = arrayed(p)
    if p.dtype.kind in "iu" and np.any(concrete(p) < 0):  # as NumPy: integers have no such power
        p = p.astype(float)
    return np.power(widened(x, negative), p)
