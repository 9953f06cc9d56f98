"""`host_function`: NumPy-only code inside the programs of every backend."""

import numpy as np
import pytest
from frameworks import enable_x64, jax
from scipy import special

import isomorph as iso
from oracles import kind_of, numpy_of

X = np.array([0.5, 1.5, -2.0])
ROWS = np.stack([X, X + 1, X - 1, X * 2])


def density(x):
    return np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)


def cdf(x):
    """The normal CDF by SciPy, which only takes NumPy arrays."""
    assert isinstance(x, (np.ndarray, np.generic))
    return special.ndtr(x)


# ten times the true derivative, so that ignoring the rule is noticed
normal = iso.host_function(cdf, lambda saved, g: 10 * g * density(saved[0]))
modes = pytest.mark.parametrize("mode", ["eager", "jit"])


def run(mode, func):
    return iso.jit(func) if mode == "jit" else func


@modes
def test_values_and_gradients(backend, xp, mode):
    x = xp.asarray(X)
    first = iso.value_and_grad(lambda x: xp.sum(normal(x) * x))
    value, (total, grad), jac = run(mode, lambda x: (normal(x), first(x), iso.jac(normal)(x)))(x)
    np.testing.assert_allclose(numpy_of(value), special.ndtr(X), rtol=1e-15)
    assert kind_of(value) == kind_of(x)
    np.testing.assert_allclose(float(total), np.sum(special.ndtr(X) * X), rtol=1e-14)
    np.testing.assert_allclose(numpy_of(grad), 10 * density(X) * X + special.ndtr(X), rtol=1e-13)
    np.testing.assert_allclose(numpy_of(jac), np.diag(10 * density(X)), rtol=1e-13)


@modes
def test_under_vmap(backend, xp, mode):
    rows = xp.asarray(ROWS)
    values = iso.vmap(normal)
    inner = iso.vmap(iso.grad(lambda x: xp.sum(normal(x))))
    outer = iso.grad(lambda rows: xp.sum(iso.vmap(normal)(rows)))
    got = run(mode, lambda rows: (values(rows), inner(rows), outer(rows)))(rows)
    for found, expected in zip(got, (special.ndtr(ROWS), *[10 * density(ROWS)] * 2)):
        np.testing.assert_allclose(numpy_of(found), expected, rtol=1e-13)


@modes
def test_nests_several_arguments_integers_and_dtypes(backend, xp, mode):
    def solve(p, b, n):
        return {"x": np.linalg.solve(p["a"], b).astype(np.float64), "n": n + 1}

    def pull(saved, g):
        (p, _, n), ret = saved
        back = np.linalg.solve(p["a"].T, g["x"])
        return {"a": -np.outer(back, ret["x"])}, back, n

    f = iso.host_function(solve, pull, like=lambda p, b, n: {"x": b, "n": n})
    a = np.array([[2.0, 1.0, 0.0], [0.0, 3.0, 1.0], [1.0, 0.0, 4.0]])
    loss = lambda a, b, n: xp.sum(f({"a": a}, b, n)["x"] ** 2)
    args = xp.asarray(a), xp.asarray(X), xp.asarray([1, 2])
    ga, gb = run(mode, iso.grad(loss, (0, 1)))(*args)
    x = np.linalg.solve(a, X)
    back = np.linalg.solve(a.T, 2 * x)
    np.testing.assert_allclose(numpy_of(ga), -np.outer(back, x), rtol=1e-12)
    np.testing.assert_allclose(numpy_of(gb), back, rtol=1e-12)
    out = run(mode, lambda a, b, n: f({"a": a}, b, n))(*args)
    np.testing.assert_array_equal(numpy_of(out["n"]), [2, 3])


@modes
def test_gradients_have_the_dtype_of_the_arguments(backend, xp, mode):
    f = iso.host_function(lambda x: x * 2, lambda saved, g: np.asarray(2 * g, np.float64))
    x = xp.asarray(X, dtype=xp.float32)
    grad = run(mode, iso.grad(lambda x: xp.sum(f(x))))(x)
    assert grad.dtype == xp.float32
    np.testing.assert_array_equal(numpy_of(grad), [2.0] * 3)


@modes
@pytest.mark.parametrize("nothing", [None, 0.0], ids=["None", "0.0"])
def test_an_integer_and_none_have_no_gradient(backend, xp, mode, nothing):
    """A Python number is an array of integers as an argument of a program."""
    tripled = iso.host_function(lambda x, n: x * n, lambda saved, g: (g * saved[0][1], nothing))
    total = lambda x, n: xp.sum(tripled(x, n))
    for n in (3, 3.0) if nothing is None else (3,):
        found = run(mode, iso.grad(total))(xp.asarray(X), n)
        np.testing.assert_allclose(numpy_of(found), [3.0, 3.0, 3.0], rtol=1e-15)


