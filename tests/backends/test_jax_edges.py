"""Where JAX differs from NumPy or differentiates wrongly: values are compared with NumPy, gradients
with finite differences.
"""

import numpy as np
import pytest
from frameworks import enable_x64, jax, jnp

import isomorph as iso
from isomorph.backends.vocabulary import ELEMENTWISE
from isomorph.core.dispatch import load
from oracles import as_users_have_it, central_gradient

pytestmark = pytest.mark.parametrize("backend", ["jax"], indirect=True)

X = np.array([0.7, 1.3, 2.1])


# Indexing

A = np.arange(24.0).reshape(2, 3, 4)
INDICES = {
    "int": 1,
    "negative": -2,
    "int32": np.int32(1),
    "array-of-no-axes": np.array(1),
    "backwards": slice(5, None, -2),
    "ellipsis": (Ellipsis, 1),
    "closed-ellipsis": (slice(None), 1, Ellipsis, [0, 1, 1]),
    "true": True,
    "false": False,
    "true-of-no-axes": (np.True_, 1),
    "truth-beside-arrays": (slice(None), True, [0, 1]),
    "list": [0, 1, 1],
    "inner-tuple": ((0, 1),),
    "range": range(2),
    "empty-list": [],
    "int8": np.array([0, -1, 1], np.int8),
    "uint8": np.array([0, 1, 1], np.uint8),
    "uint64": np.array([1, 0], np.uint64),
    "two-axes": (np.array([[0, 1], [1, 0]]), None, 2),
    "number-beside-arrays": (0, slice(None), np.array([0, 1])),
    "mask-list": [True, False],
    "masks-beside-numbers": (1, [True, False, True], slice(None, None, -1)),
    "mask-of-two-axes": A[:, :, 0] % 5 < 2,
    "mask-of-all": A % 5 < 2,
}
OUTSIDE = {
    "int": 7,
    "negative": -3,
    "second": (0, 3),
    "after-ellipsis": (Ellipsis, 4),
    "list": [0, 7],
    "array": (slice(None), np.array([0, -4])),
    "beside-nothing": ([], 7),
    "too-many": (0, 0, 0, 0),
    "ellipses": (Ellipsis, Ellipsis),
    "short-mask": [True, False, True],
    "floats": np.array([1.0]),
    "float": 1.5,
    "text": "a",
    "do-not-broadcast": ([0, 1], [0, 1, 2]),
}
UFUNC = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_index_means_what_numpy_means(backend, index):
    x, expected = jnp.asarray(A), A[index]
    got = iso.at(x)[index].get()
    assert got.shape == expected.shape
    np.testing.assert_array_equal(got, expected)
    value = np.linspace(1.0, 20.0, expected.size).reshape(expected.shape)
    places = np.arange(A.size).reshape(A.shape)[index]
    for how in ("set", "add", "max"):
        y = A.copy()
        if how != "set":
            UFUNC[how].at(y, index, value)
        # repeated positions: any of the values may stay
        elif np.unique(places).size != places.size:
            continue
        else:
            y[index] = value
        got = getattr(iso.at(x)[index], how)(jnp.asarray(value))
        # what is repeated may be combined in another order: one rounding each
        np.testing.assert_allclose(got, y, rtol=4e-16 * (how in ("add", "multiply")))


@pytest.mark.parametrize("index", OUTSIDE.values(), ids=OUTSIDE)
def test_index_that_does_not_fit_raises(backend, index):
    with pytest.raises(IndexError) as expected:
        A[index]
    for call in (lambda place: place.get(), lambda place: place.set(9.0)):
        with pytest.raises(IndexError) as got:
            call(iso.at(jnp.asarray(A))[index])
        assert str(got.value) == str(expected.value)


def test_jax_array_outside_raises(backend):
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 3"):
        iso.at(jnp.asarray(X))[jnp.asarray([1, 5])].add(1.0)


def test_narrow_integers_count_from_the_end_of_a_long_axis(backend):
    x, places = np.arange(300.0), np.array([-1, -100], np.int8)
    for index in (places, jnp.asarray(places)):
        np.testing.assert_array_equal(iso.at(jnp.asarray(x))[index].get(), [299.0, 200.0])


