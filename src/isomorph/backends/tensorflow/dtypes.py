"""The dtypes of the TensorFlow namespace, and the promotion that every other module uses.

TensorFlow refuses to mix dtypes; the standard allows mixing within a kind, and real with complex.
The rules are one table, built here. Kinds that the standard does not mix (bool, integer, floating)
raise a TypeError, as in TensorFlow itself. Dtypes are interned, so they are compared with `is`:
hashing one costs more than an attribute, which is why fast paths test `x1.dtype is x2.dtype` before
anything else.
"""

from __future__ import annotations

import builtins
import math
from typing import Any, NoReturn, TypeAlias

import tensorflow as tf

from ..limits import FloatInfo, IntInfo
from .kernels import ops

DType: TypeAlias = tf.DType

bool: DType = tf.bool
int8: DType = tf.int8
int16: DType = tf.int16
int32: DType = tf.int32
int64: DType = tf.int64
uint8: DType = tf.uint8
uint16: DType = tf.uint16
uint32: DType = tf.uint32
uint64: DType = tf.uint64
float16: DType = tf.float16  # beyond the standard, like bfloat16: both take part in promotion
bfloat16: DType = tf.bfloat16
float32: DType = tf.float32
float64: DType = tf.float64
complex64: DType = tf.complex64
complex128: DType = tf.complex128

e, inf, nan, newaxis, pi = math.e, math.inf, math.nan, None, math.pi

default_float: DType = float32
default_complex: DType = complex64
# NumPy's and torch's choice, and the dtype of indices; TensorFlow's own default is int32.
default_int: DType = int64
default_index: DType = int64

# Sets: `in` a tuple costs a slow comparison for every dtype before the match.
Kind: TypeAlias = frozenset[DType]
SIGNED: Kind = frozenset((int8, int16, int32, int64))
UNSIGNED: Kind = frozenset((uint8, uint16, uint32, uint64))
INTEGER: Kind = SIGNED | UNSIGNED
FLOATING: Kind = frozenset((float16, bfloat16, float32, float64))
COMPLEX: Kind = frozenset((complex64, complex128))
INEXACT: Kind = FLOATING | COMPLEX
REAL: Kind = INTEGER | FLOATING
NUMERIC: Kind = INTEGER | INEXACT
ANY: Kind = NUMERIC | {bool}
KINDS: dict[str, Kind] = {
    "bool": frozenset((bool,)),
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": INTEGER,
    "real floating": FLOATING,
    "complex floating": COMPLEX,
    "numeric": NUMERIC,
}
STANDARD = (
    *(bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64),
    *(float32, float64, complex64, complex128),
)
# Explicit binary digits and the smallest normal exponent: NumPy's finfo has no bfloat16.
PRECISION = {float16: (10, -14), bfloat16: (7, -126), float32: (23, -126), float64: (52, -1022)}

# The dtypes that a Python scalar fits: a scalar is weak, it takes the dtype of its array.
SCALARS: dict[type, Kind] = {
    builtins.bool: frozenset((bool,)),
    int: NUMERIC,
    float: INEXACT,
    complex: COMPLEX,
}


# The kind of a dtype, by its TensorFlow properties: cheaper than a lookup in a tuple.


def is_bool(dtype: DType) -> builtins.bool:
    return dtype is bool


def is_integer(dtype: DType) -> builtins.bool:
    return dtype.is_integer


def is_signed(dtype: DType) -> builtins.bool:
    return dtype in SIGNED


def is_unsigned(dtype: DType) -> builtins.bool:
    return dtype in UNSIGNED


def is_floating(dtype: DType) -> builtins.bool:
    """Real floating: float16, bfloat16, float32 or float64."""
    return dtype.is_floating


def is_complex(dtype: DType) -> builtins.bool:
    return dtype.is_complex


def is_inexact(dtype: DType) -> builtins.bool:
    return dtype.is_floating or dtype.is_complex


def is_numeric(dtype: DType) -> builtins.bool:
    return dtype is not bool


def real_of(dtype: DType) -> DType:
    """The dtype of the real part: float32 for complex64, any real dtype for itself."""
    return dtype.real_dtype


def complex_of(dtype: DType) -> DType:
    """The complex dtype for parts of `dtype`: complex128 for float64, else complex64."""
    return dtype if dtype.is_complex else complex128 if dtype is float64 else complex64


# Tensors and errors.


def is_tensor(x: Any) -> builtins.bool:
    """Is `x` a tensor, a variable or indexed slices, not a scalar or another library's array?"""
    return isinstance(getattr(x, "dtype", None), DType)


def tensor(x: Any) -> tf.Tensor:
    """`x` as a plain tensor: a variable is read, indexed slices are made dense."""
    if isinstance(x, tf.Tensor):
        return x
    return _dense(x) if isinstance(x, tf.IndexedSlices) else tf.convert_to_tensor(x)


