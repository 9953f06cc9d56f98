"""Functions of isomorph.scipy inside `iso.grad`. SciPy itself is the oracle: its values on plain
arrays, and central differences of them.

A function is written once, with the package as its first argument, and called with `isomorph.scipy`
and with `scipy`. Weights make the sum of the results sensitive to each of them. Central differences
with a step of 1e-6 have errors of about 1e-9 times the size of the values, and a little more where
SciPy's own values have errors above 1e-15.
"""

import numpy as np
import pytest
import scipy
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.optimize
import scipy.signal
import scipy.special
import scipy.stats

import isomorph as iso
import isomorph.scipy as isp
from isomorph.backends.numpy.replaced import REPLACED
from oracles import central_gradient

pytestmark = pytest.mark.parametrize("backend", ["numpy"], indirect=True)

draw = np.random.default_rng(7)
X = np.array([0.3, 0.55, 0.8])
ABOVE = np.array([1.3, 2.1, 3.4])
SQUARE = draw.standard_normal((3, 3))
SPD = SQUARE @ SQUARE.T + 3 * np.eye(3)
SIGNAL = draw.standard_normal(8)
PLANE = draw.standard_normal((5, 4))
KNOTS = np.array([0.0, 0.7, 1.5, 2.1, 3.0])
SIGNS = np.array([1.0, -3.0, 1.0, 0.0])
AWAY = np.array([0.2, 4.0])
SIMPLEX = np.array([0.2, 0.3, 0.5])
VALUES = draw.standard_normal(5)


def both(a):
    """A symmetric matrix, of which the gradient is symmetric."""
    return (a + np.swapaxes(a, -1, -2)) / 2


