"""Linear algebra whose derivative is wrong in `jax.numpy`, or that loses a NaN on a GPU."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp

from . import names

# Norms


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """`jnp.linalg.vector_norm`, with the derivative 0 at zero, where JAX's is 0/0."""
    return _compiled_norm(x, axis, keepdims, ord)


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    if ord in ("fro", None) and x.ndim >= 2:
        return _compiled_norm(x, (-2, -1), keepdims, 2)
    norm = lambda x: _other_norm(x, keepdims, ord)
    return _keep_nan(norm, x, 2 if keepdims else 0) if ord in (2, -2, "nuc") else norm(x)


@partial(jax.jit, static_argnums=(1, 2))
def _other_norm(x, keepdims, ord):
    some = jnp.any(x != 0, (-2, -1), keepdims=keepdims)
    if ord not in (1, -1, jnp.inf, -jnp.inf):
        return jnp.where(some, jnp.linalg.matrix_norm(x, keepdims=keepdims, ord=ord), 0)
    sums = jnp.sum(_size(x), -2 if abs(ord) == 1 else -1, keepdims=True)
    y = (names.max if ord > 0 else names.min)(sums, axis=(-2, -1), keepdims=keepdims)
    return jnp.where(some, y, 0)


def _size(x):
    """|x|, with the derivative 0 at 0, where JAX's is 1."""
    return jnp.where(x == 0, 0, jnp.abs(jnp.where(x == 0, 1, x)))


@partial(jax.custom_jvp, nondiff_argnums=(1, 2, 3))
def _norm(x, axis, keepdims, ord):
    return jnp.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)


@_norm.defjvp
def _norm_jvp(axis, keepdims, ord, primals, tangents):
    (x,), (dx,) = primals, tangents
    y = _norm(x, axis, keepdims, ord)
    if ord == 2:
        along = jnp.sum(jnp.real(jnp.conj(x) * dx), axis, keepdims=keepdims)
        return y, along / jnp.where(y == 0, 1, y)
    whole = _norm(x, axis, True, ord)
    if ord in (0, jnp.inf, -jnp.inf):
        native = partial(_sharp_norm, axis=axis, keepdims=keepdims, ord=ord)
        dy = jax.jvp(native, (jnp.where(whole == 0, 1, x),), (dx,))[1]
    else:
        size = jnp.abs(jnp.where(x == 0, 1, x))
        share = (size / jnp.where(whole == 0, 1, whole)) ** (ord - 1)
        along = jnp.real(jnp.conj(names.sign(x)) * dx)
        dy = jnp.sum(jnp.where(x == 0, 0, share * along), axis, keepdims=keepdims)
    return y, jnp.where((whole == 0).reshape(y.shape), 0, dy)


def _sharp_norm(x, axis, keepdims, ord):
    if ord == 0:
        return jnp.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)
    return (names.max if ord > 0 else names.min)(jnp.abs(x), axis=axis, keepdims=keepdims)


_compiled_norm = jax.jit(_norm, static_argnums=(1, 2, 3))


# Solutions by LU factors and singular values. On a GPU cuSOLVER takes a NaN in a matrix for 0.


@cache
def _has_gpu() -> bool:
    return jax.default_backend() == "gpu"


def _keep_nan(function: Any, x: Any, *axes: int | None) -> Any:
    """`function(x)`; on a GPU, what it finds for a matrix with a NaN becomes NaN, and so does the
    derivative. `axes` is how many axes each of its results has for each matrix, or None for a
    result that is not marked.
    """
    if not _has_gpu() or x.ndim < 2 or not jnp.issubdtype(x.dtype, jnp.inexact):
        return function(x)
    factor = jnp.where(jnp.isnan(x).any((-2, -1)), jnp.nan, jnp.real(x).dtype.type(1))
    # Derivatives pass this product as well: the solvers in JAX's rules also lose a NaN.
    each = factor[..., None, None]
    if jnp.iscomplexobj(x):  # as a whole, infinity times one would have a NaN
        x = jax.lax.complex(jnp.real(x) * each, jnp.imag(x) * each)
    else:
        x = x * each
    found = function(x)
    marked = lambda y, n: y if n is None else y * factor.reshape(factor.shape + (1,) * n)
    if not isinstance(found, tuple):
        return marked(found, axes[0])
    return type(found)(*map(marked, found, axes))


