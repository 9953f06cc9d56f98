"""Bessel functions against mpmath, on every backend, eager and compiled, with derivatives."""

import mpmath
import numpy as np
import pytest
import scipy.special
from frameworks import enable_x64

import isomorph as iso
from isomorph.backends.composed import Backend
from isomorph.core.dispatch import load
from isomorph.meanings.special import bessel, bessel_modified
from oracles import numpy_of

from .grids_bessel import ONE, TWO, errors, points, regions, scipy_errors, table, values

NAMES = (*ONE, *TWO)
FUNCTIONS = {name: getattr(bessel_modified, name, None) or getattr(bessel, name) for name in NAMES}


def ours(name, *arrays):
    """Our own kernel on NumPy, which otherwise uses SciPy where it is installed."""
    with np.errstate(all="ignore"):
        return Backend.special(load("numpy"), FUNCTIONS[name], *arrays)


def on(backend, name, *arrays):
    function, xp = FUNCTIONS[name], load(backend)
    return function(xp, *arrays) if backend != "numpy" else ours(name, *arrays)


# What the documentation states; and for |v| ≤ 128, x ≥ 2.
STATED = dict.fromkeys(ONE, 5e-16) | dict.fromkeys(TWO, 2.5e-13)
LOW = {"iv": 1e-13, "ive": 1e-13, "jv": 5e-15, "yv": 5e-15}


def stated(name, region):
    most = LOW.get(name) if region in ("2 <= x < 36", "x >= 36, v <= 128") else None
    return most or STATED[name]


def check(name, found, mask=None):
    """At most four times SciPy's largest error, in every region of the grid, and four times what is
    stated for NumPy, since SciPy has points without a right digit; `mask` says where values were
    computed.
    """
    error, theirs = errors(name, found), scipy_errors(name)
    everywhere = np.ones(len(error), bool)
    for region, part in {"all": everywhere, **regions(name)}.items():
        limit = 4 * min(theirs[part & np.isfinite(theirs)].max(), stated(name, region))
        worst = int(np.argmax(np.where(part if mask is None else part & mask, error, 0)))
        at = [float(x[worst]) for x in points(name)]
        assert error[worst] <= limit, (name, region, at, found[worst], error[worst], limit)


@pytest.mark.parametrize("name", NAMES)
def test_numpy_without_scipy(name):
    assert len(points(name)[0]) >= 2000
    check(name, ours(name, *points(name)))


@pytest.mark.host_only("it is about loops of the host", "torch")
@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_values_of_arrays_with_gaps(backend):
    """torch has other loops for them, and its own kernels are used here."""
    for name in ONE:
        gaps = [iso.convert(np.repeat(x, 2), backend)[::2] for x in points(name)]
        check(name, numpy_of(getattr(iso.special, name)(*gaps)))


@pytest.mark.parametrize("name", NAMES)
def test_the_stored_values(name):
    """Thirty of them, computed again by mpmath's own function. Its errors for orders above 40 are
    why the stored ones come from a recurrence. The rest is stored to 2^-11 of a unit.
    """
    given, (near, rest, _) = points(name), values(name)
    fits = np.isfinite(near) & (np.abs(near) > 1e-290) & (np.abs(given[-1]) < 1e4)
    fits &= np.abs(given[0]) <= 40 if name in TWO else True
    chosen = np.random.default_rng(3).choice(np.flatnonzero(fits), 30, replace=False)
    with mpmath.workdps(80):
        for i in chosen:
            value = mpmath.re(EXACT[name](*(mpmath.mpf(float(x[i])) for x in given)))
            unit = mpmath.mpf(float(np.spacing(abs(near[i]))))
            kept = mpmath.mpf(float(near[i])) + mpmath.mpf(float(rest[i])) * unit
            assert abs(value - kept) <= unit / 2**10, (i, [float(x[i]) for x in given])


def test_the_largest_errors():
    """What the documentation states. SciPy's own errors excuse nothing here: they are up to 1e-10
    for J and Y, and its iv and ive lose all digits at some points.
    """
    for row in table({name: lambda *a, name=name: ours(name, *a) for name in NAMES}):
        assert row["error"] <= stated(row["function"], row["region"]), row


