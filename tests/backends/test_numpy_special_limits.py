"""SciPy's special functions on the NumPy tape, at points where the usual formula of the slope is
0/0, 0·∞ or loses its digits: first and second derivatives against mpmath's.
"""

import mpmath
import numpy as np
import pytest
import scipy.special
from mpmath import mpf

import isomorph as iso
import isomorph.scipy as isp

on_numpy = pytest.mark.parametrize("backend", ["numpy"], indirect=True)


def boxcox(x, p):
    return mpmath.log(x) if p == 0 else mpmath.expm1(p * mpmath.log(x)) / p


def inv_boxcox(x, p):
    return mpmath.exp(x) if p == 0 else mpmath.exp(mpmath.log1p(p * x) / p)


def spence(x):
    return mpmath.polylog(2, 1 - x)


def density(a, x):
    return mpmath.gammainc(a, 0, x, regularized=True)


# function -> (mpmath's, the argument that is differentiated, points)
CASES = {
    "boxcox": (boxcox, 1, [(2.0, 0.0), (0.3, 0.0), (2.0, 1e-9), (2.0, 0.7), (9.0, -3.0)]),
    "inv_boxcox": (
        inv_boxcox, 1, [(2.0, 0.0), (-0.3, 0.0), (2.0, 1e-9), (2.0, 0.1), (3.0, 0.7)]
    ),
    "spence": (spence, 0, [(1.0,), (1.0 + 1e-9,), (0.8,), (2.5,)]),
    "ellipk": (mpmath.ellipk, 0, [(0.0,), (1e-9,), (-0.3,), (0.4,), (0.6,), (-7.0,)]),
    "ellipe": (mpmath.ellipe, 0, [(0.0,), (1e-9,), (-0.3,), (0.4,), (0.6,), (-7.0,)]),
    "ellipkm1": (
        lambda p: mpmath.ellipk(1 - p), 0, [(1.0,), (1.0 - 1e-9,), (0.7,), (0.1,), (1e-6,)]
    ),
    "rgamma": (mpmath.rgamma, 0, [(0.0,), (-1.0,), (-2.0,), (-9.0,), (-1.5,), (3.25,)]),
    "poch": (
        mpmath.rf, 0, [(-2.0, 1.5), (0.0, 0.25), (-3.0, 2.0), (-1.5, 1.25), (2.0, 1.5)]
    ),
    "expit": (
        lambda x: 1 / (1 + mpmath.exp(-x)), 0, [(40.0,), (-40.0,), (300.0,), (0.7,)]
    ),
    "erfcx": (
        lambda x: mpmath.exp(x * x) * mpmath.erfc(x), 0, [(1e3,), (50.0,), (11.0,), (-1.0,)]
    ),
    "log_ndtr": (
        lambda x: mpmath.log(mpmath.erfc(-x / mpmath.sqrt(2)) / 2), 0,
        [(-1e3,), (-50.0,), (-3.0,), (2.0,)]
    ),
    "dawsn": (
        lambda x: mpmath.exp(-x * x) * mpmath.erfi(x) * mpmath.sqrt(mpmath.pi) / 2, 0,
        [(50.0,), (-20.0,), (11.0,), (0.5,)]
    ),
    "gammainc": (density, 1, [(2000.0, 1990.0), (1e5, 1e5), (2.5, 1.0)]),
    "xlogy": (lambda x, y: x * mpmath.log(y), 1, [(0.0, 2.0), (3.0, 0.1)]),
    "binom": (
        lambda n, k: mpmath.gamma(n + 1) * mpmath.rgamma(k + 1) * mpmath.rgamma(n - k + 1), 1,
        [(3.0, 5.0), (2.5, -1.0), (5.0, 2.0)]
    ),
    "beta": (
        lambda a, b: mpmath.gamma(a) * mpmath.gamma(b) * mpmath.rgamma(a + b), 0,
        [(-2.5, 0.5), (0.25, -5.25), (2.0, 3.0)]
    ),
}  # fmt: skip
# Ten roundings of a formula are 1e-15. A second derivative that is a difference loses digits: of
# expit at 300, and of a density whose exponent is rounded.
LIMIT, SECOND = 1e-14, {"expit": 1e-13, "gammainc": 1e-11}


@on_numpy
@pytest.mark.parametrize("name", CASES)
def test_derivatives(backend, name):
    exact, place, rows = CASES[name]
    function = getattr(scipy.special, name)
    slope = iso.grad(lambda *a: np.sum(function(*a)), place)
    bend = iso.grad(lambda *a: np.sum(slope(*a)), place)
    given = [np.array(x) for x in zip(*rows)]
    for order, found in ((1, slope(*given)), (2, bend(*given))):
        orders = tuple(order * (i == place) for i in range(len(given)))
        with mpmath.workdps(400):
            wanted = [float(mpmath.re(differentiated(exact, row, orders))) for row in rows]
        limit = LIMIT if order == 1 else SECOND.get(name, LIMIT)
        np.testing.assert_allclose(found, wanted, rtol=limit, atol=0, err_msg=f"{order}")


