"""The gamma family against mpmath, with SciPy's errors as the measure, and on every backend."""

import math

import mpmath
import numpy as np
import pytest
from frameworks import enable_x64
from mpmath import mpf

import isomorph as iso
from isomorph.backends.composed import Backend
from isomorph.core.dispatch import load
from oracles import numpy_of

from .grids_gamma import DIGITS, GRIDS, MEANINGS, arguments, ours, regions, theirs, truth
from .measuring import Case, errors

SLOPES = [name for name in GRIDS if "slope" in name]
PEERS = [name for name in GRIDS if name not in SLOPES]
PEERS_WITH_KERNELS = [name for name in MEANINGS if name not in SLOPES]
INF, NAN = math.inf, math.nan


def measured(name, found, high, rest):
    return errors(Case(lambda: (), GRIDS[name].exact, GRIDS[name].scale), found, high, rest)


def computed(name):
    """The values of our kernel on NumPy."""
    with np.errstate(all="ignore"):
        return ours(name, load("numpy"), *arguments(name))


# The largest errors in units of eps that the documentation states.
STATED = {
    "gamma": 3.2, "gammaln": 1.6, "digamma": 4.6, "zeta": 9.4, "polygamma": 12.6, "beta": 432,
    "betaln": 2.6, "binom": 892, "gammainc": 216, "gammaincc": 245, "betainc": 636,
    "multigammaln": 1.6,
}  # fmt: skip


@pytest.mark.parametrize("name", PEERS)
def test_errors_are_those_that_are_stated(name):
    """SciPy has points without a right digit, which must not excuse ours. Twice the stated error is
    allowed: exp, log and pow of another machine round differently.
    """
    _, high, rest = truth(name)
    found = measured(name, computed(name), high, rest)
    assert found.max() <= 2 * STATED[name]


@pytest.mark.parametrize("name", PEERS)
def test_errors_are_at_most_four_times_those_of_scipy(name):
    """In every region; two units of eps are allowed SciPy where it is better than that."""
    given, high, rest = truth(name)
    assert len(high) >= 2000
    found = measured(name, computed(name), high, rest)
    other = measured(name, theirs(name, *given), high, rest)
    for region, part in regions(name).items():
        worst = int(np.argmax(found[part]))
        at = [float(x[part][worst]) for x in given]
        assert found[part][worst] <= 4 * max(2.0, other[part].max()), (region, at)


@pytest.mark.host_only("it is about loops of the host", "torch")
@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_values_of_arrays_with_gaps(backend):
    """torch has other loops for them, and its own kernels are used here."""
    for name in ("gammaln", "digamma"):
        given, high, rest = truth(name)
        found = getattr(iso.special, name)(
            *(iso.convert(np.repeat(x, 2), backend)[::2] for x in given)
        )
        assert measured(name, numpy_of(found), high, rest).max() <= 2 * STATED[name]


@pytest.mark.takes("TensorFlow traces and compiles it")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_slopes_of_large_binomials(backend, dtype, monkeypatch):
    """In n and in k, for n up to 1e14: a difference of digamma functions has no right digit."""
    eps = float(np.finfo(dtype).eps)
    if backend == "numpy":  # values of SciPy are off by 6e-11 here
        monkeypatch.setattr(type(load("numpy")), "special", Backend.special)
    n, k = np.meshgrid([1e3, 1e5, 1e7, 1e10, 1e14], [0.5, 1.0, 3.0, 7.25])
    fits = k * np.log10(n) < (36 if dtype == "float32" else 300)
    n, k = n[fits].astype(dtype), k[fits].astype(dtype)
    with enable_x64(True), np.errstate(all="ignore"):
        by_n, by_k = iso.grad(
            lambda n, k: iso.namespace(n).sum(iso.special.binom(n, k)), argnums=(0, 1)
        )(iso.convert(n, backend), iso.convert(k, backend))
    with mpmath.workdps(60):
        psi = mpmath.digamma
        for i, (x, y) in enumerate(zip(map(float, n), map(float, k))):
            value = mpmath.binomial(mpf(x), mpf(y))
            want = value * (psi(mpf(x) + 1) - psi(mpf(x) - y + 1))
            # the exponent of a large value, rounded, costs its size in units of eps
            limit = (32 + 4 * abs(float(mpmath.log(value)))) * eps
            assert abs(float(numpy_of(by_n)[i] / want - 1)) <= limit, (x, y)
            want = value * (psi(mpf(x) - y + 1) - psi(mpf(y) + 1))
            assert abs(float(numpy_of(by_k)[i] / want - 1)) <= limit, (x, y)


