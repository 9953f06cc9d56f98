"""Meanings that JAX runs as one program each, also where nobody compiles around them: a loop is
traced anew at each call otherwise, and attention is nine calls.
"""

from __future__ import annotations

import jax

from ...layers import attention as attending
from ...layers import recurrent

attention = jax.jit(attending.attention, static_argnums=(0, 6))
lstm = jax.jit(recurrent.lstm, static_argnums=(0, 8))
gru = jax.jit(recurrent.gru, static_argnums=(0, 7))
