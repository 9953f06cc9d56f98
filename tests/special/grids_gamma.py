"""The gamma family: arguments by region, true values by mpmath, and the table of errors.

`gamma.npz` has the arguments beside the values: powers are rounded differently by other processors.
`python tests/special/grids_gamma.py [NAME ...]` computes the values of the stored arguments again;
with `draw` before the names, it spreads the arguments first, by multiples of irrational numbers. A
value is a float64, with the rest in units of its last place. All values take half an hour.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import mpmath
import numpy as np
import scipy.special
from mpmath import mpf

from isomorph.core.dispatch import load
from isomorph.meanings.special import beta as beta_meaning
from isomorph.meanings.special import gamma as gamma_meaning
from isomorph.meanings.special import incomplete, incomplete_beta
from special.measuring import Case, errors

STORED = Path(__file__).with_name("gamma.npz")
PLASTIC = (0.8191725133961645, 0.6710436067037893, 0.5497004779019703)  # powers of 1/1.2207…
DIGITS = 50


MEANINGS = {
    **{n: getattr(gamma_meaning, n) for n in ("gamma", "gammaln", "digamma", "zeta", "polygamma")},
    **{n: getattr(beta_meaning, n) for n in ("beta", "betaln", "binom")},
    **{n: getattr(incomplete, n) for n in ("gammainc", "gammaincc", "gammainc_slope")},
    **{n: getattr(incomplete_beta, n) for n in ("betainc", "betainc_slope_a", "betainc_slope_b")},
}


def short(x):
    """`x` with forty binary digits, which take less room."""
    fraction, exponent = np.frexp(np.asarray(x, np.float64))
    return np.ldexp(np.round(fraction * 2.0**40), exponent - 40)


class Spread:
    """Numbers that fill a region evenly; each call gives another coordinate."""

    def __init__(self, points):
        self.points, self.used = points, 0

    def __call__(self, low, high):
        unit = np.modf(0.5 + np.arange(1, self.points + 1) * PLASTIC[self.used])[0]
        self.used += 1
        return short(low + (high - low) * unit)

    def size(self, low, high):
        """Powers of ten between two exponents."""
        return short(10.0 ** self(low, high))


class Grid(NamedTuple):
    """A function: how many points each region has, and its arguments there."""

    points: int
    regions: dict[str, Callable]
    exact: Callable
    scale: float = 0.0  # errors are relative to values above it, and absolute below


# ---- true values ---------------------------------------------------------------------------------


def more(digits, f):
    """`f`, computed with more digits."""

    def exact(*args):
        with mpmath.workdps(max(digits, mpmath.mp.dps)):
            return f(*args)

    return exact


def log_gamma(x):
    return mpmath.loggamma(x) if x > 0 else mpmath.log(abs(mpmath.gamma(x)))


def zeta(s, q):
    """By Euler and Maclaurin's formula; mpmath's own has few digits where the value is small."""
    total = mpf(0)
    count = max(mpmath.mp.dps, int(mpmath.mp.dps - q))
    for k in range(count):
        total += (q + k) ** -s if q + k > 0 or s == int(s) else mpf("nan")
    a = q + count
    total += a ** (1 - s) / (s - 1) + a**-s / 2
    term = s * a ** (-s - 1)
    for j in range(1, 200):
        change = mpmath.bernoulli(2 * j) / mpmath.factorial(2 * j) * term
        total += change
        if abs(change) < abs(total) * mpf(10) ** -(mpmath.mp.dps - 5):
            return total
        term *= (s + 2 * j - 1) * (s + 2 * j) / a**2
    raise ArithmeticError(f"zeta did not converge at {s}, {q}")


def polygamma(n, x):
    if n == 0:
        return mpmath.psi(0, x)
    return (-1) ** (int(n) + 1) * mpmath.factorial(n) * zeta(n + 1, x)


def beta(a, b):
    return mpmath.gammaprod([a, b], [a + b])


def betaln(a, b):
    if min(a, b) > 0:
        return mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)
    return mpmath.log(abs(beta(a, b)))


def beta_by_logarithm(a, b):
    return mpmath.exp(betaln(a, b)) if min(a, b) > 0 else beta(a, b)


def binom(n, k):
    if min(n - k, k) > 0:
        return mpmath.exp(-betaln(n - k + 1, k + 1)) / (n + 1)
    return mpmath.gammaprod([n + 1], [k + 1, n - k + 1])


def multigammaln(d, a):
    total = sum(mpmath.loggamma(a - mpf(j) / 2) for j in range(int(d)))
    return total + d * (d - 1) / 4 * mpmath.log(mpmath.pi)


def lower_gamma(a, x):
    """P by its series of positive terms."""
    term = total = 1 / a
    k = 0
    while term > total * mpf(10) ** -(mpmath.mp.dps + 2):
        k += 1
        term *= x / (a + k)
        total += term
    return mpmath.exp(a * mpmath.log(x) - x - mpmath.loggamma(a)) * total


def upper_gamma(a, x):
    """Q by Legendre's continued fraction, from its end."""
    count = int(20 + 40 * mpmath.mp.dps / mpmath.sqrt(x) + 12 * mpmath.sqrt(a))
    below = mpf(0)
    for k in range(count, 0, -1):
        below = k * (a - k) / (x + 2 * k + 1 - a + below)
    return mpmath.exp(a * mpmath.log(x) - x - mpmath.loggamma(a)) / (x + 1 - a + below)


