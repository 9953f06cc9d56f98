"""Grids for Bessel functions, their values by mpmath, and the table of errors.

`bessel.npz` has the points beside the values: powers and logarithms are rounded differently by
other processors, and at a large argument the last bit of a point changes thousands of last bits of
the value. `python tests/special/grids_bessel.py` computes the values of the stored points again;
with `draw`, it draws the points first. A value is a float64, with the rest in units of its last
place, and the binary logarithm of the amplitude that its error is measured against. That is the
value itself where the function does not oscillate, and √(J² + Y²) where it does; a negative order
that is not an integer has the larger of the two terms of the reflection formula. The table needs
SciPy; `table()` gives its rows.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import numpy as np

STORED = Path(__file__).with_name("bessel.npz")
ONE = ("i0", "i0e", "i1", "i1e")
TWO = ("iv", "ive", "jv", "yv")
TINY = 1e-290  # amplitudes below are rounded to denormal numbers or 0 in some step


# ---- the points ----------------------------------------------------------------------------------


def drawn_arguments():
    """For the functions of one argument."""
    draw = np.random.default_rng(11)
    edges = [1e-300, 1e-100, 1e-17, 1e-8, 0.1, 1, 2, 7.999, 8, 8.001, 100, 700, 709.7, 1e5]
    large = [712, 720, 1e10, 1e100, 1e300]
    spread = [
        10 ** draw.uniform(-12, 0, 300),
        draw.uniform(0, 8, 600),
        draw.uniform(8, 60, 600),
        draw.uniform(60, 700, 300),
        10 ** draw.uniform(2, 5, 200),
    ]
    x = np.concatenate([edges, large, *spread])
    return np.where(draw.random(len(x)) < 0.3, -x, x)


def drawn_orders():
    """For the functions of order and argument: the order, and the argument."""
    draw = np.random.default_rng(12)
    v = [0, 0.5, 1, 1.5, 2, 0.3, 2.7, 10, 10.5, 24.999, 49.9, 50, 50.1, 127.9, 128, 129, 300.25]
    v = np.array([*v, 999.5, 1000, 1e-9, 1 + 1e-9])
    x = [1e-300, 1e-100, 1e-10, 0.1, 1, 1.9999, 2, 2.0001, 8, 20, 35.999, 36, 36.001, 50, 127.5]
    x = np.array([*x, 130, 300, 999, 1000, 1010, 1100, 1e4, 1e5])
    v, x = (part.ravel() for part in np.meshgrid(v, x))
    parts = [(v, x), (-v[::3], x[::3])]
    for top, low, high, n in (
        (3, 1e-3, 2, 150),
        (40, 1e-2, 2, 150),
        (3, 2, 36, 150),
        (40, 2, 36, 250),
        (3, 36, 1e5, 150),
        (128, 36, 200, 250),
        (128, 200, 1e5, 150),
        (300, 100, 600, 150),
        (1000, 300, 1500, 150),
        (1000, 1000, 1e5, 100),
    ):
        v = draw.uniform(0, top, n)
        v = np.where(draw.random(n) < 0.5, v, np.round(2 * v) / 2) * draw.choice([-1, 1, 1], n)
        parts.append((v, 10 ** draw.uniform(np.log10(low), np.log10(high), n)))
    x = 10 ** draw.uniform(1.6, 3, 200)  # the order is next to the argument
    parts.append((x + draw.uniform(-14, 14, 200) * x ** (1 / 3), x))
    parts.append((np.repeat([0.0, 1.0, 2.5, 30.0], 25), zeros()))
    v, x = map(np.concatenate, zip(*parts))
    negative = (v == np.round(v)) & (np.arange(len(v)) % 5 == 0)
    return v, np.where(negative, -x, x)


def zeros():
    """Arguments next to zeros of J of the orders 0, 1, 2.5 and 30."""
    guesses = [(k + v / 2 - 0.25) * np.pi for v in (0, 1, 2.5) for k in range(1, 26)]
    return np.array(guesses + [30 + 1.8557 * 30 ** (1 / 3) + 3.6 * k for k in range(25)])


def drawn_points():
    v, x = drawn_orders()
    return {"alone": drawn_arguments(), "order": v, "argument": x}


def points(name):
    """The arrays that a function is called with; yv has no negative arguments."""
    kept = stored()
    if name in ONE:
        return (kept["alone"],)
    v, x = kept["order"], kept["argument"]
    return (v, np.abs(x)) if name == "yv" else (v, x)


REGIONS = {
    "x < 2": lambda v, x: x < 2,
    "2 <= x < 36": lambda v, x: (x >= 2) & (x < 36) & (v <= 128),
    "x >= 36, v <= 128": lambda v, x: (x >= 36) & (v <= 128),
    "v > 128, v << x": lambda v, x: (v > 128) & (v < x - 11 * np.cbrt(x)),
    "v > 128, v ~ x": lambda v, x: (v > 128) & (np.abs(v - x) <= 11 * np.cbrt(x)),
    "v > 128, v >> x": lambda v, x: (v > 128) & (x >= 2) & (v > x + 11 * np.cbrt(x)),
}
SMALL = {"|x| <= 8": lambda x: x <= 8, "|x| > 8": lambda x: x > 8}


def regions(name):
    """The parts of the grid: name -> mask."""
    given = [np.abs(part) for part in points(name)]
    return {word: test(*given) for word, test in (SMALL if name in ONE else REGIONS).items()}


# ---- the values ----------------------------------------------------------------------------------


def true_values(at):
    """By mpmath with 60 digits. Functions of large order come from two of small order by the
    recurrence in its stable direction: mpmath's own are wrong for some large orders.
    """
    import mpmath

    mp = mpmath.mp.clone()
    mp.dps = 60

    def cylinder(v, x):
        """J and Y for v ≥ 0 and x > 0."""
        n = int(mp.nint(v))
        m = v - n
        y, after = mp.bessely(m, x), mp.bessely(m + 1, x)
        for k in range(n):
            y, after = after, 2 * (m + k + 1) / x * after - y
        if v > x:
            return mp.besselj(v, x), y
        j, after = mp.besselj(m, x), mp.besselj(m + 1, x)
        for k in range(n):
            j, after = after, 2 * (m + k + 1) / x * after - j
        return j, y

    def modified(v, x):
        """I and K for v ≥ 0 and x > 0."""
        n = int(mp.nint(v))
        m = v - n
        k, after = mp.besselk(m, x), mp.besselk(m + 1, x)
        for i in range(n):
            k, after = after, 2 * (m + i + 1) / x * after + k
        return mp.besseli(v, x), k

    found = {name: [] for name in (*ONE, *TWO)}
    for x in map(mp.mpf, at["alone"]):
        for order in (0, 1):
            y = mp.besseli(order, x)
            found[f"i{order}"].append((y, abs(y)))
            y = y * mp.exp(-abs(x))
            found[f"i{order}e"].append((y, abs(y)))
    for v, x in zip(at["order"], at["argument"]):
        size, z = mp.mpf(abs(v)), mp.mpf(abs(x))
        sign = -1 if x < 0 and v % 2 else 1
        cosine, sine = (mp.cospi(size), mp.sinpi(size)) if v < 0 else (mp.mpf(1), mp.mpf(0))
        first, second = modified(size, z)
        one, two = first, 2 / mp.pi * sine * second
        for name, scale in (("iv", mp.mpf(1)), ("ive", mp.exp(-z))):
            found[name].append((sign * (one + two) * scale, (abs(one) + abs(two)) * scale))
        j, y = cylinder(size, z)
        for name, one, two in (("jv", cosine * j, -sine * y), ("yv", sine * j, cosine * y)):
            flips = sign if name == "jv" else 1
            size_of = mp.hypot(j, y) if size <= z else max(abs(one), abs(two))
            found[name].append((flips * (one + two), size_of))
    parts = ("near", "rest", "size")
    return {
        f"{name}_{part}": array
        for name, rows in found.items()
        for part, array in zip(parts, packed(mp, rows))
    }


def packed(mp, rows):
    near = np.array([float(y) for y, _ in rows])  # infinite where it is too large
    unit = np.spacing(np.where(np.isfinite(near), np.abs(near), 1))
    rest = [
        float((y - mp.mpf(a)) / mp.mpf(u)) if np.isfinite(a) else 0
        for (y, _), a, u in zip(rows, near, unit)
    ]
    size = [float(mp.log(size, 2)) for _, size in rows]
    return near, np.float16(rest), np.float32(size)


@cache
def stored():
    """The points and the values."""
    with np.load(STORED) as file:
        return dict(file)


def values(name):
    """The values of a function: the nearest float64, the rest, and the size of the amplitude."""
    return tuple(stored()[f"{name}_{part}"] for part in ("near", "rest", "size"))


# ---- errors --------------------------------------------------------------------------------------


def errors(name, found):
    """The errors of a function's values on its grid, over the amplitude. Where the true value is
    infinite or tiny, the error is 0 if the value is so too, else infinite. NaN is an infinite
    error.
    """
    near, rest, size = values(name)
    with np.errstate(all="ignore"):
        amplitude = 2.0 ** size.astype(np.float64)
        unit = np.spacing(np.where(np.isfinite(near), np.abs(near), 1))
        gap = np.abs((found - near) - rest.astype(np.float64) * unit) / amplitude
    gap = np.where(np.isfinite(near), gap, np.where(found == near, 0.0, np.inf))
    gap = np.where(amplitude < TINY, np.where(np.abs(found) <= 2 * TINY, 0.0, np.inf), gap)
    return np.where(np.isnan(gap), np.inf, gap)


def scipy_errors(name):
    import scipy.special

    return errors(name, getattr(scipy.special, name)(*points(name)))


def table(kernels):
    """Rows of function, region, points, our largest error, SciPy's (where it is finite), how many
    points SciPy has no finite error at, and our worst arguments. `kernels` maps a name to our
    function of arrays.
    """
    rows = []
    for name in (*ONE, *TWO):
        ours, theirs = errors(name, kernels[name](*points(name))), scipy_errors(name)
        everywhere = np.ones(len(ours), bool)
        for region, mask in {"all": everywhere, **regions(name)}.items():
            worst = int(np.argmax(np.where(mask, ours, -1)))
            finite = mask & np.isfinite(theirs)
            rows.append(
                {
                    "function": name,
                    "region": region,
                    "points": int(mask.sum()),
                    "error": float(ours[worst]),
                    "scipy": float(theirs[finite].max()),
                    "scipy_lost": int((mask & ~finite).sum()),
                    "at": tuple(float(part[worst]) for part in points(name)),
                }
            )
    return rows


def shown(rows):
    lines = ["function region               points    error    scipy  ratio  lost  worst at"]
    for row in rows:
        lines.append(
            f"{row['function']:8} {row['region']:20} {row['points']:6} {row['error']:8.1e} "
            f"{row['scipy']:8.1e} {row['error'] / row['scipy']:6.2f} {row['scipy_lost']:5}  "
            f"{row['at']}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    kept = drawn_points() if sys.argv[1:] == ["draw"] else stored()
    at = {part: kept[part] for part in ("alone", "order", "argument")}
    np.savez_compressed(STORED, **at, **true_values(at))
