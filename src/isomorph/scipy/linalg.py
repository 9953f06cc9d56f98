"""`scipy.linalg`: solving, factorising and functions of matrices, with gradients."""

from __future__ import annotations

from typing import Any

import numpy
import scipy.linalg

from .. import linalg
from ..backends.numpy import backend
from ..backends.numpy.rules.elementwise import conj
from ..backends.numpy.rules.products import adjoint
from ..backends.numpy.tape import primitive, rule
from ..backends.numpy.traced import concrete
from ..linalg.functions import smooth_function
from ..linalg.solving import sylvester
from ..numpy.creation import asarray
from .replacing import refuse, replaces

np: Any = numpy  # its type stubs do not know traced values
theirs: Any = scipy.linalg


def __getattr__(name: str) -> Any:
    return getattr(theirs, name)


def __dir__() -> list[str]:
    return dir(theirs)


def _columns(x: Any) -> Any:
    return x[:, None] if x.ndim == 1 else x


# ---- solving


@replaces(theirs.solve)
def solve(
    a: Any, b: Any, lower: bool = False, overwrite_a: bool = False, overwrite_b: bool = False,
    check_finite: bool = True, assume_a: Any = None, transposed: bool = False,
) -> Any:  # fmt: skip
    a, b = asarray(a), asarray(b)
    if assume_a in ("sym", "symmetric", "her", "hermitian", "pos", "positive definite"):
        flip = adjoint if assume_a[:3] in ("her", "pos") else _transposed
        a = _mirrored(a, lower, flip)
    elif assume_a not in (None, "gen", "general"):
        refuse("linalg.solve", f" with assume_a={assume_a!r}", "use assume_a='gen'")
    return np.linalg.solve(_transposed(a) if transposed else a, b)


def _mirrored(a: Any, lower: bool, flip: Any) -> Any:
    """The whole matrix of which SciPy reads one triangle."""
    half = np.tril(a) if lower else np.triu(a)
    return half + flip(half) - half * np.eye(a.shape[-1])


def _transposed(x: Any) -> Any:
    return np.swapaxes(x, -1, -2)


@primitive
def _triangular(a: Any, b: Any, trans: str, lower: bool) -> Any:
    return theirs.solve_triangular(a, b, trans, lower)


@rule(_triangular)
def _(y, a, b, trans, lower):
    # for the conjugate transpose of the matrix, and of its conjugate where SciPy has no such option
    def back_b(g):
        if trans == "N":
            return _triangular(a, g, "C", lower)
        return _triangular(a if trans == "C" else conj(a), g, "N", lower)

    def back_a(g):
        outer = -_columns(back_b(g)) @ adjoint(_columns(y))
        outer = outer if trans == "N" else _transposed(outer)
        outer = conj(outer) if trans == "C" else outer
        return np.tril(outer) if lower else np.triu(outer)

    return back_a, back_b


@replaces(theirs.solve_triangular)
def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False,
    overwrite_b: bool = False, check_finite: bool = True,
) -> Any:  # fmt: skip
    a, b = asarray(a), asarray(b)
    word = {0: "N", 1: "T", 2: "C"}.get(trans, trans)
    if unit_diagonal:
        n = a.shape[-1]
        a = a * (1 - np.eye(n)) + np.eye(n)
    if a.ndim > 2:
        refuse("linalg.solve_triangular", " of stacked matrices", "use numpy.linalg.solve")
    return _triangular(a, b, word, lower)


@replaces(theirs.solve_banded)
def solve_banded(
    l_and_u: Any, ab: Any, b: Any, overwrite_ab: bool = False, overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:  # fmt: skip
    low, up = l_and_u
    ab, b = asarray(ab), asarray(b)
    n = ab.shape[-1]
    rows, columns = np.indices((n, n))
    band = up + rows - columns
    inside = (band >= 0) & (band <= low + up)
    full = np.where(inside, ab[np.clip(band, 0, low + up), columns], 0.0)
    return np.linalg.solve(full, b)


@replaces(theirs.solve_toeplitz)
def solve_toeplitz(c_or_cr: Any, b: Any, check_finite: bool = True) -> Any:
    pair = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr,)
    return np.linalg.solve(toeplitz(*pair), asarray(b))


@replaces(theirs.solve_sylvester)
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    dtype = np.result_type(float, *(asarray(x).dtype for x in (a, b, q)))
    a, b, q = (asarray(x, dtype) for x in (a, b, q))
    return sylvester(backend, a, b, q, theirs.solve_sylvester)


@replaces(theirs.solve_continuous_lyapunov)
def solve_continuous_lyapunov(a: Any, q: Any) -> Any:
    return solve_sylvester(a, adjoint(asarray(a)), q)


