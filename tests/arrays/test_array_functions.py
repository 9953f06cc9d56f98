"""Every case of `array_cases.py` on every backend: eager and compiled against its oracle, its
gradients against central differences, and mapped.
"""

import numpy as np
import pytest
from array_cases import CASES

import isomorph as iso
from oracles import central_gradient, kind_of, numpy_of

SMOOTH = {name: case for name, case in CASES.items() if case.places}


def listed(found):
    return found if isinstance(found, list) else [found]


def check(name, backend, found, wanted):
    found, wanted = listed(found), listed(wanted)
    assert len(found) == len(wanted) >= 1
    for got, sure in zip(found, wanted):
        assert kind_of(got) == backend, name
        got, sure = numpy_of(got), np.asarray(sure)
        assert (got.shape, got.dtype) == (sure.shape, sure.dtype), name
        np.testing.assert_allclose(got, sure, rtol=1e-12, atol=1e-13, err_msg=name)


def weighted(xp, name, found):
    """The sum of all elements of one result, each with its own weight."""
    weights = np.sin(1.0 + np.arange(np.prod(np.shape(right(name)))))
    return xp.sum(xp.reshape(found, (-1,)) * xp.asarray(weights))


def values_of(name, arrays):
    return CASES[name].call(iso, *arrays)


def gradients_of(xp, name, arrays):
    run = lambda *arrays: weighted(xp, name, CASES[name].call(iso, *arrays))
    return iso.grad(run, CASES[name].places)(*arrays)


def right(name):
    return CASES[name].wanted(*CASES[name].arrays)


def inputs(xp, names):
    return {name: [xp.asarray(x) for x in CASES[name].arrays] for name in names}


def by_differences(name):
    case = CASES[name]
    found = []
    for place in case.places:

        def total(x, place=place):
            arrays = [*case.arrays[:place], x, *case.arrays[place + 1 :]]
            return float(weighted(iso.namespace(np.ones(1)), name, case.wanted(*arrays)))

        with np.errstate(invalid="ignore"):
            found.append(np.nan_to_num(central_gradient(total, case.arrays[place])))
    return found


@pytest.mark.parametrize("name", CASES)
def test_values(backend, xp, name):
    check(
        name,
        backend,
        values_of(name, inputs(xp, [name])[name]),
        CASES[name].wanted(*CASES[name].arrays),
    )


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients(backend, xp, name):
    found = gradients_of(xp, name, inputs(xp, [name])[name])
    for got, wanted in zip(found, by_differences(name), strict=True):
        # the error of central differences is about 1e-9 times the third derivative
        np.testing.assert_allclose(numpy_of(got), wanted, rtol=1e-6, atol=1e-7)
