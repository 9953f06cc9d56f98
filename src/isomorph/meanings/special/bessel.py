"""Bessel functions of the first and second kind, of real order.

J and Y are computed together for v ≥ 0 and x > 0. Both are known at an order b at or below v, and
at b + 1: near 0 by Temme's series, then by Miller's recurrence and Steed's continued fraction, then
by Debye's expansions. The recurrence in the order, upward, is stable for Y, and for J up to v = x.
Beyond, the quotient of two J is a continued fraction, and their Wronskian gives J. Far beyond,
Debye's expansions hold at v itself.
"""

from __future__ import annotations

import math
from typing import Any

from .bessel_sums import FAR, counter, debye, gamma_parts, is_odd, is_whole, turned
from .series import pick, polynomial
from .smooth import long_smooth

LOW, HIGH = 2.0, 36.0  # up to these arguments: series, and recurrence with a continued fraction
DEPTH = 96  # of that recurrence
LONG = 128.0  # up to this order, the recurrence starts near order 0
STRIP = (FAR * 1.5 / math.sqrt(2)) ** (2 / 3)  # times x^(1/3): where Debye's expansions fail
LIMIT = 20_000  # steps of a loop
# sin(z) − z·cos(z), over z³, in powers of z²
SINE = tuple((-1) ** k * (2 * k + 2) / math.factorial(2 * k + 3) for k in range(10))
SINHC = tuple(1 / math.factorial(2 * k + 1) for k in range(8))  # sinh(z)/z in powers of z²


def _jy(xp: Any, v: Any, x: Any) -> tuple[Any, Any]:
    """J and Y for finite v ≥ 0 and x > 0."""
    near, far = x < LOW, x >= HIGH
    middle = xp.logical_not(xp.logical_or(near, far))
    above = v > x
    # how far v is above x, in the exponent of Debye's expansions
    gap = pick(xp, above, v - x, 1.0)
    bottom = pick(xp, above, x, 1.0)
    height = xp.sqrt(gap) * xp.sqrt(gap + 2 * bottom)
    exponent = (gap + bottom) * xp.log1p((gap + height) / bottom) - height
    angle = 2 * xp.asinh(xp.sqrt(gap / 2 / bottom))  # v = x·cosh(angle)
    flat = angle < 1
    angle = pick(xp, flat, angle, 0.5)
    exponent = xp.where(flat, bottom * angle**3 * polynomial(SINE, -angle * angle), exponent)
    deep = xp.logical_and(above, xp.logical_and(exponent > FAR, v > LONG))

    count, base = _start(xp, v, x, far)
    lost = xp.logical_and(count > LIMIT, xp.logical_not(deep))
    known = xp.logical_not(xp.logical_or(lost, deep))
    count, base = pick(xp, known, count, 0.0), pick(xp, known, base, 0.0)
    far = xp.logical_and(far, known)
    rows = xp.stack([base, base + 1, v])
    r, w, s = _debye_arguments(xp, rows, x, far, deep)
    even, odd = debye(xp, w, s)
    odd = odd * r

    j, y = _oscillating(xp, base, x, far, r[:2, ...], even[:2, ...], odd[:2, ...])
    power, y_near, j_middle, y_middle, ratio = _loops(
        xp, base, v, x, near, middle, xp.logical_and(above, known)
    )
    j = [xp.where(middle, a, j[i, ...]) for i, a in enumerate(j_middle)]
    y = [
        xp.where(near, a, xp.where(middle, b, y[i, ...]))
        for i, (a, b) in enumerate(zip(y_near, y_middle))
    ]
    j0, y0, y1, power = _upward(xp, base, count, x, near, j, y, power)
    over = y1 == -math.inf
    wronskian = 2 / (math.pi * x) / (ratio * y0 - y1)
    first = xp.where(above, xp.where(over, xp.zeros_like(x), wronskian), j0)
    first = xp.where(near, power * _series(pick(xp, near, v, 0.0), pick(xp, near, x, 1.0)), first)
    unknown = xp.full_like(x, math.nan)
    first, second = xp.where(lost, unknown, first), xp.where(lost, unknown, y0)
    root, even, odd = r[2, ...], even[2, ...], odd[2, ...]
    rise = xp.exp(pick(xp, deep, exponent, 0.0) / 2)
    small = xp.sqrt(root / (2 * math.pi)) * (even + odd) / rise / rise
    large = -xp.sqrt(root * (2 / math.pi)) * (even - odd) * rise * rise
    return xp.where(deep, small, first), xp.where(deep, large, second)


