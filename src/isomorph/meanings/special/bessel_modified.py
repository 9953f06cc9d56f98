"""Modified Bessel functions of the first kind.

Orders 0 and 1 are the power series up to 8, and a polynomial in 1/x beyond. For any real order:
the power series, whose terms have one sign, or Debye's expansion where √(v² + x²) is large. A
negative order that is not an integer adds K, by the trapezoidal rule on its integral, or by Debye's
expansion; below x = 2 the power series holds for it too.
"""

from __future__ import annotations

import math
from typing import Any

from .bessel_sums import counter, debye, gamma_parts, is_odd, is_whole, turned
from .series import pick, polynomial
from .smooth import long_smooth

NEAR = 8.0  # up to here, orders 0, 1 and 2 are power series
FAR, HIGH = 36.0, 50.0  # from this x, or above this order, Debye's expansion is used
LOW = 2.0  # below, the power series holds for negative orders
STEP, NODES = 0.125, 32  # of the trapezoidal rule
# √x·e^(−x)·I(x) in powers of 16/x − 1; from a Chebyshev series, computed with mpmath
ORDER_0 = (
    0.4021765094450081, 0.0033605519836678614, 0.0001362160743919305, 1.1143033790932038e-05,
    1.4838475658279249e-06, 2.9735985885673923e-07, 8.872219737904054e-08, 3.932584334552952e-08,
    2.1548377974791598e-08, 7.554691881248808e-09, -6.747657956107524e-09, -1.340891754008974e-08,
    -5.404771567579958e-09, 7.552583062123384e-09, 7.430464650325426e-09, -3.505966530879332e-09,
    -5.95356943826489e-09, 1.5200816953924232e-09, 3.6379546359011143e-09, -5.715843864202709e-10,
    -1.618980683624682e-09, 1.5279202694981569e-10, 4.577087631643623e-10, -2.0260604287413626e-11,
    -6.067631570603006e-11,
)  # fmt: skip
ORDER_1 = (
    0.38939845902587233, -0.009749577193235737, -0.00021923576383388928, -1.5038547200567216e-05,
    -1.8349101326980946e-06, -3.483855761044295e-07, -1.0001288294864884e-07,
    -4.312917729178349e-08, -2.337392820814264e-08, -8.427766093735185e-09, 6.734464815301592e-09,
    1.4034238782067183e-08, 5.974437608040264e-09, -7.64239413436356e-09, -7.888351507862078e-09,
    3.4262341490077958e-09, 6.242741219786445e-09, -1.4387250533041013e-09, -3.794670896208339e-09,
    5.295625441161261e-10, 1.6848984479705146e-09, -1.4011625179770627e-10, -4.758818838703853e-10,
    1.8515118828852956e-11, 6.305965197150057e-11,
)  # fmt: skip


def _near(x: Any, order: int) -> Any:
    """I(x)/(x/2)^order for |x| ≤ NEAR."""
    terms = [1 / (math.factorial(k) * math.factorial(k + order)) for k in range(25)]
    return polynomial(terms, x * x / 4)


def _parts(xp: Any, x: Any, order: int) -> tuple[Any, Any, Any, Any]:
    """Where |x| is small, I there; |x|, and e^(−|x|)·I of it elsewhere; for orders 0 and 1."""
    size = xp.abs(x)
    small = size <= NEAR
    short = pick(xp, small, size, 1.0)
    long = xp.where(small, xp.full_like(x, NEAR), size)
    near = _near(short, order) * (short / 2 if order else 1)
    far = polynomial(ORDER_1 if order else ORDER_0, 16 / long - 1) / xp.sqrt(long)
    return small, near, size, far


def _plain(xp: Any, x: Any, order: int) -> Any:
    small, near, size, far = _parts(xp, x, order)
    half = xp.exp(size / 2)  # e^x may overflow where the product does not
    found = xp.where(small, near, far * half * half)
    return xp.where(size == math.inf, xp.full_like(x, math.nan), found)  # as in SciPy


def _scaled(xp: Any, x: Any, order: int) -> Any:
    small, near, size, far = _parts(xp, x, order)
    return xp.where(small, near * xp.exp(-pick(xp, small, size, 1.0)), far)


def _signed(xp: Any, x: Any, y: Any) -> Any:
    return xp.where(x < 0, -y, y)


def _slope_of_i0(xp: Any, _: Any, x: Any) -> Any:
    return i1(xp, x)


def _slope_of_i0e(xp: Any, y: Any, x: Any) -> Any:
    return i1e(xp, x) - xp.sign(x) * y


@long_smooth(_slope_of_i0)
def i0(xp: Any, x: Any) -> Any:
    """The modified Bessel function of order 0."""
    return _plain(xp, x, 0)


@long_smooth(_slope_of_i0e)
def i0e(xp: Any, x: Any) -> Any:
    """e^(−|x|)·I₀(x)."""
    return _scaled(xp, x, 0)


