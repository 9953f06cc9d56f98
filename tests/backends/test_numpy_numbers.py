"""What NumPy rebinds and what it writes, under derivatives, maps and both: its numbers are rebound,
arrays without axes are written, and an outer transform's arrays may be written after an inner one
has read them.
"""

import warnings

import numpy
import pytest
from plain_numpy import same_as_plain_numpy

import isomorph as iso
import isomorph.numpy as inp
from isomorph.backends.numpy.buffers import bare
from isomorph.backends.numpy.levels import TRACED
from isomorph.backends.numpy.storage import bottom
from oracles import central_gradient

pytestmark = pytest.mark.parametrize("backend", ["numpy"], indirect=True)
X = numpy.array([1.1, 1.7, 0.6, 2.3])


def a_number_kept(np, x):
    s = x.sum()
    t = s
    s += 1
    return t * s


def an_element_kept(np, x):
    y = x * 1.0
    t = y[0]
    y *= 2
    return t * y.sum()


def unpacked(np, x):
    y = x * 1.0
    a, b, c, _ = y
    y *= 2
    return a * b + c * y.sum()


def sums_so_far(np, x):
    before, s = [], 0.0
    for v in x:
        before.append(s)
        s += v**2
    return sum(before)


def an_inner_product_kept(np, x):
    s = np.inner(x, x)
    t = s
    s += 1
    return t * s


def remainders(np, x):
    y = x * 1.0
    z = y
    z %= 0.7
    y //= 0.13
    return z.sum() + (x * z).sum()


def a_product_of_matrices(np, x):
    y = x.reshape(2, 2) * 1.0
    z = y
    z @= z.T
    return y.sum()


def masks(np, x):
    m = x > 1
    w = m
    m &= x < 2
    w |= x > 2.2
    w ^= x > 5
    return (x**2 * w).sum()


def in_fortran_order(np, x):
    y = np.reshape(x, (2, 2), order="F") * 1.0
    r = y.T
    r[0, 1] *= 3
    return (y**2 * np.array([[1.0, 2.0], [3.0, 4.0]])).sum() + np.ravel(y, order="F")[1] ** 3


def rounded_into(np, x):
    whole = np.zeros(4)
    np.floor(x * 3, out=whole)
    return (whole * x).sum()


def imaginary(np, x):
    y = np.zeros(4, complex)
    y[:] = x
    part = y.imag
    y *= 1j
    return (part**2).sum()


def not_copied(np, x):
    y = x * 1.0
    z = y.astype(float, copy=False)
    z += 1
    return (y**2).sum() + y[[]].sum()


def copied_in_fortran_order(np, x):
    y = np.array(x.reshape(2, 2), order="F")
    r = y.T.reshape(-1)
    r[1] = 3.0
    z = np.asarray(x.reshape(2, 2), order="F").T.reshape(-1)
    z[0] *= x[2]
    return (y**2 * np.array([[1.0, 2.0], [3.0, 4.0]])).sum() + z.sum()


EVERYWHERE = (
    copied_in_fortran_order,
    a_number_kept, an_element_kept, unpacked, sums_so_far, an_inner_product_kept, remainders,
    a_product_of_matrices, masks, in_fortran_order, rounded_into, imaginary, not_copied,
)  # fmt: skip


# Arrays without axes: under a map they are taken for numbers, where NumPy has those far more often.
def an_array_without_axes(np, x):
    total = np.zeros(())
    for i in range(4):
        total += x[i]
    return total * total


def its_alias(np, x):
    y = np.array(x[0])
    a = y
    y += x[1]
    y += x[2]
    return a * y


def its_view(np, x):
    y = np.array(x[0])
    z, w = y[...], y.reshape(1)
    y += x[1]
    z *= 2
    w += x[2]
    return y * 1.0


def one_in_a_dict(np, x):
    found = {"energy": np.zeros(())}

    def add(e, v):
        e += v

    for v in x:
        add(found["energy"], v**2)
    np.sum(x, out=x[:1].reshape(()))
    return found["energy"] * x[0]


def one_that_is_set(np, x):
    s = np.zeros(())
    s += x[0]
    s[...] = x[1]
    s[()] = s * x[2]
    return s * 1.0


def a_number_as_an_array(np, x):
    t = np.asarray(x.sum())
    u = t
    t += 1
    return u * t


WITHOUT_AXES = (
    a_number_as_an_array,
    an_array_without_axes,
    its_alias,
    its_view,
    one_in_a_dict,
    one_that_is_set,
)


