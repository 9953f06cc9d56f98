"""Checks of the arguments of linear algebra, and what they need in common: a dtype, a batch."""

from __future__ import annotations

import math
from typing import Any

from ..core.dispatch import backend_of, dtype_of
from ..core.dtypes import promoted
from ..meanings.shapes import broadcast, known, shape_of


def matrices(name: str, word: str, x: Any) -> Any:
    """The backend of stacks of matrices of floating dtype."""
    shape = shape_of(name, word, x)
    xp = backend_of(x)
    if len(shape) < 2:
        raise ValueError(
            f"{name}: needed {word} with at least 2 axes, got shape {tuple(shape)}; a vector as a "
            f"column is {word}[:, None], as a row {word}[None, :]"
        )
    floating(name, word, xp, x)
    return xp


def floating(name: str, word: str, xp: Any, x: Any) -> None:
    if not xp.is_float(x.dtype):
        raise TypeError(
            f"{name}: needed {word} of real or complex floating dtype, got {dtype_of(x)}; "
            "cast it with xp.astype"
        )


def square(name: str, word: str, x: Any) -> Any:
    """The backend of stacks of square matrices."""
    xp = matrices(name, word, x)
    rows, columns = x.shape[-2:]
    if rows != columns and None not in (rows, columns):
        raise ValueError(
            f"{name}: needed {word} as square matrices, got {rows} rows and {columns} columns "
            f"(shape {tuple(x.shape)})"
        )
    return xp


def alike(name: str, xp: Any, *arrays: Any, axes: int = 2) -> list[Any]:
    """The arrays in their common dtype, with their common batch before the last `axes` axes."""
    arrays = tuple(promoted(xp, *arrays))
    batches = [tuple(x.shape)[: len(x.shape) - axes] for x in arrays]
    if all(batch == batches[0] for batch in batches):
        return list(arrays)
    batch = together(name, *arrays, axes=axes)
    own = lambda x: tuple(x.shape)[len(x.shape) - axes :]
    return [xp.broadcast_to(x, (*batch, *own(x))) for x in arrays]


def together(name: str, *arrays: Any, axes: int = 2) -> tuple:
    """The common batch of arrays: the shape before their last `axes` axes."""
    batch = broadcast(*(tuple(x.shape)[: len(x.shape) - axes] for x in arrays))
    if batch is None:
        shapes = " and ".join(str(tuple(x.shape)) for x in arrays)
        raise ValueError(f"{name}: needed batches that broadcast, got shapes {shapes}")
    return batch


def right_hand(name: str, xp: Any, rows: Any, b: Any, word: str = "b") -> tuple[Any, bool]:
    """The right-hand side as matrices, and whether it was one vector."""
    shape = shape_of(name, word, b)
    backend_of(b)
    floating(name, word, xp, b)
    if not len(shape):
        raise ValueError(f"{name}: needed {word} as a vector or matrices, got shape ()")
    is_vector = len(shape) == 1
    size = shape[0] if is_vector else shape[-2]
    if size != rows and None not in (size, rows):
        hint = ""
        if not is_vector and shape[-1] == rows:
            hint = f"; for a batch of vectors write {word}[..., None]"
        raise ValueError(
            f"{name}: needed {word} with {rows} rows, like the matrices, got {size} (shape "
            f"{tuple(shape)}){hint}"
        )
    return (b[:, None] if is_vector else b), is_vector


def adjoint(xp: Any, x: Any) -> Any:
    """The conjugate transpose."""
    return xp.matrix_transpose(xp.conj(x) if xp.is_complex(x.dtype) else x)


def eye_of(xp: Any, x: Any) -> Any:
    """The identity with the dtype of `x`, and the size of its last axis."""
    return xp.eye(x.shape[-1], dtype=x.dtype, device=xp.device_of(x))


def finite_part(xp: Any, a: Any) -> tuple[Any, Any]:
    """Which matrices are finite, of shape [...]; and the matrices, with an identity instead of each
    that is not, because a kernel for singular values or eigenvalues may never return for it.
    """
    finite = xp.all(xp.isfinite(a), axis=(-2, -1))
    eye = xp.eye(a.shape[-2], a.shape[-1], dtype=a.dtype, device=xp.device_of(a))
    return finite, xp.where(finite[..., None, None], a, eye)


def marked(xp: Any, finite: Any, y: Any, axes: int) -> Any:
    """`y` with NaN for matrices that are not finite; it has so many axes for each matrix."""
    finite = xp.reshape(finite, known((*finite.shape, *[1] * axes)))
    return xp.where(finite, y, xp.full_like(y, math.nan))
