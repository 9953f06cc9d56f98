"""Special functions on NumPy, by SciPy's kernels where SciPy is installed; and the error function,
which NumPy lacks, without SciPy: the rational approximations of Sun's fdlibm (s_erf.c), within 3
ulps in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from math import pi, sqrt
from typing import Any

import numpy

from ...meanings.special.errors import AT_ONE, LARGE, MIDDLE, NEAR_ONE, SMALL, ratio
from .mapped import elementwise
from .mapped import rule as batch_rule
from .tape import primitive, rule

np: Any = numpy  # its type stubs do not know traced values


@primitive
def erf(x: Any, /) -> Any:
    """2/√π ∫₀ˣ e^(−t²) dt of a real array."""
    x = np.asarray(x)
    kernel = scipy_kernel("erf")
    if kernel is not None and x.dtype in (np.float32, np.float64):
        return kernel(x)
    narrow = x.dtype in (np.float16, np.float32)
    wide = np.atleast_1d(x.astype(np.float32 if narrow else np.float64))
    size = np.abs(wide)
    out = np.sign(wide)  # for |x| >= 6; NaN stays
    for low, high, part in (
        (0.0, 0.84375, _small), (0.84375, 1.25, _near_one), (1.25, 1 / 0.35, _middle),
        (1 / 0.35, 6.0, _large),
    ):  # fmt: skip
        where = (size >= low) & (size < high)
        if where.any():
            found = wide[where]
            out[where] = part(found, np.abs(found))
    return np.reshape(out, x.shape).astype(x.dtype if x.dtype.kind == "f" else out.dtype)[()]


def _small(x: Any, size: Any) -> Any:
    return x + x * ratio(SMALL, x * x)


def _near_one(x: Any, size: Any) -> Any:
    return np.copysign(AT_ONE + ratio(NEAR_ONE, size - 1), x)


def _middle(x: Any, size: Any) -> Any:
    return np.copysign(1 - _tail(MIDDLE, size), x)


def _large(x: Any, size: Any) -> Any:
    return np.copysign(1 - _tail(LARGE, size), x)


def _tail(table: tuple, size: Any) -> Any:
    return np.exp(-size * size - 0.5625 + ratio(table, 1 / (size * size))) / size


@rule(erf)
def _(y: Any, x: Any) -> Any:
    return (lambda g: g * (2 / sqrt(pi)) * np.exp(-x * x),)


def values(xp: Any, function: Any, arrays: tuple) -> Any:
    """The values of a `Smooth` function of plain arrays."""
    kernel = scipy_kernel(function.name)
    with np.errstate(all="ignore"):  # branches that are not taken may overflow
        return function.kernel(xp, *arrays) if kernel is None else kernel(*arrays)


@cache
def scipy_kernel(name: str) -> Any:
    """SciPy's ufunc of that name, if SciPy is installed and has one."""
    if find_spec("scipy") is None:
        return None
    found = getattr(import_module("scipy.special"), name, None)
    return found if isinstance(found, numpy.ufunc) else None


@cache
def smooth(xp: Any, function: Any) -> Callable[..., Any]:
    """A `Smooth` function of plain and of traced arrays."""

    @primitive
    def call(*arrays: Any) -> Any:
        return xp.special(function, *arrays)

    @rule(call)
    def _(y: Any, *arrays: Any) -> tuple:
        return tuple(_back(xp, function, i, y, arrays) for i in range(len(arrays)))

    @batch_rule(call)
    def _(over: Any, func: Any, *arrays: Any) -> Any:
        return elementwise(over, lambda *x: func(*np.broadcast_arrays(*x)), *arrays)

    return call


def _back(xp: Any, function: Any, place: int, y: Any, arrays: tuple) -> Callable[[Any], Any]:
    def back(g: Any) -> Any:
        with np.errstate(all="ignore"):
            return g * function.slope(xp, place, y, arrays)

    return back
