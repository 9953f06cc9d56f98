"""Run examples, and compare them with what their own NumPy gives."""

import warnings
from functools import cache

import numpy as np

import isomorph as iso
from isomorph.core.tree import flatten
from oracles import as_users_have_it, central_gradient, kind_of, numpy_of

from . import SAME, TABLE, arrays_of

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


def known(name):
    """What an example should give, as a function of its arrays."""
    return lambda *arrays: [np.asarray(y) for y in leaves(TABLE[name].wanted(*arrays))]


def weights(number, shape):
    """A different weight for each element of a result, so that nothing cancels out."""
    return np.sin(1.3 * np.arange(int(np.prod(shape))) + 0.4 + number).reshape(shape) + 1.2


def weighed(xp, outs):
    """One number from all floating-point numbers of the results."""
    total = 0.0
    for number, y in enumerate(outs):
        is_of = lambda kind, y=y: hasattr(y, "dtype") and xp.isdtype(y.dtype, kind)
        parts = [y] if is_of("real floating") else []
        if is_of("complex floating"):
            parts = [xp.real(y), 0.7 * xp.imag(y)]
        for part in parts:
            w = xp.asarray(weights(number, tuple(part.shape)), dtype=part.dtype)
            total = total + xp.sum(part * w)
    return total


@cache
def wanted(name):
    """The values of an example, and the gradients of their weighted sum, in float64."""
    entry = TABLE[name]
    func, arrays = known(name), arrays_of(entry)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # NumPy about NaN
        found = func(*arrays)
        if not entry.order:
            return found, []
        if entry.slope:
            return found, [entry.slope(*arrays) * weights(0, arrays[0].shape)]
        return found, differences(lambda *a: weighed(np, func(*a)), arrays)


def differences(func, arrays, step=1e-5):
    """The gradients of a function of arrays, by central differences."""
    found = []
    for place, x in enumerate(arrays):
        along = lambda x, place=place: func(*arrays[:place], x, *arrays[place + 1 :])
        found.append(central_gradient(along, x, step))
    return found


def measured(name):
    """Values and gradients of an example, as one function of its arrays."""
    call = run(name)

    def both(*given):
        places = tuple(range(len(given)))
        (_, outs), grads = iso.value_and_grad(scalar, argnums=places, has_aux=True)(*given)
        return [outs, list(grads)]

    def scalar(*given):
        outs = call(*given)
        return weighed(iso.namespace(*given), outs), outs

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


def quickly(backend, program):
    """Compile with the flags of `conftest.py`."""
    return program


def joined(backend, parts, inputs, as_compiled=as_users_have_it):
    """The results of functions by name and their errors, compiled as one program. If it raises, its
    halves are tried, so that only those that raise are left out.
    """
    program = lambda inputs: {
        name: part(*inputs[SAME.get(name, name)]) for name, part in parts.items()
    }
    inputs = {same: inputs[same] for same in dict.fromkeys(SAME.get(name, name) for name in parts)}
    try:
        with warnings.catch_warnings():  # a framework about its own compiler
            warnings.simplefilter("ignore")
            return as_compiled(backend, iso.jit(program))(inputs), {}
    except Exception as error:
        if len(parts) == 1:
            return {}, dict.fromkeys(parts, error)
    found, raised = {}, {}
    for half in (list(parts)[::2], list(parts)[1::2]):
        some, errors = joined(backend, {name: parts[name] for name in half}, inputs, as_compiled)
        found |= some
        raised |= errors
    return found, raised
