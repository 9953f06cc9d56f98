"""Optimizers: pairs of pure functions over nests of arrays, and learning-rate schedules.

>>> opt = iso.optimizers.adamw(iso.optimizers.warmup_cosine(1e-3, 10, 100), weight_decay=0.1)
>>> v = {"w": np.ones(3)}
>>> state = opt.init(v)
>>> grads = iso.grad(lambda v: np.sum(v["w"] ** 2))(v)
>>> updates, state = opt.update(grads, state, v)
>>> v = iso.apply_updates(v, updates)

`iso.chain` joins pairs. Single optimizer steps, without an optimizer state, are in `isomorph`
itself: `iso.adam_update` and others.
"""

from . import recipes
from .pairs import accumulate, ema, freeze, masked
from .recipes import *  # noqa: F403 (its `__all__` is a part of the one below)
from .schedules import constant, cosine, one_cycle, step, warmup, warmup_cosine
from .transforms import (
    add_decayed_weights,
    clip_by_global_norm,
    clip_by_norm,
    clip_by_value,
    scale,
    scale_by_schedule,
)

__all__ = [
    "accumulate",
    "add_decayed_weights",
    "clip_by_global_norm",
    "clip_by_norm",
    "clip_by_value",
    "constant",
    "cosine",
    "ema",
    "freeze",
    "masked",
    "one_cycle",
    "scale",
    "scale_by_schedule",
    "step",
    "warmup",
    "warmup_cosine",
]
__all__ += recipes.__all__


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
