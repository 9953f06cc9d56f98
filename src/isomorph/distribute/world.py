"""The processes of a job as one process sees them: its rank, their number, and the few things they
do together. Each framework's own engine does the work: `engines/`.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, TypeVar
from zlib import crc32

from ..arrays.conversion import to_numpy
from ..core import tree
from ..core.default_backend import host
from ..core.dispatch import backend_of, dtype_of, find_backend
from ..random import is_key
from .buckets import Plan
from .watchdog import Watchdog

T = TypeVar("T")


class World:
    """The processes that train together; `iso.distribute.init` makes it. This class is one process
    alone, and the base of the engines.

    `rank` is the number of this process, from 0, `size` the number of processes, `shares` the
    number of parts a batch is cut into: `size`, or more if a process has several devices.

    >>> world = iso.distribute.init(backend="numpy")
    >>> world.rank, world.size, world.mean({"loss": np.array(2.0)})
    (0, 1, {'loss': array(2.)})
    """

    engine = "one process"
    # whether programs see whole batches, and the engine divides the work among devices
    is_global = False
    full = 1 << 26  # numbers in one message: each message has its price

    def __init__(self, backend: str, rank: int = 0, size: int = 1, timeout: float = 300.0):
        self.backend, self.rank, self.size, self.timeout = backend, rank, size, timeout
        self.shares = size
        self.dog = Watchdog(rank, size, timeout, self.exchange() if size > 1 else None)
        if size > 1:
            _end_all_on_errors(self)

    def __repr__(self) -> str:
        return f"World(rank {self.rank} of {self.size}, {self.backend}, {self.engine})"

    # What an engine supplies.

    def sum(self, flat: Any) -> Any:
        """The sum of an array without holes over all processes, which may be written into it."""
        return flat

    def packed(
        self, plan: Plan, leaves: Sequence[Any], weight: Any, flags: Sequence[Any] = ()
    ) -> list[Any]:
        """`plan.packed`, or the same by other means."""
        return plan.packed(leaves, weight, flags)

    def means(self, plan: Plan, sums: Sequence[Any]) -> tuple[list[Any], Any, list[Any]]:
        """`plan.means`, or the same by other means, which may write into the sums."""
        return plan.means(sums)

    def gather(self, text: str) -> list[str]:
        """The texts of all processes, by rank."""
        return [text]

    def count(self, yes: bool) -> int:
        """In how many processes something is so."""
        return sum(word == "yes" for word in self.gather("yes" if yes else "no"))

    def flags(self, stop: float) -> Any:
        """What a step of an engine with whole batches adds up over all processes."""
        return [stop]

    def exchange(self) -> Any:
        """Where the watchdog writes and reads how far each process is, or None."""
        return None

    def expect(self, x: Any) -> None:
        """Watch that an array of a program that still runs is computed in time."""

    def placed(self, arrays: Any) -> Any:
        """A nest that is equal in all processes, where steps compute with it."""
        return arrays

    def kept(self, arrays: Any) -> Any:
        """The state after a step, inside the step's program, placed as before."""
        return arrays

    def local(self, arrays: Any) -> Any:
        """A nest that is equal in all processes, as arrays of this process."""
        return arrays

    def number(self) -> Any:
        """The number of the worker that computes, for its random numbers."""
        return self.rank

    def program(self, one: Any) -> Any:
        """A whole step, compiled by the engine; None if the step is compiled in two parts, before
        and after `sum`.
        """
        return None

    def abandon(self) -> None:
        """End this process at once, after an error, without waiting for the others; those notice
        it, or are ended.
        """
        os._exit(1)

    # What users call.

    def barrier(self) -> None:
        """Wait until all processes are here.

        >>> iso.distribute.init(backend="numpy").barrier()
        """
        with self.dog.watching("a barrier"):
            self.gather("")

    def mean(self, nest: T, weight: float = 1.0) -> T:
        """The mean of a nest of floating-point arrays over all processes; those with a larger
        `weight` count more. All processes get the same bits. NaN if all weights are 0.

        >>> float(iso.distribute.init(backend="numpy").mean(np.array(3.0), weight=2))
        3.0
        """
        leaves, form = tree.flatten(nest)
        check_floats(leaves, tree.paths(nest))
        if self.size == 1 or not leaves:
            return nest
        plan = Plan(backend_of(*leaves), leaves, full=self.full)
        with self.dog.watching("mean"):
            sums = [self.sum(x) for x in self.packed(plan, leaves, weight)]
        return tree.unflatten(form, self.means(plan, sums)[0])

    def fetch(self, nest: Any) -> Any:
        """A nest of arrays as NumPy arrays, whole, even if they are divided among devices and
        processes; all processes must call it.

        >>> iso.distribute.init(backend="numpy").fetch([np.ones(1)])
        [array([1.])]
        """
        return to_numpy(nest)

    def share(self, batch: T) -> T:
        """The part of a global batch that this process computes: its rows, or the whole batch
        divided among devices. `step(state, *world.share((x, y)))` is one step of all.

        >>> iso.distribute.init(backend="numpy").share(np.arange(3))
        array([0, 1, 2])
        """
        rows = rows_of("share", batch)
        if rows < self.shares and not self.is_global:
            raise ValueError(
                f"share: needed at least {self.shares} rows for {self.shares} workers, got {rows}; "
                "use larger batches"
            )
        return self.cut(batch)[0]

    def cut(self, batch: Any) -> tuple[Any, Any]:
        """The part of a batch for this process, and how many rows of it count. If there are fewer
        rows than processes, some get a row that counts 0.
        """
        rows = rows_of("distribute", batch)
        begin, end = bounds(rows, self.rank, self.size)
        part = slice(begin, end) if end > begin else slice(0, 1)
        return tree.map(lambda x: x[part] if is_divided(x) else x, batch), end - begin

    def whole(self, nest: Any, total: int) -> Any:
        """The rows of all processes, as arrays of this one, from a nest of this process' rows of
        `total`.
        """
        begin, end = bounds(total, self.rank, self.size)

        def one(x: Any) -> Any:
            xp: Any = find_backend(x)
            rows = to_numpy(x)[: end - begin]
            words = xp.from_numpy(host().placed_rows(rows, begin, total), xp.device_of(x))
            found = to_numpy(self.sum(words))
            found = host().rows_from(found, rows.dtype, (total, *rows.shape[1:]))
            return xp.from_numpy(found, xp.device_of(x))

        with self.dog.watching("a prediction"):
            return tree.map(one, nest)

    # Agreement.

    def check_equal(self, what: str, lines: Sequence[str]) -> None:
        """Raise in all processes if the lines are not the same in all; name two that differ."""
        if self.size == 1:
            return
        text = "\n".join(lines)
        with self.dog.watching(what):
            found = self.gather(hashlib.sha256(text.encode()).hexdigest())
            if len(set(found)) == 1:
                return
            texts = self.gather(text)
        check_same(what, texts)


