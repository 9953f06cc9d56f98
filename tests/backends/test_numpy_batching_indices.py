"""Random indices under `vmap` on NumPy: integers, slices, new axes, masks and arrays of integers,
of which some are mapped, in every order. The oracle is a loop over the examples.
"""

import numpy as np
import pytest

import isomorph as iso
from isomorph.backends.numpy import mapped

EXAMPLES = 3
HOWS = ("get", "set", "add", "multiply", "min", "max")


class Draw:
    """An array, an index of it, and how it is used."""

    def __init__(self, seed):
        self.rng = rng = np.random.default_rng(seed)
        self.shape = tuple(int(n) for n in rng.integers(2, 5, rng.integers(1, 4)))
        self.how = HOWS[rng.integers(len(HOWS))]
        self.each = rng.random() < 0.7  # whether the array is mapped
        self.x = rng.standard_normal((EXAMPLES, *self.shape) if self.each else self.shape)
        self.index, self.mapped = self._index(), []
        for place, i in enumerate(self.index):
            if isinstance(i, np.ndarray) and i.dtype.kind == "i" and rng.random() < 0.6:
                size = self.sizes[place]
                self.mapped.append((place, rng.integers(-size, size, (EXAMPLES, *i.shape))))
        self.value = rng.integers(3)

    def _index(self):
        rng, axis, items, self.sizes = self.rng, 0, [], {}
        wide = [(), (2,), (3, 2), (1,)][rng.integers(4)]
        dots = False
        while axis < len(self.shape) and (rng.random() < 0.85 or not items):
            size, kind = self.shape[axis], rng.integers(8)
            if kind == 0 and not dots:
                dots = True
                items.append(Ellipsis)
                axis += int(rng.integers(0, len(self.shape) - axis + 1))
            elif kind == 1:
                items.append(None)
            elif kind in (2, 3):
                items.append(slice(*sorted(int(n) for n in rng.integers(0, size + 1, 2))))
                axis += 1
            elif kind == 4:
                items.append(rng.random(size) < 0.6)
                axis += 1
            else:
                self.sizes[len(items)] = size
                one = int(rng.integers(size))
                items.append(np.asarray(rng.integers(-size, size, wide)) if kind > 5 else one)
                axis += 1
        return items

    def used(self, x, *places):
        index = list(self.index)
        for (where, _), place in zip(self.mapped, places, strict=True):
            index[where] = place
        part = iso.at(x)[tuple(index)].get()
        if self.how == "get":
            return part
        new = (0.5, np.cos(np.arange(part.size).reshape(part.shape)), np.tanh(part))[self.value]
        return getattr(iso.at(x)[tuple(index)], self.how)(new)

    def whole(self, *given):
        x, places = (given[0], given[1:]) if self.each else (self.x, given)
        y = self.used(x, *places)
        weights = np.cos(1.0 + np.arange(y.size)).reshape(y.shape)
        return y, iso.grad(lambda x: np.sum(np.sin(self.used(x, *places)) * weights))(x)

    @property
    def rows(self):
        return [*([self.x] if self.each else []), *(places for _, places in self.mapped)]


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
@pytest.mark.parametrize("seed", range(0, 400, 40))
def test_random_indices(backend, seed):
    checked = 0
    for one in range(seed, seed + 40):
        draw = Draw(one)
        try:
            alone = [draw.whole(*row) for row in zip(*draw.rows, strict=True)]
        except (IndexError, ValueError):  # the parts of the index do not fit together
            continue
        if not alone:  # nothing is mapped
            continue
        mapped.NOTED.clear()
        found = iso.vmap(draw.whole)(*draw.rows)
        for got, *each in zip(found, *alone, strict=True):
            np.testing.assert_allclose(got, np.stack(each), rtol=0, atol=1e-12)
        assert set() == mapped.NOTED
        checked += 1
    assert checked > 15
