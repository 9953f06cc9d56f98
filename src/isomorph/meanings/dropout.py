"""Dropout."""

from __future__ import annotations

from typing import Any

from . import random as draws


def dropout(xp: Any, x: Any, key: Any, prob: float, scale: bool, shape: tuple) -> Any:
    kept = xp.draw(draws.chosen, key, 0, shape, 1.0 - prob)
    # not a product with a mask of zeros: a dropped element may be infinite
    return xp.where(kept, x * (1.0 / (1.0 - prob)) if scale else x, 0.0)
