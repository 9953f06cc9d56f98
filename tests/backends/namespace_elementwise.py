"""Elementwise functions of the standard, each with its meaning in plain Python for one number."""

import cmath
import math
import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple

DTYPES = {
    "b": ("bool",),
    "i": ("int8", "int32", "int64"),
    "u": ("uint8",),
    "f": ("float32", "float64"),
    "d": ("float64",),
    "c": ("complex64", "complex128"),
}
BOOLEAN = (True, False)
SIGNED = (-7, -2, -1, 0, 1, 2, 5)
UNSIGNED = (0, 1, 2, 5, 7)
REAL = (-2.5, -1.0, -0.375, 0.0, 0.5, 1.0, 2.75)  # exact in float32
COMPLEX = (0.5 + 0.25j, -0.75 + 1.125j, 1.25 - 0.375j)
SAMPLES = {"b": BOOLEAN, "i": SIGNED, "u": UNSIGNED, "f": REAL, "d": REAL, "c": COMPLEX}
UNIT = (-0.875, -0.5, 0.0, 0.25, 0.75)
POSITIVE = (0.125, 0.5, 1.0, 3.0)


class Unary(NamedTuple):
    kinds: str
    python: Callable
    result: str = "same"  # same, bool, or the dtype of the real part
    real: Sequence[float] = REAL  # the domain for real numbers


def either(name: str) -> Callable:
    """The function of that name: from `math` for a real number, from `cmath` for a complex one."""
    return lambda z: getattr(cmath if isinstance(z, complex) else math, name)(z)


def whole(rounding: Callable) -> Callable:
    """Round a real number; for a complex one, round both parts."""
    return lambda z: (
        complex(rounding(z.real), rounding(z.imag)) if isinstance(z, complex) else rounding(z)
    )


def unit(z):
    """The sign of a real number; z / |z| for a complex one."""
    return z / abs(z) if isinstance(z, complex) else (z > 0) - (z < 0)


def flipped(n):
    return not n if isinstance(n, bool) else ~n


UNARY = {
    "abs": Unary("iufc", abs, "real"),
    "acos": Unary("fc", either("acos"), real=UNIT),
    "acosh": Unary("fc", either("acosh"), real=(1.0, 1.5, 8.0)),
    "asin": Unary("fc", either("asin"), real=UNIT),
    "asinh": Unary("fc", either("asinh")),
    "atan": Unary("fc", either("atan")),
    "atanh": Unary("fc", either("atanh"), real=UNIT),
    "bitwise_invert": Unary("biu", flipped),
    "ceil": Unary("iuf", math.ceil),
    "conj": Unary("c", lambda z: z.conjugate()),
    "cos": Unary("fc", either("cos")),
    "cosh": Unary("fc", either("cosh")),
    "erf": Unary("f", math.erf, real=(-7.0, -2.0, -1.0, -0.375, 0.0, 0.5, 1.125, 2.75, 3.5)),
    "exp": Unary("fc", either("exp")),
    "expm1": Unary("fc", lambda z: cmath.exp(z) - 1 if isinstance(z, complex) else math.expm1(z)),
    "floor": Unary("iuf", math.floor),
    "imag": Unary("c", lambda z: z.imag, "real"),
    "isfinite": Unary("iufc", either("isfinite"), "bool"),
    "isinf": Unary("iufc", either("isinf"), "bool"),
    "isnan": Unary("iufc", either("isnan"), "bool"),
    "log": Unary("fc", either("log"), real=POSITIVE),
    "log10": Unary("fc", either("log10"), real=POSITIVE),
    "log1p": Unary(
        "fc",
        lambda z: cmath.log(1 + z) if isinstance(z, complex) else math.log1p(z),
        real=(-0.875, -0.25, 0.0, 0.5, 3.0),
    ),
    "log2": Unary(
        "fc",
        lambda z: cmath.log(z) / math.log(2) if isinstance(z, complex) else math.log2(z),
        real=POSITIVE,
    ),
    "logical_not": Unary("b", operator.not_, "bool"),
    "negative": Unary("ifc", operator.neg),
    "positive": Unary("iufc", operator.pos),
    "real": Unary("c", lambda z: z.real, "real"),
    "reciprocal": Unary("fc", lambda z: 1 / z, real=POSITIVE),
    "round": Unary("iufc", whole(round)),
    "sign": Unary("iufc", unit),
    "signbit": Unary("f", lambda x: math.copysign(1, x) < 0, "bool"),
    "sin": Unary("fc", either("sin")),
    "sinh": Unary("fc", either("sinh")),
    "sqrt": Unary("fc", either("sqrt"), real=(0.0, *POSITIVE)),
    "square": Unary("iufc", lambda z: z * z),
    "tan": Unary("fc", either("tan")),
    "tanh": Unary("fc", either("tanh")),
    "trunc": Unary("iuf", math.trunc),
}


