"""Derivatives at points where the usual formula is 0/0, 0·∞ or ∞ − ∞, on every backend: factors of
0, zeros of the beta function and of binomial coefficients, weights of 0, ends of densities.
"""

import itertools

import mpmath
import numpy as np
import pytest
from frameworks import enable_x64
from mpmath import mpf

import isomorph as iso
from oracles import numpy_of

special = iso.special


def derivative(function, orders):
    """The derivative of these orders of a function of arrays, element by element."""
    places = [i for i, order in enumerate(orders) for _ in range(order)]
    for i in places:
        before = function
        function = iso.grad(lambda *a, f=before: iso.namespace(a[0]).sum(f(*a)), i)
    return function


def compare(backend, function, rows, orders, wanted, rtol):
    with enable_x64(True), np.errstate(invalid="ignore"):  # of a sum of huge values
        given = [iso.convert(np.array(x), backend) for x in zip(*rows)]
        found = numpy_of(derivative(function, orders)(*given))
    # exact zeros, except where XLA contracts a product and a sum
    atol = 1e-17 if backend == "jax" else 1e-60
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol, err_msg=f"{orders}")


# ---- a factor of 0 -------------------------------------------------------------------------------

FACTORS = {  # name -> the mixed second derivative, which does not depend on x
    "xlogy": lambda y: 1 / y,
    "xlog1py": lambda y: 1 / (1 + y),
    "rel_entr": lambda y: -1 / y,
    "kl_div": lambda y: -1 / y,
}


@pytest.mark.parametrize("name", FACTORS)
def test_mixed_derivatives_where_the_factor_is_zero(backend, name):
    """In both orders of differentiation; a quotient is rounded a few times."""
    x, y = np.array([0.0, 0.0, -0.0, 0.5]), np.array([2.0, 1e-3, 7.0, 3.0])
    function = getattr(special, name)
    with enable_x64(True):
        a, b = (iso.convert(z, backend) for z in (x, y))
        total = lambda f: lambda *z: iso.namespace(z[0]).sum(f(*z))
        for first, second in ((0, 1), (1, 0)):
            found = iso.grad(total(iso.grad(total(function), first)), second)(a, b)
            np.testing.assert_allclose(numpy_of(found), FACTORS[name](y), rtol=1e-15)
        # at (0, 0) both derivatives are 0 by convention, like the value: not NaN
        zero = iso.convert(np.zeros(1) if name != "xlog1py" else np.full(1, -1.0), backend)
        found = iso.grad(total(function), 1)(0 * zero, zero)
        assert numpy_of(found) == (1.0 if name == "kl_div" else 0.0)


HUGE = [(1e200, 1e-200), (1e-200, 1e200), (1e300, 1e-7), (3e-5, 1e305), (1e-300, 1.0), (2.0, 1.9)]


def test_second_derivatives_of_huge_quotients(backend):
    """x / y overflows, or is 0. The exact ones are 1/x, −1/y and x/y²."""
    x, y = (np.array(z) for z in zip(*HUGE))
    with np.errstate(over="ignore"):
        wanted = {(2, 0): 1 / x, (1, 1): -1 / y, (0, 2): x / y / y}
    for orders, true in wanted.items():
        for name in ("kl_div", "rel_entr"):
            compare(backend, getattr(special, name), HUGE, orders, true, 1e-15)


# ---- zeros of the beta function and of binomial coefficients -------------------------------------

EXACT = {
    "beta": lambda a, b: mpmath.gamma(a) * mpmath.gamma(b) * mpmath.rgamma(a + b),
    "binom": lambda n, k: mpmath.gamma(n + 1) * mpmath.rgamma(k + 1) * mpmath.rgamma(n - k + 1),
}
ZEROS = {
    "beta": [
        (-2.5, 0.5), (-0.5, 0.5), (-1.25, -0.75), (0.25, -5.25), (-2.125, 1.125), (-100.25, 0.25),
    ],
    "binom": [
        (3.0, 5.0), (3.0, -2.0), (0.0, 1.0), (0.0, -1.0), (2.5, 3.5), (2.5, -1.0), (-5.5, -3.0),
        (-5.5, -4.5), (10.0, 15.0),
    ],
}  # fmt: skip
BESIDE = {
    "beta": [(0.5, -0.5 + 1e-10), (-2.5, 0.3), (-20.3, 3.7), (2.5, 0.3), (-0.2, 0.9), (3.0, 4.0)],
    "binom": [(5.0, 2.0), (3.3, 7.7), (-5.5, -3.2), (-1.5, 2.0), (1.25, 8.5), (3.0, 5.0 + 1e-10)],
}
FIRST, SECOND = ((1, 0), (0, 1)), ((2, 0), (1, 1), (0, 2))


