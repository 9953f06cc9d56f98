"""Four bugs of torch's compiler, repaired while a program is compiled here.

Inductor's C++ programs (seen in torch 2.13, the first fixed in 2.15) are silently wrong, also in
`torch.compile`:

* They may read an array before it is written. The compiler changes the loops of two operations
  to fuse them. One of them then no longer waits for a third operation that writes its input
  (`index_put`, `scatter_add`, `diagonal_scatter`, the gradient of a gather; a write in place).
* They may overwrite values that are still read. A write into a copy becomes a write in place if
  nothing seems to read the old values. Complex arrays are computed by torch's own kernels, and
  something may still read them (the second derivative of a product of two `rfft`). Programs with
  complex arrays keep their copies.
* The same happens to an expanded array, whose rows share memory: every row is written to the same
  memory (`index_put`, and operations that become one, like `index_add`; `vmap` of
  `iso.at(zeros)`). Such an array is copied first.
* If an operator that is not torch's own writes into an array, what was computed from its old values
  may read the new ones: it is computed as late as possible, and the compiler notices too late that
  it must come first.

Canary tests tell when a version of torch no longer has such a bug
(`tests/core/test_compiled_writes.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any

import torch

from ...version import __version__
from . import private

# Programs in torch's disk cache are kept apart from those compiled without the repairs.
TAG = (
    "isomorph: what reads waits for what writes, complex and expanded arrays are copied, "
    "arguments are checked before, what operators write is read before"
)
PARTS = ("recompute_size_and_body", "reinplace_inplaceable_ops", "create_kernel")


@contextmanager
def repaired(tag: str = "") -> Iterator[None]:
    """Repair all bugs in programs that are compiled inside the block. An operation whose loops are
    changed still waits for the same writes as before. Programs with complex arrays write nothing in
    place. An expanded array is copied before something is written into it. What reads an array is
    computed before an operator writes into it. Programs compiled with another `tag` are not taken
    from torch's disk cache.
    """
    for word in PARTS:
        if not private.has(word):
            getattr(private, word)()  # raises the error
    originals = {word: getattr(*part) for word, part in parts().items()}
    create = originals["create_kernel"].__func__

    def recompute(self: Any, *args: Any, **kw: Any) -> None:
        originals["recompute_size_and_body"](self, *args, **kw)
        self.set_read_writes(self.read_writes.rename(self.mutation_renames))

    def rewrite(*args: Any) -> None:  # the graph; since torch 2.9 another argument comes first
        graph = args[-1]
        _unfold(graph)
        if not any(_is_complex(node) for node in graph.nodes):
            originals["reinplace_inplaceable_ops"](*args)

    def created(cls: Any, kernel: Any, *args: Any, **kw: Any) -> Any:
        for x in _written(kernel, args, kw):
            x.realize()
            private.virtual.graph.mark_buffer_mutated(x.get_name())  # computes what reads it
        return create(cls, kernel, *args, **kw)

    instead = recompute, rewrite, classmethod(created)
    config: Any = import_module("torch.compiler.config")
    with ExitStack() as stack:
        for word, new in zip(PARTS, instead):
            stack.enter_context(replaced(*parts()[word], new))
        stack.enter_context(
            config.patch(cache_key_tag=f"{config.cache_key_tag} {TAG} {__version__} {tag}")
        )
        yield


def parts() -> dict[str, tuple[Any, str]]:
    """The parts of the compiler that are repaired: owner and name of each. Importing them is
    slow.
    """
    return {word: owner_of(word) for word in PARTS}


def owner_of(word: str) -> tuple[Any, str]:
    """The module or class that has a private name, and its name there."""
    name = private.NAMES[word]
    *owners, last = name.attribute.split(".")
    owner = import_module(name.module)
    for part in owners:
        owner = getattr(owner, part)
    return owner, last


@contextmanager
def replaced(owner: Any, name: str, new: Any) -> Iterator[None]:
    """An attribute of a module or class, replaced inside the block."""
    old = vars(owner)[name]
    setattr(owner, name, new)
    try:
        yield
    finally:
        setattr(owner, name, old)


def _written(kernel: Any, args: tuple, kw: dict[str, Any]) -> Iterator[Any]:
    """The arrays that an operator overwrites."""
    schema = getattr(kernel, "_schema", None)
    if schema is None or not schema.is_mutable:
        return
    for i, info in enumerate(schema.arguments):
        if info.alias_info is not None and info.alias_info.is_write:
            found = args[i] if i < len(args) else kw.get(info.name)
            for x in found if isinstance(found, list | tuple) else [found]:
                if hasattr(x, "realize"):
                    yield x


def _unfold(graph: torch.fx.Graph) -> None:
    """Copy expanded arrays before something is written into them."""
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
