"""`scipy.interpolate`: lines and splines through points, with gradients for the values at the
points and for the places where they are evaluated.

A spline is linear in the values `y`. SciPy computes, once, the pieces of the splines through the
unit vectors; the pieces for `y` are a product with them. The coordinates `x` of the points are
constant.
"""

from __future__ import annotations

from typing import Any

import numpy
import scipy.interpolate

from ..backends.numpy.nested import holds_traced
from ..backends.numpy.traced import concrete
from ..numpy.creation import asarray
from .replacing import Wrapped, refuse

np: Any = numpy  # its type stubs do not know traced values
theirs: Any = scipy.interpolate


def __getattr__(name: str) -> Any:
    return getattr(theirs, name)


def __dir__() -> list[str]:
    return dir(theirs)


class _Pieces:
    """A piecewise polynomial. `units` has the coefficients, the highest power first, of the pieces
    for each unit vector: (order, piece, unit).
    """

    def __init__(self, breaks: Any, units: Any, y: Any, axis: int) -> None:
        self.x, self.units = breaks, units
        self.y, self.axis = np.moveaxis(y, axis, 0), axis % y.ndim

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = True) -> Any:
        plain = np.asarray(concrete(x), float)
        if extrapolate == "periodic":
            low, high = self.x[0], self.x[-1]
            x = x - (high - low) * np.floor((plain - low) / (high - low))
            plain = np.asarray(concrete(x), float)
        piece = np.clip(np.searchsorted(self.x, plain, "right") - 1, 0, len(self.x) - 2)
        near = asarray(x) - self.x[piece]
        near = np.reshape(near, (*near.shape, *(1,) * (self.y.ndim - 1)))
        out: Any = 0.0
        units = self.units
        for _ in range(nu):
            powers = np.arange(len(units) - 1, 0, -1.0)
            units = units[:-1] * np.reshape(powers, (-1, 1, 1))
        for unit in units:  # Horner's rule
            out = out * near + np.tensordot(unit[piece], self.y, 1)
        if not len(units):
            out = np.zeros(np.shape(near))
        if not extrapolate:
            beyond = (plain < self.x[0]) | (plain > self.x[-1])
            out = np.where(np.reshape(beyond, near.shape), np.nan, out)
        return np.moveaxis(out, range(plain.ndim), range(self.axis, self.axis + plain.ndim))


def _check(name: str, x: Any) -> Any:
    if holds_traced(x):
        refuse(f"interpolate.{name}", " in the coordinates x of the points")
    return np.asarray(x, float)


class CubicSpline(Wrapped):
    """`scipy.interpolate.CubicSpline`, with gradients for `y` and for where it is evaluated."""

    def __init__(
        self, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None
    ) -> None:
        self._traced = holds_traced(y)
        x = _check("CubicSpline", x)
        periodic = isinstance(bc_type, str) and bc_type == "periodic"
        self._extrapolate = extrapolate
        if self._extrapolate is None:
            self._extrapolate = "periodic" if periodic else True
        self._theirs = theirs.CubicSpline(x, concrete(asarray(y)), axis, bc_type, extrapolate)
        if self._traced:
            if periodic or not isinstance(bc_type, str):
                refuse(
                    "interpolate.CubicSpline", f" for y with bc_type={bc_type!r}",
                    "use bc_type 'not-a-knot', 'clamped' or 'natural'",
                )  # fmt: skip
            units = theirs.CubicSpline(x, np.eye(len(x)), 0, bc_type).c
            self._pieces = _Pieces(x, units, asarray(y), axis)

    def __getattr__(self, name: str) -> Any:
        if vars(self).get("_traced") and not name.startswith("__"):
            refuse(f"interpolate.CubicSpline.{name}", " for traced y", "call it with nu=")
        return super().__getattr__(name)

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        extrapolate = self._extrapolate if extrapolate is None else extrapolate
        if self._traced:
            return self._pieces(x, nu, extrapolate)
        return _smooth(self._theirs, x, nu, extrapolate)


