"""Errors of special functions: grids of arguments, mpmath's values, and the measure.

The error at a point is the distance to the true value over the larger of its size and a scale, in
units of eps. The scale is 1 for functions with zeros, near which relative errors mean nothing.
Numbers below the smallest normal one count as 0: XLA and TensorFlow make zeros of them. Values that
are infinite or NaN must be equal.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import mpmath
import numpy as np

DIGITS = 40


class Case(NamedTuple):
    """A special function: its arguments, what is true, and SciPy's."""

    arguments: Callable[[], tuple[np.ndarray, ...]]
    exact: Callable  # takes numbers of mpmath
    scale: float = 0.0
    peer: Callable | None = None  # SciPy's function of that name if None


def around(*centres, spread=4.0, points=20):
    """Numbers close to some centres, at distances from 1e-16 to 1e-1 of `spread`."""
    steps = spread * np.logspace(-16, -1, points)
    return np.concatenate([[c, *(c + steps), *(c - steps)] for c in centres])


def line(low, high, points=1000):
    return np.linspace(low, high, points)


def sizes(low=-300, high=300, points=601):
    """Positive numbers of all sizes."""
    return np.logspace(low, high, points)


EDGES = np.array([0.0, -0.0, np.inf, -np.inf, np.nan])


def pairs(x, y, points=2500, seed=0):
    """Pairs of the numbers in `x` and `y`, drawn at random, and all pairs of edges."""
    rng = np.random.default_rng(seed)
    some = rng.choice(x, points), rng.choice(y, points)
    ends = np.array([0.0, 1.0, np.inf, np.nan, -1.0])
    grid = np.meshgrid(ends, ends)
    return tuple(np.concatenate([a, b.ravel()]) for a, b in zip(some, grid))


@cache
def truth(name: str, case: Case) -> tuple:
    """The arguments, and the true values as float64 pairs (value, rest), so that errors far below
    one ulp can be seen.
    """
    arguments = case.arguments()
    with mpmath.workdps(DIGITS):
        found = [_value(case.exact, row) for row in zip(*arguments)]
        high = np.array([float(v) for v in found])
        rest = np.array(
            [float(v - mpmath.mpf(float(v))) if np.isfinite(float(v)) else 0.0 for v in found]
        )
    return arguments, high, rest


def _value(exact, row):
    try:
        found = exact(*(mpmath.mpf(float(x)) for x in row))
    except ZeroDivisionError:
        return mpmath.nan
    return found.real if abs(mpmath.im(found)) == 0 else mpmath.nan


def errors(case: Case, found: np.ndarray, high: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """The error at every point, in units of eps of the dtype of `found`."""
    info = np.finfo(found.dtype)
    with np.errstate(all="ignore"):
        outside = np.abs(high) > info.max
        true = np.where(outside, np.sign(high) * np.inf, high)
        finite = np.isfinite(true) & np.isfinite(found)
        distance = np.abs((found.astype(np.float64) - true) - rest)
        error = distance / np.maximum(np.abs(true), max(case.scale, float(info.tiny))) / info.eps
        small = 2 * float(info.tiny)
        error = np.where((np.abs(true) < small) & (np.abs(found) < small), 0.0, error)
        same = (true == found) | (np.isnan(true) & np.isnan(found))
    return np.where(finite, error, np.where(same, 0.0, np.inf))
