"""Every example under `vmap` on NumPy: all of a batch at once gives what each gives alone, with
gradients inside of the map and around it.

The oracle is a Python loop. 1e-9 of the largest number allows for another order of sums.
"""

import numpy as np
import pytest
from border_transforms import total

import isomorph as iso
from examples import TABLE, X, may, of_vector
from examples.measuring import run
from isomorph.backends.numpy import mapped
from isomorph.core import tree

# what an example that cannot be mapped at once is noted for, and then it runs row by row
NOTED = {
    name: {entry.but["mapped"]} for name, entry in TABLE.items()
    if entry.but.get("mapped", "").startswith(("a Python", "iso.", "numpy."))
}  # fmt: skip
NAMES = [name for name, entry in TABLE.items() if may(entry, "mapped") or name in NOTED]


def alone(func, rows):
    each = [tree.flatten(func(x))[0] for x in rows]
    return [np.stack(part) for part in zip(*each, strict=True)]


def compare(found, wanted):
    for got, sure in zip(found, wanted, strict=True):
        assert (got.shape, got.dtype) == (sure.shape, sure.dtype)
        scale = max(np.abs(sure).max(initial=0), 1e-2) if sure.dtype.kind in "fc" else 0
        np.testing.assert_allclose(got, sure, rtol=0, atol=1e-9 * scale)


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
@pytest.mark.parametrize("name", NAMES)
def test_a_map_gives_what_each_row_gives(backend, name):
    func = of_vector(TABLE[name], run(name))
    rows = np.stack([X, X * 0.9, X * 1.02])
    mapped.NOTED.clear()
    if not TABLE[name].order:
        found = iso.vmap(func)(rows)
        assert NOTED.get(name, set()) == mapped.NOTED
        compare(found, alone(func, rows))
        return
    inside = iso.value_and_grad(total(func))
    around = lambda run: iso.grad(lambda rows: np.sum(run(rows) * np.arange(1.0, 4.0)))(rows)
    whole = lambda x: (*func(x), *inside(x))
    found, slope = iso.vmap(whole)(rows), around(iso.vmap(total(func)))
    assert NOTED.get(name, set()) == mapped.NOTED
    compare(found, alone(whole, rows))
    compare([slope], [around(lambda rows: np.stack([total(func)(x) for x in rows]))])
