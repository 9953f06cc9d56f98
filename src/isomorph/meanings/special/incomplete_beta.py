"""The regularized incomplete beta function I_x(a, b), and its derivatives with respect to a and b.

All methods share the front factor x^a·(1 − x)^b / B(a, b). The power series is used where it
converges quickly, from either end; between, the continued fraction of Didonato and Morris; and for
two large parameters, whose fraction needs many steps, Gauss's quadrature of the integral in the
variable log(t / (1 − t)), along which the integrand falls like a piece of a normal density.
"""

from __future__ import annotations

import math
from typing import Any

from .beta import by_gammas, digamma_rise, has_gammas, log_rise, rise_remainder
from .dual import Dual, chosen, converged
from .gamma import (
    LARGE,
    SLOPES,
    digamma,
    log_gamma_near_two,
    stirling,
)
from .logarithms import log1p_unless, log_unless, over
from .series import expm1, log1p, log1p_minus, pick, polynomial, product, total
from .smooth import long_smooth

# Gauss and Legendre's nodes and weights on [0, 1].
NODES = (
    0.00240639000148931991, 0.0126357220143452509, 0.0308627239986336207, 0.0567922364977994829,
    0.089999007013048539, 0.129937904210722818, 0.175953174031512215, 0.227289264305580232,
    0.283103246186977431, 0.342478660151918313, 0.404440566263191845, 0.467971553568697187,
    0.532028446431302813, 0.595559433736808155, 0.657521339848081687, 0.716896753813022569,
    0.772710735694419768, 0.824046825968487785, 0.870062095789277182, 0.910000992986951461,
    0.943207763502200517, 0.969137276001366379, 0.987364277985654749, 0.99759360999851068,
)  # fmt: skip
WEIGHTS = (
    0.00617061489999359977, 0.0142656943144668316, 0.0221387194087099031, 0.0296492924577183904,
    0.0366732407055401529, 0.043095080765976638, 0.0488093260520569441, 0.0537221350579828174,
    0.0577528340268628007, 0.0608352364639016956, 0.0629187281734141481, 0.0639690976733760785,
    0.0639690976733760785, 0.0629187281734141481, 0.0608352364639016956, 0.0577528340268628007,
    0.0537221350579828174, 0.0488093260520569441, 0.043095080765976638, 0.0366732407055401529,
    0.0296492924577183904, 0.0221387194087099031, 0.0142656943144668316, 0.00617061489999359977,
)  # fmt: skip
DEPTH = 40.0  # the quadrature ends where the integrand is e^(-DEPTH) of its greatest value
MANY = 500.0  # quadrature is used if both parameters are larger
SHORT = 0.7  # the series is used for x below this, and b·x <= 1
LIMIT = 5000  # of steps; a few hundred are needed


class Point:
    """Arguments of I_x(a, b), with what all methods need: the complement y of x as a sum of two
    numbers, and λ = a·y − b·x, which is positive where x is below the mean of the distribution.
    """

    def __init__(self, xp: Any, a: Any, b: Any, x: Any):
        self.a, self.b, self.x = a, b, x
        # a 1 that compilers do not know: one of them takes 1 - (1 - x) for x
        one = xp.where(x >= 0, xp.ones_like(x), xp.zeros_like(x))
        self.y, self.rest = total(one, -x)
        (first, low), (second, less) = product(xp, a, self.y), product(xp, b, x)
        self.distance = (first - second) + ((low - less) + a * self.rest)

    def turned(self, xp: Any, where: Any) -> Point:
        """The point of 1 − I_x(a, b) = I_y(b, a) where the condition holds, else this one."""
        new = object.__new__(Point)
        new.a, new.b = xp.where(where, self.b, self.a), xp.where(where, self.a, self.b)
        new.x, new.y = xp.where(where, self.y, self.x), xp.where(where, self.x, self.y)
        new.rest = xp.where(where, xp.zeros_like(self.x), self.rest)
        new.distance = xp.where(where, -self.distance, self.distance)
        return new

    def kept(self, xp: Any, where: Any, a: float, b: float, x: float) -> Point:
        """This point where the condition holds, and a harmless one elsewhere."""
        new = object.__new__(Point)
        new.a, new.b = pick(xp, where, self.a, a), pick(xp, where, self.b, b)
        new.x, new.y = pick(xp, where, self.x, x), pick(xp, where, self.y, 1 - x)
        new.rest = pick(xp, where, self.rest, 0.0)
        new.distance = pick(xp, where, self.distance, a - (a + b) * x)
        return new


