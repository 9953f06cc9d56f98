"""Averages of a loss and of metrics over data, of a model as it is used, not as it is trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .. import tree
from ..compile import jit
from ..dispatch import find_backend
from ..gradients.calls import check_callable
from ..modules.copying import Skeleton
from ..modules.module import Module
from ..modules.structure import gather
from ..moving import to_numpy
from .data import Arrays, Stream, batches, check_batch
from .stepping import built, copied, held

Metrics = Mapping[str, Callable[..., Any]]


class Evaluation:
    """Metrics of a model, computed batch by batch in one program."""

    def __init__(self, name: str, model: Any, metrics: Metrics, compiled: bool):
        self.name, self.metrics = name, dict(metrics)
        self.skeleton = _as_used(model) if isinstance(model, Module) else None
        self.program = jit(self._measure) if compiled else self._measure

    def _measure(self, arrays: dict[str, Any], batch: tuple) -> list[Any]:
        return [
            metric(built(self.skeleton, held(arrays)), *batch) for metric in self.metrics.values()
        ]

    def over(self, arrays: dict[str, Any], data: Arrays | Stream) -> dict[str, float]:
        """Every metric, averaged over the examples of the data."""
        arrays = {name: nest for name, nest in arrays.items() if name != "optimizer"}
        known = [x for x in tree.flatten(arrays)[0] if find_backend(x) is not None]
        xp: Any = find_backend(known[0]) if known else None  # some models hold no array
        sums, examples = [0.0] * len(self.metrics), 0
        for batch in data.epoch(0):
            size = check_batch(self.name, batch, xp)
            values = [float(to_numpy(x)) for x in self.program(arrays, batch)]
            sums = [total + value * size for total, value in zip(sums, values)]
            examples += size
        means = {name: total / examples for name, total in zip(self.metrics, sums)}
        finish = {name: getattr(f, "finish", None) for name, f in self.metrics.items()}
        return {name: f(means[name]) if (f := finish[name]) else means[name] for name in means}


def evaluate(
    model: Any,
    data: Any,
    metrics: Metrics,
    *,
    batch_size: int = 32,
    compiled: bool = True,
) -> dict[str, float]:
    """Every metric, a function of the model and a batch, averaged over the examples of the data,
    with the model in `eval()`; the model given is left as it was. `data` is as in `fit`, in its own
    order.

    >>> x, y = np.eye(2, dtype=np.float32), np.array([0, 0])
    >>> iso.evaluate(iso.Activation("relu"), (x, y), {"accuracy": iso.metrics.accuracy})
    {'accuracy': 0.5}
    """
    if type(batch_size) is not int or batch_size < 1:
        raise ValueError(f"evaluate: needed batch_size as an int of 1 or more, got {batch_size!r}")
    found = batches("evaluate", data, batch_size, False, 0, False)
    parts = gather(model) if isinstance(model, Module) else None
    arrays = {"variables": model, "state": {}, "constants": {}} if parts is None else copied(
        parts._asdict()
    )  # fmt: skip
    return Evaluation("evaluate", model, check_metrics(metrics), compiled).over(arrays, found)


def check_metrics(metrics: Metrics | None) -> dict[str, Callable[..., Any]]:
    if metrics is not None and not isinstance(metrics, Mapping):
        raise TypeError(
            "metrics: needed a dict of functions of the model and a batch, got a "
            f"{type(metrics).__name__}"
        )
    for name, metric in (metrics or {}).items():
        check_callable(f"metrics: {name}", metric)
    if "loss" in (metrics or {}):
        raise ValueError("metrics: needed another name than loss, which is always measured")
    return dict(metrics or {})


def _as_used(model: Module) -> Skeleton:
    """The form of a model in `eval()`, of which the model given knows nothing."""
    own = tree.renewed(model)
    return Skeleton(own.eval())
