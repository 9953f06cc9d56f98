"""The distributions of `isomorph.scipy.stats` outside of their support, at its edges and at
infinity; discrete ones in their tails; and second derivatives.
"""

import mpmath as mp
import numpy as np
import pytest
import scipy.stats
from stats_calls import traced

import isomorph as iso
import isomorph.scipy as isp
from isomorph.scipy.stats import continuous
from oracles import central_gradient

pytestmark = pytest.mark.parametrize("backend", ["numpy"], indirect=True)

SHARES = ("cdf", "sf", "logcdf", "logsf")
METHODS = ("pdf", "logpdf", *SHARES)
SHAPES = {
    "beta": (1.7, 2.2), "chi2": (3.1,), "f": (3.1, 4.2), "gamma": (1.7,), "gennorm": (1.7,),
    "gompertz": (0.8,), "invgamma": (1.7,), "invgauss": (0.8,), "lognorm": (0.8,),
    "pareto": (2.2,), "powerlaw": (1.7,), "skewnorm": (1.7,), "t": (3.1,), "vonmises": (1.7,),
    "weibull_min": (1.7,),
}  # fmt: skip
BOUNDED = [
    name for name in continuous.__all__ if np.isfinite(getattr(continuous, name)._low)
]  # fmt: skip


def gradients(name, method, x, shapes=None, loc=0.3, scale=1.5):
    """The value, and the gradients for x, loc, scale and, where there is one, the shapes."""
    shapes = SHAPES.get(name, ()) if shapes is None else shapes
    value, found = traced(name, method, x, shapes, loc, scale, fixed=name == "vonmises")
    with np.errstate(all="ignore"):
        theirs = getattr(getattr(scipy.stats, name), method)(x, *shapes, loc=loc, scale=scale)
    np.testing.assert_array_equal(value, theirs, err_msg=f"{name}.{method}({x})")
    return value, found


def test_outside_the_support_the_gradient_is_zero(backend):
    assert len(BOUNDED) == 16
    checked = 0
    for name in BOUNDED:
        high = getattr(continuous, name)._high
        for x in (-2.0, 0.29, *([] if np.isinf(high) else [2.0])):
            for method in METHODS:
                value, found = gradients(name, method, x)
                np.testing.assert_array_equal(found, 0, err_msg=f"{name}.{method}({x})")
                assert value in (0, 1, -np.inf)
                checked += 1
    assert checked == (16 * 2 + 3) * 6  # beta, powerlaw and uniform end at 1


def test_at_infinity_the_gradient_is_zero(backend):
    for name in continuous.__all__:
        for x in (np.inf, -np.inf):
            for method in METHODS if name != "vonmises" else ("cdf",):
                _, found = gradients(name, method, x)
                np.testing.assert_array_equal(found, 0, err_msg=f"{name}.{method}({x})")


@pytest.mark.parametrize(
    ("name", "shapes", "method", "at", "slope"),
    [
        # an edge with a positive density has the derivative from inside
        ("expon", (), "logpdf", 0.0, -1.0),
        ("expon", (), "cdf", 0.0, 1.0),
        ("expon", (), "logsf", 0.0, -1.0),
        ("uniform", (), "logpdf", 0.0, 0.0),
        ("uniform", (), "cdf", 0.0, 1.0),
        ("uniform", (), "logcdf", 1.0, 1.0),
        ("pareto", (2.0,), "logpdf", 1.0, -3.0),
        ("pareto", (2.0,), "cdf", 1.0, 2.0),
        ("halfnorm", (), "logpdf", 0.0, 0.0),
        ("gamma", (1.0,), "logpdf", 0.0, -1.0),
        ("powerlaw", (3.0,), "logpdf", 1.0, 2.0),
        # at an edge with the density 0, and where a logarithm is -inf, the gradient is 0
        ("rayleigh", (), "logpdf", 0.0, 0.0),
        ("rayleigh", (), "pdf", 0.0, 0.0),
        ("gamma", (2.0,), "logpdf", 0.0, 0.0),
        ("gamma", (2.0,), "pdf", 0.0, 0.0),
        ("gamma", (2.0,), "logcdf", 0.0, 0.0),
        ("expon", (), "logcdf", 0.0, 0.0),
        ("uniform", (), "logsf", 1.0, 0.0),
        ("beta", (2.0, 3.0), "logpdf", 1.0, 0.0),
        ("lognorm", (0.8,), "logpdf", 0.0, 0.0),
    ],
)
def test_at_an_edge(backend, name, shapes, method, at, slope):
    _, found = gradients(name, method, at, shapes, 0.0, 1.0)
    assert found[0] == pytest.approx(slope, abs=1e-14)
    assert np.all(np.isfinite(found[:3]))


