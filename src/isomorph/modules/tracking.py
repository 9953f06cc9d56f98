"""One watched call of a module: what the modules below returned, in which order they were called,
and whether that is what was expected.

A frame belongs to one call. The copies of modules that the call computes with carry it, so nested
calls and calls at the same time have nothing in common, and what raises leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import tree
from ..dispatch import find_backend
from .holding import origin_of
from .skeleton import set_slot
from .walk import is_module, submodules

RTOL, ATOL = 1e-5, 1e-8  # what counts as equal where an expectation says nothing else


class Frame:
    """What a call reports to."""

    def __init__(
        self,
        rets: bool,
        depth: int | None,
        chosen: Iterable[Any] | None,
        order: bool,
        expected: Any,
    ):
        self.wants_rets, self.wants_order = rets or expected is not None, order
        self.keeps_rets, self.expected = rets, expected
        self.depth = depth
        self.chosen: list[Any] | None = None
        if chosen is not None:
            self.chosen = [chosen] if isinstance(chosen, str) else list(chosen)
        self.paths: dict[int, str] = {}  # of the copies the call computes with
        self.rets: dict[str, list[Any]] = {}
        self.calls: list[dict[str, Any]] = []  # the calls going on, the innermost last

    def run(self, module: Any, copy: Any, args: tuple, kw: dict[str, Any]) -> Any:
        """Call the copy, and tell the module what was seen."""
        known = submodules(copy)
        chains = ["/".join(map(str, path)) for path, _, _ in known]
        kept = self._kept(module, chains)
        for chain, (_, sub, level) in zip(chains, known):
            if (self.depth is None or level <= self.depth) and (kept is None or chain in kept):
                self.paths[id(sub)] = chain
        unknown = [] if self.expected is None else [p for p in self.expected if p not in chains]
        if unknown:
            raise KeyError(
                f"expected_submod_rets: needed key chains of {', '.join(chains)}, "
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

    def _kept(self, module: Any, chains: list[str]) -> set[str] | None:
        """The key chains of the modules asked for, given as modules or as key chains."""
        if self.chosen is None:
            return None
        below = [("/".join(map(str, path)), sub) for path, sub, _ in submodules(module)]
        kept = set()
        for one in self.chosen:
            where = [
                chain
                for chain, sub in below
                if (origin_of(sub) is origin_of(one) if is_module(one) else chain == one)
            ]
            if not where:
                said = type(one).__name__ if is_module(one) else repr(one)
                raise ValueError(
                    f"submods_to_track: needed modules below this one, {', '.join(chains)}, "
                    f"got {said}"
                )
            kept.update(where)
        return kept

    def enter(self, copy: Any, args: tuple, kw: dict[str, Any]) -> Any:
        """One call of a module below."""
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
            "track_submod_rets: needed values, got an array that has none yet, as in compiled "
            "code; call the module outside jit, or track the call order only"
        ) from error


def compare(expected: Any, rets: dict[str, list[Any]]) -> None:
    """Raise where a module returned something else than expected."""
    for chain, entry in expected.items():
        rtol, atol = RTOL, ATOL
        if isinstance(entry, dict):
            rtol, atol = entry.get("rtol", RTOL), entry.get("atol", ATOL)
            entry = entry["val"]
        wanted = entry if isinstance(entry, list) else [entry]
        seen = rets.get(chain, [])
        if len(seen) != len(wanted):
            raise ValueError(
                f"expected_submod_rets: {chain} was called {len(seen)} times, "
                f"{len(wanted)} returns were expected"
            )
        for call, (got, want) in enumerate(zip(seen, wanted)):
            _compare(chain, call, got, tree.map(_values, want), rtol, atol)


def _compare(chain: str, call: int, got: Any, want: Any, rtol: float, atol: float) -> None:
    where = f"expected_submod_rets: {chain}, call {call}"
    (mine, form), (theirs, other) = tree.flatten(got), tree.flatten(want)
    if form != other:
        raise ValueError(f"{where}: needed a nest like {other}, got {form}")
    for x, y in zip(mine, theirs):
        if getattr(x, "shape", None) != getattr(y, "shape", None):
            raise ValueError(f"{where}: needed shape {y.shape}, got {x.shape}")
        close, error = closeness(x, y, rtol, atol)
        if not close:
            raise ValueError(
                f"{where}: the largest error is {error:.6g}, more than atol {atol:g} and rtol "
                f"{rtol:g} allow"
            )


def closeness(x: Any, y: Any, rtol: float, atol: float) -> tuple[bool, float]:
    """Whether two arrays of NumPy, or numbers, are equal to within tolerances, and the largest
    difference; NaN equals NaN only.
    """
    backend = find_backend(x)
    if backend is None or backend.isdtype(getattr(x, "dtype", None), "bool"):
        return bool((x == y) if backend is None else backend.all(x == y)), float("nan")
    same = (x == y) | ((x != x) & (y != y))
    off = backend.where(same, 0.0, abs(x - y))
    allowed = same | (off <= atol + rtol * abs(y))
    return bool(backend.all(allowed)), float(backend.max(off)) if off.size else 0.0
