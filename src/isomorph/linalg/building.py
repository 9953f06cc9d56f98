"""Matrices built of others: products of Kronecker, blocks along a diagonal, constant diagonals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.dispatch import backend_of
from ..core.dtypes import promoted
from ..meanings.shapes import known, shape_of
from .arguments import together

if TYPE_CHECKING:
    from ..types.array_types import A


def kron(a: A, b: A, /) -> A:
    """The Kronecker product of matrices [..., m, n] and [..., p, q], of shape [..., m·p, n·q]: `b`
    times each element of `a`.

    >>> iso.linalg.kron(np.eye(2), np.array([[1.0, 2.0]]))
    array([[1., 2., 0., 0.],
           [0., 0., 1., 2.]])
    """
    for word, x in (("a", a), ("b", b)):
        _at_least("linalg.kron", word, x, 2)
    xp = backend_of(a, b)
    first, second = promoted(xp, a, b)
    (m, n), (p, q) = first.shape[-2:], second.shape[-2:]
    batch = together("linalg.kron", first, second)
    product = first[..., :, None, :, None] * second[..., None, :, None, :]
    return xp.reshape(product, known((*batch, m * p, n * q)))


def block_diag(*arrays: A) -> A:
    """Matrices [..., m, n] one after the other along the diagonal, with zeros elsewhere. Their
    batches broadcast.

    >>> iso.linalg.block_diag(np.ones((1, 2)), np.full((1, 1), 5.0))
    array([[1., 1., 0.],
           [0., 0., 5.]])
    """
    if not arrays:
        raise TypeError("linalg.block_diag: needed at least one array, got none")
    for i, x in enumerate(arrays):
        _at_least("linalg.block_diag", f"array {i}", x, 2)
    xp = backend_of(*arrays)
    given = promoted(xp, *arrays)
    batch = together("linalg.block_diag", *given)
    width, before, rows = sum(x.shape[-1] for x in given), 0, []
    for x in given:
        x = xp.broadcast_to(x, (*batch, *x.shape[-2:]))
        after = width - before - x.shape[-1]
        rows.append(xp.pad(x, (*[(0, 0)] * (len(batch) + 1), (before, after))))
        before += x.shape[-1]
    return xp.concat(rows, axis=-2)


def toeplitz(c: A, r: A | None = None, /) -> A:
    """Matrices with constant diagonals: first column `c` of shape [..., m], first row `r` of shape
    [..., n], of which the first element is not read. Without `r` it is the conjugate of `c`.

    >>> iso.linalg.toeplitz(np.array([1.0, 2.0]), np.array([1.0, 5.0, 6.0]))
    array([[1., 5., 6.],
           [2., 1., 5.]])
    """
    name = "linalg.toeplitz"
    _at_least(name, "c", c, 1)
    xp = backend_of(c, r)
    first = (xp.conj(c) if xp.is_complex(c.dtype) else c) if r is None else r
    _at_least(name, "r", first, 1)
    column, row = promoted(xp, c, first)
    m, n = column.shape[-1], row.shape[-1]
    batch = together(name, column, row, axes=1)
    if 0 in (m, n):
        return xp.zeros((*batch, m, n), dtype=column.dtype, device=xp.device_of(column))
    column, row = (xp.broadcast_to(x, (*batch, x.shape[-1])) for x in (column, row))
    line = xp.concat([xp.flip(row[..., 1:], axis=-1), column], axis=-1)
    at = lambda size: xp.arange(size, device=xp.device_of(column))
    places = xp.reshape(at(m)[:, None] - at(n) + (n - 1), (m * n,))
    return xp.reshape(xp.take(line, places, axis=-1), known((*batch, m, n)))


def _at_least(name: str, word: str, x: object, axes: int) -> None:
    shape = shape_of(name, word, x)
    if len(shape) < axes:
        many = "axes" if axes > 1 else "axis"
        raise ValueError(
            f"{name}: needed {word} with at least {axes} {many}, got shape {tuple(shape)}"
        )
