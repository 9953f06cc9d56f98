"""What autograd shows to those who extend it."""

from .core import (
    VSpace,
    def_linear,
    defjvp,
    defjvp_argnum,
    defjvp_argnums,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    primitive,
    vspace,
)
from .tracer import Box, notrace_primitive
