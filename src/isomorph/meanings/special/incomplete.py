"""The regularized incomplete gamma functions P(a, x) and Q(a, x) = 1 − P(a, x), and their
derivative with respect to a.

There are four methods: the power series of P for small x, one of Q where both a and x are small, a
continued fraction of Q for large x, and Temme's uniform expansion (DLMF 8.12) for large a and x
close to it. Each computes the smaller of the two, or one that is not close to 1.
"""

from __future__ import annotations

import math
from typing import Any

from .dual import Dual, chosen, converged
from .errors import erfcx
from .gamma import (
    LARGE,
    digamma,
    gamma,
    log_gamma_near_two,
    stirling,
)
from .logarithms import log_unless, over
from .series import expm1, log1p, log1p_minus, pick, polynomial
from .smooth import long_smooth

# Taylor coefficients of c₀(η), c₁(η) … (DLMF 8.12.8), exact before they are rounded.
TEMME = (
    (
        -0.3333333333333333, 0.08333333333333333, -0.014814814814814815,
        0.0011574074074074073, 0.0003527336860670194, -0.0001787551440329218,
        3.919263178522438e-05, -2.185448510679992e-06, -1.85406221071516e-06,
        8.296711340953087e-07, -1.7665952736826078e-07, 6.707853543401498e-09,
        1.0261809784240309e-08, -4.382036018453353e-09, 9.14769958223679e-10,
    ),
    (
        -0.001851851851851852, -0.003472222222222222, 0.0026455026455026454,
        -0.0009902263374485596, 0.00020576131687242798, -4.018775720164609e-07,
        -1.8098550334489977e-05, 7.64916091608111e-06, -1.6120900894563446e-06,
        4.647127802807434e-09, 1.378633446915721e-07, -5.752545603517705e-08,
        1.1951628599778148e-08, -1.7543241719747647e-11, -1.0091543710600413e-09,
    ),
    (
        0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049,
        2.0093878600823047e-06, -0.0001073665322636516, 5.2923448829120125e-05,
        -1.2760635188618728e-05, 3.423578734096138e-08, 1.3721957309062934e-06,
        -6.298992138380055e-07, 1.4280614206064242e-07, -2.0477098421990866e-10,
        -1.409252991086752e-08, 6.228974084922022e-09,
    ),
    (
        0.0006494341563786008, 0.00022947209362139917, -0.0004691894943952557,
        0.00026772063206283885, -7.561801671883977e-05, -2.396505113867297e-07,
        1.1082654115347302e-05, -5.6749528269915965e-06, 1.4230900732435883e-06,
        -2.7861080291528143e-11, -1.6958404091930278e-07, 8.099464905388083e-08,
        -1.9111168485973655e-08,
    ),
    (
        -0.0008618882909167117, 0.0007840392217200666, -0.0002990724803031902,
        -1.4638452578843418e-06, 6.641498215465122e-05, -3.968365047179435e-05,
        1.1375726970678419e-05, 2.507497226237533e-10, -1.6954149536558305e-06,
        8.907507532205309e-07, -2.292934834000805e-07,
    ),
    (
        -0.00033679855336635813, -6.972813758365857e-05, 0.0002772753244959392,
        -0.00019932570516188847, 6.797780477937208e-05, 1.419062920643967e-07,
        -1.3594048189768693e-05, 8.018470256334202e-06, -2.291481176508095e-06,
    ),
    (
        0.0005313079364639922, -0.0005921664373536939, 0.0002708782096718045,
        7.902353232660328e-07, -8.153969367561969e-05, 5.61168275310625e-05,
        -1.8329116582843375e-05, -3.0796134506033047e-09, 3.465155368803609e-06,
    ),
    (
        0.00034436760689237765, 5.171790908260592e-05, -0.00033493161081142234,
        0.0002812695154763237, -0.00010976582244684731, -1.2741009095484485e-07,
        2.7744451511563645e-05, -1.8263488805711332e-05,
    ),
    (
        -0.0006526239185953094, 0.0008394987206720873, -0.000438297098541721,
        -6.969091458420552e-07, 0.00016644846642067547, -0.00012783517679769218,
        4.629953263691304e-05,
    ),
    (
        -0.0005967612901927463, -7.204895416020011e-05, 0.0006782308837667328,
        -0.0006401475260262758, 0.00027750107634328704,
    ),
    (
        0.0013324454494800656, -0.0019144384985654776, 0.0011089369134596636,
    ),
    (
        0.001579727660730835,
    ),
)  # fmt: skip
UNIFORM, NEAR = 20.0, 0.3  # Temme's expansion is used for a >= UNIFORM and |x - a| <= NEAR·a
SMALL = 1.1  # the continued fraction of Q converges slowly below
LIMIT = 2000  # of steps; a few hundred are needed
ROOT_TAU = math.sqrt(2 * math.pi)
SERIES = 20  # terms of the series of Q, for x <= SMALL


