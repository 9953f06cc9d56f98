"""Which values of a program are computed again instead of kept in memory until they are needed.

`torch.compile` of a model decides that when it divides the program into a forward and a backward
pass. A program of ours holds the whole step and is not divided. Here, of the values that exist
while most memory is in use, those that are needed again later and cheap are computed a second
time, just before they are needed: elementwise operations, and the last part of `layer_norm`. They
are computed from values that are still there at that time, so nothing else lives longer for it.
"""

from __future__ import annotations

from itertools import accumulate
from operator import getitem
from typing import Any

import torch

from .repairs import memory, written

SMALL = 2**16  # bytes; what is smaller is kept
PART = 200  # so is what is smaller than this part of all memory in use
WORTH = 0.95  # of the memory in use: if more of it is still needed, nothing is changed
DEPTH = 4  # so many operations in a row are computed again for one value
aten = torch.ops.aten
COSTLY = ("gamma", "zeta", "special", "erfinv", "igam", "pow.Tensor_Tensor")  # words in their names
NORM = aten.native_layer_norm.default
# Operations that make no array of their own.
VIEWS = {
    aten.alias.default, aten.detach.default, aten.expand.default, aten.permute.default,
    aten.select.int, aten.slice.Tensor, aten.squeeze.dim, aten.t.default, aten.transpose.int,
    aten.unsqueeze.default, aten.view.default, aten._unsafe_view.default,
}  # fmt: skip


def save_memory(graph: torch.fx.Graph) -> None:
    """Let a program on a CPU compute values again, as said above, if all sizes are known and no
    array is sparse.
    """
    values = [node.meta.get("val") for node in graph.nodes]
    for x in values:
        if isinstance(x, torch.Tensor) and (
            not x.is_cpu
            or x.layout is not torch.strided
            or any(isinstance(n, torch.SymInt) for n in x.shape)
        ):
            return
    trial = torch.fx.Graph()
    trial.output(trial.graph_copy(graph, {}))
    before = max(Lives(graph).held())
    _shorten(trial)
    if max(Lives(trial).held()) < WORTH * before:  # else it would only take longer to compile
        _shorten(graph)


def _shorten(graph: torch.fx.Graph) -> None:
    lives = Lives(graph)
    for node in reversed(list(graph.nodes)):  # what is computed from others comes before them
        lives.shorten(node)


