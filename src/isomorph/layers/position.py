"""Positions of tokens: rotations of queries and keys, and masks for local attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.default_backend import home
from ..core.dispatch import backend_of, dtype_of
from ..meanings.position import rotate_pairs
from ..meanings.shapes import broadcast

if TYPE_CHECKING:
    from ..types.array_types import A
    from ..typing import BackendName


def rotary_embedding(
    x: A,
    /,
    *,
    positions: Any = None,
    base: float = 10000.0,
    interleaved: bool = False,
) -> A:
    """`x`, queries or keys `[..., L, F]`, with pairs of features rotated by position·base^(−2i/F),
    so that products of queries and keys depend only on their distance.

    Pair i consists of features i and i + F/2, or with `interleaved` 2i and 2i + 1. `positions`
    broadcasts to `[..., L]`; the default is 0 to L − 1.

    >>> iso.rotary_embedding(np.ones((1, 4)))
    array([[1., 1., 1., 1.]])
    """
    name = "rotary_embedding"
    xp = backend_of(x, positions)
    shape = tuple(x.shape)
    if len(shape) < 2 or shape[-1] % 2:
        raise ValueError(f"{name}: needed x [..., L, F] with F even, got {list(shape)}")
    if not xp.is_float(x.dtype) or xp.is_complex(x.dtype):
        raise TypeError(f"{name}: needed x of a real floating dtype, got {dtype_of(x)}")
    if positions is not None and broadcast(tuple(positions.shape), shape[:-1]) != shape[:-1]:
        raise ValueError(
            f"{name}: needed positions that broadcast to {list(shape[:-1])}, got "
            f"{list(positions.shape)}"
        )
    return rotate_pairs(xp, x, positions, base, interleaved)


def local_window_mask(
    queries: int,
    keys: int | None = None,
    /,
    *,
    left: int,
    right: int = 0,
    device: Any = None,
    backend: BackendName | None = None,
) -> Any:
    """A boolean mask `[queries, keys]` for attention: query i attends to keys i − `left` to
    i + `right`.

    >>> iso.local_window_mask(3, left=1).astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [0, 1, 1]])
    """
    keys = queries if keys is None else keys
    for word, n in (("queries", queries), ("keys", keys), ("left", left), ("right", right)):
        if type(n) is not int or n < 0:
            raise ValueError(f"local_window_mask: needed {word} >= 0, got {n!r}")
    place = home(backend, device)
    xp = place.backend
    rows = xp.expand_dims(xp.arange(queries, device=place.device), axis=-1)
    columns = xp.arange(keys, device=place.device)
    return xp.logical_and(columns >= rows - left, columns <= rows + right)