def _log_ratio_minus(xp: Any, a: Any, x: Any) -> tuple[Any, Any]:
    """μ = (x − a)/a, and log(x/a) − μ."""
    mu = (x - a) / a
    near = xp.abs(mu) < 0.5
    found = xp.log(pick(xp, near, xp.ones_like(a), 0.0) + pick(xp, xp.logical_not(near), x / a, 0))
    return mu, xp.where(near, log1p_minus(xp, pick(xp, near, mu, 0.25)), found - mu)


def _front(xp: Any, a: Any, x: Any) -> Any:
    """x^a · e^(−x) / Γ(a + 1)."""
    large = a >= LARGE
    big = pick(xp, large, a, 10.0)
    _, power = _log_ratio_minus(xp, big, pick(xp, large, x, 10.0))
    far = xp.exp(big * power - stirling(big)) / (ROOT_TAU * xp.sqrt(big))
    small = pick(xp, large, xp.ones_like(a), 0.0) + pick(xp, xp.logical_not(large), a, 0.0)
    inside = xp.where(x < 1000, x, xp.full_like(x, 1000.0))
    near = xp.pow(inside, small) * xp.exp(-inside) / gamma.kernel(xp, small + 1)
    return xp.where(large, far, near)


def _power_series(xp: Any, a: Dual, x: Any) -> Dual:
    """1 + x/(a + 1) + x²/((a + 1)(a + 2)) + …"""

    def step(k: Any, term: Dual, total: Dual) -> tuple[Dual, ...]:
        term = term * (a + k).under(x)
        return term, total + term

    one = Dual(xp.ones_like(x), [xp.zeros_like(x) for _ in a.slopes])
    return converged(xp, step, (one, one), LIMIT)


def _fraction(xp: Any, a: Dual, x: Any) -> Dual:
    """Γ(a, x)·x^(−a)·e^x, by Legendre's continued fraction as a sum (Steed's method)."""

    def step(k: Any, below: Dual, change: Dual, total: Dual) -> tuple[Dual, ...]:
        numerator, denominator = (a - k) * k, a.taken_from(x + (2 * k + 1))
        new = (numerator * below + denominator).under(1.0)
        change = -(change * (numerator * below) * new)
        return new, change, total + change

    first = a.taken_from(x + 1).under(1.0)
    return converged(xp, step, (first, first, first), LIMIT)


def _small_upper(xp: Any, a: Dual, x: Any) -> Dual:
    """Q(a, x) for small a and x <= SMALL, by the series of 1 − P, in which 1 cancels."""
    z = a.value
    low = z < 0.5
    t = xp.where(low, z, z - 1)
    logs = log_gamma_near_two(xp, t) - xp.where(low, log1p(xp, pick(xp, low, z, 0.25)), 0 * z)
    power = z * xp.log(x) - logs
    slope = [xp.log(x) - digamma.kernel(xp, z + 1) for _ in a.slopes]
    total = (a + SERIES).under(1.0) * (-x / SERIES)
    for n in range(SERIES - 1, 0, -1):
        total = (total + (a + n).under(1.0)) * (-x / n)
    found = (a * total).scaled(xp.exp(power), slope)
    lead = xp.exp(power)
    return Dual(-expm1(xp, power), [-lead * s for s in slope]) - found