def check_same(what: str, texts: Sequence[str]) -> None:
    """Raise if the texts of the processes are not the same; name the first lines that differ."""
    parts = [text.split("\n") for text in texts]
    other = next((r for r, lines in enumerate(parts) if lines != parts[0]), None)
    if other is None:
        return
    lines = zip_longest(parts[0], parts[other], fillvalue="nothing more")
    one, two = next(pair for pair in lines if pair[0] != pair[1])
    raise ValueError(
        f"distribute: needed the same {what} in all processes, got {one} on rank 0 and {two} on "
        f"rank {other}"
    )


def check_floats(leaves: Sequence[Any], paths: Sequence[str]) -> None:
    """Raise if an array of a mean is not of floating point."""
    for x, path in zip(leaves, paths):
        xp: Any = backend_of(x)
        if not xp.is_float(x.dtype):
            at = f" at {path}" if path else ""
            raise TypeError(
                f"mean: needed floating-point arrays, got {dtype_of(x)}{at}; cast it first"
            )


def shapes_of(batch: Any, first: int = 0) -> str:
    """The dtypes and shapes of a batch in words, from axis `first` on."""
    arrays = [x for x in tree.flatten(batch)[0] if find_backend(x) is not None]
    return ", ".join(f"{dtype_of(x)} {list(x.shape)[first:]}" for x in arrays) or "no arrays"


def digest_of(nest: Any) -> str:
    """A short word that is the same for the same values."""
    found = 0
    for x in tree.flatten(nest)[0]:
        if find_backend(x) is not None:
            found = crc32(to_numpy(x).tobytes(), found)
    return f"{found:08x}"


def _end_all_on_errors(world: World) -> None:
    """An exception that ends this process ends all: the others would wait for it."""
    before = sys.excepthook

    def hook(kind: Any, error: Any, trace: Any) -> None:
        before(kind, error, trace)
        sys.stderr.flush()
        sys.stdout.flush()
        if folder := os.environ.get("ISOMORPH_LAUNCH"):  # the launcher names the first one there
            with open(os.path.join(folder, "failed"), "a") as file:
                file.write(f"{world.rank} 1\n")
        world.abandon()

    sys.excepthook = hook


def bounds(rows: int, rank: int, size: int) -> tuple[int, int]:
    """The rows of a process: all have equally many, or the first ones have one more.

    >>> [bounds(7, rank, 3) for rank in range(3)]
    [(0, 3), (3, 5), (5, 7)]
    """
    each, rest = divmod(rows, size)
    begin = rank * each + min(rank, rest)
    return begin, begin + each + (rank < rest)


def is_divided(x: Any) -> bool:
    """Whether a leaf of a batch is an array with rows; a random key has none."""
    return find_backend(x) is not None and len(x.shape) > 0 and not is_key(x)


def rows_of(name: str, batch: Any) -> int:
    """The number of rows of a batch, the same in all its arrays."""
    rows = {path: int(x.shape[0]) for x, path in _divided(batch)}
    if not rows:
        raise ValueError(f"{name}: needed a batch with rows to divide, got no array with axes")
    if len(set(rows.values())) > 1:
        listed = ", ".join(f"{n} at {path or 'the array'}" for path, n in rows.items())
        raise ValueError(f"{name}: needed equally many rows in all arrays of a batch, got {listed}")
    return next(iter(rows.values()))


def _divided(batch: Any) -> list[tuple[Any, str]]:
    both = zip(tree.flatten(batch)[0], tree.paths(batch))
    return [(x, path) for x, path in both if is_divided(x)]
