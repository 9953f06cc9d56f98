"""Names of the standard whose result has another dtype or type in `jax.numpy`, or whose derivative
is wrong there.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jax.dtypes import canonicalize_dtype

from ..limits import FloatInfo

erf = jax.scipy.special.erf


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """Integers are widened as `prod` widens them."""
    if dtype is None and jnp.issubdtype(x.dtype, jnp.integer):
        signed = jnp.issubdtype(x.dtype, jnp.signedinteger)
        dtype = canonicalize_dtype(np.int64 if signed else np.uint64)
    return jnp.cumulative_prod(x, axis=axis, dtype=dtype, include_initial=include_initial)


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    """Positions in the dtype of every other index."""
    places = jnp.searchsorted(x1, x2, side=side, sorter=sorter)
    return places.astype(canonicalize_dtype(np.int64))


def finfo(type, /):
    """`jnp.finfo` in Python floats; of a dtype or an array."""
    limits = jnp.finfo(getattr(type, "dtype", type))
    return FloatInfo(
        limits.bits,
        float(limits.eps),
        float(limits.max),
        float(limits.min),
        float(limits.smallest_normal),
        limits.dtype,
    )


def acosh(x, /):
    """JAX's derivative of a complex one has the wrong sign left of the imaginary axis."""
    return _acosh(x) if jnp.iscomplexobj(x) else jnp.acosh(x)


@jax.custom_jvp
def _acosh(z):
    return jnp.acosh(z)


@_acosh.defjvp
def _acosh_jvp(primals, tangents):
    (z,), (dz,) = primals, tangents
    return _acosh(z), dz / (jnp.sqrt(z - 1) * jnp.sqrt(z + 1))


def sign(x, /):
    """JAX's derivative of a complex one, the point on the unit circle, is zero."""
    return _sign(x) if jnp.iscomplexobj(x) else jnp.sign(x)


@jax.custom_jvp
def _sign(z):
    return jnp.sign(z)


@_sign.defjvp
def _sign_jvp(primals, tangents):
    """What of the change runs around the circle; none at zero."""
    (z,), (dz,) = primals, tangents
    y = _sign(z)
    length = jnp.abs(jnp.where(z == 0, 1, z))
    around = (dz - y * jnp.real(jnp.conj(y) * dz)) / length
    return y, jnp.where(z == 0, 0, around)


def pow(x1, x2, /):
    """JAX's derivative of zero to the power 0.0 is 0 times inf; that of a constant is 0."""
    if isinstance(x2, (int, float, complex)) and (x2 != 0 or isinstance(x2, int)):
        return jnp.pow(x1, x2)
    return _compiled_pow(x1, x2)


@jax.custom_jvp
def _pow(x, y):
    return jnp.pow(x, y)


def _pow_jvp(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    z = _pow(x, y)
    dz = jnp.zeros_like(z)
    if type(dx) is not SymbolicZero:
        dz += dx * y * _pow(x, jnp.where(y == 0, 1, y - 1))
    if type(dy) is not SymbolicZero:
        dz += dy * z * jnp.log(jnp.where(x == 0, 1, x))
    return z, dz


_pow.defjvp(_pow_jvp, symbolic_zeros=True)


@jax.jit
def _compiled_pow(x1, x2):
    both = jnp.result_type(x1, x2)
    if jnp.issubdtype(both, jnp.inexact) and not jnp.issubdtype(jnp.result_type(x2), jnp.integer):
        return _pow(jnp.astype(x1, both), jnp.astype(x2, both))
    return jnp.pow(x1, x2)  # integers have the right derivative


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    """JAX's derivative for equal numbers is 0/0; here it is 0, as that of a norm at 0."""
    return _compiled_std(x, axis, correction, keepdims)


@partial(jax.custom_jvp, nondiff_argnums=(1, 2, 3))
def _std(x, axis, correction, keepdims):
    return jnp.std(x, axis, correction=correction, keepdims=keepdims)


@_std.defjvp
def _std_jvp(axis, correction, keepdims, primals, tangents):
    y = _std(*primals, axis, correction, keepdims)
    var = partial(jnp.var, axis=axis, correction=correction, keepdims=keepdims)
    dv = jax.jvp(var, primals, tangents)[1]
    # Up to the rounding of their mean: a quotient of two roundings is no derivative.
    center = jnp.abs(jnp.mean(jax.lax.stop_gradient(primals[0]), axis, keepdims=keepdims))
    flat = y <= 8 * jnp.finfo(jnp.promote_types(y.dtype, jnp.float32)).eps * center
    return y, jnp.where(flat, 0, dv / (2 * jnp.where(flat, 1, y)))


_compiled_std = jax.jit(_std, static_argnums=(1, 2, 3))


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """JAX's derivative at zero is 0/0; here it is 0."""
    return _compiled_norm(x, axis, keepdims, ord)


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    if ord in ("fro", None) and x.ndim >= 2:
        return _compiled_norm(x, (-2, -1), keepdims, 2)
    return jnp.linalg.matrix_norm(x, keepdims=keepdims, ord=ord)


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
    zero = _norm(x, axis, True, ord) == 0
    native = partial(jnp.linalg.vector_norm, axis=axis, keepdims=keepdims, ord=ord)
    dy = jax.jvp(native, (jnp.where(zero, 1, x),), (dx,))[1]
    return y, jnp.where(zero.reshape(y.shape), 0, dy)


_compiled_norm = jax.jit(_norm, static_argnums=(1, 2, 3))


class UniqueCounts(NamedTuple):
    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    values: Any
    inverse_indices: Any


def unique_all(x, /, *, size=None, fill_value=None):
    """Each value is taken from where it stands first, so that it can be differentiated."""
    x = jnp.asarray(x)
    found = jnp.unique_all(jax.lax.stop_gradient(x), size=size, fill_value=fill_value)
    taken = x.reshape(-1)[found.indices]
    return found._replace(values=jnp.where(found.counts > 0, taken, found.values))


def unique_counts(x, /, *, size=None, fill_value=None):
    found = unique_all(x, size=size, fill_value=fill_value)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x, /, *, size=None, fill_value=None):
    found = unique_all(x, size=size, fill_value=fill_value)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x, /, *, size=None, fill_value=None):
    return unique_all(x, size=size, fill_value=fill_value).values
