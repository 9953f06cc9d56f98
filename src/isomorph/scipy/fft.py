"""`scipy.fft`: on traced values, NumPy's transforms, and cosine and sine transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import scipy.fft

from ..backends.numpy.tape import primitive, rule
from ..numpy.creation import asarray
from .replacing import refuse, replaces

np: Any = numpy  # its type stubs do not know traced values
theirs: Any = scipy.fft


def __getattr__(name: str) -> Any:
    return getattr(theirs, name)


def __dir__() -> list[str]:
    return dir(theirs)


def _one(name: str) -> Callable[..., Any]:
    def transform(
        x: Any, n: Any = None, axis: int = -1, norm: Any = None, overwrite_x: bool = False,
        workers: Any = None, *, plan: Any = None,
    ) -> Any:  # fmt: skip
        return getattr(np.fft, name)(asarray(x), n, axis, norm)

    return replaces(getattr(theirs, name))(transform)


def _several(name: str, last: Any) -> Callable[..., Any]:
    def transform(
        x: Any, s: Any = None, axes: Any = last, norm: Any = None, overwrite_x: bool = False,
        workers: Any = None, *, plan: Any = None,
    ) -> Any:  # fmt: skip
        if s is not None and axes is None:
            axes = tuple(range(-len(s), 0))
        return getattr(np.fft, name)(asarray(x), s, axes, norm)

    return replaces(getattr(theirs, name))(transform)


fft, ifft, rfft, irfft = _one("fft"), _one("ifft"), _one("rfft"), _one("irfft")
hfft, ihfft = _one("hfft"), _one("ihfft")
fft2, ifft2 = _several("fft2", (-2, -1)), _several("ifft2", (-2, -1))
rfft2, irfft2 = _several("rfft2", (-2, -1)), _several("irfft2", (-2, -1))
fftn, ifftn = _several("fftn", None), _several("ifftn", None)
rfftn, irfftn = _several("rfftn", None), _several("irfftn", None)


@primitive
def _along(x: Any, name: str, type: int, n: int, axis: int, norm: Any, orthogonalize: Any) -> Any:
    """A cosine or sine transform along one axis."""
    return getattr(theirs, name)(x, type, n, axis, norm, orthogonalize=orthogonalize)


@primitive
def _against(g: Any, name: str, type: int, n: int, axis: int, norm: Any, orthogonalize: Any) -> Any:
    """The transpose of that transform, as a product with its matrix."""
    matrix = getattr(theirs, name)(
        np.eye(n, dtype=g.dtype), type, None, 0, norm, orthogonalize=orthogonalize
    )
    return np.moveaxis(np.moveaxis(g, axis, -1) @ matrix, -1, axis)


@rule(_along)
def _(y, x, name, type, n, axis, norm, orthogonalize):
    return (lambda g: _against(g, name, type, n, axis, norm, orthogonalize),)


@rule(_against)
def _(y, g, name, type, n, axis, norm, orthogonalize):
    return (lambda h: _along(h, name, type, n, axis, norm, orthogonalize),)


def _wave(name: str) -> Callable[..., Any]:
    def transform(
        x: Any, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None,
        overwrite_x: bool = False, workers: Any = None, orthogonalize: Any = None,
    ) -> Any:  # fmt: skip
        x = asarray(x)
        if x.dtype.kind == "c":
            refuse(f"fft.{name}", " of complex arrays", "transform the real and imaginary parts")
        n = x.shape[axis] if n is None else n
        if n != x.shape[axis]:
            x = _resized(x, n, axis % x.ndim)
        return _along(x, name, type, n, axis, norm, orthogonalize)

    return replaces(getattr(theirs, name))(transform)


def _resized(x: Any, n: int, axis: int) -> Any:
    """`x` cut, or padded with zeros, to the length n."""
    x = x[(slice(None),) * axis + (slice(n),)]
    widths = [(0, n - m if i == axis else 0) for i, m in enumerate(x.shape)]
    return np.pad(x, widths)


dct, idct, dst, idst = _wave("dct"), _wave("idct"), _wave("dst"), _wave("idst")


def _waves(name: str) -> Callable[..., Any]:
    one = {"dctn": dct, "idctn": idct, "dstn": dst, "idstn": idst}[name]

    def transform(
        x: Any, type: int = 2, s: Any = None, axes: Any = None, norm: Any = None,
        overwrite_x: bool = False, workers: Any = None, *, orthogonalize: Any = None,
    ) -> Any:  # fmt: skip
        x = asarray(x)
        if axes is None:
            axes = range(x.ndim) if s is None else range(-len(np.atleast_1d(s)), 0)
        axes = [axes] if isinstance(axes, int) else list(axes)
        sizes = [None] * len(axes) if s is None else np.atleast_1d(s).tolist()
        for axis, n in zip(axes, sizes):
            x = one(x, type, n, axis, norm, orthogonalize=orthogonalize)
        return x

    return replaces(getattr(theirs, name))(transform)


dctn, idctn, dstn, idstn = _waves("dctn"), _waves("idctn"), _waves("dstn"), _waves("idstn")


@replaces(theirs.fftshift)
def fftshift(x: Any, axes: Any = None) -> Any:
    return np.fft.fftshift(x, axes)


@replaces(theirs.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> Any:
    return np.fft.ifftshift(x, axes)