def _start(xp: Any, v: Any, x: Any, far: Any) -> tuple[Any, Any]:
    """The number of steps of the recurrence to v, and the order that it starts from."""
    z = pick(xp, far, x, HIGH)
    edge = z - STRIP * z ** (1 / 3)  # up to here, Debye's expansions hold
    low = xp.minimum(edge, xp.sqrt(2 * z))  # up to here, their phase is known best
    top = xp.where(v <= LONG, low, edge)
    steps = xp.where(far, xp.ceil(v - top), xp.floor(v + 0.5))
    steps = xp.clip(steps, 0.0, LIMIT + 1.0)
    return steps, v - steps


def _debye_arguments(xp: Any, rows: Any, x: Any, far: Any, deep: Any) -> tuple:
    """1/√|v² − x²|, 1/(v² − x²) and v²/(v² − x²), where the expansions are used."""
    used = xp.stack([far, far, deep])
    wide = xp.zeros_like(rows) + x
    v, x = pick(xp, used, rows, 0.0), pick(xp, used, wide, HIGH)
    gap = xp.abs(v - x)
    r = 1 / (xp.sqrt(gap) * xp.sqrt(v + x))
    sign = xp.where(v > x, xp.ones_like(x), -xp.ones_like(x))
    return r, sign * r * r, sign * (v * r) * (v * r)


def _oscillating(
    xp: Any, base: Any, x: Any, far: Any, r: Any, even: Any, odd: Any
) -> tuple[Any, Any]:
    """J and Y at the orders base and base + 1, by Debye's expansions."""
    b = xp.stack([base, base + 1])
    z = pick(xp, far, x, HIGH)
    b = xp.where(xp.stack([far, far]), b, xp.zeros_like(b))
    # the phase is x − π(b/2 + 1/4) + more, in parts whose sines are exact
    more = b * xp.asin(b / z) - b * (b / (1 / r + z))
    quarter = b - 4 * xp.floor(b / 4)  # exact
    back, turn = turned(xp, quarter / 2 + 0.25)
    cosine, sine = _sum(xp.cos(z), xp.sin(z), back, -turn)
    # next to v = x, the phase is small beside x: a series without cancellation
    angle = 2 * xp.asin(xp.sqrt((z - b) / 2 / z))  # b = x·cos(angle)
    steep = angle < 1
    angle = pick(xp, steep, angle, 0.5)
    phase = z * angle**3 * polynomial(SINE, angle * angle) - math.pi / 4
    cosine = pick(xp, xp.logical_not(steep), cosine, 1.0)
    sine = pick(xp, xp.logical_not(steep), sine, 0.0)
    more = xp.where(steep, phase, more)
    cosine, sine = _sum(cosine, sine, xp.cos(more), xp.sin(more))
    size = xp.sqrt(r * (2 / math.pi))
    return size * (cosine * even + sine * odd), size * (sine * even - cosine * odd)


def _sum(cos_a: Any, sin_a: Any, cos_b: Any, sin_b: Any) -> tuple[Any, Any]:
    """cos(a + b) and sin(a + b)."""
    return cos_a * cos_b - sin_a * sin_b, sin_a * cos_b + cos_a * sin_b


def _loops(
    xp: Any, base: Any, v: Any, x: Any, near: Any, middle: Any, above: Any
) -> tuple[Any, Any, Any, Any, Any]:
    """What needs a loop and no other loop before, all in one: Temme's series where x is `near` 0,
    Steed's method in the `middle`, and the quotient of two J where v is `above` x.
    """
    power, first, temme, y_near = _temme(xp, pick(xp, near, base, 0.0), pick(xp, near, x, 1.0))
    start, steed, middles = _steed(xp, pick(xp, middle, base, 0.0), pick(xp, middle, x, LOW))
    seed, goes_on, quotient = _quotient(xp, pick(xp, above, v, 2.0), pick(xp, above, x, 1.0))
    n, m = len(first), len(first) + len(start)

    def body(k: Any, *a: Any) -> tuple:
        return k + 1, *temme(k, *a[:n]), *steed(k, *a[n:m]), *quotient(k, *a[m:])

    def unfinished(k: Any, *a: Any) -> Any:
        return xp.logical_or(k <= DEPTH, xp.logical_and(k < LIMIT, goes_on(*a[m:])))

    begin = (counter(xp, x, 1.0), *first, *start, *seed)
    _, *found = xp.while_loop(unfinished, body, begin)
    j, y = middles(*found[n:m])
    return power, y_near(*found[:n]), j, y, found[-1]