def gammainc(a, x):
    return lower_gamma(a, x) if x < a + 1 or x < 3 else 1 - upper_gamma(a, x)


def gammaincc(a, x):
    if x < a + 1 or x < 3:
        with mpmath.workdps(mpmath.mp.dps + 25):
            return 1 - lower_gamma(a, x)
    return upper_gamma(a, x)


def lower_beta(a, b, x):
    """I by its series of positive terms."""
    term = total = 1 / a
    y = 1 - x
    k = 0
    while term > total * mpf(10) ** -(mpmath.mp.dps + 2):
        term *= x * (a + b + k) / (a + 1 + k)
        k += 1
        total += term
    return mpmath.exp(a * mpmath.log(x) + b * mpmath.log(y) - betaln(a, b)) * total


def is_direct(a, b, x):
    """Whether the series of I converges, in fewer than a few thousand terms."""
    below = x <= a / (a + b)
    return (x <= 0.9 and (below or x <= 0.5)) or (below and b >= 5)


def betainc(a, b, x):
    if is_direct(a, b, x):
        return lower_beta(a, b, x)
    with mpmath.workdps(mpmath.mp.dps + DIGITS + 25):
        return 1 - lower_beta(b, a, 1 - x)


def difference(f, place):
    """The derivative of `f` in one argument, by a central difference with 20 digits."""

    def exact(*args):
        with mpmath.workdps(100):
            step = args[place] * mpf(10) ** -18
            moved = lambda by: [x + by * (i == place) for i, x in enumerate(args)]
            return (f(*moved(step)) - f(*moved(-step))) / (2 * step)

    return exact


def gammainc_part(a, x):
    """P where x is small, else P − 1, which has the same derivative."""
    return lower_gamma(a, x) if x < a + 1 or x < 3 else -upper_gamma(a, x)


def betainc_part(a, b, x):
    far = x > a / (a + b) and x > 0.05  # where I is so close to 1 that its derivative is lost
    return -lower_beta(b, a, 1 - x) if far or not is_direct(a, b, x) else lower_beta(a, b, x)


# ---- arguments -----------------------------------------------------------------------------------


def one(*ranges):
    return {f"{a} to {b}": lambda u, a=a, b=b: (u(a, b),) for a, b in ranges}


def tens(*ranges):
    return {f"10^{a} to 10^{b}": lambda u, a=a, b=b: (u.size(a, b),) for a, b in ranges}


def near(*centres):
    """Close to some numbers, on both sides."""

    def numbers(u):
        step = u.size(-14, -1) * np.where(np.arange(u.points) % 2, 1.0, -1.0)
        return (np.resize(np.array(centres, np.float64), u.points) + step,)

    return {"near " + ", ".join(map(str, centres)): numbers}


