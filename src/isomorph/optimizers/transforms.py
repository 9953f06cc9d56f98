"""Pairs that change gradients in one way: clip, decay, scale. Each is a rule for one array."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any, TypeGuard

from ..core.dispatch import find_backend
from .lifting import Lift, cast, number
from .masks import Mask, chosen
from .pairs import Optimizer, counter, entries, tick, zeros
from .updates import refuse_complex, wide


def clip_by_value(limit: float, /) -> Optimizer:
    """Clips every element of a gradient to the range from −`limit` to `limit`.

    >>> clip = iso.optimizers.clip_by_value(1.0)
    >>> clip.update(np.array([0.5, -7.0]), (), np.zeros(2))[0]
    array([ 0.5, -1. ])
    """
    name = "optimizers.clip_by_value"
    most = _limit(name, limit)

    def clip(lift: Lift, ws: list, gs: list) -> list:
        refuse_complex(lift)
        return [lift.xp.clip(g, -most, most) for g in gs]

    return stateless(name, clip)


def clip_by_norm(limit: float, /) -> Optimizer:
    """Scales each gradient array whose norm is above `limit` down to that norm.

    >>> clip = iso.optimizers.clip_by_norm(1.0)
    >>> clip.update([np.array([3.0, 4.0]), np.array([0.5])], (), [np.zeros(2), np.zeros(1)])[0]
    [array([0.6, 0.8]), array([0.5])]
    """
    name = "optimizers.clip_by_norm"
    most = _limit(name, limit)

    def clip(lift: Lift, ws: list, gs: list) -> list:
        return [_shortened(lift.xp, g, _squares(lift.xp, g), most) for g in gs]

    return stateless(name, clip)


def clip_by_global_norm(limit: float, /) -> Optimizer:
    """Scales all gradients by the same factor, so that the norm of all their elements together is
    at most `limit`.

    >>> clip = iso.optimizers.clip_by_global_norm(1.0)
    >>> clip.update([np.array([3.0]), np.array([4.0])], (), [np.zeros(1), np.zeros(1)])[0]
    [array([0.6]), array([0.8])]
    """
    name = "optimizers.clip_by_global_norm"
    most = _limit(name, limit)

    def clip(lift: Lift, ws: list, gs: list) -> list:
        xp = lift.xp
        squares = [_squares(xp, g) for g in gs]
        double = any(s.dtype == xp.float64 for s in squares)
        total = sum(cast(xp, s, xp.float64) if double else s for s in squares)
        return [_shortened(xp, g, total, most) for g in gs]

    return stateless(name, clip)


def add_decayed_weights(rate: float, *, mask: Mask = None) -> Optimizer:
    """g + rate·w: before an optimizer in a chain, the gradient of an L2 penalty; after its
    direction, the weight decay of AdamW.

    `mask` selects the leaves: a pattern for their keys joined with `/`, several patterns, a
    function of that path and the array, or a nest of bools like the parameters.

    >>> decay = iso.optimizers.add_decayed_weights(0.1, mask="*w")
    >>> v = {"b": np.ones(1), "w": np.ones(1)}
    >>> decay.update({"b": np.zeros(1), "w": np.zeros(1)}, decay.init(v), v)[0]
    {'b': array([0.]), 'w': array([0.1])}
    """
    return decayed("optimizers.add_decayed_weights", rate, mask)


def scale(factor: Any, /) -> Optimizer:
    """Gradients multiplied by a number or a 0-d array.

    >>> iso.optimizers.scale(-0.5).update(np.array([2.0]), (), np.zeros(1))[0]
    array([-1.])
    """
    name = "optimizers.scale"
    if isinstance(factor, Real):
        if not math.isfinite(factor):
            raise ValueError(f"{name}: needed a finite factor, got {factor}")
        times = float(factor)
        return stateless(
            name, lambda lift, ws, gs: [s * g for s, g in zip(lift.constant(times), gs)]
        )
    if find_backend(factor) is None or len(factor.shape):
        raise TypeError(
            f"{name}: needed a number or a 0-d array as factor, got a {type(factor).__name__}"
        )
    return stateless(name, lambda lift, ws, gs: [s * g for s, g in zip(lift.rates(factor), gs)])


def scale_by_schedule(schedule: Callable[[Any], Any], /) -> Optimizer:
    """Gradients multiplied by the schedule's value at the step, counted from 0.

    The schedule is called with an int if the step is known, else with a 0-d floating-point
    array.

    >>> opt = iso.chain(
    ...     iso.optimizers.scale_by_schedule(lambda step: 0.5**step), iso.optimizers.scale(-1.0)
    ... )
    >>> v = np.zeros(1)
    >>> first, state = opt.update(np.ones(1), opt.init(v), v)
    >>> second, state = opt.update(np.ones(1), state, v)
    >>> first, second
    (array([-1.]), array([-0.5]))
    """
    name = "optimizers.scale_by_schedule"
    if not callable(schedule):
        raise TypeError(f"{name}: needed a schedule, got a {type(schedule).__name__}")
    return scheduled(name, schedule, 1)


# Parts of the functions here and in `recipes`; each takes the name that messages show.


def stateless(name: str, rule: Callable[[Lift, list, list], list]) -> Optimizer:
    """The pair of a rule over the columns of parameters and gradients, without state."""

    def init(v: Any) -> tuple:
        Lift(name, {"v": v})
        return ()

    def update(grads: Any, state: tuple, v: Any) -> tuple[Any, tuple]:
        lift = Lift(name, {"v": v, "grads": grads})
        return lift.nest(rule(lift, *lift.columns), True), state

    return Optimizer(init, update)


def decayed(name: str, rate: float, mask: Mask) -> Optimizer:
    """g + rate·w where the mask selects it."""
    factor = number(name, "rate" if name.endswith("weights") else "weight_decay", rate)

    def decay(lift: Lift, ws: list, gs: list) -> list:
        columns = zip(ws, gs, lift.constant(factor), chosen(lift, mask))
        return [g + r * w if yes else g for w, g, r, yes in columns]

    def init(v: Any) -> tuple:
        chosen(Lift(name, {"v": v}), mask)  # raises before the first step
        return ()

    return Optimizer(init, stateless(name, decay).update)


def descending(name: str, lr: Any) -> Optimizer:
    """−lr·g, for a number, an array, a nest of them like the parameters, or a schedule."""
    if is_schedule(lr):
        return scheduled(name, lr, -1)
    if isinstance(lr, Real):
        rate = number(name, "lr", lr)
        return stateless(
            name, lambda lift, ws, gs: [s * g for s, g in zip(lift.constant(-rate), gs)]
        )
    return stateless(name, lambda lift, ws, gs: [-(s * g) for s, g in zip(lift.rates(lr), gs)])


def scheduled(name: str, schedule: Callable[[Any], Any], sign: int) -> Optimizer:
    """Gradients times a schedule's value, with a sign."""

    def init(v: Any) -> dict[str, Any]:
        return {"step": counter(Lift(name, {"v": v}))}

    def update(grads: Any, state: dict[str, Any], v: Any) -> tuple[Any, dict[str, Any]]:
        lift = Lift(name, {"v": v, "grads": grads})
        value, state = at_this_step(name, lift, schedule, state)
        rates = lift.rates(value)
        return lift.nest([sign * r * g for r, g in zip(rates, lift.columns[1])], True), state

    return Optimizer(init, update)


