"""The gamma family against mpmath, with SciPy's errors as the measure, and on every backend."""

import math

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from isomorph.dispatch import load

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
    for i in range(7, len(high), len(high) // 12):
        if all(abs(x[i]) < 1e5 for x in given):
            with mpmath.workdps(DIGITS):
                value = GRIDS[name].exact(*(mpf(float(x[i])) for x in given))
                error = abs(value - mpf(float(high[i])) - mpf(float(rest[i])))
                assert error <= abs(value) * mpf(2) ** -62, i


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
