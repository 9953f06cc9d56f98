"""What JAX's tracers hold that it does not promise: each attribute once, and None where it is gone.

Without them a slice `p : p + 2` of a traced start is refused; `iso.span` needs none of them.
"""

from __future__ import annotations

from typing import Any


def inner(x: Any) -> Any:
    """What a tracer stands for: numbers of all examples, another tracer, a variable (JAX 0.8)."""
    return getattr(x, "val", None)


def map_of(x: Any) -> tuple:
    """By what a tracer of vmap is mapped, and along which axis (JAX 0.8)."""
    return id(getattr(x, "_trace", x)), getattr(x, "batch_dim", None)


def made_of(x: Any) -> tuple[str | None, Any]:
    """The name of the operation that made a tracer, and what it was given (JAX 0.8)."""
    made = getattr(x, "parent", None)
    made = made() if callable(made) else made  # before JAX 0.10
    name = getattr(getattr(made, "primitive", None), "name", None)
    return name, getattr(made, "in_tracers", ())
