"""Convolutions."""

from __future__ import annotations

from itertools import product
from typing import Any

from .conv_plan import PLAN_OF, Plan


def conv(xp: Any, x: Any, w: Any, bias: Any, plan: Plan) -> Any:
    """Every convolution. The result is a sum over the positions in the filter: at each position, a
    slice of x is multiplied by the matrix `[in, out]` of the filter there.
    """
    n, groups = len(plan.size), plan.groups
    x = xp.moveaxis(x, 1, -1) if plan.first else x
    w = last_filters(xp, w, plan)
    x = padded(xp, dilated(xp, x, plan.x_dilations), plan.pads)
    k, fewer, out = tuple(w.shape)[:n], w.shape[-2], w.shape[-1]
    outer = (_batch(x), *plan.size)
    if groups > 1:
        w = xp.moveaxis(xp.reshape(w, (*k, fewer, groups, out // groups)), -2, -3)
    total = None
    for place in product(*map(range, k)):
        starts = [i * d for i, d in zip(place, plan.dilations)]
        index = [
            slice(a, a + (size - 1) * s + 1, s)
            for a, size, s in zip(starts, plan.size, plan.strides)
        ]
        part = x[(slice(None), *index, slice(None))]
        if groups > 1:
            part = xp.reshape(part, (*outer, groups, 1, fewer))
        term = xp.matmul(part, w[(*place, ...)])
        total = term if total is None else total + term
    if groups > 1:
        total = xp.reshape(total, (*outer, out))
    if bias is not None:
        total = total + bias
    return xp.moveaxis(total, -1, 1) if plan.first else total


def conv_transpose(xp: Any, x: Any, w: Any, bias: Any, plan: Plan) -> Any:
    """Every transposed convolution: zeros are put between the elements of x, and the result is
    convolved with the flipped filters.
    """
    n, groups = len(plan.size), plan.groups
    if plan.filters_first:
        w = xp.permute_dims(w, (*range(2, n + 2), 0, 1))
    w = xp.flip(w, axis=tuple(range(n)))
    k, into, fewer = tuple(w.shape)[:n], w.shape[-2], w.shape[-1]
    if groups > 1:
        w = xp.moveaxis(xp.reshape(w, (*k, groups, into // groups, fewer)), -3, -2)
        w = xp.reshape(w, (*k, into // groups, groups * fewer))
    sizes = tuple(x.shape)[2:] if plan.first else tuple(x.shape)[1:-1]
    pads = []
    for i, size, s, j, d, (low, _) in zip(
        sizes, plan.size, plan.strides, k, plan.dilations, plan.pads
    ):
        reach = (j - 1) * d
        pads.append((reach - low, size + low - (i - 1) * s - 1))
    ones = (1,) * n
    turned = PLAN_OF(
        ones,
        tuple(pads),
        plan.strides,
        plan.dilations,
        groups,
        plan.first,
        False,
        plan.size,
        tuple(w.shape),
    )
    return xp.conv(x, w, bias, turned)


def last_filters(xp: Any, w: Any, plan: Plan) -> Any:
    """The filters of a convolution as `[*k, in/groups, out]`."""
    if not plan.filters_first:
        return w
    return xp.permute_dims(w, (*range(2, len(plan.size) + 2), 1, 0))


def dilated(xp: Any, x: Any, dilations: tuple[int, ...]) -> Any:
    """`x`, channels last, with zeros between its elements."""
    for axis, d in enumerate(dilations, 1):
        shape = tuple(x.shape)
        if d > 1 and shape[axis] > 1:
            wide = [(0, 0)] * (len(shape) + 1)
            wide[axis + 1] = (0, d - 1)
            x = xp.pad(xp.expand_dims(x, axis=axis + 1), tuple(wide))
            x = xp.reshape(x, (_batch(x), *shape[1:axis], shape[axis] * d, *shape[axis + 1 :]))
            x = x[(*(slice(None),) * axis, slice(0, (shape[axis] - 1) * d + 1), ...)]
    return x


def padded(xp: Any, x: Any, pads: tuple[tuple[int, int], ...]) -> Any:
    """`x`, channels last, with zeros around it; negative pads crop it."""
    if any(min(pair) < 0 for pair in pads):
        sizes = tuple(x.shape)[1:]
        x = x[
            (
                slice(None),
                *(slice(max(-a, 0), size - max(-b, 0)) for (a, b), size in zip(pads, sizes)),
                slice(None),
            )
        ]
    if any(max(pair) > 0 for pair in pads):
        x = xp.pad(x, ((0, 0), *((max(a, 0), max(b, 0)) for a, b in pads), (0, 0)))
    return x


def _batch(x: Any) -> int:
    """The size of the batch for a reshape: -1 if it is unknown while a graph is traced."""
    return -1 if x.shape[0] is None else x.shape[0]
