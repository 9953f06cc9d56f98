"""Every example of the table: values, compiled values and gradients of every public name on every
backend against plain NumPy. All names of a group are joined in one program; what fails is named.
"""

import warnings
from functools import cache

import numpy as np
import pytest

import isomorph as iso
from examples import BACKENDS, GROUPS, LEFT_OUT, MAY_NOT, TABLE, arrays_of, groups_of, may, name_in
from examples import public
from isomorph.tree import flatten
from oracles import as_users_have_it, kind_of, numpy_of

# Of the largest number of a result, in float64: several roundings, by four libraries.
VALUE, NARROW, GRADIENT = 1e-11, 2e-5, 2e-6


def grid(**marks):
    return [
        pytest.param(backend, group, id=f"{backend}-{group}", **marks)
        for backend in BACKENDS
        for group in groups_of(backend)
    ]


WHOLE = pytest.mark.parametrize(("backend", "group"), grid(), indirect=["backend"])


def leaves(y):
    """The arrays of a nest of results; a mean counts as its two numbers."""
    y = [y.total, y.count] if isinstance(y, iso.Mean) else y
    return [x for x in flatten(y)[0]]


def run(name):
    entry = TABLE[name]
    return lambda *arrays: leaves(entry.call(iso, *arrays))


@cache
def wanted(name):
    """The values of an example, and the gradients of their weighted sum, in float64."""
    entry = TABLE[name]
    arrays = arrays_of(entry)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy about NaN
        found = [np.asarray(y) for y in leaves(entry.wanted(*arrays))]
        return found, by_differences(entry, arrays, found)


def weights(number, shape):
    """A different weight for each element of a result, so that nothing cancels out."""
    return np.sin(1.3 * np.arange(int(np.prod(shape))) + 0.4 + number).reshape(shape) + 1.2


def weighed(xp, outs):
    """One number from all floating-point numbers of the results."""
    total = 0.0
    for number, y in enumerate(outs):
        if not hasattr(y, "dtype") or not xp.isdtype(y.dtype, ("real floating", "complex floating")):
            continue
        parts = [y]
        if xp.isdtype(y.dtype, "complex floating"):
            parts = [xp.real(y), 0.7 * xp.imag(y)]
        for part in parts:
            w = xp.asarray(weights(number, tuple(part.shape)), dtype=part.dtype)
            total = total + xp.sum(part * w)
    return total


def by_differences(entry, arrays, values, step=1e-5):
    """The gradient of each argument, by central differences of the example's own NumPy."""
    if not entry.order:
        return []
    if entry.slope:
        return [entry.slope(*arrays) * weights(0, arrays[0].shape)]
    found = []
    for place, x in enumerate(arrays):
        grad = np.zeros(x.shape)
        for at in np.ndindex(x.shape):
            ends = []
            for side in (step, -step):
                moved = x.copy()
                moved[at] += side
                outs = leaves(entry.wanted(*arrays[:place], moved, *arrays[place + 1 :]))
                ends.append(weighed(np, [np.asarray(y) for y in outs]))
            grad[at] = (ends[0] - ends[1]) / (2 * step)
        found.append(grad)
    return found


def measured(name):
    """Values and gradients of an example, as one function of its arrays."""
    call, places = run(name), tuple(range(len(TABLE[name].shapes)))

    def both(*arrays):
        if not TABLE[name].order:
            return call(*arrays), []
        total = lambda *a: (lambda outs: (weighed(iso.namespace(*a), outs), outs))(call(*a))
        (_, outs), grads = iso.value_and_grad(total, argnums=places, has_aux=True)(*arrays)
        return outs, list(grads)

    return both


SORT = {"f": "float", "c": "complex", "b": "bool", "i": "integer", "u": "integer"}


class Failures(list):
    """What went wrong, by name: all of it is told at the end."""

    def of(self, name, what, check, *args):
        try:
            check(*args)
        except Exception as error:
            self.append(f"{name}, {what}: {type(error).__name__}: {str(error)[:600]}")

    def tell(self):
        assert not self, f"{len(self)} failures\n" + "\n".join(self)


def close(found, expected, near, backend=None, dtype=None):
    found = [x for x in found]
    assert len(found) == len(expected) >= 1
    for got, sure in zip(found, expected):
        if hasattr(got, "dtype") and backend not in (None, "numpy"):
            assert kind_of(got) == backend
        got = numpy_of(got.resolve_conj() if hasattr(got, "resolve_conj") else got)
        assert got.shape == sure.shape
        if dtype and got.dtype.kind == "f":
            assert got.dtype == dtype
        assert SORT[got.dtype.kind] == SORT[sure.dtype.kind]
        scale = max(np.abs(sure[np.isfinite(sure)]).max(initial=0.0), 1e-2)
        np.testing.assert_allclose(got, sure, rtol=0, atol=near * scale)


def given(backend, name, dtype=np.float64):
    arrays = [np.asarray(x, dtype) for x in arrays_of(TABLE[name])]
    return [iso.convert(x, backend) for x in arrays]


def joined(names, inputs, backend, part):
    """The results of all names, compiled as one program. If it raises, the halves are tried, so
    that only those that raise are left out, with their errors.
    """

    def every(inputs):
        return {name: part(name)(*inputs[name]) for name in names}

    try:
        with warnings.catch_warnings():  # a framework about its own compiler
            warnings.simplefilter("ignore")
            return as_users_have_it(backend, iso.jit(every))({n: inputs[n] for n in names}), {}
    except Exception as error:
        if len(names) == 1:
            return {}, {names[0]: error}
    found, raised = {}, {}
    for half in (names[::2], names[1::2]):
        some, errors = joined(half, inputs, backend, part)
        found |= some
        raised |= errors
    return found, raised


@pytest.mark.whole
@WHOLE
def test_every_name_eager_and_compiled(backend, xp, group):
    """Values eager, in float64 and float32; values and gradients compiled."""
    names, failures = groups_of(backend)[group], Failures()
    inputs = {name: given(backend, name) for name in names}
    for name in names:
        failures.of(name, "value", valued, backend, name, inputs[name])
    can = [name for name in names if may(TABLE[name], "compiled", backend)]
    found, raised = joined(can, inputs, backend, measured)
    for name in found:
        values, grads = found[name]
        failures.of(name, "compiled", close, values, wanted(name)[0], VALUE)
        if TABLE[name].order:
            failures.of(name, "gradient", close, grads, wanted(name)[1], GRADIENT)
    failures.extend(f"{name}, compiled: {error!r}"[:900] for name, error in raised.items())
    failures.tell()


HOST = ("convert", "to_numpy")  # they give plain arrays


def valued(backend, name, inputs):
    kind = "numpy" if name in HOST else backend
    close(run(name)(*inputs), wanted(name)[0], VALUE, kind)