def _temme(xp: Any, m: Any, x: Any) -> tuple:
    """(x/2)^m/Γ(m + 1), and Temme's series of Y at the orders m and m + 1, for |m| ≤ 1/2 and x < 2:
    its start, a step, and what is made of the end.
    """
    even, odd = gamma_parts(xp, m)
    plus, minus = even + m * odd, even - m * odd  # 1/Γ(1 ± m)
    log = math.log(2) - xp.log(x)
    bend = m * log
    up = xp.exp(bend)
    flat = xp.abs(bend) < 0.5
    sinhc = polynomial(SINHC, pick(xp, flat, bend * bend, 0.0))
    sinhc = xp.where(flat, sinhc, (up - 1 / up) / (2 * pick(xp, bend != 0, bend, 1.0)))
    turn = math.pi * pick(xp, m != 0, m, 0.25)
    whole = xp.where(m != 0, turn / xp.sin(turn), xp.ones_like(x))
    half = xp.where(m != 0, xp.sin(turn / 2) / (turn / 2), xp.ones_like(x))
    r = math.pi * math.pi / 2 * m * half * half
    f = 2 / math.pi * whole * (-odd * (up + 1 / up) / 2 + even * sinhc * log)
    p, q = up / (plus * math.pi), 1 / (up * minus * math.pi)
    fall = -x * x / 4

    def step(k: Any, f: Any, p: Any, q: Any, c: Any, first: Any, second: Any) -> tuple:
        f = (k * f + p + q) / (k * k - m * m)
        c = c * fall / k
        p, q = p / (k - m), q / (k + m)
        term = c * (f + r * q)
        return f, p, q, c, first + term, second + c * p - k * term

    start = f, p, q, xp.ones_like(x), f + r * q, p
    return plus / up, start, step, lambda *a: (-a[4], -a[5] * 2 / x)


def _series(v: Any, x: Any) -> Any:
    """Γ(v + 1)·J(v, x)/(x/2)^v for x < 2."""
    q = x * x / 4
    total = 1
    for k in range(14, 0, -1):
        total = 1 - q / (k * (k + v)) * total
    return total


def _steed(xp: Any, m: Any, x: Any) -> tuple:
    """J and Y at the orders m and m + 1, for |m| ≤ 1/2 and x from LOW to HIGH: the start, a step,
    and what is made of the end.

    J up to a factor is Miller's recurrence, downward. H = J + iY is the solution with
    H′/H = p + iq, a continued fraction, computed from its end.
    """
    big = 2.0**40

    def step(i: Any, upper: Any, lower: Any, re: Any, im: Any) -> tuple:
        k = DEPTH + 1 - i
        on = xp.logical_and(i <= DEPTH, x > 0)
        before = 2 * (m + k) / x * lower - upper
        scale = xp.where(xp.abs(before) > big, xp.full_like(x, 1 / big), xp.ones_like(x))
        # (a/(2(x + ik) + re + i·im)) with a = (k − 1/2)² − m²
        a = (k - 0.5 - m) * (k - 0.5 + m)
        wide, tall = re + 2 * x, im + 2 * k
        a = a / (wide * wide + tall * tall)
        new = (lower * scale, before * scale, a * wide, -a * tall)
        return tuple(xp.where(on, b, c) for b, c in zip(new, (upper, lower, re, im)))

    def end(after: Any, now: Any, re: Any, im: Any) -> tuple:
        p, q = -(0.5 + im) / x, 1 + re / x
        slope = m / x * now - after
        other = (p * now - slope) / q
        size = xp.sqrt(2 / (math.pi * x) / q / (now * now + other * other))
        j, y = size * now, size * other
        return (j, size * after), (y, m / x * y - q * j - p * y)

    zero = xp.zeros_like(x)
    return (zero, xp.ones_like(x), zero, zero), step, end


def _upward(
    xp: Any, base: Any, count: Any, x: Any, near: Any, j: Any, y: Any, power: Any
) -> tuple[Any, Any, Any, Any]:
    """J, Y, Y of the next order, and (x/2)^v/Γ(v + 1) where x is small, after `count` steps upward
    from `base`.
    """
    half = pick(xp, near, x, 0.5) / 2

    def goes_on(k: Any, *_: Any) -> Any:
        return xp.any(k < count)

    def body(k: Any, j0: Any, j1: Any, y0: Any, y1: Any, power: Any) -> tuple:
        on, order = k < count, base + (k + 1)
        factor = 2 * order / x
        y2 = xp.where(y1 == -math.inf, y1, factor * y1 - y0)
        power = xp.where(on, power * (half / order), power)
        shift = ((j0, j1), (j1, factor * j1 - j0), (y0, y1), (y1, y2))
        return k + 1, *(xp.where(on, b, a) for a, b in shift), power

    _, j0, _, y0, y1, power = xp.while_loop(goes_on, body, (counter(xp, x, 0.0), *j, *y, power))
    return j0, y0, y1, power


