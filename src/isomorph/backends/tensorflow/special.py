"""Functions without a TensorFlow kernel, composed of others.

Each is right at zeros, infinities and NaN, and so are its derivatives of any order wherever they
exist. Two techniques recur. A `where` gets a harmless value in the branch that it does not take,
because an infinite derivative times zero is NaN. And a value is corrected by a constant
(`tf.stop_gradient`), so that the derivative remains that of the uncorrected formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import tensorflow as tf

from .. import edges
from .dtypes import COMPLEX, cast, complex128, float32, float64, tensor
from .kernels import Eager, ops, recorded

BITS = {2: tf.int16, 4: tf.int32, 8: tf.int64}  # the integers with the bits of a float of that size


def _parts(z: Any) -> tuple[tf.Tensor, tf.Tensor]:
    return tf.math.real(z), tf.math.imag(z)


def _like(value: float, x: Any) -> tf.Tensor:
    return tf.constant(value, x.dtype)


# Complex numbers.


def _holomorphic(kernel: Callable[..., Any], derivative: Callable[[Any], Any]) -> Any:
    """A kernel of complex numbers with an explicit derivative in a graph.

    XLA's own gradients of Sqrt and Reciprocal do not conjugate, and TensorFlow's derivatives of
    these functions use both: compiled, they are silently wrong.
    """

    @tf.custom_gradient
    def spelled_out(z: Any) -> Any:
        def pullback(grad: Any) -> tf.Tensor:
            return grad * tf.math.conj(derivative(z))

        return kernel(x=z), pullback

    def function(z: Any) -> tf.Tensor:
        return kernel(x=z) if tf.executing_eagerly() else spelled_out(tensor(z))

    return function


def _one_over(z: Any) -> tf.Tensor:
    return ops.RealDiv(x=tf.ones((), z.dtype), y=z)


complex_sqrt = _holomorphic(ops.Sqrt, lambda z: _one_over(2 * complex_sqrt(z)))
complex_asin = _holomorphic(ops.Asin, lambda z: _one_over(complex_sqrt(1 - z * z)))
complex_acos = _holomorphic(ops.Acos, lambda z: -_one_over(complex_sqrt(1 - z * z)))
complex_atan = _holomorphic(ops.Atan, lambda z: _one_over(1 + z * z))
complex_atanh = _holomorphic(ops.Atanh, lambda z: _one_over(1 - z * z))
complex_tan = _holomorphic(ops.Tan, lambda z: _one_over(ops.Square(x=ops.Cos(x=z))))
_log = _holomorphic(ops.Log, _one_over)


def complex_abs(z: Any) -> tf.Tensor:
    """TensorFlow's own has no second derivative: it goes through Sign, whose derivative is zero."""
    return hypot(*_parts(z))


def complex_sign(z: Any) -> tf.Tensor:
    """z / |z|, or zero at zero; next to an infinite part a finite one is 0. Sign has no slope."""
    a, b = _parts(z)
    infinite = ops.LogicalOr(x=ops.IsInf(x=a), y=ops.IsInf(x=b))
    a, b = (tf.where(infinite, _infinite_part(x), x) for x in (a, b))
    size = hypot(a, b)
    zero = ops.Equal(x=size, y=_like(0, size))
    size = tf.where(zero, _like(1, size), size)
    nan = ops.LogicalOr(x=ops.IsNan(x=a), y=ops.IsNan(x=b))
    constant, value = ops.LogicalOr(x=zero, y=nan), tf.where(nan, _like(math.nan, a), _like(0, a))
    return tf.complex(*(tf.where(constant, value, x / size) for x in (a, b)))


def _infinite_part(x: tf.Tensor) -> tf.Tensor:
    """1 or -1 for an infinity, 0 for a finite number, NaN for NaN."""
    return tf.where(ops.IsInf(x=x), tf.sign(x), x - x)


def complex_reciprocal(z: Any) -> tf.Tensor:
    """1 / z as conj(z / s) / s / |z / s|**2 for a scale s: the kernel gives NaN at infinities."""
    a, b = _parts(z)
    scale = _scale(a, b)
    p, q = a / scale, b / scale
    square = p * p + q * q
    infinite = ops.LogicalOr(x=ops.IsInf(x=a), y=ops.IsInf(x=b))
    real = tf.where(infinite, copysign(_like(0, a), a), p / square / scale)
    imag = tf.where(infinite, copysign(_like(0, b), -b), -q / square / scale)
    return tf.complex(real, imag)


