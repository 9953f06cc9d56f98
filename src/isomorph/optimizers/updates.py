"""One step of an optimizer: gradient descent, Adam, LARS and LAMB.

Each formula is a rule for one array, written with the functions of `xp`. `Lift` checks the nests
and applies a rule to them; the public functions say which nests and numbers their rule takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from operator import mul, sub
from typing import TYPE_CHECKING, Any

from ..meanings.adam import adam
from .lifting import Lift, cast, number

if TYPE_CHECKING:
    from ..types.array_types import T

# The public functions.


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


def adam_numbers(
    lift: Lift, step: Any, beta1: float, beta2: float, epsilon: float, stop: bool
) -> list[list[Any]]:
    """The numbers for Adam's rule, for each array."""
    refuse_complex(lift)
    beta1 = number(lift.name, "beta1", beta1, below=1)
    beta2 = number(lift.name, "beta2", beta2, below=1)
    epsilon = number(lift.name, "epsilon", epsilon)
    numbers = [lift.constant(x) for x in (beta1, 1 - beta1, beta2, 1 - beta2, epsilon)]
    numbers += lift.corrections(step, beta1, beta2)
    if not stop:
        # Added to v̂, so that √v̂ has a finite gradient at 0: its root is a quarter of the last
        # digit of ε, too small to change √v̂ + ε.
        digit = lambda dtype: 2.0**-53 if dtype == lift.xp.float64 else 2.0**-24
        numbers.append(lift.each(lambda dtype: (epsilon * digit(dtype) / 4) ** 2))
    return numbers


def trust_ratio(lift: Lift, lr: Any, stop: bool) -> tuple[Callable[..., Any], list[Any]]:
    """The function that computes a trust ratio, and the learning rates to multiply by it."""
    if not stop:
        return smooth_ratio, lift.rates(lr)
    counts = lift.counts()
    return (counted_ratio if counts else plain_ratio), lift.rates(lr, plain=counts)


def refuse_complex(lift: Lift) -> None:
    for kind in lift.kinds:
        if lift.xp.isdtype(kind, "complex floating"):
            lift.refuse("real floating-point", kind)


# The rules, each for one array. Numbers with one value per array come last.


def descend_by_adam(
    xp: Any, w: Any, g: Any, m: Any, v: Any, lr: Any, *numbers: Any
) -> tuple[Any, Any, Any]:
    u, m, v = xp.adam(g, m, v, *numbers)
    return w - lr * u, m, v


def trusted(
    decay: float, cap: float | None, ratio: Callable[..., Any], xp: Any, w: Any, u: Any, lr: Any,
    eta: float = 1.0,
) -> Any:  # fmt: skip
    """A step with the length given by the trust ratio, lr·r·(u + λw)."""
    rate = lr * ratio(xp, w, u, decay, cap, eta)
    return rate * (u + decay * w if decay else u)


def lars(decay: float, ratio: Callable[..., Any], xp: Any, w: Any, g: Any, lr: Any) -> tuple[Any]:
    return (w - trusted(decay, None, ratio, xp, w, g, lr),)


def lamb(
    decay: float, cap: float, ratio: Callable[..., Any],
    xp: Any, w: Any, g: Any, m: Any, v: Any, lr: Any, *numbers: Any,
) -> tuple[Any, Any, Any]:  # fmt: skip
    u, m, v = xp.adam(g, m, v, *numbers)
    if decay:
        u = u + decay * w
    return w - trusted(0.0, cap, ratio, xp, w, u, lr), m, v


# Three ways to compute η‖w‖ / (‖u‖ + λ‖w‖), at most `cap`, and 1 if a norm is 0.


def smooth_ratio(xp: Any, w: Any, u: Any, decay: float, cap: float | None, eta: float) -> Any:
    """The ratio, with a gradient that is finite everywhere, because the branches that are not
    chosen are finite too.
    """

    def norm(x: Any) -> Any:
        square = xp.sum(xp.square(wide(xp, x)))
        some = square > 0
        return xp.where(some, xp.sqrt(xp.where(some, square, 1.0)), 0.0)

    a, b = norm(w), norm(u)
    known = xp.minimum(a, b) > 0
    return capped(xp, known, a / xp.where(known, b + decay * a, 1.0), cap, w.dtype, eta)


def plain_ratio(xp: Any, w: Any, u: Any, decay: float, cap: float | None, eta: float) -> Any:
    """The ratio where no gradient is needed, by the norm of a matrix, which is one operation on
    most frameworks.
    """

    def norm(x: Any) -> Any:
        x = wide(xp, x)
        return xp.linalg.matrix_norm(x if len(x.shape) == 2 else xp.reshape(x, (1, -1)))

    a, b = norm(w), norm(u)
    return capped(xp, xp.minimum(a, b) > 0, a / (b + decay * a if decay else b), cap, w.dtype, eta)


def counted_ratio(xp: Any, w: Any, u: Any, decay: float, cap: float | None, eta: float) -> Any:
    """The ratio as a Python number, for backends whose 0-d results are Python numbers: there 0-d
    arrays are five times slower.
    """
    if xp.is_local(w) or xp.is_local(u):  # traced or mapped values cannot become numbers
        return smooth_ratio(xp, w, u, decay, cap, eta)
    x, y = wide(xp, w).reshape(-1), wide(xp, u).reshape(-1)
    a, b = math.sqrt(xp.vecdot(x, x)), math.sqrt(xp.vecdot(y, y))
    if not (a > 0 and b > 0):
        return 1.0
    ratio = eta * a / (b + decay * a)
    return ratio if cap is None or not ratio > cap else cap


def capped(xp: Any, known: Any, ratio: Any, cap: float | None, dtype: Any, eta: float) -> Any:
    """`eta` times the ratio, at most `cap`, in that dtype; 1 where the ratio is not `known`."""
    if eta != 1:
        ratio = eta * ratio
    if cap is not None:
        ratio = xp.clip(ratio, None, cap)
    return cast(xp, xp.where(known, ratio, 1.0), dtype)


def wide(xp: Any, x: Any) -> Any:
    """`x` as it is summed in squares: in float32 if it has a narrower dtype, because the largest
    float16 is 65504.
    """
    return x if x.dtype in (xp.float32, xp.float64) else xp.astype(x, xp.float32)
