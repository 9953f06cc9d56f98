"""Products with a weight matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def linear(xp: Any, x: Any, weight: Any, bias: Any) -> Any:
    n = len(weight.shape) - 2
    turned = xp.matrix_transpose(weight)
    if n == 0:
        y = xp.matmul(x, turned)
        return y if bias is None else y + bias
    outer, inner = tuple(x.shape)[:n], tuple(x.shape)[n:-1]
    y = xp.matmul(xp.reshape(x, (*outer, -1, x.shape[-1])), turned)
    if bias is not None:
        y = y + xp.expand_dims(bias, axis=-2)
    return xp.reshape(y, (*outer, *inner, y.shape[-1]))


def linear_at_once(xp: Any, x: Any, weight: Any, bias: Any) -> Any:
    """`linear` of arrays that nobody has checked yet, if a backend sees at a glance that they fit;
    None if it does not: then their shapes and dtypes are checked.
    """
    return None


def thirds(xp: Any, x: Any) -> Sequence[Any]:
    """The three equal parts of `x` along its last axis."""
    n = x.shape[-1] // 3
    return [x[..., i * n : (i + 1) * n] for i in range(3)]
