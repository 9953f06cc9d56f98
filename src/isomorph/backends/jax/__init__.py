"""JAX: `jax.numpy` has the whole vocabulary, but for a few dtypes of results (`names`)."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..base import Backend
from . import names


class JAX(Backend):
    name = "jax"
    arrays = (jax.Array, Tracer)

    def vjp(xp, func, leaves, once=False):
        outs, pull, aux = jax.vjp(func, *leaves, has_aux=True)
        if not any(jnp.iscomplexobj(x) for x in (*outs, *leaves)):
            return outs, pull, aux
        # JAX transposes without conjugating
        conj = lambda xs: tuple(jnp.conj(x) if jnp.iscomplexobj(x) else x for x in xs)
        return outs, lambda cotangents: conj(pull(conj(cotangents))), aux

    def map_rows(xp, pullback, rows):
        return jax.vmap(pullback)(rows)

    def stop_gradient(xp, x, preserve_type=True):
        return jax.lax.stop_gradient(x)

    def to_numpy(xp, x):
        return np.asarray(x)

    def from_numpy(xp, x, device=None):
        return jnp.asarray(x, device=device)

    def device(xp, name: Any) -> Any:
        """A device object for a name such as "cpu" or "cuda:1"."""
        if not isinstance(name, str):
            return name
        platform, _, number = name.partition(":")
        return jax.devices(platform)[int(number or 0)]

    def devices(xp):
        return [f"{d.platform}:{d.id}" for d in jax.devices()]

    def index_get(xp, x, index):
        return x[index]

    def index_update(xp, x, index, value, how):
        if how in COMBINE and not _repeats(x, index):  # JAX differentiates these only by parts
            return x.at[index].set(COMBINE[how](x[index], value))
        return getattr(x.at[index], how)(value)

    def is_float(xp, dtype):
        return jnp.issubdtype(dtype, jnp.inexact)

    def narrow(xp, name):
        return {"float16": jnp.float16, "bfloat16": jnp.bfloat16}.get(name)


COMBINE = {"multiply": jnp.multiply, "min": jnp.minimum, "max": jnp.maximum}


def _repeats(x: Any, index: Any) -> bool:
    """Whether an index may take one position twice: its integer arrays do, or are traced."""
    parts = index if isinstance(index, tuple) else (index,)
    arrays = [i for i in parts if isinstance(i, (np.ndarray, jax.Array))]
    if any(isinstance(i, Tracer) for i in arrays):
        return True
    if all(i.dtype == bool for i in arrays):
        return False
    where = np.arange(x.size).reshape(x.shape)[
        tuple(np.asarray(i) if isinstance(i, jax.Array) else i for i in parts)
    ]
    return np.unique(where).size != where.size


backend = JAX(names, jnp, linalg=[jnp.linalg], fft=[jnp.fft])
