"""Functions of matrices of `isomorph.scipy.linalg` where their derivatives are delicate: equal
singular values and eigenvalues, matrices without a full set of eigenvectors, tiny gradients,
negative eigenvalues and singular matrices. Expected values are central differences of SciPy's own
functions, or closed forms.
"""

import numpy as np
import pytest
import scipy
import scipy.linalg

import isomorph as iso
import isomorph.scipy as isp
from oracles import central_gradient

pytestmark = pytest.mark.parametrize("backend", ["numpy"], indirect=True)

TURN = np.array([[0.6, -0.8, 0.0], [0.8, 0.6, 0.0], [0.0, 0.0, 1.0]])
EQUAL = np.diag([2.0, 2.0, 3.0]) @ TURN  # two equal singular values
JORDAN = np.array([[0.7, 1.0, 0.0], [0.0, 0.7, 1.0], [0.0, 0.0, 0.7]])
NEGATIVE = np.array([[-1.0, 2.0, 0.1], [0.3, 2.0, 0.0], [0.2, 0.0, 1.5]])
WEIGHTS = np.cos(np.arange(9.0) + 0.3).reshape(3, 3)

CASES = {
    "polar, unitary part": (lambda s, a: s.linalg.polar(a)[0], EQUAL),
    "polar, hermitian part": (lambda s, a: s.linalg.polar(a)[1], EQUAL),
    "polar, left": (lambda s, a: s.linalg.polar(a, "left")[1], EQUAL),
    "polar, all equal": (lambda s, a: s.linalg.polar(a)[0], TURN),
    "expm": (lambda s, a: s.linalg.expm(a), JORDAN),
    "logm": (lambda s, a: s.linalg.logm(a), JORDAN),
    "logm, equal": (lambda s, a: s.linalg.logm(a), 2 * np.eye(3)),
    "logm, turned": (lambda s, a: s.linalg.logm(-1j * a) + 0.5j * np.pi * np.eye(3), NEGATIVE),
    "sqrtm": (lambda s, a: s.linalg.sqrtm(a), JORDAN),
    "sqrtm, equal": (lambda s, a: s.linalg.sqrtm(a), 4 * np.eye(3)),
    "sqrtm, complex": (lambda s, a: s.linalg.sqrtm(a), NEGATIVE),
    "solve_sylvester": (lambda s, a: s.linalg.solve_sylvester(a, a, a @ a), JORDAN),
    "solve_sylvester of integers": (
        lambda s, a: s.linalg.solve_sylvester(np.eye(3, dtype=int), [[2]], a[:, :1]), JORDAN),
    "solve_continuous_lyapunov": (lambda s, a: s.linalg.solve_continuous_lyapunov(a, a), JORDAN),
    "toeplitz, stacked": (lambda s, a: s.linalg.toeplitz(a[:, :2], a), JORDAN),
    "toeplitz of a number": (lambda s, a: s.linalg.toeplitz(a[0, 0]), JORDAN),
    "solve_toeplitz of a pair": (
        lambda s, a: s.linalg.solve_toeplitz((a[0], a[1]), np.ones(3)), JORDAN + np.eye(3)),
    "block_diag": (lambda s, a: s.linalg.block_diag(a[0], 2.0, a[:, :2]), JORDAN),
    "cosm": (lambda s, a: s.linalg.cosm(a), JORDAN),
    "tanhm": (lambda s, a: s.linalg.tanhm(a), JORDAN),
}  # fmt: skip


def weighed(package, function):
    def scalar(a):
        y = function(package, a)
        weights = np.reshape(np.cos(np.arange(np.size(y)) + 0.3), np.shape(y))
        return np.sum(np.real(y) * weights) + np.sum(np.imag(y) * (weights + 1.5))

    return scalar


