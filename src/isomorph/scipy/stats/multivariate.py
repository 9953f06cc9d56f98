"""Distributions of a vector."""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy
import scipy.special
import scipy.stats

from ...backends.numpy.nested import holds_traced
from ...backends.numpy.traced import Traced, concrete
from ...numpy.creation import asarray
from ..replacing import Wrapped, refuse
from .distribution import Frozen

__all__ = [
    "dirichlet",
    "multinomial",
    "multivariate_normal",
]

np: Any = numpy  # its type stubs do not know traced values
theirs: Any = scipy.stats
special: Any = scipy.special


class _Multivariate(Wrapped):
    """SciPy's distribution; its other methods are SciPy's own."""

    def __init__(self, distribution: Any) -> None:
        self._theirs = distribution

    def __call__(self, *args: Any, **kw: Any) -> Frozen:
        return Frozen(self, args, kw)


class _Normal(_Multivariate):
    def logpdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        if not any(map(holds_traced, (x, mean, cov))):
            return self._theirs.logpdf(x, mean, cov, allow_singular)
        # SciPy checks the arguments
        self._theirs.logpdf(*(concrete(asarray(v)) if v is not None else v for v in (x, mean, cov)),
                            allow_singular)  # fmt: skip
        x, mean, cov = _parameters(asarray(x), mean, cov)
        d = cov.shape[-1]
        x = x[None] if x.ndim == 0 else x
        if x.ndim == 1:
            x = x[:, None] if d == 1 else x[None, :]
        away = x - mean
        if allow_singular:
            y = _singular_logpdf(away, cov)
        else:
            lower = np.linalg.cholesky(cov)
            white = np.linalg.solve(lower, np.swapaxes(np.reshape(away, (-1, d)), 0, 1))
            square = np.reshape(np.sum(white * white, 0), away.shape[:-1])
            y = -0.5 * (d * log(2 * pi) + square) - np.sum(np.log(np.diagonal(lower)))
        return np.squeeze(y)

    def pdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        if not any(map(holds_traced, (x, mean, cov))):
            return self._theirs.pdf(x, mean, cov, allow_singular)
        return np.exp(self.logpdf(x, mean, cov, allow_singular))

    def entropy(self, mean: Any = None, cov: Any = 1) -> Any:
        if not any(map(holds_traced, (mean, cov))):
            return self._theirs.entropy(mean, cov)
        _, _, cov = _parameters(None, mean, cov)
        return 0.5 * (cov.shape[-1] * (1 + log(2 * pi)) + np.linalg.slogdet(cov)[1])


def _parameters(x: Any, mean: Any, cov: Any) -> tuple[Any, Any, Any]:
    """The mean as a vector and the covariance as a matrix, as SciPy reads them."""
    mean = None if mean is None else asarray(mean)
    cov = asarray(1.0 if cov is None else cov)
    if mean is not None:
        d = mean.size
    elif cov.ndim:
        d = cov.shape[0]
    else:
        d = 1 if x is None or x.ndim < 2 else x.shape[-1]
    if cov.ndim == 0:
        cov = cov * np.eye(d)
    elif cov.ndim == 1:
        cov = np.diag(cov)
    if cov.shape != (d, d):
        raise ValueError(
            f"isomorph.scipy.stats.multivariate_normal: needed a covariance of shape {(d, d)}, "
            f"got {cov.shape}"
        )
    return x, np.zeros(d) if mean is None else np.reshape(mean, (d,)), cov


def _singular_logpdf(away: Any, cov: Any) -> Any:
    """The density on the subspace that the covariance spans, and 0 outside of it."""
    if type(cov) is Traced:
        refuse("stats.multivariate_normal.logpdf", " for cov with allow_singular=True")
    sizes, vectors = np.linalg.eigh(cov)
    least = 1e6 * np.finfo(sizes.dtype).eps * np.max(np.abs(sizes))
    if np.min(sizes) < -least:
        raise ValueError("The input matrix must be symmetric positive semidefinite.")
    kept = sizes > least
    white = away @ (vectors[:, kept] / np.sqrt(sizes[kept]))
    known = log(2 * pi) * np.sum(kept) + np.sum(np.log(sizes[kept]))
    y = -0.5 * (known + np.sum(white * white, -1))
    outside = np.linalg.norm(concrete(away) @ vectors[:, ~kept], axis=-1) >= least
    return np.where(outside, -np.inf, y)


class _Dirichlet(_Multivariate):
    def logpdf(self, x: Any, alpha: Any) -> Any:
        if not holds_traced(x) and not holds_traced(alpha):
            return self._theirs.logpdf(x, alpha)
        x, alpha = asarray(x), asarray(alpha)
        self._theirs.logpdf(concrete(x), concrete(alpha))  # SciPy checks that x is on the simplex
        if x.shape[0] == alpha.shape[0] - 1:
            x = np.concatenate([x, 1 - np.sum(x, 0, keepdims=True)])
        alpha = np.reshape(alpha, alpha.shape + (1,) * (x.ndim - 1))
        scale = special.gammaln(np.sum(alpha)) - np.sum(special.gammaln(alpha))
        return scale + np.sum(special.xlogy(alpha - 1, x), 0)

    def pdf(self, x: Any, alpha: Any) -> Any:
        if not holds_traced(x) and not holds_traced(alpha):
            return self._theirs.pdf(x, alpha)
        return np.exp(self.logpdf(x, alpha))


class _Multinomial(_Multivariate):
    def logpmf(self, x: Any, n: Any, p: Any) -> Any:
        if not any(map(holds_traced, (x, n, p))):
            return self._theirs.logpmf(x, n, p)
        if holds_traced(x) or holds_traced(n):
            refuse("stats.multinomial.logpmf", " in the counts", "use iso.stop_gradient for them")
        x, n, p = np.asarray(x), np.asarray(n), asarray(p)
        last = 1 - np.sum(p[..., :-1], -1, keepdims=True)  # SciPy sets the last probability so
        p = np.concatenate([p[..., :-1], last], -1)
        ways = special.gammaln(n + 1.0) - np.sum(special.gammaln(x + 1.0), -1)
        y = ways + np.sum(special.xlogy(x, p), -1)
        return np.where(np.sum(x, -1) == n, y, -np.inf)

    def pmf(self, x: Any, n: Any, p: Any) -> Any:
        if not any(map(holds_traced, (x, n, p))):
            return self._theirs.pmf(x, n, p)
        return np.exp(self.logpmf(x, n, p))


multivariate_normal: Any = _Normal(theirs.multivariate_normal)
dirichlet: Any = _Dirichlet(theirs.dirichlet)
multinomial: Any = _Multinomial(theirs.multinomial)
