"""The value that replaces a NumPy array while a function is differentiated.

NumPy passes every ufunc and function called on such a value to `__array_ufunc__` and
`__array_function__` (NEP 13 and NEP 18). The table `TRACED` says what is called then. A traced
value behaves like an array, except that it cannot be converted to plain data, because its gradient
would be lost.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from functools import reduce
from importlib import import_module
from itertools import accumulate
from typing import Any, NoReturn

import numpy
from numpy.lib.array_utils import normalize_axis_tuple

from ...core.dispatch import load
from ...typing import TracedArray
from .layouts import example, in_layout_of
from .levels import LIFTED, RUNNING, TRACED, newest
from .mapped import Mapped, batched
from .mapped import getitem as getitem
from .methods import Methods, relaid
from .nested import gathered
from .outputs import out_by_name
from .replaced import replacement
from .storage import AT, Finished, Stored, is_number, overwrite, settled, write

np: Any = numpy  # its type stubs do not know traced values

LATE: dict[str, Callable] = {}  # name of a ufunc of another library -> function that finds its rule


def record(func: Callable, *args: Any, **kw: Any) -> Any:
    """Call `func` by its rule; at least one of `args` must be traced or mapped."""
    try:
        if RUNNING:
            top = newest(args) if not kw else newest((*args, *kw.values()))
            if type(top) is Mapped:
                return batched(top.tape, func, args, kw)
        traced = TRACED.get(func)
        if traced is None:
            no_rule(func)
        return traced(*args, **kw)
    except Finished:
        given = settled(args)
        if newest(given) is None:
            return func(*given, **kw)
        return record(func, *given, **kw)


def _late(ufunc: numpy.ufunc) -> Callable:
    found = LATE.get(ufunc.__name__)
    return (found(ufunc) if found else None) or no_rule(ufunc)


def _own(index: Any) -> Any:
    """An index with its arrays copied, so that they cannot change before the backward pass."""
    if type(index) is tuple:
        return tuple(np.array(i) if type(i) is numpy.ndarray else i for i in index)
    if isinstance(index, (numpy.ndarray, list)):
        return np.array(index) if hasattr(index, "dtype") or index else np.array(index, int)
    return index


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
    f"isomorph: a[i] = x: {LOST}; make `a` with isomorph.numpy inside the differentiated function "
    "(np.zeros, or np.array(a) for a copy), write a = iso.at(a)[i].set(x), or build the array by "
    "np.stack of traced values"
)
READ_ONLY = (
    "isomorph: a derivative reads this array, which may not change until the differentiated "
    "function returns; write before it is used, or write into np.array(a) of isomorph.numpy"
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


def _put_out(ufunc: Any, method: str, args: tuple, kw: dict) -> Any:
    """A ufunc with out=."""
    outs = kw["out"]
    kw = {k: v for k, v in kw.items() if k != "out"}
    where = concrete(kw.pop("where", True)) if method == "__call__" else True
    if where is not True and all(out is not None for out in outs):
        return _put_where(ufunc, np.asarray(where, bool), args, outs, kw)
    found = getattr(ufunc, method)(*args, **kw)
    several = found if isinstance(found, tuple) else (found,)
    done = []
    for out, y in zip(outs, several):
        if out is not None and where is not True:
            y = np.where(where, y, out)
        done.append(y if out is None else _stored(_name(ufunc), out, y, wide=method == "__call__"))
    return done[0] if len(done) == 1 else tuple(done)


def _put_where(ufunc: Any, where: Any, args: tuple, outs: Any, kw: dict) -> Any:
    """A ufunc of some elements only, which may have no derivative at the others."""
    shape = outs[0].shape
    where = np.broadcast_to(where, shape)
    part = lambda x: x if np.ndim(x) == 0 else np.broadcast_to(x, shape)[where]
    found = ufunc(*map(part, args), **kw)
    several = found if isinstance(found, tuple) else (found,)
    for out, y in zip(outs, several):
        if isinstance(out, Stored):
            target(out, y)
        elif newest((y,)) is not None:
            _stored(_name(ufunc), out, y)  # raises
        array: Any = out
        array[where] = y
    return outs[0] if len(outs) == 1 else outs


def _stored(name: str, out: Any, y: Any, *, wide: bool = False) -> Any:
    if type(out) is tuple:
        (out,) = out
    if not isinstance(out, Stored):
        if isinstance(out, numpy.ndarray) and newest((y,)) is None:  # numbers of positions
            numpy.copyto(out, y)
            return out
        raise TypeError(
            f"{name}: in-place result (out=, or a += on a plain array) needed plain operands, "
            "got a traced one; write a = a + b instead of a += b, or make `a` with "
            "isomorph.numpy inside the differentiated function (np.zeros, np.array(a) for a copy)"
        )
    what = f"{name} with out="
    if type(target(out, y)) is Traced:
        return overwrite(out, y, what, wide=wide)
    if not numpy.can_cast(y.dtype, out.dtype, "same_kind"):  # a buffer, and nothing traced
        raise TypeError(f"{what}: cannot cast from {y.dtype} to {out.dtype} by 'same_kind'")
    numpy.copyto(out.value, y)
    return out


STORES = dis.opmap["STORE_SUBSCR"]
BECOMING: list[Callable] = []  # what makes a traced value of a buffer


def target(x: Any, y: Any) -> Any:
    """`x`, to which `y` is to be written: a buffer becomes traced, a plain array is refused."""
    if type(x) is not Traced and isinstance(x, Stored):
        BECOMING[0](x, y)
    elif not isinstance(x, Stored):
        raise TypeError(f"isomorph: {ASSIGN}")
    return x


def _ufunc(ufunc: Any, method: str, args: tuple, kw: dict) -> Any:
    if method == "__call__" and not kw:
        traced = TRACED.get(ufunc) or _late(ufunc)
        return traced(*args)
    if method == "reduce" and ufunc in REDUCTIONS:
        return REDUCTIONS[ufunc](args[0], **{"axis": 0, **kw})
    if method == "accumulate" and ufunc in ACCUMULATIONS:
        return ACCUMULATIONS[ufunc](args[0], **{"axis": 0, **kw})
    if kw.get("dtype", 0) is None:
        kw = {k: v for k, v in kw.items() if k != "dtype"}
    if method in ("reduce", "accumulate") and _is_binary(ufunc) and kw.keys() <= FOLDS[method]:
        return _folded(ufunc, method, *args, **kw)
    if method == "outer":
        a, b = args
        return ufunc(np.reshape(a, np.shape(a) + (1,) * np.ndim(b)), b, **kw)
    if method == "at" and ufunc in AT:
        x, index, *rest = args
        overwrite(target(x, rest), AT[ufunc](x, concrete(index), *rest), f"{_name(ufunc)}.at")
        return None
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


def _is_binary(ufunc: Any) -> bool:
    return ufunc.nin == 2 and ufunc.nout == 1 and ufunc.signature is None


FOLDS = {"reduce": {"axis", "keepdims", "initial"}, "accumulate": {"axis"}}


def _folded(ufunc: Any, method: str, x: Any, axis: Any = 0, **kw: Any) -> Any:
    """`ufunc.reduce` and `ufunc.accumulate`, one element after the other, as NumPy does it."""
    if 0 in x.shape or x.ndim == 0:
        plain = numpy.zeros(x.shape, x.dtype)
        return getattr(ufunc, method)(plain, axis, **kw)  # a constant, or NumPy's error
    if method == "accumulate":
        parts = np.moveaxis(x, axis, 0)
        y = np.moveaxis(np.stack(list(accumulate(parts, ufunc))), 0, axis)
        return in_layout_of(np.empty_like(example(x)), y)
    axes = normalize_axis_tuple(range(x.ndim) if axis is None else axis, x.ndim)
    ufunc.reduce(numpy.ones((1,) * x.ndim), axes)  # raises where it takes one axis only
    parts = np.moveaxis(x, axes, range(len(axes)))
    parts = np.reshape(parts, (-1, *parts.shape[len(axes) :]))
    first = (kw["initial"],) if kw.get("initial") is not None else ()
    y = reduce(ufunc, parts, *first)
    return np.expand_dims(y, axes) if kw.get("keepdims") else y


def _in_place(func: Any, sign: str) -> Callable[[Any, Any], Any]:
    """`x += y` and the like: an array is written to, one of NumPy's scalars is rebound."""

    def operator(self: Any, other: Any) -> Any:
        new = record(func, self, other) if func in TRACED else func(self, other)
        return new if is_number(self) else overwrite(self, new, f"x {sign}= y")

    return operator


