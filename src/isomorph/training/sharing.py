"""The batches of several workers: the same global batches for any number of them, of which each
takes its part; and what they decide together.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..arrays.conversion import number_of
from ..core.means import Running
from ..distribute.world import World, check_same, rows_of, shapes_of
from .data import Arrays, Stream
from .reducing import are_equal, digests


class Share(NamedTuple):
    """What a worker computes of a batch."""

    batch: tuple  # for the step
    rows: Any  # how many rows of it count
    total: int  # the rows of the whole batch
    shown: tuple  # the part of this process as plain arrays, for messages


def shares(
    data: Arrays | Stream, world: World | None, number: int, start: int = 0
) -> Iterator[Share]:
    """The parts of this process of all batches of an epoch."""
    if world is None:
        for batch in data.epoch(number, start):
            yield Share(batch, None, 0, batch)
    elif isinstance(data, Arrays) and world.size == world.shares and not world.is_global:
        for batch, rows, total in data.parts(number, start, world.rank, world.size):
            yield Share(batch, rows, total, batch)
    else:
        found = data.epoch(number, start)
        for batch in _together(found, world) if isinstance(data, Stream) else found:
            cut, rows = world.cut(batch)
            is_plain = world.size == world.shares and not world.is_global
            shown = cut if is_plain else batch
            yield Share(cut, rows, rows_of("fit", batch), shown)


def _together(batches: Iterator[tuple], world: World) -> Iterator[tuple]:
    """Batches as long as every process has one."""
    while True:
        batch = next(batches, None)
        with world.dog.watching("the next batch"):
            if world.is_global:  # one program of all: of other shapes it would compute nonsense
                words = world.gather("" if batch is None else shapes_of(batch))
                ready = sum(map(bool, words))
                if ready == world.size:
                    check_same("shapes and dtypes of batches", words)
            else:
                ready = world.count(batch is not None)
        if batch is None or ready < world.size:
            if batch is not None:
                warnings.warn(
                    f"distribute: the data of {world.size - ready} of {world.size} processes ended "
                    f"before those of rank {world.rank}; they end for all",
                    stacklevel=2,
                )
            return
        yield batch


def of_processes(world: World | None) -> World | None:
    """The world for work that needs no reduction; None if its workers are devices of this process,
    of which one is enough.
    """
    alone = world is not None and world.size == 1 and not world.is_global
    return None if alone else world


def flags_of(world: World | None, share: Share, is_stopped: bool) -> Any:
    """What this process tells the others in a step: whether it stops, and the shapes it has."""
    if world is None or world.size == 1:
        return ()
    stop = float(is_stopped)
    return world.flags(stop) if world.is_global else [stop, *digests(share.batch, share.total)]


def heard(world: World | None, flags: Sequence[Any], batch: tuple) -> bool:
    """Whether a process stops, from the sums of all flags; raises if shapes differ."""
    if world is None or world.size == 1 or not len(flags):
        return False
    sums = list(map(number_of, flags))
    if len(sums) > 1 and not are_equal(world.size, sums[1:]):
        world.check_equal("shapes and dtypes of batches", [shapes_of(batch, 1)])
        raise ValueError("fit: needed batches with equally many rows in all processes, got others")
    return sums[0] > 0


def added(world: World | None, sums: Sequence[Running]) -> list[Running]:
    """Totals and counts of all processes, added up."""
    if world is None or world.size == 1 or world.is_global:
        return list(sums)
    words = json.dumps([(x.total.hex(), x.count.hex()) for x in sums])
    with world.dog.watching("an evaluation"):
        texts = world.gather(words)
    every = [[tuple(map(float.fromhex, pair)) for pair in json.loads(text)] for text in texts]
    return [Running(*(sum(column) for column in zip(*pairs))) for pairs in zip(*every)]
