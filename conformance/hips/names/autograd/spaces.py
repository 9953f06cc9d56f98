"""Vector spaces of nests of arrays, as autograd's checks of gradients need them."""

import numpy as np

from .nests import flatten
from .tracer import isbox


class VSpace:
    """The space of values like `nest`."""

    def __init__(self, nest):
        leaves, self.rebuild = flatten(nest)
        for x in leaves:
            if not isbox(x) and np.asarray(x).dtype.kind not in "fc":
                raise TypeError(f"Can't find vector space for value {x} of type {type(x)}")
        self.likes = [(np.shape(x), np.result_type(x)) for x in leaves]
        self.kind = repr(self.rebuild(["*"] * len(leaves)))

    @property
    def shape(self):
        return self.likes[0][0]

    @property
    def size(self):
        return sum(int(np.prod(s)) * (2 if d.kind == "c" else 1) for s, d in self.likes)

    @property
    def iscomplex(self):
        return any(d.kind == "c" for _, d in self.likes)

    def _make(self, func):
        parts = [np.asarray(func(s, d)).astype(d) for s, d in self.likes]
        parts = [p[()] if p.ndim == 0 else p for p in parts]
        return self.rebuild(parts)

    def zeros(self):
        return self._make(lambda s, d: np.zeros(s))

    def ones(self):
        return self._make(lambda s, d: np.full(s, 1 + 1j if d.kind == "c" else 1.0))

    def randn(self):
        draw = np.random.randn
        return self._make(lambda s, d: draw(*s) + 1j * draw(*s) if d.kind == "c" else draw(*s))

    def standard_basis(self):
        for place, (shape, dtype) in enumerate(self.likes):
            for i in np.ndindex(shape):
                for unit in (1.0, 1j) if dtype.kind == "c" else (1.0,):
                    parts = [np.zeros(s, d) for s, d in self.likes]
                    parts[place][i] = unit
                    yield self.rebuild(parts)

    def add(self, x, y):
        pairs = zip(flatten(x)[0], flatten(y)[0])
        return self.rebuild([a + b for a, b in pairs])

    def scalar_mul(self, x, a):
        return self.rebuild([part * a for part in flatten(x)[0]])

    def covector(self, x):
        return self.rebuild([np.conjugate(part) for part in flatten(x)[0]])

    def inner_prod(self, x, y):
        pairs = zip(flatten(x)[0], flatten(y)[0])
        return sum(np.real(np.sum(np.conjugate(a) * b)) for a, b in pairs)

    def __eq__(self, other):
        return (self.likes, self.kind) == (other.likes, other.kind)

    __hash__ = None

    def __repr__(self):
        return f"VSpace({self.kind}, {self.likes})"


def vspace(nest):
    return VSpace(nest)
