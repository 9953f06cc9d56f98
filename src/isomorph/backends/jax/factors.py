"""Factorisations that `jax.lax.linalg` has and the namespace has not."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

TRANSPOSED = {"N": {}, "T": {"transpose_a": True}, "C": {"transpose_a": True, "conjugate_a": True}}


def solve_triangular(a: Any, b: Any, lower: bool, trans: str, unit: bool) -> Any:
    how = {"left_side": True, "lower": lower, "unit_diagonal": unit, **TRANSPOSED[trans]}
    return jax.lax.linalg.triangular_solve(a, b, **how)


@jax.jit
def lu(a: Any) -> tuple[Any, Any, Any]:
    both, _, order = jax.lax.linalg.lu(a)
    m, k = a.shape[-2], min(a.shape[-2:])
    low = jnp.tril(both[..., :k], -1) + jnp.eye(m, k, dtype=a.dtype)
    p = (jnp.arange(m)[:, None] == order[..., None, :]).astype(a.dtype)
    return p, low, jnp.triu(both[..., :k, :])


@partial(jax.jit)
def eig(a: Any) -> tuple[Any, Any]:
    values, vectors = jax.lax.linalg.eig(a, compute_left_eigenvectors=False)
    return values, vectors
