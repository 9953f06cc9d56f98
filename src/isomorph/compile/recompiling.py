"""Why a function is compiled: a line in the log for each program, with what is new about it.

The lines go to the logger `isomorph` at level DEBUG, which is off unless it is asked for. Calls of
compiled programs do not come here. What is remembered of a program are words: no arrays are held.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from functools import partial
from inspect import Parameter, signature
from types import FunctionType
from typing import Any

from ..core import tree
from ..core.code_readers import EMPTY
from ..core.default_backend import HOME
from ..core.dispatch import NUMBERS, dtype_of, find_backend
from ..core.gradient_mode import is_on
from .slow_compilation import name_of

LOG = logging.getLogger("isomorph")
MADE: Counter[Any] = Counter()  # compiled functions, by backend and by what `_place` tells apart
REMEMBERED = 64  # programs of one function; more are a fault of the caller, which is told by then
SHOWN = 4  # differences in one line


class Reasons:
    """What decided the programs of one compiled function."""

    def __init__(self, func: Callable[..., Any]):
        self.func, self.count = func, 0
        self.programs: dict[str, list[tuple[dict[str, str], Any]]] = {}  # by backend

    def tell(self, backend: str, fixed: tuple, args: tuple, kw: dict[str, Any]) -> None:
        """After the first call of a program: say why it was compiled."""
        facts, form = self._facts(fixed, args, kw), tree.flatten_whole((args, kw))[1]
        before = self.programs.setdefault(backend, [])
        self.count += 1
        others = 0
        if not before:
            place = backend, _place(self.func, set())
            others = MADE[place]
            MADE[place] += 1
        if LOG.isEnabledFor(logging.DEBUG):
            why = self._why(others, before, facts, form)
            LOG.debug("isomorph: compiled %s for %s: %s", name_of(self.func), backend, why)
        before.append((facts, form))
        del before[:-REMEMBERED]

    def _why(self, others: int, before: list, facts: dict[str, str], form: Any) -> str:
        if not before:
            times = "once" if others == 1 else f"{others} times"
            told = f"; iso.jit was called {times} before for the same code: call it once"
            return "first program of this iso.jit" + (told if others else "")
        old, old_form = min(reversed(before), key=lambda program: _distance(program[0], facts))
        found = _differences(old, facts)
        if not found and old_form != form:
            found = ["a module has other settings, such as train or eval, or another structure"]
        if not found:
            found = [
                "same shapes and dtypes: another device, layout, requires_grad, weak dtype or "
                "setting of the framework"
            ]
        more = len(found) - SHOWN
        listed = "; ".join(found[:SHOWN]) + (f"; and {more} more" if more > 0 else "")
        return f"program {self.count} of this iso.jit: {listed}"

    def _facts(self, fixed: tuple, args: tuple, kw: dict[str, Any]) -> dict[str, str]:
        """What decides a program, by name."""
        full: list[Any] = list(args)
        for place, _, x in fixed:
            if isinstance(place, int):
                full.insert(place, Static(x))
        kw = {**kw, **{place: Static(x) for place, _, x in fixed if isinstance(place, str)}}
        names = self._names(len(full))
        found = {}
        given = [(name, nest, "") for name, nest in zip(names, full)]
        for name, nest, how in given + [(name, nest, " by keyword") for name, nest in kw.items()]:
            if isinstance(nest, Static):
                found[name] = f"static {nest.text}{how}"
                continue
            for path, x in zip(tree.paths(nest, whole=True), tree.flatten_whole(nest)[0]):
                found[f"{name}/{path}" if path else name] = _text(x) + how
        around = HOME.get()
        if around is not None:
            words = [around.backend.name, *(str(x) for x in around[1:] if x is not None)]
            found["iso.use_backend"] = " ".join(words)
        if not is_on():
            found["gradients"] = "off"
        return found

    def _names(self, count: int) -> list[str]:
        try:
            known = list(signature(self.func).parameters.values())
        except (TypeError, ValueError):  # a builtin without a signature
            known = []
        several = (Parameter.VAR_POSITIONAL, Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD)
        names = [p.name for p in known if p.kind not in several]
        return [names[i] if i < len(names) else f"argument {i}" for i in range(count)]


def _place(func: Any, met: set[int]) -> tuple:
    """The code of a function, and of the functions that it holds and that were not `met`: that
    tells transforms, partial functions and objects of a class apart.
    """
    if isinstance(func, partial):
        return ("partial", _place(func.func, met))
    met.add(id(func))
    code = getattr(func, "__code__", None)
    if code is not None:
        cells = getattr(func, "__closure__", None) or ()
        held = [cell.cell_contents for cell in cells if cell != EMPTY]
    else:
        code = getattr(type(func).__call__, "__code__", None)
        if code is None:  # a function of a library
            return (getattr(func, "__module__", None), getattr(func, "__qualname__", repr(func)))
        fields = getattr(func, "__dict__", {}).values()
        held = [x for x in fields if isinstance(x, FunctionType | partial)]
    inner = [x for x in held if callable(x) and not isinstance(x, type) and id(x) not in met]
    return (code.co_filename, code, *[_place(x, met) for x in inner])


class Static:
    """A static argument, in words."""

    def __init__(self, x: Any):
        self.text = repr(x)[:80]


def _text(x: Any) -> str:
    if type(x) in NUMBERS:
        return f"a Python {type(x).__name__}"
    backend = find_backend(x)
    if backend is None:
        return type(x).__name__
    x = backend.native(x)  # a literal may have no shape
    return f"{dtype_of(x)} {list(x.shape)}"


def _distance(old: dict[str, str], new: dict[str, str]) -> tuple[int, int]:
    """How many facts differ, and how many words of them."""
    both = [(old.get(k, ""), new.get(k, "")) for k in {*old, *new} if old.get(k) != new.get(k)]
    words = [set(x.split(maxsplit=1)) ^ set(y.split(maxsplit=1)) for x, y in both]
    return len(both), sum(map(len, words))


def _differences(old: dict[str, str], new: dict[str, str]) -> list[str]:
    changed = [f"{k} is {new[k]}, was {old[k]}" for k in new if k in old and new[k] != old[k]]
    added = [f"{k} is new, {new[k]}" for k in new if k not in old]
    return changed + added + [f"{k} is gone, was {old[k]}" for k in old if k not in new]
