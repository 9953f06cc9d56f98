"""The methods of `np.ndarray`, for traced values: each is the NumPy function of the same name.

Those that change the array in place, or return plain data, raise and say what to write instead.
"""

# pyright: reportArgumentType=false, reportCallIssue=false
# NumPy's stubs do not know __array_function__.

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy

np: Any = numpy  # its type stubs do not know traced values


def _refuse(method: str, reason: str, fix: str) -> Callable[..., NoReturn]:
    def refuse(self: Any, *args: Any, **kw: Any) -> NoReturn:
        raise TypeError(
            f"x.{method} {reason}, which is not possible for a traced NumPy value: {fix}"
        )

    return refuse


def _changes(method: str, fix: str) -> Callable[..., NoReturn]:
    return _refuse(method, "changes x in place", fix)


def _reads(
    method: str, fix: str = "use it outside, or on iso.stop_gradient(x)"
) -> Callable[..., NoReturn]:
    return _refuse(method, "returns plain data, without a gradient", fix)


_as_other_numbers = _reads(
    "view(dtype)", "write x.astype(dtype), or x[..., 0] + 1j * x[..., 1] to pair numbers"
)


class Flat:
    """`x.flat`: all elements in C order, read as a copy, written in place."""

    __slots__ = ("x",)

    def __init__(self, x: Any) -> None:
        self.x = x

    def __getitem__(self, index: Any) -> Any:
        return np.ravel(self.x)[index]

    def __setitem__(self, index: Any, v: Any) -> None:
        np.put(self.x, np.arange(self.x.size)[index], v)

    def __len__(self) -> int:
        return self.x.size

    def __iter__(self) -> Any:
        return iter(np.ravel(self.x))

    def copy(self) -> Any:
        return np.copy(np.ravel(self.x))

    def __array_function__(self, func: Any, types: Any, args: Any, kw: Any) -> Any:
        return func(*map(_raveled, args), **{k: _raveled(v) for k, v in kw.items()})

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kw: Any) -> Any:
        return getattr(ufunc, method)(*map(_raveled, args), **kw)


def _raveled(x: Any) -> Any:
    return np.ravel(x.x) if type(x) is Flat else x


def _is_complex(x: Any) -> bool:
    return x.dtype.kind == "c"


def relaid(name: str) -> NoReturn:
    raise AttributeError(
        f"isomorph: x.{name} = v: an array of a differentiated function keeps its {name}; "
        "write x = x.reshape(v)"
    )