def complex_tanh(z: Any) -> tf.Tensor:
    """The kernel, except that at real infinities the imaginary zero has the sign of the angle.

    In C99 it has the sign of the sine of twice the angle; the standard says 1 + 0j.
    """
    a, b = _parts(z)
    flat = ops.LogicalAnd(x=ops.IsInf(x=a), y=ops.IsFinite(x=b))
    return tf.where(flat, tf.complex(tf.sign(a), copysign(_like(0, b), b)), ops.Tanh(x=z))


def _to_each(x: tf.Tensor, y: tf.Tensor, *grads: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Gradients of two broadcast operands, summed back to their shapes."""
    axes = ops.BroadcastGradientArgs(s0=tf.shape(x), s1=tf.shape(y))
    return tuple(
        tf.reshape(tf.reduce_sum(grad, over), tf.shape(operand))
        for grad, over, operand in zip(grads, axes, (x, y))
    )


@tf.custom_gradient
def power(x: tf.Tensor, y: tf.Tensor) -> Any:
    """The kernel, with the derivative 0 where y is 0: there it is constant, whatever x is.
    TensorFlow's is 0 times the infinite 0**-1 there, and its derivative with respect to the
    exponent of a negative number is 0, where none exists.
    """

    def pullback(grad: tf.Tensor) -> tuple[tf.Tensor, ...]:
        one, zero = _like(1, x), _like(0, x)
        flat = ops.Equal(x=y, y=zero)
        slope = tf.where(flat, zero, y * power(x, tf.where(flat, one, y - one)))
        # 0**y is constant; infinite for y < 0
        real = tf.math.real(y) if y.dtype in COMPLEX else y
        none = ops.GreaterEqual(x=real, y=_like(0, real))
        none = ops.LogicalAnd(x=ops.Equal(x=x, y=zero), y=none)
        growth = tf.where(none, zero, power(x, y) * tf.math.log(tf.where(none, one, x)))
        return _to_each(x, y, grad * _conj(slope), grad * _conj(growth))

    return _pow(x, y), pullback


def _pow(x: Any, y: Any) -> tf.Tensor:
    """The kernel, except that a complex 0**0 is 1 and not NaN."""
    if x.dtype not in COMPLEX:
        return ops.Pow(x=x, y=y)
    zero, one = _like(0, x), _like(1, x)
    none = ops.Equal(x=x, y=zero)
    both = ops.LogicalAnd(x=none, y=ops.Equal(x=y, y=zero))
    out = tf.where(both, one, ops.Pow(x=tf.where(both, one, x), y=y))
    if type(out) is Eager:
        return out
    rises = ops.Greater(x=tf.math.real(y), y=_like(0, tf.math.real(y)))
    return tf.where(ops.LogicalAnd(x=none, y=rises), zero, out)  # XLA's, by logarithms, is NaN


def complex_pow(x: Any, y: Any) -> tf.Tensor:
    out = _pow(x, y)
    return power(x, y) if recorded(out) else out


def _conj(x: tf.Tensor) -> tf.Tensor:
    return ops.Conj(input=x) if x.dtype in COMPLEX else x


def power_of_number(x: tf.Tensor, exponent: float) -> tf.Tensor:
    """The kernel for a number as exponent, with all derivatives until they are constant."""

    @tf.custom_gradient
    def raised(x: tf.Tensor) -> Any:
        def pullback(grad: tf.Tensor) -> tf.Tensor:
            if exponent == 0:
                return tf.zeros_like(x)
            return grad * _like(exponent, x) * power_of_number(x, exponent - 1)

        return ops.Pow(x=x, y=_like(exponent, x)), pullback

    return raised(x)


def shared(kernel: Callable[..., Any]) -> Any:
    """Maximum or Minimum, with half of the gradient for each of two equal operands, and NaN for
    both if one is NaN; TensorFlow gives all of it to the first, or to the second.
    """

    @tf.custom_gradient
    def chosen(x: tf.Tensor, y: tf.Tensor) -> Any:
        out = kernel(x=x, y=y)

        def pullback(grad: tf.Tensor) -> tuple[tf.Tensor, ...]:
            tie, first, none = ops.Equal(x=x, y=y), ops.Equal(x=out, y=x), _like(0, grad)
            known = ops.LogicalOr(x=tie, y=ops.LogicalOr(x=x < y, y=x > y))
            grad = tf.where(known, grad, _like(math.nan, grad))
            none = tf.where(known, none, grad)
            half = _like(0.5, grad) * grad
            to_x = tf.where(tie, half, tf.where(first, grad, none))
            return _to_each(x, y, to_x, tf.where(tie, half, tf.where(first, none, grad)))

        return out, pullback

    return chosen


def log(z: Any) -> tf.Tensor:
    """In complex128 and rescaled: the kernels square |z|, and give NaN if that overflows."""
    if z.dtype is not complex128:
        return cast(_log(cast(z, complex128)), z.dtype)
    a, b = _parts(z)
    size, one = _scale(a, b), _like(1, a)
    scale = tf.where(ops.Less(x=size, y=_like(1e-100, a)), _like(2.0**600, a), one)
    scale = tf.where(ops.Greater(x=size, y=_like(1e100, a)), _like(2.0**-600, a), scale)
    a, b = _parts(_log(tf.complex(a * scale, b * scale)))
    return tf.complex(a - ops.Log(x=scale), b)


def expm1(z: Any) -> tf.Tensor:
    """exp(z) - 1, in the half-angle form if the real part is small: the kernel subtracts."""
    a, b = _parts(z)
    small = ops.Less(x=ops.Abs(x=a), y=_like(1, a))
    near = tf.where(small, a, _like(0, a))
    half = ops.Sin(x=b / 2)
    grown = ops.Exp(x=z)
    close = (ops.Expm1(x=near) + 0) * ops.Cos(x=b) - 2 * half * half  # -0 + 0 is 0, as it should
    real = tf.where(small, close, tf.math.real(grown) - 1)
    return tf.complex(real, tf.math.imag(grown))


def log1p(z: Any) -> tf.Tensor:
    """log(1 + z), by log1p(|1 + z|**2 - 1) if z is small: the kernel loses infinities."""
    a, b = _parts(z)
    half = _like(0.5, a)
    small = ops.LogicalAnd(x=ops.Less(x=ops.Abs(x=a), y=half), y=ops.Less(x=ops.Abs(x=b), y=half))
    p, q = tf.where(small, a, _like(0, a)), tf.where(small, b, _like(0, b))
    far = log(tf.complex(a + 1, b))
    real = tf.where(small, ops.Log1p(x=p * (p + 2) + q * q) / 2, tf.math.real(far))
    return tf.complex(real, tf.math.imag(far))


# Logarithms to a base.


def log2(x: Any) -> tf.Tensor:
    return _log_to(2.0, x)


def log10(x: Any) -> tf.Tensor:
    return _log_to(10.0, x)


def _log_to(base: float, x: Any) -> tf.Tensor:
    if x.dtype in COMPLEX:  # part by part: an infinity divided by a complex number is NaN
        a, b = _parts(log(x))
        return tf.complex(a / math.log(base), b / math.log(base))
    out = ops.Log(x=x) / _like(math.log(base), x)
    whole = ops.Round(x=out)
    exact = ops.LogicalAnd(
        x=ops.Equal(x=ops.Pow(x=_like(base, x), y=whole), y=x),
        y=ops.IsFinite(x=out),
    )
    return out + tf.stop_gradient(tf.where(exact, whole - out, _like(0, x)))


# Two real numbers.


def hypot(a: Any, b: Any) -> tf.Tensor:
    """sqrt(a**2 + b**2), scaled so that no square overflows; infinite if either is."""
    out = _hypot(a, b)
    return _hypot_of(tensor(a), tensor(b)) if recorded(out) else out


@tf.custom_gradient
def _hypot_of(a: tf.Tensor, b: tf.Tensor) -> Any:
    def pullback(grad: tf.Tensor) -> tuple[tf.Tensor, ...]:
        far = _hypot_of(a, b)
        safe = tf.where(ops.Equal(x=far, y=_like(0, far)), _like(1, far), far)
        return _to_each(a, b, grad * (a / safe), grad * (b / safe))

    return _hypot(a, b), pullback


def _hypot(a: Any, b: Any) -> tf.Tensor:
    scale = _scale(a, b)
    p, q = a / scale, b / scale
    root = scale * ops.Sqrt(x=p * p + q * q)
    infinite = ops.LogicalOr(x=ops.IsInf(x=a), y=ops.IsInf(x=b))
    return tf.where(infinite, _like(math.inf, a), root)


def _scale(a: Any, b: Any) -> tf.Tensor:
    """The greater magnitude, or 1 where that is unusable; a constant for the gradient."""
    size = tf.stop_gradient(ops.Maximum(x=ops.Abs(x=a), y=ops.Abs(x=b)))
    usable = ops.LogicalAnd(x=ops.IsFinite(x=size), y=ops.Greater(x=size, y=_like(0, size)))
    return tf.where(usable, size, _like(1, size))


PLAIN = SimpleNamespace(
    where=tf.where,
    isinf=lambda x: ops.IsInf(x=x),
    zeros_like=tf.zeros_like,
    log1p=lambda x: ops.Log1p(x=x),
    exp=lambda x: ops.Exp(x=x),
)


def logaddexp(a: Any, b: Any) -> tf.Tensor:
    return edges.logaddexp(PLAIN, a, b)


def erf(x: Any) -> tf.Tensor:
    """The kernel of float64 gives NaN at infinities, that of XLA does not."""
    if x.dtype is not float64:
        return ops.Erf(x=x)
    if type(x) is Eager:  # XLA's clip would lose NaN
        return ops.Erf(x=ops.ClipByValue(t=x, clip_value_min=LEAST, clip_value_max=MOST))
    far = ops.Greater(x=ops.Abs(x=x), y=_like(30, x))
    return tf.where(far, ops.Sign(x=x), ops.Erf(x=tf.where(far, _like(0, x), x)))


LEAST, MOST = -30.0, 30.0  # beyond these erf is ±1 and its derivative 0


def floor_divide(x: Any, y: Any) -> tf.Tensor:
    """For floats, piecewise constant, as in NumPy: exact, where the kernel rounds the quotient
    before it takes the floor.
    """
    x, y = tf.stop_gradient(x), tf.stop_gradient(y)
    rest = ops.FloorMod(x=x, y=y)
    zero, ratio = _like(0, x), ops.RealDiv(x=x, y=y)
    # FloorMod of a finite number by an infinite one of the other sign is the infinite one
    away = ops.LogicalAnd(x=ops.IsInf(x=rest), y=ops.IsFinite(x=x))
    whole = tf.where(away, _like(-1, x), ops.Round(x=ops.RealDiv(x=x - rest, y=y)))
    whole = tf.where(ops.Equal(x=whole, y=zero), copysign(zero, ratio), whole)
    return tf.where(ops.Equal(x=y, y=zero), ratio, whole)


def remainder(x: Any, y: Any) -> tf.Tensor:
    """FloorMod of floats, whose own derivative with respect to y rounds the quotient too early."""
    out = with_zeros_signed_as(ops.FloorMod(x=x, y=y), y)
    return _remainder(x, y) if recorded(out) else out


@tf.custom_gradient
def _remainder(x: tf.Tensor, y: tf.Tensor) -> Any:

    def pullback(grad: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return _to_each(x, y, grad, -grad * floor_divide(x, y))

    return with_zeros_signed_as(ops.FloorMod(x=x, y=y), y), pullback


def with_zeros_signed_as(x: tf.Tensor, other: Any) -> tf.Tensor:
    """x, with zeros that have the sign of `other`: FloorMod gives them that of the dividend."""
    return tf.where(ops.Equal(x=x, y=_like(0, x)), copysign(_like(0, x), other), x)


# Bits of floats.


def trunc(x: Any) -> tf.Tensor:
    return tf.where(ops.Less(x=x, y=_like(0, x)), ops.Ceil(x=x), ops.Floor(x=x))


def signbit(x: Any) -> tf.Tensor:
    bits = ops.Bitcast(input=x, type=BITS[x.dtype.size])
    return ops.Less(x=bits, y=_like(0, bits))


def copysign(x1: Any, x2: Any) -> tf.Tensor:
    return tf.where(ops.Equal(x=signbit(x1), y=signbit(x2)), x1, -x1)


def nextafter(x1: Any, x2: Any) -> tf.Tensor:
    if x1.dtype is float32 or x1.dtype is float64:
        return ops.NextAfter(x1=x1, x2=x2)
    return _next_half(x1, x2)


def _next_half(x1: Any, x2: Any) -> tf.Tensor:
    """The neighbour of a 16-bit float, which has no kernel: its bits, plus or minus one."""
    integers = BITS[x1.dtype.size]
    bits = ops.Bitcast(input=x1, type=integers)
    outwards = ops.Equal(x=ops.Greater(x=x2, y=x1), y=ops.Greater(x=x1, y=_like(0, x1)))
    step = tf.where(outwards, _like(1, bits), _like(-1, bits))
    smallest = tf.where(signbit(x2), _like(-(2**15) + 1, bits), _like(1, bits))
    moved = tf.where(ops.Equal(x=x1, y=_like(0, x1)), smallest, bits + step)
    out = ops.Bitcast(input=moved, type=x1.dtype)
    out = tf.where(ops.Equal(x=x1, y=x2), x2, out)
    nan = ops.LogicalOr(x=ops.IsNan(x=x1), y=ops.IsNan(x=x2))
    value = tf.where(nan, x1 + x2, out)
    carried = x1 + tf.stop_gradient(value - x1)  # the derivative of the float32 kernel: one
    return tf.where(ops.IsFinite(x=x1), carried, tf.stop_gradient(value))
