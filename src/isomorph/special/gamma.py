"""The gamma function's family: gamma, digamma, zeta, beta, and the incomplete functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..meanings.special import beta as beta_meaning
from ..meanings.special import gamma as meaning
from ..meanings.special import incomplete, incomplete_beta
from .calls import elementwise

if TYPE_CHECKING:
    from ..types.array_types import A


def gamma(x: A, /) -> A:
    """Γ(x), which is (x − 1)! for whole x; NaN at negative whole numbers.

    >>> iso.special.gamma(np.array([0.5, 5.0])).round(6)
    array([ 1.772454, 24.      ])
    """
    return elementwise("gamma", meaning.gamma, x)


def gammaln(x: A, /) -> A:
    """log |Γ(x)|.

    >>> iso.special.gammaln(np.array([1.0, 1e3])).round(6)
    array([   0.      , 5905.220423])
    """
    return elementwise("gammaln", meaning.gammaln, x)


def digamma(x: A, /) -> A:
    """The derivative of log Γ(x).

    >>> iso.special.digamma(np.array([1.0, 10.0])).round(6)
    array([-0.577216,  2.251753])
    """
    return elementwise("digamma", meaning.digamma, x)


def polygamma(n: Any, x: A, /) -> A:
    """The derivative number n of digamma, for whole n; it has no derivative in n.

    >>> iso.special.polygamma(1, np.array([1.0])).round(6)
    array([1.644934])
    """
    return elementwise("polygamma", meaning.polygamma, n, x)


def zeta(x: A, q: Any = 1.0, /) -> A:
    """Hurwitz' Σ (k + q)^(−x) over k = 0, 1, …; Riemann's zeta function for q = 1. It has no
    derivative in x.

    >>> iso.special.zeta(np.array([2.0, 4.0])).round(6)
    array([1.644934, 1.082323])
    """
    return elementwise("zeta", meaning.zeta, x, q)


def multigammaln(a: A, d: int, /) -> A:
    """The logarithm of the multivariate gamma function of dimension d.

    >>> iso.special.multigammaln(np.array([3.0]), 2).round(6)
    array([1.550195])
    """
    if not isinstance(d, int) or d < 1:
        raise ValueError(f"multigammaln: needed a dimension d of at least 1, got {d!r}")
    return elementwise("multigammaln", lambda xp, a: meaning.multigammaln(xp, a, d), a)


def beta(a: A, b: Any, /) -> A:
    """Γ(a)·Γ(b) / Γ(a + b).

    >>> iso.special.beta(np.array([2.0]), 3.0).round(6)
    array([0.083333])
    """
    return elementwise("beta", beta_meaning.beta, a, b)


def betaln(a: A, b: Any, /) -> A:
    """log |beta(a, b)|.

    >>> iso.special.betaln(np.array([1e3]), 1e3).round(6)
    array([-1388.482602])
    """
    return elementwise("betaln", beta_meaning.betaln, a, b)


def binom(n: A, k: Any, /) -> A:
    """The binomial coefficient of real n and k.

    >>> iso.special.binom(np.array([5.0, 2.5]), 2.0)
    array([10.   ,  1.875])
    """
    return elementwise("binom", beta_meaning.binom, n, k)


def gammainc(a: Any, x: A, /) -> A:
    """The regularized lower incomplete gamma function: the probability that a gamma variable of
    shape a is at most x.

    >>> iso.special.gammainc(2.0, np.array([1.0, 10.0])).round(6)
    array([0.264241, 0.999501])
    """
    return elementwise("gammainc", incomplete.gammainc, a, x)


def gammaincc(a: Any, x: A, /) -> A:
    """1 − gammainc(a, x), without cancellation.

    >>> iso.special.gammaincc(2.0, np.array([1.0, 10.0])).round(6)
    array([7.35759e-01, 4.99000e-04])
    """
    return elementwise("gammaincc", incomplete.gammaincc, a, x)


def betainc(a: Any, b: Any, x: A, /) -> A:
    """The regularized incomplete beta function: the probability that a beta variable of shapes a
    and b is at most x.

    >>> iso.special.betainc(2.0, 3.0, np.array([0.1, 0.5])).round(6)
    array([0.0523, 0.6875])
    """
    return elementwise("betainc", incomplete_beta.betainc, a, b, x)
