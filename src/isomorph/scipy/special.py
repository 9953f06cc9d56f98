"""`scipy.special`. Its ufuncs are SciPy's own; functions written in Python are replaced."""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy
import scipy.special

from ..backends.numpy.rules.special import special
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
    if b is not None:
        a, b = np.broadcast_arrays(a, b)
        a = np.where(concrete(b) == 0, -np.inf, a)  # a weight of 0 leaves the term out
    top = np.max(np.real(concrete(a)), axis=axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0.0)
    total = np.exp(a - top) if b is None else b * np.exp(a - top)
    total = np.sum(total, axis=axis, keepdims=True)
    sign = np.sign(concrete(total))
    if return_sign:
        total = total * sign
    with np.errstate(divide="ignore", invalid="ignore"):
        out = np.log(total) + top
    if not keepdims:
        axes = tuple(range(a.ndim)) if axis is None else axis
        out, sign = np.squeeze(out, axes), np.squeeze(sign, axes)
    return (out, sign) if return_sign else out


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
    y = special("gamma")(n + 1.0)
    return y if extend == "complex" else np.where(concrete(n) < 0, 0.0, y)


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
    return _spherical(theirs.spherical_jn, "jv", n, z, derivative)


@replaces(theirs.spherical_yn)
def spherical_yn(n: Any, z: Any, derivative: bool = False) -> Any:
    return _spherical(theirs.spherical_yn, "yv", n, z, derivative)


def _spherical(func: Any, name: str, n: Any, z: Any, derivative: bool) -> Any:
    """√(π/2z) times the Bessel function of order n + 1/2."""
    n = np.asarray(concrete(n))
    if derivative:
        refuse(f"special.{func.__name__}", " with derivative=True", "differentiate the function")
    return np.sqrt(pi / 2 / z) * special(name)(n + 0.5, z)