def _log_minus(xp: Any, mu: Any, ratio: Any) -> Any:
    """log(1 + μ) − μ, where 1 + μ is `ratio`."""
    near = xp.abs(mu) < 0.5
    far = xp.log(pick(xp, xp.logical_not(near), ratio, 1.0)) - mu
    return xp.where(near, log1p_minus(xp, pick(xp, near, mu, 0.25)), far)


def _power_of_y(xp: Any, at: Point) -> Any:
    """y^b, with the digits of y that were rounded off."""
    return xp.pow(at.y, at.b) * xp.exp(at.b * (at.rest / pick(xp, at.y > 0, at.y, 1.0)))


def _front(xp: Any, at: Point) -> Any:
    """x^a·y^b / B(a, b)."""
    a, b = at.a, at.b
    low, high = xp.minimum(a, b), xp.maximum(a, b)
    small = has_gammas(xp, low, high)
    large = xp.logical_and(low >= LARGE, xp.logical_not(small))
    near = at.kept(xp, xp.logical_not(large), 1.0, 1.0, 0.5)
    less, more = xp.minimum(near.a, near.b), xp.maximum(near.a, near.b)
    size, gamma_of_less = by_gammas(xp, less, pick(xp, small, more, 10.0))
    left, right = xp.pow(near.x, near.a), _power_of_y(xp, near)
    first = left * (right / size)
    # Γ(more) / Γ(more + less) is more^(-less), nearly; it is multiplied with the power of x or y
    rest = pick(xp, xp.logical_not(xp.logical_or(small, large)), more, 200.0)
    grown = near.a < near.b
    base = xp.where(grown, near.x, near.y) * rest
    second = xp.pow(base, less) * xp.where(grown, right, left) / gamma_of_less
    second = second * xp.exp(rise_remainder(xp, rest, less))
    far = at.kept(xp, large, 100.0, 100.0, 0.5)
    both = far.a + far.b
    power = far.a * _log_minus(xp, -far.distance / far.a, far.x * (both / far.a))
    power = power + far.b * _log_minus(xp, far.distance / far.b, far.y * (both / far.b))
    power = power + (stirling(both) - stirling(far.a) - stirling(far.b))
    scale = xp.sqrt(far.a) * xp.sqrt(far.b / both) / math.sqrt(2 * math.pi)
    third = xp.exp(power) * scale
    return xp.where(small, first, xp.where(large, third, second))


def _digamma_rest(xp: Any, x: Any) -> Any:
    """ψ(x) − log x for x >= LARGE."""
    square = 1 / x / x
    return -0.5 / x - square * polynomial(SLOPES, square)


def _front_slopes(xp: Any, at: Point) -> list[Any]:
    """The derivatives of log(x^a·y^b / B(a, b)) with respect to a and b."""
    large = xp.logical_and(at.a >= LARGE, at.b >= LARGE)
    far = at.kept(xp, large, 100.0, 100.0, 0.5)
    rest = _digamma_rest(xp, far.a + far.b)
    found = []
    for one, mu, x in ((far.a, -far.distance / far.a, far.x), (far.b, far.distance / far.b, far.y)):
        logs = _log_minus(xp, mu, x * ((far.a + far.b) / one)) + mu
        found.append(logs + (rest - _digamma_rest(xp, one)))
    near = at.kept(xp, xp.logical_not(large), 1.0, 1.0, 0.5)
    other = near.turned(xp, near.x > 0)
    one, two = xp.stack([near.a, near.b]), xp.stack([near.b, near.a])
    first, second = xp.unstack(digamma_rise.kernel(xp, one, two))
    first, second = first + _log_x(xp, near), second + _log_x(xp, other)
    return [xp.where(large, found[0], first), xp.where(large, found[1], second)]


def _lead_slopes(xp: Any, at: Point) -> list[Any]:
    """The derivatives of log(x^a / (a·B(a, b))) with respect to a and b."""
    a, b = at.a, at.b
    low = b < 1
    # ψ(a + b) − ψ(a + 1)
    start, step = xp.where(low, a + b, a + 1), xp.where(low, 1 - b, b - 1)
    both = digamma_rise.kernel(xp, xp.stack([start, b]), xp.stack([step, a]))
    rise, along_b = xp.unstack(both)
    return [_log_x(xp, at) + xp.where(low, -rise, rise), along_b]


