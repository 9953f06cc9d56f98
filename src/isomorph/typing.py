"""Types for the signatures of programs that use isomorph: `from isomorph.typing import Namespace`.

Words that functions take are spelt out, so that a type checker sees one that is misspelt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NewType, Protocol, TypeAlias

from .types.array_types import Shaped as Shaped
from .types.standard import Namespace as Namespace

OtherBackend = NewType("OtherBackend", str)
"""The name of a backend of another package, or of one that is chosen when the program runs:
`iso.use_backend(OtherBackend("array_api_strict"))`."""

BackendName: TypeAlias = Literal["numpy", "jax", "tensorflow", "torch"] | OtherBackend

DTypeName: TypeAlias = Literal[
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "bfloat16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip


class TracedArray:
    """A NumPy array while a function is differentiated: `isinstance(x, TracedArray)` is true inside
    of `iso.grad` and the like, for values that depend on what is differentiated. It computes like
    a NumPy array, but is none. The other frameworks differentiate arrays of their own types.
    """

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        raise NotImplementedError

    @property
    def dtype(self) -> Any:
        raise NotImplementedError


class Measured(Protocol):
    """A dtype of NumPy, JAX or PyTorch."""

    @property
    def itemsize(self) -> int: ...


class Classed(Protocol):
    """A dtype of TensorFlow."""

    @property
    def is_floating(self) -> bool: ...


DType: TypeAlias = DTypeName | type | Measured | Classed

Format: TypeAlias = Literal["channel_last", "channel_first"]
Format1D: TypeAlias = Literal["NWC", "NCW"]
Format2D: TypeAlias = Literal["NHWC", "NCHW"]
Format3D: TypeAlias = Literal["NDHWC", "NCDHW"]
Padding: TypeAlias = Literal["SAME", "VALID", "same", "valid"] | int | Sequence[Sequence[int]]
AnyFormat: TypeAlias = Format | Format1D | Format2D | Format3D
PerAxis: TypeAlias = int | Sequence[int]  # one for all axes, or one for each
Shape: TypeAlias = int | Sequence[int]
Scalar: TypeAlias = Literal["mean", "sum", "none"]
Distribution: TypeAlias = Literal["uniform", "normal"]
Key: TypeAlias = int | Shaped  # an integer, or a key of `iso.random`
ActivationName: TypeAlias = Literal[
    "relu", "leaky_relu", "elu", "gelu", "silu", "softplus", "mish", "hardswish", "sigmoid",
    "softmax", "log_softmax", "logsumexp",
]  # fmt: skip
