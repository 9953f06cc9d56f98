"""Special functions in JAX: one compiled program each, with derivatives by formulas, forward and
backward.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero


@cache
def program(xp: Any, function: Any) -> Any:
    """A `Smooth` function, compiled."""
    call = jax.custom_jvp(lambda *arrays: xp.special(function, *arrays))

    def rule(primals: tuple, tangents: tuple) -> tuple:
        y = call(*primals)
        parts = [
            t * function.slope(xp, i, y, primals)
            for i, t in enumerate(tangents)
            if not isinstance(t, SymbolicZero)
        ]
        return y, sum(parts[1:], parts[0]) if parts else jnp.zeros_like(y)

    call.defjvp(rule, symbolic_zeros=True)
    return jax.jit(call)
