"""Names of the standard whose result has another dtype or type in `jax.numpy`."""

from __future__ import annotations

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
