"""`scipy.signal`: convolutions and other linear operations with gradients."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy
import scipy.signal
from numpy.lib.stride_tricks import sliding_window_view

from ..backends.numpy.rules.elementwise import conj
from ..backends.numpy.tape import primitive, rule
from ..numpy.creation import asarray
from .replacing import refuse, replaces

np: Any = numpy  # its type stubs do not know traced values
theirs: Any = scipy.signal


def __getattr__(name: str) -> Any:
    return getattr(theirs, name)


def __dir__() -> list[str]:
    return dir(theirs)


@primitive
def _full(a: Any, b: Any, method: str) -> Any:
    """The whole convolution of two arrays with as many axes."""
    return theirs.convolve(a, b, "full", method)


@primitive
def _valid(a: Any, b: Any, method: str) -> Any:
    """The part of the convolution where all of the smaller `b` is inside `a`."""
    return theirs.convolve(a, b, "valid", method)


def _turned(x: Any) -> Any:
    return conj(np.flip(x))


@rule(_full)
def _(y, a, b, method):
    return (
        lambda g: _valid(g, _turned(b), method),
        lambda g: _valid(g, _turned(a), method),
    )


@rule(_valid)
def _(y, a, b, method):
    return lambda g: _full(g, _turned(b), method), lambda g: _valid(_turned(a), g, method)


def _part(y: Any, a: Any, b: Any, mode: str) -> Any:
    """The part of the whole convolution that `mode` asks for."""
    if mode == "full":
        return y
    if mode == "same":
        start = [(n - m) // 2 for n, m in zip(y.shape, a.shape)]
        return y[tuple(slice(i, i + m) for i, m in zip(start, a.shape))]
    if mode != "valid":
        raise ValueError("acceptable mode flags are 'valid', 'same', or 'full'")
    larger = [m >= n for m, n in zip(a.shape, b.shape)]
    if not all(larger) and any(m > n for m, n in zip(a.shape, b.shape)):
        raise ValueError(
            "For 'valid' mode, one must be at least as large as the other in every dimension"
        )
    sizes = [sorted((m, n)) for m, n in zip(a.shape, b.shape)]
    return y[tuple(slice(m - 1, n) for m, n in sizes)]


def _convolved(name: str, a: Any, b: Any, mode: str, method: str) -> Any:
    a, b = asarray(a), asarray(b)
    if a.ndim != b.ndim:
        raise ValueError(f"{name}: in1 and in2 should have the same dimensionality")
    if a.ndim == 0:
        return a * b
    if a.size == 0 or b.size == 0:
        return np.zeros(0)
    return _part(_full(a, b, method), a, b, mode)


def _convolve_axes(a: Any, b: Any, axes: Any, dot_axes: Any, mode: str) -> Any:
    """A convolution over some axes, with products summed over others. Axes of `a` alone come first
    in the result, then those of `b` alone, then those of the convolution.
    """
    (over_a, over_b), (dot_a, dot_b) = axes, dot_axes
    own_a = [i for i in range(a.ndim) if i not in (*over_a, *dot_a)]
    own_b = [i for i in range(b.ndim) if i not in (*over_b, *dot_b)]
    a = np.transpose(a, (*own_a, *dot_a, *over_a))
    b = np.transpose(b, (*own_b, *dot_b, *over_b))
    n, d = len(over_a), len(dot_a)
    sizes_a, sizes_b = a.shape[a.ndim - n :], b.shape[b.ndim - n :]
    if mode == "valid" and any(i < j for i, j in zip(sizes_a, sizes_b)):
        swapped = _convolve_axes_last(b, a, len(own_b), d, n, "valid")
        return np.moveaxis(swapped, range(len(own_b)), range(len(own_a), len(own_a) + len(own_b)))
    return _convolve_axes_last(a, b, len(own_a), d, n, mode)


def _convolve_axes_last(a: Any, b: Any, own: int, d: int, n: int, mode: str) -> Any:
    sizes = b.shape[b.ndim - n :]
    if mode == "same":
        widths = [((k - 1) - (k - 1) // 2, (k - 1) // 2) for k in sizes]
    else:
        widths = [(k - 1, k - 1) if mode == "full" else (0, 0) for k in sizes]
    a = np.pad(a, [(0, 0)] * (a.ndim - n) + widths) if n else a
    if n:
        a = sliding_window_view(a, sizes, tuple(range(-n, 0)))  # its windows are the last axes
        b = np.flip(b, tuple(range(-n, 0)))
    summed = (*range(own, own + d), *range(a.ndim - n, a.ndim))
    total = np.tensordot(a, b, (summed, range(b.ndim - n - d, b.ndim)))
    rest = b.ndim - n - d  # the axes of `b` alone
    return np.moveaxis(total, range(own, own + n), range(own + rest, own + rest + n))


_plain_convolve = replaces(theirs.convolve)(
    lambda in1, in2, mode="full", method="auto": _convolved("convolve", in1, in2, mode, method)
)


def convolve(
    in1: Any, in2: Any, mode: str = "full", method: str = "auto", *, axes: Any = None,
    dot_axes: Any = None,
) -> Any:  # fmt: skip
    """`scipy.signal.convolve`. With `axes`, a pair of lists, only these are convolved; products are
    summed over `dot_axes`, and the result has all other axes of `in1`, then of `in2`, first.
    """
    if axes is None and dot_axes is None:
        return _plain_convolve(in1, in2, mode, method)
    in1, in2 = asarray(in1), asarray(in2)
    dot_axes = ((), ()) if dot_axes is None else dot_axes
    if axes is None:
        axes = tuple(
            [i for i in range(x.ndim) if i not in dots] for x, dots in zip((in1, in2), dot_axes)
        )
    return _convolve_axes(in1, in2, axes, dot_axes, mode)


@replaces(theirs.correlate)
def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    return _convolved("correlate", in1, _turned(asarray(in2)), mode, method)


@replaces(theirs.fftconvolve)
def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    return _over_axes("fftconvolve", in1, in2, mode, axes)


@replaces(theirs.oaconvolve)
def oaconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    return _over_axes("oaconvolve", in1, in2, mode, axes)


def _over_axes(name: str, a: Any, b: Any, mode: str, axes: Any) -> Any:
    if axes is not None:
        refuse(f"signal.{name}", " with axes=", "use isomorph.scipy.signal.convolve(..., axes=)")
    return _convolved(name, a, b, mode, "fft")


@replaces(theirs.convolve2d)
def convolve2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0
) -> Any:
    return _two("convolve2d", in1, in2, mode, boundary, fillvalue)


@replaces(theirs.correlate2d)
def correlate2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0
) -> Any:
    return _two("correlate2d", in1, _turned(asarray(in2)), mode, boundary, fillvalue)


def _two(name: str, a: Any, b: Any, mode: str, boundary: str, fillvalue: Any) -> Any:
    a, b = asarray(a), asarray(b)
    modes = {"fill": "constant", "pad": "constant", "wrap": "wrap", "circular": "wrap",
             "symm": "symmetric", "symmetric": "symmetric"}  # fmt: skip
    if boundary not in modes:
        raise ValueError(f"{name}: Acceptable boundary flags are 'fill', 'circular', 'symmetric'")
    if mode == "valid" or (modes[boundary] == "constant" and not np.any(fillvalue)):
        return _convolved(name, a, b, mode, "direct")
    words = {"constant_values": fillvalue} if modes[boundary] == "constant" else {}
    wide = np.pad(a, [(k - 1, k - 1) for k in b.shape], modes[boundary], **words)
    y = _full(wide, b, "direct")
    y = y[tuple(slice(k - 1, k - 1 + m + k - 1) for m, k in zip(a.shape, b.shape))]
    return _part(y, a, b, mode)


@replaces(theirs.detrend)
def detrend(
    data: Any, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: bool = False
) -> Any:
    if type in ("constant", "c"):
        return data - np.mean(data, axis, keepdims=True)
    n = data.shape[axis]
    ends = sorted({0, n, *np.atleast_1d(bp).tolist()})
    rows = np.moveaxis(data, axis, 0)
    parts = []
    for start, end in pairwise(ends):
        m = end - start
        line = np.stack([np.ones(m), np.arange(1, m + 1) / m], 1)
        project = np.eye(m) - line @ np.linalg.pinv(line)
        parts.append(np.tensordot(project, rows[start:end], 1))
    return np.moveaxis(np.concatenate(parts), 0, axis)


@replaces(theirs.hilbert)
def hilbert(x: Any, N: int | None = None, axis: int = -1) -> Any:
    n = x.shape[axis] if N is None else N
    weights = np.zeros(n)
    weights[0] = 1
    weights[1 : (n + 1) // 2] = 2
    if n % 2 == 0:
        weights[n // 2] = 1
    shape = [1] * x.ndim
    shape[axis] = n
    return np.fft.ifft(np.fft.fft(x, n, axis) * np.reshape(weights, shape), axis=axis)


@replaces(theirs.lfilter)
def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    b, a, x = asarray(b), asarray(a), asarray(x)
    if zi is not None:
        refuse("signal.lfilter", " with zi=")
    n = x.shape[axis]
    # the impulse response of the filter, by its recursion
    b, a = b / a[0], a / a[0]
    response: list[Any] = []
    for i in range(n):
        value = b[i] if i < b.shape[0] else 0.0 * b[0]
        for j in range(1, min(i, a.shape[0] - 1) + 1):
            value = value - a[j] * response[i - j]
        response.append(value)
    wide = np.moveaxis(x, axis, -1)
    lanes = np.reshape(wide, (-1, n))
    kernel = np.stack(response)
    index = np.arange(n)[:, None] - np.arange(n)
    matrix = np.where(index >= 0, kernel[np.maximum(index, 0)], 0.0)
    return np.moveaxis(np.reshape(lanes @ matrix.T, wide.shape), -1, axis)
