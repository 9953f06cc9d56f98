"""Compiled branches and loops of arrays that kernels store by columns: each body is compiled for
one memory layout. Values and gradients are those of eager code.
"""

import numpy as np
import pytest

import isomorph as iso
from isomorph.core.tree import flatten
from oracles import numpy_of

ROWS, COLUMNS = 33, 7


MATRIX = np.random.default_rng(3).normal(size=(ROWS, ROWS)) / 9 + 3 * np.eye(ROWS)

# name -> a function of a matrix and of x [33, 7] whose result, or gradient, a kernel stores by
# columns
STORED = {
    "solve": lambda xp, a, x: xp.linalg.solve(a, x),
    "triangular": lambda xp, a, x: iso.linalg.solve_triangular(a, x),
    "product": lambda xp, a, x: xp.matrix_transpose(xp.matmul(xp.matrix_transpose(x), a)),
    "qr": lambda xp, a, x: xp.linalg.qr(x)[0],
}
twice = lambda x: iso.namespace(x).cos(x) * x


def scanned(x):
    xp = iso.namespace(x)
    body = lambda c, row: (xp.sin(c) + xp.sum(row), row * c[:1])
    total, rows = iso.scan(body, x[0, ...], x)
    return rows + total / 9


BODIES = {
    "cond": lambda xp, x: iso.cond(x[0, 0] > 0.01, xp.sin, twice, x),
    "switch": lambda xp, x: iso.switch(
        xp.astype(x[0, 0] > 0, xp.int32) + 1, [xp.sin, xp.tanh, twice], x
    ),
    "while_loop": lambda xp, x: iso.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, xp.sin(s[1]) + x), (xp.asarray(0), x)
    )[1],
    "fori_loop": lambda xp, x: iso.fori_loop(0, 3, lambda i, y: twice(y) + x, x),
    "scan": lambda xp, x: scanned(x),
}  # fmt: skip
WITHOUT_GRADIENT = ("while_loop",)  # of a number of steps that is not known


def programs(xp, body, w, a):
    """The loss and the gradient of a body after, and before, each way of storing."""
    run = BODIES[body]

    def loss(x, name):
        # a sum is stored by the compiler, which takes the layout of what it reads
        summed = lambda y: STORED[name](xp, a, y) + 0.1 * y
        return xp.sum(w * (run(xp, summed(x)) + 0.5 * summed(run(xp, x))))

    func = loss if body in WITHOUT_GRADIENT else iso.value_and_grad(loss)
    return lambda x: {name: func(x, name) for name in STORED}


@pytest.mark.takes("compilers compile loops and their gradients")
@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
@pytest.mark.parametrize("body", BODIES)
def test_bodies_of_arrays_stored_by_columns(backend, xp, body):
    draw = np.random.default_rng(7)
    x, w = iso.convert(tuple(draw.normal(size=(2, ROWS, COLUMNS))), backend)
    func = programs(xp, body, w, iso.convert(MATRIX, backend))
    eager, compiled = func(x), iso.jit(func)(x)
    for name in STORED:
        for sure, found in zip(flatten(eager[name])[0], flatten(compiled[name])[0], strict=True):
            np.testing.assert_allclose(
                numpy_of(found), numpy_of(sure), rtol=1e-9, atol=1e-9, err_msg=name
            )