@long_smooth(lambda xp, _, x: i0(xp, x) - _i1_by_x(xp, x))
def i1(xp: Any, x: Any) -> Any:
    """The modified Bessel function of order 1."""
    return _signed(xp, x, _plain(xp, x, 1))


@long_smooth(lambda xp, y, x: i0e(xp, x) - _i1e_by_x(xp, x) - xp.sign(x) * y)
def i1e(xp: Any, x: Any) -> Any:
    """e^(−|x|)·I₁(x)."""
    return _signed(xp, x, _scaled(xp, x, 1))


@long_smooth(lambda xp, _, x: _i2_by_x(xp, x))
def _i1_by_x(xp: Any, x: Any) -> Any:
    small = xp.abs(x) <= NEAR
    short, long = pick(xp, small, x, 0.0), xp.where(small, xp.full_like(x, NEAR), xp.abs(x))
    return xp.where(small, _near(short, 1) / 2, _plain(xp, long, 1) / long)


@long_smooth(lambda xp, y, x: _i2e_by_x(xp, x) - xp.sign(x) * y)
def _i1e_by_x(xp: Any, x: Any) -> Any:
    small = xp.abs(x) <= NEAR
    short, long = pick(xp, small, x, 0.0), xp.where(small, xp.full_like(x, NEAR), xp.abs(x))
    near = _near(short, 1) / 2 * xp.exp(-xp.abs(short))
    return xp.where(small, near, _scaled(xp, long, 1) / long)


def _i2_by_x(xp: Any, x: Any) -> Any:
    return iv(xp, xp.full_like(x, 2.0), x) / pick(xp, x != 0, x, 1.0)


def _i2e_by_x(xp: Any, x: Any) -> Any:
    return ive(xp, xp.full_like(x, 2.0), x) / pick(xp, x != 0, x, 1.0)


# ---- any real order ------------------------------------------------------------------------------

ORDER = "the order"


def _slope_of_iv(xp: Any, _: Any, v: Any, x: Any) -> Any:
    return 0.5 * (iv(xp, v - 1, x) + iv(xp, v + 1, x))


def _slope_of_ive(xp: Any, y: Any, v: Any, x: Any) -> Any:
    return 0.5 * (ive(xp, v - 1, x) + ive(xp, v + 1, x)) - xp.sign(x) * y


@long_smooth(ORDER, _slope_of_iv)
def iv(xp: Any, v: Any, x: Any) -> Any:
    """The modified Bessel function of the first kind of real order v; NaN for a negative x if v is
    not an integer.

    Relative errors are a few eps for |v| ≤ 50, and about 3 eps times the exponent beyond: 2.5e-13.
    """
    return _any_order(xp, v, x, False)


@long_smooth(ORDER, _slope_of_ive)
def ive(xp: Any, v: Any, x: Any) -> Any:
    """e^(−|x|)·iv(v, x)."""
    return _any_order(xp, v, x, True)


def _any_order(xp: Any, v: Any, x: Any, scaled: bool) -> Any:
    known = xp.logical_and(xp.isfinite(v), xp.isfinite(x))
    whole = is_whole(xp, v)
    zero, order, size = x == 0, xp.abs(v), xp.abs(x)
    second = xp.logical_and(v < 0, xp.logical_not(whole))  # whether K is added
    inside = xp.logical_and(known, xp.logical_not(zero))
    n, z = pick(xp, inside, order, 1.0), pick(xp, inside, size, 1.0)

    low, high = xp.minimum(n, z), xp.maximum(n, z)
    ratio = low / high
    root = high * xp.sqrt(1 + ratio * ratio)  # √(v² + x²), which does not overflow
    far = xp.logical_or(z >= FAR, n > HIGH)
    below = xp.logical_and(second, z < LOW)
    # the power series, for −n where it holds, and K
    near = xp.logical_not(far)
    a, b = pick(xp, near, n, 1.0), pick(xp, near, z, 1.0)
    beside = xp.logical_and(second, xp.logical_and(near, z >= LOW))
    series, integral = _loops(xp, a, b, xp.logical_and(below, near), beside)
    turns = turned(xp, pick(xp, second, n, 1.0))[1] * (2 / math.pi)
    integral = xp.where(beside, turns * integral, xp.zeros_like(x))  # e^x·K
    fall = xp.exp(-b)
    if scaled:
        found = series * fall + integral * fall * fall
    else:
        found = series + integral * fall
    # Debye's expansion
    a, b, root = pick(xp, far, n, FAR), pick(xp, far, z, FAR), pick(xp, far, root, 2 * FAR)
    p = a / root
    even, odd = debye(xp, 1 / root / root, p * p)
    odd = odd / root
    # log I without its leading x, so that nothing is lost where x is large
    growth = p * (a / (1 + b / root)) - a * xp.asinh(a / b)
    amplitude = 1 / xp.sqrt(2 * math.pi * root)
    first = amplitude * (even + odd) * _exp_sum(xp, growth, 0 * b if scaled else b)
    other = xp.where(second, turns * math.pi, xp.zeros_like(x)) * amplitude * (even - odd)
    gone = pick(xp, second, growth, 0.0)
    other = other * _exp_sum(xp, -gone, -2 * b if scaled else -b)
    large = first + xp.where(xp.logical_and(far, second), other, xp.zeros_like(x))
    found = xp.where(far, large, found)
    found = xp.where(xp.logical_and(x < 0, is_odd(xp, v)), -found, found)
    at_zero = xp.where(order == 0, xp.ones_like(x), xp.zeros_like(x))
    at_zero = xp.where(second, xp.full_like(x, math.inf), at_zero)
    found = xp.where(zero, at_zero, found)
    wrong = xp.logical_and(x < 0, xp.logical_not(whole))
    return xp.where(xp.logical_and(known, xp.logical_not(wrong)), found, xp.full_like(x, math.nan))


