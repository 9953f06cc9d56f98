"""Batches of arrays, in an order that a seed decides and that is the same on every backend; or
batches from any iterable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from inspect import signature
from typing import Any

from .. import random
from ..core import tree
from ..core.default_backend import host
from ..core.dispatch import NUMBERS, check_one_device, find_backend
from ..distribute.world import bounds


class Arrays:
    """A nest of arrays with one example per row, in batches."""

    def __init__(self, name: str, nest: Any, size: int, shuffle: bool, seed: int, drop: bool):
        self.leaves, self.form = tree.flatten(nest)
        self.size, self.shuffle, self.seed, self.drop = size, shuffle, seed, drop
        paths = tree.paths(nest)
        flat = [path or "the array" for path, x in zip(paths, self.leaves) if not len(x.shape)]
        if flat:
            raise ValueError(
                f"{name}: needed arrays with one example per row, got one without axes at {flat[0]}"
            )
        sizes = {path: int(x.shape[0]) for path, x in zip(paths, self.leaves)}
        if len(set(sizes.values())) > 1:
            listed = ", ".join(f"{n} at {path}" for path, n in sizes.items())
            raise ValueError(f"{name}: needed arrays with equally many examples, got {listed}")
        self.examples = next(iter(sizes.values()))
        whole, rest = divmod(self.examples, size)
        self.batches = whole if drop or not rest else whole + 1
        if not self.batches:
            raise ValueError(
                f"{name}: needed {f'at least {size} examples' if drop else 'examples'}, "
                f"got {self.examples}{'; use a smaller batch_size' if self.examples else ''}"
            )

    def epoch(self, number: int, start: int = 0) -> Iterator[tuple]:
        """The batches of an epoch, from the one numbered `start` on."""
        for batch, _, _ in self.parts(number, start, 0, 1):
            yield batch

    def parts(self, number: int, start: int, rank: int, size: int) -> Iterator[tuple]:
        """The part of each batch for one of `size` workers, how many rows of it count, and the rows
        of the whole batch. If there are fewer rows than workers, some get a row that counts 0.
        """
        order = self._order(number)
        read = [find_backend(x).row_reader(x, order) for x in self.leaves]  # pyright: ignore
        for i in range(start, self.batches):
            begin, end = i * self.size, min((i + 1) * self.size, self.examples)
            first, last = bounds(end - begin, rank, size)
            part = (begin + first, begin + last) if last > first else (begin, begin + 1)
            rows = [rows_between(*part) for rows_between in read]
            yield as_batch(tree.unflatten(self.form, rows)), last - first, end - begin

    def _order(self, number: int) -> Any:
        if not self.shuffle:
            return None
        near: Any = host().name
        key = random.fold_in(random.key(self.seed, backend=near), number)
        return random.permutation(key, self.examples).astype("int32")


class Stream:
    """The batches of an iterable, which is iterated over again in every epoch."""

    def __init__(self, name: str, items: Iterable[Any]):
        self.name, self.items = name, items
        length = getattr(items, "__len__", None)
        try:
            self.batches = None if length is None else int(length())
        except TypeError:  # some have __len__, but it raises
            self.batches = None
        self.examples = None

    def epoch(self, number: int, start: int = 0) -> Iterator[tuple]:
        found = iter(self.items)
        seen = 0
        for item in found:
            seen += 1
            if seen > start:
                yield as_batch(item)
        kind = f"a {type(self.items).__name__}"
        if not seen:
            once = found is self.items and number
            raise ValueError(
                f"{self.name}: needed batches, got none in epoch {number + 1} from {kind}"
                + (
                    ", which can be iterated over only once; give a list, or a loader"
                    if once
                    else ""
                )
            )
        if seen < start:
            raise ValueError(
                f"{self.name}: needed the {start} batches done before, and more, to resume in "
                f"epoch {number + 1}, got {seen} from {kind}; give the same data as before"
            )


def batches(
    name: str, data: Any, size: int, shuffle: bool, seed: int, drop: bool
) -> Arrays | Stream:
    """Batches of arrays, or of an iterable of batches."""
    leaves = tree.flatten(data)[0] if isinstance(data, (tuple, dict)) else [data]
    if leaves and all(find_backend(x) is not None for x in leaves):
        return Arrays(name, data, size, shuffle, seed, drop)
    if isinstance(data, (tuple, dict, str, bytes)) or not hasattr(type(data), "__iter__"):
        fix = ""
        if isinstance(data, (tuple, dict)):
            other = [x for x in leaves if find_backend(x) is None]
            fix = f" with a {type(other[0]).__name__} in it" if other else " with nothing in it"
        elif hasattr(type(data), "__getitem__") and not isinstance(data, (str, bytes)):
            fix = "; pass it to a loader that makes batches of its examples"
        raise TypeError(
            f"{name}: needed arrays with one example per row, or an iterable of batches, "
            f"got a {type(data).__name__}{fix}"
        )
    return Stream(name, data)


def as_batch(item: Any) -> tuple:
    """The arguments for a loss, after the model, from a batch."""
    if isinstance(item, (list, tuple)) and not hasattr(item, "_fields"):
        return tuple(item)
    return (item,)


def check_batch(name: str, batch: tuple, xp: Any) -> int:
    """The number of examples in a batch, whose arrays must be of the model's backend."""
    size = 0
    leaves: list[Any] = tree.flatten(batch)[0]
    at = lambda number: f"at {tree.paths(batch)[number]}"
    for number, x in enumerate(leaves):
        found = find_backend(x)
        if found is not None and found is not (xp := xp or found):
            raise TypeError(
                f"{name}: needed batches of {xp.name} arrays, like the model's, got a {found.name} "
                f"array {at(number)}; use iso.convert(batch, {xp.name!r})"
            )
        if found is None and type(x) not in NUMBERS:
            kind = type(x).__name__
            raise TypeError(
                f"{name}: needed batches of arrays and numbers, got a {kind} {at(number)}"
            )
        if not size and found is not None and len(x.shape):
            size = int(x.shape[0])
            if not size:
                raise ValueError(f"{name}: needed examples in a batch, got none {at(number)}")
    return size or 1


def check_device(name: str, model: Any, batch: tuple, xp: Any) -> None:
    """Raise if the arrays of a model and those of a batch are on different devices."""
    if xp is not None and xp.has_devices():
        arrays = [x for x in tree.flatten([model, batch])[0] if isinstance(x, xp.arrays)]
        check_one_device(xp, arrays, f"a model and a batch of {name}")


def check_taken(name: str, function: Callable[..., Any], batch: tuple) -> None:
    """Check that a function of a model and a batch takes as many arguments as the batch has."""
    try:
        taken = signature(function, follow_wrapped=False).parameters.values()
    except (TypeError, ValueError):  # some functions written in C have no signature
        return
    placed = [p for p in taken if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    least = sum(p.default is p.empty for p in placed)
    more = any(p.kind is p.VAR_POSITIONAL for p in taken)
    if least <= 1 + len(batch) and (more or 1 + len(batch) <= len(placed)):
        return
    got = f"{len(batch)} parts"
    if len(batch) == 1:
        (part,) = batch
        is_array = find_backend(part) is not None
        got = f"one array of shape {list(part.shape)}" if is_array else f"one {type(part).__name__}"
    called = getattr(function, "__name__", type(function).__name__)
    listed = ", ".join(p.name for p in placed)
    raise TypeError(
        f"{name}: needed batches for {called}({listed}), got {got}; give a tuple of arrays, "
        "or an iterable of tuples: (x, y)"
    )
