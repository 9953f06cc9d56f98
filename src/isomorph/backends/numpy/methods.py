"""The methods of `np.ndarray`, for traced values: each is the NumPy function of the same name."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np


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
    def conj(self): return np.conjugate(self)
    def conjugate(self): return np.conjugate(self)
    def dot(self, other): return np.dot(self, other)
    def trace(self, *args, **kw): return np.trace(self, *args, **kw)
    def diagonal(self, *args, **kw): return np.diagonal(self, *args, **kw)
    def take(self, *args, **kw): return np.take(self, *args, **kw)
    def compress(self, condition, axis=None): return np.compress(condition, self, axis)
    def repeat(self, *args, **kw): return np.repeat(self, *args, **kw)
    def ravel(self, order="C"): return np.ravel(self, order)
    def flatten(self, order="C"): return np.ravel(self, order)
    def squeeze(self, axis=None): return np.squeeze(self, axis)
    def swapaxes(self, a, b): return np.swapaxes(self, a, b)
    def copy(self, order="C"): return np.copy(self, order)
    # fmt: on

    def reshape(self, *shape: Any, order: str = "C") -> Any:
        return np.reshape(self, shape[0] if len(shape) == 1 else shape, order=order)  # type: ignore[arg-type]

    def transpose(self, *axes: Any) -> Any:
        return np.transpose(self, (axes[0] if len(axes) == 1 else axes) or None)  # type: ignore[arg-type]

    def astype(self, dtype: Any, *args: Any, **kw: Any) -> Any:
        return np.astype(self, np.dtype(dtype))  # type: ignore[arg-type]

    @property
    def T(self) -> Any:
        return np.transpose(self)  # type: ignore[arg-type]

    @property
    def mT(self) -> Any:
        return np.matrix_transpose(self)  # type: ignore[arg-type]

    @property
    def real(self) -> Any:
        return np.real(self)  # type: ignore[arg-type]

    @property
    def imag(self) -> Any:
        return np.imag(self)  # type: ignore[arg-type]

    def sort(self, *args: Any, **kw: Any) -> NoReturn:
        raise TypeError("x.sort() changes x in place, which a traced NumPy value cannot: write x = np.sort(x)")

    def fill(self, value: Any) -> NoReturn:
        raise TypeError("x.fill(v) changes x in place, which a traced NumPy value cannot: write np.full_like(x, v)")
