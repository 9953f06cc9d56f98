"""Reading and updating parts of an array without changing it, with NumPy's meaning of an index on
every backend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .dispatch import backend_of, dtype_of, find_backend

if TYPE_CHECKING:
    from .backends.base import Backend


class at:
    """`iso.at(x)[index].set(v)`: a copy of `x` in which `x[index]` is `v`; `x` itself is untouched.

    Also `.add`, `.multiply`, `.min`, `.max` with `v`, and `.get()`, which is `x[index]`. The index
    may hold ints, slices, None, Ellipsis, one boolean mask, or integer arrays; positions that occur
    twice are added twice by `.add`, and must not occur twice in `.set`.

    >>> iso.at(np.zeros(3))[1:].set(5.0)
    array([0., 5., 5.])
    """

    __slots__ = ("x",)

    def __init__(self, x: Any):
        self.x = x

    def __getitem__(self, index: Any) -> Place:
        return Place(self.x, index)


class Place:
    """An array and an index into it."""

    __slots__ = ("index", "x")

    def __init__(self, x: Any, index: Any):
        self.x, self.index = x, index

    def get(self) -> Any:
        """`x[index]`."""
        return backend_of(self.x).index_get(self.x, self.index)

    def set(self, value: Any) -> Any:
        """`x` with `x[index] = value`."""
        return self._update(value, "set")

    def add(self, value: Any) -> Any:
        """`x` with `x[index] += value`, repeated positions added repeatedly."""
        return self._update(value, "add")

    def multiply(self, value: Any) -> Any:
        """`x` with `x[index] *= value`."""
        return self._update(value, "multiply")

    def min(self, value: Any) -> Any:
        """`x` with the smaller of `x[index]` and `value`."""
        return self._update(value, "min")

    def max(self, value: Any) -> Any:
        """`x` with the larger of `x[index]` and `value`."""
        return self._update(value, "max")

    def _update(self, value: Any, how: str) -> Any:
        backend = backend_of(self.x)
        if value is None:
            raise TypeError(f"at(x)[index].{how}: needed a number or an array, got None")
        literal = find_backend(value) is None  # a number, or nested lists of numbers
        if literal:
            value = backend.asarray(value, device=backend.device_of(self.x))
        backend = backend_of(self.x, value)
        if _rank(backend, value.dtype) > _rank(backend, self.x.dtype):
            raise TypeError(
                f"at(x)[index].{how}: needed a value that fits into {dtype_of(self.x)}, "
                f"got {dtype_of(value)}; convert one of the two"
            )
        if literal:
            value = backend.astype(value, self.x.dtype)
        return backend.index_update(self.x, self.index, value, how)


def _rank(backend: Backend, dtype: Any) -> int:
    """The kinds in order: what is of a higher one does not fit into a lower one."""
    kinds = ("bool", "integral", "real floating", "complex floating")
    if backend.is_float(dtype):
        return 3 if backend.is_complex(dtype) else 2
    return next((i for i, kind in enumerate(kinds) if backend.isdtype(dtype, kind)), 0)