class Traced(Stored, Methods, TracedArray):
    """A NumPy array being differentiated."""

    __slots__ = ()
    __array_priority__ = 1000.0
    __hash__ = object.__hash__

    def __init__(self, value: Any, tape: Any, node: Any):
        self.value = value
        self.tape = tape
        self.node = node
        self.taken = self.views = self.hot = None

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kw: Any) -> Any:
        if kw and any(x is not None for x in kw.get("out", ())):
            return _put_out(ufunc, method, args, kw)
        if RUNNING:
            top = newest(args) if not kw else newest((*args, *kw.values()))
            if type(top) is Mapped:
                return top.__array_ufunc__(ufunc, method, *args, **kw)
        try:
            return _ufunc(ufunc, method, args, kw)
        except Finished:
            return getattr(ufunc, method)(*settled(args), **kw)

    def __array_function__(self, func: Any, types: Any, args: Any, kw: Any) -> Any:
        if len(args) > 1:
            args, kw = out_by_name(func, args, kw)
        if kw and "out" in kw:
            kw = dict(kw)
            out = kw.pop("out")
            y = func(*args, **kw)
            return y if out is None else _stored(_name(func), out, y)
        if RUNNING:
            top = newest(args) if not kw else newest((*args, *kw.values()))
            if type(top) is Mapped:
                return top.__array_function__(func, types, args, kw)
        traced = TRACED.get(func)
        try:
            return traced(*args, **kw) if traced is not None else no_rule(func)
        except Finished:
            return func(*settled(args), **{k: settled(v) for k, v in kw.items()})

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        # With SCIPY_ARRAY_API=1, SciPy asks for the namespace of its arguments, which must all have
        # the same. For NumPy arrays it is that of its copy of array_api_compat.
        asks = sys._getframe(1).f_globals.get("__name__") or ""
        theirs, found, _ = asks.partition("array_api_compat.")
        if found and theirs.startswith("scipy."):
            return import_module(f"{theirs}{found}numpy")
        return load("numpy").namespace

    def __array__(self, *args: Any, **kw: Any) -> Any:
        if not self.tape.running:
            return np.array(settled(self), *args, **kw)
        raise TypeError(
            f"{_caller()}a traced NumPy value was used where NumPy needs plain data (np.array, "
            "np.asarray, a[i] = x, a[x], or a C function): its gradient would be lost. Write "
            "import isomorph.numpy as np, whose np.array, np.asarray, np.full, np.sum of a list, "
            "np.r_ and np.vectorize take traced values, or use np.stack to build arrays from "
            "traced values, iso.at(a)[i].set(x) to assign, "
            "iso.at(a)[i].get() to read, iso.host_function for code of other libraries, "
            "iso.stop_gradient(x) where no gradient should flow"
        )

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(value, (list, tuple)):
            value = gathered(value) if newest(value) is not None else value
        write(self, _own(concrete(index)), value)

    def __float__(self) -> float:
        if not self.tape.running:
            return float(settled(self))
        raise TypeError(
            f"float(x), int(x), x.item() or x.tolist(): {LOST}; keep it as an array, use "
            "iso.at(a)[i].set(x) to put it into one, or iso.stop_gradient(x)"
        )

    __int__ = __complex__ = tolist = __float__

    def item(self, *args: Any) -> Any:
        return float(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if not self.tape.running:
            return settled(self).__reduce_ex__(protocol)
        raise TypeError(f"pickle or copy of x: {LOST}; use iso.stop_gradient(x)")

    def __index__(self) -> NoReturn:
        raise TypeError(
            f"a[x] or range(x): {LOST}; an index is an integer that is not differentiated, write "
            "iso.at(a)[i].get() with one, or use iso.stop_gradient(x)"
        )

    def __bool__(self) -> bool:
        """Allowed, like a comparison, to choose a branch, but not to fill an array of booleans."""
        frame = sys._getframe(1)
        if frame.f_code.co_code[frame.f_lasti] == STORES and self.tape.running:
            raise TypeError(f"isomorph: a[i] = x of an array of booleans: {LOST}; write x != 0")
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

    @shape.setter
    def shape(self, v: Any) -> None:
        relaid("shape")

    def copy(self, order: Any = "C") -> Any:
        return self if is_number(self) else np.copy(self, order)

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
    def __pos__(self): return self if is_number(self) else np.copy(self)
    __iadd__, __isub__ = _in_place(np.add, "+"), _in_place(np.subtract, "-")
    __imul__, __itruediv__ = _in_place(np.multiply, "*"), _in_place(np.divide, "/")
    __imod__, __ifloordiv__ = _in_place(np.remainder, "%"), _in_place(np.floor_divide, "//")
    __ipow__, __imatmul__ = _in_place(pow, "**"), _in_place(np.matmul, "@")
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
