"""Functions of each element, and functions that ask only for shapes and dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from ..levels import BATCHED
from ..mapped import Map, Mapped, Unbatchable, elementwise, rowwise, rule
from ..rules.elementwise import chosen, clipped
from ..rules.shaping import converted
from ..special import erf

np: Any = numpy  # its type stubs do not know mapped values

for _func in (
    pow, erf, chosen, np.clip, np.real, np.imag, np.angle, np.sinc, np.round, np.around, np.fix,
    np.isreal, np.iscomplex, np.isneginf, np.isposinf, np.isclose, np.i0, np.copy,
):  # fmt: skip
    BATCHED[_func] = elementwise


@rule(np.where)
def where(over: Map, func: Callable, condition: Any, *branches: Any) -> Any:
    if not branches:
        return rowwise(over, func, condition)
    return elementwise(over, func, condition, *branches)


@rule(np.nan_to_num)
def nan_to_num(over: Map, func: Callable, x: Any, copy: bool = True, *args: Any, **kw: Any) -> Any:
    if not copy:
        raise Unbatchable(over, "numpy.nan_to_num, which changes an array in place")
    return elementwise(over, func, x, True, *args, **kw)


@rule(clipped)
def clip(over: Map, func: Callable, x: Any, low: Any, high: Any) -> Any:
    return elementwise(over, np.clip, x, low, high)


@rule(np.astype, converted)
def astype(over: Map, func: Callable, x: Any, dtype: Any, /, **kw: Any) -> Any:
    return Mapped(x.value.astype(dtype), over)


def _shown(x: Any) -> Any:
    """An array of the shape and dtype of a mapped value, for functions that need no more."""
    if type(x) is Mapped:
        return np.broadcast_to(np.zeros((), x.dtype), x.shape)
    return type(x)(_shown(part) for part in x) if type(x) in (list, tuple) else x


@rule(
    np.shape, np.ndim, np.size, np.result_type, np.can_cast, np.common_type, np.iscomplexobj,
    np.isrealobj, np.zeros_like, np.ones_like, np.empty_like, np.isscalar, np.broadcast_shapes,
    np.diag_indices_from, np.tril_indices_from, np.triu_indices_from, np.einsum_path,
)  # fmt: skip
def shown(over: Map, func: Callable, *args: Any, **kw: Any) -> Any:
    kw = {k: _shown(v) for k, v in kw.items()}
    return func(*(_shown(a) for a in args), **kw)


@rule(np.array_repr, np.array_str, np.array2string)
def written(over: Map, func: Callable, x: Any, *args: Any, **kw: Any) -> str:
    return repr(x)
