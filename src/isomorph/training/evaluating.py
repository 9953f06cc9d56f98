"""Averages of a loss and of metrics over data, with the model in `eval()`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..arrays.conversion import number_of
from ..compile.compiling import jit
from ..core import tree
from ..core.dispatch import NUMBERS, check_callable, find_backend
from ..core.means import Mean, Running, check_mean
from ..distribute.world import World
from ..modules.contents import Held, Skeleton, gather, look
from ..modules.module import Module
from .choosing import Compiled, check_compiled, chosen
from .data import Arrays, Stream, batches, check_batch, check_device, check_taken
from .sharing import added, of_processes, shares
from .stepping import built, check_world, copied, flat, held, nested

Metrics = Mapping[str, Callable[..., Any]]


class Evaluation:
    """Metrics of a model, computed batch by batch in one program."""

    def __init__(self, name: str, model: Any, metrics: Metrics, compiled: bool, tails: bool):
        self.name, self.metrics = name, dict(metrics)
        self.skeleton = as_used(model) if isinstance(model, Module) else None
        # a function is a model without arrays: programs take no arrays from it
        self.function = model if self.skeleton is None and callable(model) else None
        self.program = jit(self._measure) if compiled else self._measure
        self.tail = self.program if tails else self._measure  # for a smaller last batch

    def _measure(self, arrays: Any, batch: tuple) -> list[Any]:
        found = []
        for name, metric in self.metrics.items():
            model = self.function or built(self.skeleton, held(nested(arrays)))
            value = metric(model, *batch)
            if isinstance(value, Mean):
                check_mean(f"{self.name}: the metric {name}", value, numbers=True)
            elif type(value) not in NUMBERS and (find_backend(value) is None or len(value.shape)):
                shape = f" of shape {tuple(value.shape)}" if hasattr(value, "shape") else ""
                raise TypeError(
                    f"{self.name}: needed a number or an array without axes from metric {name}, "
                    f"got a {type(value).__name__}{shape}; take the mean over the batch"
                )
            found.append(value)
        return found

    def over(
        self, arrays: dict[str, Any], data: Arrays | Stream, number: int = 0,
        world: World | None = None,
    ) -> dict[str, float]:  # fmt: skip
        """Every metric, averaged over the examples of the data, or over its own count; `number`
        counts the passes over the data, from 0. The arrays lie where those of batches do.
        """
        world = of_processes(world)
        arrays = {name: nest for name, nest in arrays.items() if name != "optimizer"}
        known = [x for x in tree.flatten(arrays)[0] if find_backend(x) is not None]
        xp: Any = find_backend(known[0]) if known else None  # some models have no arrays
        sums = [Running() for _ in self.metrics]
        passed = flat(arrays) if known else arrays
        examples = 0
        for share in shares(data, world, number if isinstance(data, Stream) else 0):
            batch = share.batch
            size = check_batch(self.name, batch, xp)
            if share.rows == 0:  # fewer rows than workers
                continue
            if not examples:  # the first batch
                check_device(self.name, arrays, batch, xp)
                for metric in self.metrics.values():
                    check_taken(self.name, metric, batch)
            is_tail = isinstance(data, Arrays) and size < data.size
            program = self.tail if is_tail else self.program
            for running, found in zip(sums, program(passed, batch)):
                if isinstance(found, Mean):
                    running.add(*map(number_of, found))
                else:
                    running.add(number_of(found) * size, size)
            examples += size
        sums = added(world, sums)
        means = {name: running.mean for name, running in zip(self.metrics, sums)}
        finish = {name: getattr(f, "finish", None) for name, f in self.metrics.items()}
        return {name: f(means[name]) if (f := finish[name]) else means[name] for name in means}


def evaluate(
    model: Any,
    data: Any,
    metrics: Metrics,
    *,
    batch_size: int = 32,
    compiled: Compiled = "auto",
    distribute: World | None = None,
) -> dict[str, float]:
    """Every metric, a function of the model and a batch, averaged over the examples of the data,
    with the model in `eval()`; the given model is not changed. `data` is as in `fit`, in its own
    order. A metric that returns an `iso.Mean` is averaged over its counts instead of examples; NaN
    if all counts are 0. With `compiled="auto"` batches are compiled where their number pays for it,
    as in `fit`. With `distribute`, a world of `iso.distribute.init`, each process measures
    its part of every batch, and all get the metrics of the whole data.

    >>> x, y = np.eye(2, dtype=np.float32), np.array([0, 0])
    >>> iso.evaluate(iso.Activation("relu"), (x, y), {"accuracy": iso.metrics.accuracy})
    {'accuracy': 0.5}
    """
    if type(batch_size) is not int or batch_size < 1:
        raise ValueError(f"evaluate: needed batch_size as an int >= 1, got {batch_size!r}")
    check_compiled("evaluate", compiled)
    found = batches("evaluate", data, batch_size, False, 0, False)
    known = check_metrics("evaluate", metrics)
    if not known:
        raise ValueError("evaluate: needed at least one metric, got none")
    if isinstance(model, Module):
        parts = gather(model)
    else:
        parts = Held({} if callable(model) else model, {}, {})
    world = check_world("evaluate", distribute)
    arrays = copied(parts._asdict())
    if world is not None and world.is_global:
        arrays = world.placed(arrays)
    ways = chosen(compiled, model, found, batch_size, world)
    return Evaluation("evaluate", model, known, *ways).over(arrays, found, world=world)


def check_metrics(name: str, metrics: Metrics | None) -> dict[str, Callable[..., Any]]:
    if metrics is not None and not isinstance(metrics, Mapping):
        raise TypeError(
            f"{name}: needed metrics as a dict of functions of the model and a batch, got a "
            f"{type(metrics).__name__}"
        )
    for key, metric in (metrics or {}).items():
        check_callable(f"{name}: metrics: {key}", metric)
    return dict(metrics or {})


def as_used(model: Module) -> Skeleton:
    """The structure of a model in `eval()`; the given model is not changed."""
    own = tree.renewed(model)
    return look(own.eval()).skeleton
