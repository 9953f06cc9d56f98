"""The functions of NumPy that write, and what NumPy refuses to write."""

import numpy
import pytest
from plain_numpy import same_as_plain_numpy

import isomorph as iso
import isomorph.numpy as inp

pytestmark = pytest.mark.parametrize("backend", ["numpy"], indirect=True)
X = numpy.array([1.1, 1.7, 0.6])


def at_repeated_places(np, x):
    y = np.ones(3) * x[0]
    np.subtract.at(y, [0, 0, 2], x)
    np.maximum.at(y, [1, 1], x[1:])
    np.minimum.at(y, [2, 2], x[1:])
    return (y**2 * np.array([1.0, 2.0, 3.0])).sum()


def put_beyond_the_ends(np, x):
    y = np.ones(3)
    np.put(y, [7], x[0], mode="clip")
    np.put(y, [4], x[1], mode="wrap")
    y.put([-9], x[2], mode="clip")
    return (y * np.array([1.0, 2.0, 3.0])).sum()


def fewer_values_than_places(np, x):
    y = np.ones(6) * x[0]
    np.put(y, [0, 1, 2, 3], x[1:])
    np.place(y, np.array([1, 1, 0, 0, 1, 1], bool), x[:2])
    np.putmask(y, np.arange(6) > 3, x)
    return (y * np.arange(1.0, 7.0)).sum()


def partitioned(np, x):
    y = x[[1, 0, 2]] * 1.0
    y.partition(1)
    return (y * np.array([1.0, 2.0, 3.0])).sum()


def a_wrapped_diagonal(np, x):
    y = np.zeros((5, 2))
    np.fill_diagonal(y, x[0], wrap=True)
    return (y * np.arange(10.0).reshape(5, 2)).sum()


def arrays_of_many_makers(np, x):
    grid = np.fromfunction(lambda i, j: i + 2 * j, (3, 3))
    column = np.linspace(1, 2, 3)[:, None]
    total = 0.0
    for y in (np.identity(3), np.tri(3), np.eye(3, 4), np.full((3, 3), 2.0), grid, column):
        y[0] = x[0] * 2
        y[1:] *= x[1]
        total += (y**2).sum()
    return total


def many_views(np, x):
    y = np.ones(40) * x[0]
    rows = [y[i : i + 2] for i in range(30)]
    y *= x[1]
    rows[3][0] = x[2]
    return sum(np.sum(row) for row in rows)


def a_result_in_another_layout(np, x):
    y = np.zeros((3, 3))
    y[...] = x
    np.add(np.outer(x, x).T * 1.0, np.outer(x, x**2).T * 1.0, out=y)
    z = y.reshape(-1)
    z[1] = 5.0
    return (y * np.arange(9.0).reshape(3, 3)).sum() + (z**2).sum()


def an_index_that_changes(np, x):
    y, i = np.zeros(3), numpy.array([0, 1])
    y[...] = 1.0
    y[i] = x[:2] ** 2
    z = y[i]
    i[:] = 2
    return (y * np.array([1.0, 2.0, 3.0])).sum() + (z**2).sum()


PROGRAMS = (
    at_repeated_places, put_beyond_the_ends, fewer_values_than_places, partitioned,
    a_wrapped_diagonal, arrays_of_many_makers, many_views, a_result_in_another_layout,
    an_index_that_changes,
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_value_and_gradient(backend, program):
    same_as_plain_numpy(program, X)


REFUSED = {
    "a complex sum in a real array": (lambda x: (x * 1.0).__iadd__(1j * x), TypeError),
    "a cast that is not allowed": (
        lambda x: inp.copyto((x * 1.0).astype(numpy.float32), x, casting="no"), TypeError),
    "a place out of range": (lambda x: inp.put(x * 1.0, [7], x[0]), IndexError),
    "a result of another shape": (
        lambda x: inp.add.reduce(inp.ones((4, 3)) * x, axis=0, out=x * inp.ones((2, 1))),
        ValueError),
    "an element of a number": (lambda x: x[0].__setitem__(Ellipsis, 2.0), TypeError),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_numpy_refuses_is_refused(backend, case):
    write, error = REFUSED[case]

    def f(x):
        with pytest.raises(error):
            write(x)
        return x.sum()

    numpy.testing.assert_array_equal(iso.grad(f)(X), numpy.ones(3))


def test_the_dtype_of_the_array_stays(backend):
    def f(x):
        y = inp.zeros((), numpy.float32)
        y[...] = x[0]
        y *= x[1]
        z = inp.zeros(3, numpy.float32)
        z += x
        assert y.dtype == z.dtype == numpy.float32
        return y + z.sum()

    numpy.testing.assert_allclose(iso.grad(f)(X), [2.7, 2.1, 1.0], rtol=1e-6)


def test_an_outer_array_takes_no_inner_values(backend):
    def f(x):
        y = x * 1.0

        def inner(t):
            y[0] = t[0]
            return (y * t).sum()

        return iso.grad(inner)(x).sum()

    with pytest.raises(TypeError, match="innermost"):
        iso.grad(f)(X)
