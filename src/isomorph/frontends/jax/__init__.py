"""JAX."""

from . import lax as lax
