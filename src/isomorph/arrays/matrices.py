"""Diagonals, and distances between the rows of two matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ..core.dispatch import backend_of
from ..core.dtypes import promoted, returned, widened
from ..meanings.shapes import shape_of
from .arguments import floats, one_of, real

if TYPE_CHECKING:
    from ..types.array_types import A

METRICS = ("euclidean", "sqeuclidean", "cityblock", "chebyshev", "minkowski")
Metric: TypeAlias = Literal["euclidean", "sqeuclidean", "cityblock", "chebyshev", "minkowski"]


def diag(x: A, /, k: int = 0) -> A:
    """The square matrix with the vector `x` on its `k`-th diagonal, or the `k`-th diagonal of a
    matrix. A positive `k` is above the main diagonal.

    >>> iso.diag(np.array([1.0, 2.0]), k=1)
    array([[0., 1., 0.],
           [0., 0., 2.],
           [0., 0., 0.]])
    """
    return _diagonal(x, k)


def cdist(x: A, y: A, /, *, metric: Metric = "euclidean", p: float = 2.0) -> A:
    """The distances between the rows of x [..., n, d] and the rows of y [..., m, d], as
    [..., n, m].

    `metric` is euclidean, sqeuclidean (its square), cityblock, chebyshev, or minkowski with the
    power `p` of at least 1. Where a distance is 0, its gradient is 0. Computed from differences,
    with all digits; where nothing is compiled, that takes memory for n·m·d numbers.

    >>> iso.cdist(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 1.0]]))
    array([[5., 1.]])
    """
    xp: Any = backend_of(x, y)
    one_of("cdist", "metric", metric, METRICS)
    for word, z in (("x", x), ("y", y)):
        shape_of("cdist", word, z)
    left, right = promoted(xp, floats(xp, real("cdist", xp, x)), floats(xp, real("cdist", xp, y)))
    if len(left.shape) < 2 or len(right.shape) < 2 or left.shape[-1] != right.shape[-1]:
        raise ValueError(
            f"cdist: needed rows of the same length, [..., n, d] and [..., m, d], got shapes "
            f"{tuple(x.shape)} and {tuple(y.shape)}"
        )
    dtype = left.dtype
    return returned(xp, _far(xp, widened(xp, left), widened(xp, right), metric, p), dtype)


def _far(xp: Any, left: Any, right: Any, metric: Metric, p: float) -> Any:
    apart = left[..., :, None, :] - right[..., None, :, :]
    if metric == "cityblock":
        return xp.sum(xp.abs(apart), axis=-1)
    if metric == "chebyshev":
        return xp.max(xp.abs(apart), axis=-1) if apart.shape[-1] else xp.sum(apart, axis=-1)
    if metric == "sqeuclidean":
        return xp.sum(apart * apart, axis=-1)
    if metric == "euclidean":
        return _root(xp, xp.sum(apart * apart, axis=-1), 2.0)
    if not p >= 1 or p == float("inf"):
        raise ValueError(f"cdist: needed p as a number of at least 1, got {p!r}")
    nothing = apart == 0
    sizes = xp.abs(xp.where(nothing, xp.ones_like(apart), apart)) ** p
    return _root(xp, xp.sum(xp.where(nothing, xp.zeros_like(sizes), sizes), axis=-1), float(p))


def _root(xp: Any, x: Any, p: float) -> Any:
    """The p-th root, with the derivative 0 at 0."""
    nothing = x == 0
    safe = xp.where(nothing, xp.ones_like(x), x)
    root = xp.sqrt(safe) if p == 2.0 else safe ** (1 / p)
    return xp.where(nothing, xp.zeros_like(root), root)


def _diagonal(x: Any, k: Any) -> Any:
    xp: Any = backend_of(x)
    if type(k) is not int:
        raise TypeError(f"diag: needed k as an int, got {k!r}")
    if len(x.shape) == 2:
        rows, columns = x.shape
        if -rows <= k <= columns:
            return xp.linalg.diagonal(x, offset=k)
        return x[:0, 0] if columns else xp.reshape(x, (-1,))
    if len(x.shape) != 1:
        raise ValueError(f"diag: needed a vector or a matrix, got shape {tuple(x.shape)}")
    device = xp.device_of(x)
    padding = xp.zeros((abs(k),), dtype=x.dtype, device=device)
    full = xp.concat([x, padding]) if k else x
    n = full.shape[0]
    row, column = (xp.arange(n, device=device)[None, :], xp.arange(n, device=device)[:, None])
    full = full[:, None] if k >= 0 else full[None, :]
    zeros = xp.zeros((n, n), dtype=x.dtype, device=device)
    return xp.where(row - column == k, xp.broadcast_to(full, (n, n)), zeros)
