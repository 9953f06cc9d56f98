"""Eight bugs of torch's compiler, repaired while a program is compiled here.

Inductor's programs are silently wrong, also in `torch.compile`. `REPAIRS` has a row for each bug;
its report in `docs/upstream` has a short program that shows it, and why it happens. Canary tests
tell when a version of torch no longer has it (`tests/compile/test_compiled_writes.py`); then its
row, its repair and its report go.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from hashlib import sha256
from importlib import import_module
from operator import getitem
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ....version import __version__
from .. import private


class Repair(NamedTuple):
    """A bug of Inductor, and what is done about it."""

    bug: str
    versions: str  # of torch, in which it was seen
    report: str  # in `docs/upstream`; '' where no short program shows it
    done: str


REPAIRS = (
    Repair(
        "an array is read before a third operation has written it", "2.13, fixed in 2.15",
        "inductor-reads-before-it-is-written",
        "an operation whose loops are changed still waits for the same writes",
    ),
    Repair(
        "complex arrays, which torch's own kernels compute, are overwritten while they are read "
        "(the second derivative of a product of two rfft)", "2.13", "",
        "programs with complex arrays write nothing in place",
    ),
    Repair(
        "all rows of an expanded array are written into one", "2.13",
        "inductor-writes-rows-of-an-expanded-array", "such an array is copied first",
    ),
    Repair(
        "an array is read after an operator that is not torch's own has overwritten it", "2.13",
        "inductor-reads-after-an-operator-has-written",
        "what reads an array is computed before an operator writes into it",
    ),
    Repair(
        "a write in place reads what it has already overwritten", "2.13",
        "inductor-overwrites-what-a-write-reads",
        "what an operation reads from memory that it may overwrite is copied first",
    ),
    Repair(
        "a result is written over an argument, and another result over it", "2.13",
        "inductor-loses-a-result-that-is-overwritten", "the result keeps its copy",
    ),
    Repair(
        "on a GPU, a part of a kernel (`torch._foreach_add`) reads what another part computes",
        "2.11 to 2.13", "inductor-on-a-gpu-reads-what-another-part-computes",
        "what two parts read is computed in another kernel, before",
    ),
    Repair(
        "what goes into a branch or a loop lies otherwise in memory than its body was compiled for "
        "(the gradient of `solve`); torch.compile raises there", "2.13", "",
        "it is copied to that layout, and bodies check what they are given",
    ),
)  # fmt: skip
PARTS = ("recompute_size_and_body", "reinplace_inplaceable_ops", "call_function", "can_fuse")

# Operations that set a part of an array, of which the compiler may make writes in place.
SETTING = {
    getattr(torch.ops.aten, name).default
    for name in (
        "index_put", "_unsafe_index_put", "slice_scatter", "select_scatter", "diagonal_scatter",
        "as_strided_scatter", "copy_",
    )
}  # fmt: skip
OPERATOR = torch.ops.higher_order.auto_functionalized_v2  # one that is not torch's own
BODIES = [getattr(torch.ops.higher_order, name) for name in ("cond", "while_loop")]
ORDERS = ("StarDep", "WeakDep")  # what must come first though it is not read; torch 2.10 forgets it
BASES = "_all_bases"  # the arrays it writes into
COPY = torch.ops.aten.copy_.default


@contextmanager
def repaired(tag: str = "") -> Iterator[None]:
    """Repair all bugs in programs compiled inside the block. Those compiled with another `tag` are
    not taken from torch's disk cache.
    """
    for word in PARTS:
        if not private.has(word):
            getattr(private, word)()  # raises the error
    originals = {word: getattr(*part) for word, part in parts().items()}

    def recompute(self: Any, *args: Any, **kw: Any) -> None:
        reads = self.read_writes.reads
        kept = type(reads)(read for read in reads if type(read).__name__ in ORDERS)
        originals["recompute_size_and_body"](self, *args, **kw)
        waits = self.read_writes.with_read(kept) if kept else self.read_writes
        self.set_read_writes(waits.rename(self.mutation_renames))

    def rewrite(*args: Any) -> None:  # the graph; since torch 2.9 another argument comes first
        graph = args[-1]
        _unfold(graph)
        _part(graph)
        if not any(_is_complex(node) for node in graph.nodes):
            originals["reinplace_inplaceable_ops"](*args)

    def lowered(self: Any, target: Any, args: Any, kw: Any) -> Any:
        for x in written(target, args, kw):
            if hasattr(x, "realize"):
                x.realize()
                self.mark_buffer_mutated(x.get_name())  # computes what reads it
        if target in BODIES:
            args = laid_out(args, self.current_node.args)
        return originals["call_function"](self, target, args, kw)

    def joined(cls: Any, first: Any, second: Any) -> bool:
        return _is_apart(first, second) and originals["can_fuse"](first, second)

    def once(self: Any) -> None:  # torch keeps one handler, and sets it up again for each operation
        if not vars(self):
            private.dtype_handler(self)

    instead = recompute, rewrite, lowered, classmethod(joined)
    config: Any = import_module("torch.compiler.config")
    with ExitStack() as stack:
        for word, new in zip(PARTS, instead):
            stack.enter_context(replaced(*parts()[word], new))
        if private.has("dtype_handler"):
            stack.enter_context(replaced(*owner_of("dtype_handler"), once))
        words = config.cache_key_tag, "isomorph", __version__, _digest(), tag
        stack.enter_context(config.patch(cache_key_tag=" ".join(words)))
        yield


@cache
def _digest() -> str:
    """What changes with this file: programs that were compiled with other repairs are not taken
    from torch's disk cache.
    """
    return sha256(Path(__file__).read_bytes()).hexdigest()


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


def laid_out(operands: Any, nodes: Any) -> Any:
    """The operands of a branch or a loop, with the memory layouts that its body expects."""
    if isinstance(operands, list | tuple):
        return type(operands)(map(laid_out, operands, nodes))
    value = nodes.meta.get("val") if isinstance(nodes, torch.fx.Node) else None
    if not isinstance(value, torch.Tensor):
        return operands
    return private.ExternKernel.require_exact_strides(operands, value.stride())


def _is_apart(first: Any, second: Any) -> bool:
    """Whether each part of a kernel, joined from these two, reads only what it computes itself."""
    firsts, seconds = (x.snodes if x.is_foreach() else [x] for x in (first, second))
    reads = [{read.name for read in y.read_writes.reads} for y in seconds]
    waits = [
        (i, j)
        for i, x in enumerate(firsts)
        for j, names in enumerate(reads)
        if any(made.get_name() in names for made in x.get_outputs())
    ]
    if first.is_foreach() and second.is_foreach():
        return all(i == j for i, j in waits)  # they are joined in pairs
    return len(waits) < 2


# Their schemas do not say that they write the running mean and variance, their arguments 3 and 4.
UNTOLD = {f"aten::{kind}_batch_norm" for kind in ("native", "cudnn", "miopen")}


def written(target: Any, args: tuple, kw: Any) -> Iterator[Any]:
    """The arguments that an operation of a program overwrites."""
    schema = getattr(target, "_schema", None)
    if schema is None:
        return
    if schema.name in UNTOLD:
        yield from args[3:5]
    if not schema.is_mutable:
        return
    for i, info in enumerate(schema.arguments):
        if info.alias_info is not None and info.alias_info.is_write:
            found = args[i] if i < len(args) else kw.get(info.name)
            yield from found if isinstance(found, list | tuple) else [found]


def _part(graph: torch.fx.Graph) -> None:
    """Copy what an operation reads from memory that it may be made to write into, and what it may
    write into if something else is written there before the result was used.
    """
    order = {node: i for i, node in enumerate(graph.nodes)}
    ends = {n.args[0]: n for n in graph.nodes if n.target is COPY}  # the last writes into arguments
    for node in list(graph.nodes):
        targets = _targets(node)
        if not targets:
            continue
        apart = partial(_apart, graph, node, set(map(memory, targets)) - {None})
        lost = {
            x
            for i, x in enumerate(targets)
            if x in ends and node is not ends[x] and _is_lost(order, node, i, ends[x])
        }
        safe = lambda x, node=node, lost=lost: _copied(graph, node, x) if x in lost else x
        if node.target is OPERATOR:
            other = {k: torch.fx.map_arg(v, apart) for k, v in node.kwargs.items() if k != BASES}
            node.kwargs = {**other, BASES: torch.fx.map_arg(node.kwargs[BASES], safe)}
        else:
            rest = torch.fx.map_arg(node.args[1:], apart)
            node.args = (torch.fx.map_arg(node.args[0], safe), *rest)


def _is_lost(order: dict, node: torch.fx.Node, i: int, end: torch.fx.Node) -> bool:
    """Whether the result for the target with number `i` of `node` is used after `end`, which
    writes something else to the same place.
    """
    found = _results(node, i)
    for x in found:
        if x is end.args[1]:
            return False
        found += [y for y in x.users if y not in found and _is_part(x, y)]
    return any(order[y] > order[end] for x in found for y in x.users)


def _results(node: torch.fx.Node, i: int) -> list[torch.fx.Node]:
    """What `node` computes from the target with number `i`."""
    if node.target in SETTING:
        return [node]
    operator: Any = node.args[0]
    first = max(1, len(operator._schema.returns)) if node.target is OPERATOR else 0
    return [y for y in node.users if y.target is getitem and y.args[1] == first + i]


def _is_part(x: torch.fx.Node, y: torch.fx.Node) -> bool:
    """Whether `y` may be in the memory of `x`: a view of it, or written into it."""
    return x in _targets(y) or memory(x) == memory(y)


def _targets(node: torch.fx.Node) -> list[torch.fx.Node]:
    """The arrays that the compiler may let an operation of a program write into."""
    found: list[torch.fx.Node] = []
    if node.target is OPERATOR:
        torch.fx.map_arg(node.kwargs[BASES], found.append)
    elif node.target in SETTING or getattr(node.target, "__name__", "").startswith("_foreach_"):
        torch.fx.map_arg(node.args[:1], found.append)
    return found


def _apart(graph: torch.fx.Graph, node: Any, taken: set[int | None], x: torch.fx.Node) -> Any:
    return _copied(graph, node, x) if memory(x) in taken else x


def memory(node: torch.fx.Node) -> int | None:
    """What is equal for arrays of a program that share memory."""
    value = node.meta.get("val")
    return private.storage_of(value) if isinstance(value, torch.Tensor) else None


def _copied(graph: torch.fx.Graph, node: torch.fx.Node, x: torch.fx.Node, **kw: Any) -> Any:
    """A copy of `x`, made before `node`."""
    with graph.inserting_before(node):
        copy = graph.call_function(torch.ops.aten.clone.default, (x,), kw)
    copy.meta["val"] = x.meta["val"].clone(**kw)
    return copy


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
            node.args = (_copied(graph, node, x, **form), *rest)


def _is_complex(node: torch.fx.Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.is_complex()