@pytest.mark.takes("XLA compiles it")
def test_traced_index_keeps_jaxs_rule(backend):
    read = jax.jit(lambda x, i: iso.at(x)[i, None].get())
    np.testing.assert_array_equal(read(X, jnp.asarray([0, 7])), [[X[0]], [X[2]]])
    write = jax.jit(lambda x, i: iso.at(x)[i].set(9.0))
    np.testing.assert_array_equal(write(X, 7), X)
    both = jax.jit(lambda x, i: iso.at(x)[1, i].get())  # the static part of the index is checked
    np.testing.assert_array_equal(both(A[0], 2), A[0][1, 2])
    with pytest.raises(IndexError, match="index 7"):
        jax.jit(lambda x, i: iso.at(x)[7, i].get())(A[0], 2)


def test_list_of_traced_numbers_is_an_index(backend):
    got = jax.jit(lambda x, i: iso.at(x)[[i, i + 1]].get())(X, 1)
    np.testing.assert_array_equal(got, X[1:])


def test_index_of_another_framework_is_refused(backend):
    import torch

    for call in (lambda place: place.get(), lambda place: place.set(1.0)):
        with pytest.raises(
            TypeError, match="jax .* and torch .*; move them with iso.convert first"
        ):
            call(iso.at(jnp.asarray(X))[torch.tensor([0, 1])])


@pytest.mark.parametrize("how", ["set", "add", "multiply"])
def test_value_may_have_leading_axes_of_one_element(backend, how):
    value = np.array([[[5.0, 6.0]]])
    for index in (slice(1, None), np.array([2, 0])):
        expected = X.copy()
        if how == "set":
            expected[index] = value
        else:
            UFUNC[how].at(expected, index, value[0, 0])
        got = getattr(iso.at(jnp.asarray(X))[index], how)(jnp.asarray(value))
        np.testing.assert_array_equal(got, expected)
    with pytest.raises(ValueError, match=r"broadcasts to .*shape \(2,\).*got shape \(3, 2\)"):
        getattr(iso.at(jnp.asarray(X))[1:], how)(jnp.ones((3, 2)))


@pytest.mark.parametrize("index", [[2, 0], (True, 1), [True, False, True]], ids=str)
def test_index_differentiates(backend, index):
    def f(x):
        xp = iso.namespace(x)
        y = iso.at(x)[index].get()
        return xp.sum(xp.sin(iso.at(x)[index].set(y * y))) + xp.sum(xp.cos(y))

    got = iso.grad(f)(jnp.asarray(X))
    np.testing.assert_allclose(got, central_gradient(f, X), rtol=1e-6, atol=1e-8)


# Complex gradients: df/dx + i df/dy

QUADRANTS = np.array(
    [a + 1j * b for a, b in [(0.6, 0.7), (1.8, 0.4), (0.3, 2.1)] for a in (a, -a) for b in (b, -b)]
)
PARTNERS = np.tile([0.5 - 0.3j, 1.1 + 0.2j, -0.4 + 0.9j, -0.8 - 0.6j], 3)
WEIGHTS = np.exp(1j * np.arange(12))
REAL_ONLY = [
    *("ceil", "copysign", "floor", "floor_divide", "hypot", "nextafter", "remainder", "signbit"),
    *("trunc", "clip", "atan2", "maximum", "minimum", "greater", "greater_equal", "less"),
    *("less_equal", "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_or"),
    *("bitwise_right_shift", "bitwise_xor", "logical_and", "logical_not", "logical_or"),
    *("logical_xor", "equal", "not_equal", "isfinite", "isinf", "isnan", "round"),
]
BINARY = ["add", "divide", "logaddexp", "multiply", "pow", "subtract"]
UNARY = sorted({*ELEMENTWISE} - {*REAL_ONLY, *BINARY})
CASES = {name: (lambda f, z: f(z)) for name in UNARY}
for name in BINARY:
    CASES[f"{name}-first"] = lambda f, z: f(z, load("jax").asarray(PARTNERS))
    CASES[f"{name}-second"] = lambda f, z: f(load("jax").asarray(PARTNERS), z)
    CASES[f"{name}-number"] = lambda f, z: f(z, 2.5)


