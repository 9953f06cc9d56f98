"""Nested lists and tuples that hold traced values, made into one array."""

from __future__ import annotations

from typing import Any

import numpy

from .levels import LIFTED

np: Any = numpy  # its type stubs do not know traced values


def holds_traced(obj: Any) -> bool:
    """Whether `obj` is a traced or mapped value, or a list or tuple with one in it."""
    return type(obj) in LIFTED or (
        isinstance(obj, (list, tuple)) and any(holds_traced(x) for x in obj)
    )


def gathered(obj: Any, dtype: Any = None) -> Any:
    """The array of a nest that holds traced values."""
    x = obj if type(obj) in LIFTED else np.stack([_part(each) for each in obj])
    return x if dtype is None or x.dtype == dtype else x.astype(dtype)


def _part(obj: Any) -> Any:
    return gathered(obj) if holds_traced(obj) else np.asarray(obj)
