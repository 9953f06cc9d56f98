"""Derivatives of NumPy's ufuncs, one function per line.

`g` is the gradient of the output, `y` the output, `a` and `b` are the arguments; the tape takes
care of broadcasting and dtypes. For complex arrays the pullback is the conjugate transpose of the
Jacobian, hence the conjugates. If the arguments of a maximum or minimum are equal, each gets half
of the gradient. At some points without a derivative, the rules give a finite value instead of 0/0:
the gradient of hypot at 0 is 0.
"""

import numpy as np

from ..storage import is_number
from ..tape import composed, constant, elementwise, rule
from ..traced import TRACED, Traced, concrete, record

LN2, LN10 = float(np.log(2)), float(np.log(10))


def conj(x):
    """The conjugate, without a copy for real arrays."""
    dtype = getattr(x, "dtype", None)
    if dtype is None:  # a number
        return x.conjugate()
    return x if dtype.kind != "c" else np.conjugate(x)


def where_zero(test, otherwise):
    """`otherwise`, but 0 where `test` is 0."""
    return np.where(concrete(test) == 0, 0.0, otherwise)


def nonzero(x):
    """`x`, but 1 where it is 0: a safe divisor."""
    return np.where(concrete(x) == 0, 1.0, x)


def power_base(g, y, a, b):
    if isinstance(b, (int, float)):  # one exponent: no search for zeros among its elements
        return g * conj(2 * a if b == 2 else b * a ** (b - 1)) if b else np.zeros_like(g)
    return g * conj(where_zero(b, b * nonzero_power(a, b - 1)))


def nonzero_power(a, b):
    return np.where(
        concrete(b) == -1, 1.0 / nonzero(a), np.power(a, np.where(concrete(b) == -1, 1.0, b))
    )


def power_exponent(g, y, a, b):
    """The gradient of aᵇ for the exponent. For a = 0 and b >= 0 it is 0, because 0ᵇ is taken as
    constant there; for a = 0 and b < 0 it is infinite, like 0ᵇ itself.
    """
    constant = (concrete(a) == 0) & (np.real(concrete(b)) >= 0)
    return g * conj(np.where(constant, 0.0, y * np.log(np.where(constant, 1.0, a))))


def share(g, a, b):
    """The gradient of max(a, b) for `a`: all of `g` if a is larger, half if they are equal, else 0;
    NaN if one of them is NaN. For min(a, b) it is share(g, b, a).
    """
    a, b = concrete(a), concrete(b)
    known = np.where(a == b, 0.5 * g, np.where(a > b, g, 0.0))
    return np.where(np.isnan(a) | np.isnan(b), np.nan, known)


def but_nan(g, shared, a, b):
    """`shared`, the gradient for `a` by `share`. But if only one of a and b is NaN, `fmax` and
    `fmin` ignore it, and the other one gets all of `g`.
    """
    gone, other = np.isnan(concrete(a)), np.isnan(concrete(b))
    return np.where(gone == other, shared, np.where(gone, 0.0, g))


def weight(a, b):
    """exp(a) / (exp(a) + exp(b)); at infinities its limit, and 1/2 for equal infinities."""
    plain, other = concrete(a), concrete(b)
    gap = np.where((plain == other) & np.isinf(plain), 0.0, a - b)
    first = concrete(gap) >= 0
    small = np.exp(np.where(first, -gap, gap))
    return np.where(first, 1.0, small) / (1 + small)


def turn(a, b):
    """a / (a² + b²), computed without squares, which could overflow."""
    far = np.hypot(a, b)
    return a / far / far


def absolute(g, y, a):
    return g * np.sign(a) if a.dtype.kind != "c" else g * a / nonzero(y)


def cathetus(a):
    """√(1 - a²). For complex numbers, beyond 1 and -1 on the real axis, it takes the side of the
    branch cut that the sign of the imaginary zero says, as NumPy's arcsin does.
    """
    return np.sqrt(1 - a * a) if a.dtype.kind != "c" else np.sqrt(-(a - 1)) * np.sqrt(a + 1)


