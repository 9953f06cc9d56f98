"""Factors L and U with their derivative, for backends whose framework has none."""

from __future__ import annotations

from typing import Any

from ..gradients.custom import ruled


def lu(xp: Any, a: Any) -> tuple[Any, Any, Any]:
    """p, l and u with p @ l @ u = a. The permutation is constant under differentiation."""
    order, low, high = _factors(xp, a)
    rows = xp.arange(a.shape[-2], device=xp.device_of(a))
    p = xp.astype(rows[:, None] == order[..., None, :], a.dtype)
    return p, low, high


def _factors(xp: Any, a: Any) -> tuple[Any, Any, Any]:
    """The order of the rows, l and u."""

    def func(a: Any) -> tuple[Any, Any]:
        size = min(a.shape[-2:])
        both, order = xp.pivoted(xp.stop_gradient(a, False))
        eye = xp.eye(a.shape[-2], size, dtype=a.dtype, device=xp.device_of(a))
        return (xp.tril(both[..., :size], k=-1) + eye, xp.triu(both[..., :size, :])), order

    def forth(a: Any) -> tuple[Any, Any]:
        return func(a), a

    def back(a: Any, grads: Any) -> tuple[Any]:
        order, low, high = _factors(xp, a)
        (by_low, by_high), _ = grads
        found = _back(xp, low, high, by_low, by_high)
        places = xp.argsort(order, axis=-1)[..., None]
        return (xp.take_along_axis(found, xp.broadcast_to(places, found.shape), axis=-2),)

    (low, high), order = ruled("linalg.lu", func, forth, back, has_aux=True)(a)
    return order, low, high


def _back(xp: Any, low: Any, high: Any, by_low: Any, by_high: Any) -> Any:
    """The gradient of the matrix l @ u."""
    m, n, k = low.shape[-2], high.shape[-1], low.shape[-1]
    adjoint = lambda x: xp.matrix_transpose(xp.conj(x) if xp.is_complex(x.dtype) else x)
    core, beyond = low[..., :k, :], None
    by_core, by_square = by_low[..., :k, :], by_high[..., :k]
    square = high[..., :k]
    divided = lambda x: adjoint(  # x square⁻ᴴ
        xp.solve_triangular(square, adjoint(x), False, "N", False)
    )
    if m > k:  # the rows below follow from u
        beyond = divided(by_low[..., k:, :])
        by_square = by_square - xp.matmul(adjoint(low[..., k:, :]), beyond)
    elif n > k:  # the columns beyond follow from l
        beyond = xp.solve_triangular(core, by_high[..., k:], True, "C", True)
        by_core = by_core - xp.matmul(beyond, adjoint(high[..., k:]))
    inner = xp.tril(xp.matmul(adjoint(core), by_core), k=-1)
    inner = inner + xp.triu(xp.matmul(by_square, adjoint(square)))
    found = divided(xp.solve_triangular(core, inner, True, "C", True))
    if beyond is None:
        return found
    return xp.concat([found, beyond], axis=-2 if m > k else -1)