def _log_x(xp: Any, at: Point) -> Any:
    near = at.x > 0.5
    y = pick(xp, near, at.y, 0.25)
    return xp.where(near, log1p(xp, -y), xp.log(at.x))


def _power_series(xp: Any, a: Dual, b: Dual, x: Any) -> Dual:
    """Σ (1 − b)(2 − b)…(n − b) / n! · x^n / (a + n) for n = 1, 2, …"""

    def step(k: Any, term: Dual, change: Dual, total: Dual) -> tuple[Dual, ...]:
        term = term * b.taken_from(k) * (x / k)
        change = term / (a + k)
        return term, change, total + change

    zero = [xp.zeros_like(x) for _ in a.slopes]
    one = Dual(xp.ones_like(x), zero)
    return converged(xp, step, (one, one, Dual(xp.zeros_like(x), zero)), LIMIT)


def _fraction(xp: Any, at: Point, a: Dual, b: Dual, distance: Dual) -> Dual:
    """I_x(a, b) / (x^a·y^b / B(a, b)) where x is below the mean, by the continued fraction of
    Didonato and Morris as a sum (Steed's method).
    """
    x = at.x

    def step(k: Any, below: Dual, change: Dual, total: Dual) -> tuple[Dual, ...]:
        odd = (a + (2 * k - 1)).under(x)
        numerator = (a + (k - 1)) * odd * ((a + b + (k - 1)) * odd) * ((b - k) * k)
        denominator = (b - k) * odd * k + k
        rest = (distance + (1 + k * (2 - x))) / (a + (2 * k + 1))
        denominator = denominator + (a + k) * rest
        new = (numerator * below + denominator).under(1.0)
        change = -(change * (numerator * below) * new)
        return new, change, total + change

    first = (a * ((distance + 1) / (a + 1))).under(1.0)
    return converged(xp, step, (first, first, first), LIMIT)


def _quadrature(xp: Any, at: Point, any_used: Any, slopes: list[list[Any]]) -> Dual:
    """I_x(a, b) / (x^a·y^b / B(a, b)) where x is below the mean: the integral of
    e^(−a·u − (a + b)·log(y + x·e^(−u))) over positive u. `slopes` are those of a and of b.
    """
    both, distance = at.a + at.b, at.distance
    curve = both * at.x * at.y
    width = 2 * DEPTH / (distance + xp.sqrt(distance * distance + 2 * DEPTH * curve))
    shorter, device = at.x < at.y, xp.device_of(at.x)
    least = xp.where(shorter, at.x, at.y)
    nodes, weights = (xp.asarray(t, dtype=at.x.dtype, device=device) for t in (NODES, WEIGHTS))

    def body(k: Any, *totals: Any) -> tuple[Any, ...]:
        place = xp.astype(xp.reshape(k, (1,)), xp.int32)
        node, weight = (xp.reshape(xp.take(t, place), ()) for t in (nodes, weights))
        u = width * node
        turn = xp.where(shorter, -u, u)
        growth = expm1(xp, turn)
        bend = log1p_minus(xp, least * growth) + least * _expm1_minus(xp, turn, growth)
        value = weight * xp.exp(-distance * u - both * bend)
        found = [value]
        if slopes:
            along_b = -(bend - at.x * u)  # −log(y + x·e^(−u))
            along_a = along_b - u
            found += [value * (along_a * p + along_b * q) for p, q in zip(*slopes)]
        return (k + 1, *(t + f for t, f in zip(totals, found)))

    count = len(NODES)
    goes_on = lambda k, *_: xp.logical_and(any_used, k < count)
    zeros = tuple(xp.zeros_like(at.x) for _ in range(1 + (len(slopes[0]) if slopes else 0)))
    start = xp.zeros((), dtype=at.x.dtype, device=device)
    _, *found = xp.while_loop(goes_on, body, (start, *zeros))
    return Dual(found[0] * width, [f * width for f in found[1:]])


def _expm1_minus(xp: Any, u: Any, growth: Any) -> Any:
    """e^u − 1 − u for |u| < 1/2; beyond, it need not be exact."""
    small = pick(xp, xp.abs(u) < 0.5, u, 0.25)
    return xp.where(xp.abs(u) < 0.5, small * small * polynomial(SECOND, small), growth - u)


SECOND = tuple(1.0 / math.factorial(k) for k in range(2, 16))


