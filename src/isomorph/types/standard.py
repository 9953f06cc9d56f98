"""What `iso.namespace` gives, for type checkers: the names of the array API standard 2024.12, of
its `linalg` and `fft`, and `einsum`, `erf` and `pad`, each with the arguments it takes.

Nothing of it is used when a program runs, as of `array_types.py`. What a name means is said by the
standard, https://data-apis.org/array-api/2024.12. A test holds the names against the vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from .array_types import (
    AllUnique,
    Axes,
    Binary,
    CountedUnique,
    Device,
    DType,
    Einsum,
    Factors,
    FloatLimits,
    Grid,
    InverseUnique,
    Join,
    Limits,
    LogDeterminant,
    Norm,
    Shaped,
    Singular,
    Spectrum,
    Together,
    Unary,
    Widths,
    of,
    parts,
)


class Linalg(Protocol):
    """`xp.linalg`."""

    @of
    def cholesky(self, *, upper: bool = False) -> None: ...
    @of
    def cross(self, x2: Shaped, /, *, axis: int = -1) -> None: ...

    det: Unary

    @of
    def diagonal(self, *, offset: int = 0) -> None: ...

    eigh: Spectrum
    eigvalsh: Unary
    inv: Unary

    @of
    def matmul(self, x2: Shaped, /) -> None: ...
    @of
    def matrix_norm(
        self, *, keepdims: bool = False, ord: float | Literal["fro", "nuc"] | None = "fro"
    ) -> None: ...
    @of
    def matrix_power(self, n: int, /) -> None: ...
    @of
    def matrix_rank(self, *, rtol: float | Shaped | None = None) -> None: ...

    matrix_transpose: Unary

    @of
    def outer(self, x2: Shaped, /) -> None: ...
    @of
    def pinv(self, *, rtol: float | Shaped | None = None) -> None: ...

    qr: Factors
    slogdet: LogDeterminant

    @of
    def solve(self, x2: Shaped, /) -> None: ...

    svd: Singular
    svdvals: Unary

    @of
    def tensordot(
        self, x2: Shaped, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
    ) -> None: ...
    @of
    def trace(self, *, offset: int = 0, dtype: DType = None) -> None: ...
    @of
    def vecdot(self, x2: Shaped, /, *, axis: int = -1) -> None: ...
    @of
    def vector_norm(self, *, axis: Axes = None, keepdims: bool = False, ord: float = 2) -> None: ...


class FFT(Protocol):
    """`xp.fft`."""

    @of
    def fft(self, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> None: ...
    @of
    def ifft(self, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> None: ...
    @of
    def fftn(
        self,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: Norm = "backward",
    ) -> None: ...
    @of
    def ifftn(
        self,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: Norm = "backward",
    ) -> None: ...
    @of
    def rfft(self, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> None: ...
    @of
    def irfft(self, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> None: ...
    @of
    def rfftn(
        self,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: Norm = "backward",
    ) -> None: ...
    @of
    def irfftn(
        self,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: Norm = "backward",
    ) -> None: ...
    @of
    def hfft(self, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> None: ...
    @of
    def ihfft(self, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> None: ...
    def fftfreq(
        self, n: int, /, *, d: float = 1.0, dtype: DType = None, device: Device = None
    ) -> Any: ...
    def rfftfreq(
        self, n: int, /, *, d: float = 1.0, dtype: DType = None, device: Device = None
    ) -> Any: ...
    @of
    def fftshift(self, *, axes: int | Sequence[int] | None = None) -> None: ...
    @of
    def ifftshift(self, *, axes: int | Sequence[int] | None = None) -> None: ...


class Namespace(Protocol):
    """The array API standard 2024.12 with `linalg` and `fft`, `einsum`, `erf`, and `pad` with a
    constant.
    """

    __name__: str
    __array_api_version__: str
    linalg: Linalg
    fft: FFT

    # Dtypes and constants.
    bool: DType
    int8: DType
    int16: DType
    int32: DType
    int64: DType
    uint8: DType
    uint16: DType
    uint32: DType
    uint64: DType
    float32: DType
    float64: DType
    complex64: DType
    complex128: DType
    e: float
    inf: float
    nan: float
    newaxis: None
    pi: float

    # Creation.
    def arange(
        self,
        start: float,
        /,
        stop: float | None = None,
        step: float = 1,
        *,
        dtype: DType = None,
        device: Device = None,
    ) -> Any: ...
    def asarray(
        self, obj: Any, /, *, dtype: DType = None, device: Device = None, copy: bool | None = None
    ) -> Any: ...
    def empty(
        self, shape: int | Sequence[int], *, dtype: DType = None, device: Device = None
    ) -> Any: ...
    @of
    def empty_like(self, *, dtype: DType = None, device: Device = None) -> None: ...
    def eye(
        self,
        n_rows: int,
        n_cols: int | None = None,
        /,
        *,
        k: int = 0,
        dtype: DType = None,
        device: Device = None,
    ) -> Any: ...
    def from_dlpack(self, x: Any, /, *, device: Device = None, copy: bool | None = None) -> Any: ...
    def full(
        self,
        shape: int | Sequence[int],
        fill_value: complex,
        *,
        dtype: DType = None,
        device: Device = None,
    ) -> Any: ...
    @of
    def full_like(
        self, fill_value: complex, *, dtype: DType = None, device: Device = None
    ) -> None: ...
    def linspace(
        self,
        start: complex,
        stop: complex,
        /,
        num: int,
        *,
        dtype: DType = None,
        device: Device = None,
        endpoint: bool = True,
    ) -> Any: ...

    meshgrid: Grid

    def ones(
        self, shape: int | Sequence[int], *, dtype: DType = None, device: Device = None
    ) -> Any: ...
    @of
    def ones_like(self, *, dtype: DType = None, device: Device = None) -> None: ...
    @of
    def tril(self, *, k: int = 0) -> None: ...
    @of
    def triu(self, *, k: int = 0) -> None: ...
    def zeros(
        self, shape: int | Sequence[int], *, dtype: DType = None, device: Device = None
    ) -> Any: ...
    @of
    def zeros_like(self, *, dtype: DType = None, device: Device = None) -> None: ...

    # Dtypes.
    @of
    def astype(self, dtype: DType, /, *, copy: bool = True, device: Device = None) -> None: ...
    def can_cast(self, from_: DType | Shaped, to: DType, /) -> bool: ...
    def finfo(self, type: DType | Shaped, /) -> FloatLimits: ...
    def iinfo(self, type: DType | Shaped, /) -> Limits: ...
    def isdtype(self, dtype: DType, kind: DType | tuple[DType, ...]) -> bool: ...
    def result_type(self, *arrays_and_dtypes: Shaped | DType | complex) -> DType: ...

    # Elementwise.
    abs: Unary
    acos: Unary
    acosh: Unary
    add: Binary
    asin: Unary
    asinh: Unary
    atan: Unary
    atan2: Binary
    atanh: Unary
    bitwise_and: Binary
    bitwise_left_shift: Binary
    bitwise_invert: Unary
    bitwise_or: Binary
    bitwise_right_shift: Binary
    bitwise_xor: Binary
    ceil: Unary

    @of
    def clip(
        self, min: Shaped | float | None = None, max: Shaped | float | None = None
    ) -> None: ...

    conj: Unary
    copysign: Binary
    cos: Unary
    cosh: Unary
    divide: Binary
    equal: Binary
    exp: Unary
    expm1: Unary
    floor: Unary
    floor_divide: Binary
    greater: Binary
    greater_equal: Binary
    hypot: Binary
    imag: Unary
    isfinite: Unary
    isinf: Unary
    isnan: Unary
    less: Binary
    less_equal: Binary
    log: Unary
    log1p: Unary
    log2: Unary
    log10: Unary
    logaddexp: Binary
    logical_and: Binary
    logical_not: Unary
    logical_or: Binary
    logical_xor: Binary
    maximum: Binary
    minimum: Binary
    multiply: Binary
    negative: Unary
    nextafter: Binary
    not_equal: Binary
    positive: Unary
    pow: Binary
    real: Unary
    reciprocal: Unary
    remainder: Binary
    round: Unary
    sign: Unary
    signbit: Unary
    sin: Unary
    sinh: Unary
    square: Unary
    sqrt: Unary
    subtract: Binary
    tan: Unary
    tanh: Unary
    trunc: Unary

    # Parts, shapes and order.
    @of
    def take(self, indices: Shaped, /, *, axis: int | None = None) -> None: ...
    @of
    def take_along_axis(self, indices: Shaped, /, *, axis: int = -1) -> None: ...

    broadcast_arrays: Together

    @of
    def broadcast_to(self, shape: Sequence[int]) -> None: ...

    concat: Join

    @of
    def expand_dims(self, axis: int | tuple[int, ...]) -> None: ...
    @of
    def flip(self, *, axis: Axes = None) -> None: ...
    @of
    def moveaxis(
        self, source: int | tuple[int, ...], destination: int | tuple[int, ...], /
    ) -> None: ...
    @of
    def permute_dims(self, axes: Sequence[int]) -> None: ...
    @of
    def repeat(self, repeats: int | Shaped, /, *, axis: int | None = None) -> None: ...
    @of
    def reshape(self, shape: Sequence[int], *, copy: bool | None = None) -> None: ...
    @of
    def roll(self, shift: int | tuple[int, ...], *, axis: Axes = None) -> None: ...
    @of
    def squeeze(self, axis: int | tuple[int, ...]) -> None: ...

    stack: Join

    @of
    def tile(self, repetitions: Sequence[int], /) -> None: ...
    @parts
    def unstack(self, *, axis: int = 0) -> None: ...
    @of
    def argmax(self, *, axis: int | None = None, keepdims: bool = False) -> None: ...
    @of
    def argmin(self, *, axis: int | None = None, keepdims: bool = False) -> None: ...
    @of
    def count_nonzero(self, *, axis: Axes = None, keepdims: bool = False) -> None: ...
    @parts
    def nonzero(self) -> None: ...
    @of
    def searchsorted(
        self,
        x2: Shaped | float,
        /,
        *,
        side: Literal["left", "right"] = "left",
        sorter: Shaped | None = None,
    ) -> None: ...
    @of
    def where(self, x1: Shaped | complex, x2: Shaped | complex, /) -> None: ...
    @of
    def argsort(self, *, axis: int = -1, descending: bool = False, stable: bool = True) -> None: ...
    @of
    def sort(self, *, axis: int = -1, descending: bool = False, stable: bool = True) -> None: ...

    unique_all: AllUnique
    unique_counts: CountedUnique
    unique_inverse: InverseUnique
    unique_values: Unary

    # Statistics.
    @of
    def cumulative_sum(
        self, *, axis: int | None = None, dtype: DType = None, include_initial: bool = False
    ) -> None: ...
    @of
    def cumulative_prod(
        self, *, axis: int | None = None, dtype: DType = None, include_initial: bool = False
    ) -> None: ...
    @of
    def max(self, *, axis: Axes = None, keepdims: bool = False) -> None: ...
    @of
    def mean(self, *, axis: Axes = None, keepdims: bool = False) -> None: ...
    @of
    def min(self, *, axis: Axes = None, keepdims: bool = False) -> None: ...
    @of
    def prod(self, *, axis: Axes = None, dtype: DType = None, keepdims: bool = False) -> None: ...
    @of
    def std(
        self, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
    ) -> None: ...
    @of
    def sum(self, *, axis: Axes = None, dtype: DType = None, keepdims: bool = False) -> None: ...
    @of
    def var(
        self, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
    ) -> None: ...
    @of
    def all(self, *, axis: Axes = None, keepdims: bool = False) -> None: ...
    @of
    def any(self, *, axis: Axes = None, keepdims: bool = False) -> None: ...
    @of
    def diff(
        self,
        *,
        axis: int = -1,
        n: int = 1,
        prepend: Shaped | None = None,
        append: Shaped | None = None,
    ) -> None: ...

    # Products.
    @of
    def matmul(self, x2: Shaped, /) -> None: ...

    matrix_transpose: Unary

    @of
    def tensordot(
        self, x2: Shaped, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
    ) -> None: ...
    @of
    def vecdot(self, x2: Shaped, /, *, axis: int = -1) -> None: ...

    # Inspection.
    def __array_namespace_info__(self) -> Any: ...

    # Beyond the standard.
    einsum: Einsum
    erf: Unary

    @of
    def pad(
        self,
        widths: Widths,
        /,
        mode: Literal["constant"] = "constant",
        *,
        constant_values: complex = 0,
    ) -> None: ...
