"""Solutions of linear equations: with triangles and Cholesky factors, by least squares, and of
Sylvester's equation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from ..core.dispatch import backend_of
from ..core.dtypes import index_dtype
from ..gradients.custom import ruled
from .arguments import adjoint, alike, eye_of, finite_part, marked, matrices, right_hand, square

if TYPE_CHECKING:
    from ..types.array_types import A

T = TypeVar("T")
TRANS = {0: "N", 1: "T", 2: "C", "N": "N", "T": "T", "C": "C"}
# Sylvester's equation as one system for all elements, up to this many: exact for all matrices, but
# its cost grows with the cube of this number.
AS_ONE = 400


class LeastSquares(NamedTuple, Generic[T]):
    """The result of `lstsq`."""

    x: T
    residuals: T
    rank: T
    singular_values: T


def solve_triangular(
    a: A, b: A, /, *, lower: bool = False, trans: int | str = 0, unit_diagonal: bool = False
) -> A:
    """x with op(a) @ x = b, for triangular `a` of shape [..., n, n]; the other triangle is not
    read.

    `b` is one vector [n], or matrices [..., n, k]; batches broadcast. `trans` is 0 or "N" for `a`
    itself, 1 or "T" for its transpose, 2 or "C" for the conjugate transpose; `lower` always speaks
    of `a`. With `unit_diagonal` the diagonal is taken as 1, and not read. A zero on the diagonal
    raises on NumPy, and gives inf or NaN elsewhere. A NaN in the triangle gives NaN in the rows
    that need it, perhaps in others too, and raises nowhere.

    >>> iso.linalg.solve_triangular(np.array([[2.0, 1.0], [9.0, 4.0]]), np.array([4.0, 8.0]))
    array([1., 2.])
    """
    name = "linalg.solve_triangular"
    xp = square(name, "a", a)
    backend_of(a, b)
    if type(trans) not in (int, str) or trans not in TRANS:
        raise ValueError(f'{name}: needed trans as 0, 1, 2, "N", "T" or "C", got {trans!r}')
    right, is_vector = right_hand(name, xp, a.shape[-1], b)
    left, right = alike(name, xp, a, right)
    if 0 in right.shape or 0 in left.shape:
        x = right
    else:
        x = xp.solve_triangular(left, right, bool(lower), TRANS[trans], bool(unit_diagonal))
    return x[..., 0] if is_vector else x


def cho_factor(a: A, /, *, lower: bool = False) -> tuple[A, bool]:
    """The Cholesky factor of Hermitian matrices [..., n, n] and whether it is lower, for
    `cho_solve`: an upper c with cᴴ @ c = a, or a lower one with c @ cᴴ = a.

    Only this triangle of `a` is read, and the other triangle of the factor is 0. The gradient is
    Hermitian. A matrix that is not positive definite does as in `cholesky`: it raises, or
    gives NaN.

    >>> iso.linalg.cho_factor(np.array([[4.0, 2.0], [2.0, 5.0]]), lower=True)
    (array([[2., 0.],
           [1., 2.]]), True)
    """
    xp = square("linalg.cho_factor", "a", a)
    return xp.linalg.cholesky(a, upper=not lower), bool(lower)


def cho_solve(factor: tuple[A, bool], b: A, /) -> A:
    """x with a @ x = b, for the factor of `a` that `cho_factor` returns.

    `b` is one vector [n], or matrices [..., n, k]; batches broadcast.

    >>> c = iso.linalg.cho_factor(np.array([[4.0, 2.0], [2.0, 5.0]]))
    >>> iso.linalg.cho_solve(c, np.array([8.0, 12.0]))
    array([1., 2.])
    """
    if not isinstance(factor, tuple) or len(factor) != 2:
        raise TypeError(
            f"linalg.cho_solve: needed (factor, lower), as cho_factor returns them, got a "
            f"{type(factor).__name__}"
        )
    c, lower = factor
    xp = square("linalg.cho_solve", "the factor", c)
    backend_of(c, b)
    right, is_vector = right_hand("linalg.cho_solve", xp, c.shape[-1], b)
    first, second = (0, 2) if lower else (2, 0)
    half = solve_triangular(c, right, lower=lower, trans=first)
    x: Any = solve_triangular(c, half, lower=lower, trans=second)
    return x[..., 0] if is_vector else x


def lstsq(a: A, b: A, /, rcond: float | None = None) -> LeastSquares[A]:
    """x with the least |a @ x - b|, and the shortest of these if there are several; `a` has the
    shape [..., m, n], `b` is one vector [m] or matrices [..., m, k].

    Returns x; the sums of squares of a @ x - b, one for each column of `b`; the rank of `a`; and
    its singular values. A singular value up to `rcond` times the largest counts as zero; without
    `rcond`, up to max(m, n) times the rounding error. The residuals are there for every rank. The
    gradient is that at constant rank, as for the pseudo-inverse.

    >>> found = iso.linalg.lstsq(np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), np.arange(3.0))
    >>> found.x.round(9) + 0.0
    array([0., 1.])
    """
    name = "linalg.lstsq"
    xp = matrices(name, "a", a)
    backend_of(a, b)
    m, n = a.shape[-2:]
    right, is_vector = right_hand(name, xp, m, b)
    left, right = alike(name, xp, a, right)
    cut = max(m, n) * float(xp.finfo(left.dtype).eps) if rcond is None else rcond
    finite, safe = finite_part(xp, left)
    values = marked(xp, finite, xp.linalg.svdvals(safe), 1)
    least = xp.stop_gradient(values, False)[..., :1] * cut
    rank = xp.sum(xp.astype(xp.stop_gradient(values, False) > least, index_dtype(xp)), axis=-1)
    x = _least(xp, left, right, cut)
    rest = right - xp.matmul(left, x)
    sizes = xp.real(rest * xp.conj(rest)) if xp.is_complex(rest.dtype) else rest * rest
    residuals = xp.sum(sizes, axis=-2)
    if is_vector:
        x, residuals = x[..., 0], residuals[..., 0]
    return LeastSquares(x, residuals, rank, values)


def _least(xp: Any, a: Any, b: Any, rcond: float) -> Any:
    """The shortest x, with the derivative of the pseudo-inverse at constant rank (Golub and
    Pereyra).
    """
    if 0 in a.shape or 0 in b.shape:
        return xp.matmul(adjoint(xp, a), b)  # zeros, which depend on nothing

    def func(a: Any, b: Any) -> Any:
        a, b = (xp.stop_gradient(x, False) for x in (a, b))
        finite, a = finite_part(xp, a)
        u, s, vh = xp.linalg.svd(a, full_matrices=False)
        kept = s > s[..., :1] * rcond
        one = xp.ones_like(s)
        scale = xp.where(kept, 1 / xp.where(kept, s, one), xp.zeros_like(s))
        scale = scale if scale.dtype == a.dtype else xp.astype(scale, a.dtype)
        parts = scale[..., :, None] * xp.matmul(adjoint(xp, u), b)
        return marked(xp, finite, xp.matmul(adjoint(xp, vh), parts), 2)

    def forth(a: Any, b: Any) -> tuple[Any, Any]:
        return func(a, b), (a, b)

    def back(given: Any, grad: Any) -> tuple[Any, Any]:
        a, b = given
        finite, safe = finite_part(xp, a)
        p = marked(xp, finite, xp.linalg.pinv(safe, rtol=rcond), 2)
        ph = adjoint(xp, p)
        x = xp.matmul(p, b)
        rest = b - xp.matmul(a, x)
        by_b = xp.matmul(ph, grad)
        by_a = xp.matmul(rest, adjoint(xp, xp.matmul(p, by_b)))
        by_a = by_a - xp.matmul(by_b, adjoint(xp, x))
        free = grad - xp.matmul(p, xp.matmul(a, grad))
        return by_a + xp.matmul(xp.matmul(ph, x), adjoint(xp, free)), by_b

    return ruled("linalg.lstsq", func, forth, back)(a, b)


def solve_sylvester(a: A, b: A, q: A, /) -> A:
    """x with a @ x + x @ b = q, for `a` of shape [..., m, m], `b` of [..., n, n] and `q` of
    [..., m, n]. Batches broadcast.

    There is one solution if no eigenvalue of `a` is the negative of one of `b`; otherwise the
    result is that of the framework's `solve` for a singular matrix. Up to 400 elements are found
    by one linear system; more by the eigenvectors of `b`, so `b` must have a full set of them.

    >>> iso.linalg.solve_sylvester(np.eye(2), np.array([[1.0]]), np.array([[2.0], [4.0]]))
    array([[1.],
           [2.]])
    """
    name = "linalg.solve_sylvester"
    xp = square(name, "a", a)
    square(name, "b", b)
    matrices(name, "q", q)
    backend_of(a, b, q)
    wanted = (a.shape[-1], b.shape[-1])
    if tuple(q.shape)[-2:] != wanted:
        raise ValueError(
            f"{name}: needed q with {wanted[0]} rows and {wanted[1]} columns, like a and b, got "
            f"shape {tuple(q.shape)}"
        )
    return sylvester(xp, *alike(name, xp, a, b, q))


def sylvester(xp: Any, a: Any, b: Any, q: Any, values: Callable[..., Any] | None = None) -> Any:
    """The solution with its derivative; `values(a, b, q)` solves the equation for plain matrices,
    if given.
    """
    if 0 in q.shape:
        return q

    def func(a: Any, b: Any, q: Any) -> Any:
        a, b, q = (xp.stop_gradient(x, False) for x in (a, b, q))
        if values is not None:
            return values(a, b, q)
        finite = finite_part(xp, a)[0] & finite_part(xp, b)[0]
        a, b = (xp.where(finite[..., None, None], x, eye_of(xp, x)) for x in (a, b))
        m, n = q.shape[-2:]
        if m * n <= AS_ONE:
            x = _as_one_system(xp, a, b, q)
        else:
            x = _by_eigenvectors(xp, a, b, q)
        return marked(xp, finite, x, 2)

    def forth(a: Any, b: Any, q: Any) -> tuple[Any, Any]:
        x = func(a, b, q)
        return x, (a, b, q)

    def back(given: Any, grad: Any) -> tuple[Any, Any, Any]:
        a, b, q = given
        x = adjoint(xp, sylvester(xp, a, b, q, values))
        by_q = sylvester(xp, adjoint(xp, a), adjoint(xp, b), grad, values)
        return -xp.matmul(by_q, x), -xp.matmul(x, by_q), by_q

    return ruled("linalg.solve_sylvester", func, forth, back)(a, b, q)


def _as_one_system(xp: Any, a: Any, b: Any, q: Any) -> Any:
    """(a ⊗ I + I ⊗ bᵀ) x = q, with the elements of x row by row."""
    m, n = q.shape[-2:]
    batch = tuple(q.shape)[:-2]
    left = a[..., :, None, :, None] * eye_of(xp, b)[:, None, :]
    right = eye_of(xp, a)[:, None, :, None] * xp.matrix_transpose(b)[..., None, :, None, :]
    whole = xp.reshape(left + right, (*batch, m * n, m * n))
    return xp.reshape(xp.linalg.solve(whole, xp.reshape(q, (*batch, m * n, 1))), q.shape)


def _by_eigenvectors(xp: Any, a: Any, b: Any, q: Any) -> Any:
    """A system for each eigenvector of `b`, and two corrections for what the eigenvectors lost."""
    values, vectors = xp.eig(b)
    dtype = values.dtype
    wide = a if a.dtype == dtype else xp.astype(a, dtype)
    inverses = xp.linalg.inv(wide[..., None, :, :] + values[..., None, None] * eye_of(xp, wide))
    back = xp.linalg.inv(vectors)

    def solved(q: Any) -> Any:
        columns = xp.matmul(q if q.dtype == dtype else xp.astype(q, dtype), vectors)
        each = xp.matmul(inverses, xp.matrix_transpose(columns)[..., None])[..., 0]
        x = xp.matmul(xp.matrix_transpose(each), back)
        return x if q.dtype == dtype else xp.astype(xp.real(x), q.dtype)

    x = solved(q)
    for _ in range(2):
        x = x + solved(q - xp.matmul(a, x) - xp.matmul(x, b))
    return x


def logdet(a: A, /) -> A:
    """log |det a| of square matrices, of shape [...]: the second part of `slogdet`. The sign of the
    determinant is lost: a negative determinant gives the logarithm of its size, and a complex
    matrix a real number.

    The determinant itself may be too large or too small for a number. The gradient is the adjoint
    of the inverse. A singular matrix gives -inf; it has no gradient.

    >>> iso.linalg.logdet(np.array([[0.0, -1.0], [-1.0, 0.0]]))
    np.float64(0.0)
    """
    xp = square("linalg.logdet", "a", a)
    return xp.linalg.slogdet(a)[1]