class Binary(NamedTuple):
    kinds: str
    python: Callable
    result: str = "same"
    first: dict[str, Sequence] = {}  # samples other than the usual ones, by kind  # noqa: RUF012
    second: dict[str, Sequence] = {}  # noqa: RUF012


NONZERO = {
    "i": (-3, -1, 1, 2, 4),
    "u": (1, 2, 4),
    "f": (-1.5, -0.5, 0.25, 2.0),
    "c": COMPLEX[::-1],
}
SHIFTS = {"i": (0, 1, 3), "u": (0, 1, 3)}

BINARY = {
    "add": Binary("iufc", operator.add),
    "atan2": Binary("f", math.atan2),
    "bitwise_and": Binary("biu", operator.and_),
    "bitwise_left_shift": Binary("iu", operator.lshift, second=SHIFTS),
    "bitwise_or": Binary("biu", operator.or_),
    "bitwise_right_shift": Binary("iu", operator.rshift, second=SHIFTS),
    "bitwise_xor": Binary("biu", operator.xor),
    "copysign": Binary("f", math.copysign),
    "divide": Binary("fc", operator.truediv, second=NONZERO),
    "equal": Binary("biufc", operator.eq, "bool"),
    "floor_divide": Binary("iuf", operator.floordiv, second=NONZERO),
    "greater": Binary("iuf", operator.gt, "bool"),
    "greater_equal": Binary("iuf", operator.ge, "bool"),
    "hypot": Binary("f", math.hypot),
    "less": Binary("iuf", operator.lt, "bool"),
    "less_equal": Binary("iuf", operator.le, "bool"),
    "logaddexp": Binary("f", lambda x, y: math.log(math.exp(x) + math.exp(y))),
    "logical_and": Binary("b", lambda x, y: x and y, "bool"),
    "logical_or": Binary("b", lambda x, y: x or y, "bool"),
    "logical_xor": Binary("b", operator.ne, "bool"),
    "maximum": Binary("iuf", max),
    "minimum": Binary("iuf", min),
    "multiply": Binary("iufc", operator.mul),
    "nextafter": Binary("d", math.nextafter),
    "not_equal": Binary("biufc", operator.ne, "bool"),
    "pow": Binary(
        "iufc",
        operator.pow,
        first={"i": (-3, 1, 2), "u": (0, 2, 3), "f": POSITIVE},
        second={"i": (0, 1, 3), "u": (0, 1, 3), "f": REAL},
    ),
    "remainder": Binary("iuf", operator.mod, second=NONZERO),
    "subtract": Binary("iufc", operator.sub),
}

INF, NAN = math.inf, math.nan

# Special values required by the standard: name, arguments, result.
SPECIAL = (
    ("abs", (-INF,), INF),
    ("abs", (-0.0,), 0.0),
    ("acos", (2.0,), NAN),
    ("acosh", (0.5,), NAN),
    ("add", (INF, -INF), NAN),
    ("add", (-0.0, -0.0), -0.0),
    ("atan", (INF,), math.pi / 2),
    ("atan2", (0.0, -0.0), math.pi),
    ("atan2", (-0.0, 0.0), -0.0),
    ("atan2", (INF, -INF), 3 * math.pi / 4),
    ("atanh", (1.0,), INF),
    ("ceil", (-0.5,), -0.0),
    ("cosh", (-INF,), INF),
    ("divide", (1.0, 0.0), INF),
    ("divide", (1.0, -0.0), -INF),
    ("divide", (0.0, 0.0), NAN),
    ("exp", (-INF,), 0.0),
    ("exp", (NAN,), NAN),
    ("expm1", (-INF,), -1.0),
    ("floor", (-INF,), -INF),
    ("hypot", (INF, NAN), INF),
    ("isfinite", (-INF,), False),
    ("isinf", (-INF,), True),
    ("isnan", (NAN,), True),
    ("log", (0.0,), -INF),
    ("log", (-1.0,), NAN),
    ("log1p", (-1.0,), -INF),
    ("logaddexp", (-INF, -INF), -INF),
    ("maximum", (NAN, 1.0), NAN),
    ("minimum", (1.0, NAN), NAN),
    ("multiply", (0.0, INF), NAN),
    ("pow", (NAN, 0.0), 1.0),
    ("pow", (1.0, NAN), 1.0),
    ("pow", (0.0, -1.0), INF),
    ("pow", (-INF, 3.0), -INF),
    ("reciprocal", (INF,), 0.0),
    ("remainder", (1.0, INF), 1.0),
    ("remainder", (INF, 1.0), NAN),
    ("remainder", (5.0, 0.0), NAN),
    ("round", (2.5,), 2.0),
    ("round", (-0.25,), -0.0),
    ("sign", (NAN,), NAN),
    ("signbit", (-0.0,), True),
    ("sin", (INF,), NAN),
    ("sqrt", (-1.0,), NAN),
    ("sqrt", (-0.0,), -0.0),
    ("tanh", (INF,), 1.0),
    ("trunc", (-0.5,), -0.0),
)
