"""Run examples, and compare them with what their own NumPy gives.

Every example is a function of the same 24 numbers, so that compilers see one input: what reads the
same numbers becomes one loop.
"""

import warnings
from functools import cache

import numpy as np

import isomorph as iso
from isomorph.tree import flatten
from oracles import as_users_have_it, kind_of, numpy_of

from . import TABLE, X, of_vector

# Of the largest number of a result: several roundings by four libraries; then differences.
VALUE, NARROW, GRADIENT = 1e-11, 2e-5, 2e-6
SORT = {"f": "float", "c": "complex", "b": "bool", "i": "integer", "u": "integer"}
HOST = ("convert", "to_numpy")  # they give plain arrays


def leaves(y):
    """The arrays of a nest of results; a mean counts as its two numbers."""
    return list(flatten([y.total, y.count] if isinstance(y, iso.Mean) else y)[0])


def run(name):
    """An example as a function of its arrays."""
    return lambda *arrays: leaves(TABLE[name].call(iso, *arrays))


def vector(name):
    """An example as a function of 24 numbers."""
    return of_vector(TABLE[name], run(name))


def known(name):
    """What an example should give, as a function of 24 numbers, in NumPy."""
    wanted = TABLE[name].wanted
    return of_vector(TABLE[name], lambda *arrays: [np.asarray(y) for y in leaves(wanted(*arrays))])


def weights(number, shape):
    """A different weight for each element of a result, so that nothing cancels out."""
    return np.sin(1.3 * np.arange(int(np.prod(shape))) + 0.4 + number).reshape(shape) + 1.2


def weighed(xp, outs):
    """One number from all floating-point numbers of the results."""
    total = 0.0
    for number, y in enumerate(outs):
        if not hasattr(y, "dtype") or not xp.isdtype(y.dtype, ("real floating", "complex floating")):
            continue
        whole = xp.isdtype(y.dtype, "complex floating")
        for part in [xp.real(y), 0.7 * xp.imag(y)] if whole else [y]:
            w = xp.asarray(weights(number, tuple(part.shape)), dtype=part.dtype)
            total = total + xp.sum(part * w)
    return total


def total(name):
    """One number from an example, as a function of 24 numbers, and its results."""
    call = vector(name)
    return lambda x: (lambda outs: (weighed(iso.namespace(x), outs), outs))(call(x))


@cache
def wanted(name):
    """The values of an example, and the gradient of their weighted sum, in float64."""
    entry, func = TABLE[name], known(name)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # NumPy about NaN
        found = func(X)
        if not entry.order:
            return found, None
        if entry.slope:
            return found, entry.slope(X) * weights(0, X.shape)
        return found, differences(lambda x: weighed(np, func(x)), X)


def differences(func, x, step=1e-5):
    """The gradient of a function of a vector, by central differences."""
    ends = [[func(x + side * e) for side in (step, -step)] for e in np.eye(len(x))]
    return np.array([(high - low) / (2 * step) for high, low in ends])


def measured(name):
    """Values and gradient of an example, as one function of 24 numbers."""
    if not TABLE[name].order:
        return lambda x: [vector(name)(x), None]

    def both(x):
        (_, outs), grad = iso.value_and_grad(total(name), has_aux=True)(x)
        return [outs, grad]

    return both


class Failures(list):
    """What went wrong, by name: all of it is told at the end."""

    def of(self, name, what, check, *args):
        try:
            check(*args)
        except Exception as error:
            self.append(f"{name}, {what}: {type(error).__name__}: {str(error)[:600]}")

    def tell(self):
        assert not self, f"{len(self)} failures\n" + "\n".join(self)


def close(found, expected, near=VALUE, backend=None, dtype=None):
    """Compare results with NumPy's: shapes, sorts of numbers, and each within `near` of the
    largest.
    """
    assert len(found) == len(expected) >= 1
    for got, sure in zip(found, expected):
        if backend and hasattr(got, "dtype"):
            assert kind_of(got) == backend
        got = numpy_of(got.resolve_conj() if hasattr(got, "resolve_conj") else got)
        assert got.shape == sure.shape
        assert SORT[got.dtype.kind] == SORT[sure.dtype.kind]
        if dtype and got.dtype.kind == "f":
            assert got.dtype == dtype
        scale = max(np.abs(sure[np.isfinite(sure)]).max(initial=0.0), 1e-2)
        np.testing.assert_allclose(got, sure, rtol=0, atol=near * scale)


def joined(names, part, x, backend):
    """The results of all names and their errors, compiled as one program. If it raises, its halves
    are tried, so that only those that raise are left out.
    """

    def every(x):
        return {name: part(name)(x) for name in names}

    try:
        with warnings.catch_warnings():  # a framework about its own compiler
            warnings.simplefilter("ignore")
            return as_users_have_it(backend, iso.jit(every))(x), {}
    except Exception as error:
        if len(names) == 1:
            return {}, {names[0]: error}
    found, raised = {}, {}
    for half in (names[::2], names[1::2]):
        some, errors = joined(half, part, x, backend)
        found |= some
        raised |= errors
    return found, raised
