"""Losses."""

from __future__ import annotations

from math import prod
from typing import Any

from ..core.means import Mean, wide
from .bounds import strays


def cross_entropy(
    xp: Any,
    logits: Any,
    labels: Any,
    axis: int,
    smoothing: float,
    ignored: int | None,
    reduction: str,
) -> Any:
    classes = logits.shape[axis]
    if tuple(labels.shape) == tuple(logits.shape) and not xp.isdtype(labels.dtype, "integral"):
        wanted = labels * (1 - smoothing) + smoothing / classes if smoothing else labels
        return reduced(xp, -xp.sum(wanted * xp.log_softmax(logits, axis), axis=axis), reduction)
    counts = None
    if ignored is not None:
        counts = labels != ignored
        labels = xp.where(counts, labels, xp.zeros_like(labels))
    lost = strays(xp, "cross_entropy", labels, classes, "labels")
    if lost is not None:
        labels = xp.where(lost, xp.zeros_like(labels), labels)
    if not smoothing:
        each = -xp.label_scores(logits, labels, axis)
    else:
        scores = xp.log_softmax(logits, axis)
        each = -xp.picked(scores, labels, axis)
        each = (1 - smoothing) * each - smoothing / classes * xp.sum(scores, axis=axis)
    if lost is not None:  # a factor NaN, so that the gradient of its row is NaN too
        each = each * xp.where(lost, xp.nan * xp.ones_like(each), xp.ones_like(each))
    if counts is None:
        return reduced(xp, each, reduction)
    return reduced(xp, xp.where(counts, each, xp.zeros_like(each)), reduction, counts)


def label_scores(xp: Any, logits: Any, labels: Any, axis: int) -> Any:
    """The elements of log softmax(logits) at the labels."""
    return xp.picked(xp.log_softmax(logits, axis), labels, axis)


def picked(xp: Any, x: Any, labels: Any, axis: int) -> Any:
    """The element of `x` at each label, which is an index along `axis`."""
    found = xp.take_along_axis(x, xp.expand_dims(labels, axis=axis), axis=axis)
    return xp.squeeze(found, axis=axis)


def reduced(xp: Any, each: Any, reduction: str, counts: Any = None) -> Any:
    """The losses `each`, reduced: "none" returns them as they are, "sum" their sum, "mean" their
    mean, and "counted" an `iso.Mean` with their total and count.

    With `counts`, only the losses where it is True are counted; the others must be 0. Narrow dtypes
    are summed in float32, because the largest float16 is 65504.
    """
    if reduction == "none":
        return each
    summed = wide(xp, each) if xp.is_float(each.dtype) else each
    if reduction == "counted":
        return Mean(xp.sum(summed), _count(xp, summed, counts))
    if reduction == "sum":
        found = xp.sum(summed)
    elif counts is None:
        found = xp.mean(summed)
    else:
        found = xp.sum(summed) / _count(xp, summed, counts)
    return found if summed is each else xp.astype(xp.asarray(found), each.dtype)


def _count(xp: Any, each: Any, counts: Any) -> Any:
    """The number of losses, or of those that are counted."""
    if counts is not None:
        return xp.sum(xp.astype(counts, each.dtype))
    sizes = tuple(each.shape)
    return xp.sum(xp.ones_like(each)) if None in sizes else prod(sizes)
