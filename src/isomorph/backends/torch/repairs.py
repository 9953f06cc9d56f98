"""Three errors of torch's compiler, repaired while a program is compiled here.

Inductor's C++ programs (seen in torch 2.13, the first gone in 2.15) are wrong without a word, in
`torch.compile` too:

* They may read an array before it is written. Where the loops of two operations are made alike to
  be fused, the one that reads forgets that what it reads was changed by a third (`index_put`,
  `scatter_add`, `diagonal_scatter`, the gradient of a gather; a write in place).
* Writes into copies are made writes in place where nobody reads what was there before; among
  complex arrays, which are computed by kernels of torch's own, somebody may (the second derivative
  of a product of two `rfft`). Programs with complex arrays keep their copies.
* So are writes into an array that is expanded, one row that stands for many: every row is written
  to the same memory (`index_put`, and what becomes one, as `index_add`; `vmap` of `iso.at(zeros)`).
  Such an array is copied first.

Canaries tell when a version of torch has no such error any more
(`tests/core/test_compiled_writes.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import torch

from . import private

# Programs that torch keeps on disk are told apart from those it compiled without the repairs.
TAG = "isomorph: what reads waits for what writes, complex and expanded arrays are copied"


@contextmanager
def repaired() -> Iterator[None]:
    """While this lasts, an operation whose loops are changed still waits for the writes that it
    waited for before, programs with complex arrays write nothing in place, and nothing is written
    into an expanded array.
    """
    for word in ("recompute_size_and_body", "reinplace_inplaceable_ops"):
        if not private.has(word):
            getattr(private, word)()  # says so
    node, passes = parts()
    recompute_size, reinplace = node.recompute_size_and_body, passes.reinplace_inplaceable_ops

    def recompute(self: Any, *args: Any, **kw: Any) -> None:
        recompute_size(self, *args, **kw)
        self.set_read_writes(self.read_writes.rename(self.mutation_renames))

    def rewrite(*args: Any) -> None:  # the graph; from torch 2.9 on another comes before it
        graph = args[-1]
        _unfold(graph)
        if not any(_is_complex(node) for node in graph.nodes):
            reinplace(*args)

    node.recompute_size_and_body, passes.reinplace_inplaceable_ops = recompute, rewrite
    config: Any = import_module("torch.compiler.config")
    try:
        with config.patch(cache_key_tag=f"{config.cache_key_tag} {TAG}"):
            yield
    finally:
        node.recompute_size_and_body, passes.reinplace_inplaceable_ops = recompute_size, reinplace


def parts() -> tuple[Any, Any]:
    """What is repaired: a class and a module of the compiler, which take long to load."""
    recompute, reinplace = private.NAMES["recompute_size_and_body"], "reinplace_inplaceable_ops"
    node = import_module(recompute.module).SchedulerNode
    return node, import_module(private.NAMES[reinplace].module)


def _unfold(graph: torch.fx.Graph) -> None:
    """Have expanded arrays copied before something is written into them."""
    aten = torch.ops.aten
    form: Any = {"memory_format": torch.contiguous_format}
    for node in list(graph.nodes):
        if node.target not in (aten.index_put.default, aten._unsafe_index_put.default):
            continue
        x, *rest = node.args
        value = x.meta.get("val")
        if any(n > 1 and step == 0 for n, step in zip(value.shape, value.stride())):
            with graph.inserting_before(node):
                copy = graph.call_function(aten.clone.default, (x,), form)
            copy.meta["val"] = value.clone(**form)
            node.args = (copy, *rest)


def _is_complex(node: torch.fx.Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.is_complex()
