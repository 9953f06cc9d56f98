"""Functions of square matrices. They are smooth wherever the function of numbers is: equal
eigenvalues, and matrices without a full set of eigenvectors, need no care.

The derivative of f at A in the direction E stands in a corner of f([[A, E], [0, A]]). So the
gradient is the same function of a matrix twice as large, which can be differentiated in turn, to
any order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..gradients.custom import ruled
from .arguments import adjoint, square

if TYPE_CHECKING:
    from ..types.array_types import A


def expm(a: A, /) -> A:
    """The exponential of square matrices, I + a + a²/2 + …, of shape [..., n, n].

    A matrix that is not finite gives NaN.

    >>> iso.linalg.expm(np.array([[0.0, 1.0], [0.0, 0.0]]))
    array([[1., 1.],
           [0., 1.]])
    """
    xp = square("linalg.expm", "a", a)
    return smooth_function("linalg.expm", xp, lambda a: xp.expm(a), a)


def sqrtm(a: A, /) -> A:
    """The principal square root of square matrices, of shape [..., n, n]: x with x @ x = a whose
    eigenvalues have positive real parts.

    Real matrices have a real result, and NaN if a principal root is not real: cast `a` to a complex
    dtype then. A Hermitian matrix may have negative eigenvalues there, and zeros; of any other
    matrix the root is NaN if an eigenvalue is zero or a negative real number. The gradient is NaN
    where an eigenvalue is zero, because it is infinite there.

    >>> iso.linalg.sqrtm(np.array([[4.0, 1.0], [0.0, 4.0]]))
    array([[2.  , 0.25],
           [0.  , 2.  ]])
    """
    xp = square("linalg.sqrtm", "a", a)
    return smooth_function("linalg.sqrtm", xp, lambda a: xp.sqrtm(a), a)


def logm(a: A, /) -> A:
    """The principal logarithm of square matrices, of shape [..., n, n]: x with expm(x) = a, whose
    eigenvalues have imaginary parts between -π and π.

    Real matrices have a real result, and NaN if an eigenvalue is negative: cast `a` to a complex
    dtype then. A Hermitian matrix may have negative eigenvalues there; of any other matrix the
    logarithm is NaN if an eigenvalue is zero or a negative real number.

    >>> iso.linalg.logm(np.array([[1.0, 1.0], [0.0, 1.0]]))
    array([[0., 1.],
           [0., 0.]])
    """
    xp = square("linalg.logm", "a", a)
    return smooth_function("linalg.logm", xp, lambda a: xp.logm(a), a)


def smooth_function(name: str, xp: Any, values: Callable[[Any], Any], a: Any) -> Any:
    """`values(a)`, a smooth function of plain matrices, with its derivative."""

    def plain(a: Any) -> Any:
        return values(xp.stop_gradient(a, False))

    def forth(a: Any) -> tuple[Any, Any]:
        return plain(a), a

    def back(a: Any, grad: Any) -> tuple[Any]:
        return (_along(xp, lambda x: smooth_function(name, xp, values, x), adjoint(xp, a), grad),)

    return ruled(name, plain, forth, back)(a)


def _along(xp: Any, func: Callable[[Any], Any], a: Any, direction: Any) -> Any:
    """The derivative of `func` at `a` in a direction."""
    n = a.shape[-1]
    if 0 in a.shape:
        return direction
    size = lambda x: xp.max(xp.abs(xp.stop_gradient(x, False)), axis=(-2, -1), keepdims=True)
    given, own = size(direction), size(a)
    one = xp.ones_like(given)
    # the direction gets the size of the matrix, so that neither is lost beside the other
    usable = (given > 0) & (own > 0) & xp.isfinite(given) & xp.isfinite(own)
    scale = xp.where(usable, given / xp.where(usable, own, one), one)
    scale = scale if scale.dtype == a.dtype else xp.astype(scale, a.dtype)
    top = xp.concat([a, direction / scale], axis=-1)
    low = xp.concat([xp.zeros_like(a), a], axis=-1)
    return func(xp.concat([top, low], axis=-2))[..., :n, n:] * scale
