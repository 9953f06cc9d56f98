"""The value that replaces a NumPy array while a function is differentiated.

NumPy passes every ufunc and function called on such a value to `__array_ufunc__` and
`__array_function__` (NEP 13 and NEP 18). The table `TRACED` says what is called then. A traced
value behaves like an array, except that it cannot be changed in place or converted to plain data,
because its gradient would be lost.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

import numpy

from ...dispatch import load
from ...typing import TracedArray
from .levels import LIFTED, RUNNING, TRACED, newest
from .mapped import Mapped, batched
from .mapped import getitem as getitem
from .methods import Methods
from .replaced import replacement

np: Any = numpy  # its type stubs do not know traced values

LATE: dict[str, Callable] = {}  # name of a ufunc of another library -> function that finds its rule


def record(func: Callable, *args: Any, **kw: Any) -> Any:
    """Call `func` by its rule; at least one of `args` must be traced or mapped."""
    if RUNNING:
        top = newest(args) if not kw else newest((*args, *kw.values()))
        if type(top) is Mapped:
            return batched(top.tape, func, args, kw)
    traced = TRACED.get(func)
    if traced is None:
        no_rule(func)
    return traced(*args, **kw)


def _late(ufunc: numpy.ufunc) -> Callable:
    found = LATE.get(ufunc.__name__)
    return (found(ufunc) if found else None) or no_rule(ufunc)


def _own(index: Any) -> Any:
    """An index with its arrays copied, so that they cannot change before the backward pass."""
    if type(index) is tuple:
        return tuple(np.array(i) if type(i) is numpy.ndarray else i for i in index)
    return np.array(index) if isinstance(index, (numpy.ndarray, list)) else index


def concrete(x: Any) -> Any:
    """The plain array inside a traced value, below all levels of tracing. In lists and tuples, each
    element is replaced by its plain array. A mapped value stays mapped.
    """
    if type(x) in LIFTED:
        while type(x) is Traced:
            x = x.value
        if type(x) is Mapped and type(x.value) in LIFTED:
            inner = concrete(x.value)
            return x if inner is x.value else Mapped(inner, x.tape)
    elif type(x) in (list, tuple):
        return type(x)(concrete(i) for i in x)
    return x


def _name(func: Callable) -> str:
    """The name of a function with its library, as users write it."""
    if isinstance(func, numpy.ufunc) and getattr(np, func.__name__, None) is not func:
        theirs = sys.modules.get("scipy.special._ufuncs")
        known = getattr(theirs, func.__name__, None) is func
        return f"scipy.special.{func.__name__}" if known else func.__name__
    module = (getattr(func, "__module__", "") or "").removeprefix("numpy").strip(".")
    home = f"numpy.{module}" if module in ("linalg", "fft") else "numpy"
    return f"{home}.{func.__name__}"


def _caller() -> str:
    """The beginning of a message that names the SciPy function that asked for plain data, and what
    replaces it; empty if no SciPy function did.
    """
    frame, found = sys._getframe(2), ""
    while frame is not None:
        parts = (frame.f_globals.get("__name__") or "").split(".")
        name = frame.f_code.co_qualname
        if parts[0] == "scipy":
            if "<locals>" in name or name.endswith(".__ua_function__"):  # it calls another one
                local = frame.f_locals
                inner: Any = [local[word] for word in ("f", "func", "method") if word in local]
                inner = [f for f in inner if hasattr(f, "__name__")]
                name = inner[0].__name__ if inner else ""
                parts = inner[0].__module__.split(".") if inner else parts
            if name and parts[1] != "_lib":
                public = ".".join(part for part in parts if not part.startswith("_"))
                found = f"{public}.{name}: no derivative rule; {replacement(public, name)}"
        elif parts[0] != "numpy":
            break
        frame = frame.f_back
    return found


def no_rule(func: Callable, what: str = "") -> NoReturn:
    raise NotImplementedError(
        f"{_name(func)}{what}: no derivative rule; compute it outside the differentiated "
        "function, or on iso.stop_gradient(x) where no gradient should flow, or give it a rule "
        "with iso.host_function"
    )


LOST = "needed a plain NumPy value, got a traced one, whose gradient would be lost"
ASSIGN = (
    f"isomorph: a[i] = x: {LOST}; write a = iso.at(a)[i].set(x), or build the array by np.stack of "
    "traced values"
)
REDUCTIONS = {np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min}
REDUCTIONS |= {np.logical_and: np.all, np.logical_or: np.any}
ACCUMULATIONS = {np.add: np.cumsum, np.multiply: np.cumprod}


def floating(name: str, dtype: Any) -> None:
    """Raise if a traced value is to be given a dtype that has no gradient."""
    if dtype is not None and numpy.dtype(dtype).kind not in "fc":
        raise TypeError(
            f"{name}: needed a floating-point dtype for a traced value, got {numpy.dtype(dtype)}, "
            "in which its gradient would be lost; pass dtype=float, or x.astype(int) or "
            "iso.stop_gradient(x) where no gradient should flow"
        )


class Traced(Methods, TracedArray):
    """A NumPy array being differentiated."""

    __slots__ = ("node", "tape", "value")
    __array_priority__ = 1000.0
    __hash__ = object.__hash__

    def __init__(self, value: Any, tape: Any, node: Any):
        self.value = value
        self.tape = tape
        self.node = node

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kw: Any) -> Any:
        if RUNNING:
            top = newest(args) if not kw else newest((*args, *kw.values()))
            if type(top) is Mapped:
                return top.__array_ufunc__(ufunc, method, *args, **kw)
        if method == "__call__" and not kw:
            traced = TRACED.get(ufunc) or _late(ufunc)
            return traced(*args)
        if any(x is not None for x in kw.pop("out", ())):
            raise TypeError(
                f"{_name(ufunc)}: in-place result (out=, or a += on a plain array) needed "
                "plain operands, got a traced one; write a = a + b instead of a += b"
            )
        if method == "reduce" and ufunc in REDUCTIONS:
            return REDUCTIONS[ufunc](args[0], **{"axis": 0, **kw})
        if method == "accumulate" and ufunc in ACCUMULATIONS:
            return ACCUMULATIONS[ufunc](args[0], **{"axis": 0, **kw})
        if method == "outer":
            a, b = args
            return ufunc(np.reshape(a, np.shape(a) + (1,) * np.ndim(b)), b, **kw)
        if method != "__call__":
            no_rule(ufunc, "." + method)
        if ufunc.signature is not None:  # matmul and similar ufuncs, which take axis= and axes=
            return record(ufunc, *args, **kw)
        if (dtype := kw.pop("dtype", None)) is not None:
            floating(_name(ufunc), dtype)
            args = tuple(a.astype(dtype) if hasattr(a, "dtype") else a for a in args)
        if kw.pop("where", True) is not True or kw:
            no_rule(ufunc, " with where=, casting= or other keywords")
        return record(ufunc, *args)

    def __array_function__(self, func: Any, types: Any, args: Any, kw: Any) -> Any:
        if RUNNING:
            top = newest(args) if not kw else newest((*args, *kw.values()))
            if type(top) is Mapped:
                return top.__array_function__(func, types, args, kw)
        if kw and kw.get("out") is not None:
            raise TypeError(
                f"{_name(func)}: out= needed plain operands, got a traced one; use the result"
            )
        traced = TRACED.get(func)
        return traced(*args, **kw) if traced is not None else no_rule(func)

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        # With SCIPY_ARRAY_API=1, SciPy asks for the namespace of its arguments, which must all have
        # the same. For NumPy arrays it is that of its copy of array_api_compat.
        asks = sys._getframe(1).f_globals.get("__name__") or ""
        theirs, found, _ = asks.partition("array_api_compat.")
        if found and theirs.startswith("scipy."):
            return import_module(f"{theirs}{found}numpy")
        return load("numpy").namespace

    def __array__(self, *args: Any, **kw: Any) -> NoReturn:
        raise TypeError(
            f"{_caller()}a traced NumPy value was used where NumPy needs plain data (np.array, "
            "np.asarray, a[i] = x, a[x], or a C function): its gradient would be lost. Write "
            "import isomorph.numpy as np, whose np.array, np.asarray, np.full, np.sum of a list, "
            "np.r_ and np.vectorize take traced values, or use np.stack to build arrays from "
            "traced values, iso.at(a)[i].set(x) to assign, "
            "iso.at(a)[i].get() to read, iso.host_function for code of other libraries, "
            "iso.stop_gradient(x) where no gradient should flow"
        )

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise TypeError(
            "x[i] = v: needed a plain NumPy array, got a traced one, which cannot be changed; "
            "write x = iso.at(x)[i].set(v)"
        )

    def __float__(self) -> NoReturn:
        raise TypeError(
            f"float(x), int(x), x.item() or x.tolist(): {LOST}; keep it as an array, use "
            "iso.at(a)[i].set(x) to put it into one, or iso.stop_gradient(x)"
        )

    __int__ = __complex__ = item = tolist = __float__

    def __index__(self) -> NoReturn:
        raise TypeError(
            f"a[x] or range(x): {LOST}; an index is an integer that is not differentiated, write "
            "iso.at(a)[i].get() with one, or use iso.stop_gradient(x)"
        )

    def __bool__(self) -> bool:  # allowed, like a comparison: it only chooses a branch
        return bool(concrete(self))

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Any:
        return iter([self[i] for i in range(len(self))])

    def __format__(self, spec: str) -> str:  # for display, not for computing
        return format(concrete(self), spec)

    def __round__(self, digits: int = 0) -> Any:
        return np.round(self, digits)

    def __repr__(self) -> str:
        return f"Traced({concrete(self)!r})"

    def __getitem__(self, index: Any) -> Any:
        return record(getitem, self, _own(concrete(index)))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def dtype(self) -> numpy.dtype:
        return self.value.dtype

    @property
    def ndim(self) -> int:
        return self.value.ndim

    @property
    def size(self) -> int:
        return self.value.size

    # fmt: off
    def __add__(self, other): return record(np.add, self, other)
    def __radd__(self, other): return record(np.add, other, self)
    def __sub__(self, other): return record(np.subtract, self, other)
    def __rsub__(self, other): return record(np.subtract, other, self)
    def __mul__(self, other): return record(np.multiply, self, other)
    def __rmul__(self, other): return record(np.multiply, other, self)
    def __truediv__(self, other): return record(np.divide, self, other)
    def __rtruediv__(self, other): return record(np.divide, other, self)
    def __matmul__(self, other): return record(np.matmul, self, other)
    def __rmatmul__(self, other): return record(np.matmul, other, self)
    def __pow__(self, other): return record(pow, self, other)
    def __rpow__(self, other): return record(pow, other, self)
    def __mod__(self, other): return record(np.remainder, self, other)
    def __rmod__(self, other): return record(np.remainder, other, self)
    def __floordiv__(self, other): return np.floor_divide(self, other)
    def __rfloordiv__(self, other): return np.floor_divide(other, self)
    def __neg__(self): return record(np.negative, self)
    def __pos__(self): return self
    def __abs__(self): return record(np.absolute, self)
    def __eq__(self, other): return concrete(self) == concrete(other)
    def __ne__(self, other): return concrete(self) != concrete(other)
    def __lt__(self, other): return concrete(self) < concrete(other)
    def __le__(self, other): return concrete(self) <= concrete(other)
    def __gt__(self, other): return concrete(self) > concrete(other)
    def __ge__(self, other): return concrete(self) >= concrete(other)
    # fmt: on


LIFTED.add(Traced)


def is_traced(x: Any) -> bool:
    """Whether `x` is being differentiated, at any level."""
    while type(x) is Mapped:
        x = x.value
    return type(x) is Traced


def plain(x: Any) -> Any:
    """The array inside a value of any transforms; of a mapped one, all examples."""
    while type(x) in LIFTED:
        x = x.value
    return x