def whole(x):
    return np.floor(x)


def scaled(u, a, low, high):
    """The second argument, `a` times something."""
    return a, short(a * u(low, high))


def deviating(u, a, low, high):
    """The second argument, some standard deviations from `a`."""
    return a, short(a + np.sqrt(a) * u(low, high))


def at_mean(u, a, b, low, high):
    """x, some standard deviations from the mean of the beta distribution."""
    both = a + b
    x = a / both + u(low, high) * np.sqrt(a / both * (b / both) / both)
    return a, b, np.clip(short(x), 1e-9, 1 - 1e-9)


def of_mean(u, a, b, low, high):
    return a, b, np.minimum(short(a / (a + b) * 10.0 ** u(low, high)), 0.999)


POSITIVE = {
    "small": lambda u: (u(0.001, 3), u(0.001, 3)),
    "middle": lambda u: (u(0.1, 20), u(0.1, 20)),
    "large": lambda u: (u(1, 300), u(1, 300)),
    "any": lambda u: (u.size(-3, 7), u.size(-3, 7)),
    "tiny": lambda u: (u.size(-300, 0), u.size(-300, 0)),
}
BETAS = {
    **POSITIVE,
    "negative": lambda u: (u(-20, 20), u(-20, 20)),
    "large and small": lambda u: (u.size(2, 12), u.size(-3, 1)),
    "tiny and large": lambda u: (u.size(-300, 0), u.size(0, 5)),
}
GAMMAS = {
    "unit": lambda u: (u(0.001, 3), u(0.001, 3)),
    "middle": lambda u: (u(0.1, 30), u(0.1, 30)),
    "tiny": lambda u: (u.size(-20, 0), u.size(-20, 0)),
    "tiny a": lambda u: (u.size(-10, 0), u(0.01, 20)),
    "near": lambda u: scaled(u, u(20, 300), 0.6, 1.4),
    "far": lambda u: scaled(u, u(20, 300), 0.1, 3),
    "large": lambda u: deviating(u, u.size(2.5, 5), -6, 6),
    "huge": lambda u: deviating(u, u.size(5, 7), -6, 6),
}
FRACTIONS = {
    "unit": lambda u: (u(0.001, 3), u(0.001, 3), u(0.001, 0.999)),
    "middle": lambda u: (u(0.1, 40), u(0.1, 40), u(0.001, 0.999)),
    "tiny": lambda u: (u.size(-20, 0), u.size(-20, 0), u(0.001, 0.999)),
    "tiny x": lambda u: (u.size(-3, 1), u.size(-3, 1), u.size(-20, -0.1)),
    "x near 1": lambda u: (u.size(-3, 1), u.size(-3, 1), 1 - u.size(-10, -0.1)),
    "tiny b, x near 1": lambda u: (u.size(-3, 3), u.size(-10, 0), 1 - u.size(-10, -0.1)),
    "large": lambda u: at_mean(u, u.size(1, 3.4), u.size(1, 3.4), -4, 4),
    "huge": lambda u: at_mean(u, u.size(3.4, 5), u.size(3.4, 5), -4, 4),
    "far": lambda u: at_mean(u, u.size(2, 4.5), u.size(2, 4.5), -25, 25),
    "small and large": lambda u: of_mean(u, u.size(-1, 1), u.size(2, 6), -1, 1),
    "any": lambda u: (u.size(-2, 3), u.size(-2, 3), u(0.001, 0.999)),
}


def without(grid, name):
    """The regions but one, in which a derivative would take mpmath minutes."""
    return {region: make for region, make in grid.items() if region != name}


def counts(u):
    n = whole(u(0, 60))
    return n, whole(n * u(0, 1))


