"""Functions of JAX."""

from . import lax as lax
