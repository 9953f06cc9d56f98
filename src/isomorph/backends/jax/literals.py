"""Private types that JAX wraps around NumPy arrays and Python numbers in its own transforms. Its
rules and `jax.lax.stop_gradient` return them, and their arithmetic is NumPy's or Python's.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...core.dispatch import NUMBERS


def _kinds() -> tuple[type, ...]:
    """These types: JAX has no public name for them, so they are found by example. None if a version
    returns what it was given.
    """
    found: list[type] = []

    @jax.custom_jvp
    def ask(*xs: Any) -> Any:
        found.extend(map(type, xs))
        return xs[0]

    ask.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
    with jax.ensure_compile_time_eval():  # also while a program is traced
        ask(1.0, 1, 1j, np.ones(1, np.float32), np.float32(1))
    return tuple({kind: None for kind in found if kind.__module__.partition(".")[0] == "jax"})


LITERALS = _kinds()
OTHERS = frozenset((*LITERALS, *NUMBERS, np.ndarray, *np.sctypeDict.values()))


def native(x: Any) -> Any:
    """`x` as an array of JAX, with JAX's dtype for it; arrays and tracers are unchanged."""
    return jnp.asarray(x) if type(x) in OTHERS else x


def without(word: str) -> str:
    """What errors say about a dtype that JAX would narrow in silence."""
    turned_on = 'jax.config.update("jax_enable_x64", True)'
    return f"JAX has no {word} here; turn on 64-bit types with {turned_on}"