@pytest.mark.parametrize("name", EXACT)
def test_derivatives_at_zeros(backend, name):
    """At a zero the value is 0 and ψ has a pole; beside it, where both are finite, they must not
    lose digits. 1e-12: digamma functions are subtracted.
    """
    rows, function = [*ZEROS[name], *BESIDE[name]], getattr(special, name)
    for row in ZEROS[name]:
        with enable_x64(True):
            assert float(function(*(iso.convert(np.array(x), backend) for x in row))) == 0
    # all second derivatives are tested on NumPy below; JAX compiles each for seconds
    for orders in (*FIRST, (1, 1)) if backend in ("tensorflow", "torch") else FIRST:
        wanted = [exactly(name, row, orders) for row in rows]
        compare(backend, function, rows, orders, wanted, 1e-12)


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
@pytest.mark.parametrize("name", EXACT)
def test_second_derivatives_at_zeros(backend, name):
    rows = [*ZEROS[name], *BESIDE[name]]
    for orders in SECOND:
        wanted = [exactly(name, row, orders) for row in rows]
        compare(backend, getattr(special, name), rows, orders, wanted, 2e-11)


def exactly(name, row, orders):
    with mpmath.workdps(40):
        return float(mpmath.diff(EXACT[name], tuple(map(mpf, row)), orders))


# ---- weights of 0 --------------------------------------------------------------------------------

X = np.array([[0.3, 1.0, 2.0], [-1.0, 4.0, 0.5]])
B = np.array([[1.0, 0.0, 2.0], [0.0, -0.25, 3.0]])


def weights_of(x, b):
    """The derivative of log |Σ b·eˣ| over the last axis for b, written out."""
    return np.exp(x) / np.sum(b * np.exp(x), axis=-1, keepdims=True)


def logs(x, b):
    return special.logsumexp(x, axis=-1, b=b, return_sign=True)[0]


def test_logsumexp_at_weights_of_zero(backend):
    """First and mixed second derivatives; 1e-14: a sum of three exponentials."""
    share = weights_of(X, B)
    with enable_x64(True):
        x, b = (iso.convert(z, backend) for z in (X, B))
        xp = iso.namespace(x)
        by_b = lambda x, b: iso.grad(lambda x, b: xp.sum(logs(x, b)), 1)(x, b)
        by_x = lambda x, b: iso.grad(lambda x, b: xp.sum(logs(x, b)), 0)(x, b)
        for run in (by_b, iso.jit(by_b)):
            np.testing.assert_allclose(numpy_of(run(x, b)), share, rtol=1e-14)
        np.testing.assert_allclose(numpy_of(by_x(x, b)), B * share, rtol=1e-14)
        mapped = iso.vmap(lambda x, b: iso.grad(lambda b: logs(x, b))(b))(x, b)
        np.testing.assert_allclose(numpy_of(mapped), share, rtol=1e-14)
        # d/dbⱼ Σᵢ bᵢ·eᵢ/S, summed over i with the weights i: eⱼ/S·(j − Σ i·bᵢ·eᵢ/S)
        places = np.arange(3.0)
        count = iso.convert(places, backend)
        mixed = iso.grad(lambda x, b: xp.sum(by_x(x, b) * count), 1)(x, b)
        mean = np.sum(places * B * share, axis=-1, keepdims=True)
        np.testing.assert_allclose(numpy_of(mixed), share * (places - mean), rtol=1e-13, atol=1e-15)


