"""The functions of the array API standard's `linalg`: each calls the function of that name in
`iso.namespace(x).linalg`, the framework's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from ..core.dispatch import backend_of

if TYPE_CHECKING:
    from ..types.array_types import A


def cholesky(x: A, /, *, upper: bool = False) -> A:
    """The lower Cholesky factor l of Hermitian matrices [..., n, n], l @ lᴴ = x; with `upper`, its
    adjoint. A matrix that is not positive definite raises where a singular one does in `solve`, and
    gives NaN elsewhere.

    >>> iso.linalg.cholesky(np.array([[4.0, 2.0], [2.0, 5.0]]))
    array([[2., 0.],
           [1., 2.]])
    """
    return backend_of(x).linalg.cholesky(x, upper=upper)


def cross(x1: A, x2: A, /, *, axis: int = -1) -> A:
    """The cross product of vectors of 3 elements, which lie along `axis`.

    >>> iso.linalg.cross(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]))
    array([0., 0., 1.])
    """
    return backend_of(x1, x2).linalg.cross(x1, x2, axis=axis)


def det(x: A, /) -> A:
    """The determinant of square matrices, of shape [...].

    >>> round(float(iso.linalg.det(2 * np.eye(3))), 9)
    8.0
    """
    return backend_of(x).linalg.det(x)


def diagonal(x: A, /, *, offset: int = 0) -> A:
    """The diagonal of matrices [..., m, n]; with `offset`, one above it, or below if negative.

    >>> iso.linalg.diagonal(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([1., 4.])
    """
    return backend_of(x).linalg.diagonal(x, offset=offset)


def eigh(x: A, /) -> tuple[A, A]:
    """The eigenvalues [..., n], in ascending order, and eigenvectors [..., n, n] of Hermitian
    matrices, of which the lower triangle is read.

    >>> iso.linalg.eigh(np.array([[2.0, 0.0], [0.0, 1.0]]))[0]
    array([1., 2.])
    """
    return backend_of(x).linalg.eigh(x)


def eigvalsh(x: A, /) -> A:
    """The eigenvalues [..., n] of Hermitian matrices, in ascending order.

    >>> iso.linalg.eigvalsh(np.array([[2.0, 0.0], [0.0, 1.0]]))
    array([1., 2.])
    """
    return backend_of(x).linalg.eigvalsh(x)


def inv(x: A, /) -> A:
    """The inverse of square matrices. A singular matrix does as in `solve`.

    >>> iso.linalg.inv(2 * np.eye(2))
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    return backend_of(x).linalg.inv(x)


def matmul(x1: A, x2: A, /) -> A:
    """The product of matrices [..., m, n] and [..., n, k], as `x1 @ x2`.

    >>> iso.linalg.matmul(np.ones((1, 2)), np.ones((2, 1)))
    array([[2.]])
    """
    return backend_of(x1, x2).linalg.matmul(x1, x2)


def matrix_norm(
    x: A, /, *, keepdims: bool = False, ord: float | Literal["fro", "nuc"] | None = "fro"
) -> A:
    """A norm of matrices, of shape [...]: of Frobenius, "nuc"lear, or with `ord` 1, 2, inf and
    their negatives.

    >>> float(iso.linalg.matrix_norm(np.array([[3.0, 4.0]])))
    5.0
    """
    return backend_of(x).linalg.matrix_norm(x, keepdims=keepdims, ord=ord)


def matrix_power(x: A, n: int, /) -> A:
    """The product of `n` equal square matrices; of inverses if `n` is negative.

    >>> iso.linalg.matrix_power(2 * np.eye(1), 3)
    array([[8.]])
    """
    return backend_of(x).linalg.matrix_power(x, n)


def matrix_rank(x: A, /, *, rtol: float | A | None = None) -> A:
    """The number of singular values above `rtol` times the largest; without `rtol`, max(m, n) times
    the rounding error.

    >>> int(iso.linalg.matrix_rank(np.ones((2, 2))))
    1
    """
    return backend_of(x).linalg.matrix_rank(x, rtol=rtol)


def matrix_transpose(x: A, /) -> A:
    """The transpose of matrices: the last two axes change places.

    >>> iso.linalg.matrix_transpose(np.ones((2, 1)))
    array([[1., 1.]])
    """
    return backend_of(x).linalg.matrix_transpose(x)


def outer(x1: A, x2: A, /) -> A:
    """The product of each element of one vector with each of the other.

    >>> iso.linalg.outer(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    array([[3., 4.],
           [6., 8.]])
    """
    return backend_of(x1, x2).linalg.outer(x1, x2)


def pinv(x: A, /, *, rtol: float | A | None = None) -> A:
    """The pseudo-inverse [..., n, m] of matrices [..., m, n]. Singular values up to `rtol` times
    the largest count as zero. The gradient is that at constant rank; equal singular values need no
    care.

    >>> iso.linalg.pinv(np.array([[2.0], [0.0]]))
    array([[0.5, 0. ]])
    """
    return backend_of(x).linalg.pinv(x, rtol=rtol)


def qr(x: A, /, *, mode: Literal["reduced", "complete"] = "reduced") -> tuple[A, A]:
    """q with orthonormal columns and an upper triangle r, q @ r = x.

    >>> np.abs(iso.linalg.qr(np.array([[3.0], [4.0]]))[1])
    array([[5.]])
    """
    return backend_of(x).linalg.qr(x, mode=mode)


def slogdet(x: A, /) -> tuple[A, A]:
    """The sign of the determinant of square matrices, a number of size 1 or 0, and the logarithm of
    its size.

    >>> float(iso.linalg.slogdet(np.array([[0.0, 1.0], [1.0, 0.0]]))[0])
    -1.0
    """
    return backend_of(x).linalg.slogdet(x)


def solve(x1: A, x2: A, /) -> A:
    """x with x1 @ x = x2, for square matrices `x1`; `x2` is one vector, or matrices.

    A singular matrix raises where the framework's kernel does: on NumPy always, on TensorFlow and
    PyTorch if nothing is compiled, on PyTorch also in compiled programs, but not in their loops and
    branches. Elsewhere it gives inf or NaN, or numbers as large as 1 over the rounding error.

    >>> iso.linalg.solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 2.0]))
    array([1. , 0.5])
    """
    return backend_of(x1, x2).linalg.solve(x1, x2)


def svd(x: A, /, *, full_matrices: bool = True) -> tuple[A, A, A]:
    """u, s and vh with u @ diag(s) @ vh = x: the singular values `s` in descending order.

    >>> iso.linalg.svd(np.array([[0.0, 2.0], [1.0, 0.0]]))[1]
    array([2., 1.])
    """
    return backend_of(x).linalg.svd(x, full_matrices=full_matrices)


def svdvals(x: A, /) -> A:
    """The singular values of matrices [..., m, n], in descending order.

    >>> iso.linalg.svdvals(np.array([[0.0, 2.0], [1.0, 0.0]]))
    array([2., 1.])
    """
    return backend_of(x).linalg.svdvals(x)


def tensordot(x1: A, x2: A, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> A:
    """The sum of products over the last `axes` axes of `x1` and the first of `x2`, or over the
    given ones.

    >>> iso.linalg.tensordot(np.ones((2, 3)), np.ones((3, 2)), axes=1)
    array([[3., 3.],
           [3., 3.]])
    """
    return backend_of(x1, x2).linalg.tensordot(x1, x2, axes=axes)


def trace(x: A, /, *, offset: int = 0, dtype: Any = None) -> A:
    """The sum of a diagonal of matrices.

    >>> float(iso.linalg.trace(np.eye(3)))
    3.0
    """
    return backend_of(x).linalg.trace(x, offset=offset, dtype=dtype)


def vecdot(x1: A, x2: A, /, *, axis: int = -1) -> A:
    """The sum along `axis` of the products of the conjugate of `x1` with `x2`.

    >>> float(iso.linalg.vecdot(np.array([1.0, 2.0]), np.array([3.0, 4.0])))
    11.0
    """
    return backend_of(x1, x2).linalg.vecdot(x1, x2, axis=axis)


def vector_norm(
    x: A, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, ord: float = 2
) -> A:
    """A norm of vectors along `axis`, or of all elements: with `ord` 2 their length.

    >>> float(iso.linalg.vector_norm(np.array([3.0, 4.0])))
    5.0
    """
    return backend_of(x).linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)
