"""Optimizers by name, each a chain of a direction, changes to it, and a learning rate."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any

from ..core import tree
from ..core.dispatch import find_backend
from ..core.keywords import checked
from ..meanings.adam import AdamStep
from .lifting import Lift, number
from .masks import Mask
from .pairs import Optimizer, Writing, chain, counter, entries, tick, zeros
from .transforms import at_this_step, decayed, descending, is_schedule, stateless, trace
from .updates import adam_numbers, refuse_complex, trust_ratio, trusted

# The names of `iso.optimizers` that are defined here.
__all__ = ["adam", "adamw", "lamb", "lars", "lion", "rmsprop", "sgd"]

# Next to an ε of this size a denormal moment, or the root of one, makes no difference.
SMALL = 1e-11


@checked
def sgd(
    lr: Any, *, momentum: float = 0.0, nesterov: bool = False, weight_decay: float = 0.0
) -> Optimizer:
    """Gradient descent: g ← g + weight_decay·w, m ← momentum·m + g, w ← w − lr·m; with `nesterov`
    w ← w − lr·(g + momentum·m).

    `lr` is a number, a schedule, a 0-d array, or a nest of numbers and arrays like the parameters.

    >>> opt = iso.optimizers.sgd(iso.optimizers.cosine(0.1, 100), momentum=0.9)
    >>> v = np.ones(2)
    >>> opt.update(np.array([1.0, -1.0]), opt.init(v), v)[0]
    array([-0.1,  0.1])
    """
    name = "optimizers.sgd"
    if nesterov and not momentum:
        raise ValueError(f"{name}: nesterov needed a momentum above 0, got {momentum}")
    return _descent(name, lr, _decay(name, weight_decay, None), _trace(name, momentum, nesterov))


@checked
def adam(lr: Any, *, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8) -> Optimizer:
    """Adam, w ← w − lr·m̂ / (√v̂ + ε); Kingma and Ba 2015, algorithm 1. `lr` as in `sgd`.

    >>> opt = iso.optimizers.adam(0.1)
    >>> v = np.ones(2)
    >>> np.round(opt.update(np.array([3.0, -0.5]), opt.init(v), v)[0], 3)
    array([-0.1,  0.1])
    """
    name = "optimizers.adam"
    pair = _descent(name, lr, _adam(name, beta1, beta2, epsilon))
    return _writing(name, pair, lr, beta1, beta2, epsilon, 0.0)


@checked
def adamw(
    lr: Any, *, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
    weight_decay: float = 0.01, mask: Mask = None,
) -> Optimizer:  # fmt: skip
    """Adam with decoupled decay, w ← w − lr·(m̂ / (√v̂ + ε) + weight_decay·w); Loshchilov and Hutter
    2019.

    `lr` as in `sgd`; `mask` says which leaves decay, as in `add_decayed_weights`.

    >>> opt = iso.optimizers.adamw(0.1, weight_decay=0.5, mask=lambda path, x: x.ndim > 1)
    >>> v = {"b": np.ones(1), "w": np.ones((1, 1))}
    >>> opt.update({"b": np.zeros(1), "w": np.zeros((1, 1))}, opt.init(v), v)[0]
    {'b': array([-0.]), 'w': array([[-0.05]])}
    """
    name = "optimizers.adamw"
    decay = _decay(name, weight_decay, mask)
    pair = _descent(name, lr, _adam(name, beta1, beta2, epsilon), decay)
    if mask is not None:
        return pair
    return _writing(name, pair, lr, beta1, beta2, epsilon, weight_decay)


@checked
def rmsprop(
    lr: Any, *, decay: float = 0.99, epsilon: float = 1e-8, momentum: float = 0.0,
    centered: bool = False, weight_decay: float = 0.0,
) -> Optimizer:  # fmt: skip
    """RMSProp: s ← decay·s + (1 − decay)·g², m ← momentum·m + g / (√s + ε), w ← w − lr·m.

    With `centered`, the square of the mean gradient is subtracted from s. `lr` and `weight_decay`
    as in `sgd`. Hinton 2012; Graves 2013.

    >>> opt = iso.optimizers.rmsprop(0.1, decay=0.75)
    >>> v = np.ones(1)
    >>> np.round(opt.update(np.array([3.0]), opt.init(v), v)[0], 3)
    array([-0.2])
    """
    name = "optimizers.rmsprop"
    beta, epsilon = number(name, "decay", decay, below=1), number(name, "epsilon", epsilon)

    def rule(xp: Any, g: Any, s: Any, *rest: Any) -> tuple:
        *means, a, b, e = rest
        s = a * s + b * (g * g)
        if not means:
            return g / (xp.sqrt(s) + e), s
        mean = a * means[0] + b * g
        return g / (xp.sqrt(xp.clip(s - mean * mean, 0.0, None)) + e), s, mean

    numbers = lambda lift: [lift.constant(x) for x in (beta, 1 - beta, epsilon)]
    keys = ("square", "mean") if centered else ("square",)
    direction = _moments(name, keys, rule, numbers, exact=keys if epsilon < SMALL else ())
    return _descent(name, lr, _decay(name, weight_decay, None), direction, _trace(name, momentum))


@checked
def lion(
    lr: Any, *, beta1: float = 0.9, beta2: float = 0.99, weight_decay: float = 0.0,
    mask: Mask = None,
) -> Optimizer:  # fmt: skip
    """Lion: w ← w − lr·(sign(β₁m + (1 − β₁)g) + weight_decay·w), m ← β₂m + (1 − β₂)g; Chen et al.
    2023.

    `lr` as in `sgd`, `mask` as in `add_decayed_weights`.

    >>> opt = iso.optimizers.lion(0.1)
    >>> v = np.ones(2)
    >>> opt.update(np.array([3.0, -0.5]), opt.init(v), v)[0]
    array([-0.1,  0.1])
    """
    name = "optimizers.lion"
    betas = [number(name, f"beta{i}", b, below=1) for i, b in ((1, beta1), (2, beta2))]

    def rule(xp: Any, g: Any, m: Any, a: Any, b: Any, c: Any, d: Any) -> tuple:
        return xp.sign(a * m + b * g), c * m + d * g

    numbers = lambda lift: [lift.constant(x) for beta in betas for x in (beta, 1 - beta)]
    direction = _moments(name, ("mean",), rule, numbers, exact=("mean",))  # its sign matters
    return _descent(name, lr, direction, _decay(name, weight_decay, mask))


@checked
def lars(
    lr: Any, *, momentum: float = 0.9, weight_decay: float = 0.0,
    trust_coefficient: float = 0.001,
) -> Optimizer:  # fmt: skip
    """LARS: m ← momentum·m + lr·η·r·(g + λw), w ← w − m, with the rate r = ‖w‖ / (‖g‖ + λ‖w‖) of
    each array; η·r is 1 where ‖w‖ or ‖g‖ is 0. η is `trust_coefficient`, λ `weight_decay`.

    You, Gitman and Ginsburg 2017. Optax uses ‖g + λw‖ instead of ‖g‖ + λ‖w‖; write that as
    `iso.chain(iso.optimizers.add_decayed_weights(λ), iso.optimizers.lars(lr))`. `lr` as in `sgd`.

    >>> opt = iso.optimizers.lars(0.1, trust_coefficient=1.0)
    >>> v = np.array([3.0, 4.0])
    >>> opt.update(np.array([0.0, 0.5]), opt.init(v), v)[0]
    array([ 0. , -0.5])
    """
    name = "optimizers.lars"
    decay = number(name, "weight_decay", weight_decay)
    eta = number(name, "trust_coefficient", trust_coefficient)
    return _joined(_trusted(name, decay, None, eta), descending(name, lr), _trace(name, momentum))


@checked
def lamb(
    lr: Any, *, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-6,
    weight_decay: float = 0.0, max_trust_ratio: float = 10.0, mask: Mask = None,
) -> Optimizer:  # fmt: skip
    """LAMB: w ← w − lr·r·u with u = Adam's direction + weight_decay·w and r = ‖w‖ / ‖u‖ of each
    array, at most `max_trust_ratio`, and 1 where a norm is 0; You et al. 2019.

    `lr` as in `sgd`, `mask` as in `add_decayed_weights`.

    >>> opt = iso.optimizers.lamb(0.1)
    >>> v = np.array([3.0, 4.0])
    >>> np.round(opt.update(np.ones(2), opt.init(v), v)[0], 3)
    array([-0.354, -0.354])
    """
    name = "optimizers.lamb"
    cap = number(name, "max_trust_ratio", max_trust_ratio)
    trust = _trusted(name, 0.0, None if cap == math.inf else cap, 1.0)
    direction, decay = _adam(name, beta1, beta2, epsilon), _decay(name, weight_decay, mask)
    return _descent(name, lr, direction, decay, trust)


def _descent(name: str, lr: Any, *pairs: Optimizer | None) -> Optimizer:
    """A direction, then the learning rate."""
    return _joined(*pairs, descending(name, lr))


def _joined(*pairs: Optimizer | None) -> Optimizer:
    return chain(*(pair for pair in pairs if pair is not None))


def _decay(name: str, rate: float, mask: Mask) -> Optimizer | None:
    return decayed(name, rate, mask) if number(name, "weight_decay", rate) else None


def _trace(name: str, momentum: float, nesterov: bool = False) -> Optimizer | None:
    rate = number(name, "momentum", momentum, below=1)
    return trace(name, rate, nesterov) if rate else None


def _adam(name: str, beta1: float, beta2: float, epsilon: float) -> Optimizer:
    number(name, "beta1", beta1, below=1)
    number(name, "beta2", beta2, below=1)
    number(name, "epsilon", epsilon)
    numbers = lambda lift, step: adam_numbers(lift, step, beta1, beta2, epsilon, True)
    rule = lambda xp, *arrays: xp.adam(*arrays)
    keys = ("mean", "square")
    exact = keys if epsilon < SMALL else ()
    return _moments(name, keys, rule, numbers, counted=True, exact=exact)


def _writing(
    name: str, pair: Optimizer, lr: Any, beta1: float, beta2: float, epsilon: float, decay: float
) -> Optimizer:
    """Adam's pair, with a way to update all arrays at once if they have one learning rate. It
    sets tiny moments to 0, which is wrong next to a small ε, so it is not used there.
    """
    if not (isinstance(lr, Real) or is_schedule(lr)) or epsilon < SMALL:
        return pair

    def into(grads: Any, state: tuple, v: Any, owned: bool) -> tuple[Any, tuple] | None:
        first, *others = state
        step, mean, square = entries(name, first, "step", "mean", "square")
        lift = Lift(name, {"v": v, "grads": grads, "mean": mean, "square": square})
        rate: Any = lr
        if is_schedule(lr):
            rate, others[-1] = at_this_step(name, lift, lr, others[-1])
        if isinstance(rate, Real):
            rate = float(number(name, "lr", rate))
        elif find_backend(rate) is not lift.xp or rate.shape != ():
            return None  # a rate for each array
        count, kept = tick(lift, step)
        numbers = AdamStep(count, rate, beta1, beta2, epsilon, decay)
        rows = lift.xp.write_adam(list(zip(*lift.columns)), numbers, owned)
        if not rows:
            return None
        after, mean, square = (lift.nest(column, False) for column in zip(*rows))
        return after, ({"step": kept, "mean": mean, "square": square}, *others)

    return Writing(pair, into)


def _moments(
    name: str, keys: tuple[str, ...], rule: Callable[..., tuple], numbers: Callable[..., list],
    counted: bool = False, exact: tuple[str, ...] = (),
) -> Optimizer:  # fmt: skip
    """The pair of a rule that returns a direction and the new moments, which start as zeros.
    Moments that are not `exact` may lose values that are too small to matter.
    """
    every = ("step", *keys) if counted else keys

    def init(v: Any) -> dict[str, Any]:
        lift = Lift(name, {"v": v})
        refuse_complex(lift)
        return {key: counter(lift) if key == "step" else zeros(lift) for key in every}

    def update(grads: Any, state: dict[str, Any], v: Any) -> tuple[Any, dict[str, Any]]:
        found = dict(zip(every, entries(name, state, *every)))
        step = found.pop("step", None)
        lift = Lift(name, {"v": v, "grads": grads, **found})
        refuse_complex(lift)
        if counted:
            count, kept = tick(lift, step)
            columns, after = numbers(lift, count), {"step": kept}
        else:
            columns, after = numbers(lift), {}
        forget = lambda xp, w, *rest: rule(xp, *rest)
        direction, *moments = lift.apply(forget, columns, True, 1 + len(keys))
        for key, moment in zip(keys, moments):
            after[key] = moment if key in exact else tree.map(lift.xp.without_denormals, moment)
        return direction, after

    return Optimizer(init, update)


def _trusted(name: str, decay: float, cap: float | None, coefficient: float) -> Optimizer:
    """Each array's direction scaled by its trust ratio."""

    def rule(lift: Lift, ws: list, gs: list) -> list:
        refuse_complex(lift)
        ratio, ones = trust_ratio(lift, 1.0, True)
        scaled = partial(trusted, decay, cap, ratio, lift.xp, eta=coefficient)
        return list(map(scaled, ws, gs, ones))

    return stateless(name, rule)
