"""Checks of the arguments of random draws, and the dtypes of their results."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from numbers import Integral, Real
from operator import index
from typing import TYPE_CHECKING, Any

from ..core.default_backend import home
from ..core.dispatch import backend_of, dtype_of, find_backend
from ..meanings.shapes import broadcast

if TYPE_CHECKING:
    from ..core.contract import Contract

Shape = int | Sequence[int]
DIGITS = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}  # bits after the leading 1

MOST = {  # the greatest numbers
    "float16": 65504.0,
    "bfloat16": 2.0**128 - 2.0**120,
    "float32": 2.0**128 - 2.0**104,
    "float64": sys.float_info.max,
}


def backend(name: str, key: Any) -> Contract:
    return check_key(f"random.{name}", key)


def check_key(name: str, key: Any) -> Contract:
    """The backend of a key."""
    xp = find_backend(key)
    if xp is None or not is_key(key):
        raise TypeError(
            f"{name}: needed a key, uint32 of shape (2,) as random.key makes it, got {shown(key)}"
        )
    return xp


def is_key(x: Any) -> bool:
    """Whether `x` has the dtype and shape of a key; nothing else marks one."""
    xp: Any = find_backend(x)
    return xp is not None and tuple(x.shape) == (2,) and x.dtype == xp.uint32


def shown(x: Any) -> str:
    if find_backend(x) is None or not hasattr(x, "shape"):
        return f"{x!r}, a {type(x).__name__}"
    return f"{dtype_of(x)} of shape {tuple(x.shape)}"


def shape_of(name: str, shape: Any) -> tuple[int, ...]:
    sizes = (shape,) if isinstance(shape, Integral) else shape
    try:
        whole = tuple(index(n) for n in sizes if not isinstance(n, bool))
    except TypeError:
        whole = (-1,)
    if len(whole) != len(sizes) or min(whole, default=0) < 0:
        raise ValueError(f"random.{name}: needed a shape of integers >= 0, got {shape!r}")
    if math.prod(whole) > 2**32:
        raise ValueError(f"random.{name}: needed at most 2**32 numbers, got shape {whole}")
    return whole


def sizes_of(name: str, what: str, x: Any, shape: Any, axes: int = 0) -> tuple[int, ...]:
    """The shape of a draw with parameters `x`, without their last `axes` axes: theirs, or a given
    one to which theirs broadcasts.
    """
    own = tuple(x.shape)[: len(x.shape) - axes]
    if shape is None:
        return own
    sizes = shape_of(name, shape)
    if broadcast(sizes, own) != sizes:
        raise ValueError(
            f"random.{name}: needed a shape to which that of {what}, {own}, broadcasts, got {sizes}"
        )
    return sizes


def check_floats(name: str, what: str, xp: Any, key: Any, x: Any) -> None:
    if find_backend(x) is None or not xp.isdtype(x.dtype, "real floating"):
        raise TypeError(f"random.{name}: needed {what} as floats, got {shown(x)}")
    backend_of(key, x)


def number(name: str, what: str, x: Any, infinite: bool = False) -> float:
    if not isinstance(x, Real) or math.isnan(x) or (math.isinf(x) and not infinite):
        raise TypeError(f"random.{name}: needed {what} as a number, got {shown(x)}")
    return float(x)


def fits(name: str, what: str, x: float, word: str) -> float:
    """A finite number that does not become infinite in the dtype of a draw."""
    if abs(x) > MOST[word]:
        raise ValueError(
            f"random.{name}: needed {what} within {word}, at most {MOST[word]:.5g}, got {x!r}; "
            "give a wider dtype"
        )
    return x


def dtype_name(xp: Contract, name: str, dtype: Any) -> str:
    """The name of the dtype of a draw."""
    if dtype is None:
        dtype = home(xp.name).dtype or "float32"
    wanted = xp.dtype(dtype)
    for word in DIGITS:
        own = getattr(xp, word) if word in ("float32", "float64") else xp.narrow(word)
        if own is not None and wanted == own:
            return word
    raise TypeError(f"random.{name}: needed a real floating dtype, got {dtype!r}")


def inner(word: str) -> str:
    """The dtype in which a draw is computed."""
    return "float64" if word == "float64" else "float32"


def cast(xp: Contract, x: Any, word: str) -> Any:
    return x if word == inner(word) else xp.astype(x, xp.narrow(word))
