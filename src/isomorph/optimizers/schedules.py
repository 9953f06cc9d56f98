"""Learning-rate schedules.

A schedule is a function from a step, counted from 0, to a rate. For a Python number it returns a
float; for a 0-d array, as in a compiled program, a 0-d array. Its formula is written once over
`xp`; `Numbers` is the `xp` for Python numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from ..core.dispatch import dtype_of, find_backend
from .lifting import cast, number, shown

Schedule = Callable[[Any], Any]


class Numbers:
    """The part of a namespace that schedules need, for Python numbers."""

    cos = staticmethod(math.cos)
    floor = staticmethod(math.floor)

    @staticmethod
    def where(chosen: bool, x: float, y: float) -> float:
        return x if chosen else y

    @staticmethod
    def clip(x: float, low: float, high: float) -> float:
        return min(max(x, low), high)

    @staticmethod
    def pow(x: float, y: float) -> float:
        return x**y


def constant(rate: float, /) -> Schedule:
    """The same rate at every step.

    >>> iso.optimizers.constant(0.1)(7)
    0.1
    """
    level = number("optimizers.constant", "rate", rate)

    def schedule(step: Any) -> Any:
        xp, t = _clock("constant", step)
        return level if xp is Numbers else xp.full_like(t, level)

    return schedule


def cosine(rate: float, steps: int, *, end: float = 0.0) -> Schedule:
    """From `rate` to `end` over `steps` along half a cosine; `end` after that.

    >>> schedule = iso.optimizers.cosine(1.0, 10)
    >>> [round(schedule(t), 3) for t in (0, 5, 10, 99)]
    [1.0, 0.5, 0.0, 0.0]
    """
    high, low = (number("optimizers.cosine", n, x) for n, x in (("rate", rate), ("end", end)))
    length = _steps("cosine", "steps", steps)

    def schedule(step: Any) -> Any:
        xp, t = _clock("cosine", step)
        return _wave(xp, high, low, t / length)

    return schedule


def warmup(
    rate: float, steps: int, *, start: float = 0.0, then: Schedule | None = None
) -> Schedule:
    """From `start` to `rate` linearly over `steps`; then `rate`, or the schedule `then`, whose
    steps start at 0 there.

    >>> schedule = iso.optimizers.warmup(1.0, 4, then=iso.optimizers.cosine(1.0, 10))
    >>> [round(schedule(t), 3) for t in (0, 2, 4, 9, 14)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    high, low = (number("optimizers.warmup", n, x) for n, x in (("rate", rate), ("start", start)))
    length = _steps("warmup", "steps", steps)
    if then is not None and not callable(then):
        raise TypeError(
            f"optimizers.warmup: needed a schedule as then, got {type(then).__name__}; for a "
            "number, iso.optimizers.constant"
        )

    def schedule(step: Any) -> Any:
        xp, t = _clock("warmup", step)
        rising = low + (high - low) * xp.clip(t / length, 0.0, 1.0)
        if then is None:
            return rising
        return xp.where(t < length, rising, then(xp.clip(t - length, 0, math.inf)))

    return schedule


def warmup_cosine(
    rate: float, warmup_steps: int, steps: int, *, start: float = 0.0, end: float = 0.0
) -> Schedule:
    """From `start` to `rate` linearly over `warmup_steps`, then to `end` along half a cosine;
    `steps` is the total, and the rate is `end` after it.

    >>> schedule = iso.optimizers.warmup_cosine(1.0, 4, 14)
    >>> [round(schedule(t), 3) for t in (0, 2, 4, 9, 14)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    first = _steps("warmup_cosine", "warmup_steps", warmup_steps)
    whole = _steps("warmup_cosine", "steps", steps)
    if whole <= first:
        raise ValueError(
            f"optimizers.warmup_cosine: needed more steps than warmup_steps, got {whole} and "
            f"{first}; steps includes warmup_steps"
        )
    return warmup(rate, first, start=start, then=cosine(rate, whole - first, end=end))


def step(
    rate: float, at: int | Sequence[int] | Mapping[int, float], *, factor: float = 0.1
) -> Schedule:
    """`rate`, multiplied by `factor` at certain steps: at every `at`-th step, or at each of a
    sequence of steps; or, with a dict, multiplied by its values at its keys.

    >>> schedule = iso.optimizers.step(1.0, 30, factor=0.5)
    >>> [schedule(t) for t in (0, 29, 30, 60)]
    [1.0, 1.0, 0.5, 0.25]
    >>> schedule = iso.optimizers.step(1.0, {5: 0.5, 8: 0.1})
    >>> [schedule(t) for t in (4, 5, 8)]
    [1.0, 0.5, 0.05]
    """
    name = "optimizers.step"
    high, ratio = number(name, "rate", rate), number(name, "factor", factor)
    if isinstance(at, Integral):
        every = _steps("step", "at", at)

        def regular(step: Any) -> Any:
            xp, t = _clock("step", step)
            base = ratio if xp is Numbers else xp.full_like(t, ratio)
            return high * xp.pow(base, xp.floor(t / every))

        return regular
    if not isinstance(at, Iterable) or isinstance(at, str):
        raise TypeError(f"{name}: needed an int, ints or a dict as at, got {type(at).__name__}")
    drops = at if isinstance(at, Mapping) else dict.fromkeys(at, ratio)
    pairs = [(_steps("step", "at", n), number(name, f"at[{n}]", x)) for n, x in drops.items()]

    def piecewise(step: Any) -> Any:
        xp, t = _clock("step", step)
        level = high if xp is Numbers else xp.full_like(t, high)
        for boundary, drop in pairs:
            level = xp.where(t >= boundary, level * drop, level)
        return level

    return piecewise


def one_cycle(
    rate: float, steps: int, *, rising: float = 0.3, start: float = 25.0, end: float = 1e4
) -> Schedule:
    """From `rate` / `start` up to `rate` during the fraction `rising` of `steps`, then down to
    `rate` / `start` / `end`, both along half a cosine; Smith and Topin 2017.

    The last step has the lowest rate, and all later steps too.

    >>> schedule = iso.optimizers.one_cycle(1.0, 11, rising=6 / 11, start=10.0, end=10.0)
    >>> [round(schedule(t), 3) for t in (0, 5, 10)]
    [0.1, 1.0, 0.01]
    """
    name = "optimizers.one_cycle"
    high, length = number(name, "rate", rate), _steps("one_cycle", "steps", steps)
    part = number(name, "rising", rising)
    low, least = number(name, "start", start), number(name, "end", end)
    if not low or not least:
        raise ValueError(f"{name}: needed start and end above 0, got {low} and {least}")
    top = part * length - 1
    if not 0 < top < length - 1:
        raise ValueError(
            f"{name}: needed the rate to rise for more than one of {length} steps and to fall "
            f"for some, got rising={part}"
        )

    def schedule(step: Any) -> Any:
        xp, t = _clock("one_cycle", step)
        up = _wave(xp, high / low, high, t / top)
        down = _wave(xp, high, high / low / least, (t - top) / (length - 1 - top))
        return xp.where(t <= top, up, down)

    return schedule


def _wave(xp: Any, start: float, end: float, part: Any) -> Any:
    """Half a cosine from `start` to `end`, as `part` goes from 0 to 1."""
    return end + (start - end) / 2 * (1 + xp.cos(math.pi * xp.clip(part, 0.0, 1.0)))


def _clock(name: str, step: Any) -> tuple[Any, Any]:
    """The namespace for a step, and the step, as a floating-point number if it is an array."""
    if isinstance(step, Real) and not isinstance(step, bool):
        if step < 0:
            raise ValueError(f"optimizers.{name}: needed step >= 0, got {step}")
        return Numbers, step
    xp = find_backend(step)
    if xp is None or isinstance(step, bool):
        raise TypeError(f"optimizers.{name}: needed a step, got a {type(step).__name__}")
    if len(step.shape):
        raise TypeError(
            f"optimizers.{name}: needed a number or a 0-d array as step, got {dtype_of(step)} of "
            f"shape {shown(step.shape)}"
        )
    return xp, step if xp.isdtype(step.dtype, "real floating") else cast(xp, step, xp.float32)


def _steps(name: str, what: str, n: Any) -> int:
    """A number of steps, at least 1."""
    if not isinstance(n, Integral) or isinstance(n, bool):
        raise TypeError(f"optimizers.{name}: needed an int as {what}, got {type(n).__name__}")
    if n < 1:
        raise ValueError(f"optimizers.{name}: needed {what} >= 1, got {n}")
    return int(n)