# fmt: off
elementwise(np.add,        lambda g: g,                         lambda g: g)
elementwise(np.subtract,   lambda g: g,                         lambda g: -g)
elementwise(np.multiply,   lambda g, a, b: g * conj(b),         lambda g, a, b: g * conj(a))
elementwise(np.divide,     lambda g, y, b: g / conj(b),         lambda g, y, b: -g * conj(y / b))
elementwise(np.power,      power_base,                          power_exponent)
elementwise(pow,           power_base,                          power_exponent)
elementwise(np.arctan2,    lambda g, a, b: g * turn(b, a),      lambda g, a, b: -g * turn(a, b))
elementwise(np.hypot,      lambda g, y, a, b: g * (a / nonzero(y)),
                           lambda g, y, a, b: g * (b / nonzero(y)))
elementwise(np.maximum,    lambda g, a, b: share(g, a, b),      lambda g, a, b: share(g, b, a))
elementwise(np.minimum,    lambda g, a, b: share(g, b, a),      lambda g, a, b: share(g, a, b))
elementwise(np.fmax,       lambda g, a, b: but_nan(g, share(g, a, b), a, b),
                           lambda g, a, b: but_nan(g, share(g, b, a), b, a))
elementwise(np.fmin,       lambda g, a, b: but_nan(g, share(g, b, a), a, b),
                           lambda g, a, b: but_nan(g, share(g, a, b), b, a))
elementwise(np.logaddexp,  lambda g, a, b: g * weight(a, b),    lambda g, a, b: g * weight(b, a))
elementwise(np.logaddexp2, lambda g, a, b: g * weight(LN2 * a, LN2 * b),
                           lambda g, a, b: g * weight(LN2 * b, LN2 * a))
