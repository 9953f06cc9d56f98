"""Solving and factorising, for stacks of real or complex matrices.

Where NumPy reads one triangle and assumes a Hermitian matrix (cholesky, eigh), the gradient is
Hermitian too. If a factorisation does not determine its vectors (their phases, or a basis of a null
space), they are differentiated for one fixed choice. The gradient is then correct for every result
that does not depend on the choice. The vectors of equal eigenvalues or singular values have no
derivative, and the gradient through them is inf or NaN; the gradient through the values alone is
finite.
"""

import numpy as np

from ..tape import composed, constant, rule
from ..traced import TRACED, concrete, is_traced, no_rule, plain, record
from .elementwise import conj
from .products import adjoint
from .reductions import others
from .shaping import arrayed

constant(np.linalg.matrix_rank)


def hermitian(x):
    return (x + adjoint(x)) / 2


def eye_like(x):
    """An identity matrix with the shape of the last two axes of x."""
    return np.eye(x.shape[-2], x.shape[-1], dtype=x.dtype)


def solve_right(a, b):
    """a b⁻¹"""
    return adjoint(np.linalg.solve(adjoint(b), adjoint(a)))


@rule(np.linalg.solve)
def solve(y, a, b):
    a, vector = arrayed(a), np.ndim(b) == 1

    def column(x):
        return x[..., None] if vector else x

    def back_b(g):
        d = np.linalg.solve(adjoint(a), column(g))
        return d[..., 0] if vector else d

    return lambda g: -column(back_b(g)) @ adjoint(column(y)), back_b


@rule(np.linalg.inv)
def inv(y, a):
    return (lambda g: -adjoint(y) @ g @ adjoint(y),)


def _near_singular(a):
    """Which matrices of a stack are singular in floating point."""
    if not a.size:
        return np.zeros(a.shape[:-2], bool)
    return np.linalg.cond(a, 1) * a.shape[-1] * np.finfo(a.dtype).eps > 1


def _adjugate_adjoint(a):
    """The gradient conj(d det / d a) of the determinant at singular matrices, where the usual
    formula det(a) inv(a)ᴴ is 0 times inf.
    """
    n = a.shape[-1]
    if not is_traced(a):
        u, s, v = np.linalg.svd(a)
        phase = np.linalg.det(u) * np.linalg.det(v)
        return conj(phase)[..., None, None] * (u * others(s)[..., None, :]) @ v
    # For higher orders, a polynomial in a (Faddeev and LeVerrier). Its derivatives are exact even
    # if singular values are equal or zero.
    m = eye = eye_like(a)
    for k in range(1, n):
        m = a @ m
        m = m - (np.trace(m, axis1=-2, axis2=-1) / k)[..., None, None] * eye
    return adjoint(m if n % 2 else -m)


@rule(np.linalg.det)
def det(y, a):
    def back(g):
        singular = _near_singular(concrete(a))[..., None, None]
        if not plain(singular).any():
            return (g * conj(y))[..., None, None] * adjoint(np.linalg.inv(a))
        safe = np.where(singular, eye_like(a), a)
        regular = conj(y)[..., None, None] * adjoint(np.linalg.inv(safe))
        return g[..., None, None] * np.where(singular, _adjugate_adjoint(a), regular)

    return (back,)


@rule(np.linalg.slogdet)
def slogdet(y, a):
    sign = y[0]

    def back(g):
        turn, size = g
        d = 0.0 if size is None else size
        if turn is not None and a.dtype.kind == "c":
            d = d - 1j * np.imag(np.conjugate(turn) * sign)
        return (np.expand_dims(d, (-2, -1)) * adjoint(np.linalg.inv(a)),)

    return back


@rule(np.linalg.cholesky)
def cholesky(y, a, *, upper=False):
    lower = adjoint(y) if upper else y

    def back(g):
        inner = np.tril(adjoint(lower) @ (adjoint(g) if upper else g))
        inner = hermitian(inner - 0.5 * inner * eye_like(inner))
        return hermitian(np.linalg.solve(adjoint(lower), solve_right(inner, lower)))

    return (back,)


def gaps(w):
    """w[j] - w[i], and 1 on the diagonal."""
    return w[..., None, :] - w[..., :, None] + np.eye(w.shape[-1], dtype=w.dtype)


def off_diagonal(x):
    return x * (1 - eye_like(x))


