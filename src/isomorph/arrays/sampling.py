"""Functions that are given by their values at some places: interpolation, integrals, and
convolutions of sequences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ..core.dispatch import backend_of
from ..core.dtypes import promoted, returned, widened
from ..meanings.conv_plan import FORMATS, forward
from ..meanings.shapes import shape_of
from .arguments import array, axis_of, floats, one_of, places, real
from .ordering import bisected

if TYPE_CHECKING:
    from ..types.array_types import A

MODES = ("full", "same", "valid")
Mode: TypeAlias = Literal["full", "same", "valid"]


def interp(x: A, xp: A, fp: A, left: Any = None, right: Any = None) -> A:
    """The values at `x`, of any shape, of the function that is `fp` at the increasing places `xp`,
    and straight between them.

    Before the first place it is `left`, by default the first value; after the last place `right`,
    by default the last value. Gradients flow to all arguments; at one of the places the slope is
    that on its right.

    >>> iso.interp(np.array([0.5, 3.0]), np.array([0.0, 1.0]), np.array([2.0, 4.0]))
    array([3., 4.])
    """
    space: Any = backend_of(x, xp, fp)
    for word, given in (("xp", xp), ("fp", fp)):
        shape_of("interp", word, given)
    x = array(space, x, xp)
    for what, given in (("xp", xp), ("fp", fp)):
        if len(given.shape) != 1 or not given.shape[0] or given.shape != xp.shape:
            raise ValueError(
                f"interp: needed vectors xp and fp of the same length, at least 1, got {what} of "
                f"shape {tuple(given.shape)}"
            )
    at, knots = promoted(
        space, floats(space, real("interp", space, x)), floats(space, real("interp", space, xp))
    )
    heights = floats(space, fp)
    dtype = space.result_type(at.dtype, heights.dtype)
    at, knots = widened(space, at), widened(space, knots)
    heights = widened(space, space.astype(heights, dtype))
    shape = tuple(at.shape)
    at = space.reshape(at, (-1,))
    first, last = heights[0], heights[-1]
    n = knots.shape[0]
    if n == 1:
        out = space.broadcast_to(first, at.shape) + space.astype(0 * at, heights.dtype)
    else:
        fixed = space.stop_gradient(knots, False), space.stop_gradient(at, False)
        place = space.clip(bisected(space, *fixed, "right"), 1, n - 1)
        low, high = space.take(knots, place - 1), space.take(knots, place)
        bottom, top = space.take(heights, place - 1), space.take(heights, place)
        out = _straight(space, at, (low, high), (bottom, top), knots)
    before, after = at < knots[0], at > knots[-1]
    out = space.where(space.logical_or(after, at == knots[-1]), last, out)
    out = space.where(before, first, out)
    if left is not None:
        left = array(space, left, heights)
        out = space.where(before, space.astype(left, out.dtype), out)
    if right is not None:
        right = array(space, right, heights)
        out = space.where(after, space.astype(right, out.dtype), out)
    return space.reshape(returned(space, out, dtype), shape)


def _straight(xp: Any, at: Any, ends: tuple, heights: tuple, knots: Any) -> Any:
    """The heights between two knots. What lies outside of all knots is not used: there it is a
    constant, since what is computed of an infinite place has no derivative.
    """
    (low, high), (bottom, top) = ends, heights
    inside = xp.logical_not(xp.logical_or(at < knots[0], at > knots[-1]))
    width = high - low
    flat = width == 0
    part = xp.where(inside, at, low) - low
    part = xp.astype(part / xp.where(flat, xp.ones_like(width), width), bottom.dtype)
    finite = xp.logical_and(xp.isfinite(bottom), xp.isfinite(top))
    none = xp.zeros_like(bottom)
    rise = xp.where(finite, top, none) - xp.where(finite, bottom, none)
    near = bottom + rise * part
    # an infinite height: its own at its knot, and infinite beside it; NaN where the place is NaN
    stays = xp.logical_or(flat, xp.logical_or(part == 0, top == bottom))
    level = bottom + xp.where(stays, none, top) + 0 * part
    return xp.where(xp.logical_or(flat, xp.logical_not(finite)), level, near)


def trapezoid(y: A, x: Any = None, dx: Any = 1.0, axis: int = -1) -> A:
    """The integral along an axis of the function that is `y` at the places `x`, or at places that
    are `dx` apart, and straight between them. `x` is a vector, or of the shape of `y`.

    >>> iso.trapezoid(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 3.0]))
    np.float64(6.5)
    """
    xp: Any = backend_of(*(z for z in (y, x, dx) if z is not None))
    shape_of("trapezoid", "y", y)
    values = floats(xp, y)
    axis = axis_of("trapezoid", y, axis)
    heights = xp.moveaxis(values, axis, -1)
    if x is None:
        widths = floats(xp, array(xp, 1.0 * dx, values))
    else:
        shape_of("trapezoid", "x", x)
        places = floats(xp, x)
        if len(x.shape) > 1:
            places = xp.moveaxis(places, axis_of("trapezoid", x, axis - len(y.shape)), -1)
        if places.shape[-1] != heights.shape[-1]:
            raise ValueError(
                f"trapezoid: needed a place for each value along axis {axis}, "
                f"{heights.shape[-1]}, got shape {tuple(x.shape)}"
            )
        widths = places[..., 1:] - places[..., :-1]
    heights, widths = promoted(xp, heights, widths)
    dtype, heights, widths = heights.dtype, widened(xp, heights), widened(xp, widths)
    pairs = (heights[..., 1:] + heights[..., :-1]) * widths / 2
    return returned(xp, xp.sum(pairs, axis=-1), dtype)


def convolve(x: A, y: A, /, mode: Mode = "full") -> A:
    """The convolution of two vectors: element i is the sum of x[j]·y[i - j].

    `mode` full gives n + m - 1 elements, same the middle max(n, m) of them, valid the max(n, m) -
    min(n, m) + 1 for which the vectors overlap completely. Integers give integers. If the shorter
    vector is not finite, so are elements at both ends.

    >>> iso.convolve(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 0.5]))
    array([0. , 1. , 2.5, 4. , 1.5])
    """
    xp: Any = backend_of(x, y)
    longer, shorter = _two("convolve", xp, x, y)
    if longer.shape[0] < shorter.shape[0]:
        longer, shorter = shorter, longer
    return _slid(xp, longer, xp.flip(shorter), mode, "convolve")


def correlate(x: A, y: A, /, mode: Mode = "valid") -> A:
    """The correlation of two vectors: the sums of x[i + j]·conj(y[j]), for every shift i; see
    `convolve`.

    >>> iso.correlate(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0]))
    array([2., 3.])
    """
    xp: Any = backend_of(x, y)
    left, right = _two("correlate", xp, x, y)
    right = xp.conj(right) if xp.is_complex(right.dtype) else right
    if left.shape[0] >= right.shape[0]:
        return _slid(xp, left, right, mode, "correlate")
    # the same shifts, counted from the other end
    return xp.flip(_slid(xp, right, left, mode, "correlate"))


def _two(name: str, xp: Any, x: Any, y: Any) -> list[Any]:
    for word, z in (("x", x), ("y", y)):
        shape_of(name, word, z)
        if len(z.shape) != 1 or not z.shape[0]:
            raise ValueError(f"{name}: needed vectors of at least 1, got shape {tuple(z.shape)}")
    return promoted(xp, x, y)


def _slid(xp: Any, x: Any, y: Any, mode: Mode, name: str) -> Any:
    """The sums of x[i + j]·y[j] for the shifts i that a mode asks for; `y` is not longer."""
    one_of(name, "mode", mode, MODES)
    n = y.shape[0]
    before, after = {
        "full": (n - 1, n - 1),
        "same": (n - 1 - (n - 1) // 2, (n - 1) // 2),
        "valid": (0, 0),
    }[mode]
    if mode == "same" and name == "convolve":
        before, after = n // 2, (n - 1) // 2
    ends = [xp.zeros((k,), dtype=x.dtype, device=xp.device_of(x)) for k in (before, after)]
    x = xp.concat([ends[0], x, ends[1]])
    if xp.is_complex(x.dtype):
        (a, b), (c, d) = ((xp.real(z), xp.imag(z)) for z in (x, y))
        rows = [_summed(xp, *pair) for pair in ((a, c), (b, d), (a, d), (b, c))]
        real, imaginary = rows[0] - rows[1], rows[2] + rows[3]
        return xp.astype(real, x.dtype) + 1j * xp.astype(imaginary, x.dtype)
    return _summed(xp, x, y)


def _summed(xp: Any, x: Any, y: Any) -> Any:
    if xp.is_float(x.dtype):
        x, filters = xp.reshape(x, (1, -1, 1)), xp.reshape(y, (-1, 1, 1))
        how = ("conv1d", 1, 1, "VALID", FORMATS[1], FORMATS[1][0], "channel_last", 1, 1, 1)
        return xp.reshape(xp.conv(x, filters, None, forward(x, filters, None, how)), (-1,))
    count, n = x.shape[0] - y.shape[0] + 1, y.shape[0]
    windows = places(xp, count, x)[:, None] + places(xp, n, x)[None, :]
    parts = xp.reshape(xp.take(x, xp.reshape(windows, (-1,))), (count, n)) * y
    return xp.sum(parts, axis=1, dtype=x.dtype)
