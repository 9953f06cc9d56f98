"""Every public function under `vmap` on NumPy: all examples at once give what each gives alone,
with gradients inside of the map and around it.

The oracle is a Python loop. 1e-9 of the largest number allows for another order of sums.
"""

import border_functions
import numpy as np
import pytest
from border_transforms import total

import isomorph as iso
from isomorph.backends.numpy import mapped

VECTORS = {**border_functions.VECTORS, **border_functions.ARRAYS}
SCALARS = border_functions.SCALARS
TEST = "a Python if, while, and, or of a mapped value, or iso.cond"
ROW_BY_ROW = {"cond_of_a_value": {TEST}, "host_function": {"iso.host_function"}}


def alone(func, rows):
    each = [iso.tree.flatten(func(x))[0] for x in rows]
    return [np.stack(part) for part in zip(*each, strict=True)]


def compare(found, wanted):
    for got, sure in zip(found, wanted, strict=True):
        assert (got.shape, got.dtype) == (sure.shape, sure.dtype)
        scale = max(np.abs(sure).max(initial=0), 1e-2) if sure.dtype.kind in "fc" else 0
        np.testing.assert_allclose(got, sure, rtol=0, atol=1e-9 * scale)


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
@pytest.mark.parametrize("name", [*VECTORS, *SCALARS])
def test_all_examples_at_once_are_each_alone(backend, name):
    func = VECTORS.get(name) or SCALARS[name]
    x = border_functions.X if name in VECTORS else np.array(0.3)
    rows = np.stack([x, x * 0.9, x * 1.02])
    inside = iso.value_and_grad(total(func))
    around = lambda run: iso.grad(lambda rows: np.sum(run(rows) * np.arange(1.0, 4.0)))(rows)
    whole = lambda x: (*iso.tree.flatten(func(x))[0], *inside(x))
    mapped.NOTED.clear()
    found, slope = iso.vmap(whole)(rows), around(iso.vmap(total(func)))
    assert ROW_BY_ROW.get(name, set()) == mapped.NOTED
    compare(found, alone(whole, rows))
    compare([slope], [around(lambda rows: np.stack([total(func)(x) for x in rows]))])
