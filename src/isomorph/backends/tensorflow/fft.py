"""Discrete Fourier transforms.

TensorFlow transforms only the last one, two or three axes and has no `norm`, so axes are moved to
the end and results scaled here. Lengths are cropped or padded first: the gradients of RFFT and
IRFFT are right only for the natural length.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from .dtypes import DType, cast, complex_of, default_float, real_of, refuse
from .kernels import ops
from .manipulation import Axes, axes_of, axis_of, ints, last, rank_of, roll, size_of, unlast

FORWARD = (None, ops.FFT, ops.FFT2D, ops.FFT3D)
BACKWARD = (None, ops.IFFT, ops.IFFT2D, ops.IFFT3D)
# The power of 1/size that scales a transform; TensorFlow itself does `backward`.
NORMS = {"backward": 0.0, "ortho": 0.5, "forward": 1.0}


def fft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> tf.Tensor:
    if n is None and axis == -1 and norm == "backward" and x.dtype.is_complex and _some(x):
        return tf.signal.fft(x)
    return _transform("fft", FORWARD, x, _length(n), [axis], _power("fft", norm))


def ifft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> tf.Tensor:
    if n is None and axis == -1 and norm == "backward" and x.dtype.is_complex and _some(x):
        return tf.signal.ifft(x)
    return _transform("ifft", BACKWARD, x, _length(n), [axis], -_power("ifft", norm))


def fftn(
    x: Any,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str = "backward",
) -> tf.Tensor:
    return _transform("fftn", FORWARD, x, s, axes, _power("fftn", norm))


def ifftn(
    x: Any,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str = "backward",
) -> tf.Tensor:
    return _transform("ifftn", BACKWARD, x, s, axes, -_power("ifftn", norm))


def rfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> tf.Tensor:
    return _rfft("rfft", x, n, axis, _power("rfft", norm))


def irfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> tf.Tensor:
    return _irfft("irfft", x, n, axis, -_power("irfft", norm))


def rfftn(
    x: Any,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str = "backward",
) -> tf.Tensor:
    lengths, places = _plan("rfftn", x, s, axes)
    power = _power("rfftn", norm)
    x = _rfft("rfftn", x, lengths[-1], places[-1], power)
    return _transform("rfftn", FORWARD, x, lengths[:-1], places[:-1], power)


def irfftn(
    x: Any,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str = "backward",
) -> tf.Tensor:
    lengths, places = _plan("irfftn", x, s, axes)
    power = -_power("irfftn", norm)
    x = _transform("irfftn", BACKWARD, x, lengths[:-1], places[:-1], power)
    return _irfft("irfftn", x, lengths[-1], places[-1], power)


def hfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> tf.Tensor:
    conjugate = ops.Conj(input=_complex("hfft", x))
    return _irfft("hfft", conjugate, n, axis, _power("hfft", norm) - 1)


def ihfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> tf.Tensor:
    return ops.Conj(input=_rfft("ihfft", x, n, axis, 1 - _power("ihfft", norm)))


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: str | None = None
) -> tf.Tensor:
    return _frequencies("fftfreq", np.fft.fftfreq(n, d), dtype, device)


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: str | None = None
) -> tf.Tensor:
    return _frequencies("rfftfreq", np.fft.rfftfreq(n, d), dtype, device)


def fftshift(x: Any, /, *, axes: Axes | None = None) -> tf.Tensor:
    places = axes_of("fftshift", axes, rank_of(x))
    return roll(x, [size_of(x, i) // 2 for i in places], axis=places)


def ifftshift(x: Any, /, *, axes: Axes | None = None) -> tf.Tensor:
    places = axes_of("ifftshift", axes, rank_of(x))
    return roll(x, [-(size_of(x, i) // 2) for i in places], axis=places)


# The parts of these functions.


def _some(x: Any) -> bool:
    """Whether the last axis has points to transform; the kernels return nothing if not."""
    return rank_of(x) > 0 and x.shape[-1] != 0


def _transform(
    function: str,
    kernels: tuple[Any, ...],
    x: Any,
    lengths: Sequence[int | None] | None,
    axes: Sequence[int] | None,
    power: float,
) -> tf.Tensor:
    """The complex transform over any axes, up to three at a time."""
    x = _complex(function, x)
    rank = rank_of(x)
    lengths, places = _plan(function, x, lengths, axes)
    for length, axis in zip(lengths, places, strict=True):
        x = _resize(function, x, length, axis)
    scale = math.prod(size_of(x, axis) for axis in places)
    while places:
        now, places = places[-3:], places[:-3]
        others = [i for i in range(rank) if i not in now]
        if others + now == list(range(rank)):
            x = kernels[len(now)](input=x)
        else:
            perm = np.array(others + now, np.int32)
            x = kernels[len(now)](input=ops.Transpose(x=x, perm=perm))
            x = ops.Transpose(x=x, perm=np.argsort(perm).astype(np.int32))
    return _scaled(x, scale, power)


def _rfft(function: str, x: Any, n: int | None, axis: int, power: float) -> tf.Tensor:
    if x.dtype.is_complex:
        refuse(function, "a real array", x)
    if not x.dtype.is_floating:
        x = cast(x, default_float)
    rank = rank_of(x)
    axis = axis_of(function, axis, rank)
    x = last(_resize(function, x, n, axis), axis, rank)
    length = size_of(x, -1)
    x = ops.RFFT(input=x, fft_length=_vector(length), Tcomplex=complex_of(x.dtype))
    return _scaled(unlast(x, axis, rank), length, power)


def _irfft(function: str, x: Any, n: int | None, axis: int, power: float) -> tf.Tensor:
    x = _complex(function, x)
    rank = rank_of(x)
    axis = axis_of(function, axis, rank)
    length = 2 * (size_of(x, axis) - 1) if n is None else n
    if isinstance(length, int) and length < 1:
        raise ValueError(f"{function}: needed a length of at least 1, got {length}")
    x = last(_resize(function, x, length // 2 + 1, axis), axis, rank)
    x = ops.IRFFT(input=x, fft_length=_vector(length), Treal=real_of(x.dtype))
    return _scaled(unlast(x, axis, rank), length, power)


def _complex(function: str, x: Any) -> Any:
    if x.dtype is tf.bool:
        refuse(function, "numbers", x)
    return cast(x, complex_of(x.dtype))


def _vector(length: Any) -> Any:
    return ints([length]) if isinstance(length, int) else tf.reshape(length, [1])


def _length(n: int | None) -> list[int] | None:
    return None if n is None else [n]


def _plan(
    function: str, x: Any, lengths: Sequence[int | None] | None, axes: Sequence[int] | None
) -> tuple[list[int | None], list[int]]:
    """A length (None: unchanged) for every transformed axis."""
    rank = rank_of(x)
    if axes is None and lengths is not None:
        axes = range(rank - len(lengths), rank)
    places = axes_of(function, None if axes is None else list(axes), rank)
    wanted: list[int | None] = [None] * len(places) if lengths is None else list(lengths)
    if len(wanted) != len(places):
        raise ValueError(f"{function}: needed a length for each of axes {axes}, got {lengths}")
    return wanted, places


def _resize(function: str, x: Any, length: Any, axis: int) -> Any:
    """`x` cropped, or padded with zeros, to `length` along `axis`."""
    size = size_of(x, axis)
    if length is None:
        length = size
    if isinstance(length, int) and length < 1:
        raise ValueError(f"{function}: needed a length of at least 1, got {length}")
    if length is size or (isinstance(size, int) and length == size):
        return x
    before = [slice(None)] * axis
    known = isinstance(size, int) and isinstance(length, int)
    if not known or length < size:
        x = x[(*before, slice(0, length))]
    if known and length < size:
        return x
    missing = length - size if known else tf.maximum(length - size, 0)
    rank = rank_of(x)
    if isinstance(missing, int):
        borders = np.zeros((rank, 2), np.int32)
        borders[axis, 1] = missing
        return ops.Pad(input=x, paddings=borders)
    one = tf.one_hot(axis, rank, dtype=tf.int32)
    return ops.Pad(input=x, paddings=tf.stack([tf.zeros_like(one), one * missing], axis=1))


def _power(function: str, norm: str) -> float:
    if norm not in NORMS:
        raise ValueError(f"{function}: needed norm {', '.join(NORMS)}, got {norm!r}")
    return NORMS[norm]


def _scaled(x: tf.Tensor, size: Any, power: float) -> tf.Tensor:
    """`x` times size ** -power."""
    if power == 0:
        return x
    if isinstance(size, int):
        return x * tf.constant(float(size) ** -power, x.dtype)
    return x * tf.cast(tf.cast(size, real_of(x.dtype)) ** -power, x.dtype)


def _frequencies(
    function: str, values: np.ndarray, dtype: DType | None, device: str | None
) -> tf.Tensor:
    dtype = default_float if dtype is None else dtype
    if not dtype.is_floating:
        refuse(function, "a real floating dtype", dtype)
    with tf.device(device):
        return tf.constant(values, dtype)
