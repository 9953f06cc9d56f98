"""Random programs under `vmap` on NumPy: the value, the gradient and a second derivative of each
example, for any choice of mapped arguments, and the gradient around the map.

The oracle is a loop over the examples. Derivatives of random programs can be large: 1e-9 of the
largest number allows for sums in another order.
"""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from test_properties import NAMES, SETTINGS, programs

import isomorph as iso
from isomorph.backends.numpy import mapped

EXAMPLES = 3
TRIES = 3  # of programs for each function


def whole(program, leaves):
    places = tuple(range(len(leaves)))
    along = [np.sin(1.0 + np.arange(x.size)).reshape(x.shape) for x in leaves]
    value, grads = iso.value_and_grad(program, places)(*leaves)
    return (value, *grads, *iso.hvp(program, leaves, along))


def compare(found, wanted):
    for got, sure in zip(found, wanted, strict=True):
        assert (got.shape, got.dtype) == (sure.shape, sure.dtype)
        scale = max(np.abs(sure).max(initial=0), 1e-2)
        np.testing.assert_allclose(got, sure, rtol=0, atol=1e-9 * scale)


def check(program, draw):
    chosen = [draw.random() < 0.6 for _ in program.leaves]
    chosen[draw.randrange(len(chosen))] = True
    axes = tuple(0 if each else None for each in chosen)
    sizes = 1 - 1e-3 * np.arange(EXAMPLES)  # small steps: no example crosses a kink
    batch = [
        np.stack([x * size for size in sizes]) if each else x
        for x, each in zip(program.leaves, chosen)
    ]
    rows = [[x[i] if each else x for x, each in zip(batch, chosen)] for i in range(EXAMPLES)]
    alone = [whole(program, row) for row in rows]
    found = iso.vmap(lambda *xs: whole(program, xs), in_axes=axes)(*batch)
    compare(found, [np.stack(part) for part in zip(*alone, strict=True)])

    place = chosen.index(True)

    def around(run):
        total = lambda x: sum(run([*batch[:place], x, *batch[place + 1 :]]))
        return iso.grad(total)(batch[place])

    by_map = around(lambda given: iso.vmap(program, in_axes=axes)(*given))
    one = lambda given, i: program(*(x[i] if each else x for x, each in zip(given, chosen)))
    compare([by_map], [around(lambda given: [one(given, i) for i in range(EXAMPLES)])])


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
@pytest.mark.parametrize("name", NAMES)
def test_random_programs_are_those_of_each_example(backend, name):
    ran = []
    mapped.NOTED.clear()

    def every(program):
        check(program, Random(repr(program.steps)))
        ran.append(program)

    settings(max_examples=TRIES, **SETTINGS)(given(programs(name))(every))()
    assert len(ran) >= TRIES
    assert {"numpy.searchsorted"} >= mapped.NOTED