def _uniform(xp: Any, a: Any, x: Any, with_slope: bool) -> Dual:
    """P(a, x) if x < a, else Q(a, x), by Temme's expansion."""
    mu, power = _log_ratio_minus(xp, a, x)
    size = xp.sqrt(-2 * power)
    left = mu < 0
    eta = xp.where(left, -size, size)
    steady = mu == 0
    bend = -xp.where(steady, xp.ones_like(a), mu / pick(xp, size > 0, eta, 1.0)) / a
    variable = Dual(eta, [bend] if with_slope else [])
    inverse = Dual(1 / a, [-1 / a / a] if with_slope else [])
    total = Dual(xp.zeros_like(a), [xp.zeros_like(a)] if with_slope else [])
    for row in TEMME[::-1]:
        total = total * inverse + polynomial(row, variable)
    front = xp.exp(a * power) / (ROOT_TAU * xp.sqrt(a))
    tail = xp.exp(a * power) * 0.5 * erfcx.kernel(xp, xp.sqrt(-a * power))
    value = tail + xp.where(left, -front * total.value, front * total.value)
    if not with_slope:
        return Dual(value)
    slope = total.value * (power + mu - 0.5 / a) + total.slopes[0] - a * bend - eta / 2
    return Dual(value, [xp.where(left, -front * slope, front * slope)])


def _parts(xp: Any, a: Any, x: Any, with_slope: bool) -> tuple[Dual, Any]:
    """P or Q, and whether it is Q, for positive finite arguments."""
    uniform = xp.logical_and(a >= UNIFORM, xp.abs(x - a) <= NEAR * a)
    small = x <= SMALL
    # near 0, the curve that separates P < 0.9 from Q < 0.9, roughly
    log = xp.log(pick(xp, x < 0.5, x, 0.5))
    lower = xp.where(
        xp.logical_and(small, x <= 0.5), a * -log > 0.4, xp.where(small, SMALL * x < a, x <= a)
    )
    upper = xp.logical_not(lower)
    other = xp.logical_not(uniform)
    series = xp.logical_and(other, lower)
    fraction = xp.logical_and(other, xp.logical_and(upper, xp.logical_not(small)))
    tiny = xp.logical_and(other, xp.logical_and(upper, small))
    one = [xp.ones_like(a)] if with_slope else []

    found = _uniform(xp, pick(xp, uniform, a, 100.0), pick(xp, uniform, x, 100.0), with_slope)
    plain = xp.logical_or(series, fraction)
    p, q = pick(xp, plain, a, 1.0), pick(xp, plain, x, 1.0)
    front = _front(xp, p, q)
    slope = xp.log(q) - digamma.kernel(xp, p + 1) if with_slope else 0.0
    r, y = pick(xp, series, a, 1.0), pick(xp, series, x, 0.0)
    below = _power_series(xp, Dual(r, one), y).scaled(front, [slope] * len(one))
    r, y = pick(xp, fraction, a, 1.0), pick(xp, fraction, x, 50.0)
    above = _fraction(xp, Dual(r, one), y).scaled(p * front, [slope + 1 / p] * len(one))
    p, q = pick(xp, tiny, a, 0.1), pick(xp, tiny, x, 0.5)
    near = _small_upper(xp, Dual(p, one), q)
    found = chosen(xp, series, below, found)
    found = chosen(xp, fraction, above, chosen(xp, tiny, near, found))
    return found, xp.where(uniform, x >= a, upper)


