"""Factors of matrices: LU, eigenvalues and eigenvectors of general matrices, polar form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar, overload

from ..gradients.custom import ruled
from .arguments import adjoint, eye_of, finite_part, marked, matrices, square

if TYPE_CHECKING:
    from ..types.array_types import A

T = TypeVar("T")


class Eig(NamedTuple, Generic[T]):
    """The result of `eig`."""

    eigenvalues: T
    eigenvectors: T


@overload
def lu(a: A, /, permute_l: Literal[False] = False) -> tuple[A, A, A]: ...
@overload
def lu(a: A, /, permute_l: Literal[True]) -> tuple[A, A]: ...
def lu(a: A, /, permute_l: bool = False) -> tuple[A, ...]:
    """p, l and u with p @ l @ u = a, for `a` of shape [..., m, n]: a permutation [..., m, m]; `l`
    with ones on the diagonal and zeros above, [..., m, k]; `u` with zeros below the diagonal,
    [..., k, n], where k = min(m, n). With `permute_l`, p @ l and u.

    Rows are exchanged so that no element of `l` is larger than 1, or √2 if complex. The permutation
    is constant under differentiation. The first k rows and columns of pᵀ @ a must be invertible:
    otherwise the gradient is inf, NaN or an error.

    >>> p, l, u = iso.linalg.lu(np.array([[1.0, 3.0], [2.0, 4.0]]))
    >>> l, u
    (array([[1. , 0. ],
           [0.5, 1. ]]), array([[2., 4.],
           [0., 1.]]))
    """
    xp = matrices("linalg.lu", "a", a)
    p, low, high = xp.lu(a)
    return (xp.matmul(p, low), high) if permute_l else (p, low, high)


def eig(a: A, /) -> Eig[A]:
    """Eigenvalues [..., n] and eigenvectors, the columns of [..., n, n], of square matrices, always
    complex: a @ v = v * w. Their order is the framework's.

    A vector has the length 1, and its largest element is real. This does not determine it: the
    gradient is right for every result that does not change if a vector is multiplied by a number
    of size 1. Where two eigenvalues are equal, eigenvectors have no derivative, and a gradient
    through them is inf or NaN; a gradient through the eigenvalues alone is finite, and right if the
    result is symmetric in equal eigenvalues. The gradient at a defective matrix, without a full set
    of eigenvectors, is NaN. A matrix that is not finite gives NaN.

    >>> w, v = iso.linalg.eig(np.array([[0.0, -4.0], [1.0, 0.0]]))
    >>> np.sort(w.imag)
    array([-2.,  2.])
    """
    xp = square("linalg.eig", "a", a)
    return Eig(*_eig(xp, a))


def eigvals(a: A, /) -> A:
    """Eigenvalues [..., n] of square matrices [..., n, n], always complex, in the framework's
    order. Their gradient is that of `eig`.

    >>> np.sort(iso.linalg.eigvals(np.array([[3.0, 1.0], [0.0, 2.0]])).real)
    array([2., 3.])
    """
    return eig(a)[0]


def _eig(xp: Any, a: Any) -> tuple[Any, Any]:
    def func(a: Any) -> tuple[Any, Any]:
        finite, a = finite_part(xp, xp.stop_gradient(a, False))
        values, vectors = xp.eig(a)
        return marked(xp, finite, values, 1), marked(xp, finite, vectors, 2)

    def forth(a: Any) -> tuple[Any, Any]:
        return func(a), a

    def back(a: Any, grads: Any) -> tuple[Any]:
        values, vectors = _eig(xp, a)
        by_values, by_vectors = grads
        eye = eye_of(xp, vectors)
        whole = _is_whole(xp, xp.stop_gradient(vectors, False))
        vectors = xp.where(whole[..., None, None], vectors, eye)
        turned = adjoint(xp, vectors)
        turn = xp.matmul(turned, by_vectors)
        # vectors keep their length
        along = xp.astype(xp.real(xp.linalg.diagonal(turn)), values.dtype)[..., None, :]
        turn = (turn - xp.matmul(turned, vectors) * along) * (1 - eye)
        gaps = xp.conj(values[..., None, :] - values[..., :, None])
        # no gradient through these vectors: nothing is divided by zero
        unused = (turn == 0) & (gaps == 0)
        inner = turn / xp.where(unused, xp.ones_like(gaps), gaps)
        inner = inner + by_values[..., None, :] * eye
        return (marked(xp, whole, xp.linalg.solve(turned, xp.matmul(inner, turned)), 2),)

    return ruled("linalg.eig", func, forth, back)(a)


def _is_whole(xp: Any, vectors: Any) -> Any:
    """Which eigenvectors are a full set. Where they depend on each other up to rounding, the matrix
    is defective, and what is computed with their inverse has no correct digit.
    """
    eye = eye_of(xp, vectors)
    size = xp.linalg.slogdet(vectors)[1]
    regular = xp.isfinite(size)
    inverse = xp.linalg.inv(xp.where(regular[..., None, None], vectors, eye))
    rounding = vectors.shape[-1] * float(xp.finfo(vectors.dtype).eps)
    lengths = xp.sqrt(xp.sum(xp.abs(inverse) ** 2, axis=-1))
    return regular & xp.all(lengths * rounding < 0.01, axis=-1)


def polar(a: A, /, side: str = "right") -> tuple[A, A]:
    """u and p with u @ p = a for `side` "right", or p @ u = a for "left": u of the shape of `a`,
    [..., m, n], with orthonormal columns or, if there are fewer rows, rows; p Hermitian without
    negative eigenvalues, [..., n, n] for "right" and [..., m, m] for "left".

    Equal singular values need no care. If `a` is not of full rank, u is one of several choices: it
    has no derivative, and the gradient is inf or NaN, or an error.

    >>> u, p = iso.linalg.polar(np.array([[0.0, -2.0], [3.0, 0.0]]))
    >>> p
    array([[3., 0.],
           [0., 2.]])
    """
    name = "linalg.polar"
    xp = matrices(name, "a", a)
    if side not in ("right", "left"):
        raise ValueError(f'{name}: needed side "right" or "left", got {side!r}')
    u = _unitary(xp, a)
    turned = adjoint(xp, u)
    p = xp.matmul(turned, a) if side == "right" else xp.matmul(a, turned)
    return u, _hermitian(xp, p)


def _unitary(xp: Any, a: Any) -> Any:
    """The first factor of the polar form. Its derivative solves an equation of Sylvester with the
    second factor on both sides.
    """
    if 0 in a.shape:
        return a + 0
    if a.shape[-2] < a.shape[-1]:
        return adjoint(xp, _unitary(xp, adjoint(xp, a)))

    def func(a: Any) -> Any:
        finite, a = finite_part(xp, xp.stop_gradient(a, False))
        u, _, vh = xp.linalg.svd(a, full_matrices=False)
        return marked(xp, finite, xp.matmul(u, vh), 2)

    def forth(a: Any) -> tuple[Any, Any]:
        return func(a), a

    def back(a: Any, grad: Any) -> tuple[Any]:
        u = _unitary(xp, a)
        turned = adjoint(xp, u)
        p = _hermitian(xp, xp.matmul(turned, a))
        inside = xp.matmul(turned, grad)
        skew = _between(xp, p, inside - adjoint(xp, inside))
        found = xp.matmul(u, skew)
        if a.shape[-2] > a.shape[-1]:
            outside = grad - xp.matmul(u, inside)
            found = found + adjoint(xp, xp.linalg.solve(p, adjoint(xp, outside)))
        return (found,)

    return ruled("linalg.polar", func, forth, back)(a)


def _between(xp: Any, p: Any, q: Any) -> Any:
    """x with p @ x + x @ p = q for Hermitian p, by its eigenvalues. They are never differentiated:
    the derivative is an equation of the same form.
    """

    def func(p: Any, q: Any) -> Any:
        p, q = (xp.stop_gradient(x, False) for x in (p, q))
        finite, p = finite_part(xp, p)
        values, vectors = xp.linalg.eigh(p)
        sums = values[..., :, None] + values[..., None, :]
        sums = sums if sums.dtype == q.dtype else xp.astype(sums, q.dtype)
        turned = adjoint(xp, vectors)
        inner = xp.matmul(turned, xp.matmul(q, vectors)) / sums
        return marked(xp, finite, xp.matmul(vectors, xp.matmul(inner, turned)), 2)

    def forth(p: Any, q: Any) -> tuple[Any, Any]:
        return func(p, q), (p, q)

    def back(given: Any, grad: Any) -> tuple[Any, Any]:
        p, q = given
        x = adjoint(xp, _between(xp, p, q))
        by_q = _between(xp, p, grad)
        return -xp.matmul(by_q, x) - xp.matmul(x, by_q), by_q

    return ruled("linalg.polar", func, forth, back)(p, q)


def _hermitian(xp: Any, x: Any) -> Any:
    return (x + adjoint(xp, x)) / 2
