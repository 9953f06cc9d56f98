"""Differences, integrals and interpolation along an axis, and evenly spaced numbers."""

from typing import Any

import numpy as np

from ..buffers import made
from ..levels import LIFTED
from ..tape import composed
from ..traced import Traced, concrete, floating, getitem
from .shaping import arrayed


def part(x, axis, *bounds):
    """x[start:stop:step] along one axis."""
    return x[(slice(None),) * (axis % x.ndim) + (slice(*bounds),)]


@composed(np.diff)
def diff(a, n=1, axis=-1, prepend=None, append=None):
    a = arrayed(a)
    axis %= a.ndim
    edge = (*a.shape[:axis], 1, *a.shape[axis + 1 :])
    ends = [arrayed(e) if e is not None else None for e in (prepend, append)]
    ends = [e if e is None or e.ndim else np.broadcast_to(e, edge) for e in ends]
    parts = [x for x in (ends[0], a, ends[1]) if x is not None]
    if len(parts) > 1:
        a = np.concatenate(parts, axis)
    for _ in range(n):
        a = part(a, axis, 1, None) - part(a, axis, None, -1)
    return a


@composed(np.ediff1d)
def ediff1d(ary, to_end=None, to_begin=None):
    steps = np.diff(np.ravel(ary))
    ends = [None if e is None else np.ravel(e).astype(steps.dtype) for e in (to_begin, to_end)]
    parts = [x for x in (ends[0], steps, ends[1]) if x is not None]
    return np.concatenate(parts) if len(parts) > 1 else steps


@composed(np.trapezoid)
def trapezoid(y, x=None, dx=1.0, axis=-1):
    y = arrayed(y)
    if x is not None:
        x = arrayed(x)
        dx = np.diff(x, axis=axis if x.ndim > 1 else -1)
        if x.ndim == 1:
            dx = np.reshape(dx, tuple(-1 if i == axis % y.ndim else 1 for i in range(y.ndim)))
    return np.sum(dx * (part(y, axis, 1, None) + part(y, axis, None, -1)) / 2.0, axis)


@composed(np.gradient)
def gradient(f, *varargs, axis=None, edge_order=1):
    f = arrayed(f)
    axes = range(f.ndim) if axis is None else [int(i) % f.ndim for i in np.atleast_1d(axis)]
    spacings = list(varargs) if len(varargs) > 1 else [varargs[0] if varargs else 1.0] * len(axes)
    if len(spacings) != len(axes):
        raise TypeError(f"numpy.gradient: needed one spacing or {len(axes)}, got {len(varargs)}")
    if edge_order not in (1, 2) or any(f.shape[i] <= edge_order for i in axes):
        raise ValueError(
            f"numpy.gradient: needed edge_order 1 or 2 and more elements than that, "
            f"got {edge_order} and shape {f.shape}"
        )
    out = [_slope(f, i, h, edge_order) for i, h in zip(axes, spacings)]
    return out[0] if len(axes) == 1 else tuple(out)


def _slope(f, axis, spacing, edge_order):
    """The derivative along one axis from three neighbouring points, whose weights follow from their
    distances."""
    n = f.shape[axis]
    if np.ndim(spacing):
        steps = np.diff(spacing)
        if steps.shape != (n - 1,):
            raise ValueError(f"numpy.gradient: needed {n} coordinates, got {np.shape(spacing)}")
        steps = np.reshape(steps, tuple(-1 if i == axis else 1 for i in range(f.ndim)))
        left, right = part(steps, axis, None, -1), part(steps, axis, 1, None)
        ends = [part(steps, axis, i, i + 1) for i in (0, min(1, n - 2), max(n - 3, 0), n - 2)]
    else:
        left = right = spacing
        ends = [spacing] * 4
    whole = left + right
    before, here, after = part(f, axis, 0, -2), part(f, axis, 1, -1), part(f, axis, 2, None)
    middle = (
        -right / (left * whole) * before
        + (right - left) / (left * right) * here
        + left / (right * whole) * after
    )

    def edge(points, h, k, sign):  # from the edge inwards: points 0, 1, 2 at distances 0, h, h + k
        a, b = points[:2]
        if edge_order == 1:
            return sign * (b - a) / h
        weights = -(2 * h + k) / (h * (h + k)), (h + k) / (h * k), -h / (k * (h + k))
        return sign * sum(w * p for w, p in zip(weights, points))

    points = [part(f, axis, i, i + 1) for i in range(min(n, 3))]
    mirror = [part(f, axis, n - 1 - i, n - i) for i in range(min(n, 3))]
    return np.concatenate(
        [edge(points, ends[0], ends[1], 1), middle, edge(mirror, ends[3], ends[2], -1)], axis
    )