# fmt: off
SPECIAL = {
    "erf": (lambda s, x: s.special.erf(x), X),
    "erfc": (lambda s, x: s.special.erfc(x), X),
    "erfcx": (lambda s, x: s.special.erfcx(x), X),
    "erfinv": (lambda s, x: s.special.erfinv(x), X),
    "erfi": (lambda s, x: s.special.erfi(x), X),
    "dawsn": (lambda s, x: s.special.dawsn(x), X),
    "ndtr": (lambda s, x: s.special.ndtr(x), X),
    "log_ndtr": (lambda s, x: s.special.log_ndtr(x - 9), X),
    "ndtri": (lambda s, x: s.special.ndtri(x), X),
    "expit": (lambda s, x: s.special.expit(x), X),
    "log_expit": (lambda s, x: s.special.log_expit(x), X),
    "logit": (lambda s, x: s.special.logit(x), X),
    "gammaln": (lambda s, x: s.special.gammaln(x), X),
    "gamma": (lambda s, x: s.special.gamma(x), X),
    "digamma": (lambda s, x: s.special.digamma(x), X),
    "rgamma": (lambda s, x: s.special.rgamma(x), X),
    "polygamma": (lambda s, x: s.special.polygamma(np.array([0, 1, 2]), x), X),
    "zeta": (lambda s, x: s.special.zeta(2.5, x), X),
    "multigammaln": (lambda s, x: s.special.multigammaln(x, 2), ABOVE),
    "beta": (lambda s, x: s.special.beta(x, x[::-1]), ABOVE),
    "betaln": (lambda s, x: s.special.betaln(x, x[::-1]), ABOVE),
    "betainc": (lambda s, x: s.special.betainc(1.3, 2.4, x), X),
    "betaincinv": (lambda s, x: s.special.betaincinv(1.3, 2.4, x), X),
    "gammainc": (lambda s, x: s.special.gammainc(1.7, x), X),
    "gammaincc": (lambda s, x: s.special.gammaincc(1.7, x), X),
    "gammainc in a": (lambda s, x: s.special.gammainc(x, 1.7), X),
    "gammaincc in a": (lambda s, x: s.special.gammaincc(x, 1.7), X),
    "betainc in a": (lambda s, x: s.special.betainc(x, 2.4, 0.3), X),
    "betainc in b": (lambda s, x: s.special.betainc(1.3, x, 0.3), X),
    "gammaincinv": (lambda s, x: s.special.gammaincinv(1.7, x), X),
    "stdtr": (lambda s, x: s.special.stdtr(3.0, x), X),
    "fdtr": (lambda s, x: s.special.fdtr(3.0, 4.0, x), X),
    "pdtr": (lambda s, x: s.special.pdtr(2, x), X),
    "binom": (lambda s, x: s.special.binom(x + 4, x), X),
    "comb": (lambda s, x: s.special.comb(x + 4, x), X),
    "poch": (lambda s, x: s.special.poch(x, x + 0.5), X),
    "xlogy": (lambda s, x: s.special.xlogy(x, x + 1), X),
    "xlog1py": (lambda s, x: s.special.xlog1py(x, x), X),
    "entr": (lambda s, x: s.special.entr(x), X),
    "rel_entr": (lambda s, x: s.special.rel_entr(x, x[::-1]), X),
    "kl_div": (lambda s, x: s.special.kl_div(x, x[::-1]), X),
    "huber": (lambda s, x: s.special.huber(0.5, x), X),
    "pseudo_huber": (lambda s, x: s.special.pseudo_huber(x + 1, x), X),
    "boxcox": (lambda s, x: s.special.boxcox(x, x[::-1]), X),
    "inv_boxcox": (lambda s, x: s.special.inv_boxcox(x, x[::-1]), X),
    "exp1": (lambda s, x: s.special.exp1(x), X),
    "expi": (lambda s, x: s.special.expi(x), X),
    "expn": (lambda s, x: s.special.expn(2, x), X),
    "spence": (lambda s, x: s.special.spence(x), X),
    "ellipk": (lambda s, x: s.special.ellipk(x), X),
    "ellipe": (lambda s, x: s.special.ellipe(x), X),
    "hyp2f1": (lambda s, x: s.special.hyp2f1(0.4, 1.2, 2.1, x), X),
    "lambertw": (lambda s, x: s.special.lambertw(x), X),
    "i0": (lambda s, x: s.special.i0(x), X),
    "i1": (lambda s, x: s.special.i1(x), X),
    "i0e": (lambda s, x: s.special.i0e(x), X),
    "i1e": (lambda s, x: s.special.i1e(x), X),
    "iv": (lambda s, x: s.special.iv(1.5, x), X),
    "ive": (lambda s, x: s.special.ive(1.5, x), X),
    "kv": (lambda s, x: s.special.kv(1.5, x), X),
    "k0": (lambda s, x: s.special.k0(x), X),
    "k1": (lambda s, x: s.special.k1(x), X),
    "jv": (lambda s, x: s.special.jv(1.5, x), X),
    "jn": (lambda s, x: s.special.jn(2, x), X),
    "yv": (lambda s, x: s.special.yv(1.5, x), X),
    "yn": (lambda s, x: s.special.yn(2, x), X),
    "j0": (lambda s, x: s.special.j0(x), X),
    "y0": (lambda s, x: s.special.y0(x), X),
    "spherical_jn": (lambda s, x: s.special.spherical_jn(2, x), X),
    "logsumexp": (lambda s, x: s.special.logsumexp(x, axis=0, keepdims=True), PLANE),
    "logsumexp of weights": (lambda s, x: s.special.logsumexp(x, b=x * x + 1), X),
    "logsumexp with signs": (
        lambda s, x: s.special.logsumexp(x, axis=1, b=SIGNS, return_sign=True)[0],
        PLANE,
    ),
    "softmax": (lambda s, x: s.special.softmax(x, axis=1), PLANE),
    "log_softmax": (lambda s, x: s.special.log_softmax(x, axis=0), PLANE),
}
# a distribution -> its shape parameters, and where it is evaluated
DISTRIBUTIONS = {
    "norm": ((), [-0.4, 1.3]), "gamma": ((1.7,), [0.9, 2.3]), "beta": ((1.7, 2.2), [0.5, 0.8]),
    "t": ((3.1,), [-0.4, 1.3]), "chi2": ((3.1,), [0.9, 2.3]), "expon": ((), [0.9, 2.3]),
    "laplace": ((), [-0.4, 1.3]), "logistic": ((), [-0.4, 1.3]), "lognorm": ((0.8,), [0.9, 2.3]),
    "uniform": ((), [0.5, 0.8]), "cauchy": ((), [-0.4, 1.3]), "halfnorm": ((), [0.9, 2.3]),
    "halfcauchy": ((), [0.9, 2.3]), "rayleigh": ((), [0.9, 2.3]), "f": ((3.1, 4.2), [0.9, 2.3]),
    "weibull_min": ((1.7,), [0.9, 2.3]), "pareto": ((2.2,), [2.3, 3.4]),
    "powerlaw": ((1.7,), [0.5, 0.8]), "gumbel_r": ((), [-0.4, 1.3]), "gumbel_l": ((), [-0.4, 1.3]),
    "gompertz": ((0.8,), [0.9, 1.3]), "invgamma": ((1.7,), [0.9, 2.3]),
    "invgauss": ((0.8,), [0.9, 2.3]), "gennorm": ((1.7,), [-0.4, 1.3]),
    "skewnorm": ((1.7,), [-0.4, 1.3]), "vonmises": ((1.7,), [-0.4, 1.3]),
}
COUNTS = np.array([0, 1, 3])
DISCRETE = {
    "poisson": (lambda d, name, p: getattr(d, name)(COUNTS, p[0]), [1.7]),
    "binom": (lambda d, name, p: getattr(d, name)(COUNTS, 5, p[0]), [0.4]),
    "bernoulli": (lambda d, name, p: getattr(d, name)(COUNTS[:2], p[0]), [0.4]),
    "geom": (lambda d, name, p: getattr(d, name)(COUNTS + 1, p[0]), [0.4]),
    "nbinom": (lambda d, name, p: getattr(d, name)(COUNTS, 3, p[0]), [0.4]),
}
VECTORS = {
    "multivariate_normal.logpdf": (
        lambda s, x: s.stats.multivariate_normal.logpdf(PLANE[:, :3], x[0], both(x[1:4]) + SPD),
        draw.standard_normal((4, 3)) / 5),
    "multivariate_normal.pdf": (
        lambda s, x: s.stats.multivariate_normal.pdf(x, np.zeros(3), SPD), X),
    "multivariate_normal.entropy": (
        lambda s, x: s.stats.multivariate_normal.entropy(np.zeros(3), both(x)), SPD),
    "dirichlet.logpdf": (lambda s, x: s.stats.dirichlet.logpdf(SIMPLEX, x), ABOVE),
    "dirichlet.pdf": (lambda s, x: s.stats.dirichlet.pdf(x / np.sum(x), ABOVE), X),
    "multinomial.logpmf": (
        lambda s, x: s.stats.multinomial.logpmf([1, 2, 3], 6, x / np.sum(x)), X),
    "multinomial.pmf": (lambda s, x: s.stats.multinomial.pmf([1, 2, 3], 6, x / np.sum(x)), X),
    "frozen norm": (lambda s, x: s.stats.norm(x[0], x[1]).logpdf(x), X),
}
LINALG = {
    "solve": (lambda s, x: s.linalg.solve(x, x[0]), SPD),
    "solve, symmetric": (lambda s, x: s.linalg.solve(x, X, assume_a="sym", lower=True), SPD),
    "solve_triangular": (lambda s, x: s.linalg.solve_triangular(x, x[0]), SPD),
    "solve_triangular, turned": (
        lambda s, x: s.linalg.solve_triangular(x, x, trans=1, lower=True, unit_diagonal=True), SPD),
    "solve_banded": (lambda s, x: s.linalg.solve_banded((1, 1), x, np.ones(3)), SPD),
    "solve_toeplitz": (lambda s, x: s.linalg.solve_toeplitz(x, np.ones(3)), np.array([3, 1, 0.5])),
    "solve_sylvester": (lambda s, x: s.linalg.solve_sylvester(x, x + 1, x @ x), SPD),
    "solve_continuous_lyapunov": (lambda s, x: s.linalg.solve_continuous_lyapunov(x, x @ x), SPD),
    "solve_discrete_lyapunov": (lambda s, x: s.linalg.solve_discrete_lyapunov(x / 9, x), SPD),
    "inv": (lambda s, x: s.linalg.inv(x), SPD),
    "det": (lambda s, x: s.linalg.det(x), SPD),
    "pinv": (lambda s, x: s.linalg.pinv(x), PLANE),
    "lstsq": (lambda s, x: s.linalg.lstsq(x, np.arange(5.0))[0], PLANE),
    "norm": (lambda s, x: s.linalg.norm(x, "nuc"), PLANE),
    "cholesky": (lambda s, x: s.linalg.cholesky(both(x)), SPD),
    "cho_solve": (lambda s, x: s.linalg.cho_solve(s.linalg.cho_factor(both(x), True), x), SPD),
    "eigh": (lambda s, x: s.linalg.eigh(both(x))[0], SPD),
    "eigh, general": (lambda s, x: s.linalg.eigh(both(x), SPD + 2 * np.eye(3))[0], SPD),
    "eigh, one triangle": (lambda s, x: s.linalg.eigh(x, SPD, lower=False)[0], SPD + SQUARE),
    "eigvalsh": (lambda s, x: s.linalg.eigvalsh(both(x)), SPD),
    "eigvals": (lambda s, x: np.sort(np.abs(s.linalg.eigvals(x))), SPD + SQUARE / 9),
    "qr": (lambda s, x: np.abs(s.linalg.qr(x, mode="economic")[1]), PLANE),
    "svd": (lambda s, x: s.linalg.svd(x)[1], PLANE),
    "svdvals": (lambda s, x: s.linalg.svdvals(x), PLANE),
    "polar": (lambda s, x: s.linalg.polar(x)[0], SPD + SQUARE),
    "expm": (lambda s, x: s.linalg.expm(x), SQUARE),
    "logm": (lambda s, x: s.linalg.logm(x), SPD),
    "sqrtm": (lambda s, x: s.linalg.sqrtm(x), SPD),
    "sinhm": (lambda s, x: s.linalg.sinhm(x), SQUARE),
    "cosm": (lambda s, x: s.linalg.cosm(x), SQUARE),
    "tanhm": (lambda s, x: s.linalg.tanhm(x), SQUARE / 3),
    "block_diag": (lambda s, x: s.linalg.block_diag(x, x[0], 3.0), SQUARE),
    "toeplitz": (lambda s, x: s.linalg.toeplitz(x, x[::-1]), X),
    "hankel": (lambda s, x: s.linalg.hankel(x, x[::-1]), X),
    "circulant": (lambda s, x: s.linalg.circulant(x), X),
}
SAMPLED = {
    "convolve": (lambda s, x: s.signal.convolve(x, x[:3], "same"), SIGNAL),
    "convolve, valid": (lambda s, x: s.signal.convolve(x[:3], x, "valid", "direct"), SIGNAL),
    "correlate": (lambda s, x: s.signal.correlate(x, x[1:4]), SIGNAL),
    "correlate, valid": (lambda s, x: s.signal.correlate(x[:3], x, "valid"), SIGNAL),
    "fftconvolve": (lambda s, x: s.signal.fftconvolve(x, x[:3, :2], "same"), PLANE),
    "oaconvolve": (lambda s, x: s.signal.oaconvolve(x, x[:3, :2]), PLANE),
    "convolve2d": (lambda s, x: s.signal.convolve2d(x, x[:3, :2], "same", "symm"), PLANE),
    "correlate2d": (lambda s, x: s.signal.correlate2d(x, x[:2, :3], "full", "wrap"), PLANE),
    "detrend": (lambda s, x: s.signal.detrend(x, 0, bp=2), PLANE),
    "hilbert": (lambda s, x: s.signal.hilbert(x, axis=0), PLANE),
    "lfilter": (lambda s, x: s.signal.lfilter(x[:2], x[2:5], x), SIGNAL + 2),
    "trapezoid": (lambda s, x: s.integrate.trapezoid(x, np.cumsum(x * x), axis=0), SIGNAL),
    "simpson": (lambda s, x: s.integrate.simpson(x, x=np.cumsum(x * x)), SIGNAL),
    "simpson, odd": (lambda s, x: s.integrate.simpson(x, dx=0.3, axis=0), PLANE),
    "cumulative_trapezoid": (
        lambda s, x: s.integrate.cumulative_trapezoid(x, dx=0.3, axis=0, initial=0), PLANE),
    "romb": (lambda s, x: s.integrate.romb(x, 0.3, axis=0), PLANE),
    "odeint": (
        lambda s, x: s.integrate.odeint(
            lambda y, t, a: -a * y + np.sin(t), x[:1], np.array([0.0, 0.3, 0.5]) + x[1], (x[2],),
            rtol=1e-12, atol=1e-12)[1:],
        X),
    "interp1d": (lambda s, x: s.interpolate.interp1d(KNOTS, x)(x * x / 9), VALUES),
    "interp1d, outside": (
        lambda s, x: s.interpolate.interp1d(KNOTS, x, fill_value="extrapolate")(x - 2), VALUES),
    "interp1d, cubic": (
        lambda s, x: s.interpolate.interp1d(KNOTS, x, "cubic")(np.array([0.2, 1.9])), VALUES),
    "interp1d, nearest": (
        lambda s, x: s.interpolate.interp1d(KNOTS, x, "nearest")(np.array([0.2, 1.9])), VALUES),
    "CubicSpline": (lambda s, x: s.interpolate.CubicSpline(KNOTS, x)(x + 1), VALUES),
    "CubicSpline, natural": (
        lambda s, x: s.interpolate.CubicSpline(KNOTS, x, 0, "natural")(AWAY, 1), PLANE),
    "CubicSpline of a place": (
        lambda s, x: s.interpolate.CubicSpline(KNOTS, PLANE.T, 1)(x), np.array([0.2, 1.9])),
    "PchipInterpolator": (
        lambda s, x: s.interpolate.PchipInterpolator(KNOTS, VALUES)(x), np.array([0.2, 1.9])),
    "fft": (lambda s, x: s.fft.fft(x, 9), SIGNAL),
    "ifft": (lambda s, x: s.fft.ifft(x, norm="ortho"), SIGNAL),
    "rfft": (lambda s, x: s.fft.rfft(x, axis=0), PLANE),
    "irfft": (lambda s, x: s.fft.irfft(x, 7), SIGNAL),
    "fft2": (lambda s, x: s.fft.fft2(x), PLANE),
    "fftn": (lambda s, x: s.fft.fftn(x, (3, 6)), PLANE),
    "rfftn": (lambda s, x: s.fft.rfftn(x), PLANE),
    "irfft2": (lambda s, x: s.fft.irfft2(x), PLANE),
    "hfft": (lambda s, x: s.fft.hfft(x), SIGNAL),
    "dct": (lambda s, x: s.fft.dct(x), SIGNAL),
    "dct, type 1": (lambda s, x: s.fft.dct(x, 1, n=5, axis=0, norm="ortho"), PLANE),
    "idct": (lambda s, x: s.fft.idct(x, 3, axis=0), PLANE),
    "dst": (lambda s, x: s.fft.dst(x, 4, n=10), SIGNAL),
    "dctn": (lambda s, x: s.fft.dctn(x, norm="ortho"), PLANE),
    "fftshift": (lambda s, x: s.fft.fftshift(x), SIGNAL),
}
# fmt: on