def _both(xp: Any, a: Any, x: Any, start: float, end: float, with_upper: bool) -> Any:
    """P, which begins with 0 and ends with 1, or Q, which begins with 1 and ends with 0."""
    inside = xp.logical_and(xp.logical_and(a > 0, x > 0), xp.isfinite(a))
    inside = xp.logical_and(inside, xp.isfinite(x))
    found, upper = _parts(xp, pick(xp, inside, a, 1.0), pick(xp, inside, x, 1.0), False)
    value = xp.where(upper if with_upper else xp.logical_not(upper), found.value, 1 - found.value)
    begins = xp.logical_and(a > 0, xp.logical_or(x == 0, xp.isinf(a)))
    ends = xp.logical_and(xp.logical_and(a >= 0, x > 0), xp.logical_or(a == 0, xp.isinf(x)))
    ends = xp.logical_and(ends, xp.logical_not(xp.logical_and(xp.isinf(a), xp.isinf(x))))
    begins = xp.logical_and(begins, xp.logical_and(x >= 0, xp.isfinite(x)))
    edge = xp.where(begins, xp.full_like(a, start), pick(xp, ends, xp.full_like(a, end), xp.nan))
    return xp.where(inside, value, edge)


@long_smooth(
    lambda xp, _, a, x: gammainc_slope(xp, a, x),
    lambda xp, _, a, x: gamma_density(xp, a, x),
)
def gammainc(xp: Any, a: Any, x: Any) -> Any:
    return _both(xp, a, x, 0.0, 1.0, False)


@long_smooth(
    lambda xp, _, a, x: -gammainc_slope(xp, a, x),
    lambda xp, _, a, x: -gamma_density(xp, a, x),
)
def gammaincc(xp: Any, a: Any, x: Any) -> Any:
    return _both(xp, a, x, 1.0, 0.0, True)


def _density_slope(xp: Any, y: Any, a: Any, x: Any) -> Any:
    """The derivative of the density for x; at 0, where it is 0·∞, its limit."""
    starts = xp.logical_and(x == 0, a > 1)
    start = xp.where(a > 2, 0 * a, xp.where(a == 2, 0 * a + 1, xp.inf + 0 * a))
    return xp.where(starts, start, y * (over(xp, a - 1, pick(xp, ~starts, x, 1.0)) - 1))


@long_smooth(
    lambda xp, y, a, x: y * (log_unless(xp, y, x) - digamma(xp, a)),
    _density_slope,
)
def gamma_density(xp: Any, a: Any, x: Any) -> Any:
    """x^(a − 1)·e^(−x) / Γ(a), the derivative of P with respect to x."""
    inside = xp.logical_and(xp.logical_and(a > 0, x > 0), xp.isfinite(a))
    p, q = pick(xp, inside, a, 1.0), pick(xp, inside, x, 1.0)
    q = xp.where(xp.isinf(q), xp.full_like(q, float(xp.finfo(q.dtype).max)), q)
    value = _front(xp, p, q) * (p / q)
    # where x^a is 0 in floating point but x^(a - 1) is not
    low = xp.logical_and(value == 0, q < 1)
    value = xp.where(low, xp.pow(q, p - 1) / gamma.kernel(xp, p), value)
    start = xp.where(a > 1, 0 * a, xp.where(a == 1, 0 * a + 1, xp.inf + 0 * a))
    edge = xp.where(xp.logical_and(x == 0, a > 0), start, xp.full_like(a, xp.nan))
    edge = xp.where(xp.logical_and(a == 0, x > 0), xp.zeros_like(a), edge)
    edge = xp.where(xp.logical_and(xp.isinf(a), x >= 0), xp.zeros_like(a), edge)
    return xp.where(inside, value, edge)


@long_smooth(
    "the parameter a, whose second derivative is not known",
    lambda xp, _, a, x: gamma_density.slope(xp, 0, None, (a, x)),
)
def gammainc_slope(xp: Any, a: Any, x: Any) -> Any:
    """The derivative of P(a, x) with respect to a."""
    inside = xp.logical_and(xp.logical_and(a > 0, x > 0), xp.isfinite(a))
    inside = xp.logical_and(inside, xp.isfinite(x))
    found, upper = _parts(xp, pick(xp, inside, a, 1.0), pick(xp, inside, x, 1.0), True)
    value = xp.where(upper, -found.slopes[0], found.slopes[0])
    flat = xp.logical_and(xp.logical_and(a > 0, x >= 0), xp.logical_or(x == 0, xp.isinf(a + x)))
    return xp.where(inside, value, pick(xp, flat, xp.zeros_like(a), xp.nan))
