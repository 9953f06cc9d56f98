"""Draws with a parameter for each element: gamma by rejection, Poisson by inversion and rejection.

A fixed number of proposals is drawn for each element, and the first that is accepted is taken: no
loop depends on values, so that a draw can be compiled and mapped. The chance that all proposals of
an element are rejected is below 10⁻⁹; then it is near the mean: a rejected proposal may be a number
that does not occur, such as a negative one. All numbers of a draw come from one key, with different
counters.
"""

from __future__ import annotations

import math
from typing import Any

from .random import normal, unit

TRIES = 8  # of Marsaglia and Tsang, which accept at least 95%
TURNS = 16  # of Hörmann, who accepts at least 3 of 4
MANY = 10  # means from which on rejection is used
MOST = 64  # no mean below 10 gives more
FACTORIALS = [math.lgamma(k + 1) for k in range(MANY)]


def gamma(xp: Any, key: Any, a: Any, sizes: tuple[int, ...], word: str) -> Any:
    """Numbers of the gamma distribution (Marsaglia and Tsang, "A simple method for generating gamma
    variables"); a parameter below 1 is raised by 1, and the result multiplied by u^(1/a).
    """
    a = xp.broadcast_to(xp.stop_gradient(a, False), sizes)
    right, endless = a > 0, a == float("inf")
    sure = xp.where(xp.logical_and(right, xp.logical_not(endless)), a, xp.ones_like(a))
    count = TRIES * math.prod(sizes)
    z = xp.draw(normal, key, 0, (TRIES, *sizes), word)
    u = 1 - xp.draw(unit, key, count, (TRIES, *sizes), word)  # not 0
    low = sure < 1
    d = xp.where(low, sure + 1, sure) - 1 / 3
    v = (1 + z / xp.sqrt(9 * d)) ** 3
    positive = v > 0
    logarithm = xp.log(xp.where(positive, v, xp.ones_like(v)))
    accepted = xp.log(u) < z * z / 2 + d * (1 - v + logarithm)
    x = d * _first(xp, v, xp.logical_and(positive, accepted), xp.ones_like(d))
    power = xp.log(1 - xp.draw(unit, key, 2 * count, sizes, word)) / xp.where(
        low, sure, xp.ones_like(a)
    )
    x = xp.where(low, x * xp.exp(power), x)
    x = xp.where(endless, a, x)
    return xp.where(right, x, xp.full_like(x, float("nan")))


def poisson(
    xp: Any, key: Any, lam: Any, sizes: tuple[int, ...], word: str, small: bool, large: bool
) -> Any:
    """Numbers of the Poisson distribution, as floats; `small` and `large` say whether there may be
    means below and from `MANY` on.
    """
    lam = xp.broadcast_to(lam, sizes)
    right = xp.logical_and(lam >= 0, lam < float("inf"))
    sure = xp.where(right, lam, xp.ones_like(lam))
    few = sure < MANY
    none = xp.zeros_like(sure)
    k = none
    if small:
        u = xp.draw(unit, key, 0, sizes, word)
        k = _inverted(xp, xp.where(few, sure, none), u)
    if large:
        u = xp.draw(unit, key, 0, (TURNS, *sizes), word)
        v = 1 - xp.draw(unit, key, TURNS * math.prod(sizes), (TURNS, *sizes), word)  # not 0
        big = _rejected(xp, xp.where(few, xp.full_like(sure, MANY), sure), u, v)
        k = xp.where(few, k, big)
    return xp.where(right, k, xp.full_like(k, -1.0))


def _first(xp: Any, proposals: Any, accepted: Any, otherwise: Any) -> Any:
    """Of the proposals [tries, ...], for each element the first that is accepted, or `otherwise`
    [...] if none is.
    """
    tries, rest = proposals.shape[0], proposals.shape[1:]
    turns = xp.arange(tries, device=xp.device_of(proposals))
    turns = xp.broadcast_to(xp.reshape(turns, (-1, *(1 for _ in rest))), (tries, *rest))
    # not by argmax, for which one compiler, fusing it with a draw, takes minutes
    place = xp.min(xp.where(accepted, turns, xp.full_like(turns, tries)), axis=0, keepdims=True)
    sure = xp.minimum(place, xp.full_like(place, tries - 1))
    found = xp.take_along_axis(proposals, sure, axis=0)[0, ...]
    return xp.where(place[0, ...] < tries, found, otherwise)


def _inverted(xp: Any, lam: Any, u: Any) -> Any:
    """How many values of the distribution function are not above `u`."""
    least = float(xp.finfo(u.dtype).eps) / 8

    def step(_: Any, k: Any, p: Any, below: Any, count: Any) -> tuple:
        k = k + 1
        # a sum of rounded numbers may stay below 1: what is too rare to be drawn ends the search
        goes_on = xp.logical_and(u >= below, xp.logical_or(p > least, lam > k))
        p = p * lam / k
        return k, p, below + p, xp.where(goes_on, k, count)

    p, none = xp.exp(-lam), xp.zeros_like(lam)
    return xp.fori_loop(1, MOST, step, (none, p, p, none))[-1]


def _rejected(xp: Any, lam: Any, u: Any, v: Any) -> Any:
    """Hörmann, "The transformed rejection method for generating Poisson random variables" (PTRS),
    for means of at least 10.
    """
    b = 0.931 + 2.53 * xp.sqrt(lam)
    a = -0.059 + 0.02483 * b
    over = 1.1239 + 1.1328 / (b - 3.4)
    quick = 0.9277 - 3.6224 / (b - 2)
    u = u - 0.5
    side = 0.5 - xp.abs(u)
    side = xp.maximum(side, xp.full_like(side, 2.0**-25))
    k = xp.floor((2 * a / side + b) * u + lam + 0.43)
    inside = xp.logical_and(k >= 0, xp.logical_or(side >= 0.013, v <= side))
    k = xp.maximum(k, xp.zeros_like(k))
    level = xp.log(v * over / (a / (side * side) + b))
    slow = xp.logical_and(inside, level <= _log_probability(xp, k, lam))
    taken = xp.logical_or(xp.logical_and(side >= 0.07, v <= quick), slow)
    return _first(xp, k, taken, xp.floor(lam))


def _log_probability(xp: Any, k: Any, lam: Any) -> Any:
    """log of the probability of `k`, without differences of large numbers (Loader, "Fast and
    accurate computation of binomial probabilities").
    """
    few = k < MANY
    table = xp.asarray(FACTORIALS, dtype=k.dtype, device=xp.device_of(k))
    place = xp.astype(xp.where(few, k, xp.zeros_like(k)), xp.int32)
    factorial = xp.reshape(xp.take(table, xp.reshape(place, (-1,))), tuple(k.shape))
    direct = k * xp.log(lam) - lam - factorial
    many = xp.where(few, xp.full_like(k, MANY), k)
    away = (many - lam) / lam
    near = xp.abs(away) < 0.1
    small = xp.where(near, away, xp.zeros_like(away))
    series = xp.zeros_like(away)
    for n in range(12, 1, -1):  # (1 + x) log(1 + x) - x
        series = series * small + (-1) ** n / (n * (n - 1))
    wide = (1 + away) * xp.log1p(away) - away
    deviance = lam * xp.where(near, series * small * small, wide)
    inverse = 1 / many
    tail = inverse * (1 / 12 - inverse * inverse * (1 / 360 - inverse * inverse / 1260))
    return xp.where(few, direct, -deviance - tail - 0.5 * xp.log(2 * math.pi * many))