def test_logsumexp_of_infinite_terms_that_do_not_count(backend):
    with enable_x64(True):
        x = iso.convert(np.array([np.inf, 1e5, 1.0, np.nan]), backend)
        b = iso.convert(np.array([0.0, 0.0, 2.0, 0.0]), backend)
        value, slope = iso.value_and_grad(lambda x: special.logsumexp(x, b=b))(x)
        np.testing.assert_allclose(numpy_of(value), 1 + np.log(2), rtol=1e-15)
        np.testing.assert_array_equal(numpy_of(slope), [0.0, 0.0, 1.0, 0.0])
        # without any term the result is −∞ whatever x is, and infinitely steep in b
        ends = iso.convert(np.array([0.0, -np.inf]), backend)
        none = iso.convert(np.array([0.0, 1.0]), backend)
        value, slope = iso.value_and_grad(lambda x: special.logsumexp(x, b=none))(ends)
        assert numpy_of(value) == -np.inf
        np.testing.assert_array_equal(numpy_of(slope), [0.0, 0.0])
        steep = iso.grad(lambda b: special.logsumexp(ends, b=b))(none)
        assert numpy_of(steep)[0] == np.inf


def test_arguments_of_logsumexp(backend, xp):
    whole = iso.convert(np.array([1, 2]), backend)
    wanted = np.log(0.5 * np.exp(1) + 0.5 * np.exp(2))
    for b in (0.5, iso.convert(np.float32([0.5, 0.5]), backend)):
        found = special.logsumexp(whole, b=b)
        assert xp.isdtype(found.dtype, "real floating")
        np.testing.assert_allclose(numpy_of(found), wanted, rtol=1e-6)  # float32
    plain = special.logsumexp(whole)
    np.testing.assert_allclose(numpy_of(plain), np.log(np.exp(1) + np.exp(2)), rtol=1e-6)
    narrow = iso.convert(np.float32([1.0, 2.0]), backend)
    assert special.logsumexp(narrow, b=whole).dtype == xp.float32
    with iso.use_backend(backend):
        half = iso.asarray([1.0, 2.0], dtype="float16")
    assert special.logsumexp(half, b=0.5).dtype == half.dtype
    shapes = {None: (), 0: (3,), -1: (2,), (0, 1): ()}
    for axis, signed in itertools.product(shapes, (False, True)):
        found = special.logsumexp(xp.ones((2, 3)), axis=axis, b=2.0, return_sign=signed)
        for y in found if signed else (found,):
            assert tuple(y.shape) == shapes[axis]
    assert tuple(special.logsumexp(xp.ones((0, 3)), axis=0, b=2.0).shape) == (3,)
    assert tuple(special.logsumexp(xp.asarray(1.5), b=2.0).shape) == ()
    turned = xp.asarray([1j, 2.0], dtype=xp.complex64)
    for x, b in ((turned, None), (turned, 2.0), (narrow, turned)):
        with pytest.raises(TypeError, match="logsumexp: needed real arrays, got complex64"):
            special.logsumexp(x, b=b)


# ---- ends of densities ---------------------------------------------------------------------------


def test_second_derivatives_where_densities_begin_and_end(backend):
    """Of gammainc(a, x) at 0, the slope of x^(a − 1)·e^(−x)/Γ(a); of betainc at 0 and at 1."""
    gammas = [(1.0, 0.0), (1.5, 0.0), (2.0, 0.0), (2.5, 0.0)]
    compare(backend, special.gammainc, gammas, (0, 2), [-1.0, np.inf, 1.0, 0.0], 1e-14)
    betas = [
        (1.0, 3.0, 0.0), (1.5, 3.0, 0.0), (2.0, 3.0, 0.0), (2.5, 3.0, 0.0), (3.0, 1.0, 1.0),
        (3.0, 2.0, 1.0), (3.0, 2.5, 1.0),
    ]  # fmt: skip
    wanted = [-6.0, np.inf, 12.0, 0.0, 6.0, -12.0, 0.0]
    compare(backend, special.betainc, betas, (0, 0, 2), wanted, 1e-14)
    # mixed with a parameter, where the density is 0
    compare(backend, special.gammainc, [(2.0, 0.0), (3.5, 0.0)], (1, 1), [0.0, 0.0], 0)
