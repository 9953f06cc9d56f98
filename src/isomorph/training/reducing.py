"""One training step of several workers: each computes the gradients of its rows, one reduction adds
them up, and each makes the same update.

Everything that must be the same for all goes through that reduction: the loss and its gradients,
weighted as in `weighing`, the state that a step changes, the scalars of aux, and flags.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from zlib import crc32

from ..compile.compiling import jit
from ..core import tree
from ..core.dispatch import backend_of, find_backend
from ..core.means import Mean
from ..distribute.buckets import Plan
from ..distribute.world import World, is_divided, rows_of
from ..random import fold_in, is_key
from .weighing import Part

KEY = 2**32 - 1  # folded into the keys that all workers have after a step; no rank is as high
AVERAGED, ADDED, OWN = "averaged", "added", "own"
DIGESTS = 4  # numbers of seven bits: their sums and squares are exact for 1,000 workers
FLAGS = 1 + 2 * DIGESTS  # stop, digests, squares of digests


class Reduced:
    """A step of several workers in two programs, before and after the reduction; or in one, if the
    engine compiles it as a whole. `first` computes the part of a worker, `last` the update.
    """

    def __init__(
        self, world: World, compiled: bool, first: Callable[..., Any], last: Callable[..., Any],
        frozen: Callable[[Any], list[bool]], name: str,
    ):  # fmt: skip
        self.world, self.first, self.last = world, first, last
        self.frozen, self.name = frozen, name
        self.plans: list[Plan] = []  # by the weight of the loss; by rows
        self.lay: Any = None  # what was reduced, and where it belongs
        self.is_warned = False
        self.whole = world.program(self._one)
        self.before, self.after = self._before, self._after
        if compiled and self.whole is None:
            self.before = jit(_named(self._before, name))
            self.after = jit(_named(self._after, f"{name}, the update"), donate=0)

    def __call__(
        self, arrays: Any, batch: tuple, rows: Any, flags: Sequence[float], total: int
    ) -> tuple:
        world = self.world
        rows = float(rows) if isinstance(rows, int) else rows
        if self.whole is not None:
            return self.whole(arrays, batch, rows, tuple(flags))
        buckets, beside = self.before(arrays, batch, rows, tuple(flags))
        # batches of other sizes are compiled, perhaps not by all at the same step
        with world.dog.watching("a training step", (self.name, total) if total else self):
            buckets = [[world.sum(x) for x in part] for part in buckets]
        return self.after(arrays, buckets, beside)

    def _one(self, arrays: Any, batch: tuple, rows: Any, flags: Sequence[Any]) -> tuple:
        buckets, beside = self._before(arrays, batch, rows, flags)
        sums = [[self.world.sum(x) for x in part] for part in buckets]
        return self._after(arrays, sums, beside)

    def _before(self, arrays: Any, batch: tuple, rows: Any, flags: Sequence[Any]) -> tuple:
        """The buckets of this worker, and the arrays that are not reduced."""
        old = arrays["state"]
        number = self.world.number()
        given = tree.map(lambda x: fold_in(x, number) if is_key(x) else x, old)
        part, state, aux = self.first({**arrays, "state": given}, batch)
        xp: Any = backend_of(part.loss)
        if rows is None:
            rows = rows_of("train_step", batch)
        state = Sorted(tree.flatten(state), _kinds_of_state(xp, given, old, self.frozen(old)))
        aux = Sorted(tree.flatten_to(aux, Mean), _kinds_of_aux)
        grads, form = tree.flatten(part.grads)
        means, beside = [part.loss, *grads], [*state.averaged, *aux.averaged]
        added = [x for mean in aux.added for x in _counted(xp, mean, rows)]
        flags = [*flags, *added]
        self.plans = [Plan(xp, means, len(flags), self.world.full)]
        if part.count is None:
            packed = [self.world.packed(self.plans[0], means, rows, flags)]
        else:
            weight = _if_rows(xp, part.count, rows)
            packed = [self.world.packed(self.plans[0], means, weight, flags)]
        if beside:  # rows are their weight, whatever that of the loss is
            self.plans.append(Plan(xp, beside, 0, self.world.full))
            packed.append(self.world.packed(self.plans[1], beside, rows))
        self._warn(xp, state, given)
        own = state.own, aux.own
        self.lay = (form, state.emptied(), aux.emptied(), part.count is not None)
        return packed, own

    def _after(self, arrays: Any, sums: Sequence[Any], beside: tuple) -> tuple:
        form, state, aux, is_counted = self.lay
        means = [self.world.means(plan, part) for plan, part in zip(self.plans, sums)]
        (loss, *grads), total, flags = means[0]
        ahead = iter(means[1][0] if means[1:] else [])
        new_state = state.joined(beside[0], ahead, [])
        new_aux = aux.joined(beside[1], ahead, flags[FLAGS:])
        part = Part(loss, tree.unflatten(form, grads), total if is_counted else None)
        new, loss, new_aux = self.last(arrays, part, new_state, new_aux)
        return new, loss, total, new_aux, flags[:FLAGS]

    def _warn(self, xp: Any, state: Sorted, given: Any) -> None:
        before = [x for x, kind in zip(tree.flatten(given)[0], state.kinds) if kind == AVERAGED]
        changed = [x for x, y in zip(state.averaged, before) if _differs(xp, x, y)]
        if not changed or self.is_warned:
            return
        self.is_warned = True
        warnings.warn(
            f"distribute: {len(changed)} arrays of state, such as running statistics, are averaged "
            f"over {self.world.shares} workers, and in a step each worker normalizes with its own "
            "rows: results differ from those of one process",
            stacklevel=2,
        )


def _differs(xp: Any, x: Any, y: Any) -> bool:
    """Whether a step has changed an array, as far as that can be known."""
    if x is y:
        return False
    if xp.at_hand(x) is None or xp.at_hand(y) is None:
        return True
    one, two = (xp.to_numpy(xp.stop_gradient(a, False)) for a in (x, y))
    return not bool((one == two).all())


def _named(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The method under another name, for the messages about slow compilations."""

    def run(*args: Any) -> Any:
        return method(*args)

    run.__qualname__ = name or run.__qualname__
    return run