elementwise(np.remainder,  lambda g, a, b: g,                   lambda g, a, b: -g * (a // b))
elementwise(np.fmod,       lambda g, a, b: g,                   lambda g, a, b: -g * np.trunc(a/b))
elementwise(np.copysign,   lambda g, y, a: g * np.sign(y) * np.sign(a), lambda g, y, a: 0.0 * g)
elementwise(np.ldexp,      lambda g, b: np.ldexp(g, b),         None)
elementwise(np.nextafter,  lambda g: g,                         lambda g: 0.0 * g)

elementwise(np.negative,   lambda g: -g)
elementwise(np.positive,   lambda g: g)
elementwise(np.absolute,   absolute)
elementwise(np.fabs,       lambda g, a: g * np.sign(a))
elementwise(np.conjugate,  lambda g: conj(g))
elementwise(np.exp,        lambda g, y: g * conj(y))
elementwise(np.exp2,       lambda g, y: g * conj(y) * LN2)
elementwise(np.expm1,      lambda g, y: g * conj(y + 1))
elementwise(np.log,        lambda g, a: g / conj(a))
elementwise(np.log2,       lambda g, a: g / conj(a * LN2))
elementwise(np.log10,      lambda g, a: g / conj(a * LN10))
elementwise(np.log1p,      lambda g, a: g / conj(a + 1))
elementwise(np.sqrt,       lambda g, y: g * 0.5 / conj(y))
elementwise(np.cbrt,       lambda g, y: g / (3 * y * y))
elementwise(np.square,     lambda g, a: g * conj(2 * a))
elementwise(np.reciprocal, lambda g, y: -g * conj(y * y))
elementwise(np.sin,        lambda g, a: g * conj(np.cos(a)))
elementwise(np.cos,        lambda g, a: -g * conj(np.sin(a)))
elementwise(np.tan,        lambda g, y: g * conj(1 + y * y))
elementwise(np.arcsin,     lambda g, a: g / conj(cathetus(a)))
elementwise(np.arccos,     lambda g, a: -g / conj(cathetus(a)))
elementwise(np.arctan,     lambda g, a: g / conj(1 + a * a))
elementwise(np.sinh,       lambda g, a: g * conj(np.cosh(a)))
elementwise(np.cosh,       lambda g, a: g * conj(np.sinh(a)))
elementwise(np.tanh,       lambda g, y: g * conj(1 - y * y))
elementwise(np.arcsinh,    lambda g, a: g / conj(np.sqrt(a * a + 1)))
elementwise(np.arccosh,    lambda g, a: g / conj(np.sqrt(a - 1) * np.sqrt(a + 1)))
elementwise(np.arctanh,    lambda g, a: g / conj(1 - a * a))
elementwise(np.degrees,    lambda g: g * (180 / np.pi))
elementwise(np.radians,    lambda g: g * (np.pi / 180))
# fmt: on

TRACED |= {
    np.rad2deg: TRACED[np.degrees],
    np.deg2rad: TRACED[np.radians],
}

# These are piecewise constant, or their result is not a float: the derivative is zero wherever it
# exists.
constant(
    np.floor, np.ceil, np.trunc, np.rint, np.fix, np.round, np.around, np.floor_divide, np.spacing,
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
    np.logical_and, np.logical_or, np.logical_not, np.logical_xor,
    np.isfinite, np.isinf, np.isnan, np.signbit, np.isreal, np.iscomplex, np.isneginf, np.isposinf,
    np.isclose, np.allclose, np.array_equal, np.array_equiv, np.heaviside,
    np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.bitwise_invert, np.bitwise_left_shift,
    np.bitwise_right_shift, np.bitwise_count, np.gcd, np.lcm, np.isnat,
)  # fmt: skip


def chosen(condition, a, b):
    return np.where(condition, a, b)


@rule(chosen)
def _chosen(y, condition, a, b):
    return None, lambda g: np.where(condition, g, 0.0), lambda g: np.where(condition, 0.0, g)


@composed(np.where)
def where(condition, *branches):
    condition = concrete(condition)
    if not branches:
        return np.where(condition)
    if not any(type(b) is Traced for b in branches):
        return np.where(condition, *branches)
    return record(chosen, condition, *branches)


def clipped(x, low, high):
    return np.clip(x, low, high)


@rule(clipped)
def _clipped(y, x, low, high):
    x, low, high = concrete(x), concrete(low), concrete(high)
    below = False if low is None else x < low
    # the upper bound wins, also if it is below the lower one
    above = False if high is None else (x if low is None else np.maximum(x, low)) > high
    return (
        lambda g: np.where(np.logical_or(below, above), 0.0, g),
        lambda g: np.where(np.logical_and(below, np.logical_not(above)), g, 0.0),
        lambda g: np.where(above, g, 0.0),
    )


@composed(np.clip)
def clip(a, a_min=None, a_max=None, out=None, *, min=None, max=None):
    return record(clipped, a, a_min if min is None else min, a_max if max is None else max)


@composed(np.nan_to_num)
def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    plain = concrete(x)
    y = np.where(np.isfinite(plain), x, np.nan_to_num(plain, nan=nan, posinf=posinf, neginf=neginf))
    if not copy and not is_number(x):
        x[...] = y
    return y[()] if y.ndim == 0 else y if copy else x


@composed(np.angle)
def angle(z, deg=False):
    a = np.arctan2(np.imag(z), np.real(z))
    return np.degrees(a) if deg else a


@composed(np.sinc)
def sinc(x):
    # The series gives the derivatives at 0, where sin(πx)/(πx) is 0/0.
    small = np.abs(concrete(x)) < 1e-2
    z = np.pi * np.where(small, 1.0, x)
    s = (np.pi * np.where(small, x, 0.0)) ** 2
    series = 1 - s / 6 * (1 - s / 20 * (1 - s / 42 * (1 - s / 72 * (1 - s / 110))))
    y = np.where(small, series, np.sin(z) / z)
    return y if y.ndim else y[()]


@composed(np.modf)
def modf(x):
    whole = np.trunc(concrete(x))
    return x - whole, whole


@composed(np.divmod)
def divmod_(a, b):
    return np.floor_divide(a, b), np.remainder(a, b)


@composed(np.float_power)
def float_power(a, b):
    wide = np.result_type(concrete(a), concrete(b), np.float64)
    return np.power(np.astype(a, wide) if hasattr(a, "dtype") else a, b)


@composed(np.sign)
def sign(x):
    if x.dtype.kind != "c":
        return np.sign(concrete(x))
    zero = concrete(x) == 0
    return np.where(zero, 0.0, x / np.abs(np.where(zero, 1.0, x)))


@composed(np.frexp)
def frexp(x):
    exponent = np.frexp(concrete(x))[1]
    return np.ldexp(x, -exponent), exponent


@composed(np.unwrap)
def unwrap(p, discont=None, axis=-1, *, period=2 * np.pi):
    plain = concrete(p)
    return p + (np.unwrap(plain, discont, axis, period=period) - plain)  # added jumps are constant


@composed(np.real_if_close)
def real_if_close(a, tol=100):
    kept = concrete(a)
    a = np.copy(a) if is_number(a) else a
    return a if np.real_if_close(kept, tol).dtype == kept.dtype else np.real(a)
