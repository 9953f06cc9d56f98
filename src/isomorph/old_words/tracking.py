"""One tracked call of a module: the outputs of its submodules, the order of their calls, and a
comparison with expected outputs.

A frame belongs to one call, and the module copies of that call refer to it. So nested calls and
concurrent calls do not interfere, and a call that raises leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypedDict

from ..core import tree
from ..core.dispatch import find_backend
from ..modules.contents import called_with, copied, is_module, origin_of, set_slot, submodules

RTOL, ATOL = 1e-5, 1e-8  # used where the expectation gives no tolerances


class Recording(TypedDict, total=False):
    """The keywords of a recorded call of a module.

    `track_submod_rets` stores the outputs of submodules in the module's `submod_rets`,
    `track_submod_call_order` the tree of calls in its `submod_call_order`. `submod_depth` and
    `submods_to_track` (modules or key chains) choose submodules. `expected_submod_rets` is an
    earlier `submod_rets` to compare the outputs with.
    """

    track_submod_rets: bool
    submod_depth: int | None
    submods_to_track: Iterable[Any] | None
    track_submod_call_order: bool
    expected_submod_rets: Any


def recorded(module: Any, args: tuple, v: Any, kw: dict[str, Any]) -> Any:
    """Call a module with keywords of `Recording` among the others."""
    given: Any = {word: kw.pop(word) for word in [*kw] if word in Recording.__annotations__}
    frame = Frame(given)
    if not (frame.wants_rets or frame.wants_order):
        return module(*args, v=v, **kw)
    copy = copied(module, called_with(module, v), frame=frame, lent=v is not None)
    return frame.run(module, copy, args, kw)


class Frame:
    """Records the calls of submodules during one call."""

    def __init__(self, given: Recording):
        self.keeps_rets = given.get("track_submod_rets", False)
        self.wants_order = given.get("track_submod_call_order", False)
        self.expected = given.get("expected_submod_rets")
        self.wants_rets = self.keeps_rets or self.expected is not None
        self.depth = given.get("submod_depth")
        self.chosen: list[Any] | None = None
        chosen = given.get("submods_to_track")
        if chosen is not None:
            self.chosen = [chosen] if isinstance(chosen, str) else list(chosen)
        self.paths: dict[int, str] = {}  # id of a tracked copy: its key chain
        self.rets: dict[str, list[Any]] = {}
        self.calls: list[dict[str, Any]] = []  # the running calls, innermost last

    def run(self, module: Any, copy: Any, args: tuple, kw: dict[str, Any]) -> Any:
        """Call the copy, and store in the module what was recorded."""
        known = submodules(copy)
        chains = ["/".join(map(str, path)) for path, _, _ in known]
        chosen = self._tracked_chains(module, chains)
        for chain, (_, sub, level) in zip(chains, known):
            if (self.depth is None or level <= self.depth) and (chosen is None or chain in chosen):
                self.paths[id(sub)] = chain
        unknown = [] if self.expected is None else [p for p in self.expected if p not in chains]
        if unknown:
            raise KeyError(
                f"expected_submod_rets: needed key chains of submodules ({', '.join(chains)}), "
                f"got {', '.join(map(str, unknown))}"
            )
        top: dict[str, Any] = {}
        self.calls.append(top)
        out = copy.forward(*args, **kw)
        if self.expected is not None:
            compare(self.expected, self.rets)
        for name, wanted, seen in (
            ("submod_rets", self.keeps_rets, self.rets),
            ("submod_call_order", self.wants_order, top),
        ):
            if wanted:
                set_slot(module, name, seen)
        return out

    def _tracked_chains(self, module: Any, chains: list[str]) -> set[str] | None:
        """The key chains in `submods_to_track`, which has modules or key chains; None for all."""
        if self.chosen is None:
            return None
        below = [("/".join(map(str, path)), sub) for path, sub, _ in submodules(module)]
        tracked = set()
        for one in self.chosen:
            where = [
                chain
                for chain, sub in below
                if (origin_of(sub) is origin_of(one) if is_module(one) else chain == one)
            ]
            if not where:
                said = type(one).__name__ if is_module(one) else repr(one)
                raise ValueError(
                    f"submods_to_track: needed submodules of this module ({', '.join(chains)}), "
                    f"got {said}"
                )
            tracked.update(where)
        return tracked

    def enter(self, copy: Any, args: tuple, kw: dict[str, Any]) -> Any:
        """Call a submodule, and record it if it is tracked."""
        chain = self.paths.get(id(copy))
        if chain is None:
            return copy.forward(*args, **kw)
        inner: dict[str, Any] = {}
        self.calls.append(inner)
        try:
            out = copy.forward(*args, **kw)
        finally:
            self.calls.pop()
        if self.wants_order:
            above = self.calls[-1]
            times = sum(key.rpartition("_")[0] == chain for key in above)
            above[f"{chain}_{times}"] = inner or copy.v
        if self.wants_rets:
            self.rets.setdefault(chain, []).append(tree.map(_values, out))
        return out


def _values(x: Any) -> Any:
    """A NumPy copy of what a module returned."""
    backend = find_backend(x)
    if backend is None:
        return x
    try:
        return backend.values(x)
    except (RuntimeError, TypeError, ValueError, NotImplementedError) as error:
        raise RuntimeError(
            "track_submod_rets: needed arrays with values, got a traced array without values; "
            "call the module outside jit, or track only the call order"
        ) from error


def compare(expected: Any, rets: dict[str, list[Any]]) -> None:
    """Raise if a submodule did not return what was expected."""
    for chain, entry in expected.items():
        rtol, atol = RTOL, ATOL
        if isinstance(entry, dict):
            rtol, atol = entry.get("rtol", RTOL), entry.get("atol", ATOL)
            entry = entry["val"]
        wanted = entry if isinstance(entry, list) else [entry]
        seen = rets.get(chain, [])
        if len(seen) != len(wanted):
            raise ValueError(
                f"expected_submod_rets: {chain}: needed {len(wanted)} calls, got {len(seen)}"
            )
        for call, (got, want) in enumerate(zip(seen, wanted)):
            _compare(chain, call, got, tree.map(_values, want), rtol, atol)


def _compare(chain: str, call: int, got: Any, want: Any, rtol: float, atol: float) -> None:
    where = f"expected_submod_rets: {chain}, call {call}"
    (mine, form), (theirs, other) = tree.flatten(got), tree.flatten(want)
    if form != other:
        raise ValueError(f"{where}: needed the structure {other}, got {form}")
    for x, y in zip(mine, theirs):
        seen, wanted = (f"shape {z.shape}" if hasattr(z, "shape") else "a number" for z in (x, y))
        if seen != wanted:
            raise ValueError(f"{where}: needed {wanted}, got {seen}")
        close, error = closeness(x, y, rtol, atol)
        if not close:
            raise ValueError(
                f"{where}: the largest error is {error:.6g}, more than atol {atol:g} and rtol "
                f"{rtol:g} allow"
            )


def closeness(x: Any, y: Any, rtol: float, atol: float) -> tuple[bool, float]:
    """Whether two NumPy arrays, or numbers, are equal within the tolerances, and their largest
    difference. NaN equals only NaN.
    """
    backend = find_backend(x)
    if backend is None or backend.isdtype(getattr(x, "dtype", None), "bool"):
        return bool((x == y) if backend is None else backend.all(x == y)), float("nan")
    same = (x == y) | ((x != x) & (y != y))
    off = backend.where(same, 0.0, abs(x - y))
    allowed = same | (off <= atol + rtol * abs(y))
    return bool(backend.all(allowed)), float(backend.max(off)) if off.size else 0.0
