"""`scipy.integrate`: the rules for sampled functions, and `odeint` by its adjoint."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy
import scipy.integrate

from ..backends.numpy.nested import holds_traced
from ..backends.numpy.rules.calculus import part
from ..backends.numpy.tape import vjp
from ..backends.numpy.traced import concrete
from ..core import tree
from ..gradients.custom import custom_vjp
from ..numpy.creation import asarray
from .replacing import refuse, replaces

np: Any = numpy  # its type stubs do not know traced values
theirs: Any = scipy.integrate


def __getattr__(name: str) -> Any:
    return getattr(theirs, name)


def __dir__() -> list[str]:
    return dir(theirs)


@replaces(theirs.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    return np.trapezoid(asarray(y), x, dx, axis)


def _steps(y: Any, x: Any, dx: Any, axis: int) -> Any:
    """The distances between the samples, with as many axes as `y`."""
    if x is None:
        return dx * np.ones([y.shape[i] - 1 if i == axis else 1 for i in range(y.ndim)])
    x = asarray(x)
    if x.ndim == 1:
        steps = np.diff(x)
        return np.reshape(steps, tuple(-1 if i == axis else 1 for i in range(y.ndim)))
    return np.diff(x, axis=axis)


@replaces(theirs.cumulative_trapezoid)
def cumulative_trapezoid(
    y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None
) -> Any:
    y = asarray(y)
    axis %= y.ndim
    parts = _steps(y, x, dx, axis) * (part(y, axis, 1, None) + part(y, axis, None, -1)) / 2.0
    total = np.cumsum(parts, axis)
    if initial is None:
        return total
    if np.any(np.asarray(concrete(initial)) != 0):
        raise ValueError("`initial` must be `None` or `0`.")
    return np.concatenate([np.zeros_like(concrete(part(total, axis, 0, 1))), total], axis)


@replaces(theirs.simpson)
def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    y = asarray(y)
    axis %= y.ndim
    n = y.shape[axis]
    if x is not None and np.shape(x)[-1 if np.ndim(x) == 1 else axis] != n:
        raise ValueError("If given, length of x along axis must be the same as y.")
    steps = _steps(y, x, dx, axis)
    if n % 2:
        return _parabolas(y, steps, axis, n)
    if n == 2:
        return np.sum(steps * (part(y, axis, 0, 1) + part(y, axis, 1, 2)) / 2, axis)
    # The last interval, by the parabola through the last three samples (Cartwright).
    near, last = (np.squeeze(part(steps, axis, i, i + 1), axis) for i in (n - 3, n - 2))
    left, middle, right = (np.squeeze(part(y, axis, i, i + 1), axis) for i in (n - 3, n - 2, n - 1))
    whole = near + last
    final = (
        right * (2 * last**2 + 3 * near * last) / (6 * whole)
        + middle * (last**2 + 3 * last * near) / (6 * near)
        - left * last**3 / (6 * near * whole)
    )
    return _parabolas(y, steps, axis, n - 1) + final


def _parabolas(y: Any, steps: Any, axis: int, n: int) -> Any:
    """The sum of the integrals of parabolas through three samples each, over n samples."""
    first, second = part(steps, axis, 0, n - 1, 2), part(steps, axis, 1, n - 1, 2)
    left, middle, right = (part(y, axis, i, n - 2 + i, 2) for i in (0, 1, 2))
    whole = first + second
    weighted = (
        left * (2 - second / first) + middle * whole**2 / (first * second)
        + right * (2 - first / second)
    )  # fmt: skip
    return np.sum(whole / 6 * weighted, axis)


@replaces(theirs.romb)
def romb(y: Any, dx: Any = 1.0, axis: int = -1, show: bool = False) -> Any:
    y = asarray(y)
    weights = theirs.romb(np.eye(y.shape[axis]), 1.0, 0)  # it is linear in the samples
    return np.tensordot(np.moveaxis(y, axis, -1), weights, 1) * dx


@replaces(theirs.quad)
def quad(func: Any, a: Any, b: Any, *args: Any, **kw: Any) -> Any:
    refuse("integrate.quad", " in its bounds", "use isomorph.scipy.integrate.fixed_quad")


def odeint(
    func: Any, y0: Any, t: Any, args: Any = (), Dfun: Any = None, col_deriv: Any = 0, **options: Any
) -> Any:
    """`scipy.integrate.odeint`. Its gradient for `y0`, `t` and the arrays in `args` comes from the
    adjoint equation, which is solved backwards from one time to the one before.
    """
    if not any(map(holds_traced, (y0, t, *tree.flatten(args)[0]))):
        return theirs.odeint(func, y0, t, args, Dfun, col_deriv, **options)
    if options.get("full_output"):
        refuse("integrate.odeint", " with full_output=True")
    turned = options.pop("tfirst", False)
    leaves, form = tree.flatten(args if isinstance(args, tuple) else (args,))
    floats = [i for i, x in enumerate(leaves) if type(x) is float or _is_float(x)]

    def slope(y: Any, t: Any, *arrays: Any) -> Any:
        full = list(leaves)
        for i, x in zip(floats, arrays):
            full[i] = x
        given = tree.unflatten(form, full)
        return asarray(func(t, y, *given) if turned else func(y, t, *given))

    def solve(y0: Any, t: Any, *args: Any) -> Any:
        if any(map(holds_traced, (y0, t, args))):
            return odeint(slope, y0, t, args, **options)
        return theirs.odeint(slope, y0, t, args, **options)

    def forward(y0: Any, t: Any, *args: Any) -> Any:
        y = solve(y0, t, *args)
        return y, (y, t, args)

    def backward(saved: Any, g: Any) -> tuple:
        y, t, args = saved
        return _adjoint(slope, y, t, args, g, options)

    arrays = [asarray(leaves[i]) for i in floats]
    return custom_vjp(solve, forward, backward)(_real(y0), _real(t), *arrays)


def _is_float(x: Any) -> bool:
    return getattr(getattr(x, "dtype", None), "kind", "") == "f"


def _real(x: Any) -> Any:
    x = asarray(x)
    return x if _is_float(x) else x.astype(float)


def _adjoint(slope: Any, y: Any, t: Any, args: tuple, g: Any, options: dict[str, Any]) -> tuple:
    """The gradients for the first state, the times and the arguments of `slope`."""
    n = y.shape[1]
    sizes = [prod(np.shape(a)) for a in args]
    ends = numpy.cumsum([0, *sizes]).tolist()

    def change(state: Any, time: Any, *args: Any) -> Any:
        """The slope of y, of its gradient and of the gradients of `args`, all in one vector."""
        value, adjoint = state[:n], state[n : 2 * n]
        wide = [value, *args]
        outs, pull, _ = vjp(lambda v, *a: ((slope(v, time, *a),), ()), wide)
        found = pull((asarray(-adjoint),))
        return np.concatenate([outs[0], *[np.ravel(d) for d in found]])

    given = g[-1]
    arguments: Any = np.zeros(ends[-1])
    times = []
    for i in range(y.shape[0] - 1, 0, -1):
        times.append(np.sum(slope(y[i], t[i], *args) * g[i]))
        state = np.concatenate([y[i], given, arguments])
        before = odeint(change, state, np.stack([t[i], t[i - 1]]), args, **options)[-1]
        given, arguments = before[n : 2 * n] + g[i - 1], before[2 * n :]
    # a later start shortens the way by what the slope at it would have added
    first = -np.sum(slope(y[0], t[0], *args) * (given - g[0]))
    split = [
        np.reshape(arguments[i:j], np.shape(a)) for i, j, a in zip(ends, ends[1:], args)
    ]  # fmt: skip
    return given, np.stack([first, *times[::-1]]), *split