@pytest.mark.parametrize("name", NAMES)
def test_values(backend, name):
    """Orders up to 150: eager loops of large ones are long, and compiled ones are tested below."""
    given = points(name)
    mask = np.abs(given[0]) <= 150 if name in TWO else np.ones(len(given[0]), bool)
    found = np.zeros(len(given[0]))
    with enable_x64(True):
        got = on(backend, name, *(iso.convert(x[mask], backend) for x in given))
    found[mask] = numpy_of(got)
    check(name, found, mask)


# One Inductor program of all takes minutes on a slow core.
@pytest.mark.takes("XLA compiles it")
def test_compiled_values(backend):
    """All functions in one program."""
    with enable_x64(True):
        given = {name: [iso.convert(x, backend) for x in points(name)] for name in NAMES}
        program = iso.jit(lambda given: {name: on(backend, name, *given[name]) for name in NAMES})
        found = {name: numpy_of(y) for name, y in program(given).items()}
    for name in NAMES:
        check(name, found[name])


def narrow(name):
    """The grid in float32. Arguments are left out that float32 does not hold, because they are too
    large, or below 1e-30: at most one of twenty.
    """
    with np.errstate(all="ignore"):
        given = [x.astype(np.float32) for x in points(name)]
    held = np.all([np.isfinite(x) & ((np.abs(x) > 1e-30) | (x == 0)) for x in given], axis=0)
    assert held.mean() >= 0.95
    return [x[held] for x in given]


def amplitude(name, wide, true):
    """What errors are measured against: that of an oscillation, and of the larger term of the sum
    that a function of negative order is.
    """
    if name in ("jv", "yv"):
        v, x = (np.abs(z) for z in wide)
        j, y = np.abs(ours("jv", v, x)), np.abs(ours("yv", v, x))
        turns = (np.cos, np.sin) if name == "jv" else (np.sin, np.cos)
        summed = (wide[0] < 0) & (np.round(v) != v)
        terms = [
            np.abs(turn(np.pi * v[summed])) * part[summed] for turn, part in zip(turns, (j, y))
        ]
        outside = np.abs(true)
        outside[summed] = np.maximum(outside[summed], np.maximum(*terms))
        return np.where(v < x, np.hypot(j, y), outside)
    if name in TWO:
        return np.maximum(np.abs(true), np.abs(ours(name, np.abs(wide[0]), np.abs(wide[1]))))
    return np.abs(true)


@pytest.mark.parametrize("name", NAMES)
def test_values_in_float32(backend, name):
    """Against our float64, over the local amplitude, at every point. The exponent of a function of
    order v, or its phase, is of the size of v or x and has an error of eps times its size, on a GPU
    twice; the phase for larger x has parts whose sines are exact. Values within a factor of 1000 of
    the largest or smallest number need only be large or small: a rounded exponent decides whether
    they are infinite or 0.
    """
    given = narrow(name)
    wide = [x.astype(np.float64) for x in given]
    true = ours(name, *wide)
    size = amplitude(name, wide, true)
    found = numpy_of(on(backend, name, *(iso.convert(x, backend) for x in given)))
    assert found.dtype == np.float32
    info = np.finfo(np.float32)
    small, large = 1e3 * float(info.tiny), float(info.max) / 1e3
    bound = 8.0 if name in ONE else 64 + 2 * np.abs(wide[0]) + np.minimum(np.abs(wide[1]), 1000)
    with np.errstate(all="ignore"):
        fine = np.isfinite(true) & (np.abs(found - true) <= bound * info.eps * size)
        fine |= (size <= small) & (np.abs(found) <= 2 * small)
        fine |= (np.abs(true) >= large) & (np.abs(found) >= large / 2) & (found * true > 0)
        fine |= np.isnan(true) & np.isnan(found)
    wrong = np.flatnonzero(~fine)
    at = [(*(float(x[i]) for x in given), float(found[i]), float(true[i])) for i in wrong[:5]]
    assert not at, (len(wrong), at)