@pytest.mark.parametrize("program", EVERYWHERE + WITHOUT_AXES, ids=lambda f: f.__name__)
def test_value_and_derivatives(backend, program):
    same_as_plain_numpy(program, X)
    ours = lambda x: program(inp, x)
    curve = central_gradient(lambda x: iso.grad(ours)(x) @ numpy.cos(X), X)
    numpy.testing.assert_allclose(iso.hessian(ours)(X) @ numpy.cos(X), curve, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("program", EVERYWHERE, ids=lambda f: f.__name__)
def test_in_maps(backend, program):
    ours, rows = lambda x: program(inp, x), numpy.stack([X, X[::-1] * 1.1, X * 0.7])
    values = [program(numpy, row.copy()) for row in rows]
    slopes = [central_gradient(lambda x: program(numpy, x.copy()), row) for row in rows]
    given = rows.copy()
    numpy.testing.assert_allclose(iso.vmap(ours)(given), values, rtol=1e-12)
    near = {"rtol": 1e-7, "atol": 1e-7}
    numpy.testing.assert_allclose(iso.vmap(iso.grad(ours))(given), slopes, **near)
    total = lambda rows: inp.sum(iso.vmap(ours)(rows))
    numpy.testing.assert_allclose(iso.grad(total)(given), slopes, **near)
    numpy.testing.assert_array_equal(given, rows)


@pytest.mark.parametrize("np", [numpy, inp], ids=["numpy", "isomorph.numpy"])
def test_a_map_leaves_the_callers_array_alone(backend, np):
    def f(x):
        z = x
        z /= z.sum()
        x[0] = 5.0
        return z[0] + z[1]

    rows = numpy.stack([X, X * 2])
    given = rows.copy()
    numpy.testing.assert_allclose(iso.vmap(f)(given), 5 + X[1] / X.sum())
    numpy.testing.assert_array_equal(given, rows)


def by_grad(np, x):
    y = x * 1.0

    def inner(a):
        s = (a**2 * y).sum()
        y[:] = 0.0
        return s

    return iso.grad(inner)(x).sum()


def by_jvp(np, x):
    y = x * 1.0

    def inner(a):
        s = (a**2 * y).sum()
        np.multiply(y, 0.0, out=y)
        return s

    return iso.jvp(inner, (x,), (np.ones(4),))[1]


def by_a_pullback(np, x):
    y = x * 1.0
    v = y[:]
    _, pullback = iso.vjp(lambda a: a**2 * v, x)
    y *= 3
    return pullback(np.ones(4))[0].sum()


@pytest.mark.parametrize("program", [by_grad, by_jvp, by_a_pullback], ids=lambda f: f.__name__)
def test_what_an_inner_rule_has_read_may_be_written(backend, program):
    """Each is the sum of 2 x^2, whatever is written afterwards."""
    value, grad = iso.value_and_grad(lambda x: program(inp, x))(X)
    numpy.testing.assert_allclose(value, (2 * X**2).sum(), rtol=1e-13)
    numpy.testing.assert_allclose(grad, 4 * X, rtol=1e-13)
    curve = iso.hessian(lambda x: program(inp, x))(X)
    numpy.testing.assert_allclose(curve, 4 * numpy.eye(4), atol=1e-12)


def a_constant(np, x, w):
    w[0] = 7.0
    return 0.0


def something_traced(np, x, w):
    w[0] = x[1]
    return w.sum()


@pytest.mark.parametrize("write", [a_constant, something_traced], ids=lambda f: f.__name__)
def test_what_a_checkpoint_has_read_may_be_written(backend, write):
    def f(x):
        w = inp.ones(4)
        s = iso.checkpoint(lambda a: (a**3 * w).sum())(x)
        return s + write(inp, x, w)

    value, grad = iso.value_and_grad(f)(X)
    after = 0.0 if write is a_constant else X[1] + 3
    numpy.testing.assert_allclose(value, (X**3).sum() + after, rtol=1e-13)
    more = numpy.array([0.0, 1, 0, 0]) * (write is something_traced)
    numpy.testing.assert_allclose(grad, 3 * X**2 + more, rtol=1e-13)


def test_a_plain_array_that_a_checkpoint_has_read_is_read_only(backend):
    def f(x):
        w = numpy.ones(4)
        s = iso.checkpoint(lambda a: (a**3 * w).sum())(x)
        w[0] = 7.0
        return s

    with pytest.raises(ValueError, match="a derivative reads this array"):
        iso.grad(f)(X)


# Calls of a number and of an array, or of two of these, as NumPy takes them.
OPERANDS = {
    "number": lambda n, a: (n,),
    "array": lambda n, a: (a,),
    "array, axis": lambda n, a: (a, 0),
    "two numbers": lambda n, a: (n, n),
    "number, array": lambda n, a: (n, a),
    "array, number": lambda n, a: (a, n),
    "two arrays": lambda n, a: (a, a),
    "limits": lambda n, a: (n, 0.2, 0.9),
    "condition": lambda n, a: (n > 0, n, a),
    "points": lambda n, a: (n, a, a),
    "list": lambda n, a: ([0.5, n],),
    "places": lambda n, a: (a, [0, 0]),
}
WRITING = {"put", "place", "copyto", "putmask", "fill_diagonal", "put_along_axis"}


@pytest.mark.parametrize("operands", OPERANDS)
def test_functions_return_numbers_where_numpy_does(backend, operands):
    """Numbers are rebound by `s += 1` and arrays written, so each function must return the same."""
    a, compared = numpy.array([0.3, 0.6]), 0

    def kinds(y):
        if isinstance(y, (tuple, list)):
            return [kinds(part) for part in y]
        return "array" if isinstance(bottom(bare(y)), numpy.ndarray) else "number"

    def both(x):
        nonlocal compared
        for func in [f for f in TRACED if f.__name__ not in WRITING]:
            try:
                with warnings.catch_warnings(action="ignore"):
                    plain = func(*OPERANDS[operands](a[0], a))
                    traced = func(*OPERANDS[operands](x[0], x))
            except Exception:  # not a call of this function, or one without a rule
                continue
            if not isinstance(func, numpy.ufunc) or func.nin == len(OPERANDS[operands](0, a)):
                assert kinds(traced) == kinds(plain), func.__name__
                compared += 1
        return x.sum()

    iso.grad(both)(a)
    assert compared >= 5
