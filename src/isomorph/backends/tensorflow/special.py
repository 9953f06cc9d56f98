"""What TensorFlow's kernels do not compute, composed of what they do.

Each is right at zeros, infinities and NaN, and so are its derivatives of any order wherever they
exist. Two devices recur. A `where` is fed a harmless value in the branch it does not take, since
an infinite derivative times zero is NaN. And a value is corrected by a constant of the gradient
(`tf.stop_gradient`), so that the derivative stays that of the uncorrected formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from .dtypes import COMPLEX, cast, complex128, float32, float64, tensor
from .kernels import ops

BITS = {2: tf.int16, 4: tf.int32, 8: tf.int64}  # the integers a float of that size is seen as


def _parts(z: Any) -> tuple[tf.Tensor, tf.Tensor]:
    return tf.math.real(z), tf.math.imag(z)


def _like(value: float, x: Any) -> tf.Tensor:
    return tf.constant(value, x.dtype)


# Complex numbers.


def _holomorphic(kernel: Callable[..., Any], derivative: Callable[[Any], Any]) -> Any:
    """A kernel of complex numbers whose derivative is spelled out in a graph.

    XLA's own gradients of Sqrt and Reciprocal do not conjugate, and TensorFlow's derivatives of
    these functions are made of the two: compiled, they come out wrong without a word.
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
    """z / |z|, or zero at zero; beside an infinite part a finite one is 0. Sign has no gradient."""
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
    """The kernel, but that at real infinities the imaginary zero has the sign of the angle.

    C99 gives it the sign of the sine of twice the angle; the standard says 1 + 0j.
    """
    a, b = _parts(z)
    flat = ops.LogicalAnd(x=ops.IsInf(x=a), y=ops.IsFinite(x=b))
    return tf.where(flat, tf.complex(tf.sign(a), copysign(_like(0, b), b)), ops.Tanh(x=z))


def complex_pow(x1: Any, x2: Any) -> tf.Tensor:
    """The kernel, but that zero to the power zero is 1 and not NaN."""
    zero, one = tf.zeros((), x1.dtype), tf.ones((), x1.dtype)
    both = ops.LogicalAnd(x=ops.Equal(x=x1, y=zero), y=ops.Equal(x=x2, y=zero))
    return tf.where(both, one, ops.Pow(x=tf.where(both, one, x1), y=x2))