def differentiated(exact, row, orders):
    """By central differences of 400 digits; the step is 1e-60, so that their error is 1e-120 of the
    function's size.
    """
    place, order = int(np.argmax(orders)), max(orders)
    row, h = [mpf(x) for x in row], mpf(10) ** -60
    at = lambda k: exact(*row[:place], row[place] + k * h, *row[place + 1 :])
    if order == 1:
        return (at(1) - at(-1)) / (2 * h)
    return (at(1) - 2 * at(0) + at(-1)) / (h * h)


@on_numpy
@pytest.mark.parametrize("name", ["xlogy", "xlog1py", "rel_entr", "kl_div"])
def test_mixed_derivatives_where_the_factor_is_zero(backend, name):
    function = getattr(scipy.special, name)
    y = np.array([2.0, 0.5, 7.0])
    total = lambda f: lambda *z: np.sum(f(*z))
    wanted = {"xlogy": 1 / y, "xlog1py": 1 / (1 + y)}.get(name, -1 / y)
    for first, second in ((0, 1), (1, 0)):
        found = iso.grad(total(iso.grad(total(function), first)), second)(np.zeros(3), y)
        np.testing.assert_allclose(found, wanted, rtol=1e-15)


@on_numpy
def test_complex_arguments_keep_their_rules(backend):
    """Where our formulas are real. Central differences, whose own error is 1e-9."""
    z = np.array([0.5 + 0.3j, 1.0 + 0.0j, -11.0 + 2.0j])
    calls = {
        "erfcx": scipy.special.erfcx, "log_ndtr": scipy.special.log_ndtr,
        "spence": scipy.special.spence, "rgamma": scipy.special.rgamma, "wofz": scipy.special.wofz,
        "dawsn": scipy.special.dawsn, "xlogy": lambda z: scipy.special.xlogy(z, z + 1),
        "xlog1py": lambda z: scipy.special.xlog1py(z, z),
    }  # fmt: skip
    for name, f in calls.items():
        points = z[:2] if name in ("erfcx", "log_ndtr", "dawsn") else z  # e^(z²) overflows
        found = iso.grad(lambda z, f=f: np.sum(np.real(f(z))))(points)
        wanted = (f(points + 1e-5) - f(points - 1e-5)) / 2e-5
        np.testing.assert_allclose(np.conj(found), wanted, rtol=1e-8, atol=1e-9, err_msg=name)


SPHERICAL = np.array([0.0, -1.0, 1e-5, 0.7, -3.0, 20.0])


@on_numpy
@pytest.mark.parametrize("kind", ["jn", "yn"])
def test_spherical_bessel_functions(backend, kind):
    """First and second derivatives at 0 and at negative numbers. SciPy has the first; the second
    follows from the equation z²f″ + 2zf′ + (z² − n(n + 1))f = 0.
    """
    ours = getattr(isp.special, f"spherical_{kind}")
    theirs = getattr(scipy.special, f"spherical_{kind}")
    z = SPHERICAL if kind == "jn" else SPHERICAL[3:]
    for n in (0, 1, 2, 5):
        slope = iso.grad(lambda z, n=n: np.sum(ours(n, z)))
        np.testing.assert_allclose(slope(z), theirs(n, z, True), rtol=1e-13, atol=1e-15)
        bend = iso.grad(lambda z, f=slope: np.sum(f(z)))
        also = iso.grad(lambda z, n=n: np.sum(ours(n, z, derivative=True)))
        np.testing.assert_array_equal(bend(z), also(z))
        far = z[np.abs(z) > 0.5]
        wanted = -2 / far * theirs(n, far, True) - (1 - n * (n + 1) / far**2) * theirs(n, far)
        np.testing.assert_allclose(bend(far), wanted, rtol=1e-12, atol=1e-14)
    if kind == "jn":  # jₙ ≈ zⁿ / (2n + 1)!!, and j₀ ≈ 1 − z²/6
        bends = [iso.grad(iso.grad(lambda z, n=n: ours(n, z)))(np.array(0.0)) for n in range(4)]
        np.testing.assert_allclose(bends, [-1 / 3, 0, 2 / 15, 0], rtol=1e-15)


@on_numpy
@pytest.mark.parametrize("signed", [False, True])
def test_weights_of_zero_of_logsumexp(backend, signed):
    """Real and complex; central differences of SciPy's function, whose error is 1e-9."""
    b = np.array([1.0, 0.0, -0.5])
    for x in (np.array([0.3, 1.0, 0.5]), np.array([0.3 + 1j, 1.0 - 0.4j, 0.5])):
        for part in (np.real, np.imag):
            pick = lambda y, part=part: part(sum(y) if signed else y)
            f = lambda s, b, x=x: s.special.logsumexp(x, b=b, return_sign=signed)
            found = iso.grad(lambda b, f=f, pick=pick: pick(f(isp, b)))(b)
            theirs = lambda b, f=f, pick=pick: pick(f(scipy, b))
            wanted = [(theirs(b + e) - theirs(b - e)) / 2e-6 for e in 1e-6 * np.eye(3)]
            np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-9)


@on_numpy
def test_factorials_of_negative_numbers(backend):
    """They are 0, and so is their slope, also at the poles of Γ."""
    found = iso.grad(lambda n: np.sum(isp.special.factorial(n)))(np.array([-2.0, -1.0, 3.0]))
    wanted = [0.0, 0.0, 6 * float(mpmath.digamma(4))]
    np.testing.assert_allclose(found, wanted, rtol=1e-14)
