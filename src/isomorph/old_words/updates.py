"""One step of an optimizer without a state: gradient descent, Adam, LARS, LAMB. `Lift` checks the
nests and applies the rules of `optimizers/updates.py` to them.
"""

from __future__ import annotations

from functools import partial
from operator import mul, sub
from typing import TYPE_CHECKING, Any

from ..meanings.adam import adam
from ..optimizers.lifting import Lift, number
from ..optimizers.updates import (
    adam_numbers,
    descend_by_adam,
    lamb,
    lars,
    refuse_complex,
    trust_ratio,
)

if TYPE_CHECKING:
    from ..types.array_types import T


def optimizer_update(w: T, effective_grad: Any, lr: Any, /, *, stop_gradients: bool = True) -> T:
    """The parameters one step further down an effective gradient, w − lr·g.

    `w` and `effective_grad` are nests of the same structure with floating-point arrays of the same
    shapes and dtypes. `lr` is a number, a 0-d array, or a nest like `w` of numbers and arrays, each
    0-d or of its parameter's shape. No gradient flows through the result unless `stop_gradients` is
    False.

    >>> iso.optimizer_update({"b": np.array([1.0, 2.0])}, {"b": np.array([10.0, 20.0])}, 0.01)
    {'b': array([0.9, 1.8])}
    """
    return _descent("optimizer_update", w, {"effective_grad": effective_grad}, lr, stop_gradients)


def gradient_descent_update(w: T, dcdw: T, lr: Any, /, *, stop_gradients: bool = True) -> T:
    """The parameters after one step of gradient descent, w − lr·dcdw.

    Nests and `lr` as in `optimizer_update`.

    >>> w = np.array([1.0, 2.0])
    >>> iso.gradient_descent_update(w, iso.grad(lambda w: np.sum(w**2))(w), 0.25)
    array([0.5, 1. ])
    """
    return _descent("gradient_descent_update", w, {"dcdw": dcdw}, lr, stop_gradients)


def adam_step(
    dcdw: T, mw: Any, vw: Any, step: Any, /, *,
    beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-7,
) -> tuple[T, T, T]:  # fmt: skip
    """`(effective_grad, mw, vw)`: Adam's direction m̂ / (√v̂ + ε), and its moments after this step.

    `dcdw`, `mw` and `vw` are nests of the same structure, shapes and dtypes; the moments start as
    zeros. `step` counts from 1, an int or a 0-d array. Gradients flow through the results. Kingma
    and Ba 2015, algorithm 1.

    >>> g, m, v = iso.adam_step(np.array([3.0, -0.5]), np.zeros(2), np.zeros(2), 1)
    >>> np.round(g, 3)
    array([ 1., -1.])
    """
    lift = Lift("adam_step", {"dcdw": dcdw, "mw": mw, "vw": vw})
    return lift.apply(adam, adam_numbers(lift, step, beta1, beta2, epsilon, False), False, 3)


def adam_update(
    w: T, dcdw: T, lr: Any, mw_tm1: Any, vw_tm1: Any, step: Any, /, *,
    beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-7, stop_gradients: bool = True,
) -> tuple[T, T, T]:  # fmt: skip
    """`(w, mw, vw)`: parameters and moments after one step of Adam.

    Nests, `lr` and `stop_gradients` as in `optimizer_update`, moments and `step` as in `adam_step`.

    >>> w, m, v = iso.adam_update(np.ones(2), np.array([3.0, -0.5]), 0.1, *np.zeros((2, 2)), 1)
    >>> np.round(w, 3)
    array([0.9, 1.1])
    """
    nests = {"w": w, "dcdw": dcdw, "mw_tm1": mw_tm1, "vw_tm1": vw_tm1}
    lift = Lift("adam_update", nests)
    numbers = adam_numbers(lift, step, beta1, beta2, epsilon, stop_gradients)
    return lift.apply(descend_by_adam, [lift.rates(lr), *numbers], stop_gradients, 3)


def lars_update(
    w: T, dcdw: T, lr: Any, /, *, decay_lambda: float = 0, stop_gradients: bool = True
) -> T:
    """The parameters after one step of LARS, w − lr·r·(g + λw) with r = ‖w‖ / (‖g‖ + λ‖w‖).

    Each array has its own r, which is 1 where ‖w‖ or ‖g‖ is 0. Nests, `lr` and `stop_gradients` as
    in `optimizer_update`. You, Gitman and Ginsburg 2017.

    >>> iso.lars_update(np.array([3.0, 4.0]), np.array([0.0, 0.5]), 0.1)
    array([3. , 3.5])
    """
    lift = Lift("lars_update", {"w": w, "dcdw": dcdw})
    refuse_complex(lift)
    decay = number("lars_update", "decay_lambda", decay_lambda)
    ratio, rates = trust_ratio(lift, lr, stop_gradients)
    return lift.apply(partial(lars, decay, ratio), [rates], stop_gradients, 1)[0]


def lamb_update(
    w: T, dcdw: T, lr: Any, mw_tm1: Any, vw_tm1: Any, step: Any, /, *,
    beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-7, max_trust_ratio: float = 10,
    decay_lambda: float = 0, stop_gradients: bool = True,
) -> tuple[T, T, T]:  # fmt: skip
    """`(w, mw, vw)` after one step of LAMB, w − lr·r·u with u = Adam's direction + λw, r = ‖w‖/‖u‖.

    Each array has its own trust ratio r, which is at most `max_trust_ratio`, and 1 where ‖w‖ or ‖u‖
    is 0. Nests, `lr` and `stop_gradients` as in `optimizer_update`, moments and `step` as in
    `adam_step`. You et al. 2019.

    >>> w, m, v = iso.lamb_update(np.array([3.0, 4.0]), np.ones(2), 0.1, *np.zeros((2, 2)), 1)
    >>> np.round(w, 3)
    array([2.646, 3.646])
    """
    nests = {"w": w, "dcdw": dcdw, "mw_tm1": mw_tm1, "vw_tm1": vw_tm1}
    lift = Lift("lamb_update", nests)
    numbers = adam_numbers(lift, step, beta1, beta2, epsilon, stop_gradients)
    decay = number("lamb_update", "decay_lambda", decay_lambda)
    cap = number("lamb_update", "max_trust_ratio", max_trust_ratio)
    ratio, rates = trust_ratio(lift, lr, stop_gradients)
    return lift.apply(partial(lamb, decay, cap, ratio), [rates, *numbers], stop_gradients, 3)


def _descent(name: str, w: Any, gradient: dict[str, Any], lr: Any, stop: bool) -> Any:
    lift = Lift(name, {"w": w, **gradient})
    ws, gs = lift.columns
    return lift.nest(map(sub, ws, map(mul, lift.rates(lr), gs)), stop)
