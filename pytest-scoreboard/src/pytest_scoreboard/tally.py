"""What a test did: assertions executed, the largest error seen, the modes it ran in.

pytest rewrites the `assert` statements of test files and, with its option
`enable_assertion_pass_hook`, checks after each assertion that held whether a plugin wants to know.
These checks are counted; no plugin is told, so no value is ever printed. Known assertion helpers of
other packages are wrapped in their modules and in test files that imported them.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FunctionType, ModuleType
from typing import Any
from unittest import TestCase

# Modules whose assert_* functions are assertions, or only the named ones.
HELPERS: dict[str, list[str] | None] = {
    "numpy.testing": None,
    "torch.testing": None,
    "chex": None,
    "pandas.testing": None,
    "xarray.testing": None,
    "torch.autograd": ["gradcheck", "gradgradcheck"],
    "jax.test_util": ["check_grads"],
    "isomorph": ["check_gradients"],
}
ASSERTS = re.compile(r"(?:^|_)assert(?:_|$)")  # the name of an assertion of any library
TESTING = re.compile(r"(?:^|[._])testing(?:$|[._])")  # a module with such assertions
COMPARE = {
    "assert_allclose",
    "assert_almost_equal",
    "assert_array_almost_equal",
    "assert_array_equal",
    "assert_close",
    "assert_equal",
    "assert_trees_all_close",
}
PAIR = ("actual", "x", "desired", "expected", "y")  # names of the compared arguments
CHECKS = ("raises", "warns", "deprecated_call")  # pytest's own


class Tally:
    """The counts of the running test; nothing is counted while `on` is False."""

    def __init__(self) -> None:
        self.on = False
        self.kind = "value"  # what the comparisons are of: values or gradients
        self.roots: tuple[str, ...] = ("\0",)  # the folders of the tests; none yet
        self.clear()

    def clear(self) -> None:
        self.asserts = 0
        self.modes: set[str] = set()
        self.errors: dict[str, float] = {}

    def error(self, value: Any, reference: Any, kind: str) -> None:
        found = ulps(value, reference)
        if found is not None and found >= self.errors.get(kind, 0.0):
            self.errors[kind] = found


TALLY = Tally()


def record_error(value: Any, reference: Any, kind: str = "value") -> float | None:
    """Store the error of `value` against `reference` for the cell of the running test, if it is the
    largest so far; `kind` is "value" or "gradient". Returns it in ulps.

    >>> import numpy as np
    >>> record_error(np.float32(1) + np.spacing(np.float32(1)), 1.0)
    1.0
    """
    if kind not in ("value", "gradient"):
        raise ValueError(f'record_error: needed kind "value" or "gradient", got {kind!r}')
    if TALLY.on:
        TALLY.error(value, reference, kind)
    return ulps(value, reference)


@contextmanager
def comparing(kind: str) -> Iterator[None]:
    """Comparisons inside the block are of "value" or of "gradient".

    >>> with comparing("gradient"):
    ...     pass
    """
    if kind not in ("value", "gradient"):
        raise ValueError(f'comparing: needed "value" or "gradient", got {kind!r}')
    before, TALLY.kind = TALLY.kind, kind
    try:
        yield
    finally:
        TALLY.kind = before


def record_mode(mode: str) -> None:
    """Report that the running test ran in `mode`; without a scoreboard nothing happens.

    >>> record_mode("jit")
    """
    if TALLY.on:
        TALLY.modes.add(mode)


# If torch.compile meets these in a function that it compiles, it runs them only while it traces:
# this is the mark of torch.compiler.assume_constant_result, set without importing torch.
record_mode._dynamo_marked_constant = True  # pyright: ignore[reportFunctionMemberAccess]


def ulps(value: Any, reference: Any) -> float | None:
    """The largest absolute difference between an array and its reference, in units in the last
    place (ulps).

    The unit is the ulp of the largest element of the reference, or of 1 if the reference is zero,
    in the coarser dtype of the two. The result is infinite if only one of the two is NaN or
    infinite somewhere. It is None if `value` is not a floating-point array, if `reference` is not
    an array of numbers, or if one of them is empty.

    >>> import numpy as np
    >>> ulps(np.array([1.0, 2.0]), np.array([1.0, 2.0 + 4.5e-16]))
    1.0
    """
    np = sys.modules.get("numpy")
    if np is None:
        return None
    try:
        a, d = np.asarray(_plain(value)), np.asarray(_plain(reference))
        if a.dtype.kind not in "fc" or d.dtype.kind not in "fciub" or not a.size or not d.size:
            return None
        if a.shape == d.shape and (a == d).all():
            return 0.0
        both = [x.real.dtype for x in (a, d) if x.dtype.kind in "fc"]
        own = max(both, key=lambda dtype: np.finfo(dtype).eps)
        wide = np.result_type(a.dtype, d.dtype, "float64")
        a, d = np.broadcast_arrays(a.astype(wide), d.astype(wide))
        same = (a == d) | (np.isnan(a) & np.isnan(d))
        if same.all():
            return 0.0
        if not (np.isfinite(a) | same).all() or not (np.isfinite(d) | same).all():
            return float("inf")
        top = float(np.abs(d[np.isfinite(d)]).max(initial=0.0)) or 1.0
        with np.errstate(all="ignore"):
            unit = float(np.spacing(np.asarray(top, own)))
            return float(np.abs((a - d)[~same]).max() / unit)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # not numbers, or not plain data
        return None


def _plain(x: Any) -> Any:
    """The values of a framework's array, by its own conversion."""
    if hasattr(x, "detach"):
        x = x.detach()
        x = x.cpu() if hasattr(x, "cpu") else x
    return x.numpy() if hasattr(x, "numpy") else x