def _upper_series(xp: Any, at: Point, tail: Dual, a: Dual, b: Dual) -> Dual:
    """I_x(a, b) for small y and b < 1, by the series of 1 − I_y(b, a), in which 1 cancels. `tail`
    is the power series of I_y(b, a).
    """
    z = at.b
    low = z < 0.5
    t = xp.where(low, z, z - 1)
    logs = log_gamma_near_two(xp, t) - xp.where(low, log1p(xp, pick(xp, low, z, 0.25)), 0 * z)
    log_y = xp.log(at.y)
    power = z * log_y + (log_rise(xp, at.a, z) - logs)
    slopes = []
    if a.slopes:
        along_a = digamma_rise.kernel(xp, at.a, z)
        along_b = log_y + (digamma.kernel(xp, at.a + z) - digamma.kernel(xp, 1 + z))
        slopes = [along_a * p + along_b * q for p, q in zip(a.slopes, b.slopes)]
    lead = xp.exp(power)
    found = Dual(-expm1(xp, power), [-lead * s for s in slopes])
    return found - (b * tail).scaled(lead, slopes)


def _parts(xp: Any, at: Point, with_slopes: bool) -> tuple[Dual, Any]:
    """I_x(a, b) or 1 − I_x(a, b), and whether it is the latter, for 0 < x < 1."""
    one, zero = xp.ones_like(at.x), xp.zeros_like(at.x)
    left = xp.logical_and(at.b * at.x <= 1, at.x <= SHORT)
    right = xp.logical_and(at.a * at.y <= 1, at.y <= SHORT)
    right = xp.logical_and(right, xp.logical_not(left))
    series = xp.logical_or(left, right)
    upper = xp.logical_or(right, xp.logical_and(xp.logical_not(left), at.distance < 0))
    here = at.turned(xp, upper)
    first, second = xp.where(upper, zero, one), xp.where(upper, one, zero)
    slopes = [[first, second], [second, first]] if with_slopes else []

    def duals(at: Point) -> tuple[Dual, Dual, Dual]:
        if not with_slopes:
            return Dual(at.a), Dual(at.b), Dual(at.distance)
        steps = [at.y * p - at.x * q for p, q in zip(*slopes)]
        return Dual(at.a, slopes[0]), Dual(at.b, slopes[1]), Dual(at.distance, steps)

    front = _front(xp, at)
    logs = _front_slopes(xp, at) if with_slopes else []

    quick = here.kept(xp, series, 1.0, 1.0, 0.25)
    a, b, _ = duals(quick)
    tail = _power_series(xp, a, b, quick.x)
    divisor = pick(xp, series, _power_of_y(xp, quick), 1.0)
    lead = pick(xp, series, front, 0.0) / divisor / quick.a
    steps = []
    if with_slopes:
        along_a, along_b = _lead_slopes(xp, quick)
        steps = [along_a * p + along_b * q for p, q in zip(*slopes)]
    found = (a * tail + 1).scaled(lead, steps)
    # where 1 - I_y(b, a) would cancel
    cancels = xp.logical_and(right, at.b < 1)
    end = at.kept(xp, cancels, 1.0, 0.5, 0.75)
    if with_slopes:
        whole = Dual(end.a, [one, zero]), Dual(end.b, [zero, one])
    else:
        whole = Dual(end.a), Dual(end.b)
    found = chosen(xp, cancels, _upper_series(xp, end, tail, *whole), found)

    large = xp.logical_and(xp.logical_not(series), xp.minimum(at.a, at.b) > MANY)
    far = here.kept(xp, large, 1e4, 1e4, 0.25)
    integral = _quadrature(xp, far, xp.any(large), slopes).scaled(front, logs)
    middle = xp.logical_not(xp.logical_or(series, large))
    some = here.kept(xp, middle, 1.0, 1.0, 0.25)
    fraction = _fraction(xp, some, *duals(some)).scaled(front, logs)
    found = chosen(xp, large, integral, chosen(xp, middle, fraction, found))
    return found, xp.logical_and(upper, xp.logical_not(cancels))


def _inside(xp: Any, a: Any, b: Any, x: Any) -> tuple[Any, Point]:
    """Whether the arguments are ordinary, and they, or harmless ones."""
    inside = xp.logical_and(xp.logical_and(a > 0, b > 0), xp.logical_and(x > 0, x < 1))
    inside = xp.logical_and(inside, xp.logical_and(xp.isfinite(a), xp.isfinite(b)))
    a, b = pick(xp, inside, a, 1.0), pick(xp, inside, b, 1.0)
    # huge parameters, of which products would overflow, are one step at their mean in any case
    most = 1e290 if a.dtype == xp.float64 else 1e30
    scale = xp.where(xp.maximum(a, b) > most, xp.full_like(a, 1e-20), xp.ones_like(a))
    least = 16 * float(xp.finfo(a.dtype).smallest_normal)
    a, b = (xp.where(p < least, xp.full_like(p, least), p * scale) for p in (a, b))
    return inside, Point(xp, a, b, pick(xp, inside, x, 0.5))