METHODS = ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf", "ppf", "isf")


def densities():
    """Every method in all arguments; of vonmises, only densities in its shape parameter."""
    for name, (shapes, at) in DISTRIBUTIONS.items():
        n = len(at)
        for method in METHODS:
            fixed = name == "vonmises" and method not in ("logpdf", "pdf")
            start = [0.2, 0.7] if method in ("ppf", "isf") else at

            def function(s, v, name=name, n=n, fixed=fixed, shapes=shapes, method=method):
                own = shapes if fixed else v[n + 2 :]
                return getattr(getattr(s.stats, name), method)(
                    v[:n], *own, loc=v[n], scale=v[n + 1]
                )

            whole = np.array([*start, 0.1, 1.2, *([] if fixed else shapes)])
            yield f"{name}.{method}", (function, whole)
    for name, (call, p) in DISCRETE.items():
        for method in ("logpmf", "pmf", "cdf", "sf", "logcdf", "logsf"):

            def count(s, v, name=name, call=call, method=method):
                with np.errstate(divide="ignore"):  # the logarithm of 0
                    y = call(getattr(s.stats, name), method, v)
                return np.where(np.isinf(y), 0.0, y)

            yield f"{name}.{method}", (count, np.array(p))


TABLE = {**SPECIAL, **dict(densities()), **VECTORS, **LINALG, **SAMPLED}


