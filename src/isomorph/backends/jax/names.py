"""Names of the standard whose result has another dtype or type in `jax.numpy`, or whose derivative
is wrong there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.dtypes import canonicalize_dtype

from ..limits import FloatInfo


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