def _dense(x: tf.IndexedSlices) -> tf.Tensor:
    """The sum of the slices in their places, like tf.convert_to_tensor, which warns."""
    if x.dense_shape is None:
        raise ValueError("array: needed indexed slices with a known dense shape, got None")
    return tf.math.unsorted_segment_sum(x.values, x.indices, x.dense_shape[0])


def describe(x: Any) -> str:
    """What was given, for an error message: the dtype if it has one, else the type."""
    dtype = x if isinstance(x, DType) else getattr(x, "dtype", None)
    return dtype.name if isinstance(dtype, DType) else builtins.type(x).__name__


def refuse(function: str, needed: str, *got: Any) -> NoReturn:
    """Raise the TypeError every function here raises for a dtype it does not take."""
    raise TypeError(f"{function}: needed {needed}, got {' and '.join(map(describe, got))}")


# Promotion.


def _common(a: DType, b: DType) -> DType | None:
    """The smallest dtype that holds both, or None if the standard does not mix these kinds."""
    if a is b:
        return a
    if is_inexact(a) and is_inexact(b):
        if a.is_complex or b.is_complex:
            return complex128 if 8 in (real_of(a).size, real_of(b).size) else complex64
        if a.size == b.size:  # float16 and bfloat16: neither holds the other
            return float32
        return a if a.size > b.size else b
    if a.is_integer and b.is_integer:
        if (a in SIGNED) == (b in SIGNED):
            return a if a.size > b.size else b
        signed, unsigned = (a, b) if a in SIGNED else (b, a)
        wide = builtins.max(signed.size, 2 * unsigned.size)
        return {2: int16, 4: int32, 8: int64}.get(wide)  # nothing holds int64 and uint64
    return None


PROMOTIONS: dict[tuple[DType, DType], DType] = {
    (a, b): c for a in ANY for b in ANY if (c := _common(a, b)) is not None
}


def promote(x1: Any, x2: Any, function: str = "promotion") -> tuple[Any, Any]:
    """Both operands with their common dtype; a Python scalar takes the dtype of the tensor.

    Operands that already agree are returned unchanged (also a variable, which every op accepts).
    """
    dtype1, dtype2 = getattr(x1, "dtype", None), getattr(x2, "dtype", None)
    if dtype1 is dtype2 and isinstance(dtype1, DType):
        return x1, x2
    if isinstance(dtype1, DType):
        if isinstance(dtype2, DType):
            dtype = PROMOTIONS.get((dtype1, dtype2))
            if dtype is None:
                refuse(function, "dtypes of one kind (cast one with astype)", x1, x2)
            return cast(x1, dtype), cast(x2, dtype)
        return x1, weak(x2, dtype1, function)
    if isinstance(dtype2, DType):
        return weak(x1, dtype2, function), x2
    refuse(function, "a tensor on at least one side", x1, x2)


def weak(scalar: Any, dtype: DType, function: str = "promotion") -> tf.Tensor:
    """A Python scalar as a 0-d tensor of `dtype`, if the scalar's kind fits into it."""
    for kind, dtypes in SCALARS.items():  # bool comes before int, because it is a subclass
        if isinstance(scalar, kind):
            if dtype not in dtypes:
                break
            if dtype.is_integer and not dtype.min <= scalar <= dtype.max:  # tf.constant would wrap
                raise OverflowError(f"{function}: needed a {dtype.name} value, got {scalar}")
            return _constant(scalar, dtype)
    refuse(function, f"a value that fits {dtype.name} (cast one with astype)", scalar)


def _constant(scalar: Any, dtype: DType) -> tf.Tensor:
    """TensorFlow caches scalar constants by equality: -0.0 would return an earlier 0.0."""
    if isinstance(scalar, complex) or (scalar == 0 and math.copysign(1.0, scalar) < 0):
        values: Any = [scalar]
        return tf.reshape(tf.constant(values, dtype), [])
    return tf.constant(scalar, dtype)


def promote_all(*arrays: Any, function: str = "promotion") -> list[Any]:
    """Any number of operands with their common dtype, at least one of them a tensor."""
    dtype = common_dtype(function, *arrays)
    return [cast(x, dtype) if is_tensor(x) else weak(x, dtype, function) for x in arrays]


def cast(x: Any, dtype: DType) -> Any:
    """`x` with `dtype`, without checks: complex to real drops the imaginary part.

    Between real and complex numbers by their parts: the Cast kernel does the same, but TensorFlow
    warns about what it drops, also in the gradient, where dropping is right.
    """
    given = x.dtype
    if given is dtype:
        return x
    if given.is_complex is dtype.is_complex:
        return ops.Cast(x=x, DstT=dtype)
    if given.is_complex:
        return cast(ops.Real(input=x, Tout=given.real_dtype), dtype)
    real = cast(x, dtype.real_dtype)
    return ops.Complex(real=real, imag=ops.ZerosLike(x=real), Tout=dtype)