def complex_gradient(func, z, step=1e-6):
    """df/dx + i df/dy by central differences."""
    plane = np.stack([z.real, z.imag])
    gx, gy = central_gradient(lambda p: func(p[0] + 1j * p[1]), plane, step)
    return gx + 1j * gy


@pytest.mark.parametrize("case", CASES)
def test_complex_gradient_in_every_quadrant(backend, xp, case):
    name = case.partition("-")[0]

    def f(z):
        y = CASES[case](getattr(xp, name), z)
        return xp.sum(xp.real(y * xp.asarray(WEIGHTS)))

    values = jax.jit(f)
    expected = complex_gradient(lambda z: values(jnp.asarray(z)), QUADRANTS)
    got = iso.grad(f)(jnp.asarray(QUADRANTS))
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ["acosh", "sign"])
def test_own_rules_differentiate_twice(backend, xp, name):
    def f(z):
        g = iso.grad(lambda z: xp.sum(xp.real(getattr(xp, name)(z) * xp.asarray(WEIGHTS))))(z)
        return xp.sum(xp.real(g * xp.asarray(PARTNERS)))

    values = jax.jit(f)
    expected = complex_gradient(lambda z: values(jnp.asarray(z)), QUADRANTS)
    np.testing.assert_allclose(iso.grad(f)(jnp.asarray(QUADRANTS)), expected, rtol=1e-5, atol=1e-7)


def test_sign_at_zero_has_gradient_zero(backend, xp):
    got = iso.grad(lambda z: xp.sum(xp.real(xp.sign(z))))(jnp.asarray([0j, 1j]))
    np.testing.assert_array_equal(got, [0, 1])  # d/dx of x / |x + i| at 0


# Sets


@pytest.mark.parametrize("name", ["unique_values", "unique_counts", "unique_inverse", "unique_all"])
def test_unique_differentiates(backend, xp, name):
    x = np.array([[3.0, 1.0], [2.5, 0.4]])

    def f(x):
        found = getattr(iso.namespace(x), name)(x)
        values = found if name == "unique_values" else found.values
        return iso.namespace(x).sum(values * iso.namespace(x).asarray([1.0, 2.0, 3.0, 4.0]))

    numpys = lambda x: np.sum(np.sort(x.ravel()) * [1.0, 2.0, 3.0, 4.0])
    got = iso.grad(f)(jnp.asarray(x))
    np.testing.assert_allclose(got, central_gradient(numpys, x), rtol=1e-8)


@pytest.mark.takes("XLA compiles it")
def test_unique_has_numpys_values(backend, xp):
    for x in (np.array([3.0, 1.0, 3.0, np.nan, np.nan]), np.array([[2, 1], [2, 2]]), np.empty(0)):
        for got, expected in zip(xp.unique_all(jnp.asarray(x)), np.unique_all(x)):
            np.testing.assert_array_equal(got, expected)
    repeated = iso.grad(lambda x: xp.sum(xp.unique_values(x)))(jnp.asarray([3.0, 1.0, 3.0]))
    # the gradient goes to the first occurrence
    np.testing.assert_array_equal(repeated, [1.0, 1.0, 0.0])


def test_unique_with_a_known_size_can_be_compiled(backend, xp):
    found = jax.jit(lambda x: xp.unique_values(x, size=4, fill_value=-1.0))
    np.testing.assert_array_equal(found(jnp.asarray([3.0, 1.0, 3.0])), [1.0, 3.0, -1.0, -1.0])


# Conversion

TOO_LARGE = {
    "int64": np.array([1, 2**40]),
    "uint64": np.array([2**32], np.uint64),
    "float64": np.array([[1.0, -1e300]]),
    "complex128": np.array([1 + 1e300j]),
}


