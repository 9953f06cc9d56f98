"""Private names of frameworks that engines use."""

from __future__ import annotations

from typing import Any


def coordination() -> Any:
    """JAX's client of the coordination service, with a store of keys and values (JAX 0.9). None if
    JAX has no such name any more: then several processes cannot compare anything, and raise.
    """
    try:
        from jax._src.distributed import global_state

        return global_state.client
    except (ImportError, AttributeError):
        return None


def store() -> Any:
    """The store of torch's default group (torch 2.10). Without it there is no watchdog."""
    try:
        from torch.distributed.distributed_c10d import _get_default_store

        return _get_default_store()
    except (ImportError, ValueError):
        return None