# The standard's functions.


def astype(
    x: Any, dtype: DType, /, *, copy: builtins.bool = True, device: str | None = None
) -> tf.Tensor:
    """`x` with another dtype. Tensors are immutable, so `copy` makes no visible difference."""
    given = getattr(x, "dtype", None)
    if not isinstance(given, DType):
        refuse("astype", "a tensor", x)
    if given.is_complex and not dtype.is_complex:
        refuse("astype", f"a real array for {dtype.name} (take real or imag first)", x)
    out = tensor(x) if given is dtype else cast(x, dtype)
    return out if device is None else on_device(out, device)


def on_device(x: Any, device: str) -> tf.Tensor:
    with tf.device(device):
        return tf.identity(x)


def can_cast(from_: Any, to: DType, /) -> builtins.bool:
    """Whether promotion could turn `from_` into `to`."""
    return PROMOTIONS.get((_dtype(from_, "can_cast"), to)) is to


def isdtype(dtype: DType, kind: DType | str | tuple[DType | str, ...]) -> builtins.bool:
    """Whether `dtype` is of a kind, or is a given dtype, or matches one of several of these."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"isdtype: needed one of {', '.join(KINDS)}, got {kind!r}")
        return dtype in KINDS[kind]
    return dtype is kind


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The common dtype; Python scalars are weak."""
    return common_dtype("result_type", *arrays_and_dtypes)


def common_dtype(function: str, *arrays_and_dtypes: Any) -> DType:
    """`result_type`, with messages in the name of another function."""
    scalars = [x for x in arrays_and_dtypes if isinstance(x, tuple(SCALARS))]
    strong = [_dtype(x, function) for x in arrays_and_dtypes if not isinstance(x, tuple(SCALARS))]
    if not strong:
        refuse(function, "at least one tensor or dtype", *arrays_and_dtypes)
    result = strong[0]
    for dtype in strong[1:]:
        common = PROMOTIONS.get((result, dtype))
        if common is None:
            refuse(function, "dtypes of one kind (cast some with astype)", *arrays_and_dtypes)
        result = common
    for scalar in scalars:
        kind = builtins.bool if isinstance(scalar, builtins.bool) else type(scalar)
        if result not in next(d for k, d in SCALARS.items() if issubclass(kind, k)):
            refuse(function, f"scalars that fit {result.name}", scalar)
    return result


def _dtype(x: Any, function: str) -> DType:
    dtype = x if isinstance(x, DType) else getattr(x, "dtype", None)
    if not isinstance(dtype, DType):
        refuse(function, "a tensor or a dtype", x)
    return dtype


def finfo(type: DType | tf.Tensor, /) -> FloatInfo:
    """The limits of a floating dtype; of a complex one, the limits of its parts."""
    dtype = _dtype(type, "finfo")
    if not is_inexact(dtype):
        refuse("finfo", "a floating dtype", dtype)
    real = real_of(dtype)
    digits, exponent = PRECISION[real]
    return FloatInfo(
        bits=8 * real.size,
        eps=2.0**-digits,
        max=float(real.max),
        min=float(real.min),
        smallest_normal=2.0**exponent,
        dtype=real,
    )


def iinfo(type: DType | tf.Tensor, /) -> IntInfo:
    """The limits of an integer dtype."""
    dtype = _dtype(type, "iinfo")
    if not dtype.is_integer:
        refuse("iinfo", "an integer dtype", dtype)
    return IntInfo(bits=8 * dtype.size, max=int(dtype.max), min=int(dtype.min), dtype=dtype)


class Info:
    """The standard's inspection functions of a namespace."""

    def capabilities(self) -> dict[str, Any]:
        # TensorFlow's CPU kernels broadcast, transpose and slice at most eight axes.
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 8}

    def default_device(self) -> str:
        return next((d for d in self.devices() if "GPU" in d), self.devices()[0])

    def devices(self) -> list[str]:
        """The device names as in tensors' `.device`."""
        logical = tf.config.list_logical_devices()
        names = [d.name for d in logical if d.device_type in ("CPU", "GPU", "TPU")]
        # On one machine TensorFlow lists /device:CPU:0 but a tensor has the full name.
        prefix = "/job:localhost/replica:0/task:0"
        return [n if n.startswith("/job:") else prefix + n for n in names]

    def default_dtypes(self, *, device: str | None = None) -> dict[str, DType]:
        return {
            "real floating": default_float,
            "complex floating": default_complex,
            "integral": default_int,
            "indexing": default_index,
        }

    def dtypes(
        self, *, device: str | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]:
        return {d.name: d for d in STANDARD if kind is None or isdtype(d, kind)}


def __array_namespace_info__() -> Info:
    return Info()