@pytest.mark.parametrize("name", SLOPES)
def test_derivatives_in_parameters(name):
    """The exponent of a small value, rounded, costs its size in units of eps; 64 more are allowed:
    digamma functions are subtracted.
    """
    _, high, rest = truth(name)
    found = measured(name, computed(name), high, rest)
    size = np.abs(np.log(np.maximum(np.abs(high), 1e-307)))
    worst = int(np.argmax(found - 4 * size))
    assert found[worst] <= 64 + 4 * size[worst], [float(x[worst]) for x in arguments(name)]


@pytest.mark.parametrize("name", GRIDS)
def test_the_stored_values(name):
    """Some of them, computed again."""
    given, high, rest = truth(name)
    checked = 0
    for i in range(7, len(high), len(high) // 12):
        if all(abs(x[i]) < 1e5 for x in given) and abs(high[i]) > 1e-290:
            with mpmath.workdps(DIGITS):
                value = GRIDS[name].exact(*(mpf(float(x[i])) for x in given))
                error = abs(value - mpf(float(high[i])) - mpf(float(rest[i])))
                assert error <= abs(value) * mpf(2) ** -62, i
            checked += 1
    assert checked >= 3


ENDS = [INF, -INF, NAN, 0.0, -0.0, 1.0, 2.0, -1.0, -2.0, 0.5, -0.5, 1e-300, 1e300]
TRIPLES = [0.0, 1.0, 0.5, INF, NAN, -1.0, 1e300]
ORDERS = [0.0, 1.0, 2.0, 3.0, -1.0, 0.5, NAN]
BETTER = {  # SciPy has NaN here, a wrong sign, or 1e-160 instead of 0: the limit
    ("zeta", INF, 2.0): 0.0,
    ("zeta", INF, 1e300): 0.0,
    ("zeta", 1e300, 2.0): 0.0,
    **{("beta", *x): 0.0 for x in ((1e300, INF), (INF, 1e300))},
    **{("beta", x, -1.0): INF for x in (0.0, -0.0, -1.0, -2.0)},
    **{("betaln", *x): -INF for x in ((1e300, INF), (INF, 1e300))},
    **{("binom", n, 1e300): 0.0 for n in (0.0, -0.0, 1.0, 2.0)},
    **{("binom", n, 1e-300): 1.0 for n in (0.0, -0.0)},
    ("binom", 1e-300, 1e300): 0.0,
    ("binom", -0.5, 1e300): math.pi**-0.5 * 1e-150,
}


def edges(name):
    """The arguments of a function, from all combinations of special numbers."""
    count = {"gamma": 1, "gammaln": 1, "digamma": 1, "betainc": 3}.get(name, 2)
    ends = [TRIPLES if count == 3 else ENDS] * count
    if name == "polygamma":
        ends[0] = ORDERS
    return [x.ravel() for x in np.meshgrid(*map(np.array, ends))]


def wrong_edges(name, given, found, rtol=1e-12):
    """What is neither SciPy's value nor a better one."""
    wrong = []
    with np.errstate(all="ignore"):
        true = theirs(name, *given)
    for row, y, z in zip(zip(*given), found, true):
        at = (name, *map(float, row))
        z = BETTER.get(at, z)
        same = np.isclose(y, z, rtol=rtol, atol=0, equal_nan=True)
        lost = np.isnan(row).any() and np.isnan(y)  # SciPy's is infinite at some poles
        signs = name == "binom" or np.signbit(y) == np.signbit(z) or y != 0
        if not ((same and signs) or lost):
            wrong.append((*at, float(y), float(z)))
    return wrong


@pytest.mark.parametrize("name", PEERS_WITH_KERNELS)
def test_special_values_are_those_of_scipy(name):
    given = edges(name)
    with np.errstate(all="ignore"):
        found = MEANINGS[name].kernel(load("numpy"), *given)
    assert wrong_edges(name, given, found) == []


# Fewer points for compilers, of all regions.
SOME = {name: tuple(x[::11] for x in arguments(name)) for name in MEANINGS}


def near_numpy(name, found):
    """Exponents are rounded, so that a value of size e^n has n units of eps more; powers of
    TensorFlow have errors of twenty units themselves. XLA's zeros for denormal terms are seen in
    values below 1e-285.
    """
    with np.errstate(all="ignore"):
        true = ours(name, load("numpy"), *SOME[name])
        size = np.maximum(np.abs(true), max(GRIDS[name].scale, 1e-285))
        error = np.abs(found - true) / size / np.finfo(np.float64).eps
        bound = 32 + 3 * np.abs(np.log(size))
        fine = (error <= bound) | (found == true) | (np.isnan(found) & np.isnan(true))
        fine |= (np.abs(true) < 1e-285) & (np.abs(found) < 2e-285)
    worst = int(np.argmax(np.where(fine, 0.0, error)))
    assert fine.all(), (name, [float(x[worst]) for x in SOME[name]], found[worst], true[worst])


QUICK = ("gamma", "gammaln", "digamma", "zeta", "betaln", "gammainc", "betainc")
LONG = tuple(name for name in MEANINGS if name not in QUICK)  # XLA compiles these for a minute
PARTS = [QUICK, pytest.param(LONG, marks=pytest.mark.slow)]


@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
@pytest.mark.parametrize("names", PARTS, ids=["some", "others"])
def test_backends_eager(backend, names):
    with enable_x64(True):
        for name in names:
            given = [iso.convert(x, backend) for x in SOME[name]]
            near_numpy(name, numpy_of(MEANINGS[name](load(backend), *given)))


@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
@pytest.mark.parametrize("names", PARTS, ids=["some", "others"])
def test_special_values_on_backends(backend, names):
    """The edges, and float32. Powers of TensorFlow have errors of twenty units of eps."""
    wrong = []
    for name in names:
        with enable_x64(True):
            if name not in SLOPES:
                given = edges(name)
                arrays = [iso.convert(x, backend) for x in given]
                found = numpy_of(MEANINGS[name](load(backend), *arrays))
                wrong += wrong_edges(name, given, found)
        given = narrow(name)
        arrays = [iso.convert(x, backend) for x in given]
        wrong += wrong_in_float32(name, given, numpy_of(MEANINGS[name](load(backend), *arrays)))
    assert not wrong, wrong


@pytest.mark.takes("XLA compiles it")
@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
@pytest.mark.parametrize("names", PARTS, ids=["some", "others"])
def test_backends_compiled(backend, names):
    """All functions in one program."""
    with enable_x64(True):
        given = {name: [iso.convert(x, backend) for x in SOME[name]] for name in names}
        program = iso.jit(
            lambda given: {name: MEANINGS[name](load(backend), *given[name]) for name in names}
        )
        found = program(given)
        for name in names:
            near_numpy(name, numpy_of(found[name]))


# Where derivatives are compared, of first and second order; 0 means that an argument has none, 1
# that it has no second one.
POINTS = {
    "gamma": ((2,), [(0.3,), (4.5,), (9.25,), (-1.5,)]),
    "gammaln": ((2,), [(0.3,), (4.5,), (30.0,), (-1.5,)]),
    "digamma": ((2,), [(0.3,), (4.5,), (30.0,), (-1.5,)]),
    "zeta": ((0, 2), [(2.5, 0.5), (3.0, 7.0)]),
    "polygamma": ((0, 2), [(1.0, 0.5), (3.0, 7.0)]),
    "beta": ((2, 2), [(0.5, 2.0), (7.0, 30.0)]),
    "betaln": ((2, 2), [(0.5, 2.0), (700.0, 0.3)]),
    "binom": ((2, 2), [(5.5, 2.25), (30.0, 7.5)]),
    "gammainc": ((1, 2), [(0.5, 0.3), (2.0, 5.0), (50.0, 45.0)]),
    "gammaincc": ((1, 2), [(0.5, 0.3), (2.0, 5.0), (50.0, 45.0)]),
    "betainc": ((1, 1, 2), [(0.5, 2.0, 0.3), (5.0, 3.0, 0.75), (200.0, 90.0, 0.7)]),
}
OF_QUICK = ("gamma", "gammaln", "betaln")
SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "names",
    [OF_QUICK, pytest.param(tuple(n for n in POINTS if n not in OF_QUICK), marks=SLOW)],
    ids=["some", "others"],
)
def test_derivatives(backend, names):
    """Against mpmath's, to 11 digits: a few are lost where digamma functions cancel."""
    xp = load(backend)
    with enable_x64(True):
        for name in names:
            orders, rows = POINTS[name]
            given = [iso.convert(np.array(x), backend) for x in zip(*rows)]
            total = lambda *given: xp.sum(MEANINGS[name](xp, *given))  # noqa: B023
            for i, most in enumerate(orders):
                slope = iso.grad(total, i)
                bend = iso.grad(lambda *given, f=slope: xp.sum(f(*given)), i)
                for order, derivative in ((1, slope), (2, bend))[:most]:
                    found = numpy_of(derivative(*given))
                    for row, y in zip(rows, found):
                        with mpmath.workdps(DIGITS):
                            partial = tuple(order * (j == i) for j in range(len(row)))
                            exact = GRIDS[name].exact
                            true = float(mpmath.diff(exact, tuple(map(mpf, row)), partial))
                        assert abs(y - true) <= 1e-11 * abs(true), (name, i, order, row, y, true)


