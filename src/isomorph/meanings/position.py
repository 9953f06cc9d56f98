"""Embeddings of the positions of tokens."""

from __future__ import annotations

from typing import Any

from .shapes import known


def rotate_pairs(xp: Any, x: Any, positions: Any, base: float, interleaved: bool) -> Any:
    """The formula of `iso.rotary_embedding`: pairs of features, rotated by angles that grow with
    the position.
    """
    *lead, length, size = known(x.shape)
    wide = x.dtype if x.dtype in (xp.float32, xp.float64) else xp.float32
    device = xp.device_of(x)
    steps = xp.arange(size // 2, dtype=wide, device=device)
    if positions is None:
        positions = xp.arange(length, dtype=wide, device=device)
    positions = xp.expand_dims(xp.astype(positions, wide), axis=-1)
    angle = positions * base ** (steps * (-2 / size))
    cos, sin = xp.astype(xp.cos(angle), x.dtype), xp.astype(xp.sin(angle), x.dtype)
    if interleaved:
        pairs = xp.reshape(x, (*lead, length, size // 2, 2))
        a, b = pairs[..., 0], pairs[..., 1]
        turned = xp.stack([a * cos - b * sin, b * cos + a * sin], axis=-1)
        return xp.reshape(turned, (*lead, length, size))
    a, b = x[..., : size // 2], x[..., size // 2 :]
    return xp.concat([a * cos - b * sin, b * cos + a * sin], axis=-1)