EDGES = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, -40.0, 1.0])
WHERE = [0.0, 1.0, 2.0, -1.0, -2.0, 0.5, 1.5, -0.3, 0.3, -1.3, 1000.0, np.nan]


@pytest.mark.parametrize("name", NAMES)
def test_special_values_are_those_of_scipy(backend, name):
    given = [EDGES] if name in ONE else [x.ravel() for x in np.meshgrid(WHERE, EDGES)]
    with enable_x64(True):
        found = numpy_of(on(backend, name, *(iso.convert(x, backend) for x in given)))
    wanted = getattr(scipy.special, name)(*given)
    if name == "ive":  # SciPy gives NaN at 0 for negative orders, but iv is infinite
        wanted = np.where(given[1] == 0, scipy.special.iv(*given), wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_empty_and_single(backend, name):
    with enable_x64(True):
        empty = [iso.convert(np.zeros((0, 3)), backend)] * len(points(name))
        assert tuple(on(backend, name, *empty).shape) == (0, 3)
        single = [iso.convert(np.array(1.5), backend)] * len(points(name))
        found = on(backend, name, *single)
    assert tuple(found.shape) == ()
    wanted = getattr(scipy.special, name)(*[1.5] * len(points(name)))
    np.testing.assert_allclose(float(numpy_of(found)), wanted, rtol=1e-13)


# Orders and arguments of derivatives. At 0 the functions without a kink have derivatives too.
ORDERS = np.array([0.0, 1.0, 2.0, 3.0, 0.0, 1.0, 2.0, 0.5, -1.3, 2.5, 7.25, 30.0, 60.5, -4.0])
PLACES = np.array([0.0, 0.0, 0.0, 0.0, 1e-6, 1e-3, -3.0, 0.7, 5.0, 12.0, 40.0, 28.0, 70.0, 1.1])
EXACT = {
    "i0": lambda x: mpmath.besseli(0, x),
    "i1": lambda x: mpmath.besseli(1, x),
    "i0e": lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)),
    "i1e": lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)),
    "iv": mpmath.besseli,
    "ive": lambda v, x: mpmath.besseli(v, x) * mpmath.exp(-abs(x)),
    "jv": mpmath.besselj,
    "yv": mpmath.bessely,
}


@pytest.mark.parametrize("name", NAMES)
def test_derivatives(backend, name):
    """To second order in the argument. 1e-12 of the size of the terms: differences of neighbouring
    orders cancel.
    """
    inside = PLACES > 0 if name in ("yv", "i0e", "i1e", "ive") else -np.inf < PLACES
    v, x = ORDERS[inside], PLACES[inside]
    before = [] if name in ONE else [v]
    with mpmath.workdps(50):
        exact = lambda v, x, n: mpmath.diff(
            lambda z: mpmath.re(EXACT[name](*([] if name in ONE else [v]), z)), x, n, h=1e-12
        )
        rows = [(mpmath.mpf(a), mpmath.mpf(b)) for a, b in zip(v, x)]
        wanted = [np.array([float(exact(*row, n)) for row in rows]) for n in (1, 2)]
    xp, function = load(backend), FUNCTIONS[name]
    with enable_x64(True):
        orders = [iso.convert(a, backend) for a in before]
        given = iso.convert(x, backend)
        slope = iso.grad(lambda x: xp.sum(function(xp, *orders, x)))
        bend = iso.grad(lambda x: xp.sum(slope(x)))
        for derivative, true in zip((slope, bend), wanted):
            found = numpy_of(derivative(given))
            np.testing.assert_allclose(found, true, rtol=1e-11, atol=1e-13)


def test_the_order_has_no_derivative(backend):
    xp = load(backend)
    with enable_x64(True):
        v, x = (iso.convert(np.array([0.5, 1.5]), backend) for _ in "vx")
        for name in TWO:
            with pytest.raises(NotImplementedError, match=f"{name}: .* argument 1"):
                iso.grad(lambda v, name=name: xp.sum(FUNCTIONS[name](xp, v, x)))(v)