def test_in_the_middle_of_a_symmetric_distribution(backend):
    """One half on each side, whatever the shape parameter of t and gennorm is."""
    for name in ("t", "gennorm", "skewnorm", "laplace"):
        for method in SHARES:
            _, found = gradients(name, method, 0.3)
            sign = 1 if "cdf" in method else -1
            factor = 1 if name == "skewnorm" else 2 if "log" in method else 1
            density = getattr(scipy.stats, name).pdf(0.0, *SHAPES.get(name, ())) / 1.5
            if name == "skewnorm":
                share = getattr(scipy.stats.skewnorm, method.removeprefix("log"))(0.0, 1.7)
                factor = 1 / share if "log" in method else 1
                falls = 1 / (np.pi * (1 + 1.7**2))
                assert found[3] == pytest.approx(-sign * falls * factor, rel=1e-12)
            elif name != "laplace":
                assert found[3] == pytest.approx(0, abs=1e-15), (name, method)
            assert found[0] == pytest.approx(sign * density * factor, rel=1e-12), (name, method)


def test_a_place_outside_does_not_touch_the_others(backend):
    """The gradient for scale is the sum over the places inside."""
    x = np.array([-1.0, 0.5, np.nan, 2.0, np.inf])
    for name in BOUNDED:
        shapes, theirs = SHAPES.get(name, ()), getattr(scipy.stats, name)
        for method in ("logpdf", "logsf"):

            def total(s, d, x, shapes=shapes, method=method):
                return np.sum(getattr(d, method)(x, *shapes, scale=s)[~np.isnan(x)])

            with np.errstate(all="ignore"):
                plain = getattr(theirs, method)(x, *shapes)
            inside = x[np.isfinite(plain)]
            assert 1 <= len(inside) < len(x)
            with np.errstate(all="ignore"):
                found = iso.grad(total)(np.array(1.0), getattr(isp.stats, name), x)
                wanted = central_gradient(
                    lambda s, d=theirs, of=total, at=inside: of(s, d, at), np.array(1.0)
                )
            np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-8, err_msg=name)


def test_quantiles_at_the_ends(backend):
    """The ends of the support do not move with a shape parameter."""
    for name in BOUNDED:
        for method, q in (("ppf", 0.0), ("isf", 1.0)):
            value, found = gradients(name, method, q)
            assert value == pytest.approx(0.3 + 1.5 * max(continuous.__dict__[name]._low, 0))
            np.testing.assert_array_equal(found[3:], 0, err_msg=name)
            assert found[1] == 1
            assert not np.isnan(found[0])


# fmt: off
# a method with a tail that underflows, and its logarithm by mpmath
COUNTED = {
    "poisson.logcdf": (lambda d, p: d.poisson.logcdf(3, p), 900.0, lambda m: -m + mp.log(
        sum(m**k / mp.factorial(k) for k in range(4)))),
    "poisson.logsf": (lambda d, p: d.poisson.logsf(200, p), 1e-3, lambda m: -m + mp.log(
        mp.nsum(lambda k: m ** (k + 201) / mp.factorial(k + 201), [0, 20]))),
    "binom.cdf": (lambda d, p: d.binom.cdf(2, 9, p), 1 - 2**-30, lambda p: sum(
        mp.binomial(9, k) * p**k * (1 - p) ** (9 - k) for k in range(3))),
    "binom.logcdf": (lambda d, p: d.binom.logcdf(2, 90, p), 1 - 2**-30, lambda p: mp.log(sum(
        mp.binomial(90, k) * p**k * (1 - p) ** (90 - k) for k in range(3)))),
    "binom.logsf": (lambda d, p: d.binom.logsf(50, 90, p), 1e-9, lambda p: mp.log(sum(
        mp.binomial(90, k) * p**k * (1 - p) ** (90 - k) for k in range(51, 91)))),
    "geom.cdf": (lambda d, p: d.geom.cdf(3, p), 1e-20, lambda p: -mp.expm1(3 * mp.log1p(-p))),
    "geom.logcdf": (lambda d, p: d.geom.logcdf(3, p), 1e-20, lambda p: mp.log(
        -mp.expm1(3 * mp.log1p(-p)))),
    "geom.logsf": (lambda d, p: d.geom.logsf(9000, p), 0.5, lambda p: 9000 * mp.log1p(-p)),
    "bernoulli.logcdf": (lambda d, p: d.bernoulli.logcdf(0, p), 1e-20, lambda p: mp.log1p(-p)),
    "nbinom.logcdf": (lambda d, p: d.nbinom.logcdf(2, 40, p), 1e-9, lambda p: mp.log(sum(
        mp.binomial(k + 39, k) * p**40 * (1 - p) ** k for k in range(3)))),
    "nbinom.logsf": (lambda d, p: d.nbinom.logsf(50, 3, p), 1 - 2**-30, lambda p: mp.log(sum(
        mp.binomial(k + 2, k) * p**3 * (1 - p) ** k for k in range(51, 90)))),
}
# fmt: on