def narrow(name):
    """The arguments in float32. Those are left out that float32 does not hold, because they are too
    large, or below 1e-30 but not 0: at most one of ten.
    """
    with np.errstate(over="ignore", under="ignore"):
        given = tuple(x[::3].astype(np.float32) for x in arguments(name))
    held = np.all([np.isfinite(x) & (np.abs(x) > 1e-30) | (x == 0) for x in given], axis=0)
    assert held.mean() >= 0.9
    return tuple(x[held] for x in given)


def wrong_in_float32(name, given, found):
    """Where the error is above 64 units of eps. There are more for the exponent of a value, and for
    what one rounding of the arguments costs: for polygamma, which is like x^(−n − 1), and for
    binom, which has zeros. Values below 1e-30 count as of that size: factors of them may be
    denormal, and 0. No point is left out: beyond the largest number, the value must be infinite or
    close to it, and NaN where the true one is.
    """
    assert found.dtype == np.float32
    numpy, wide = load("numpy"), tuple(x.astype(np.float64) for x in given)
    info = np.finfo(np.float32)
    with np.errstate(all="ignore"):
        true = ours(name, numpy, *wide)  # tested above
        size = np.maximum(np.abs(true), max(GRIDS[name].scale, 1e-30))
        bound = 64 + 4 * np.abs(np.log(size))
        if name == "polygamma":
            bound += wide[0] + 1
        if name == "binom":
            slopes = [MEANINGS[name].slope(numpy, i, true, wide) for i in (0, 1)]
            bound += sum(np.abs(x * slope) for x, slope in zip(wide, slopes)) / size
        fine = np.abs(found - true) <= bound * size * info.eps
        fine |= (np.abs(true) > info.max) & np.isinf(found) & (np.sign(found) == np.sign(true))
        fine |= np.isnan(true) & np.isnan(found)
    at = np.flatnonzero(~fine)[:5]
    return [(name, *(float(x[i]) for x in given), float(found[i]), float(true[i])) for i in at]