def inv(x, /):
    return _keep_nan(jnp.linalg.inv, x, 2)


def pinv(x, /, *, rtol=None):
    return _keep_nan(partial(jnp.linalg.pinv, rtol=rtol), x, 2)


def slogdet(x, /):
    return _keep_nan(jnp.linalg.slogdet, x, None, 0)


def solve(x1, x2, /):
    return _keep_nan(lambda x: jnp.linalg.solve(x, x2), x1, 1 if x2.ndim == 1 else 2)


def svd(x, /, *, full_matrices=True):
    return _keep_nan(partial(jnp.linalg.svd, full_matrices=full_matrices), x, 2, 1, 2)


def svdvals(x, /):
    return _keep_nan(jnp.linalg.svdvals, x, 1)


def det(x, /):
    """`jnp.linalg.det`, also differentiable for an empty matrix, whose determinant is the constant
    1.
    """
    if x.ndim > 1 and x.shape[-2:] == (0, 0):
        return jnp.ones(x.shape[:-2], x.dtype)
    if x.ndim > 1 and x.shape[-2:] in ((2, 2), (3, 3)):
        return _small_det(x)
    return _keep_nan(jnp.linalg.det, x, 0)


@jax.custom_jvp
def _small_det(x):
    """The determinant of 2x2 and 3x3 matrices, differentiated as a sum of products: since 0.11
    JAX's own second derivatives at singular matrices are wrong, or NaN.
    """
    return jnp.linalg.det(x)


@_small_det.defjvp
def _small_det_jvp(primals, tangents):
    x = primals[0].astype(jnp.linalg.det(primals[0]).dtype)
    return _small_det(x), jax.jvp(_products, (x,), tangents)[1]


def _products(x):
    """The determinant of a small matrix, as a sum of products."""
    n = x.shape[-1]
    if n == 1:
        return x[..., 0, 0]
    minors = [_products(jnp.delete(x[..., 1:, :], i, axis=-1)) for i in range(n)]
    return sum((-1) ** i * x[..., 0, i] * minors[i] for i in range(n))


# Decompositions for which NumPy reads one triangle, and JAX the mean of both.


@jax.custom_jvp
def _hermitian(x):
    """The Hermitian matrix with the lower triangle of `x`; its gradient is Hermitian as well."""
    below, diagonal = jnp.tril(x, -1), jnp.real(jnp.linalg.diagonal(x))
    return below + jnp.conj(jnp.matrix_transpose(below)) + _diagonal(diagonal).astype(x.dtype)


@_hermitian.defjvp
def _hermitian_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return _hermitian(x), (dx + jnp.conj(jnp.matrix_transpose(dx))) / 2


def _diagonal(x):
    return x[..., None] * jnp.eye(x.shape[-1], dtype=x.dtype)


@partial(jax.jit, static_argnames="upper")
def cholesky(x, /, *, upper=False):
    x = jnp.conj(jnp.matrix_transpose(x)) if upper and x.ndim > 1 else x
    y = jnp.linalg.cholesky(_square("cholesky", x), symmetrize_input=False)
    return jnp.conj(jnp.matrix_transpose(y)) if upper else y


@jax.jit
def eigh(x, /):
    x = _square("eigh", x)
    found = jnp.linalg.eigh(x, symmetrize_input=False)
    w, v = found
    return type(found)(_where_finite(x, w, 1), _where_finite(x, v, 2))


@jax.jit
def eigvalsh(x, /):
    x = _square("eigvalsh", x)
    return _where_finite(x, jnp.linalg.eigvalsh(x, symmetrize_input=False), 1)


def _where_finite(x, y, axes):
    """What was found for each matrix, with so many axes. Of a matrix that is not finite a GPU finds
    finite numbers, and a finite derivative: there, they become NaN.
    """
    if not _has_gpu():
        return y
    factor = jnp.where(jnp.isfinite(x).all((-2, -1)), 1.0, jnp.nan).astype(jnp.real(y).dtype)
    return y * factor.reshape(factor.shape + (1,) * axes)


def _square(function, x):
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"{function}: needed square matrices, got shape {x.shape}")
    return _hermitian(x)