def test_the_form_of_gradients_is_checked(backend, xp):
    one = iso.host_function(lambda x, y: x * y, lambda saved, g: g * saved[0][1])
    with pytest.raises(ValueError, match="vjp to return a tuple of 2 gradients, each like its arg"):
        iso.grad(lambda x: xp.sum(one(x, x)))(xp.asarray(X))


def test_arrays_can_be_written_to(backend, xp):
    def scaled(x):  # C and Cython code needs writeable memory
        x = x if x.base is None else x.copy()
        assert x.flags.writeable
        return x * 3

    np.testing.assert_allclose(numpy_of(iso.host_function(scaled)(xp.asarray(X))), 3 * X)


def test_second_orders_by_custom_vjp(backend, xp):
    slope = iso.host_function(density, lambda saved, g: -g * saved[0] * density(saved[0]))
    value = iso.host_function(cdf)
    f = iso.custom_vjp(value, lambda x: (value(x), x), lambda x, g: (g * slope(x),))
    x = xp.asarray(X)
    first = iso.grad(lambda x: xp.sum(f(x)))
    np.testing.assert_allclose(numpy_of(first(x)), density(X), rtol=1e-13)
    second = iso.grad(lambda x: xp.sum(first(x)))(x)
    np.testing.assert_allclose(numpy_of(second), -X * density(X), rtol=1e-13)


def test_what_has_no_derivative_raises(backend, xp):
    x = xp.asarray(X)
    with pytest.raises(NotImplementedError, match="host_function: cdf was given no vjp"):
        iso.grad(lambda x: xp.sum(iso.host_function(cdf)(x)))(x)
    first = iso.grad(lambda x: xp.sum(normal(x)))
    with pytest.raises(NotImplementedError, match="vjp of cdf cannot be differentiated"):
        iso.grad(lambda x: xp.sum(first(x)))(x)


def test_bad_input(backend, xp):
    x = xp.asarray(X)
    with pytest.raises(TypeError, match="host_function: needed func as a function, got int"):
        iso.host_function(3)
    with pytest.raises(TypeError, match="host_function: needed vjp as a function, got int"):
        iso.host_function(cdf, 3)
    short = iso.host_function(cdf, lambda saved, g: g[:1])
    with pytest.raises(Exception, match=r"shape \(3,\) for argument 0, got \(1,\)"):
        iso.grad(lambda x: xp.sum(short(x)))(x)
    odd = iso.host_function(cdf, lambda saved, g: (g, g))
    with pytest.raises(ValueError, match="host_function: .*vjp to return .*like"):
        iso.grad(lambda x: xp.sum(odd(x)))(x)


def test_what_the_function_does_to_its_arrays_stays_there(backend, xp):
    buffer = np.empty(3)

    def square(x):
        np.multiply(x, x, out=buffer)  # reuses one buffer for all results
        x[:] = 0
        return buffer

    f = iso.host_function(square, lambda saved, g: 2 * saved[0] * g)
    x = xp.asarray(X)
    one, two = f(x), f(10 * x)
    np.testing.assert_allclose(numpy_of(one), X**2)
    np.testing.assert_allclose(numpy_of(two), 100 * X**2)
    np.testing.assert_allclose(numpy_of(iso.grad(lambda x: xp.sum(f(x)))(x)), 2 * X)
    np.testing.assert_allclose(numpy_of(iso.jit(lambda x: f(x) + x)(x)), X**2 + X)
    np.testing.assert_array_equal(numpy_of(x), X)


@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
def test_results_unlike_those_announced_raise(backend, xp):
    x = xp.asarray(X)
    cases = [
        (lambda x: (x, x), lambda x: x),
        (lambda x: x[:2], lambda x: x),
        (lambda x: x, lambda x: np.ones(3, np.int32)),
    ]
    for func, like in cases:
        with pytest.raises(Exception, match="host_function: needed results like"):
            numpy_of(iso.jit(iso.host_function(func, like=like))(x))


def test_without_arrays_it_is_called_as_it_is(backend, xp):
    assert iso.host_function(lambda n: n + 1)(2) == 3


@pytest.mark.parametrize("backend", ["jax"], indirect=True)
def test_no_bits_are_lost_where_jax_calls_without_its_64_bits(backend):
    """JAX's 64-bit context does not reach the threads that a program calls back from."""
    third = iso.host_function(lambda x: np.asarray(x[0] == 1 / 3))
    x = jax.numpy.asarray([1 / 3])
    program = jax.jit(third).lower(x).compile()
    with (
        enable_x64(False),
        pytest.raises(
            Exception, match=r"needed \[dtype\('float64'\)\], got \[dtype\('float32'\)\]"
        ),
    ):
        jax.block_until_ready(program(x))