def _smooth(spline: Any, x: Any, nu: int, extrapolate: Any) -> Any:
    """A plain spline at places that may be traced."""
    if not holds_traced(x):
        return spline(x, nu, extrapolate)
    breaks, c = spline.x, spline.c
    flat = np.reshape(c, (*c.shape[:2], -1))
    y = np.reshape(np.eye(flat.shape[2]), (flat.shape[2], *c.shape[2:]))
    values = _Pieces(breaks, flat, y, 0)(x, nu, extrapolate)
    axis, n = spline.axis, np.ndim(concrete(x))
    return np.moveaxis(values, range(n), range(axis, axis + n))


class interp1d(Wrapped):
    """`scipy.interpolate.interp1d`, with gradients for `y` and for where it is evaluated, for the
    kinds "linear", "slinear", "quadratic", "cubic", "nearest", "previous" and "next".
    """

    def __init__(
        self, x: Any, y: Any, kind: Any = "linear", axis: int = -1, copy: bool = True,
        bounds_error: Any = None, fill_value: Any = np.nan, assume_sorted: bool = False,
    ) -> None:  # fmt: skip
        x, y = _check("interp1d", x), asarray(y)
        self._traced = holds_traced(y)
        self._theirs = theirs.interp1d(
            x, concrete(y), kind, axis, copy, bounds_error, fill_value, assume_sorted
        )
        order = np.arange(len(x)) if assume_sorted else np.argsort(x, kind="mergesort")
        self._x, self._y = x[order], np.take(y, order, axis)
        self._axis, self._kind, self._fill = axis, kind, fill_value

    def __call__(self, x: Any) -> Any:
        if not self._traced and not holds_traced(x):
            return self._theirs(x)
        x = asarray(x)
        plain = np.asarray(concrete(x), float)
        self._theirs(plain)  # SciPy checks the bounds
        out = self._inside(x, plain)
        if isinstance(self._fill, str):
            return out
        low, high = self._fill if isinstance(self._fill, tuple) else (self._fill, self._fill)
        axis = self._axis % self._y.ndim
        shape = (*(1,) * axis, *plain.shape, *(1,) * (self._y.ndim - 1 - axis))
        below, above = (np.reshape(b, shape) for b in (plain < self._x[0], plain > self._x[-1]))
        return np.where(below, low, np.where(above, high, out))

    def _inside(self, x: Any, plain: Any) -> Any:
        kinds: dict[Any, int] = {"linear": 1, "slinear": 1, "quadratic": 2, "cubic": 3}
        if self._kind in kinds or isinstance(self._kind, int):
            k = kinds.get(self._kind, self._kind)
            spline = theirs.make_interp_spline(self._x, np.eye(len(self._x)), k)
            parts = [theirs.PPoly.from_spline((spline.t, c, k)) for c in spline.c.T]
            units = np.stack([part.c for part in parts], -1)
            # breaks that occur several times, at the ends, have empty pieces between them
            kept = np.diff(spline.t) > 0
            breaks = np.concatenate([spline.t[:-1][kept], spline.t[-1:]])
            return _Pieces(breaks, units[:, kept], self._y, self._axis)(x)
        if self._kind in ("nearest", "nearest-up", "previous", "next", "zero"):
            numbers = theirs.interp1d(
                self._x, np.arange(len(self._x)), self._kind, bounds_error=False,
                fill_value="extrapolate",
            )  # fmt: skip
            at = np.clip(numbers(plain), 0, len(self._x) - 1).astype(int)
            return np.take(self._y, at, self._axis % self._y.ndim)
        return refuse("interpolate.interp1d", f" with kind={self._kind!r}")


class PchipInterpolator(Wrapped):
    """`scipy.interpolate.PchipInterpolator`, with a gradient for where it is evaluated."""

    def __init__(self, x: Any, y: Any, axis: int = 0, extrapolate: Any = None) -> None:
        name = type(self).__name__
        if holds_traced(y):
            refuse(f"interpolate.{name}", " for y", "use isomorph.scipy.interpolate.CubicSpline")
        self._theirs = theirs.PchipInterpolator(_check(name, x), y, axis, extrapolate)

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        extrapolate = self._theirs.extrapolate if extrapolate is None else extrapolate
        return _smooth(self._theirs, x, nu, extrapolate)
