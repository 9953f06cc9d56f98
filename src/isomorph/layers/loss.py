"""Losses: how far predictions are from targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Never, overload

from ..core.dispatch import backend_of, dtype_of
from ..core.keywords import refuse
from ..meanings.loss import reduced

if TYPE_CHECKING:
    from ..core.means import Mean
    from ..types.array_types import A, Shaped
    from ..typing import Scalar

REDUCTIONS = ("mean", "sum", "none", "counted")


@overload
def cross_entropy(
    logits: A, labels: Shaped, /, *, axis: int = -1, label_smoothing: float = 0.0,
    ignore_index: int | None = None, reduction: Scalar = "mean", **habits: Never,
) -> A: ...  # fmt: skip
@overload
def cross_entropy(
    logits: Shaped, labels: Shaped, /, *, axis: int = -1, label_smoothing: float = 0.0,
    ignore_index: int | None = None, reduction: Literal["counted"], **habits: Never,
) -> Mean: ...  # fmt: skip
def cross_entropy(
    logits: Any,
    labels: Any,
    /,
    *,
    axis: int = -1,
    label_smoothing: float = 0.0,
    ignore_index: int | None = None,
    reduction: str = "mean",
    **habits: Never,
) -> Any:
    """−Σ p·log softmax(logits) along the classes on `axis`.

    `labels` are integers, with the shape of `logits` without `axis`, or probabilities with the full
    shape. With `label_smoothing` s the target distribution is (1 − s)·p + s / classes. Integer
    labels equal to `ignore_index` are ignored: the mean is over the other labels, and NaN if there
    are none, as in torch. If a batch is one part of a larger mean, as in training and evaluation,
    `reduction="counted"` returns the total and the count of the other labels, an `iso.Mean`. Any
    other label outside the classes raises IndexError if labels can be read without waiting for a
    device; otherwise, as in a compiled program, its loss is NaN.

    >>> float(iso.cross_entropy(np.zeros((2, 4)), np.array([0, 3])))
    1.3862943611198906
    """
    if habits:
        refuse("cross_entropy", habits)
    name = "cross_entropy"
    xp = backend_of(logits, labels)
    _check_reduction(name, reduction)
    if not -len(logits.shape) <= axis < len(logits.shape):
        raise ValueError(f"{name}: needed an axis of logits {list(logits.shape)}, got {axis}")
    axis %= len(logits.shape)
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"{name}: needed label_smoothing from 0 to 1, got {label_smoothing}")
    shape = tuple(logits.shape)
    hard = xp.isdtype(labels.dtype, "integral")
    wanted = shape[:axis] + shape[axis + 1 :] if hard else shape
    if tuple(labels.shape) != wanted:
        raise ValueError(
            f"{name}: needed {'integer labels' if hard else 'probabilities'} {list(wanted)} for "
            f"logits {list(shape)}, got {list(labels.shape)}"
        )
    if ignore_index is not None and not hard:
        raise TypeError(f"{name}: ignore_index needed integer labels, got {dtype_of(labels)}")
    if ignore_index is not None:
        held = xp.iinfo(labels.dtype)
        if not held.min <= ignore_index <= held.max:  # no label equals it, but it would wrap
            ignore_index = None
    return xp.cross_entropy(logits, labels, axis, label_smoothing, ignore_index, reduction)


@overload
def binary_cross_entropy(
    logits: A, labels: Shaped, /, *, reduction: Scalar = "mean", **habits: Never
) -> A: ...
@overload
def binary_cross_entropy(
    logits: Shaped, labels: Shaped, /, *, reduction: Literal["counted"], **habits: Never
) -> Mean: ...
def binary_cross_entropy(
    logits: Any, labels: Any, /, *, reduction: str = "mean", **habits: Never
) -> Any:
    """−y·log σ(logits) − (1 − y)·log(1 − σ(logits)), finite for every finite logit.

    >>> float(iso.binary_cross_entropy(np.array([1000.0]), np.array([1.0])))
    0.0
    """
    if habits:
        refuse("binary_cross_entropy", habits)
    xp = _pair("binary_cross_entropy", logits, labels, reduction)
    return reduced(xp, xp.softplus(logits) - logits * labels, reduction)


@overload
def mse(prediction: A, target: Shaped, /, *, reduction: Scalar = "mean", **habits: Never) -> A: ...
@overload
def mse(
    prediction: Shaped, target: Shaped, /, *, reduction: Literal["counted"], **habits: Never
) -> Mean: ...
def mse(prediction: Any, target: Any, /, *, reduction: str = "mean", **habits: Never) -> Any:
    """(prediction − target)².

    >>> float(iso.mse(np.array([1.0, 3.0]), np.array([1.0, 1.0])))
    2.0
    """
    if habits:
        refuse("mse", habits)
    xp = _pair("mse", prediction, target, reduction)
    error = prediction - target
    return reduced(xp, error * error, reduction)


@overload
def mae(prediction: A, target: Shaped, /, *, reduction: Scalar = "mean", **habits: Never) -> A: ...
@overload
def mae(
    prediction: Shaped, target: Shaped, /, *, reduction: Literal["counted"], **habits: Never
) -> Mean: ...
def mae(prediction: Any, target: Any, /, *, reduction: str = "mean", **habits: Never) -> Any:
    """|prediction − target|.

    >>> float(iso.mae(np.array([1.0, 3.0]), np.array([1.0, 1.0])))
    1.0
    """
    if habits:
        refuse("mae", habits)
    xp = _pair("mae", prediction, target, reduction)
    return reduced(xp, xp.abs(prediction - target), reduction)


@overload
def huber(
    prediction: A,
    target: Shaped,
    /,
    *,
    delta: float = 1.0,
    reduction: Scalar = "mean",
    **habits: Never,
) -> A: ...
@overload
def huber(
    prediction: Shaped,
    target: Shaped,
    /,
    *,
    delta: float = 1.0,
    reduction: Literal["counted"],
    **habits: Never,
) -> Mean: ...
def huber(
    prediction: Any, target: Any, /, *, delta: float = 1.0, reduction: str = "mean", **habits: Never
) -> Any:
    """e²/2 where |e| ≤ delta, delta·(|e| − delta/2) elsewhere.

    >>> float(iso.huber(np.array([0.5, 3.0]), np.zeros(2), reduction="sum"))
    2.625
    """
    if habits:
        refuse("huber", habits)
    xp = _pair("huber", prediction, target, reduction)
    if not delta > 0:
        raise ValueError(f"huber: needed a positive delta, got {delta}")
    error = prediction - target
    size = xp.abs(error)
    return reduced(
        xp, xp.where(size <= delta, 0.5 * error * error, delta * (size - 0.5 * delta)), reduction
    )


@overload
def kl_divergence(
    log_prediction: A, target: Shaped, /, *, reduction: Scalar = "mean", **habits: Never
) -> A: ...
@overload
def kl_divergence(
    log_prediction: Shaped, target: Shaped, /, *, reduction: Literal["counted"], **habits: Never
) -> Mean: ...
def kl_divergence(
    log_prediction: Any, target: Any, /, *, reduction: str = "mean", **habits: Never
) -> Any:
    """p·(log p − log q) for target probabilities p, given log q of the prediction; 0 where p is 0,
    with a finite gradient.

    >>> float(iso.kl_divergence(np.log(np.array([0.5, 0.5])), np.array([0.5, 0.5])))
    0.0
    """
    if habits:
        refuse("kl_divergence", habits)
    xp = _pair("kl_divergence", log_prediction, target, reduction)
    some = target > 0
    safe = xp.where(some, target, xp.ones_like(target))
    each = xp.where(some, target * (xp.log(safe) - log_prediction), xp.zeros_like(target))
    return reduced(xp, each, reduction)


def _pair(name: str, one: Any, other: Any, reduction: str) -> Any:
    _check_reduction(name, reduction)
    if tuple(one.shape) != tuple(other.shape):
        raise ValueError(
            f"{name}: needed two arrays of one shape, got {list(one.shape)} and {list(other.shape)}"
        )
    return backend_of(one, other)


def _check_reduction(name: str, reduction: str) -> None:
    if reduction not in REDUCTIONS:
        listed = ", ".join(map(repr, REDUCTIONS))
        raise ValueError(f"{name}: needed reduction as one of {listed}, got {reduction!r}")
