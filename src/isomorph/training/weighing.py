"""One mean over the parts of a batch: losses and gradients, each weighted by its count.

Scalar losses of parts have equal weights, because the parts have equally many rows; a loss that is
an `iso.Mean` has its own count.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import add
from typing import Any, NamedTuple

from ..core import tree
from ..core.dispatch import find_backend
from ..core.means import Mean, check_mean, divided, like, wide
from ..optimizers.lifting import cast


class Part(NamedTuple):
    """The loss of a part of a batch and its gradients, both as means, and their count: a number, an
    array without axes, or None if all parts have the same weight.
    """

    loss: Any
    grads: Any
    count: Any


def settled(name: str, xp: Any, loss: Any) -> tuple[Any, Any]:
    """The value of a loss to differentiate, finite even if its count is 0, and the count."""
    if not isinstance(loss, Mean):
        _check_loss(name, loss)
        return loss, None
    check_mean(name, loss)
    total = wide(xp, loss.total)
    count = loss.count if find_backend(loss.count) is None else like(loss.count, total)
    return divided(xp, Mean(total, count))[0], count


def averaged(xp: Any, parts: Iterator[Part]) -> Part:
    """All parts as one. A part with count 0 adds nothing, whatever its gradients are."""
    whole, number = next(parts), 1
    for part in parts:
        whole = _joined(xp, _cleared(xp, whole) if number == 1 else whole, part)
        number += 1
    if whole.count is not None or number == 1:
        return whole
    share = 1 / number
    return Part(whole.loss * share, tree.map(lambda g: g * share, whole.grads), None)


def counted(xp: Any, count: Any) -> Any:
    """Whether a count is not 0, as an array; None if that is certain."""
    if count is None or (find_backend(count) is None and count):
        return None
    return xp.asarray(False) if find_backend(count) is None else count != 0


def _joined(xp: Any, one: Part, other: Part) -> Part:
    if one.count is None:
        return Part(one.loss + other.loss, tree.map(add, one.grads, other.grads), None)
    some = counted(xp, other.count)
    known = True if some is None else xp.at_hand(some)
    if known is not None and not known:
        return one
    count = one.count + other.count
    if find_backend(count) is None:
        share = other.count / count
    else:
        share = other.count / xp.where(count != 0, count, xp.ones_like(count))

    def mixed(a: Any, b: Any) -> Any:
        s = share if find_backend(share) is None else cast(xp, share, a.dtype)
        mean = a + (b - a) * s
        return mean if known is not None else xp.where(some, mean, a)

    return Part(mixed(one.loss, other.loss), tree.map(mixed, one.grads, other.grads), count)


def _cleared(xp: Any, part: Part) -> Part:
    """The part with zeros if its count is 0."""
    some = counted(xp, part.count)
    known = True if some is None else xp.at_hand(some)
    if known is not None and known:
        return part
    clear = lambda x: xp.zeros_like(x) if known is not None else xp.where(some, x, xp.zeros_like(x))
    return Part(clear(part.loss), tree.map(clear, part.grads), part.count)


def _check_loss(name: str, value: Any) -> None:
    found = f"a {type(value).__name__}"
    if find_backend(value) is not None:
        if not len(value.shape):
            return
        found = f"one of shape {tuple(value.shape)}; return its mean"
    raise TypeError(f"{name}: needed an array without axes as loss, got {found}")
