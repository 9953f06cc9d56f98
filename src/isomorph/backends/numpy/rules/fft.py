"""Fourier transforms. Each is linear. Its pullback is the inverse transform with the other scaling;
then the result is cropped where the input was padded, and padded where it was cropped.
"""

from typing import Any

import numpy as np

from ..tape import composed, rule
from ..traced import TRACED
from .shaping import axes_of

OTHER_SIDE: dict[Any, Any] = {
    None: "forward",
    "backward": "forward",
    "forward": "backward",
    "ortho": "ortho",
}


def fitted(g, shape):
    """`g` with that shape: cropped, or padded with zeros, at the end of each axis."""
    if g.shape == shape:
        return g
    g = g[tuple(slice(n) for n in shape)]
    return np.pad(g, [(0, n - m) for n, m in zip(shape, g.shape)]) if g.shape != shape else g


def _pair(forward, inverse):
    """Register the rule of a complex transform, given its inverse."""

    def one(y, a, n=None, axis=-1, norm=None, out=None):
        shape = a.shape
        return (lambda g: fitted(inverse(g, axis=axis, norm=OTHER_SIDE[norm]), shape),)

    rule(forward)(one)


def _pair_n(forward, inverse, last):
    def several(y, a, s=None, axes=last, norm=None, out=None):
        shape = a.shape
        if axes is None and s is not None:
            axes = range(-len(s), 0)
        return (lambda g: fitted(inverse(g, axes=axes, norm=OTHER_SIDE[norm]), shape),)

    rule(forward)(several)


_pair(np.fft.fft, np.fft.ifft)
_pair(np.fft.ifft, np.fft.fft)
_pair_n(np.fft.fftn, np.fft.ifftn, None)
_pair_n(np.fft.ifftn, np.fft.fftn, None)
_pair_n(np.fft.fft2, np.fft.ifft2, (-2, -1))
_pair_n(np.fft.ifft2, np.fft.fft2, (-2, -1))


def mirrored(g, n, axis, factor):
    """`g`, half a spectrum, times `factor` at all entries that stand for two frequencies: all
    except those at the frequencies 0 and n/2.
    """
    weights = np.full(n // 2 + 1, factor, np.real(g[:0]).dtype)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    return g * np.reshape(weights, tuple(-1 if i == axis % g.ndim else 1 for i in range(g.ndim)))


@rule(np.fft.rfft)
def rfft(y, a, n=None, axis=-1, norm=None, out=None):
    shape = a.shape
    n = shape[axis] if n is None else n
    return (
        lambda g: fitted(np.fft.irfft(mirrored(g, n, axis, 0.5), n, axis, OTHER_SIDE[norm]), shape),
    )


@rule(np.fft.irfft)
def irfft(y, a, n=None, axis=-1, norm=None, out=None):
    shape = a.shape
    return (
        lambda g: fitted(
            mirrored(np.fft.rfft(g, None, axis, OTHER_SIDE[norm]), g.shape[axis], axis, 2.0), shape
        ),
    )


@composed(np.fft.hfft)
def hfft(a, n=None, axis=-1, norm=None, out=None):
    return np.fft.irfft(np.conjugate(a), n, axis, OTHER_SIDE[norm])


@composed(np.fft.ihfft)
def ihfft(a, n=None, axis=-1, norm=None, out=None):
    return np.conjugate(np.fft.rfft(a, n, axis, OTHER_SIDE[norm]))


def _split(s, axes, shape, last):
    """For an n-d transform of real arrays: the axes of the complex transforms and their lengths,
    then the last axis and its length. A length of None means unchanged.
    """
    axes = last if axes is None and s is None else axes
    if axes is None:
        axes = range(-len(s), 0) if s is not None else range(len(shape))
    axes = axes_of(tuple(axes), len(shape))
    sizes = (
        [None] * len(axes)
        if s is None
        else [shape[i] if n == -1 else int(n) for i, n in zip(axes, s)]
    )
    return axes[:-1], sizes[:-1], axes[-1], sizes[-1]


def _rfftn(last):
    def rfftn(a, s=None, axes=last, norm=None, out=None):
        axes, sizes, axis, n = _split(s, axes, a.shape, last)
        y = np.fft.rfft(a, n, axis, norm)
        for i, size in zip(reversed(axes), reversed(sizes)):
            y = np.fft.fft(y, size, i, norm)
        return y

    return rfftn


def _irfftn(last):
    def irfftn(a, s=None, axes=last, norm=None, out=None):
        axes, sizes, axis, n = _split(s, axes, a.shape, last)
        y = a
        for i, size in zip(axes, sizes):
            y = np.fft.ifft(y, size, i, norm)
        return np.fft.irfft(y, n, axis, norm)

    return irfftn


TRACED[np.fft.rfftn], TRACED[np.fft.rfft2] = _rfftn(None), _rfftn((-2, -1))
TRACED[np.fft.irfftn], TRACED[np.fft.irfft2] = _irfftn(None), _irfftn((-2, -1))


@rule(np.fft.fftshift)
def fftshift(y, x, axes=None):
    return (lambda g: np.fft.ifftshift(g, axes),)


@rule(np.fft.ifftshift)
def ifftshift(y, x, axes=None):
    return (lambda g: np.fft.fftshift(g, axes),)
