"""The gamma family against mpmath, with SciPy's errors as the measure, and on every backend."""

import math

import mpmath
import numpy as np
import pytest
from frameworks import enable_x64
from mpmath import mpf

import isomorph as iso
from isomorph.dispatch import load
from oracles import numpy_of

from .grids_gamma import DIGITS, GRIDS, MEANINGS, arguments, ours, regions, theirs, truth
from .measuring import Case, errors

SLOPES = [name for name in GRIDS if "slope" in name]
PEERS = [name for name in GRIDS if name not in SLOPES]
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


def test_special_values_are_those_of_scipy():
    xp, wrong = load("numpy"), []
    for name, meaning in MEANINGS.items():
        count = {"gamma": 1, "gammaln": 1, "digamma": 1, "betainc": 3}.get(name, 2)
        if name in SLOPES:
            continue
        ends = [TRIPLES if count == 3 else ENDS] * count
        if name == "polygamma":
            ends[0] = ORDERS
        given = [x.ravel() for x in np.meshgrid(*map(np.array, ends))]
        with np.errstate(all="ignore"):
            found = meaning.kernel(xp, *given)
            true = theirs(name, *given)
        for row, y, z in zip(zip(*given), found, true):
            at = (name, *map(float, row))
            z = BETTER.get(at, z)
            same = np.isclose(y, z, rtol=1e-12, atol=0, equal_nan=True)
            lost = np.isnan(row).any() and np.isnan(y)  # SciPy's is infinite at some poles
            signs = name == "binom" or np.signbit(y) == np.signbit(z) or y != 0
            if not ((same and signs) or lost):
                wrong.append((*at, float(y), float(z)))
    assert not wrong, wrong


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


@pytest.mark.parametrize("name", sorted(MEANINGS))
def test_float32(name):
    """With the arguments in float32: relative errors of 64 units, and as many more as the exponent
    of a small value has.
    """
    with np.errstate(over="ignore", under="ignore"):
        given = tuple(x[::3].astype(np.float32) for x in arguments(name))
    normal = np.all([np.isfinite(x) & (np.abs(x) > 1e-30) | (x == 0) for x in given], axis=0)
    if name == "polygamma":
        # neither n! nor x^(n + 1) may be outside of float32
        normal &= (given[0] < 30) & (np.abs(np.log10(np.abs(given[1]))) * (given[0] + 1) < 37)
    if name == "binom":
        normal &= given[0] > given[1]  # elsewhere the rounding of n - k is multiplied
    given = tuple(x[normal] for x in given)
    xp = load("numpy")
    with np.errstate(all="ignore"):
        found = ours(name, xp, *given)
        true = ours(name, xp, *(x.astype(np.float64) for x in given))  # tested above
        assert found.dtype == np.float32
        size = np.maximum(np.abs(true), max(GRIDS[name].scale, 1e-30))
        error = np.abs(found - true) / size / np.finfo(np.float32).eps
        outside = (np.abs(true) > 1e36) | ~np.isfinite(true)
        fine = outside | (error <= 64 + 4 * np.abs(np.log(size)))
    worst = int(np.argmax(np.where(fine, 0.0, error)))
    assert fine.all(), (
        int((~fine).sum()),
        [float(x[worst]) for x in given],
        found[worst],
        true[worst],
    )