@pytest.mark.parametrize("name", CASES)
def test_value_and_gradient(backend, name):
    function, a = CASES[name]
    ours, theirs = weighed(isp, function), weighed(scipy, function)
    value, gradient = iso.value_and_grad(ours)(a)
    np.testing.assert_allclose(value, theirs(a), rtol=1e-12)
    # central differences are right to 1e-9; SciPy's logm of a Jordan block only to 1e-7
    np.testing.assert_allclose(gradient, central_gradient(theirs, a), rtol=1e-6, atol=3e-7)


def test_polar_of_equal_singular_values_twice(backend):
    first = lambda a: np.sum(iso.grad(weighed(isp, lambda s, a: s.linalg.polar(a)[0]))(a) * WEIGHTS)
    found = iso.grad(first)(EQUAL)
    np.testing.assert_allclose(found, central_gradient(first, EQUAL), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("size", [1e-12, 1e12])
@pytest.mark.parametrize("name", ["expm", "logm", "sqrtm"])
def test_a_small_or_large_gradient_keeps_its_digits(backend, name, size):
    """The gradient is linear in what is given from above: it only has to be scaled."""
    function = getattr(isp.linalg, name)
    a = JORDAN + 0.1 * WEIGHTS
    plain = iso.grad(lambda a: np.sum(np.real(function(a)) * WEIGHTS))(a)
    scaled = iso.grad(lambda a: np.sum(np.real(function(a)) * (size * WEIGHTS)))(a)
    np.testing.assert_allclose(scaled / size, plain, rtol=1e-9, atol=1e-11)


def test_negative_eigenvalues_are_refused_with_a_way_around(backend):
    with pytest.raises(NotImplementedError, match=r"linalg.logm of a real matrix .*1j"):
        iso.grad(lambda a: np.sum(np.real(isp.linalg.logm(a))))(NEGATIVE)
    # the way around has SciPy's value
    turned = isp.linalg.logm(-1j * NEGATIVE) + 0.5j * np.pi * np.eye(3)
    np.testing.assert_allclose(turned, scipy.linalg.logm(NEGATIVE), rtol=1e-11, atol=1e-12)


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:.*singular")  # SciPy says so
@pytest.mark.parametrize("name", ["logm", "sqrtm"])
def test_singular_matrices_have_no_finite_gradient(backend, name):
    function = getattr(isp.linalg, name)
    for a in (np.diag([0.0, 1.0]), np.array([[1.0, 2.0], [2.0, 4.0]])):
        with np.errstate(all="ignore"):
            found = iso.grad(lambda a: np.sum(np.real(function(a))))(a)
        assert np.all(np.isnan(found))


def test_least_squares_count_the_rank_as_scipy_does(backend):
    """A singular value that NumPy would take for 0 in a tall matrix."""
    a = np.concatenate([np.diag([1.0, 4e-16, 1.0]), np.zeros((40, 3))])
    b = np.ones(43)
    kept = {}

    def total(b):
        x, _, kept["rank"], _ = isp.linalg.lstsq(a, b)
        return np.sum(x)

    value, gradient = iso.value_and_grad(total)(b)
    wanted, _, rank, _ = scipy.linalg.lstsq(a, b)
    assert rank == kept["rank"] == 3
    np.testing.assert_allclose(value, np.sum(wanted), rtol=1e-12)
    np.testing.assert_allclose(gradient[:3], [1, 2.5e15, 1], rtol=1e-12)


def test_a_large_equation_without_eigenvectors(backend):
    """More than the elements that `iso.linalg` solves as one system; SciPy's solver is used."""
    n = 24
    b = np.eye(n) + np.diag(np.ones(n - 1), 1)
    q = np.cos(np.arange(n * n)).reshape(n, n)
    x = {}

    def total(q):
        x["found"] = isp.linalg.solve_sylvester(np.eye(n), b, q)
        return np.sum(x["found"] * q)

    gradient = iso.grad(total)(q)
    # x (1 + b) = q, so it is q times an inverse
    inverse = np.linalg.inv(np.eye(n) + b)
    np.testing.assert_allclose(gradient, q @ (inverse + inverse.T), rtol=1e-9, atol=1e-10)