@replaces(theirs.solve_discrete_lyapunov)
def solve_discrete_lyapunov(a: Any, q: Any, method: Any = None) -> Any:
    a, q = asarray(a), asarray(q)
    n = a.shape[0]
    x = np.linalg.solve(np.eye(n * n) - np.kron(a, conj(a)), np.reshape(q, -1))
    return np.reshape(x, q.shape)


@replaces(theirs.lstsq)
def lstsq(a: Any, b: Any, cond: Any = None, *args: Any, **kw: Any) -> Any:
    a = asarray(a)
    # SciPy's default, which does not depend on the shape as NumPy's does
    least = np.finfo(a.dtype if a.dtype.kind in "fc" else float).eps if cond is None else cond
    return np.linalg.lstsq(a, asarray(b), rcond=least)


@replaces(theirs.inv)
def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True, **kw: Any) -> Any:
    if kw.get("assume_a") not in (None, "gen", "general"):
        refuse("linalg.inv", f" with assume_a={kw['assume_a']!r}", "use assume_a='gen'")
    return np.linalg.inv(asarray(a))


@replaces(theirs.det)
def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    return np.linalg.det(asarray(a))


@replaces(theirs.pinv)
def pinv(
    a: Any, *, atol: Any = None, rtol: Any = None, return_rank: bool = False,
    check_finite: bool = True,
) -> Any:  # fmt: skip
    a = asarray(a)
    largest = np.linalg.norm(concrete(a), 2, (-2, -1))
    relative = max(a.shape[-2:]) * np.finfo(a.dtype).eps if rtol is None else rtol
    least = (0.0 if atol is None else atol) + relative * largest
    y = np.linalg.pinv(a, least / largest)
    return (y, np.linalg.matrix_rank(concrete(a), least)) if return_rank else y


@replaces(theirs.norm)
def norm(
    a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True
) -> Any:
    return np.linalg.norm(asarray(a), ord, axis, keepdims)


# ---- factorising


