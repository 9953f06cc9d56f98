"""What a model returns for every example of the data, batch by batch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from ..arrays.conversion import to_numpy
from ..compile.compiling import jit
from ..core import tree
from ..core.default_backend import host
from ..core.dispatch import check_callable, find_backend
from ..distribute.world import World
from ..modules.contents import gather
from ..modules.module import Module
from .choosing import Compiled, check_compiled, chosen
from .data import Arrays, batches, check_batch, check_device
from .evaluating import as_used
from .sharing import of_processes, shares
from .stepping import built, check_world, copied, flat, held, nested


def predict(
    model: Any,
    data: Any,
    batch_size: int = 32,
    *,
    out: str | PathLike[str] | None = None,
    compiled: Compiled = "auto",
    distribute: World | None = None,
) -> Any:
    """The results of `model(*batch)` for all examples of the data, in their order, with a module in
    `eval()`; the given model is not changed. `data` is as in `fit`, without labels: `model` takes
    all parts of a batch.

    Results are nests of arrays with one row per example; they are joined to arrays of the model's
    backend. With `out`, a path that ends in `.npy`, the result must be one array; it is written
    there batch by batch, so that it need not fit into memory, and the path is returned. `data` must
    then be arrays, whose number of examples is known. With `compiled="auto"` batches are compiled
    where their number pays for it, as in `fit`. With `distribute`, a world of
    `iso.distribute.init`, each process computes its part of every batch, and all get the whole
    result.

    >>> iso.predict(iso.Activation("relu"), np.array([[-1.0], [2.0], [3.0]]), batch_size=2)
    array([[0.],
           [2.],
           [3.]])
    """
    check_callable("predict", model)
    if type(batch_size) is not int or batch_size < 1:
        raise ValueError(f"predict: needed batch_size as an int >= 1, got {batch_size!r}")
    check_compiled("predict", compiled)
    world = of_processes(check_world("predict", distribute))
    found = batches("predict", data, batch_size, False, 0, False)
    ways = chosen(compiled, model, found, batch_size, world)
    results = _results(model, found, ways, world)
    if out is None:
        return _joined(results)
    path = Path(out)
    if path.suffix != ".npy":
        raise ValueError(f"predict: needed a path that ends in .npy as out, got {path}")
    if not isinstance(found, Arrays):
        raise TypeError(
            "predict: needed arrays as data to write the results into a file, got an iterable; "
            "its number of examples is not known"
        )
    return _written(results, path, found.examples, world)


def _results(model: Any, data: Any, ways: tuple[bool, bool], world: World | None) -> Iterator[Any]:
    """The result of every batch, whole, as arrays of this process."""
    is_module = isinstance(model, Module)
    skeleton = as_used(model) if is_module else None
    arrays: dict[str, Any] = copied(gather(model)._asdict()) if is_module else {}
    if world is not None and world.is_global:
        arrays = world.placed(arrays)

    def one(arrays: Any, batch: tuple) -> Any:
        return (built(skeleton, held(nested(arrays))) if is_module else model)(*batch)

    compiled, tails = ways
    program = jit(one) if compiled else one
    known = [x for x in tree.flatten(arrays)[0] if find_backend(x) is not None]
    xp: Any = find_backend(known[0]) if known else None
    passed = flat(arrays) if compiled and known else arrays
    is_first = True
    for share in shares(data, world, 0):
        rows = check_batch("predict", share.batch, xp)
        if is_first and (world is None or not world.is_global):
            check_device("predict", arrays, share.batch, xp)
        is_first = False
        is_tail = isinstance(data, Arrays) and rows < data.size
        result = (one if is_tail and not tails else program)(passed, share.batch)
        _check(result, rows)
        yield result if world is None else world.whole(result, share.total)


def _check(result: Any, rows: int) -> None:
    for number, x in enumerate(tree.flatten(result)[0]):
        if find_backend(x) is None or not len(x.shape) or int(x.shape[0]) != rows:
            path = tree.paths(result)[number]
            got = f"shape {tuple(x.shape)}" if hasattr(x, "shape") else f"a {type(x).__name__}"
            at = f" at {path}" if path else ""
            raise ValueError(
                f"predict: needed results with one row for each of {rows} examples, got {got}{at}"
            )


def _joined(results: Iterator[Any]) -> Any:
    columns: list[list[Any]] = []
    form: Any = None
    for result in results:
        leaves, form = tree.flatten(result)
        columns = columns or [[] for _ in leaves]
        for column, x in zip(columns, leaves):
            column.append(x)
    joined = [c[0] if len(c) == 1 else _concat(c) for c in columns]
    return tree.unflatten(form, joined)


def _concat(arrays: list[Any]) -> Any:
    xp: Any = find_backend(arrays[0])
    return xp.concat(arrays)


def _written(results: Iterator[Any], path: Path, examples: int, world: World | None) -> Path:
    """The results in a file; rank 0 writes it, and it is complete when it has its name."""
    leads = world is None or not world.rank
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    memory: Any = None
    at = 0
    try:
        for result in results:
            leaves = tree.flatten(result)[0]
            if len(leaves) != 1:
                raise ValueError(
                    f"predict: needed one array as result to write it, got {len(leaves)}"
                )
            if not leads:
                continue
            rows = to_numpy(leaves[0])
            if memory is None:
                memory = host().open_rows(part, rows.dtype, (examples, *rows.shape[1:]))
            memory[at : at + len(rows)] = rows
            at += len(rows)
        if leads:
            memory.flush()
            os.replace(part, path)
    finally:
        if leads:
            part.unlink(missing_ok=True)
    if world is not None:
        world.barrier()
    return path