GRIDS = {
    "gamma": Grid(200, {
        **one((0, 0.5), (0.5, 3), (3, 8), (8, 33), (33, 171.6), (-0.5, 0), (-5, -0.5), (-33, -5),
              (-170, -33)), **tens((-300, 0)), **near(1, 2, -1, -2, 3, -10)},
        mpmath.gamma),
    "gammaln": Grid(160, {
        **one((0, 0.5), (0.5, 3), (3, 8), (8, 33), (33, 1000), (-0.5, 0), (-5, -0.5), (-33, -5),
              (-170, -33)), **tens((-300, 0), (2, 300)), **near(1, 2), **near(-1, -2, -10)},
        log_gamma, 1.0),
    "digamma": Grid(160, {
        **one((0, 0.5), (0.5, 3), (3, 8), (8, 33), (33, 1000), (-0.5, 0), (-1, -0.5), (-5, -1),
              (-33, -5)), **tens((-300, 0), (2, 300)), **near(1.4616321449683622),
        **near(-1, -2, -10)},
        partial(mpmath.psi, 0), 1.0),
    "zeta": Grid(250, {
        "close to 1": lambda u: (1 + u.size(-10, 0), u.size(-2, 2)),
        "small": lambda u: (u(1.01, 5), u(0.01, 5)),
        "middle": lambda u: (u(1.01, 60), u(1, 60)),
        "large q": lambda u: (u(1.01, 3), u.size(0, 15)),
        "large s": lambda u: (u(2, 300), u(0.01, 3)),
        "both large": lambda u: (u(10, 200), u(10, 200)),
        "negative, even": lambda u: (2 * whole(u(1, 6)), u(-12, -0.01)),
        "negative, odd": lambda u: (2 * whole(u(1, 6)) + 1, u(-12, -0.01))},
        zeta),
    "polygamma": Grid(350, {
        "first": lambda u: (whole(u(0, 4)), u(0.01, 5)),
        "small": lambda u: (whole(u(1, 10)), u(0.01, 30)),
        "large n": lambda u: (whole(u(5, 100)), u(0.1, 60)),
        "large x": lambda u: (whole(u(1, 8)), u.size(1, 12)),
        "tiny x": lambda u: (whole(u(1, 8)), u.size(-20, 0)),
        "negative": lambda u: (whole(u(1, 6)), u(-8, -0.01))},
        polygamma),
    "beta": Grid(260, BETAS, more(70, beta_by_logarithm)),
    "betaln": Grid(260, BETAS, more(70, betaln), 1.0),
    "binom": Grid(290, {
        "counts": counts,
        "many": lambda u: (lambda n: (n, whole(n * u(0, 1))))(whole(u(0, 1000))),
        "real": lambda u: (lambda n: (n, short(n * u(0, 1))))(u(0, 60)),
        "of few": lambda u: (u(-20, 60), whole(u(0, 20))),
        "any": lambda u: (u(-20, 40), u(-20, 40)),
        "tiny": lambda u: (u.size(-20, 0), whole(u(0, 8))),
        "large n": lambda u: (u.size(2, 15), u(0.1, 12))},
        more(70, binom)),
    "gammainc": Grid(250, GAMMAS, gammainc),
    "gammaincc": Grid(250, GAMMAS, gammaincc),
    "betainc": Grid(185, FRACTIONS, betainc),
    "multigammaln": Grid(500, {
        f"d = {d}": lambda u, d=d: (np.full(u.points, float(d)), (d - 1) / 2 + u.size(-3, 8))
        for d in (1, 2, 5, 20)},
        more(70, multigammaln), 1.0),
    "gammainc_slope": Grid(60, without(GAMMAS, "huge"), difference(gammainc_part, 0)),
    "betainc_slope_a": Grid(40, without(FRACTIONS, "huge"), difference(betainc_part, 0)),
    "betainc_slope_b": Grid(40, without(FRACTIONS, "huge"), difference(betainc_part, 1)),
}  # fmt: skip


def drawn(name):
    """All arguments of a function, region after region."""
    grid = GRIDS[name]
    parts = [make(Spread(grid.points)) for make in grid.regions.values()]
    return tuple(map(np.concatenate, zip(*parts)))


@cache
def stored():
    with np.load(STORED) as file:
        return dict(file)


@cache
def arguments(name):
    """All arguments of a function, as they are stored."""
    kept, found = stored(), []
    while (part := f"{name}_at{len(found)}") in kept:
        found.append(kept[part])
    return tuple(found)