class Lives:
    """How long the arrays of a program are needed, by their memory."""

    def __init__(self, graph: torch.fx.Graph):
        self.graph = graph
        self.order: dict[torch.fx.Node, int] = {n: i for i, n in enumerate(graph.nodes)}
        self.family: dict[int, list[torch.fx.Node]] = {}  # the node that makes it, and its views
        self.ends: dict[int, int] = {}  # when it is needed for the last time
        self.written: dict[int, int] = {}  # when it is overwritten for the first time
        for node, i in self.order.items():
            place = memory(node)
            if place is None:
                continue
            self.family.setdefault(place, []).append(node)
            last = max((self.order[user] for user in node.users), default=i)
            self.ends[place] = max(self.ends.get(place, 0), last)
        for node, i in self.order.items():
            for x in written(node.target, node.args, node.kwargs):
                if isinstance(x, torch.fx.Node) and (place := memory(x)) is not None:
                    self.written.setdefault(place, i)
        held = self.held()
        self.fullest = held.index(max(held))  # when most memory is in use
        self.least = max(SMALL, max(held) // PART)

    def held(self) -> list[int]:
        """The bytes of all arrays that the program has made and still needs, at each step."""
        more = [0] * (len(self.order) + 2)
        for place, nodes in self.family.items():
            if nodes[0].op == "call_function":
                more[self.order[nodes[0]]] += size(nodes[0])
                more[self.ends[place] + 1] -= size(nodes[0])
        return list(accumulate(more))

    def shorten(self, node: torch.fx.Node) -> None:
        """Compute the value of a node again for those who need it after the fullest moment."""
        place = memory(node)
        if place is None or size(node) < self.least or self.family[place][0] is not node:
            return
        if not self.order[node] < self.fullest < self.ends[place]:
            return
        family = set(self.family[place])
        late = [
            (user, x)
            for x in self.family[place]
            for user in x.users
            if self.order[user] > self.fullest and user not in family
        ]
        if not late or place in self.written or any(user.op == "output" for user, _ in late):
            return
        first = min(user for user, _ in late)  # in the order of the program
        when = self.order[first]
        if not all(self._can_make(x, when, place, DEPTH) for _, x in late):
            return
        made: dict[torch.fx.Node, torch.fx.Node] = {}
        with self.graph.inserting_before(first):
            for user, x in late:
                user.replace_input_with(x, self._make(x, when, place, made))
        for x in self.family[place][:0:-1]:  # views that nobody needs any more
            if not x.users:
                self.graph.erase_node(x)
                self.family[place].remove(x)
        early = [self.order[u] for x in family for u in x.users if u not in family]
        self.ends[place] = max(early, default=self.order[node])

    def _is_there(self, node: torch.fx.Node, when: int, without: int) -> bool:
        """Whether the value of a node is in memory then, and is what it was."""
        place = memory(node)
        if place is None or place == without:
            return False
        is_kept = node.op in ("placeholder", "get_attr") or self.ends[place] >= when
        is_old = self.written.get(place, when + 1) > when
        return is_kept and is_old and self.order[node] < when

    def _can_make(self, node: torch.fx.Node, when: int, without: int, depth: int) -> bool:
        if self._is_there(node, when, without):
            return True
        if depth == 0 or node.op != "call_function" or memory(node) in self.written:
            return False
        inputs = inputs_of(node)
        # a view is free
        deeper = depth if node.target in VIEWS else depth - 1
        return inputs is not None and all(self._can_make(x, when, without, deeper) for x in inputs)

    def _make(self, node: torch.fx.Node, when: int, without: int, made: dict) -> torch.fx.Node:
        if self._is_there(node, when, without):
            return node
        if node not in made:
            again = {x: self._make(x, when, without, made) for x in inputs_of(node) or ()}
            run = self._normalized if is_norm(node) else self._again
            made[node] = run(node, again, when)
        return made[node]

    def _again(self, node: torch.fx.Node, again: dict, when: int) -> torch.fx.Node:
        args, kw = torch.fx.map_arg((node.args, node.kwargs), again.__getitem__)
        return self._call(node.target, when, *args, **kw)

    def _normalized(self, node: torch.fx.Node, again: dict, when: int) -> torch.fx.Node:
        """The result of `layer_norm` from its input, mean and spread."""
        norm: Any = node.args[0]
        x, _, scale, shift, _ = norm.args
        mean, spread = statistics(node)
        y = self._call(aten.sub.Tensor, when, again[x], again[mean])
        y = self._call(aten.mul.Tensor, when, y, again[spread])
        if scale is not None:
            y = self._call(aten.mul.Tensor, when, y, again[scale])
        return y if shift is None else self._call(aten.add.Tensor, when, y, again[shift])

    def _call(self, target: Any, when: int, *args: Any, **kw: Any) -> torch.fx.Node:
        node = self.graph.call_function(target, args, kw)
        values, named = torch.fx.map_arg((args, kw), lambda x: x.meta["val"])
        node.meta["val"] = target(*values, **named)
        self.order[node] = when
        place: Any = memory(node)
        self.family.setdefault(place, []).append(node)
        self.ends[place] = max(self.ends.get(place, 0), when)
        return node


def inputs_of(node: torch.fx.Node) -> list[torch.fx.Node] | None:
    """The arrays from which a value can be computed again; None if that is not cheap."""
    if is_norm(node):
        norm: Any = node.args[0]
        found = statistics(node)
        wide = [x for x in (norm.args[0], norm.args[2], norm.args[3]) if x is not None]
        kinds = {x.meta["val"].dtype for x in [*wide, *found]}
        # the layer returns its rows one after another in memory, whatever their order in `x` is
        same = len(kinds) == 1 and norm.args[0].meta["val"].is_contiguous()
        return [*wide, *found] if len(found) == 2 and same else None
    tags = getattr(node.target, "tags", ())
    cheap = torch.Tag.pointwise in tags and torch.Tag.nondeterministic_seeded not in tags
    if node.target in VIEWS or node.target is aten._to_copy.default or cheap:
        return None if any(word in str(node.target) for word in COSTLY) else node.all_input_nodes
    return None


def is_norm(node: torch.fx.Node) -> bool:
    """Whether a node is the first result of `layer_norm`."""
    of: Any = node.args[0] if node.target is getitem and node.args[1] == 0 else None
    return of is not None and of.target is NORM


def statistics(node: torch.fx.Node) -> list[torch.fx.Node]:
    """The other two results of `layer_norm`, mean and inverse deviation, if they are used."""
    of: Any = node.args[0]
    found = {y.args[1]: y for y in of.users if y.target is getitem}
    return [found[i] for i in (1, 2) if i in found]


def size(node: torch.fx.Node) -> int:
    """The bytes of an array."""
    value = node.meta["val"]
    return value.numel() * value.element_size()