def _quotient(xp: Any, v: Any, x: Any) -> tuple:
    """J(v + 1, x)/J(v, x) for v ≥ x, a continued fraction whose partial sums all have one sign: the
    start, whether it goes on, and a step.
    """
    small = xp.finfo(x.dtype).eps / 16

    def goes_on(d: Any, term: Any, total: Any) -> Any:
        return xp.any(term > small * total)

    def step(k: Any, d: Any, term: Any, total: Any) -> tuple:
        after = 1 / (2 * (v + k + 1) / x - d)
        term = term * d * after
        return after, term, total + term

    d = x / (2 * (v + 1))
    return (d, d, d), goes_on, step


# ---- the functions -------------------------------------------------------------------------------

ORDER = "the order"


def _slope_of_j(xp: Any, _: Any, v: Any, x: Any) -> Any:
    return 0.5 * (jv(xp, v - 1, x) - jv(xp, v + 1, x))


def _slope_of_y(xp: Any, _: Any, v: Any, x: Any) -> Any:
    return 0.5 * (yv(xp, v - 1, x) - yv(xp, v + 1, x))


def _sides(xp: Any, v: Any, x: Any) -> tuple[Any, ...]:
    """J and Y of |v| and |x|; cos(π|v|) and sin(π|v|) where v is negative, else 1 and 0; and where
    v and x are finite.
    """
    known = xp.logical_and(xp.isfinite(v), xp.isfinite(x))
    size = pick(xp, known, xp.abs(v), 0.0)
    j, y = _jy(xp, size, pick(xp, xp.logical_and(known, x != 0), xp.abs(x), 1.0))
    cosine, sine = turned(xp, xp.where(v < 0, size, xp.zeros_like(x)))
    return j, y, cosine, sine, known


def _mixed(xp: Any, a: Any, j: Any, b: Any, y: Any) -> Any:
    """a·j + b·y, where 0 times infinity is 0."""
    zero = xp.zeros_like(j)
    return xp.where(a == 0, zero, a * j) + xp.where(b == 0, zero, b * y)


@long_smooth(ORDER, _slope_of_j)
def jv(xp: Any, v: Any, x: Any) -> Any:
    """The Bessel function of the first kind of real order v; NaN for a negative x if v is not an
    integer.

    Errors are below 5e-15 of the amplitude for |v| ≤ 128 and x ≥ 2, and below 2.5e-13 for
    |v| ≤ 1000. Where |v| is above 128 and within 11·x^(1/3) of x, a loop takes up to 21·x^(1/3)
    steps; above 8e8 the result is NaN there.
    """
    j, y, cosine, sine, known = _sides(xp, v, x)
    found = _mixed(xp, cosine, j, -sine, y)
    found = xp.where(xp.logical_and(x < 0, is_odd(xp, v)), -found, found)
    start = xp.where(v == 0, xp.ones_like(x), xp.zeros_like(x))
    start = xp.where(sine > 0, xp.full_like(x, math.inf), start)
    start = xp.where(sine < 0, xp.full_like(x, -math.inf), start)
    found = xp.where(x == 0, start, found)
    real = xp.logical_and(known, xp.logical_or(x >= 0, is_whole(xp, v)))
    return xp.where(real, found, xp.full_like(x, math.nan))


@long_smooth(ORDER, _slope_of_y)
def yv(xp: Any, v: Any, x: Any) -> Any:
    """The Bessel function of the second kind of real order v; NaN for a negative x."""
    j, y, cosine, sine, known = _sides(xp, v, x)
    found = _mixed(xp, sine, j, cosine, y)
    # at 0 the sign is that of cos(π·v), and that next to it where it is 0, as in SciPy
    up = xp.logical_or(cosine < 0, xp.logical_and(cosine == 0, sine < 0))
    start = xp.where(up, xp.full_like(x, math.inf), xp.full_like(x, -math.inf))
    found = xp.where(x == 0, start, found)
    real = xp.logical_and(known, x >= 0)
    return xp.where(real, found, xp.full_like(x, math.nan))
