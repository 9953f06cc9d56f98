"""Systems with triangular matrices, solved block by block.

An upper triangular matrix is its own U in a factorisation by LU, so that `linalg.solve` of it is a
plain substitution, without exchanges of rows. A lower one becomes upper when its rows and columns
are reversed.
"""

from __future__ import annotations

from typing import Any

BLOCK = 64  # rows that are solved at once: more would cost cubic time, fewer many calls


def solve_triangular(xp: Any, a: Any, b: Any, lower: bool, trans: str, unit: bool) -> Any:
    """x of op(a) x = b for matrices `b`. `trans` says op: "N", "T" or "C"; only one triangle of `a`
    is read. The batches of both are the same.
    """
    if trans != "N":
        a = xp.matrix_transpose(a)
        a = xp.conj(a) if trans == "C" and xp.is_complex(a.dtype) else a
        lower = not lower
    if lower:
        upper = xp.flip(a, axis=(-2, -1))
        return xp.flip(_backward(xp, upper, xp.flip(b, axis=-2), unit), axis=-2)
    return _backward(xp, a, b, unit)


def _backward(xp: Any, a: Any, b: Any, unit: bool) -> Any:
    """Substitution with an upper triangle, from the last block to the first."""
    n = a.shape[-1]
    if n <= BLOCK:
        a = xp.triu(a, k=1 if unit else 0)
        if unit:
            a = a + xp.eye(n, dtype=a.dtype, device=xp.device_of(a))
        return xp.linalg.solve(a, b)
    first = n // 2
    low = _backward(xp, a[..., first:, first:], b[..., first:, :], unit)
    rest = b[..., :first, :] - xp.matmul(a[..., :first, first:], low)
    high = _backward(xp, a[..., :first, :first], rest, unit)
    return xp.concat([high, low], axis=-2)