def _to_each(x: tf.Tensor, y: tf.Tensor, *grads: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Gradients of two operands that were broadcast, summed back to their shapes."""
    axes = ops.BroadcastGradientArgs(s0=tf.shape(x), s1=tf.shape(y))
    return tuple(
        tf.reshape(tf.reduce_sum(grad, over), tf.shape(operand))
        for grad, over, operand in zip(grads, axes, (x, y))
    )


@tf.custom_gradient
def power(x: tf.Tensor, y: tf.Tensor) -> Any:
    """The kernel of real numbers, with a derivative of 0 where y is, and where TensorFlow's is 0
    times the infinite 0**-1; and with none by the exponent of a negative number, where it has 0.
    """

    def pullback(grad: tf.Tensor) -> tuple[tf.Tensor, ...]:
        one = _like(1, x)
        less = tf.where(ops.Equal(x=y, y=_like(0, y)), one, y - one)
        base = tf.where(ops.Equal(x=x, y=_like(0, x)), one, x)
        return _to_each(x, y, grad * y * power(x, less), grad * power(x, y) * ops.Log(x=base))

    return ops.Pow(x=x, y=y), pullback


def shared(kernel: Callable[..., Any]) -> Any:
    """Maximum or Minimum, with half of the gradient to each of two operands that tie; TensorFlow
    gives all of it to the first.
    """

    @tf.custom_gradient
    def chosen(x: tf.Tensor, y: tf.Tensor) -> Any:
        out = kernel(x=x, y=y)

        def pullback(grad: tf.Tensor) -> tuple[tf.Tensor, ...]:
            tie, first, none = ops.Equal(x=x, y=y), ops.Equal(x=out, y=x), _like(0, grad)
            half = _like(0.5, grad) * grad
            to_x = tf.where(tie, half, tf.where(first, grad, none))
            return _to_each(x, y, to_x, tf.where(tie, half, tf.where(first, none, grad)))

        return out, pullback

    return chosen


def log(z: Any) -> tf.Tensor:
    """In complex128 and rescaled: the kernels square |z|, and give NaN where that overflows."""
    if z.dtype is not complex128:
        return cast(_log(cast(z, complex128)), z.dtype)
    a, b = _parts(z)
    size, one = _scale(a, b), _like(1, a)
    scale = tf.where(ops.Less(x=size, y=_like(1e-100, a)), _like(2.0**600, a), one)
    scale = tf.where(ops.Greater(x=size, y=_like(1e100, a)), _like(2.0**-600, a), scale)
    a, b = _parts(_log(tf.complex(a * scale, b * scale)))
    return tf.complex(a - ops.Log(x=scale), b)


def expm1(z: Any) -> tf.Tensor:
    """exp(z) - 1, in the half-angle form where the real part is small: the kernel subtracts."""
    a, b = _parts(z)
    small = ops.Less(x=ops.Abs(x=a), y=_like(1, a))
    near = tf.where(small, a, _like(0, a))
    half = ops.Sin(x=b / 2)
    grown = ops.Exp(x=z)
    close = (ops.Expm1(x=near) + 0) * ops.Cos(x=b) - 2 * half * half  # -0 + 0 is 0, as it should
    real = tf.where(small, close, tf.math.real(grown) - 1)
    return tf.complex(real, tf.math.imag(grown))


def log1p(z: Any) -> tf.Tensor:
    """log(1 + z), by log1p(|1 + z|**2 - 1) where z is small: the kernel loses infinities."""
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
    if x.dtype in COMPLEX:  # part by part: an infinity over a complex number is NaN
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
    scale = _scale(a, b)
    p, q = a / scale, b / scale
    square = p * p + q * q
    zero = ops.Equal(x=square, y=_like(0, square))
    root = scale * ops.Sqrt(x=tf.where(zero, _like(1, square), square))
    infinite = ops.LogicalOr(x=ops.IsInf(x=a), y=ops.IsInf(x=b))
    special = tf.where(infinite, _like(math.inf, a), _like(0, a))
    return tf.where(ops.LogicalOr(x=infinite, y=zero), special, root)


def _scale(a: Any, b: Any) -> tf.Tensor:
    """The greater magnitude, or 1 where that is no use; a constant of the gradient."""
    size = tf.stop_gradient(ops.Maximum(x=ops.Abs(x=a), y=ops.Abs(x=b)))
    usable = ops.LogicalAnd(x=ops.IsFinite(x=size), y=ops.Greater(x=size, y=_like(0, size)))
    return tf.where(usable, size, _like(1, size))


def logaddexp(a: Any, b: Any) -> tf.Tensor:
    """The greater plus log1p(exp(less - greater)); of two equal infinities, themselves.

    The operands are ordered by a `where`, not by maximum and minimum: at a tie those would both
    pass the gradient to the same operand, where each should have half.
    """
    swap = ops.Less(x=a, y=b)
    high, low = tf.where(swap, b, a), tf.where(swap, a, b)
    equal = ops.LogicalAnd(x=ops.IsInf(x=high), y=ops.Equal(x=high, y=low))
    zero = _like(0, high)
    gap = tf.where(equal, zero, low) - tf.where(equal, zero, high)
    return high + tf.where(equal, zero, ops.Log1p(x=ops.Exp(x=gap)))


def with_zeros_signed_as(x: tf.Tensor, other: Any) -> tf.Tensor:
    """x, its zeros with the sign of `other`: FloorMod gives them that of the dividend.

    The subtracted difference is +0 and leaves the signed zero alone, but carries the gradient.
    """
    zero = copysign(_like(0, x), other) - (tf.stop_gradient(x) - x)
    return tf.where(ops.Equal(x=x, y=_like(0, x)), zero, x)


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