class Methods:
    __slots__ = ()

    # fmt: off
    def sum(self, *args, **kw): return np.sum(self, *args, **kw)
    def prod(self, *args, **kw): return np.prod(self, *args, **kw)
    def mean(self, *args, **kw): return np.mean(self, *args, **kw)
    def std(self, *args, **kw): return np.std(self, *args, **kw)
    def var(self, *args, **kw): return np.var(self, *args, **kw)
    def max(self, *args, **kw): return np.max(self, *args, **kw)
    def min(self, *args, **kw): return np.min(self, *args, **kw)
    def cumsum(self, *args, **kw): return np.cumsum(self, *args, **kw)
    def cumprod(self, *args, **kw): return np.cumprod(self, *args, **kw)
    def all(self, *args, **kw): return np.all(self, *args, **kw)
    def any(self, *args, **kw): return np.any(self, *args, **kw)
    def argmax(self, *args, **kw): return np.argmax(self, *args, **kw)
    def argmin(self, *args, **kw): return np.argmin(self, *args, **kw)
    def argsort(self, *args, **kw): return np.argsort(self, *args, **kw)
    def argpartition(self, *args, **kw): return np.argpartition(self, *args, **kw)
    def searchsorted(self, *args, **kw): return np.searchsorted(self, *args, **kw)
    def nonzero(self): return np.nonzero(self)
    def clip(self, *args, **kw): return np.clip(self, *args, **kw)
    def round(self, *args, **kw): return np.round(self, *args, **kw)
    def conj(self): return np.conjugate(self) if np.iscomplexobj(self) else self
    def conjugate(self): return self.conj()
    def dot(self, *args, **kw): return np.dot(self, *args, **kw)
    def trace(self, *args, **kw): return np.trace(self, *args, **kw)
    def diagonal(self, *args, **kw): return np.diagonal(self, *args, **kw)
    def take(self, *args, **kw): return np.take(self, *args, **kw)
    def compress(self, condition, *args, **kw): return np.compress(condition, self, *args, **kw)
    def repeat(self, *args, **kw): return np.repeat(self, *args, **kw)
    def ravel(self, order="C"): return np.ravel(self, order)
    def flatten(self, order="C"): return np.copy(np.ravel(self, order))
    def squeeze(self, axis=None): return np.squeeze(self, axis)
    def swapaxes(self, a, b): return np.swapaxes(self, a, b)
    def choose(self, choices, *args, **kw): return np.choose(self, choices, *args, **kw)
    def __copy__(self: Any): return self.copy()
    def __deepcopy__(self: Any, memo): return self.copy()
    def __divmod__(self, other): return np.divmod(self, other)
    def __rdivmod__(self, other): return np.divmod(other, self)
    def __contains__(self, value): return bool(np.any(np.equal(self, value)))
    def __invert__(self): return np.bitwise_invert(self)
    def __and__(self, other): return np.bitwise_and(self, other)
    def __or__(self, other): return np.bitwise_or(self, other)
    def __xor__(self, other): return np.bitwise_xor(self, other)

    def fill(self: Any, value): self[...] = value
    def put(self, indices, values, mode="raise"): np.put(self, indices, values, mode)
    def sort(self: Any, *args, **kw): self[...] = np.sort(self, *args, **kw)
    def partition(self: Any, *args, **kw): self[...] = np.partition(self, *args, **kw)
    resize = _changes("resize(shape)", "write x = np.resize(x, shape)")
    __delitem__ = _changes("__delitem__", "write x = np.delete(x, i)")
    setflags = _changes("setflags()", "it is read-only, and no view of it can be written to")
    setfield = _changes("setfield()", "write x = iso.at(x)[i].set(v)")
    byteswap = _reads("byteswap()")
    getfield = _reads("getfield()")
    tobytes = _reads("tobytes()")
    tofile = _reads("tofile()")
    dump = _reads("dump()")
    dumps = _reads("dumps()")
    __dlpack__ = _reads("__dlpack__()")
    data = property(_reads("data"))
    ctypes = property(_reads("ctypes"))
    # fmt: on

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Any:
        return np.reshape(self, shape[0] if len(shape) == 1 else shape, order=order)

    def view(self: Any, *kinds: Any) -> Any:
        if kinds:
            _as_other_numbers(self)
        return self[...]

    def transpose(self, *axes: Any) -> Any:
        return np.transpose(self, (axes[0] if len(axes) == 1 else axes) or None)

    def astype(
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True,
        copy: bool = True,
    ) -> Any:  # fmt: skip
        if not np.can_cast(self.dtype, dtype, casting):  # type: ignore[attr-defined]
            raise TypeError(
                f"x.astype: needed a cast that is {casting}, got one to {np.dtype(dtype).name}"
            )
        if not copy and np.dtype(dtype) == self.dtype:  # type: ignore[attr-defined]
            return self
        return np.astype(self, np.dtype(dtype))

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        if device != "cpu":
            raise ValueError(f"x.to_device: needed 'cpu', the only device of NumPy, got {device!r}")
        return self

    # fmt: off
    @property
    def T(self) -> Any: return np.transpose(self)
    @property
    def mT(self) -> Any: return np.matrix_transpose(self)
    @property
    def real(self) -> Any: return np.real(self)
    @real.setter
    def real(self: Any, v: Any) -> None: self[...] = v + 1j * self.imag if _is_complex(self) else v
    @property
    def imag(self) -> Any: return np.imag(self)
    @imag.setter
    def imag(self: Any, v: Any) -> None:
        if not _is_complex(self):
            raise TypeError("array does not have imaginary part to set")
        self[...] = self.real + 1j * v
    @property
    def flat(self) -> Any: return Flat(self)
    @flat.setter
    def flat(self, v: Any) -> None: Flat(self)[:] = v
    @property
    def device(self) -> str: return "cpu"
    @property
    def itemsize(self) -> int: return self.dtype.itemsize  # type: ignore[attr-defined]
    @property
    def nbytes(self) -> int: return self.size * self.itemsize  # type: ignore[attr-defined]
    @property
    def flags(self) -> Any: return self.value.flags  # type: ignore[attr-defined]
    @property
    def strides(self) -> Any: return self.value.strides  # type: ignore[attr-defined]
    @property
    def base(self) -> None: return None
    # fmt: on