@pytest.mark.parametrize("name", sorted(MEANINGS))
def test_float32(name):
    given = narrow(name)
    with np.errstate(all="ignore"):
        found = ours(name, load("numpy"), *given)
    assert wrong_in_float32(name, given, found) == []


@pytest.mark.parametrize(
    ("order", "x"), [(100, 1e4), (100, 1e3), (180, 50.0), (250, 100.0), (3, 1e90), (20, 1e14)]
)
def test_polygamma_where_the_factorial_or_the_power_is_out_of_range(order, x):
    """Rounding x costs n + 1 units of eps, and the exponent of the result as many as its size.
    mpmath needs digits for the size of its zeta function.
    """
    with np.errstate(all="ignore"):
        found = MEANINGS["polygamma"].kernel(load("numpy"), np.array([float(order)]), np.array([x]))
    with mpmath.workdps(600):
        # n!/x^(n + 1)·Σ over k: its Euler–Maclaurin sum, exact to x^(−4) for large x
        z = mpf(x)
        true = mpmath.factorial(order) * (
            mpmath.zeta(order + 1, z)
            if x < 1e5
            else z**-order / order + z ** (-order - 1) / 2 + (order + 1) * z ** (-order - 2) / 12
        )
        error = abs(mpf(float(found[0])) / true / (-1) ** (order + 1) - 1)
        exponent = abs(mpmath.log(true))
    assert error <= (order + 60 + exponent) * np.finfo(np.float64).eps
