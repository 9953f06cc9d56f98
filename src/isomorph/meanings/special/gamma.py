"""The gamma function, its logarithm and the derivatives of that, and the Hurwitz zeta function.

Near 2 they are polynomials, fitted to 60 digits; a recurrence leads there from up to 7.5, and
Stirling's series is used above. Negative numbers are reflected.
"""

from __future__ import annotations

import math
from typing import Any

from .series import log1p, log1p_minus, pi_cot_pi, pick, polynomial, sin_pi
from .smooth import long_smooth

# Γ(2 + t), log Γ(2 + t) / t for |t| <= 1/2, and ψ(1.5 + t) / (1.5 + t - ROOT).
GAMMA = (
    1.0, 0.4227843350984667821, 0.41184033042643987345, 0.081576919247171927707,
    0.074249010753471064033, -0.00026698207476044322, 0.01115404572113896001,
    -0.002852645629480312417, 0.0021039332448517376952, -0.000919577139338106654,
    0.0004903901012192666537, -0.00024090816788518260106, 0.00012165717113737425541,
    -0.00006099437734759249274, 0.000030554308764876926269, -0.000014518030694390135052,
    7.2632956346064903251e-6, -5.167425827999643757e-6, 2.5842107353009290681e-6,
)  # fmt: skip
LOG_GAMMA = (
    0.4227843350984671356, 0.32246703342411322004, -0.067352301053195638653,
    0.020580808427783379755, -0.0073855510289355447, 0.0028905103308659009277,
    -0.0011927539009983086944, 0.00050966951965266727797, -0.0002231549774629272317,
    0.000099457616921571331318, -0.000044923727564247652589, 0.000020506019701747618598,
    -9.4562885151017191737e-6, 4.3828545383846667716e-6, -1.9743106888421067444e-6,
    9.2428522251622767419e-7, -5.8112777689212461977e-7, 2.7475390051909663921e-7,
)  # fmt: skip
DIGAMMA = (
    0.95105587603183289283, -0.42362742128146050498, 0.24054248424077421856,
    -0.14840492305390885721, 0.094988724454941213253, -0.06192213327306453169,
    0.040760833812420736017, -0.026975796756138248795, 0.017907252439451199397,
    -0.011908218001568644751, 0.0079269446464037960374, -0.0052799648732574042082,
    0.0035190064015022760473, -0.002345267632540769041, 0.0015566317474486839277,
    -0.001037637409841860467, 0.00072332662792875541556, -0.00048219905305667888755,
    0.00022723316609873758807, -0.00015148586836773365902, 0.00025968482126430746555,
    -0.00017312261802727393258,
)  # fmt: skip
ROOT = (1.4616321449683622, 9.5499954299656977152e-17)  # where ψ is 0, as a sum
BERNOULLI = (  # B₂, B₄, B₆ …
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798,
    -174611 / 330, 854513 / 138, -236364091 / 2730,
)  # fmt: skip
STIRLING = tuple(b / ((2 * k + 2) * (2 * k + 1)) for k, b in enumerate(BERNOULLI[:10]))
SLOPES = tuple(b / (2 * k + 2) for k, b in enumerate(BERNOULLI[:10]))
HURWITZ = tuple(b / math.factorial(2 * k + 2) for k, b in enumerate(BERNOULLI))
LARGE = 7.5  # Stirling's series is exact to the last digit from here on
LAST = 190  # 1/Γ is 0 in float64 above
HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