def _known(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """Whether there is a value at the ends of the domain."""
    known = xp.logical_and(xp.logical_and(a >= 0, b >= 0), xp.logical_and(x >= 0, x <= 1))
    unclear = xp.logical_and(a == 0, b == 0)
    unclear = xp.logical_or(unclear, xp.logical_and(xp.isinf(a), xp.isinf(b)))
    return xp.logical_and(known, xp.logical_not(unclear))


@long_smooth(
    lambda xp, _, a, b, x: betainc_slope_a(xp, a, b, x),
    lambda xp, _, a, b, x: betainc_slope_b(xp, a, b, x),
    lambda xp, _, a, b, x: beta_density(xp, a, b, x),
)
def betainc(xp: Any, a: Any, b: Any, x: Any) -> Any:
    inside, at = _inside(xp, a, b, x)
    found, upper = _parts(xp, at, False)
    value = xp.where(upper, 1 - found.value, found.value)
    high = xp.logical_or(a == 0, xp.isinf(b))
    high = xp.where(x == 0, xp.zeros_like(high), xp.logical_or(high, x == 1))
    edge = xp.where(high, xp.ones_like(a), xp.zeros_like(a))
    return xp.where(inside, value, pick(xp, _known(xp, a, b, x), edge, xp.nan))


def _density_slope(xp: Any, y: Any, a: Any, b: Any, x: Any) -> Any:
    """The derivative of the density for x; at 0 and 1, where it is 0·∞, its limit."""
    starts, ends = xp.logical_and(x == 0, a > 1), xp.logical_and(x == 1, b > 1)
    edge = xp.logical_or(starts, ends)
    power, other = xp.where(starts, a, b), xp.where(starts, b, a)
    zero = xp.zeros_like(a)
    limit = xp.where(power > 2, zero, xp.where(power == 2, other * (other + 1), xp.inf + zero))
    z = pick(xp, ~edge, x, 0.5)
    found = y * (over(xp, a - 1, z) - over(xp, b - 1, 1 - z))
    return xp.where(edge, xp.where(starts, limit, -limit), found)


@long_smooth(
    lambda xp, y, a, b, x: y * (log_unless(xp, y, x) + digamma_rise(xp, a, b)),
    lambda xp, y, a, b, x: y * (log1p_unless(xp, y, -x) + digamma_rise(xp, b, a)),
    _density_slope,
)
def beta_density(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """x^(a − 1)·(1 − x)^(b − 1) / B(a, b), the derivative of I_x(a, b) with respect to x."""
    inside, at = _inside(xp, a, b, x)
    value = _front(xp, at) / at.x / at.y
    zero = xp.zeros_like(a)
    first, last = x == 0, x == 1
    power = xp.where(first, a, b)
    height = xp.where(first, b, a)
    edge = xp.where(power > 1, zero, xp.where(power == 1, height, xp.inf + zero))
    edge = xp.where(xp.logical_or(first, last), edge, zero)
    return xp.where(inside, value, pick(xp, _known(xp, a, b, x), edge, xp.nan))


UNKNOWN = "a parameter, in which the second derivative is not known"


def _slope(xp: Any, a: Any, b: Any, x: Any, which: int) -> Any:
    inside, at = _inside(xp, a, b, x)
    found, upper = _parts(xp, at, True)
    value = xp.where(upper, -found.slopes[which], found.slopes[which])
    return xp.where(inside, value, pick(xp, _known(xp, a, b, x), xp.zeros_like(a), xp.nan))


@long_smooth(
    UNKNOWN,
    UNKNOWN,
    lambda xp, _, a, b, x: beta_density.slope(xp, 0, None, (a, b, x)),
)
def betainc_slope_a(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """The derivative of I_x(a, b) with respect to a."""
    return _slope(xp, a, b, x, 0)


@long_smooth(
    UNKNOWN,
    UNKNOWN,
    lambda xp, _, a, b, x: beta_density.slope(xp, 1, None, (a, b, x)),
)
def betainc_slope_b(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """The derivative of I_x(a, b) with respect to b."""
    return _slope(xp, a, b, x, 1)