@rule(np.linalg.eigh)
def eigh(y, a, UPLO="L"):
    w, v = y

    def back(g):
        gw, gv = g
        if gv is None:
            return (hermitian((v * gw[..., None, :]) @ adjoint(v)),)
        inner = off_diagonal(adjoint(v) @ gv) / gaps(w)
        if gw is not None:
            inner = inner + gw[..., None, :] * eye_like(inner)
        return (hermitian(v @ inner @ adjoint(v)),)

    return back


TRACED[np.linalg.eigvalsh] = lambda a, UPLO="L": np.linalg.eigh(a, UPLO)[0]  # type: ignore


@rule(np.linalg.eig)
def eig(y, a):
    w, v = y

    def back(g):
        gw, gv = g
        inner = 0.0
        if gv is not None:
            turned = adjoint(v) @ gv
            along = np.real(np.diagonal(turned, 0, -2, -1))[
                ..., None, :
            ]  # vectors keep their length
            inner = off_diagonal(turned - adjoint(v) @ v * along) / conj(gaps(w))
        if gw is not None:
            inner = inner + gw[..., None, :] * eye_like(v)
        return (np.linalg.solve(adjoint(v), inner @ adjoint(v)),)

    return back


TRACED[np.linalg.eigvals] = lambda a: np.linalg.eig(a)[0]


def _narrow(full, g, k):
    """The first k of some orthonormal columns, and the gradient for them. It includes the gradient
    of the remaining columns, which must stay orthogonal to the first and turn with them."""
    first, rest = full[..., :k], full[..., k:]
    if g is None or not rest.shape[-1]:
        return first, g
    return first, g[..., :k] - rest @ (adjoint(g[..., k:]) @ first)


def factors(a, full_matrices, hermitian):
    return np.linalg.svd(a, full_matrices, True, hermitian)


@rule(factors)
def _factors(y, a, full_matrices, hermitian):
    k, phased = min(a.shape[-2:]), a.dtype.kind == "c"

    def back(grads):
        gu, gs, gv = grads
        u, gu = _narrow(y[0], gu, k)
        s = y[1]
        v, gv = _narrow(adjoint(y[2]), None if gv is None else adjoint(gv), k)
        inner = 0.0 if gs is None else gs[..., None, :] * np.eye(k, dtype=gs.dtype)
        outside = 0.0
        squares = gaps(s * s)
        if gu is not None:
            turned = adjoint(u) @ gu
            inner = inner + off_diagonal(turned - adjoint(turned)) / squares * s[..., None, :]
            if phased:  # by convention the phase belongs to u
                inner = inner + (turned - adjoint(turned)) * eye_like(turned) / (
                    2 * s[..., None, :]
                )
            if u.shape[-2] > k:
                outside = (gu - u @ turned) / s[..., None, :] @ adjoint(v)
        if gv is not None:
            turned = adjoint(v) @ gv
            inner = inner + s[..., :, None] * (off_diagonal(turned - adjoint(turned)) / squares)
            if v.shape[-2] > k:
                outside = outside + u @ adjoint((gv - v @ turned) / s[..., None, :])
        return (u @ inner @ adjoint(v) + outside,)

    return back


@composed(np.linalg.svd)
def svd(a, full_matrices=True, compute_uv=True, hermitian=False):
    return (
        record(factors, a, full_matrices, hermitian)
        if compute_uv
        else record(factors, a, False, hermitian)[1]
    )


TRACED[np.linalg.svdvals] = lambda x, /: np.linalg.svd(x, compute_uv=False)


def triangular(a, mode):
    return np.linalg.qr(a, mode)


@rule(triangular)
def _triangular(y, a, mode):
    m, n = a.shape[-2:]
    k = min(m, n)

    def back(grads):
        gq, gr = grads
        q, gq = _narrow(y[0], gq, k)
        r = y[1][..., :k, :]
        if gr is not None:
            gr = gr[..., :k, :]
        beyond = None
        if (
            n > m and gr is not None
        ):  # a = q [r₁ r₂]: the columns beyond the square part follow from q
            beyond = q @ gr[..., m:]
            gq = (0.0 if gq is None else gq) + q @ r[..., m:] @ adjoint(gr[..., m:])
        square, gr = r[..., :k], None if gr is None else gr[..., :k]
        inner = 0.0 if gr is None else gr @ adjoint(square)
        inner = inner if gq is None else inner - adjoint(q) @ gq
        upper = np.triu(inner)
        both = upper + adjoint(upper)
        both = q @ (both - 0.5 * both * eye_like(both))
        d = solve_right(both if gq is None else both + gq, adjoint(square))
        if n <= m:
            return (d,)
        return (np.concatenate([d, np.zeros_like(r[..., m:]) if beyond is None else beyond], -1),)

    return back