def weighed(package, function):
    """A scalar that depends on every number of the result."""

    def scalar(x):
        y = function(package, x)
        weights = np.reshape(np.cos(np.arange(np.size(y)) + 0.3), np.shape(y))
        return np.sum(np.real(y) * weights) + np.sum(np.imag(y) * (weights + 1.5))

    return scalar


@pytest.mark.parametrize("name", TABLE)
def test_value_and_gradient_are_those_of_scipy(backend, name):
    function, x = TABLE[name]
    plain, expected = function(isp, x), function(scipy, x)
    np.testing.assert_array_equal(plain, expected)  # on plain arrays it is SciPy's function
    value, gradient = iso.value_and_grad(weighed(isp, function))(x)
    theirs = weighed(scipy, function)
    # formulas of ours differ from SciPy's by rounding only; odeint's by its tolerance
    np.testing.assert_allclose(value, theirs(x), rtol=1e-10, atol=1e-11)
    expected = central_gradient(theirs, x)
    np.testing.assert_allclose(gradient, expected, rtol=2e-6, atol=3e-7)


def test_the_table_is_as_large_as_promised(backend):
    assert len(SPECIAL) >= 25
    assert {*DISTRIBUTIONS, *DISCRETE, *(name.split(".")[0] for name in VECTORS)} - {
        "frozen norm"
    } == {*REPLACED["stats"].split()}
    assert len(dict(densities())) == 26 * 8 + 5 * 6
    assert len(LINALG) >= 15
    assert len(SAMPLED) >= 20
