"""What the special functions share: their arguments become arrays of one shape and one real
floating dtype, and half precision is computed in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.dispatch import NUMBERS, backend_of, dtype_of


def elementwise(name: str, function: Callable[..., Any], *args: Any) -> Any:
    """`function(xp, *arrays)` for arrays and Python numbers that broadcast. Integers become the
    default floating dtype.
    """
    xp: Any = backend_of(*args)
    first = args[0]
    if type(first) not in NUMBERS:  # the usual call is answered in one go, because it is short
        dtype = first.dtype
        if dtype == xp.float64 or dtype == xp.float32:
            if len(args) == 1:
                return function(xp, xp.native(first))
            if _are_like(first, args):
                return function(xp, *map(xp.native, args))
    given, dtype = alike(name, xp, *args)
    y = function(xp, *given)
    return y if y.dtype == dtype else xp.astype(y, dtype)


def _are_like(first: Any, args: tuple) -> bool:
    """Whether all are arrays of the first one's dtype and shape."""
    for x in args:
        if type(x) in NUMBERS or x.dtype != first.dtype or x.shape != first.shape:
            return False
    return True


def alike(name: str, xp: Any, *args: Any) -> tuple[Any, Any]:
    """Arrays of one shape and dtype, which is float32 or float64, and the dtype of the result."""
    arrays = [x for x in args if type(x) not in NUMBERS]
    dtype = _floating(name, xp, arrays)
    wide = dtype if dtype in (xp.float32, xp.float64) else xp.float32
    device = xp.device_of(arrays[0])
    given = [
        xp.asarray(x, dtype=wide, device=device)
        if type(x) in NUMBERS
        else xp.astype(xp.native(x), wide)
        for x in args
    ]
    if any(tuple(x.shape) != tuple(given[0].shape) for x in given):
        given = xp.broadcast_arrays(*given)
    return given, dtype


def _floating(name: str, xp: Any, arrays: list[Any]) -> Any:
    """The dtype of the result."""
    for x in arrays:
        if xp.is_complex(x.dtype):
            raise TypeError(f"{name}: needed real arrays, got {dtype_of(x)}")
    floats = [x.dtype for x in arrays if xp.is_float(x.dtype)]
    if not floats:
        return xp.asarray(0.0, device=xp.device_of(arrays[0])).dtype
    return floats[0] if all(d == floats[0] for d in floats) else xp.result_type(*floats)
