"""Linear algebra. NumPy computes stacks of matrices already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from ..mapped import Map, Mapped, is_mapped, rowwise, rule, wrapped
from ..rules.linalg import factors, triangular
from .products import cores

np: Any = numpy  # its type stubs do not know mapped values


@rule(
    np.linalg.inv, np.linalg.det, np.linalg.slogdet, np.linalg.cholesky, np.linalg.eigh,
    np.linalg.eigvalsh, np.linalg.eig, np.linalg.eigvals, np.linalg.svdvals, np.linalg.svd,
    np.linalg.matrix_power, np.linalg.pinv, np.linalg.matrix_rank, np.linalg.qr, np.linalg.cond,
    factors, triangular,
)  # fmt: skip
def of_matrices(over: Map, func: Callable, a: Any, *args: Any, **kw: Any) -> Any:
    beside = (*args, *kw.values())
    if not is_mapped(over, a) or a.ndim < 2 or any(is_mapped(over, x) for x in beside):
        return rowwise(over, func, a, *args, **kw)
    return wrapped(over, func(a.value, *args, **kw))


@rule(np.linalg.solve)
def solve(over: Map, func: Callable, a: Any, b: Any) -> Any:
    if np.ndim(b) != 1:
        return Mapped(np.linalg.solve(*cores(over, (a, b), (2, 2))), over)
    if not is_mapped(over, a) and np.ndim(a) == 2:  # one factorization for all examples
        return Mapped(np.linalg.solve(a, b.value.T).T, over)
    columns = b.value[..., None] if is_mapped(over, b) else np.reshape(b, (-1, 1))
    wide = Mapped(columns, over) if is_mapped(over, b) else columns
    return Mapped(np.linalg.solve(*cores(over, (a, wide), (2, 2)))[..., 0], over)
