"""Arrays and functions of arrays as types, for type checkers: what the signatures of isomorph are
written with. Nothing of it is used when a program runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    TypeVarTuple,
    cast,
    final,
    overload,
)

if TYPE_CHECKING:
    import numpy as np

    N: TypeAlias = np.ndarray[Any, Any]  # of any shape and dtype


class Shaped(Protocol):
    """What every array has; an array of NumPy, JAX, TensorFlow or PyTorch is one."""

    @property
    def shape(self) -> Any: ...
    @property
    def dtype(self) -> Any: ...


A = TypeVar("A", bound=Shaped)


@final
class Unknown:
    """Nothing is one: an argument is taken for it where its type is not known, and there alone."""


A = TypeVar("A", bound=Shaped)
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")
X = TypeVar("X", bound=Any)  # with a bound, or the arguments of a lambda are taken for objects
DType: TypeAlias = Any  # what a framework calls a dtype
Device: TypeAlias = Any
Axes: TypeAlias = int | tuple[int, ...] | None
Widths: TypeAlias = int | Sequence[int] | Sequence[Sequence[int]]
Norm: TypeAlias = Literal["backward", "ortho", "forward"]

# What has more than one part.


class UniqueAll(NamedTuple, Generic[T]):
    values: T
    indices: T
    inverse_indices: T
    counts: T


class UniqueCounts(NamedTuple, Generic[T]):
    values: T
    counts: T


class UniqueInverse(NamedTuple, Generic[T]):
    values: T
    inverse_indices: T


class Eigh(NamedTuple, Generic[T]):
    eigenvalues: T
    eigenvectors: T


class QR(NamedTuple, Generic[T]):
    Q: T
    R: T


class Slogdet(NamedTuple, Generic[T]):
    sign: T
    logabsdet: T


class SVD(NamedTuple, Generic[T]):
    U: T
    S: T
    Vh: T


class Limits(Protocol):
    """What `finfo` and `iinfo` say of a dtype."""

    @property
    def bits(self) -> int: ...
    @property
    def max(self) -> Any: ...
    @property
    def min(self) -> Any: ...


class FloatLimits(Limits, Protocol):
    @property
    def eps(self) -> Any: ...
    @property
    def smallest_normal(self) -> Any: ...


# Functions, by what they give. Of NumPy's arrays come NumPy's, of any shape and dtype, as most
# change one of the two; of every other array one of its type; of what is not known nothing is said.


class Of(Protocol[P]):
    @overload
    def __call__(self, x: Unknown, /, *args: P.args, **kw: P.kwargs) -> Any: ...
    @overload
    def __call__(self, x: N, /, *args: P.args, **kw: P.kwargs) -> N: ...
    @overload
    def __call__(self, x: A, /, *args: P.args, **kw: P.kwargs) -> A: ...


class Parts(Protocol[P]):
    @overload
    def __call__(self, x: Unknown, /, *args: P.args, **kw: P.kwargs) -> tuple[Any, ...]: ...
    @overload
    def __call__(self, x: N, /, *args: P.args, **kw: P.kwargs) -> tuple[N, ...]: ...
    @overload
    def __call__(self, x: A, /, *args: P.args, **kw: P.kwargs) -> tuple[A, ...]: ...


def of(func: Callable[Concatenate[Any, P], None]) -> Of[P]:
    """A function of an array, which `self` stands for, that gives one."""
    return cast("Of[P]", func)


def parts(func: Callable[Concatenate[Any, P], None]) -> Parts[P]:
    """One that gives a tuple of arrays."""
    return cast("Parts[P]", func)


class Binary(Protocol):
    @overload
    def __call__(self, x1: Unknown, x2: Shaped | complex, /) -> Any: ...
    @overload
    def __call__(self, x1: N, x2: Shaped | complex, /) -> N: ...
    @overload
    def __call__(self, x1: A, x2: Shaped | complex, /) -> A: ...
    @overload
    def __call__(self, x1: complex, x2: Unknown, /) -> Any: ...
    @overload
    def __call__(self, x1: complex, x2: N, /) -> N: ...
    @overload
    def __call__(self, x1: complex, x2: A, /) -> A: ...


Unary: TypeAlias = Of[[]]


class Join(Protocol):
    @overload
    def __call__(self, arrays: Sequence[Unknown], /, *, axis: int | None = 0) -> Any: ...
    @overload
    def __call__(self, arrays: Sequence[N], /, *, axis: int | None = 0) -> N: ...
    @overload
    def __call__(self, arrays: Sequence[A], /, *, axis: int | None = 0) -> A: ...


class Together(Protocol):
    @overload
    def __call__(self, *arrays: Unknown) -> tuple[Any, ...]: ...
    @overload
    def __call__(self, *arrays: N) -> tuple[N, ...]: ...
    @overload
    def __call__(self, *arrays: A) -> tuple[A, ...]: ...


class Grid(Protocol):
    @overload
    def __call__(
        self, *arrays: Unknown, indexing: Literal["xy", "ij"] = "xy"
    ) -> tuple[Any, ...]: ...
    @overload
    def __call__(self, *arrays: N, indexing: Literal["xy", "ij"] = "xy") -> tuple[N, ...]: ...
    @overload
    def __call__(self, *arrays: A, indexing: Literal["xy", "ij"] = "xy") -> tuple[A, ...]: ...


class Einsum(Protocol):
    @overload
    def __call__(self, subscripts: str, /, *operands: Unknown) -> Any: ...
    @overload
    def __call__(self, subscripts: str, /, *operands: N) -> N: ...
    @overload
    def __call__(self, subscripts: str, /, *operands: A) -> A: ...


class AllUnique(Protocol):
    @overload
    def __call__(self, x: Unknown, /) -> UniqueAll[Any]: ...
    @overload
    def __call__(self, x: N, /) -> UniqueAll[N]: ...
    @overload
    def __call__(self, x: A, /) -> UniqueAll[A]: ...


class CountedUnique(Protocol):
    @overload
    def __call__(self, x: Unknown, /) -> UniqueCounts[Any]: ...
    @overload
    def __call__(self, x: N, /) -> UniqueCounts[N]: ...
    @overload
    def __call__(self, x: A, /) -> UniqueCounts[A]: ...


class InverseUnique(Protocol):
    @overload
    def __call__(self, x: Unknown, /) -> UniqueInverse[Any]: ...
    @overload
    def __call__(self, x: N, /) -> UniqueInverse[N]: ...
    @overload
    def __call__(self, x: A, /) -> UniqueInverse[A]: ...


class Spectrum(Protocol):
    @overload
    def __call__(self, x: Unknown, /) -> Eigh[Any]: ...
    @overload
    def __call__(self, x: N, /) -> Eigh[N]: ...
    @overload
    def __call__(self, x: A, /) -> Eigh[A]: ...


class Factors(Protocol):
    @overload
    def __call__(
        self, x: Unknown, /, *, mode: Literal["reduced", "complete"] = "reduced"
    ) -> QR[Any]: ...
    @overload
    def __call__(self, x: N, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QR[N]: ...
    @overload
    def __call__(self, x: A, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QR[A]: ...


class LogDeterminant(Protocol):
    @overload
    def __call__(self, x: Unknown, /) -> Slogdet[Any]: ...
    @overload
    def __call__(self, x: N, /) -> Slogdet[N]: ...
    @overload
    def __call__(self, x: A, /) -> Slogdet[A]: ...


class Singular(Protocol):
    @overload
    def __call__(self, x: Unknown, /, *, full_matrices: bool = True) -> SVD[Any]: ...
    @overload
    def __call__(self, x: N, /, *, full_matrices: bool = True) -> SVD[N]: ...
    @overload
    def __call__(self, x: A, /, *, full_matrices: bool = True) -> SVD[A]: ...
