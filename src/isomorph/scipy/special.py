"""`scipy.special`. Its ufuncs are SciPy's own; functions written in Python are replaced."""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy
import scipy.special

from ..backends.numpy.rules.elementwise import conj, nonzero
from ..backends.numpy.rules.special import special
from ..backends.numpy.tape import primitive, rule
from ..backends.numpy.traced import concrete
from .replacing import refuse, replaces

np: Any = numpy  # its type stubs do not know traced values
theirs: Any = scipy.special


def __getattr__(name: str) -> Any:
    return getattr(theirs, name)


def __dir__() -> list[str]:
    return dir(theirs)


@replaces(theirs.logsumexp)
def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    a = np.asarray(a) if not hasattr(a, "dtype") else a
    b = np.ones(()) if b is None else b
    a, b = np.broadcast_arrays(a, b)
    counted = np.where(concrete(b) == 0, -np.inf, concrete(a))  # a weight of 0 leaves a term out
    top = np.max(np.real(counted), axis=axis, keepdims=True, initial=-np.inf)
    a = np.where(top == -np.inf, concrete(a), a)  # without terms the result is constant in a
    top = np.where(np.isfinite(top), top, 0.0)
    total = np.sum(weighted_exp(b, a - top), axis=axis, keepdims=True)
    size = np.abs(total)
    sign = total / nonzero(size) if total.dtype.kind == "c" else np.sign(concrete(total))
    with np.errstate(divide="ignore", invalid="ignore"):
        out = np.log(size if return_sign else total) + top
    if not keepdims:
        axes = tuple(range(a.ndim)) if axis is None else axis
        out, sign = np.squeeze(out, axes), np.squeeze(sign, axes)
    return (out, sign) if return_sign else out


@primitive
def weighted_exp(b: Any, a: Any) -> Any:
    """b·eᵃ, and 0 where b is 0, even if a is infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(concrete(b) == 0, 0.0, b * np.exp(a))


@rule(weighted_exp)
def _(y: Any, b: Any, a: Any) -> tuple:
    def back(g: Any) -> Any:
        with np.errstate(over="ignore", invalid="ignore"):
            return g * conj(np.exp(a))

    return back, lambda g: g * conj(y)


@replaces(theirs.softmax)
def softmax(x: Any, axis: Any = None) -> Any:
    y = np.exp(x - np.max(concrete(x), axis=axis, keepdims=True))
    return y / np.sum(y, axis=axis, keepdims=True)


@replaces(theirs.log_softmax)
def log_softmax(x: Any, axis: Any = None) -> Any:
    y = x - np.max(concrete(x), axis=axis, keepdims=True)
    return y - np.log(np.sum(np.exp(y), axis=axis, keepdims=True))


@replaces(theirs.zeta)
def zeta(x: Any, q: Any = None, out: Any = None) -> Any:
    return special("_zeta")(x, 1.0 if q is None else q)


@replaces(theirs.polygamma)
def polygamma(n: Any, x: Any) -> Any:
    order = np.asarray(concrete(n))
    scale = (-1.0) ** (order + 1) * theirs.gamma(order + 1.0)
    higher = scale * special("_zeta")(np.maximum(order, 1) + 1.0, x)
    return np.where(order == 0, special("psi")(x), higher)


@replaces(theirs.multigammaln)
def multigammaln(a: Any, d: int) -> Any:
    if numpy.any(concrete(a) <= 0.5 * (d - 1)):
        raise ValueError(f"condition a ({concrete(a)}) > 0.5 * (d-1) ({0.5 * (d - 1)}) not met")
    gammaln = special("gammaln")
    terms = sum(gammaln(a - 0.5 * i) for i in range(d))
    return terms + d * (d - 1) * 0.25 * log(pi)


@replaces(theirs.factorial)
def factorial(n: Any, exact: bool = False, extend: str = "zero") -> Any:
    if exact:
        refuse("special.factorial", " with exact=True", "use exact=False")
    if extend == "complex":
        return special("gamma")(n + 1.0)
    below = concrete(n) < 0
    return np.where(below, 0.0, special("gamma")(np.where(below, 0.0, n) + 1.0))


@replaces(theirs.comb)
def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:
    if exact:
        refuse("special.comb", " with exact=True", "use exact=False")
    if repetition:
        return comb(N + k - 1, k)
    inside = (concrete(k) <= concrete(N)) & (concrete(N) >= 0) & (concrete(k) >= 0)
    return np.where(inside, special("binom")(N, k), 0.0)


@replaces(theirs.spherical_jn)
def spherical_jn(n: Any, z: Any, derivative: bool = False) -> Any:
    return _spherical("jn", n, z, derivative)


@replaces(theirs.spherical_yn)
def spherical_yn(n: Any, z: Any, derivative: bool = False) -> Any:
    return _spherical("yn", n, z, derivative)


def _spherical(kind: str, n: Any, z: Any, derivative: bool) -> Any:
    n, z = np.broadcast_arrays(np.asarray(concrete(n)), z)
    return _spherical_slope(kind, n, z) if derivative else spherical_bessel(kind, n, z)


@primitive
def spherical_bessel(kind: str, n: Any, z: Any) -> Any:
    """The spherical Bessel function jₙ or yₙ."""
    return getattr(theirs, f"spherical_{kind}")(n, z)


@rule(spherical_bessel)
def _(y: Any, kind: str, n: Any, z: Any) -> tuple:
    return None, None, lambda g: g * conj(_spherical_slope(kind, n, z))


def _spherical_slope(kind: str, n: Any, z: Any) -> Any:
    """(n·f(n − 1) − (n + 1)·f(n + 1)) / (2n + 1), which has no division by z."""
    below = n * spherical_bessel(kind, np.maximum(n - 1, 0), z)
    above = (n + 1) * spherical_bessel(kind, n + 1, z)
    return (np.where(n == 0, 0.0, below) - above) / (2 * n + 1)
