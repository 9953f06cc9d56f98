"""Gradients where frameworks disagree: zeros, ties, masks, empty arrays, complex numbers, narrow
dtypes, variables. Expected values are closed forms, worked out by hand.
"""

import math

import numpy as np
import pytest
from frameworks import jax, ml_dtypes, tf, torch

import isomorph as iso
from oracles import kind_of, numpy_of, verbs_of

same = np.testing.assert_array_equal
close = np.testing.assert_allclose


def on(name):
    """A mark: run the test on one backend."""
    return pytest.mark.parametrize("backend", [name], indirect=True)


def weighted(xp, y):
    """Σ 10^k y[k], which shows where each element went."""
    flat = xp.reshape(y, (-1,))
    return xp.sum(flat * xp.asarray(10.0 ** np.arange(flat.shape[0]), dtype=y.dtype))


def table(xp, *values):
    return xp.asarray(np.array(values, np.float64))


# One convention on all four: 0 for a norm at 0, equal shares for ties. (function, x, gradient)

ZEROS, TIED = np.zeros((2, 2)), np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
EDGES = {
    "norm": (lambda xp, x: xp.linalg.vector_norm(x), [0.0, 0.0], [0.0, 0.0]),
    "norm_number": (lambda xp, x: xp.linalg.vector_norm(x), 0.0, 0.0),
    "norm_of_number": (lambda xp, x: xp.linalg.vector_norm(x), -2.0, -1.0),
    "norm_rows": (
        lambda xp, x: xp.sum(xp.linalg.vector_norm(x, axis=1, keepdims=True)),
        [[0.0, 0.0], [3.0, 4.0]],
        [[0.0, 0.0], [0.6, 0.8]],
    ),
    "norm_1": (lambda xp, x: xp.linalg.vector_norm(x, ord=1), [0.0, 0.0], [0.0, 0.0]),
    "norm_3": (lambda xp, x: xp.linalg.vector_norm(x, ord=3), [0.0, 0.0], [0.0, 0.0]),
    "norm_3_part": (lambda xp, x: xp.linalg.vector_norm(x, ord=3), [0.0, -2.0], [0.0, -1.0]),
    "norm_inf": (lambda xp, x: xp.linalg.vector_norm(x, ord=math.inf), [0.0, 0.0], [0.0, 0.0]),
    "norm_inf_tie": (
        lambda xp, x: xp.linalg.vector_norm(x, ord=math.inf), [-3.0, 3.0, 1.0], [-0.5, 0.5, 0.0]
    ),
    "frobenius": (lambda xp, x: xp.linalg.matrix_norm(x), ZEROS, ZEROS),
    "frobenius_stack": (
        lambda xp, x: xp.sum(xp.linalg.matrix_norm(x)),
        [ZEROS, [[3.0, 0.0], [0.0, 4.0]]],
        [ZEROS, [[0.6, 0.0], [0.0, 0.8]]],
    ),
    "std": (lambda xp, x: xp.std(x), [0.1, 0.1, 0.1], [0.0, 0.0, 0.0]),
    "std_rows": (
        lambda xp, x: xp.sum(xp.std(x, axis=1)), [[2.0, 2.0], [1.0, 3.0]], [[0, 0], [-0.5, 0.5]]
    ),
    "var": (lambda xp, x: xp.var(x), [0.1, 0.1, 0.1], [0.0, 0.0, 0.0]),
    "max": (lambda xp, x: xp.max(x), TIED, (TIED == 3) / 2),
    "max_rows": (
        lambda xp, x: xp.sum(xp.max(x, axis=1)), TIED, [[0, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3]]
    ),
    "min_both": (lambda xp, x: xp.min(x, axis=(0, 1)), -TIED, (TIED == 3) / 2),
    "min_kept": (
        lambda xp, x: xp.sum(xp.min(x, axis=0, keepdims=True)),
        [[1.0, 2.0], [1.0, 3.0]],
        [[0.5, 1.0], [0.5, 0.0]],
    ),
    "maximum": (lambda xp, x: xp.sum(xp.maximum(x, table(xp, 1, 1, 1))), [0, 1, 2], [0, 0.5, 1]),
    "maximum_second": (lambda xp, x: xp.sum(xp.maximum(table(xp, 1), x)), [0, 1, 2], [0, 0.5, 1]),
    "maximum_number": (lambda xp, x: xp.sum(xp.maximum(x, 1.0)), [0, 1, 2], [0, 0.5, 1]),
    "maximum_wide": (
        lambda xp, x: xp.sum(xp.maximum(x[:, None], x)), [1.0, 2.0], [1.0, 3.0]
    ),
    "minimum": (lambda xp, x: xp.sum(xp.minimum(x, table(xp, 1, 1, 1))), [0, 1, 2], [1, 0.5, 0]),
    "minimum_infinite": (lambda xp, x: xp.sum(xp.minimum(x, xp.inf)), [math.inf, 1], [0.5, 1]),
    "at_max": (lambda xp, x: xp.sum(iso.at(x)[:1].max(table(xp, 1))), [1.0, 2.0], [0.5, 1.0]),
    "sort": (lambda xp, x: weighted(xp, xp.sort(x)), [2.0, 1.0, 1.0], [100.0, 1.0, 10.0]),
    "sign": (lambda xp, x: xp.sum(xp.sign(x)), [0.0, -1.0], [0.0, 0.0]),
    "round": (lambda xp, x: xp.sum(xp.round(x) * x), [0.5, 1.7], [0.0, 2.0]),
    "prod_one_zero": (lambda xp, x: xp.prod(x), [2.0, 0.0, 3.0], [0.0, 6.0, 0.0]),
    "prod_two_zeros": (lambda xp, x: xp.prod(x), [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
    "prod_rows": (
        lambda xp, x: xp.sum(xp.prod(x, axis=1)), [[2, 0, 5], [0, 0, 3]], [[0, 10, 0], [0, 0, 0]]
    ),
    "cumulative_prod": (
        lambda xp, x: xp.sum(xp.cumulative_prod(x)), [2.0, 0.0, 0.0, 3.0], [1.0, 2.0, 0.0, 0.0]
    ),
    "pow_zero": (lambda xp, x: xp.sum(xp.pow(x, 0)), [0.0, 2.0], [0.0, 0.0]),
    "pow_zero_float": (lambda xp, x: xp.sum(xp.pow(x, 0.0)), [0.0, -2.0], [0.0, 0.0]),
    "pow_columns": (  # 1 + x + x² + x³
        lambda xp, x: xp.sum(xp.pow(x[:, None], table(xp, 0, 1, 2, 3))), [0.0, -2.0], [1.0, 9.0]
    ),
    "pow_of_zero": (
        lambda xp, x: xp.sum(xp.pow(table(xp, 0, 0, 1), x)), [0.0, 2.0, 5.0], [0.0, 0.0, 0.0]
    ),
    "square": (lambda xp, x: xp.sum(x**2), [0.0, -1.0], [0.0, -2.0]),
    "root": (lambda xp, x: xp.sum(x**1.5), [0.0, 4.0], [0.0, 3.0]),
    "log1p": (lambda xp, x: xp.sum(xp.log1p(x)), [0.0, 1e-20], [1.0, 1.0]),
    "expm1": (lambda xp, x: xp.sum(xp.expm1(x)), [0.0, 1e-20, -1000.0], [1.0, 1.0, 0.0]),
    "tanh": (lambda xp, x: xp.sum(xp.tanh(x)), [800.0, -800.0], [0.0, 0.0]),
    "logaddexp": (
        lambda xp, x: xp.sum(xp.logaddexp(x, table(xp, -math.inf, 0, 0))), [3, 0, 800], [1, 0.5, 1]
    ),
    "logsumexp": (
        lambda xp, x: xp.log(xp.sum(xp.exp(x - xp.max(x)))) + xp.max(x),
        [0.0, -math.inf, 0.0],
        [0.5, 0.0, 0.5],
    ),
    "adjugate": (lambda xp, x: xp.linalg.det(x), [[1.0, 2.0], [2.0, 4.0]], [[4, -2], [-2, 1]]),
    "adjugate_zero": (lambda xp, x: xp.linalg.det(x), ZEROS, ZEROS),
    "adjugate_stack": (
        lambda xp, x: weighted(xp, xp.linalg.det(x)),
        [[[1.0, 2.0], [2.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]]],
        [[[4.0, -2.0], [-2.0, 1.0]], [[40.0, -30.0], [-20.0, 10.0]]],
    ),
    # A branch that is not taken does not matter if its input is made harmless.
    "where_sqrt": (
        lambda xp, x: xp.sum(xp.where(x > 0, xp.sqrt(xp.where(x > 0, x, 1.0)), 0.0)),
        [0.0, -1.0, 4.0],
        [0.0, 0.0, 0.25],
    ),
    "where_divide": (
        lambda xp, x: xp.sum(xp.where(x == 0, 1.0, xp.sin(x) / xp.where(x == 0, 1.0, x))),
        [0.0, math.pi],
        [0.0, -1 / math.pi],
    ),
    "where_nan": (
        lambda xp, x: xp.sum(xp.where(x > 0, x * x, table(xp, math.nan))), [1.0, 2.0], [2.0, 4.0]
    ),
    "where_missing": (
        lambda xp, x: xp.sum(xp.where(xp.isnan(x), 0.0, x) ** 2), [math.nan, 2.0], [0.0, 4.0]
    ),
    # Empty arrays.
    "empty_sum": (lambda xp, x: xp.sum(xp.sum(x, axis=0)), np.zeros((0, 3)), np.zeros((0, 3))),
    "empty_prod": (lambda xp, x: xp.prod(x), np.zeros(0), np.zeros(0)),
    "empty_norm": (lambda xp, x: xp.linalg.vector_norm(x), np.zeros(0), np.zeros(0)),
    "empty_matmul": (
        lambda xp, x: xp.sum(xp.matmul(x, xp.matrix_transpose(x))), np.ones((2, 0)), np.ones((2, 0))
    ),
    "empty_sort": (lambda xp, x: xp.sum(xp.sort(x) * x), np.zeros((3, 0)), np.zeros((3, 0))),
    "empty_take": (
        lambda xp, x: xp.sum(xp.take(x, xp.asarray([], dtype=xp.int64), axis=0)), [1.0, 2], [0.0, 0]
    ),
    "empty_max": (lambda xp, x: xp.sum(xp.max(x, axis=1)), np.zeros((0, 2)), np.zeros((0, 2))),
}  # fmt: skip


def assert_gradient(xp, run, x, expected):
    x = xp.asarray(np.asarray(x, np.float64))
    got = run(x)
    assert (type(got), got.dtype, tuple(got.shape)) == (type(x), x.dtype, tuple(x.shape))
    close(numpy_of(got), np.asarray(expected), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("name", EDGES)
def test_gradient_at_an_edge(backend, xp, name):
    func, x, expected = EDGES[name]
    assert_gradient(xp, iso.grad(lambda x: func(xp, x)), x, expected)


@pytest.mark.parametrize("backend", ["jax", "tensorflow"], indirect=True)
@pytest.mark.parametrize("name", EDGES)
def test_gradient_at_an_edge_is_the_same_when_compiled(backend, xp, name):
    func, x, expected = EDGES[name]
    f = lambda x: func(xp, x)
    compiled = jax.jit if backend == "jax" else lambda f: tf.function(f, autograph=False)
    assert_gradient(xp, compiled(iso.grad(f)), x, expected)
    assert_gradient(xp, iso.grad(compiled(f)), x, expected)


# Second derivatives of functions whose first has a custom rule. (function, x, Hessian)

OPPOSED = np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
CROSSED = np.zeros((2, 2, 2, 2))  # the Hessian of ad - bc
CROSSED[0, 0, 1, 1] = CROSSED[1, 1, 0, 0] = 1
CROSSED[0, 1, 1, 0] = CROSSED[1, 0, 0, 1] = -1
CURVES = {
    "prod_two_zeros": (lambda xp, x: xp.prod(x), [2, 0, 0], [[0, 0, 0], [0, 0, 2], [0, 2, 0]]),
    "cumulative_prod": (
        lambda xp, x: xp.sum(xp.cumulative_prod(x)), [2, 0, 0], [[0, 1, 0], [1, 0, 2], [0, 2, 0]]
    ),
    "pow_columns": (  # 1 + x + x² + x³: 2 + 6x
        lambda xp, x: xp.sum(xp.pow(x[:, None], table(xp, 0, 1, 2, 3))), [0, -2], [[2, 0], [0, -10]]
    ),
    "max_tie": (lambda xp, x: xp.max(x) ** 2, [3, 3], [[0.5, 0.5], [0.5, 0.5]]),
    "maximum_tie": (
        lambda xp, x: xp.sum(xp.maximum(x, xp.flip(x)) ** 2), [3, 3], [[1, 1], [1, 1]]
    ),
    "norm": (
        lambda xp, x: xp.linalg.vector_norm(x), [3, 4], [[0.128, -0.096], [-0.096, 0.072]]
    ),  # (1 - uuᵀ) / 5
    "norm_3": (  # 2x / n² - 2x⁴ / n⁵ on the diagonal, -2x²y² / n⁵ beside it
        lambda xp, x: xp.linalg.vector_norm(x, ord=3) * 9 ** (5 / 3), [1, 2], [[16, -8], [-8, 4]]
    ),
    "std": (lambda xp, x: xp.std(x), [0, 0, 3], OPPOSED / math.sqrt(72)),
    "where_sqrt": (
        lambda xp, x: xp.sum(xp.where(x > 0, xp.sqrt(xp.where(x > 0, x, 1.0)), 0.0)),
        [0.0, -1.0, 4.0],
        np.diag([0.0, 0.0, -1 / 32]),
    ),
    "det_singular": (lambda xp, x: xp.linalg.det(x), [[1, 2], [2, 4]], CROSSED),
    "det_regular": (lambda xp, x: xp.linalg.det(x), [[1, 2], [3, 4]], CROSSED),
}  # fmt: skip


@pytest.mark.parametrize("name", CURVES)
def test_second_derivative_at_an_edge(backend, xp, name):
    func, x, expected = CURVES[name]
    got = iso.hessian(lambda x: func(xp, x))(xp.asarray(np.array(x, np.float64)))
    close(numpy_of(got), np.array(expected), rtol=1e-13, atol=1e-14)


# Where the four choose differently, each choice lies between the two one-sided slopes.

KINKS = {
    "abs": (lambda xp, x: xp.sum(xp.abs(x)), [0.0], -1, 1),
    "clip": (lambda xp, x: xp.sum(xp.clip(x, -1.0, 1.0)), [-1.0, 1.0], 0, 1),
    "clip_arrays": (lambda xp, x: xp.sum(xp.clip(x, table(xp, 0), table(xp, 2))), [0, 2], 0, 1),
    "copysign": (lambda xp, x: xp.sum(xp.copysign(x, table(xp, 1))), [0.0], -1, 1),
    "hypot": (lambda xp, x: xp.hypot(x[0], x[1]), [0.0, 0.0], -1, 1),
    "norm_1": (lambda xp, x: xp.linalg.vector_norm(x, ord=1), [0.0, 2.0], -1, 1),
    "matrix_norm_1": (lambda xp, x: xp.linalg.matrix_norm(x, ord=1), np.eye(2), 0, 1),
    "spectral": (lambda xp, x: xp.linalg.matrix_norm(x, ord=2), ZEROS, -1, 1),
    "nuclear": (lambda xp, x: xp.linalg.matrix_norm(x, ord="nuc"), ZEROS, -1, 1),
}


@pytest.mark.takes("JAX compiles each operation")
@pytest.mark.parametrize("name", KINKS)
def test_gradient_at_a_kink_is_one_of_the_slopes(backend, xp, name):
    func, x, low, high = KINKS[name]
    got = numpy_of(iso.grad(lambda x: func(xp, x))(xp.asarray(np.array(x, np.float64))))
    assert ((low <= got) & (got <= high)).all()


# Which of two equal arrays is differentiated.


def test_an_array_is_constant_where_it_is_not_the_argument(backend, xp):
    x = xp.asarray([1.0, 2.0])
    # through both it would be 3x²
    same(numpy_of(iso.grad(lambda y: xp.sum(y * y * x))(x)), [2.0, 8.0])
    same(numpy_of(iso.grad(lambda y, z: xp.sum(y * y * z))(x, x)), [2.0, 8.0])
    same(numpy_of(iso.grad(lambda y, z: xp.sum(y * y * z), 1)(x, x)), [1.0, 4.0])
    nest = iso.grad(lambda p: xp.sum(p["a"] ** 2 * p["b"][0]))({"a": x, "b": [x]})
    same(numpy_of(nest["a"]), [2.0, 8.0])
    same(numpy_of(nest["b"][0]), [1.0, 4.0])
    _, chosen = iso.execute_with_gradients(
        lambda p: xp.sum(p["a"] ** 2 * p["b"]), {"a": x, "b": x + 0}, xs_grad_idxs=[["a"]]
    )
    same(numpy_of(chosen), [2.0, 8.0])


def test_three_levels_over_one_variable(backend, xp):
    def f(x):  # d/dy [d/dz x y² z³ at z = y] at y = x: 12 x⁴
        return iso.grad(lambda y: iso.grad(lambda z: x * y**2 * z**3)(y))(x)

    x = xp.asarray(1.5, dtype=xp.float64)
    close(float(iso.grad(f)(x)), 48 * 1.5**3, rtol=1e-14)
    along = iso.jvp(lambda x: iso.grad(lambda y: xp.sin(x * y))(x * x), (x,), (x,))
    # x cos(x³), and its derivative times x
    close(float(along[0]), 1.5 * math.cos(1.5**3), rtol=1e-14)
    close(float(along[1]), 1.5 * math.cos(1.5**3) - 3 * 1.5**4 * math.sin(1.5**3), rtol=1e-13)


# Complex numbers: df/dx + i df/dy, and the conjugate transpose.

Z, U = np.array([1.0 + 2.0j, -0.5 + 0.25j]), np.array([0.3 - 1.0j, 2.0 + 0.5j])
R = np.array([0.7, -1.2])
PULLBACKS = {  # function, x, upstream gradient, expected gradient
    "real": (lambda xp, z: xp.real(z), Z, R, R),
    "imag": (lambda xp, z: xp.imag(z), Z, R, 1j * R),
    "conj": (lambda xp, z: xp.conj(z), Z, U, U.conj()),
    "abs": (lambda xp, z: xp.abs(z), Z, R, R * Z / np.abs(Z)),
    "exp": (lambda xp, z: xp.exp(z), Z, U, U * np.exp(Z).conj()),
    "divide": (lambda xp, z: 1 / z, Z, U, -U / (Z * Z).conj()),
    "norm": (lambda xp, z: xp.linalg.vector_norm(z), Z, np.array(2.0), 2 * Z / np.linalg.norm(Z)),
    "angle": (lambda xp, z: xp.atan2(xp.imag(z), xp.real(z)), Z, R, R * 1j * Z / np.abs(Z) ** 2),
    "vecdot": (lambda xp, z: xp.vecdot(xp.asarray(U), z), Z, np.array(1j), 1j * U),
    "vecdot_first": (lambda xp, z: xp.vecdot(z, xp.asarray(U)), Z, np.array(1j), -1j * U),
    "from_real": (lambda xp, x: xp.astype(x, xp.complex128) * U[0], R, U, (U * U[0].conj()).real),
    "fft": (lambda xp, x: xp.fft.fft(xp.astype(x, xp.complex128)), R, U, (U.sum(), U[0] - U[1])),
    "abs_zero": (lambda xp, z: xp.abs(z), 0 * Z, R, 0 * Z),
    "norm_zero": (lambda xp, z: xp.linalg.vector_norm(z), 0 * Z, np.array(1.0), 0 * Z),
}


@pytest.mark.parametrize("name", PULLBACKS)
def test_complex_pullback(backend, xp, name):
    func, x, upstream, expected = PULLBACKS[name]
    out, pullback = iso.vjp(lambda x: func(xp, x), xp.asarray(x))
    (got,) = pullback(xp.asarray(upstream, dtype=out.dtype))
    assert iso.to_numpy(got).dtype == x.dtype
    close(iso.to_numpy(got), np.real(expected) if x is R else expected, rtol=1e-13, atol=1e-15)


def test_complex_second_derivative(backend, xp):
    z, v = xp.asarray(Z), xp.asarray(U)
    (got,) = iso.hvp(lambda z: xp.sum(xp.abs(z) ** 4), (z,), (v,))
    # the derivative of 4 |z|² z along v
    close(numpy_of(got), 4 * (2 * np.real(Z.conj() * U) * Z + abs(Z) ** 2 * U), rtol=1e-13)


# Integers and bools beside floats.


def test_masks_and_indices_are_arguments_like_others(backend, xp):
    x, where = xp.asarray([1.0, 2.0, 3.0]), xp.asarray([2, 0, 2])
    mask = xp.asarray([True, True, False])
    f = lambda x, where, mask: xp.sum(xp.where(mask, xp.take(x, where, axis=0) ** 2, 0.0))
    got = iso.grad(f)(x, where, mask)
    same(numpy_of(got), [2.0, 0.0, 6.0])
    value, grads = iso.execute_with_gradients(
        lambda p: f(p["x"], p["i"], p["m"]), {"x": x, "i": where, "m": mask}
    )
    assert float(value) == 10.0
    assert (grads["i"], grads["m"]) == (None, None)
    same(numpy_of(grads["x"]), [2.0, 0.0, 6.0])
    for place in (1, 2):
        with pytest.raises(TypeError, match=f"needed floating-point.*argument {place}; convert"):
            iso.grad(f, argnums=(0, place))(x, where, mask)


def test_the_gradient_of_a_selection_is_dense(backend, xp):
    x = xp.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    rows = xp.asarray([2, 0, 2])
    for pick in (lambda x: xp.take(x, rows, axis=0), lambda x: iso.at(x)[rows].get()):
        got = iso.grad(lambda x, pick=pick: xp.sum(pick(x) ** 2))(x)
        assert (type(got), got.dtype) == (type(x), x.dtype)
        same(numpy_of(got), [[2.0, 4.0], [0.0, 0.0], [20.0, 24.0]])


# Variables and leaves.


@on("tensorflow")
def test_variables_of_tensorflow(backend, xp):
    v, held = tf.Variable(xp.asarray([1.0, 2.0])), tf.Variable(xp.asarray([3.0, 5.0]))
    value, got = iso.value_and_grad(lambda x: xp.sum(x * x * held))(v)
    assert kind_of(got) == backend
    assert not isinstance(got, (tf.Variable, tf.IndexedSlices))
    same(numpy_of(got), [6.0, 20.0])
    same(numpy_of(iso.grad(lambda x: xp.sum(tf.gather(x, [1, 1]) ** 2))(v)), [0.0, 8.0])
    same(numpy_of(iso.hvp(lambda x: xp.sum(x**3), (v,), (held + 0,))[0]), [18.0, 60.0])
    _, grads = iso.execute_with_gradients(lambda p: xp.sum(p[0] * p[1]), [v, v])
    same(numpy_of(grads[0]), [2.0, 4.0])  # the same variable, twice
    assert (v.numpy().tolist(), held.numpy().tolist()) == ([1.0, 2.0], [3.0, 5.0])
    assert float(value) == 23.0


@on("torch")
@pytest.mark.parametrize("kind", [torch.nn.Parameter, lambda x: x.requires_grad_()])
def test_tensors_that_require_gradients(backend, xp, kind):
    x, held = kind(torch.tensor([1.0, 2.0])), kind(torch.tensor([3.0, 5.0]))
    f = lambda x: xp.sum(x * x * held)
    value, got = iso.value_and_grad(f)(x)
    assert type(got) is torch.Tensor
    same(numpy_of(got), [6.0, 20.0])
    same(numpy_of(iso.hessian(f)(x)), [[6.0, 0.0], [0.0, 10.0]])
    assert float(value.detach()) == 23.0
    assert (x.grad, held.grad) == (None, None)
    assert (x.requires_grad, held.requires_grad, x.is_leaf) == (True, True, True)


# Narrow dtypes.

HALF = np.array([0.5, 1.5])
NARROW = {
    "cube": (lambda xp, x: xp.sum(x * x * x), 3 * HALF**2),
    "exp": (lambda xp, x: xp.sum(xp.exp(x)), np.exp(HALF)),
    "log": (lambda xp, x: xp.sum(xp.log(x)), 1 / HALF),
    "sqrt": (lambda xp, x: xp.sum(xp.sqrt(x)), 0.5 / np.sqrt(HALF)),
    "norm": (lambda xp, x: xp.linalg.vector_norm(x), HALF / np.linalg.norm(HALF)),
    "std": (lambda xp, x: xp.std(x), [-0.5, 0.5]),
    "pow": (lambda xp, x: xp.sum(xp.pow(x, xp.asarray([2, 3], dtype=x.dtype))), [1.0, 6.75]),
    "matmul": (lambda xp, x: xp.sum(xp.matmul(x[:, None], x[None, :])), [4.0, 4.0]),
    "maximum": (lambda xp, x: xp.sum(xp.maximum(x, 0.5)), [0.5, 1.0]),
    "where": (lambda xp, x: xp.sum(xp.where(x > 1, x * x, x)), [1.0, 3.0]),
    "mean": (lambda xp, x: xp.mean(x**2), HALF),
}


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats_keep_their_dtype(backend, xp, dtype, name):
    func, expected = NARROW[name]
    eps = float(ml_dtypes.finfo(dtype).eps)
    foreign = (backend, dtype) == ("numpy", "bfloat16")  # NumPy takes the one of ml_dtypes
    x = xp.astype(xp.asarray(HALF), ml_dtypes.bfloat16 if foreign else verbs_of(xp).dtype(dtype))
    got = iso.grad(lambda x: func(xp, x))(x)
    assert got.dtype == x.dtype
    # two or three roundings in the dtype itself
    close([float(g) for g in got], expected, rtol=2 * eps)


def test_a_value_is_read_where_no_gradient_flows(backend, xp):
    """`iso.to_numpy(iso.stop_gradient(x))` inside a differentiated function."""
    x = xp.asarray(np.array([3.0, 1.0, 2.0]))

    def func(x):
        number = float(iso.to_numpy(iso.stop_gradient(x))[0])
        return number * xp.sum(x**3)

    close(numpy_of(iso.grad(func)(x)), 9.0 * np.array([9.0, 1.0, 4.0]))
    close(numpy_of(iso.hvp(func, (x,), (xp.ones_like(x),))[0]), 18.0 * np.array([3.0, 1.0, 2.0]))