@pytest.mark.parametrize("x", TOO_LARGE.values(), ids=TOO_LARGE)
def test_values_that_do_not_fit_raise(backend, x):
    import torch

    with enable_x64(False):
        for source in (x, torch.from_numpy(x)):
            with pytest.raises(OverflowError, match=f"{x.dtype}.*does not fit.*jax_enable_x64"):
                iso.convert(source, "jax")
    np.testing.assert_array_equal(iso.convert(x, "jax"), x)


def test_values_that_fit_are_narrowed(backend):
    import torch

    with enable_x64(False):
        for x in (np.array([2**31 - 1, -(2**31)]), np.array([1.5, np.inf, np.nan]), np.array([1j])):
            for source in (x, torch.from_numpy(x)):
                got = iso.convert(source, "jax")
                assert got.dtype.itemsize * 2 == x.dtype.itemsize
                np.testing.assert_array_equal(got, x)


@pytest.mark.parametrize("dtype", [">f8", ">i4", ">c16", "<f4", ">u2"])
def test_either_byte_order_is_taken(backend, dtype):
    x = np.arange(3).astype(dtype)
    got = iso.convert(x, "jax")
    assert got.dtype == x.dtype.newbyteorder("=")
    np.testing.assert_array_equal(got, [0, 1, 2])


def test_no_tracer_is_asked_for_its_device_by_an_optimizer(backend, monkeypatch):
    """JAX would search the whole program, for every array, to explain why a tracer has
    no device.
    """

    def fail(self):
        raise AssertionError("a tracer was asked for its device")

    monkeypatch.setattr(jax.core.Tracer, "device", property(fail))
    v = {"w": jnp.ones(3), "b": jnp.zeros(())}
    step = iso.train_step(lambda v, x: jnp.sum((v["w"] * x + v["b"]) ** 2), iso.optimizers.sgd(0.1))
    state, loss = step(step.init(v), jnp.arange(3.0))
    np.testing.assert_allclose(loss, 5.0)
    np.testing.assert_allclose(state.model["w"], [1.0, 0.8, 0.2], rtol=1e-6)
    # one leaf is traced, the others are not
    half = lambda w: iso.gradient_descent_update({**v, "w": w}, {**v, "w": w}, 0.5)
    np.testing.assert_allclose(iso.jit(half)(v["w"])["w"], [0.5] * 3)
    new = iso.jit(iso.adam_update, static=(2, 5))(v, v, 0.1, v, v, 1)[0]
    np.testing.assert_allclose(new["w"], 1 - 0.1 * 10 / np.sqrt(1000), rtol=1e-6)


WRITES = {
    "set": lambda r, v: iso.at(r)[1:].set(v),
    "one row": lambda r, v: iso.at(r)[2].set(v[0] + v[1]),
    "a column": lambda r, v: iso.at(r)[1:, 3].set(v[:, 0]),
    "backwards": lambda r, v: iso.at(r)[1:].set(v[::-1]),
    "add": lambda r, v: iso.at(r)[1:].add(v),
    "multiply": lambda r, v: iso.at(r)[1:].multiply(v),
    "rows": lambda r, v: iso.at(r)[np.array([3, 1, 2])].set(v),
}


@pytest.mark.takes("XLA compiles it")
@pytest.mark.parametrize("n", [6, 24, 301])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", WRITES)
def test_what_is_written_is_computed_from_the_old_values(backend, name, dtype, n):
    """XLA on a CPU writes into the array from which it reads (JAX 0.10, also without isomorph)."""
    x = jnp.asarray(np.cos(1.7 * np.arange(4.0 * n)), dtype)
    write = lambda x: WRITES[name](jnp.reshape(x, (4, n)), jnp.reshape(x[: 3 * n] * 0.7, (3, n)))
    slope = iso.grad(lambda x: jnp.sum(jnp.sin(write(x)) * jnp.arange(4.0)[:, None].astype(dtype)))
    for func in (write, slope):
        found = as_users_have_it(backend, iso.jit(func))(x)
        np.testing.assert_allclose(found, func(x), rtol=1e-5, atol=1e-5)
