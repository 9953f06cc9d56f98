"""Linear algebra: the functions of the array API standard, and more, for stacks of matrices.

>>> a = np.array([[2.0, 1.0], [1.0, 2.0]])
>>> iso.grad(lambda a: iso.linalg.logdet(a))(a).round(3)
array([[ 0.667, -0.333],
       [-0.333,  0.667]])

Matrices are the last two axes, real or complex; all axes before them count matrices. Every function
can be differentiated to any order by the transforms of isomorph, such as `iso.grad`, `iso.jvp`,
`iso.jacfwd` and `iso.hessian`, and by a framework's own reverse mode. Its own forward mode, such as
`jax.jvp` and `jax.hessian`, raises for expm, sqrtm, logm, eig, eigvals, lstsq, polar and
solve_sylvester, whose rules are of reverse mode: write `iso.hessian`, or `jax.jacrev` twice.
"""

from .building import block_diag, kron, toeplitz
from .factoring import eig, eigvals, lu, polar
from .functions import expm, logm, sqrtm
from .solving import cho_factor, cho_solve, logdet, lstsq, solve_sylvester, solve_triangular
from .standard import (
    cholesky,
    cross,
    det,
    diagonal,
    eigh,
    eigvalsh,
    inv,
    matmul,
    matrix_norm,
    matrix_power,
    matrix_rank,
    matrix_transpose,
    outer,
    pinv,
    qr,
    slogdet,
    solve,
    svd,
    svdvals,
    tensordot,
    trace,
    vecdot,
    vector_norm,
)

__all__ = [
    "block_diag",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "expm",
    "inv",
    "kron",
    "logdet",
    "logm",
    "lstsq",
    "lu",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "polar",
    "qr",
    "slogdet",
    "solve",
    "solve_sylvester",
    "solve_triangular",
    "sqrtm",
    "svd",
    "svdvals",
    "tensordot",
    "toeplitz",
    "trace",
    "vecdot",
    "vector_norm",
]


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