@composed(np.interp)
def interp(x, xp, fp, left=None, right=None, period=None):
    x, xp, fp = (arrayed(v).astype(np.result_type(arrayed(v).dtype, float)) for v in (x, xp, fp))
    if period is not None:
        x, xp = np.remainder(x, abs(period)), np.remainder(xp, abs(period))
        order = np.argsort(concrete(xp))
        xp, fp = getitem(xp, order), getitem(fp, order)
        xp = np.concatenate([xp[-1:] - abs(period), xp, xp[:1] + abs(period)])
        fp = np.concatenate([fp[-1:], fp, fp[:1]])
        left = right = None
    at, knots = concrete(x), concrete(xp)
    i = np.clip(np.searchsorted(knots, at, "right") - 1, 0, max(len(knots) - 2, 0))
    j = np.minimum(i + 1, len(knots) - 1)
    below, above = at < knots[0], at > knots[-1]
    same = getitem(knots, i) == getitem(knots, j)
    left_knot, low, high = getitem(xp, i), getitem(fp, i), getitem(fp, j)
    inside = np.where(below | above | same, left_knot, x)
    gap = np.where(same, 1.0, getitem(xp, j) - left_knot)
    y = low + (inside - left_knot) / gap * (high - low)
    y = np.where(below, fp[0] if left is None else left, y)
    y = np.where(above, fp[-1] if right is None else right, y)
    return y if y.ndim else y[()]


@composed(np.linspace)
def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None):
    floating("linspace", dtype)
    steps = num - 1 if endpoint else num
    kept = (
        np.result_type(concrete(start), concrete(stop), float(num))
        if dtype is None
        else np.dtype(dtype)
    )
    kept = kept if kept.kind in "fc" else np.dtype(float)
    start, stop = arrayed(start).astype(kept), arrayed(stop).astype(kept)
    t = np.arange(num).astype(kept) / max(steps, 1)
    t = np.reshape(t, (-1,) + (1,) * max(start.ndim, stop.ndim))
    y = np.moveaxis(start * (1 - t) + stop * t, 0, axis)
    return (y, (stop - start) / steps) if retstep else y


@composed(np.logspace)
def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    floating("logspace", dtype)
    y = np.power(base, np.linspace(start, stop, num, endpoint, axis=axis))
    return y if dtype is None else y.astype(dtype)


@composed(np.geomspace)
def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    floating("geomspace", dtype)
    start = arrayed(start).astype(np.result_type(arrayed(start).dtype, arrayed(stop).dtype, float))
    sign = np.sign(start)
    y = np.exp(np.linspace(np.log(start / sign), np.log(stop / sign), num, endpoint))
    y = np.moveaxis(sign * y, 0, axis)
    return y if dtype is None else y.astype(dtype)


@composed(np.full_like)
def full_like(a, fill_value, dtype=None, order="K", subok=True, shape=None, *, device=None):
    kept = np.dtype(dtype or a.dtype)
    like = concrete(a)
    if type(fill_value) not in LIFTED and type(like) not in LIFTED:
        same: Any = np.full_like
        return made(same(like, fill_value, kept, order, subok, shape))
    if type(fill_value) is Traced:
        floating("full_like", kept)
    y = np.broadcast_to(fill_value, a.shape if shape is None else shape)
    return y.astype(kept)