def _exp_sum(xp: Any, e: Any, x: Any) -> Any:
    """e^(e + x), with the rounding error of the sum put back."""
    total = e + x
    size = xp.abs(x) > xp.abs(e)
    large, small = xp.where(size, x, e), xp.where(size, e, x)
    lost = small - (total - large)
    half = xp.exp(total / 2)
    lost = xp.where(xp.isfinite(lost), lost, xp.zeros_like(lost))
    return half * (1 + lost) * half


def _loops(xp: Any, v: Any, x: Any, reflected: Any, beside: Any) -> tuple[Any, Any]:
    """I(v, x) for v ≥ 0, or I(−v, x) where it is `reflected`, and e^x·K(v, x) where it is `beside`.

    One loop sums the power series, multiplies up its factor (x/2)^v/Γ(v + 1), and sums K for two
    orders near 0: ∫ e^(−x(cosh t − 1))·cosh(v·t) dt by the trapezoidal rule, which is exact but for
    e^(−40). A second one is the recurrence of K in the order.
    """
    count = xp.floor(v + 0.5)
    part = v - count
    half = x / 2
    down = xp.logical_and(reflected, count > 0)
    power = _first_power(xp, v, part, half, reflected, down)
    order = xp.where(reflected, -v, v)
    q, small = half * half, xp.finfo(x.dtype).eps / 16
    z = pick(xp, beside, x, LOW)

    def goes_on(k: Any, power: Any, term: Any, total: Any, one: Any, two: Any) -> Any:
        unfinished = xp.logical_or(count > k, xp.abs(term) > small * xp.abs(total))
        return xp.logical_or(k < NODES, xp.logical_and(k < 250, xp.any(unfinished)))

    def body(k: Any, power: Any, term: Any, total: Any, one: Any, two: Any) -> tuple:
        after = k + 1
        term = term * q / (after * (after + order))
        before = k + part
        up = half / pick(xp, before + 1 != 0, before + 1, 1.0)
        other = xp.where(k > 0, before, xp.ones_like(x)) / half
        power = xp.where(after <= count, power * xp.where(down, other, up), power)
        t = k * STEP
        rise = xp.exp(t / 2) - xp.exp(-t / 2)  # cosh t − 1 = rise²/2
        weight = xp.exp(-z * (rise * rise / 2)) * xp.where(k > 0, 0 * k + STEP, 0 * k + STEP / 2)
        weight = xp.where(after <= NODES, weight, xp.zeros_like(x))
        turn, grown = xp.exp(part * t), xp.exp(t)
        one = one + weight * (turn + 1 / turn) / 2
        two = two + weight * (turn * grown + 1 / (turn * grown)) / 2
        return after, power, term, total + term, one, two

    ones, zero = xp.ones_like(x), xp.zeros_like(x)
    first = (counter(xp, x, 0.0), power, ones, ones, zero, zero)
    _, power, _, total, one, two = xp.while_loop(goes_on, body, first)
    steps = xp.where(beside, count, zero)

    def upward(k: Any, one: Any, two: Any) -> tuple:
        on = k <= steps
        after = one + 2 * (part + k) / z * two
        return k + 1, xp.where(on, two, one), xp.where(on, after, two)

    more = lambda k, one, two: xp.any(k <= steps)
    return power * total, xp.while_loop(more, upward, (counter(xp, x, 1.0), one, two))[1]


def _first_power(xp: Any, v: Any, part: Any, half: Any, reflected: Any, down: Any) -> Any:
    """half^part/Γ(1 + part), the same of −part where it is `reflected`, and where it goes `down`
    from there half^(−part)/Γ(1 − v)·Γ(v)/Γ(1 + part), with Γ(v)/Γ(1 − v) from the sine.
    """
    even, odd = gamma_parts(xp, part)
    sign = xp.where(reflected, -part, part)
    flipped = turned(xp, v)[1] / math.pi / (even + part * odd)
    return half**sign * xp.where(down, flipped, even + sign * odd)
