"""All reads of private attributes of JAX's tracers. Where JAX has no such attribute, None is read.

Without them a slice `p : p + 2` with a traced start raises; `iso.span` needs none of them.
"""

from __future__ import annotations

from typing import Any


def inner(x: Any) -> Any:
    """What a tracer wraps: the values of all examples, another tracer, or a variable (JAX 0.8)."""
    return getattr(x, "val", None)


def map_of(x: Any) -> tuple:
    """The map and the axis of a vmap tracer (JAX 0.8)."""
    return id(getattr(x, "_trace", x)), getattr(x, "batch_dim", None)


def made_of(x: Any) -> tuple[str | None, Any]:
    """The name of the operation that computed a tracer, and its inputs (JAX 0.8)."""
    made = getattr(x, "parent", None)
    made = made() if callable(made) else made  # before JAX 0.10
    name = getattr(getattr(made, "primitive", None), "name", None)
    return name, getattr(made, "in_tracers", ())