def _split_factorials() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """m and s for n = 0, 1, …, with Γ(n) = m·s², where s is a power of two."""
    halves = [math.factorial(max(n - 1, 0)).bit_length() // 2 for n in range(LAST + 1)]
    rest = [math.factorial(max(n - 1, 0)) / 4**half for n, half in enumerate(halves)]
    return tuple(rest), tuple(2.0**half for half in halves)


FACTORIALS = _split_factorials()


def stirling(x: Any) -> Any:
    """log Γ(x) − (x − ½)·log x + x − ½·log 2π for x >= LARGE."""
    return polynomial(STIRLING, 1 / (x * x)) / x


def _parts(xp: Any, x: Any) -> tuple[Any, Any]:
    """m and s with Γ(x) = m·s·s, for −½ <= x <= LAST. Neither overflows where 1/Γ is not 0."""
    low = x < LARGE
    z = pick(xp, low, x, 2.0)
    whole = xp.floor(z + 0.5)
    near = polynomial(GAMMA, z - whole)
    for j in range(1, 6):
        near = xp.where(z >= j + 1.5, near * (z - j), near)
    near = xp.where(z < 1.5, near / xp.where(z < 0.5, (1 + z) * z, z), near)
    z = pick(xp, low, xp.full_like(x, 10.0), 0.0) + pick(xp, xp.logical_not(low), x, 0.0)
    whole = xp.floor(z + 0.5)
    t = z - whole
    # Γ(n + t) / Γ(n) = n^t · e^(small terms): there is no large exponent that would lose digits
    ratio = t / whole
    power = t * xp.log(whole) + (z - 0.5) * log1p_minus(xp, ratio) + ratio * (t - 0.5)
    power = xp.exp(power + (stirling(z) - stirling(whole)))
    place = xp.reshape(xp.astype(whole, xp.int32), (-1,))
    rest, scale = (
        xp.reshape(xp.take(_table(xp, numbers, x), place), x.shape) for numbers in FACTORIALS
    )
    return xp.where(low, near, rest * power), xp.where(low, xp.ones_like(x), scale)


def _table(xp: Any, numbers: tuple[float, ...], x: Any) -> Any:
    """The numbers as an array like `x`; those that its dtype cannot hold are infinite."""
    most = float(xp.finfo(x.dtype).max)
    held = [number if number <= most else math.inf for number in numbers]
    return xp.asarray(held, dtype=x.dtype, device=xp.device_of(x))


def _reflected(xp: Any, x: Any) -> tuple[Any, Any]:
    """Whether x is reflected, and what Γ is computed of instead: between −½ and LAST."""
    turned = x < -0.5
    size = xp.where(turned, -x, x)
    return turned, pick(xp, xp.logical_and(size < LAST, xp.logical_not(xp.isnan(x))), size, LAST)


@long_smooth(lambda xp, y, x: y * digamma(xp, x))
def gamma(xp: Any, x: Any) -> Any:
    turned, z = _reflected(xp, x)
    rest, scale = _parts(xp, z)
    sine = pick(xp, turned, x * sin_pi(xp, pick(xp, turned, x, 0.5)), 1.0)
    pole = xp.logical_and(turned, xp.floor(x) == x)
    below = -math.pi / pick(xp, xp.logical_not(pole), sine, 1.0) / rest / scale / scale
    found = xp.where(turned, below, rest * scale * scale)
    return xp.where(xp.logical_or(pole, xp.isnan(x)), xp.full_like(x, xp.nan), found)


def log_gamma_near_two(xp: Any, t: Any) -> Any:
    """log Γ(2 + t) for |t| <= ½."""
    return t * polynomial(LOG_GAMMA, t)


def log_gamma_one_plus(xp: Any, x: Any) -> Any:
    """log Γ(1 + x) for |x| <= ½, with all digits near 0."""
    return log_gamma_near_two(xp, x) - log1p(xp, x)


def _log_gamma_right(xp: Any, x: Any) -> Any:
    """log |Γ(x)| for x >= −½."""
    low = x < LARGE
    z = pick(xp, low, x, 2.0)
    whole = xp.floor(z + 0.5)
    t = z - whole
    factors = xp.ones_like(x)
    for j in range(1, 6):
        factors = xp.where(z >= j + 1.5, factors * (z - j), factors)
    factors = xp.where(z < 0.5, xp.abs(z), factors)
    logs = xp.log(factors)
    near = log_gamma_near_two(xp, t)
    near = near + xp.where(z < 1.5, xp.where(z < 0.5, -logs, 0 * logs) - log1p(xp, t), logs)
    z = xp.where(low, xp.full_like(x, 10.0), x)
    far = (z - 0.5) * (xp.log(z) - 1) + ((HALF_LOG_TAU - 0.5) + stirling(z))
    return xp.where(low, near, far)


@long_smooth(lambda xp, _, x: digamma(xp, x))
def gammaln(xp: Any, x: Any) -> Any:
    turned = x < -0.5
    right = _log_gamma_right(xp, xp.where(turned, -x, x))
    finite = xp.logical_and(turned, xp.floor(x) != x)
    z = pick(xp, finite, x, -0.5)
    sine = sin_pi(xp, z)
    left = xp.log(math.pi / xp.abs(sine * z)) - right
    # near its zeros, the logarithm of a product has smaller errors than the sum of logarithms
    short = xp.logical_and(finite, x > -30)
    rest, scale = _parts(xp, pick(xp, short, -x, 2.0))
    product = math.pi / (xp.abs(sine * z) * rest * scale * scale)
    left = xp.where(short, xp.log(product), left)
    found = xp.where(turned, pick(xp, finite, left, xp.inf), right)
    return xp.where(x == -xp.inf, x, found)


@long_smooth(lambda xp, _, x: zeta(xp, xp.full_like(x, 2.0), x))
def digamma(xp: Any, x: Any) -> Any:
    turned = x <= -1
    between = xp.logical_and(x > -1, x < 0)
    # ψ(z) for z >= 0, where z < 1 needs one step more
    z = xp.where(turned, 1 - x, xp.where(between, x + 2, xp.where(x < 1, x + 1, x)))
    low = z < LARGE + 1
    start = pick(xp, low, z, 1.0)
    steps = xp.zeros_like(x)
    for _ in range(7):
        down = start > 2
        start = xp.where(down, start - 1, start)
        steps = steps + xp.where(down, 1 / start, 0 * start)
    near = ((start - ROOT[0]) - ROOT[1]) * polynomial(DIGAMMA, start - 1.5) + steps
    far = xp.where(low, xp.full_like(x, 10.0), z)
    square = 1 / far / far
    far = xp.log(far) - 0.5 / far - square * polynomial(SLOPES, square)
    right = xp.where(low, near, far)
    pole = xp.logical_and(turned, xp.floor(x) == x)
    left = right - pi_cot_pi(xp, pick(xp, xp.logical_and(turned, xp.logical_not(pole)), x, -1.5))
    # between the poles -1 and 0 both are taken off together: their sum has no cancellation
    inner = pick(xp, between, x, -0.5)
    inner = right - (2 * inner + 1) / (inner * (inner + 1))
    start = pick(xp, xp.logical_and(x < 1, x >= 0), x, 1.0)
    found = xp.where(xp.logical_and(x < 1, x >= 0), right - 1 / start, right)
    found = xp.where(turned, left, xp.where(between, inner, found))
    return xp.where(xp.logical_or(pole, x == -xp.inf), xp.full_like(x, xp.nan), found)


def _hurwitz(xp: Any, s: Any, q: Any, unit: Any = 1.0) -> Any:
    """ζ(s, q)·unit^s for s > 1 and q > 0, by Euler and Maclaurin's formula after ten terms."""
    a = q + 10
    matters = s * log1p(xp, 10 / q) < 60  # the rest, beside the first term
    order = pick(xp, matters, s, 2.0)
    factor, rest = order / a, xp.full_like(q, 0.5)
    for k, b in enumerate(HURWITZ):
        rest = rest + b * factor
        factor = factor * ((order + (2 * k + 1)) / a) * ((order + (2 * k + 2)) / a)
    total = xp.pow(a / unit, 1 - order) * (unit / (order - 1) + rest / a * unit)
    total = xp.where(matters, total, xp.zeros_like(q))
    for k in range(9, -1, -1):
        total = total + xp.pow((q + k) / unit, -s)
    return total


def _zeta_slope(xp: Any, _: Any, s: Any, q: Any) -> Any:
    return -s * zeta(xp, s + 1, q)


@long_smooth("the order s, in which it is not known", _zeta_slope)
def zeta(xp: Any, s: Any, q: Any) -> Any:
    defined, below, pole = s > 1, q < 0, xp.logical_and(q <= 0, xp.floor(q) == q)
    order = pick(xp, defined, s, 2.0)
    inside = xp.logical_and(below, xp.logical_not(pole))
    # ζ(s, q) − ζ(s, q + n), n terms of both signs, is a difference of two such functions again
    part, rest = (pick(xp, inside, x, 0.5) for x in (q - xp.floor(q), xp.ceil(q) - q))
    first = xp.where(q > 0, q, part)
    places = xp.stack([first, rest, pick(xp, inside, 1 - q, 1.5)])
    upper, lower, beyond = xp.unstack(_hurwitz(xp, xp.stack([order] * 3), places))
    odd = xp.round(order / 2) * 2 != order
    left = upper + xp.where(odd, beyond - lower, lower - beyond)
    left = pick(xp, xp.floor(order) == order, left, xp.nan)
    found = xp.where(pole, xp.full_like(q, xp.inf), xp.where(below, left, upper))
    unknown = xp.logical_or(xp.isnan(q), xp.logical_not(defined))
    found = xp.where(unknown, xp.full_like(q, xp.nan), found)
    return xp.where(s == 1, xp.full_like(q, xp.inf), found)


def _polygamma_slope(xp: Any, _: Any, n: Any, x: Any) -> Any:
    return polygamma(xp, n + 1, x)


@long_smooth("the order n, which is an integer", _polygamma_slope)
def polygamma(xp: Any, n: Any, x: Any) -> Any:
    whole = xp.logical_and(n >= 0, xp.floor(n) == n)
    order = pick(xp, whole, n, 1.0)
    first = order == 0
    order = pick(xp, xp.logical_not(first), order, 1.0)
    tail = zeta.kernel(xp, order + 1, x)
    _, z = _reflected(xp, order + 1)
    rest, scale = _parts(xp, z)
    size = rest * tail * scale * scale
    # where n! or x^(n + 1) is outside of the dtype: n!·x^(−n − 1) by Stirling's series, in which
    # the exponent is no difference of larger ones, and half of the power at a time
    info, factor = xp.finfo(x.dtype), rest * scale * scale
    lost = tail < float(info.smallest_normal) / float(info.eps)
    lost = xp.logical_or(lost, xp.logical_not(xp.isfinite(factor)))
    lost = xp.logical_and(lost, xp.logical_and(x > 0, x < xp.inf))
    s, q = pick(xp, lost, order + 1, 10.0), pick(xp, lost, x, 10.0)
    power = s * (xp.log(s / q) - 1) + (stirling(s) + HALF_LOG_TAU - 0.5 * xp.log(s))
    half = xp.where(s < LARGE, xp.pow(q, -s / 2), xp.exp(power / 2))
    factor = xp.where(s < LARGE, factor, xp.ones_like(x))
    size = xp.where(lost, factor * half * _hurwitz(xp, s, q, q) * half, size)
    found = xp.where(xp.round(order / 2) * 2 == order, -size, size)
    found = xp.where(first, digamma.kernel(xp, x), found)
    return pick(xp, whole, found, xp.nan)


def multigammaln(xp: Any, a: Any, d: int) -> Any:
    """log of the multivariate gamma function of dimension `d`; NaN unless a > (d − 1)/2."""
    shifts = xp.arange(d, dtype=a.dtype, device=xp.device_of(a)) / 2
    each = gammaln(xp, xp.expand_dims(a, axis=-1) - shifts)
    found = xp.sum(each, axis=-1) + d * (d - 1) / 4 * math.log(math.pi)
    return pick(xp, a > (d - 1) / 2, found, xp.nan)