@pytest.mark.parametrize("name", COUNTED)
def test_tails_of_discrete_distributions(backend, name):
    call, p, function = COUNTED[name]
    with np.errstate(all="ignore"):
        value, slope = iso.value_and_grad(lambda p: call(isp.stats, p))(np.float64(p))
    with mp.workdps(60):
        exact, h = mp.mpf(p), mp.mpf(p) * mp.mpf(10) ** -20
        moved = (function(exact + h) - function(exact - h)) / (2 * h)
        # rounding of logarithms of up to 1e4
        assert abs(mp.mpf(float(value)) / function(exact) - 1) < 1e-12
        assert abs(mp.mpf(float(slope)) / moved - 1) < 1e-11


def test_certain_events(backend):
    """A constant has the gradient 0, also beside a logarithm of 0."""
    for method, p in (("logcdf", 1.0), ("logsf", 0.0)):
        with np.errstate(all="ignore"):
            call = getattr(isp.stats.bernoulli, method)
            found = iso.grad(lambda p, call=call: call(1, p))(np.float64(p))
        assert found == 0


def test_more_than_all_outcomes(backend):
    for method, value in (("cdf", 1), ("sf", 0), ("logcdf", 0), ("logsf", -np.inf), ("pmf", 0),
                          ("logpmf", -np.inf)):  # fmt: skip
        with np.errstate(all="ignore"):
            call = getattr(isp.stats.binom, method)
            found = iso.value_and_grad(lambda v, call=call: call(7, 5, v))(np.float64(0.4))
        assert found == (value, 0), method


SECOND = {
    "gamma": (1.7,), "beta": (1.7, 2.2), "t": (3.1,), "invgauss": (0.8,), "skewnorm": (1.7,),
    "gennorm": (1.7,), "weibull_min": (1.7,), "norm": (),
}  # fmt: skip


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives_of_shares(backend, name):
    """Mixed ones too: in the variable, loc, scale and the shape parameters. Incomplete functions
    have no second derivative in their parameters, and say so.
    """
    shapes = np.array(SECOND[name])
    start = np.array([0.6, 0.1, 1.2])
    whole = name in ("invgauss", "skewnorm", "weibull_min", "norm")
    start = np.concatenate([start, shapes]) if whole else start
    for method in ("cdf", "logsf", "ppf"):

        def call(v, shapes, method=method):
            own = v[3:] if whole else shapes
            return getattr(getattr(isp.stats, name), method)(v[0], *own, loc=v[1], scale=v[2])

        def turn(v, call=call):
            first = iso.grad(call, argnums=(0, 1))(v, shapes)
            return sum(np.sum(g * np.cos(np.arange(len(g)) + 0.5)) for g in first)

        found, wanted = iso.grad(turn)(start), central_gradient(turn, start)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6, err_msg=method)


def test_single_precision_is_widened_as_by_scipy(backend):
    x = np.float32([0.5, 2.0])
    seen = {}

    def total(x):
        y = isp.stats.gamma.cdf(x, 1.7)
        seen["dtype"] = y.dtype
        return np.sum(y)

    assert iso.grad(total)(x).dtype == np.float32
    assert seen["dtype"] == scipy.stats.gamma.cdf(x, 1.7).dtype