def at_this_step(
    name: str, lift: Lift, schedule: Callable[[Any], Any], state: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """The value of a schedule, and the state after the step."""
    (step,) = entries(name, state, "step")
    xp = lift.xp
    count, kept = tick(lift, step)
    if count is kept:
        double = any(kind in (xp.float64, xp.complex128) for kind in lift.kinds)
        now: Any = cast(xp, step, xp.float64 if double else xp.float32)
    else:
        now = count - 1
    return schedule(now), {"step": kept}


def is_schedule(lr: Any) -> TypeGuard[Callable[[Any], Any]]:
    return callable(lr) and find_backend(lr) is None


def trace(name: str, momentum: float, nesterov: bool = False) -> Optimizer:
    """The running sum m ← momentum·m + g of gradients; with `nesterov`, g + momentum·m."""

    def init(v: Any) -> dict[str, Any]:
        return {"trace": zeros(Lift(name, {"v": v}))}

    def update(grads: Any, state: dict[str, Any], v: Any) -> tuple[Any, dict[str, Any]]:
        (old,) = entries(name, state, "trace")
        lift = Lift(name, {"v": v, "grads": grads, "trace": old})
        _, gs, ms = lift.columns
        beta = lift.constant(momentum)
        ms = [lift.xp.without_denormals(b * m + g) for b, m, g in zip(beta, ms, gs)]
        kept = lift.nest(ms, True)
        if not nesterov:
            return kept, {"trace": kept}
        return lift.nest([g + b * m for b, m, g in zip(beta, ms, gs)], True), {"trace": kept}

    return Optimizer(init, update)


def _limit(name: str, limit: Any) -> float:
    most = number(name, "limit", limit)
    if not most:
        raise ValueError(f"{name}: needed a limit above 0, got {most}")
    return most


def _squares(xp: Any, g: Any) -> Any:
    """The sum of the squares of an array's elements, in float32 or wider."""
    return xp.sum(xp.square(wide(xp, xp.abs(g) if xp.is_complex(g.dtype) else g)))


def _shortened(xp: Any, g: Any, square: Any, most: float) -> Any:
    """An array scaled by the factor that brings a norm, given by its square, down to `most`."""
    factor = most / xp.sqrt(xp.clip(square, most * most, None))
    return g * cast(xp, factor, g.dtype)
