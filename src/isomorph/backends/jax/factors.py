"""Linear algebra beyond the namespace: factorisations that `jax.lax.linalg` has, and functions of
matrices.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ...meanings import matrix_functions

# As one program each: otherwise their loops are traced again at each call.
expm = jax.jit(matrix_functions.expm, static_argnums=0)
sqrtm = jax.jit(matrix_functions.sqrtm, static_argnums=0)
logm = jax.jit(matrix_functions.logm, static_argnums=0)

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


@jax.jit
def eig(a: Any) -> tuple[Any, Any]:
    values, vectors = jax.lax.linalg.eig(a, compute_left_eigenvectors=False)
    return values, vectors