def regions(name):
    """The regions of a grid, as slices."""
    grid = GRIDS[name]
    return {r: slice(i * grid.points, (i + 1) * grid.points) for i, r in enumerate(grid.regions)}


@cache
def truth(name):
    """The arguments, and the true values as pairs of float64: the value, and the rest."""
    high, rest = stored()[name], stored()[name + "_rest"].astype(np.float64)
    unit = np.spacing(np.abs(np.where(np.isfinite(high), high, 0.0)))
    return arguments(name), high, rest * unit


def computed(name, given):
    """The arguments and the true values of a function, as they are stored."""
    exact, high, rest = GRIDS[name].exact, [], []
    with mpmath.workdps(DIGITS):
        for row in zip(*given):
            value = exact(*(mpf(float(x)) for x in row))
            nearest = float(value)
            high.append(nearest)
            unit = np.spacing(abs(nearest))
            rest.append(float((value - mpf(nearest)) / mpf(float(unit))) if unit > 0 else 0.0)
    at = {f"{name}_at{i}": x for i, x in enumerate(given)}
    return {**at, name: np.array(high), name + "_rest": np.array(rest, np.float16)}


# ---- errors --------------------------------------------------------------------------------------


class Own:
    """A backend that has no special functions of its own, like NumPy without SciPy."""

    def __init__(self, xp):
        self.xp = xp

    def smooth(self, function, arrays):
        return function.kernel(self, *arrays)

    def __getattr__(self, name):
        return getattr(self.xp, name)


def ours(name, xp, *arrays):
    """Our own kernel, also on NumPy, which would use SciPy's functions."""
    if name == "multigammaln":
        order, a = arrays
        found = [gamma_meaning.multigammaln(Own(xp), a, d) for d in (1, 2, 5, 20)]
        found = [xp.where(order == d, y, xp.zeros_like(y)) for d, y in zip((1, 2, 5, 20), found)]
        return found[0] + found[1] + found[2] + found[3]
    return MEANINGS[name].kernel(xp, *arrays)


def theirs(name, *arrays):
    """SciPy's function; None for derivatives, which it does not have."""
    with np.errstate(all="ignore"):
        if name == "multigammaln":
            order, a = arrays
            rows = zip(a, order)
            return np.array([scipy.special.multigammaln(x, int(d)) for x, d in rows])
        function = getattr(scipy.special, name, None)
        return None if function is None else np.asarray(function(*arrays))


def table():
    """For each function and region: its name, the points, our greatest error in units of eps,
    SciPy's, the ratio of the two, and the arguments at our worst point.
    """
    rows, xp = [], load("numpy")
    for name, grid in GRIDS.items():
        arrays, high, rest = truth(name)
        case = Case(lambda: (), grid.exact, grid.scale)
        with np.errstate(all="ignore"):
            found = errors(case, ours(name, xp, *arrays), high, rest)
        peer = theirs(name, *arrays)
        other = np.full_like(found, np.nan) if peer is None else errors(case, peer, high, rest)
        for region, part in {"all": slice(None), **regions(name)}.items():
            worst = int(np.argmax(found[part]))
            at = [float(x[part][worst]) for x in arrays]
            most, least = float(found[part][worst]), float(np.max(other[part]))
            rows.append((name, region, len(found[part]), most, least, most / least, at))
    return rows


if __name__ == "__main__":
    if sys.argv[1:] == ["table"]:
        for name, region, points, most, least, ratio, at in table():
            print(f"{name:16} {region:18} {points:5} {most:9.2f} {least:11.2f} {ratio:8.2f}  {at}")
        sys.exit()
    anew, names = sys.argv[1:2] == ["draw"], [word for word in sys.argv[1:] if word != "draw"]
    kept = dict(stored())
    for chosen in names or GRIDS:
        kept.update(computed(chosen, drawn(chosen) if anew else arguments(chosen)))
        print(chosen, len(kept[chosen]), flush=True)
        np.savez_compressed(STORED, **kept)
