"""What is a view, and how results lie in memory: for every function of the tape as in plain NumPy,
since that decides which later writes are seen through which names.
"""

import numpy as np
import pytest
from test_numpy_batching import CASES

from isomorph.backends.numpy.storage import bottom, shares
from isomorph.backends.numpy.tape import vjp

LAYOUTS = {
    "in C's order": (lambda x: x.copy(order="C"), lambda x: x),
    "in Fortran's order": (lambda x: x.copy(order="F"), lambda x: x),
    "a part of a larger array": (
        lambda x: np.repeat(x, 2, -1) if x.ndim else x.copy(),
        lambda x: x[..., ::2] if x.ndim else x,
    ),
    "turned": (lambda x: x.T.copy(), lambda x: x.T),
}


def leaves(y):
    return [leaf for part in y for leaf in leaves(part)] if isinstance(y, (tuple, list)) else [y]


def lies(x):
    return [step for step, n in zip(x.strides, x.shape, strict=True) if n > 1]


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
@pytest.mark.parametrize("name", CASES)
def test_a_result_lies_in_memory_as_numpys(backend, name):
    func, *arrays = CASES[name]
    for layout in LAYOUTS:
        if name == "ravel K" and layout == "a part of a larger array":
            with pytest.raises(NotImplementedError, match="needed a contiguous array"):
                check(func, arrays, layout)
        else:
            check(func, arrays, layout)


def check(func, arrays, layout):
    outside, inside = LAYOUTS[layout]
    roots = [outside(np.asarray(x)) for x in arrays]
    found = []

    def run(*xs):
        for y in leaves(func(*map(inside, xs))):
            found.append((bottom(y), any(shares(y, x) for x in xs)))
        return (xs[0],), ()

    wanted = leaves(func(*map(inside, roots)))
    vjp(run, roots)
    assert len(found) == len(wanted)
    for y, (got, is_view) in zip(wanted, found, strict=True):
        if isinstance(y, np.ndarray) and y.size > 1:
            assert lies(got) == lies(y), layout
            assert is_view == any(np.shares_memory(y, x) for x in roots), layout