@composed(np.linalg.qr)
def qr(a, mode="reduced"):
    if mode == "r":
        return record(triangular, a, "reduced")[1]
    if mode not in ("reduced", "complete"):
        no_rule(np.linalg.qr, f" with mode={mode!r}")
    return record(triangular, a, mode)


def _pinv_back(a, p, g):
    """The pullback of the pseudo-inverse, at constant rank."""
    ph, gh = adjoint(p), adjoint(g)
    d = -ph @ g @ ph
    return d + (gh - a @ (p @ gh)) @ p @ ph + ph @ p @ (gh - (gh @ p) @ a)


@rule(np.linalg.pinv)
def pinv(y, a, rcond=None, hermitian=False, **kw):
    return (lambda g: _pinv_back(a, y, g),)


def solution(a, b, rcond=None):
    return np.linalg.lstsq(a, b, rcond)[0]


@rule(solution)
def _solution(y, a, b, rcond=None):
    def pseudo():
        eps = np.finfo(a.dtype).eps
        return np.linalg.pinv(a, max(a.shape) * eps if rcond is None else max(rcond, eps))

    def column(x):
        return x[:, None] if x.ndim == 1 else x

    return lambda g: _pinv_back(
        a, pseudo(), column(g) @ adjoint(column(b))
    ), lambda g: adjoint(pseudo()) @ g


@composed(np.linalg.lstsq)
def lstsq(a, b, rcond=None):
    a, b = arrayed(a), arrayed(b)
    _, residuals, rank, _ = np.linalg.lstsq(concrete(a), concrete(b), rcond)
    x = record(solution, a, b, rcond)
    if residuals.size:
        rest = b - a @ x
        residuals = np.atleast_1d(np.sum(np.real(rest * np.conjugate(rest)), 0))
    return x, residuals, rank, np.linalg.svd(a, compute_uv=False)


@composed(np.linalg.matrix_power)
def matrix_power(a, n):
    if n < 0:
        a, n = np.linalg.inv(a), -n
    out = None
    while n:
        if n % 2:
            out = a if out is None else out @ a
        n //= 2
        if n:
            a = a @ a
    return np.broadcast_to(eye_like(a), a.shape).copy() if out is None else out


@composed(np.linalg.multi_dot)
def multi_dot(arrays, *, out=None):
    arrays = [arrayed(a) for a in arrays]
    row, column = arrays[0].ndim == 1, arrays[-1].ndim == 1
    arrays[0] = np.atleast_2d(arrays[0])
    if column:
        arrays[-1] = arrays[-1][:, None]
    sizes = [a.shape[0] for a in arrays] + [arrays[-1].shape[1]]
    cheapest = {}

    def plan(i, j):
        """The lowest cost of the product of arrays i to j, and where to split it."""
        if i == j:
            return 0, i
        if (i, j) not in cheapest:
            cheapest[i, j] = min(
                (plan(i, k)[0] + plan(k + 1, j)[0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )
        return cheapest[i, j]

    def build(i, j):
        k = plan(i, j)[1]
        return arrays[i] if i == j else build(i, k) @ build(k + 1, j)

    y = build(0, len(arrays) - 1)
    return y[0, 0] if row and column else y[0] if row else y[:, 0] if column else y


@composed(np.linalg.tensorinv)
def tensorinv(a, ind=2):
    rows, columns = a.shape[:ind], a.shape[ind:]
    return np.reshape(np.linalg.inv(np.reshape(a, (-1, int(np.prod(columns))))), columns + rows)


@composed(np.linalg.tensorsolve)
def tensorsolve(a, b, axes=None):
    a, b = arrayed(a), arrayed(b)
    if axes is not None:
        axes = [i % a.ndim for i in axes]
        a = np.transpose(a, [i for i in range(a.ndim) if i not in axes] + axes)
    shape = a.shape[b.ndim :]
    return np.reshape(np.linalg.solve(np.reshape(a, (b.size, -1)), np.ravel(b)), shape)
