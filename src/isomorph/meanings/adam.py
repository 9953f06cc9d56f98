"""Adam, for one array."""

from __future__ import annotations

from typing import Any, NamedTuple


class AdamStep(NamedTuple):
    """The numbers of one step of Adam with decoupled weight decay."""

    step: Any  # counted from 1; in a program an array
    lr: Any  # in a program perhaps a 0-d array
    beta1: float
    beta2: float
    epsilon: float
    decay: float


def adam(
    xp: Any, g: Any, m: Any, v: Any,
    beta1: Any, rest1: Any, beta2: Any, rest2: Any, epsilon: Any, fix1: Any, fix2: Any,
    floor: float = 0.0,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Adam's direction, and both moments after the step. `rest1` and `rest2` are 1 − β, `fix1` and
    `fix2` are 1 / (1 − βᵗ), and `floor` is added under the square root.
    """
    m = beta1 * m + rest1 * g
    v = beta2 * v + rest2 * (g * g)
    square = v * fix2
    if floor:
        square = square + floor
    return m * fix1 / (xp.sqrt(square) + epsilon), m, v
