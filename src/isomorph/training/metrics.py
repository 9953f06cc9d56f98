"""Metrics: functions of a model and a batch. Their results are averaged over examples, or over
their own counts if they are an `iso.Mean`. The attribute `finish` of a metric is applied to the
average.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core.dispatch import backend_of
from ..layers.loss import cross_entropy

if TYPE_CHECKING:
    from ..types.array_types import A

__all__ = ["accuracy", "perplexity"]


def __dir__() -> list[str]:
    """What is public."""
    return [*__all__, *(name for name in globals() if name.startswith("__"))]


def accuracy(model: Callable[..., A], x: Any, labels: Any, /) -> A:
    """The fraction of examples whose largest output is at the label.

    Outputs are [..., classes], labels integers [...].

    >>> outputs = np.array([[0.1, 0.9], [0.2, 0.8]])
    >>> float(iso.metrics.accuracy(lambda x: x, outputs, np.array([1, 0])))
    0.5
    """
    outputs = model(x)
    xp: Any = backend_of(outputs, labels)
    right = xp.astype(xp.argmax(outputs, axis=-1), labels.dtype) == labels
    return xp.mean(xp.astype(right, xp.float32))


def perplexity(model: Callable[..., A], x: Any, labels: Any, /) -> A:
    """The exponential of the mean cross entropy over all examples. (For one batch, the function
    returns the cross entropy.)

    Outputs are [..., classes], labels integers [...].

    >>> data = np.zeros((2, 4)), np.array([1, 0])
    >>> round(iso.evaluate(lambda x: x, data, {"p": iso.metrics.perplexity})["p"], 6)
    4.0
    """
    return cross_entropy(model(x), labels)


def _exp(mean: float) -> float:
    try:
        return math.exp(mean)
    except OverflowError:
        return math.inf


perplexity.finish = _exp  # pyright: ignore[reportFunctionMemberAccess]