@replaces(theirs.cholesky)
def cholesky(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    a = asarray(a)
    # NumPy reads the lower triangle, SciPy the one that it returns
    y = np.linalg.cholesky(a if lower else adjoint(a))
    return y if lower else adjoint(y)


@replaces(theirs.cho_factor)
def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    return cholesky(a, lower), lower


def cho_solve(
    c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """`scipy.linalg.cho_solve`."""
    return _cho_solve(c_and_lower[0], b, c_and_lower[1])


@replaces(lambda c, b, lower: theirs.cho_solve((c, lower), b))
def _cho_solve(c: Any, b: Any, lower: bool) -> Any:
    c, b = asarray(c), asarray(b)
    c = np.tril(c) if lower else np.triu(c)
    first, second = ("N", "C") if lower else ("C", "N")
    return _triangular(c, _triangular(c, b, first, lower), second, lower)


@replaces(theirs.eigh)
def eigh(
    a: Any, b: Any = None, *, lower: bool = True, eigvals_only: bool = False, **kw: Any
) -> Any:
    a = asarray(a)
    if kw.get("subset_by_index") is not None or kw.get("subset_by_value") is not None:
        refuse("linalg.eigh", " with a subset", "take it from all eigenvalues")
    if kw.get("type", 1) != 1:
        refuse("linalg.eigh", f" with type={kw['type']}", "use type=1")
    if b is None:
        w, v = np.linalg.eigh(a, "L" if lower else "U")
        return w if eigvals_only else (w, v)
    b = asarray(b)
    half = np.linalg.cholesky(b if lower else adjoint(b))  # a x = w b x, as a problem for half x
    left = np.linalg.solve(half, _mirrored(a, lower, adjoint))
    w, v = np.linalg.eigh(adjoint(np.linalg.solve(half, adjoint(left))))
    return w if eigvals_only else (w, np.linalg.solve(adjoint(half), v))


@replaces(theirs.eigvalsh)
def eigvalsh(a: Any, b: Any = None, *, lower: bool = True, **kw: Any) -> Any:
    return eigh(a, b, lower=lower, eigvals_only=True, **kw)


@replaces(theirs.eig)
def eig(a: Any, b: Any = None, left: bool = False, right: bool = True, **kw: Any) -> Any:
    if b is not None or left or kw.get("homogeneous_eigvals"):
        refuse("linalg.eig", " with b=, left= or homogeneous_eigvals=")
    w, v = np.linalg.eig(asarray(a))
    w = w.astype(np.result_type(w.dtype, np.complex64))
    return (w, v) if right else w


@replaces(theirs.eigvals)
def eigvals(a: Any, b: Any = None, **kw: Any) -> Any:
    return eig(a, b, right=False, **kw)


@replaces(theirs.qr)
def qr(
    a: Any, overwrite_a: bool = False, lwork: Any = None, mode: str = "full",
    pivoting: bool = False, check_finite: bool = True,
) -> Any:  # fmt: skip
    a = asarray(a)
    if pivoting or mode not in ("full", "r", "economic"):
        refuse("linalg.qr", f" with pivoting={pivoting}, mode={mode!r}", "use mode='economic'")
    if mode == "full" and a.shape[-2] > a.shape[-1]:
        return np.linalg.qr(a, "complete")
    if mode == "r":
        r = np.linalg.qr(a, "r")
        missing = max(a.shape[-2] - r.shape[-2], 0)
        return (np.pad(r, [(0, 0)] * (r.ndim - 2) + [(0, missing), (0, 0)]),)
    return tuple(np.linalg.qr(a, "reduced"))


@replaces(theirs.svd)
def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, overwrite_a: bool = False,
    check_finite: bool = True, lapack_driver: str = "gesdd",
) -> Any:  # fmt: skip
    y = np.linalg.svd(asarray(a), full_matrices, compute_uv)
    return tuple(y) if compute_uv else y


@replaces(theirs.svdvals)
def svdvals(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    return np.linalg.svd(asarray(a), compute_uv=False)


@replaces(theirs.polar)
def polar(a: Any, side: str = "right") -> Any:
    return linalg.polar(asarray(a), side)


# ---- functions of matrices: SciPy's values, with the rules of `iso.linalg`


def _function(values: Any, a: Any) -> Any:
    """A smooth function of matrices."""
    return smooth_function(f"linalg.{values.__name__}", backend, values, asarray(a))


@primitive
def _regular(a: Any) -> Any:
    """The same matrices; their gradient is NaN if an eigenvalue is 0."""
    return np.array(a)


@rule(_regular)
def _(y, a):
    least = np.linalg.svd(concrete(a), compute_uv=False)
    rounding = a.shape[-1] * np.finfo(least.dtype).eps
    singular = np.min(least, -1) <= rounding * np.max(least, -1)
    return (lambda g: np.where(singular[..., None, None], np.nan, g),)


@replaces(theirs.expm)
def expm(A: Any) -> Any:
    return _function(theirs.expm, A)


@replaces(theirs.logm)
def logm(A: Any, disp: Any = None) -> Any:
    a = asarray(A)
    if a.dtype.kind != "c" and theirs.logm(concrete(a)).dtype.kind == "c":
        # they are on the branch cut: rounding decides on which side the rule would compute
        refuse(
            "linalg.logm", " of a real matrix with negative eigenvalues",
            "write logm(-1j * A) + 0.5j * pi * eye(n)",
        )  # fmt: skip
    return _function(theirs.logm, _regular(a))


@primitive
def _sqrtm(a: Any) -> Any:
    return theirs.sqrtm(a)


@rule(_sqrtm)
def _(y, a):
    # by the root itself, which may be on either side of the branch cut
    return (lambda g: solve_sylvester(adjoint(y), adjoint(y), g),)


@replaces(theirs.sqrtm)
def sqrtm(A: Any, disp: Any = None, blocksize: Any = None) -> Any:
    return _sqrtm(_regular(asarray(A)))


def _of_exponentials(name: str, formula: Any) -> Any:
    def function(A: Any) -> Any:
        A = asarray(A)
        return formula(A)

    return replaces(getattr(theirs, name))(function)


sinhm = _of_exponentials("sinhm", lambda a: (expm(a) - expm(-a)) / 2)
coshm = _of_exponentials("coshm", lambda a: (expm(a) + expm(-a)) / 2)
tanhm = _of_exponentials("tanhm", lambda a: np.linalg.solve(coshm(a), sinhm(a)))
cosm = _of_exponentials("cosm", lambda a: _real_of(a, (expm(1j * a) + expm(-1j * a)) / 2))
sinm = _of_exponentials("sinm", lambda a: _real_of(a, (expm(1j * a) - expm(-1j * a)) / 2j))


def _real_of(a: Any, y: Any) -> Any:
    return y if a.dtype.kind == "c" else np.real(y)


# ---- matrices made of numbers


@replaces(theirs.block_diag)
def block_diag(*arrs: Any) -> Any:
    return linalg.block_diag(*(np.atleast_2d(asarray(a)) for a in arrs))


@replaces(theirs.toeplitz)
def toeplitz(c: Any, r: Any = None) -> Any:
    c = np.atleast_1d(asarray(c))
    return linalg.toeplitz(c, None if r is None else np.atleast_1d(asarray(r)))


@replaces(theirs.hankel)
def hankel(c: Any, r: Any = None) -> Any:
    c = np.ravel(asarray(c))
    r = np.zeros(c.size, c.dtype) if r is None else np.ravel(asarray(r))
    return np.concatenate([c, r[1:]])[np.arange(c.size)[:, None] + np.arange(r.size)]


@replaces(theirs.circulant)
def circulant(c: Any) -> Any:
    c = asarray(c)
    n = c.shape[-1]
    return c[..., (np.arange(n)[:, None] - np.arange(n)) % n]
