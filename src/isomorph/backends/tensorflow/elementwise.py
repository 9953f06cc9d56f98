"""The elementwise functions: TensorFlow's kernels, with the dtypes and special cases they lack.

Most functions are one kernel and differ only in its name, so they come from four small factories
(`_unary`, `_binary`, `_rounding`, `_classify`). Each does as little as possible before it calls the
kernel; an eager call costs about 10 µs, reading a dtype a quarter of a microsecond. Functions
without a kernel are composed in `special` from TensorFlow ops, so gradients of any order flow.
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
from .kernels import Eager, ops, recorded

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
    """A function of one tensor: `kernel`, except for the dtypes that `otherwise` handles."""
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
    """A function of two operands: `kernel`, after they have the same dtype."""

    def function(x1: Any, x2: Any, /) -> tf.Tensor:
        dtype = getattr(x1, "dtype", None)
        if dtype is getattr(x2, "dtype", None) and (dtype is float32 or dtype is float64):
            return kernel(x=x1, y=x2)
        x1, x2 = promote(x1, x2, name)
        if x1.dtype not in takes:
            refuse(name, WORDS[takes], x1)
        return kernel(x=x1, y=x2)

    return _named(function, name, doc)


def _exact(name: str, kernel: Callable[..., Any], doc: str, takes: Kind = NUMERIC) -> Binary:
    """`_binary` for a kernel that itself refuses two different dtypes, and dtypes not in `takes`.
    So for two eager tensors the kernel is tried first, and they are checked only if it fails.
    """
    asked = _binary(name, kernel, doc, takes)

    def function(x1: Any, x2: Any, /) -> tf.Tensor:
        if type(x1) is Eager and type(x2) is Eager:
            try:
                return kernel(x=x1, y=x2)
            except tf.errors.InvalidArgumentError:
                pass  # two dtypes, an unsupported one, or two shapes
        return asked(x1, x2)

    return _named(function, name, doc)


def _composed(name: str, meaning: Binary, doc: str, takes: Kind = FLOATING) -> Binary:
    """A function of two operands for which TensorFlow has no kernel; `meaning` computes it."""

    def function(x1: Any, x2: Any, /) -> tf.Tensor:
        x1, x2 = promote(x1, x2, name)
        if x1.dtype not in takes:
            refuse(name, WORDS[takes], x1)
        return meaning(x1, x2)

    return _named(function, name, doc)


# Exponents, logarithms, angles. The complex kernels follow C99, except those given to `special`.

acos = _unary(
    "acos", ops.Acos, "The angle whose cosine is x.", INEXACT, {COMPLEX: special.complex_acos}
)
acosh = _unary("acosh", ops.Acosh, "The number whose hyperbolic cosine is x.")
asin = _unary(
    "asin", ops.Asin, "The angle whose sine is x.", INEXACT, {COMPLEX: special.complex_asin}
)
asinh = _unary("asinh", ops.Asinh, "The number whose hyperbolic sine is x.")
atan = _unary(
    "atan", ops.Atan, "The angle whose tangent is x.", INEXACT, {COMPLEX: special.complex_atan}
)
atanh = _unary(
    "atanh",
    ops.Atanh,
    "The number whose hyperbolic tangent is x.",
    INEXACT,
    {COMPLEX: special.complex_atanh},
)
cos = _unary("cos", ops.Cos, "The cosine.")
erf = _unary("erf", special.erf, "The error function, 2/√π ∫₀ˣ e^(−t²) dt.")
cosh = _unary("cosh", ops.Cosh, "The hyperbolic cosine.")
exp = _unary("exp", ops.Exp, "e to the power x.")
expm1 = _unary(
    "expm1", ops.Expm1, "exp(x) - 1, exact near zero.", INEXACT, {COMPLEX: special.expm1}
)
log = _unary("log", ops.Log, "The natural logarithm.", INEXACT, {COMPLEX: special.log})
log1p = _unary(
    "log1p", ops.Log1p, "log(1 + x), exact near zero.", INEXACT, {COMPLEX: special.log1p}
)
sin = _unary("sin", ops.Sin, "The sine.")
sinh = _unary("sinh", ops.Sinh, "The hyperbolic sine.")
sqrt = _unary("sqrt", ops.Sqrt, "The square root.", INEXACT, {COMPLEX: special.complex_sqrt})
tan = _unary("tan", ops.Tan, "The tangent.", INEXACT, {COMPLEX: special.complex_tan})
tanh = _unary("tanh", ops.Tanh, "The hyperbolic tangent.", INEXACT, {COMPLEX: special.complex_tanh})
log2 = _unary("log2", special.log2, "The logarithm to base 2, exact for its powers.")
log10 = _unary("log10", special.log10, "The logarithm to base 10, exact for its powers.")
atan2 = _composed("atan2", lambda y, x: ops.Atan2(y=y, x=x), "The angle of the point (x2, x1).")
hypot = _composed("hypot", special.hypot, "sqrt(x1**2 + x2**2) without overflow.")
logaddexp = _composed("logaddexp", special.logaddexp, "log(exp(x1) + exp(x2)) without overflow.")


# Arithmetic.

add = _exact("add", ops.AddV2, "The sum.")
subtract = _exact("subtract", ops.Sub, "The difference.")
multiply = _exact("multiply", ops.Mul, "The product.")
divide = _binary("divide", ops.RealDiv, "The quotient of floating numbers.", INEXACT)


def floor_divide(x1: Any, x2: Any, /) -> tf.Tensor:
    """The quotient rounded down."""
    x1, x2 = promote(x1, x2, "floor_divide")
    if x1.dtype not in REAL:
        refuse("floor_divide", WORDS[REAL], x1)
    return special.floor_divide(x1, x2) if x1.dtype in FLOATING else ops.FloorDiv(x=x1, y=x2)


def _itself(x: Any) -> tf.Tensor:
    return tensor(x)


abs = _unary(
    "abs",
    ops.Abs,
    "The absolute value; for complex numbers a real one.",
    NUMERIC,
    {UNSIGNED: _itself, COMPLEX: special.complex_abs},
)
negative = _unary(
    "negative",
    ops.Neg,
    "Minus x; unsigned integers wrap around.",
    NUMERIC,
    # No unsigned kernels; and in a graph 0 - x is rewritten to Neg, which does not exist.
    {UNSIGNED: lambda x: ops.AddV2(x=ops.Invert(x=x), y=tf.ones((), x.dtype))},
)
positive = _unary("positive", _itself, "x itself.", NUMERIC)
reciprocal = _unary(
    "reciprocal", ops.Reciprocal, "1 / x.", INEXACT, {COMPLEX: special.complex_reciprocal}
)
sign = _unary(
    "sign",
    ops.Sign,
    "-1, 0 or 1; for complex numbers x / |x|.",
    NUMERIC,
    {
        UNSIGNED: lambda x: cast(ops.NotEqual(x=x, y=tf.zeros((), x.dtype)), x.dtype),
        COMPLEX: special.complex_sign,
    },
)
square = _unary("square", ops.Square, "x times x.", NUMERIC)


def pow(x1: Any, x2: Any, /) -> tf.Tensor:
    """x1 to the power x2. Unsigned integers are computed in int64, which wraps around equally."""
    exponent = x2 if type(x2) in (int, float) else None
    x1, x2 = promote(x1, x2, "pow")
    dtype = x1.dtype
    if dtype not in NUMERIC:
        refuse("pow", WORDS[NUMERIC], x1)
    if dtype in UNSIGNED:
        return cast(ops.Pow(x=cast(x1, tf.int64), y=cast(x2, tf.int64)), dtype)
    if dtype in COMPLEX:
        return special.complex_pow(x1, x2)
    out = ops.Pow(x=x1, y=x2)
    if dtype not in FLOATING or not recorded(out):
        return out
    return special.power(x1, x2) if exponent is None else special.power_of_number(x1, exponent)


def remainder(x1: Any, x2: Any, /) -> tf.Tensor:
    """The remainder of floor division, with the sign of the divisor."""
    x1, x2 = promote(x1, x2, "remainder")
    if x1.dtype not in REAL:
        refuse("remainder", WORDS[REAL], x1)
    return special.remainder(x1, x2) if x1.dtype in FLOATING else ops.FloorMod(x=x1, y=x2)


# Maximum, minimum, and clip.


def _extremum(name: str, kernel: Callable[..., Any], doc: str, share: bool = True) -> Binary:
    """The maximum or the minimum of two operands. XLA on a CPU compiles both kernels to a
    comparison that loses a NaN in the second operand. In a graph the NaN is put back; eager calls
    never use XLA and do not need that.

    For two equal numbers, TensorFlow gives the whole gradient to the first. With `share`, both get
    half, as in all other frameworks; this costs time in calls that are recorded.
    """

    exact, shared = _exact(name, kernel, doc, REAL), special.shared(kernel)

    def function(x1: Any, x2: Any, /) -> tf.Tensor:
        out = exact(x1, x2)
        if not recorded(out) or out.dtype in INTEGER:
            return out
        x1, x2 = promote(x1, x2, name)
        if share:
            out = shared(x1, x2)
        return out if type(out) is Eager else tf.where(ops.IsNan(x=x2), x2, out)

    return _named(function, name, doc)


maximum = _extremum("maximum", ops.Maximum, "The greater of two numbers; NaN if either is.")
minimum = _extremum("minimum", ops.Minimum, "The lesser of two numbers; NaN if either is.")
_at_least = _extremum("clip", ops.Maximum, "The greater of two numbers.", share=False)
_at_most = _extremum("clip", ops.Minimum, "The lesser of two numbers.", share=False)


def clip(x: Any, /, min: Any = None, max: Any = None) -> tf.Tensor:
    """x limited to two bounds, either of which may be absent; the upper one wins. The dtype of x is
    kept. At a bound x gets the whole gradient.
    """
    dtype = getattr(x, "dtype", None)
    if dtype not in REAL:
        refuse("clip", WORDS[REAL], x)
    out = tensor(x)
    if min is not None:
        out = _at_least(out, min)
    if max is not None:
        out = _at_most(out, max)
    return cast(out, dtype)


# Rounding.


def _rounding(name: str, kernel: Callable[..., Any], doc: str, takes: Kind = REAL) -> Unary:
    def each_part(x: Any) -> tf.Tensor:
        return tf.complex(kernel(x=tf.math.real(x)), kernel(x=tf.math.imag(x)))

    return _unary(name, kernel, doc, takes, {INTEGER: _itself, COMPLEX: each_part})


ceil = _rounding("ceil", ops.Ceil, "The least integer not below x.")
floor = _rounding("floor", ops.Floor, "The greatest integer not above x.")
round = _rounding("round", ops.Round, "The nearest integer, the even one if two are.", NUMERIC)
trunc = _rounding("trunc", special.trunc, "The nearest integer towards zero.")


# Comparisons.

equal = _exact("equal", ops.Equal, "Whether x1 = x2.", ANY)
not_equal = _exact("not_equal", ops.NotEqual, "Whether x1 ≠ x2.", ANY)
less = _exact("less", ops.Less, "Whether x1 < x2.", REAL)
less_equal = _exact("less_equal", ops.LessEqual, "Whether x1 ≤ x2.", REAL)
greater = _exact("greater", ops.Greater, "Whether x1 > x2.", REAL)
greater_equal = _exact("greater_equal", ops.GreaterEqual, "Whether x1 ≥ x2.", REAL)


def _classify(
    name: str, kernel: Callable[..., Any], join: Callable[..., Any], doc: str, integers: Any
) -> Unary:
    """A predicate such as `isnan`: `kernel` tests floats, `integers` is the result for all
    integers, and `join` combines the results for the real and the imaginary part.
    """

    def of_complex(x: Any) -> tf.Tensor:
        return join(x=kernel(x=tf.math.real(x)), y=kernel(x=tf.math.imag(x)))

    def of_integers(x: Any) -> tf.Tensor:
        return tf.fill(tf.shape(x), integers)

    return _unary(name, kernel, doc, NUMERIC, {COMPLEX: of_complex, INTEGER: of_integers})


isfinite = _classify(
    "isfinite", ops.IsFinite, ops.LogicalAnd, "Whether x is neither infinite nor NaN.", True
)
isinf = _classify("isinf", ops.IsInf, ops.LogicalOr, "Whether x is infinite.", False)
isnan = _classify("isnan", ops.IsNan, ops.LogicalOr, "Whether x is not a number.", False)


# Complex parts.


def real(x: Any, /) -> tf.Tensor:
    """The real part; a real x itself."""
    dtype = getattr(x, "dtype", None)
    if dtype in COMPLEX:
        return ops.Real(input=x, Tout=real_of(x.dtype))
    if dtype not in NUMERIC:
        refuse("real", WORDS[NUMERIC], x)
    return tensor(x)


def imag(x: Any, /) -> tf.Tensor:
    """The imaginary part; zeros for a real x."""
    dtype = getattr(x, "dtype", None)
    if dtype in COMPLEX:
        return ops.Imag(input=x, Tout=real_of(x.dtype))
    if dtype not in NUMERIC:
        refuse("imag", WORDS[NUMERIC], x)
    return ops.ZerosLike(x=x)


def conj(x: Any, /) -> tf.Tensor:
    """The complex conjugate; a real x itself."""
    dtype = getattr(x, "dtype", None)
    if dtype in COMPLEX:
        return ops.Conj(input=x)
    if dtype not in NUMERIC:
        refuse("conj", WORDS[NUMERIC], x)
    return tensor(x)


# Sign bits and neighbours.

signbit = _unary("signbit", special.signbit, "Whether the sign bit is set.", FLOATING)
copysign = _composed("copysign", special.copysign, "The magnitude of x1 with the sign of x2.")
nextafter = _composed("nextafter", special.nextafter, "The next float after x1 towards x2.")