class Sorted:
    """The leaves of a nest, sorted by what happens to them: averaged, added up, or this worker's
    own.
    """

    def __init__(self, flat: tuple[list[Any], Any], kind: Callable[[int, Any], tuple[str, Any]]):
        leaves, self.form = flat
        self.kinds: list[str] = []
        self.averaged: list[Any] = []
        self.added: list[Any] = []
        self.own: list[Any] = []
        lists = {AVERAGED: self.averaged, ADDED: self.added, OWN: self.own}
        for number, x in enumerate(leaves):
            name, x = kind(number, x)
            self.kinds.append(name)
            lists[name].append(x)

    def emptied(self) -> Sorted:
        """Without the arrays, which nothing should keep after the step."""
        self.averaged, self.added, self.own = [], [], []
        return self

    def joined(self, own: Sequence[Any], averaged: Iterator[Any], added: Sequence[Any]) -> Any:
        """The nest, with the means of what is averaged and the sums of what is added up."""
        mine, sums = iter(own), iter(added)
        ways = {
            AVERAGED: lambda: next(averaged),
            ADDED: lambda: Mean(next(sums), next(sums)),
            OWN: lambda: next(mine),
        }
        return tree.unflatten(self.form, [ways[name]() for name in self.kinds])


def _kinds_of_state(
    xp: Any, given: Any, old: Any, frozen: Sequence[bool]
) -> Callable[[int, Any], tuple]:
    """What a step may change is averaged; keys are the same for all workers."""
    before, unfolded = tree.flatten(given)[0], tree.flatten(old)[0]

    def kind(number: int, x: Any) -> tuple[str, Any]:
        if is_key(x):
            return OWN, unfolded[number] if x is before[number] else fold_in(unfolded[number], KEY)
        if frozen[number]:
            return OWN, unfolded[number]
        if find_backend(x) is None or not xp.is_float(x.dtype):
            return OWN, x
        return AVERAGED, x

    return kind


def _counted(xp: Any, mean: Mean, rows: Any) -> list[Any]:
    """The total and the count of a mean to add up: both 0 where there is nothing to count."""
    count = _if_rows(xp, mean.count, rows)
    if find_backend(count) is None:
        return [mean.total if count else 0.0, count]
    return [xp.where(count != 0, mean.total, xp.zeros_like(mean.total)), count]


def _kinds_of_aux(number: int, x: Any) -> tuple[str, Any]:
    """Scalars are averaged, means are combined, and other arrays stay as they are."""
    if isinstance(x, Mean):
        return ADDED, x
    xp: Any = find_backend(x)
    if xp is not None and not len(x.shape) and xp.is_float(x.dtype):
        return AVERAGED, x
    return OWN, x


def _if_rows(xp: Any, x: Any, rows: Any) -> Any:
    """`x`, or 0 if there are no rows."""
    if find_backend(rows) is None:
        return x if rows else 0.0
    dtype = xp.float32 if find_backend(x) is None else x.dtype
    return x * xp.astype(rows != 0, dtype)


def digests(batch: tuple, rows: int) -> list[float]:
    """The flags for the shapes and dtypes of a batch: numbers and their squares, by whose sums all
    workers see whether they are the same.
    """
    shapes = [(tuple(x.shape)[1:], str(x.dtype)) for x in tree.flatten(batch)[0] if is_divided(x)]
    found = crc32(repr((rows, shapes)).encode())
    words = [float(found >> (7 * i) & 127) for i in range(DIGESTS)]
    return [*words, *(x * x for x in words)]


def are_equal(size: int, sums: Sequence[float]) -> bool:
    """Whether all workers had the same digests, from the sums of `digests`."""
    return all(size * sums[i + DIGESTS] == sums[i] ** 2 for i in range(DIGESTS))
