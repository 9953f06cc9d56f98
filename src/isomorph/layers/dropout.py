"""Dropout: some elements become zero, the others are scaled up."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

from ..core.dispatch import backend_of, dtype_of
from ..random.arguments import check_key

if TYPE_CHECKING:
    from ..types.array_types import A, Shaped
    from ..typing import DType


def dropout(
    x: A, prob: float, /, *, scale: bool = True, dtype: DType | None = None, training: bool = True,
    rng: Shaped | None = None, noise_shape: Sequence[int | None] | None = None,
) -> A:  # fmt: skip
    """Each element of `x` is zero with probability `prob`, otherwise divided by 1 − `prob` unless
    `scale` is False. `x` itself when not training.

    `rng` is a key of `iso.random`, on the backend of `x`. The key and the shape decide which
    elements are dropped, the same ones on every backend. Along axes where `noise_shape` is 1 or
    None, elements are dropped together. `dtype` is the dtype of the result.

    >>> iso.dropout(np.ones(5), 0.5, rng=iso.random.key(0))
    array([0., 0., 2., 2., 0.])
    """
    xp = backend_of(x)
    if not xp.is_float(x.dtype):
        raise TypeError(f"dropout: needed x as floats, got {dtype_of(x)}")
    if not isinstance(prob, Real) or not 0 <= prob < 1:
        raise ValueError(
            f"dropout: needed prob as a number with 0 <= prob < 1, got {prob!r}; "
            "in a compiled function, name it in static="
        )
    shape = tuple(x.shape) if noise_shape is None else _shared(tuple(x.shape), noise_shape)
    if dtype is not None and x.dtype != xp.dtype(dtype):
        x = xp.astype(x, xp.dtype(dtype))
    if not training or prob == 0:
        return x
    if rng is None:
        raise ValueError(
            "dropout: needed a key as rng, got none; make one with "
            "iso.random.key(seed), and a new one for each call with iso.random.split"
        )
    backend_of(x, rng)
    check_key("dropout", rng)
    return xp.dropout(x, rng, float(prob), bool(scale), shape)


def _shared(shape: tuple, noise_shape: Any) -> tuple[int, ...]:
    """The shape of the random draw."""
    sizes = tuple(noise_shape) if isinstance(noise_shape, Sequence) else None
    if (
        sizes is None
        or len(sizes) != len(shape)
        or any(n not in (None, 1, m) for n, m in zip(sizes, shape) if m is not None)
    ):
        raise ValueError(
            f"dropout: needed noise_shape with None, 1 or its size for each axis of {list(shape)}, "
            f"got {noise_shape if sizes is None else list(sizes)}"
        )
    return tuple(1 if n is None else n for n in sizes)