class Counters:
    """The counting of assertions, installed for one pytest session and removed after it."""

    def __init__(self, helpers: Iterable[str], roots: Iterable[str]) -> None:
        self.roots = TALLY.roots = tuple(roots)
        # module -> its named functions, or None for all whose names begin with assert_
        self.pending = dict(HELPERS)
        for entry in helpers:
            module, _, name = entry.partition(":")
            self.pending[module] = [*(self.pending.get(module) or []), name]
        self.undo: list[Callable[[], None]] = []
        self.swapped: dict[int, tuple[Any, Any]] = {}  # id of the original -> (original, wrapper)

    def start(self, rewriting: Any, pytest: Any, instrument: Callable[[Any], None]) -> None:
        """Count `assert`, through the checks in pytest's rewritten statements, and its helpers.
        `instrument` changes the syntax tree of a test file before pytest rewrites it.
        """
        asked = rewriting._check_if_assertion_pass_impl

        def ask() -> bool:
            TALLY.asserts += 1
            return asked()

        ask._dynamo_marked_constant = True  # pyright: ignore  # see record_mode
        sys.meta_path.insert(0, finder := Finder(self))
        self.undo.append(lambda: sys.meta_path.remove(finder))
        self._put(rewriting, "_check_if_assertion_pass_impl", ask)
        for name in CHECKS:
            self._wrap(pytest, name)
        for name in [n for n in vars(TestCase) if n.startswith("assert")]:
            self._wrap(TestCase, name)
        checked = subprocess.CompletedProcess, "check_returncode"
        for owner, name in (checked, (subprocess, "check_call"), (subprocess, "check_output")):
            self._swap(owner, name, _counting_processes(getattr(owner, name), True))
        self._swap(subprocess, "run", _counting_processes(subprocess.run, False))
        rewrite = rewriting.rewrite_asserts

        def rewrite_both(module: Any, *args: Any, **kw: Any) -> None:
            instrument(module)
            rewrite(module, *args, **kw)

        self._put(rewriting, "rewrite_asserts", rewrite_both)

    def catch_up(self, done: str = "") -> None:
        """Wrap the helpers of modules that have been imported meanwhile, and of the module `done`,
        whose import is about to end.
        """
        for module in [m for m in self.pending if m == done or _is_imported(m)]:
            names = self.pending.pop(module)
            found = sys.modules[module]
            for name in names or [n for n in dir(found) if n.startswith("assert_")]:
                original = getattr(found, name, None)
                if callable(original) and not isinstance(original, type):
                    self._wrap(found, name, name in COMPARE or names is not None)

    def rebind(self) -> None:
        """Rebind names that test files imported with `from numpy.testing import …`, and count the
        assertions of other libraries, by their names.
        """
        for module in list(sys.modules.values()):
            if not self._is_test(module):
                if TESTING.search(module.__name__ if isinstance(module, ModuleType) else ""):
                    self._wrap_assertions(module)
                continue
            for name, value in list(vars(module).items()):
                if isinstance(value, FunctionType) and self._is_foreign_assertion(value):
                    self.swapped[id(value)] = (value, _counting(value))
                original, wrapper = self.swapped.get(id(value), (None, None))
                if original is value and original is not None:
                    self._put(module, name, wrapper)

    def _is_test(self, module: Any) -> bool:
        return (getattr(module, "__file__", None) or "").startswith(self.roots)

    def _is_foreign_assertion(self, func: FunctionType) -> bool:
        """Whether a function of a library is an assertion that is not counted yet."""
        home = func.__code__.co_filename
        return (
            ASSERTS.search(func.__name__) is not None
            and not home.startswith(self.roots)
            and id(func) not in self.swapped
            and not hasattr(func, "counts_assertions")
        )

    def _wrap_assertions(self, module: ModuleType) -> None:
        for name, value in list(vars(module).items()):
            if isinstance(value, FunctionType) and self._is_foreign_assertion(value):
                self._wrap(module, name)

    def stop(self) -> None:
        while self.undo:
            self.undo.pop()()

    def _wrap(self, owner: Any, name: str, compares: bool = False) -> None:
        self._swap(owner, name, _counting(getattr(owner, name), compares))

    def _swap(self, owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
        original = getattr(owner, name)
        self._put(owner, name, wrapper)
        self.swapped[id(original)] = (original, wrapper)

    def _put(self, owner: Any, name: str, new: Any) -> None:
        old = getattr(owner, name)
        setattr(owner, name, new)
        self.undo.append(lambda: setattr(owner, name, old))


class Finder:
    """Wraps the helpers of a module as soon as it is imported, even in the middle of a test."""

    def __init__(self, counters: Counters) -> None:
        self.counters = counters

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in self.counters.pending:
            return None
        others = (f for f in sys.meta_path if f is not self)
        spec = next((s for f in others if (s := f.find_spec(name, path, target))), None)
        loader: Any = getattr(spec, "loader", None)
        if loader is not None and hasattr(loader, "exec_module"):
            run = loader.exec_module

            def exec_module(module: Any) -> None:
                run(module)
                self.counters.catch_up(name)

            loader.exec_module = exec_module
        return spec


def _is_imported(name: str) -> bool:
    """Whether a module is there and complete: not in the middle of its import."""
    module = sys.modules.get(name)
    return module is not None and not getattr(module.__spec__, "_initializing", False)


def _counting(original: Callable[..., Any], compares: bool = False) -> Callable[..., Any]:
    @wraps(original)
    def counted(*args: Any, **kw: Any) -> Any:
        __tracebackhide__ = True
        TALLY.asserts += 1
        if compares and TALLY.on:
            pair = (*args[:2], *(kw[name] for name in PAIR if name in kw))
            if len(pair) == 2:
                TALLY.error(*pair, TALLY.kind)
        return original(*args, **kw)

    counted.counts_assertions = True  # pyright: ignore
    return counted


def _counting_processes(original: Callable[..., Any], always: bool) -> Callable[..., Any]:
    """A function of `subprocess`, which is an assertion if a test calls it and it checks the exit
    status. Libraries start processes too: torch's compiler starts a C++ compiler.
    """

    @wraps(original)
    def counted(*args: Any, **kw: Any) -> Any:
        if always or kw.get("check") is True:
            frame: Any = sys._getframe(1)
            TALLY.asserts += frame.f_code.co_filename.startswith(TALLY.roots)
        return original(*args, **kw)

    return counted
