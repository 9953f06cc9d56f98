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


def parts_of_complex_numbers(np, x):
    y = np.zeros(3, complex)
    y.real = x
    y.imag = x**2
    y[0] *= 2
    real = x * 1.0
    real.real = x**3
    return np.abs(y).sum() + real.sum()


def without_nan(np, x):
    y = x * 1.0
    z, w = y[:2], np.zeros(2)
    y[0] = w[0] = np.nan
    np.nan_to_num(y, copy=False, nan=0.5)
    np.nan_to_num(w, False)
    return (y * z[0]).sum() + w.sum() + np.nan_to_num(y * 2)[1]


def shared_elements_written_last(np, x):
    y = np.array(1.5) * 1.0
    y = np.asarray(x[0])
    y.put([0, -1], x[:2])
    y.flat[0] += x[2]
    y.reshape(1)[[0, 0]] *= np.array([5.0, 2.0])
    np.ascontiguousarray(np.zeros(())).fill(2.0)
    return y * y


PROGRAMS = (
    parts_of_complex_numbers, without_nan, shared_elements_written_last,
    at_repeated_places, put_beyond_the_ends, fewer_values_than_places, partitioned,
    a_wrapped_diagonal, arrays_of_many_makers, many_views, a_result_in_another_layout,
    an_index_that_changes,
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_value_and_gradient(backend, program):
    same_as_plain_numpy(program, X)


OUT_BY_POSITION = {  # calls of functions and methods that write into `w`, of shape (3,)
    "np.max": lambda np, y, w: np.max(y, 0, w),
    "np.mean": lambda np, y, w: np.mean(y, 0, None, w),
    "np.median": lambda np, y, w: np.median(y, 0, w),
    "np.nansum": lambda np, y, w: np.nansum(y, 0, None, w),
    "np.quantile": lambda np, y, w: np.quantile(y, 0.3, 0, w),
    "np.std": lambda np, y, w: np.std(y, 0, None, w, 1),
    "np.sum": lambda np, y, w: np.sum(y, 0, None, w, False, 2.0),
    "np.add.reduce": lambda np, y, w: np.add.reduce(y, 0, None, w),
    "np.logaddexp.reduce": lambda np, y, w: np.logaddexp.reduce(y, 0, None, w),
    "np.add.accumulate": lambda np, y, w: np.add.accumulate(y[1], 0, None, w),
    "np.cumprod": lambda np, y, w: np.cumprod(y[1], 0, None, w),
    "np.clip": lambda np, y, w: np.clip(y[1], 0.1, 1.5, w),
    "np.round": lambda np, y, w: np.round(y[1], 1, w),
    "np.take": lambda np, y, w: np.take(y[1], [2, 0, 0], 0, w),
    "np.compress": lambda np, y, w: np.compress([True, False], y[:2], 0, w[None]),
    "np.choose": lambda np, y, w: np.choose([0, 2, 1], y, w, "clip"),
    "np.concatenate": lambda np, y, w: np.concatenate([y[1, :1], y[2, 1:]], 0, w),
    "np.stack": lambda np, y, w: np.stack([y[1, 0], y[1, 1], y[0, 2]], 0, w),
    "np.dot": lambda np, y, w: np.dot(y, y[1], w),
    "np.outer": lambda np, y, w: np.outer(y[0, :1], y[1], w[None]),
    "np.trace": lambda np, y, w: np.trace(y[:, :, None] * y[0], 0, 0, 1, None, w),
    "np.multiply": lambda np, y, w: np.multiply(y[0], y[1], w),
    "np.einsum": lambda np, y, w: np.einsum("ij,j->i", y, y[1], out=w),
    "y.sum": lambda np, y, w: y.sum(0, None, w),
    "y.prod": lambda np, y, w: y.prod(0, None, w),
    "y.cumsum": lambda np, y, w: y[1].cumsum(0, None, w),
    "y.dot": lambda np, y, w: y.dot(y[1], w),
    "y.clip": lambda np, y, w: y[1].clip(0.1, 1.5, w),
    "y.compress": lambda np, y, w: y[:2].compress([True, False], 0, w[None]),
    "y.trace": lambda np, y, w: (y[:, :, None] * y[0]).trace(0, 0, 1, None, w),
}


@pytest.mark.parametrize("array", ["new", "traced", "view"])
@pytest.mark.parametrize("call", OUT_BY_POSITION)
def test_out_by_position(backend, call, array):
    def program(np, x):
        y = np.outer(x, np.sin(x)) + 1.0
        w = np.zeros(3) if array == "new" else x * 2.0
        alias = w
        w = w.reshape(1, 3)[0] if array == "view" else w
        OUT_BY_POSITION[call](np, y, w)
        return (alias * np.array([1.0, 2.0, 3.0])).sum()

    same_as_plain_numpy(program, X)
    rows = numpy.stack([X, X[::-1] * 1.1])
    needed = [program(numpy, row.copy()) for row in rows]
    numpy.testing.assert_allclose(iso.vmap(lambda x: program(inp, x))(rows), needed, rtol=1e-13)


def test_positions_are_written_to_plain_arrays(backend):
    """A function whose result has no gradient may write it anywhere."""

    def f(x):
        places, positive = numpy.zeros((), int), numpy.zeros(3, bool)
        np.argmax(x, 0, places)
        np.isposinf(x / 0.0, positive)
        return x[places] * positive.sum()

    np = inp
    with numpy.errstate(divide="ignore"):
        numpy.testing.assert_array_equal(iso.grad(f)(X), [0.0, 3.0, 0.0])


REFUSED = {
    "a complex sum in a real array": (lambda x: (x * 1.0).__iadd__(1j * x), TypeError),
    "a cast that is not allowed": (
        lambda x: inp.copyto((x * 1.0).astype(numpy.float32), x, casting="no"), TypeError),
    "a place out of range": (lambda x: inp.put(x * 1.0, [7], x[0]), IndexError),
    "a result of another shape": (
        lambda x: inp.add.reduce(inp.ones((4, 3)) * x, axis=0, out=x * inp.ones((2, 1))),
        ValueError),
    "the imaginary part of real numbers": (lambda x: setattr(x * 1.0, "imag", x), TypeError),
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


@pytest.mark.parametrize("make", [inp.zeros, lambda n: inp.ones(n) * 2], ids=["new", "used"])
def test_an_array_keeps_its_shape(backend, make):
    def f(x):
        y = make(3)
        with pytest.raises(AttributeError, match=r"write x = x.reshape\(v\)"):
            y.shape = (3, 1)
        with pytest.raises(AttributeError, match=r"write x = x.reshape\(v\)"):
            (y * x).shape = (3, 1)
        return (y * x).sum()

    assert iso.grad(f)(X).shape == (3,)


def test_arguments_that_share_memory_are_not_written(backend):
    def f(x, y):
        x += 1
        return (x * y).sum()

    both = iso.grad(f, argnums=(0, 1))
    with pytest.raises(TypeError, match="pass a copy of one of them"):
        both(X, X[::-1])
    numpy.testing.assert_allclose(both(X, X.copy()), [X, X + 1])


def test_an_outer_array_takes_no_inner_values(backend):
    def f(x):
        y = x * 1.0

        def inner(t):
            y[0] = t[0]
            return (y * t).sum()

        return iso.grad(inner)(x).sum()

    with pytest.raises(TypeError, match="innermost"):
        iso.grad(f)(X)
