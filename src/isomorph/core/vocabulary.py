"""The names in every namespace: the Python array API standard 2024.12, and a few more that layers
need.

A composed function may use these names, operators, `.ndim`, `.dtype` and static sizes, and nothing
else. It is one list, so that a backend is complete when it has all of them, and a test can name
what it lacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "complex64",
    "complex128",
]

CONSTANTS = ["e", "inf", "nan", "newaxis", "pi"]

CREATION = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]

DATA_TYPES = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

ELEMENTWISE = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_invert",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "clip",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "divide",
    "equal",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "real",
    "reciprocal",
    "remainder",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "square",
    "sqrt",
    "subtract",
    "tan",
    "tanh",
    "trunc",
]

INDEXING = ["take", "take_along_axis"]

MANIPULATION = [
    "broadcast_arrays",
    "broadcast_to",
    "concat",
    "expand_dims",
    "flip",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "tile",
    "unstack",
]

SEARCHING = [
    "argmax",
    "argmin",
    "count_nonzero",
    "nonzero",
    "searchsorted",
    "where",
    "argsort",
    "sort",
]

SETS = ["unique_all", "unique_counts", "unique_inverse", "unique_values"]

STATISTICS = [
    "cumulative_sum",
    "cumulative_prod",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
    "all",
    "any",
    "diff",
]

MATRICES = ["matmul", "matrix_transpose", "tensordot", "vecdot"]

INSPECTION = ["__array_namespace_info__"]

# Beyond the standard: np.einsum's strings, the error function, constant padding.
LAYERS = ["einsum", "erf", "pad"]

VOCABULARY = (
    *DTYPES, *CONSTANTS, *CREATION, *DATA_TYPES, *ELEMENTWISE, *INDEXING, *MANIPULATION, *SEARCHING,
    *SETS, *STATISTICS, *MATRICES, *INSPECTION, *LAYERS,
)  # fmt: skip

LINALG = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]

FFT = [
    "fft",
    "ifft",
    "fftn",
    "ifftn",
    "rfft",
    "irfft",
    "rfftn",
    "irfftn",
    "hfft",
    "ihfft",
    "fftfreq",
    "rfftfreq",
    "fftshift",
    "ifftshift",
]


class Names:
    """A bag of names gathered from several places; the first place that has a name supplies it."""

    def __init__(self, name: str, wanted: Iterable[str], sources: Sequence[Any], more: str = ""):
        self.__name__, self._more = name, more
        for word in wanted:
            for source in sources:
                if hasattr(source, word):
                    setattr(self, word, getattr(source, word))
                    break

    def __repr__(self) -> str:
        return f"<{self.__name__}>"

    def __getattr__(self, word: str) -> Any:  # reached only when the name is not there
        if word.startswith("_"):
            raise AttributeError(word)
        raise AttributeError(
            f"{self.__name__} has no {word!r}: it holds the names of the array API standard "
            f"2024.12{self._more}; for more, call the framework on the array itself"
        )
