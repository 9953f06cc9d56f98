"""The distributions of `isomorph.scipy.stats` far from their middle: values and derivatives of
traced calls, in the variable and in every shape parameter, against mpmath.
"""

import mpmath as mp
import pytest
from stats_calls import traced

from isomorph.scipy.stats import continuous

pytestmark = pytest.mark.parametrize("backend", ["numpy"], indirect=True)
mp.mp.dps = 40
HALF = mp.mpf("0.5")


def lower_gamma(a, x):
    """P(a, x) by its power series, which mpmath's own function does not keep where P is tiny."""
    return mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1)) * mp.hyp1f1(1, a + 1, x)


def upper_gamma(a, x):
    """Q(a, x), for x > a or of the order of a."""
    front = mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a))
    far = 1 / (1 - min(a - 1, x / 2) / x)
    ends = [n * far for n in (0, 1, 5, 20, 90)]
    return front * mp.quad(lambda t: mp.exp(-t) * (1 + t / x) ** (a - 1), ends)


def beta_share(a, b, x):
    """I(a, b) at a small x."""
    front = mp.exp(a * mp.log(x) + b * mp.log1p(-x)) / a / mp.beta(a, b)
    return front * mp.hyp2f1(a + b, 1, a + 1, x)


def normal(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def skew_tail(h, a):
    """The share below −h of the skewed normal distribution, for a > 0."""
    inside = lambda w: (
        mp.exp(-w) / (lambda r: h * h * r * (1 + r * r))(mp.sqrt(a * a + 2 * w / h**2))
    )
    return mp.exp(-h * h * (1 + a * a) / 2) / mp.pi * mp.quad(inside, [0, 1, 5, 20, 80])


def invgauss_parts(z, m):
    return (z / m - 1) / mp.sqrt(z), mp.exp(2 / m) * normal(-(z / m + 1) / mp.sqrt(z))


def von_mises(low, high, k):
    density = lambda v: mp.exp(k * mp.cos(v)) / (2 * mp.pi * mp.besseli(0, k))
    return mp.quad(density, [low, high])


# fmt: off
# a distribution -> its shape parameters; its lower share with places far to the left; its upper
# share with places far to the right. The last place has a share that underflows, where it can.
TAILS = {
    "norm": ((), normal, [-8, -30, -60], lambda z: normal(-z), [8, 30, 60]),
    "gamma": ((1.7,), lambda z, a: lower_gamma(a, z), [1e-30, 1e-300],
              lambda z, a: upper_gamma(a, z), [60, 900]),
    "beta": ((1.7, 2.2), lambda z, a, b: beta_share(a, b, z), [1e-20, 1e-300],
             lambda z, a, b: beta_share(b, a, 1 - z), [1 - 2**-20, 1 - 2**-40]),
    "t": ((3.1,), lambda z, n: beta_share(n / 2, HALF, n / (n + z * z)) / 2, [-1e8, -1e110],
          lambda z, n: beta_share(n / 2, HALF, n / (n + z * z)) / 2, [1e8, 1e110]),
    "chi2": ((3.1,), lambda z, n: lower_gamma(n / 2, z / 2), [1e-30, 1e-300],
             lambda z, n: upper_gamma(n / 2, z / 2), [120, 1800]),
    "f": ((3.1, 4.2),
          lambda z, m, n: beta_share(m / 2, n / 2, m * z / (m * z + n)), [1e-20, 1e-250],
          lambda z, m, n: beta_share(n / 2, m / 2, n / (m * z + n)), [1e10, 1e200]),
    "expon": ((), lambda z: -mp.expm1(-z), [1e-20], lambda z: mp.exp(-z), [60, 900]),
    "laplace": ((), lambda z: mp.exp(z) / 2, [-60, -900], lambda z: mp.exp(-z) / 2, [60, 900]),
    "logistic": ((), lambda z: 1 / (1 + mp.exp(-z)), [-60, -900],
                 lambda z: 1 / (1 + mp.exp(z)), [60, 900]),
    "lognorm": ((0.8,), lambda z, s: normal(mp.log(z) / s), [1e-9, 1e-40],
                lambda z, s: normal(-mp.log(z) / s), [1e9, 1e40]),
    "uniform": ((), lambda z: z, [1e-20], lambda z: 1 - z, [1 - 2**-40]),
    "cauchy": ((), lambda z: mp.atan(-1 / z) / mp.pi, [-1e12, -1e140],
               lambda z: mp.atan(1 / z) / mp.pi, [1e12, 1e140]),
    "halfcauchy": ((), lambda z: 2 * mp.atan(z) / mp.pi, [1e-20],
                   lambda z: 2 * mp.atan(1 / z) / mp.pi, [1e12, 1e140]),
    "halfnorm": ((), lambda z: mp.erf(z / mp.sqrt(2)), [1e-20],
                 lambda z: mp.erfc(z / mp.sqrt(2)), [30, 60]),
    "rayleigh": ((), lambda z: -mp.expm1(-z * z / 2), [1e-12], lambda z: mp.exp(-z * z / 2),
                 [30, 60]),
    "weibull_min": ((1.7,), lambda z, c: -mp.expm1(-z**c), [1e-12], lambda z, c: mp.exp(-z**c),
                    [30, 90]),
    "pareto": ((2.2,), lambda z, b: -mp.expm1(-b * mp.log(z)), [1 + 2**-40],
               lambda z, b: z**-b, [1e12, 1e200]),
    "powerlaw": ((1.7,), lambda z, a: z**a, [1e-20, 1e-250],
                 lambda z, a: -mp.expm1(a * mp.log(z)), [1 - 2**-40]),
    "gumbel_r": ((), lambda z: mp.exp(-mp.exp(-z)), [-4, -8], lambda z: -mp.expm1(-mp.exp(-z)),
                 [60, 900]),
    "gumbel_l": ((), lambda z: -mp.expm1(-mp.exp(z)), [-60, -900], lambda z: mp.exp(-mp.exp(z)),
                 [4, 8]),
    "gompertz": ((0.8,), lambda z, c: -mp.expm1(-c * mp.expm1(z)), [1e-20],
                 lambda z, c: mp.exp(-c * mp.expm1(z)), [4, 8]),
    "invgamma": ((1.7,), lambda z, a: upper_gamma(a, 1 / z), [0.01, 0.001],
                 lambda z, a: lower_gamma(a, 1 / z), [1e12, 1e300]),
    "invgauss": ((0.8,), lambda z, m: normal(invgauss_parts(z, m)[0]) + invgauss_parts(z, m)[1],
                 [0.005, 0.0005],
                 lambda z, m: normal(-invgauss_parts(z, m)[0]) - invgauss_parts(z, m)[1],
                 [80, 300]),
    "gennorm": ((1.7,), lambda z, b: upper_gamma(1 / b, (-z)**b) / 2, [-30, -90],
                lambda z, b: upper_gamma(1 / b, z**b) / 2, [30, 90]),
    "skewnorm": ((1.7,), lambda z, a: skew_tail(-z, a), [-3, -8, -30],
                 lambda z, a: 2 * normal(-z) - skew_tail(z, a), [3]),
    "vonmises": ((1.7,), lambda z, k: von_mises(-mp.pi, z, k), [-3.1],
                 lambda z, k: von_mises(z, mp.pi, k), [3.1]),
}
# fmt: on
REFUSED = {"vonmises"}  # no derivative in its shape parameter
SHARES = {"cdf": 0, "sf": 1, "logcdf": 0, "logsf": 1}  # of which tail
# Rounding of the arguments of exp in formulas and in SciPy's functions: their logarithms, of up to
# 1e4, are right to 2e-16 of themselves.
RELATIVE = 4e-11


def relative(found, wanted):
    """The error of `found`, beside the smallest numbers that have all their digits."""
    wanted = mp.mpf(wanted)
    return abs(mp.mpf(float(found)) - wanted) / max(abs(wanted), mp.mpf("1e-290"))


def wanted(method, share, args, is_rest):
    """The value and all partial derivatives of `method`, from the small `share` of one tail; if
    `is_rest`, the method is about all but that tail.
    """
    y, slopes = share(*args), [slope_of(share, args, i) for i in range(len(args))]
    whole = 1 - y if is_rest else y
    slopes = [-s for s in slopes] if is_rest else slopes
    if not method.startswith("log"):
        return whole, slopes
    return mp.log1p(-y) if is_rest else mp.log(y), [s / whole for s in slopes]


def slope_of(function, args, i):
    step = mp.mpf(10) ** -16 * (abs(args[i]) or 1)
    moved = lambda h: function(*args[:i], args[i] + h, *args[i + 1 :])
    return (8 * (moved(step) - moved(-step)) - moved(2 * step) + moved(-2 * step)) / (12 * step)


def gradients(name, method, z, shapes):
    """The value, and the gradients in the variable, loc, scale and the shape parameters."""
    fixed = name in REFUSED and method not in ("logpdf", "pdf")
    return traced(name, method, z, shapes, fixed=fixed)


@pytest.mark.parametrize("name", TAILS)
def test_shares_in_both_tails(backend, name):
    shapes, lower, left, upper, right = TAILS[name]
    checked = 0
    for share, places, side in ((lower, left, 0), (upper, right, 1)):
        for z in map(float, places):
            args = [mp.mpf(v) for v in (z, *shapes)]
            for method in ("cdf", "sf", "logcdf", "logsf"):
                y, slopes = wanted(method, share, args, SHARES[method] != side)
                value, gradient = gradients(name, method, z, shapes)
                where = f"{name}.{method}({z})"
                assert relative(value, y) < RELATIVE, where
                slopes[1:1] = [-slopes[0], -z * slopes[0]]  # loc and scale
                for i, (g, w) in enumerate(zip(gradient, slopes)):
                    assert relative(g, w) < RELATIVE, f"{where} argument {i}: {g}, not {w}"
                    checked += 1
    count = 3 + (0 if name in REFUSED else len(shapes))
    assert checked == (len(left) + len(right)) * 4 * count


@pytest.mark.filterwarnings("ignore:Error in function boost")  # SciPy's, where its search fails
@pytest.mark.parametrize("name", TAILS)
def test_quantiles_of_small_shares(backend, name):
    """The share of the quantile is the one that was asked for, and its derivatives are those of
    an inverse function.
    """
    shapes, lower, _, upper, _ = TAILS[name]
    shares = (0.01,) if name == "vonmises" else (1e-12, 1e-30, 1e-100)
    if name in ("beta", "uniform", "powerlaw"):
        shares = (1e-6, 1e-12)  # smaller ones are closer to 1 than the next number
    for method, share, sign in (("ppf", lower, 1), ("isf", upper, -1)):
        for q in shares:
            value, gradient = gradients(name, method, q, shapes)
            args = [mp.mpf(float(value)), *map(mp.mpf, shapes)]
            slope = slope_of(share, args, 0)
            where = f"{name}.{method}({q})"
            # the quantile is a rounded number: its last digits move the share
            rounding = 4e-15 * abs(args[0] * slope)
            assert abs(share(*args) - q) <= 1e-11 * q + rounding, where
            # so is the density there, whose logarithm moves by as much
            loose = RELATIVE + float(rounding / q)
            assert relative(gradient[0], 1 / slope) < loose, where
            for i, g in enumerate(gradient[3:]):
                if (name, method) == (
                    "skewnorm",
                    "isf",
                ):  # not to be seen beside the symmetric part
                    assert 0 <= g < 1e-25
                else:
                    assert relative(g, -slope_of(share, args, i + 1) / slope) < loose, (where, i)
            assert gradient[1] == 1, where
            assert gradient[2] == pytest.approx(float(value), rel=1e-14), where
            assert sign * slope > 0, where


def test_every_continuous_distribution_is_here(backend):
    assert set(TAILS) == set(continuous.__all__)
