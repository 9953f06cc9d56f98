"""The elementwise functions: TensorFlow's kernels, with the dtypes and special cases they lack.

Most functions are one kernel and differ only in its name, so they come from four small factories
(`_unary`, `_binary`, `_rounding`, `_classify`). Each first asks whether float32 or float64 came, by
identity, and then calls the kernel as `tf.raw_ops`: the public wrappers cost up to twice as much.
What no kernel computes is composed in `special`, of TensorFlow ops, so gradients flow to any order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from . import special
from .dtypes import (
    ANY,
    COMPLEX,
    FLOATING,
    INEXACT,
    INTEGER,
    NUMERIC,
    REAL,
    UNSIGNED,
    Kind,
    cast,
    float32,
    float64,
    promote,
    real_of,
    refuse,
    tensor,
)

raw = tf.raw_ops

Unary = Callable[[Any], tf.Tensor]
Binary = Callable[[Any, Any], tf.Tensor]
WORDS = {
    ANY: "a tensor",
    NUMERIC: "a numeric dtype",
    REAL: "a real dtype",
    INEXACT: "a floating or complex dtype",
    FLOATING: "a floating dtype",
}


def _named(function: Any, name: str, doc: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _unary(
    name: str,
    kernel: Callable[..., Any],
    doc: str,
    takes: Kind = INEXACT,
    otherwise: dict[Kind, Unary] | None = None,
) -> Unary:
    """A function of one tensor: `kernel`, but for the dtypes that `otherwise` takes care of."""
    others = {dtype: func for dtypes, func in (otherwise or {}).items() for dtype in dtypes}

    def function(x: Any, /) -> tf.Tensor:
        dtype = getattr(x, "dtype", None)
        if dtype is float32 or dtype is float64:
            return kernel(x=x)
        if dtype not in takes:
            refuse(name, WORDS[takes], x)
        other = others.get(dtype)
        return kernel(x=x) if other is None else other(x)

    return _named(function, name, doc)


def _binary(
    name: str,
    kernel: Callable[..., Any],
    doc: str,
    takes: Kind = NUMERIC,
) -> Binary:
    """A function of two operands that is `kernel` once they have one dtype."""

    def function(x1: Any, x2: Any, /) -> tf.Tensor:
        dtype = getattr(x1, "dtype", None)
        if dtype is getattr(x2, "dtype", None) and (dtype is float32 or dtype is float64):
            return kernel(x=x1, y=x2)
        x1, x2 = promote(x1, x2, name)
        if x1.dtype not in takes:
            refuse(name, WORDS[takes], x1)
        return kernel(x=x1, y=x2)

    return _named(function, name, doc)


def _composed(name: str, meaning: Binary, doc: str, takes: Kind = FLOATING) -> Binary:
    """A function of two operands that no kernel computes."""

    def function(x1: Any, x2: Any, /) -> tf.Tensor:
        x1, x2 = promote(x1, x2, name)
        if x1.dtype not in takes:
            refuse(name, WORDS[takes], x1)
        return meaning(x1, x2)

    return _named(function, name, doc)


# Exponents, logarithms, angles. The complex kernels are C99's, but for the ones given to `special`.

acos = _unary(
    "acos", raw.Acos, "The angle whose cosine is x.", INEXACT, {COMPLEX: special.complex_acos}
)
acosh = _unary("acosh", raw.Acosh, "The number whose hyperbolic cosine is x.")
asin = _unary(
    "asin", raw.Asin, "The angle whose sine is x.", INEXACT, {COMPLEX: special.complex_asin}
)
asinh = _unary("asinh", raw.Asinh, "The number whose hyperbolic sine is x.")
atan = _unary(
    "atan", raw.Atan, "The angle whose tangent is x.", INEXACT, {COMPLEX: special.complex_atan}
)
atanh = _unary(
    "atanh",
    raw.Atanh,
    "The number whose hyperbolic tangent is x.",
    INEXACT,
    {COMPLEX: special.complex_atanh},
)
cos = _unary("cos", raw.Cos, "The cosine.")
cosh = _unary("cosh", raw.Cosh, "The hyperbolic cosine.")
exp = _unary("exp", raw.Exp, "e to the power x.")
expm1 = _unary(
    "expm1", raw.Expm1, "exp(x) - 1, exact near zero.", INEXACT, {COMPLEX: special.expm1}
)
log = _unary("log", raw.Log, "The natural logarithm.", INEXACT, {COMPLEX: special.log})
log1p = _unary(
    "log1p", raw.Log1p, "log(1 + x), exact near zero.", INEXACT, {COMPLEX: special.log1p}
)
sin = _unary("sin", raw.Sin, "The sine.")
sinh = _unary("sinh", raw.Sinh, "The hyperbolic sine.")
sqrt = _unary("sqrt", raw.Sqrt, "The square root.", INEXACT, {COMPLEX: special.complex_sqrt})
tan = _unary("tan", raw.Tan, "The tangent.", INEXACT, {COMPLEX: special.complex_tan})
tanh = _unary("tanh", raw.Tanh, "The hyperbolic tangent.", INEXACT, {COMPLEX: special.complex_tanh})
log2 = _unary("log2", special.log2, "The logarithm to base 2, exact for its powers.")
log10 = _unary("log10", special.log10, "The logarithm to base 10, exact for its powers.")
atan2 = _composed("atan2", lambda y, x: raw.Atan2(y=y, x=x), "The angle of the point (x2, x1).")
hypot = _composed("hypot", special.hypot, "sqrt(x1**2 + x2**2) without overflow.")
logaddexp = _composed("logaddexp", special.logaddexp, "log(exp(x1) + exp(x2)) without overflow.")


# Arithmetic.

add = _binary("add", raw.AddV2, "The sum.")
subtract = _binary("subtract", raw.Sub, "The difference.")
multiply = _binary("multiply", raw.Mul, "The product.")
divide = _binary("divide", raw.RealDiv, "The quotient of floating numbers.", INEXACT)
floor_divide = _binary("floor_divide", raw.FloorDiv, "The quotient rounded down.", REAL)


def _itself(x: Any) -> tf.Tensor:
    return tensor(x)


abs = _unary(
    "abs",
    raw.Abs,
    "The absolute value; for complex numbers a real one.",
    NUMERIC,
    {UNSIGNED: _itself, COMPLEX: special.complex_abs},
)
negative = _unary(
    "negative",
    raw.Neg,
    "Minus x; unsigned integers wrap around.",
    NUMERIC,
    # No unsigned kernels; and 0 - x, in a graph, is rewritten to the Neg that does not exist.
    {UNSIGNED: lambda x: raw.AddV2(x=raw.Invert(x=x), y=tf.ones((), x.dtype))},
)
positive = _unary("positive", _itself, "x itself.", NUMERIC)
reciprocal = _unary(
    "reciprocal", raw.Reciprocal, "1 / x.", INEXACT, {COMPLEX: special.complex_reciprocal}
)
sign = _unary(
    "sign",
    raw.Sign,
    "-1, 0 or 1; for complex numbers x / |x|.",
    NUMERIC,
    {
        UNSIGNED: lambda x: cast(raw.NotEqual(x=x, y=tf.zeros((), x.dtype)), x.dtype),
        COMPLEX: special.complex_sign,
    },
)
square = _unary("square", raw.Square, "x times x.", NUMERIC)


def pow(x1: Any, x2: Any, /) -> tf.Tensor:
    """x1 to the power x2. Unsigned integers go through int64, which wraps around as they do."""
    x1, x2 = promote(x1, x2, "pow")
    dtype = x1.dtype
    if dtype not in NUMERIC:
        refuse("pow", WORDS[NUMERIC], x1)
    if dtype in UNSIGNED:
        return cast(raw.Pow(x=cast(x1, tf.int64), y=cast(x2, tf.int64)), dtype)
    return special.complex_pow(x1, x2) if dtype in COMPLEX else raw.Pow(x=x1, y=x2)


def remainder(x1: Any, x2: Any, /) -> tf.Tensor:
    """What floor division leaves, with the sign of the divisor."""
    x1, x2 = promote(x1, x2, "remainder")
    if x1.dtype not in REAL:
        refuse("remainder", WORDS[REAL], x1)
    out = raw.FloorMod(x=x1, y=x2)
    return special.with_zeros_signed_as(out, x2) if x1.dtype in FLOATING else out


# The greater, the lesser, and between.


def _extremum(name: str, kernel: Callable[..., Any], doc: str) -> Binary:
    """XLA on CPU compiles both kernels to a comparison that loses a NaN in the second operand.

    An eager call never meets XLA, so only a graph pays for putting the NaN back.
    """

    def function(x1: Any, x2: Any, /) -> tf.Tensor:
        x1, x2 = promote(x1, x2, name)
        dtype = x1.dtype
        if dtype not in REAL:
            refuse(name, WORDS[REAL], x1)
        out = kernel(x=x1, y=x2)
        if dtype in INTEGER or tf.executing_eagerly():
            return out
        return tf.where(raw.IsNan(x=x2), x2, out)

    return _named(function, name, doc)


maximum = _extremum("maximum", raw.Maximum, "The greater of two numbers; NaN if either is.")
minimum = _extremum("minimum", raw.Minimum, "The lesser of two numbers; NaN if either is.")


def clip(x: Any, /, min: Any = None, max: Any = None) -> tf.Tensor:
    """x kept between two bounds, either of which may be absent; the dtype of x is kept."""
    dtype = getattr(x, "dtype", None)
    if dtype not in REAL:
        refuse("clip", WORDS[REAL], x)
    out = tensor(x)
    if max is not None:
        out = minimum(out, max)
    if min is not None:
        out = maximum(out, min)
    return cast(out, dtype)


# Rounding.


def _rounding(name: str, kernel: Callable[..., Any], doc: str, takes: Kind = REAL) -> Unary:
    def each_part(x: Any) -> tf.Tensor:
        return tf.complex(kernel(x=tf.math.real(x)), kernel(x=tf.math.imag(x)))

    return _unary(name, kernel, doc, takes, {INTEGER: _itself, COMPLEX: each_part})


ceil = _rounding("ceil", raw.Ceil, "The least integer not below x.")
floor = _rounding("floor", raw.Floor, "The greatest integer not above x.")
round = _rounding("round", raw.Round, "The nearest integer, the even one if two are.", NUMERIC)
trunc = _rounding("trunc", special.trunc, "The nearest integer towards zero.")


# Comparisons.

equal = _binary("equal", raw.Equal, "Whether x1 = x2.", ANY)
not_equal = _binary("not_equal", raw.NotEqual, "Whether x1 ≠ x2.", ANY)
less = _binary("less", raw.Less, "Whether x1 < x2.", REAL)
less_equal = _binary("less_equal", raw.LessEqual, "Whether x1 ≤ x2.", REAL)
greater = _binary("greater", raw.Greater, "Whether x1 > x2.", REAL)
greater_equal = _binary("greater_equal", raw.GreaterEqual, "Whether x1 ≥ x2.", REAL)


def _classify(
    name: str, kernel: Callable[..., Any], join: Callable[..., Any], doc: str, integers: Any
) -> Unary:
    """A question about floats: `integers` answers for integers, `join` joins complex parts."""

    def of_complex(x: Any) -> tf.Tensor:
        return join(x=kernel(x=tf.math.real(x)), y=kernel(x=tf.math.imag(x)))

    def of_integers(x: Any) -> tf.Tensor:
        return tf.fill(tf.shape(x), integers)

    return _unary(name, kernel, doc, NUMERIC, {COMPLEX: of_complex, INTEGER: of_integers})


isfinite = _classify(
    "isfinite", raw.IsFinite, raw.LogicalAnd, "Whether x is neither infinite nor NaN.", True
)
isinf = _classify("isinf", raw.IsInf, raw.LogicalOr, "Whether x is infinite.", False)
isnan = _classify("isnan", raw.IsNan, raw.LogicalOr, "Whether x is not a number.", False)


# Complex parts.


def real(x: Any, /) -> tf.Tensor:
    """The real part; a real x is its own."""
    dtype = getattr(x, "dtype", None)
    if dtype in COMPLEX:
        return raw.Real(input=x, Tout=real_of(x.dtype))
    if dtype not in NUMERIC:
        refuse("real", WORDS[NUMERIC], x)
    return tensor(x)


def imag(x: Any, /) -> tf.Tensor:
    """The imaginary part; zeros for a real x."""
    dtype = getattr(x, "dtype", None)
    if dtype in COMPLEX:
        return raw.Imag(input=x, Tout=real_of(x.dtype))
    if dtype not in NUMERIC:
        refuse("imag", WORDS[NUMERIC], x)
    return raw.ZerosLike(x=x)


def conj(x: Any, /) -> tf.Tensor:
    """The complex conjugate; a real x is its own."""
    dtype = getattr(x, "dtype", None)
    if dtype in COMPLEX:
        return raw.Conj(input=x)
    if dtype not in NUMERIC:
        refuse("conj", WORDS[NUMERIC], x)
    return tensor(x)


# Sign bits and neighbours.

signbit = _unary("signbit", special.signbit, "Whether the sign bit is set.", FLOATING)
copysign = _composed("copysign", special.copysign, "The magnitude of x1 with the sign of x2.")
nextafter = _composed("nextafter", special.nextafter, "The next float after x1 towards x2.")
