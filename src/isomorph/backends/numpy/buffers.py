"""Arrays that are made while a function is differentiated, before anything traced is written to
them: plain memory, which NumPy computes with. The first traced number makes a traced value of the
array, and of every view of it.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy
from numpy.lib.mixins import NDArrayOperatorsMixin

from ...typing import TracedArray
from .levels import newest
from .mapped import Mapped, Unbatchable, getitem
from .methods import Flat, Methods, relaid
from .nested import gathered
from .outputs import out_by_name
from .storage import (
    ACTIVE,
    Stored,
    emptied,
    is_alone,
    leaf,
    outside,
    refuse,
    shares,
    storage,
    watch,
)
from .traced import BECOMING, Traced

np: Any = numpy  # its type stubs do not know traced values
ndarray = numpy.ndarray
SLOTS = frozenset(Stored.__slots__) | {"__class__"}


def made(x: Any) -> Any:
    """`x`, a new array, as a buffer of the function that is differentiated now, if there is one."""
    tape = ACTIVE.get()
    if tape is None or type(x) is not ndarray or x.dtype.kind not in "fc":
        return x
    return _new(x if x.base is None else x.copy(order="K"), tape)


def _new(x: ndarray, tape: Any) -> Any:
    buffer = Buffer.__new__(Buffer)
    buffer.value, buffer.tape = x, tape
    buffer.taken = buffer.views = buffer.hot = None
    return buffer


def bare(x: Any) -> Any:
    """`x` with the plain arrays of buffers, also in lists, tuples and dicts."""
    kind = type(x)
    if kind is Buffer:
        return x.value
    if kind is list or kind is tuple:
        return kind(map(bare, x))
    if kind is dict:
        return {k: bare(v) for k, v in x.items()}
    return x


def become_traced(x: Any, v: Any) -> None:
    """Make a traced value of a buffer to which `v` is to be written, and of all its views."""
    home, top = storage(x), newest((v,))
    if top is None:
        return
    if type(top) is Mapped:
        raise Unbatchable(top.tape, "a mapped value that is written to an array")
    if not home.tape.running or top.tape.level > home.tape.level:
        outside("x[i] = v", home)
    views = emptied(home)
    if not is_alone(home):
        for view in views:
            of, func, args, kw = view.taken
            view.value = func(bare(of), *args, **kw)
            watch(view, of, func, args, kw)
        refuse(
            "x[i] = v",
            "the memory of this array was handed out as a plain NumPy array, by numpy.asarray(x) "
            "for example, which cannot show traced numbers",
            "; write before that, or hand out numpy.array(x)",
        )
    home.node = leaf(home.tape, home.value)
    for each in (home, *views):
        each.__class__ = Traced


BECOMING.append(become_traced)


def result(y: Any, x: Any, func: Callable, args: tuple, kw: dict) -> Any:
    """What NumPy returned for func(x, *args, **kw), a buffer where it can be written to."""
    if type(y) is tuple or type(y) is list:
        part = lambda i: lambda x, *a, **k: func(x, *a, **k)[i]
        parts = [result(each, x, part(i), args, kw) for i, each in enumerate(y)]
        return getattr(type(y), "_make", type(y))(parts)
    if type(y) is not ndarray or y.dtype.kind not in "fc":
        return y
    if y is x.value:
        return x
    buffer = _new(y, x.tape)
    if shares(y, x.value):
        watch(buffer, x, func, args, kw)
    elif y.base is not None:
        buffer.value = y.copy(order="K")
    return buffer


def _method(x: Any, name: str) -> Callable:
    def call(*args: Any, **kw: Any) -> Any:
        if newest((*args, *kw.values())) is not None:
            if name in ("fill", "put"):
                become_traced(x, (*args, *kw.values()))
                return getattr(x, name)(*args, **kw)
            return getattr(Methods, name)(x, *args, **kw)
        y = getattr(x.value, name)(*bare(args), **bare(kw))
        if kw.get("out") is not None:
            return kw["out"]
        return result(y, x, lambda x, *a, **k: getattr(x, name)(*a, **k), args, kw)

    return call


class Buffer(Stored, NDArrayOperatorsMixin, TracedArray):
    """A plain NumPy array that traced numbers can be written to."""

    __slots__ = ()
    __array_priority__ = 999.0
    __hash__ = object.__hash__  # pyright: ignore[reportAssignmentType]

    def __getattr__(self, name: str) -> Any:
        if name in SLOTS:
            if name == "value":
                raise AttributeError(name)
            return None
        if name.startswith("__array"):
            raise AttributeError(name)
        if name == "flat":
            return Flat(self)
        found = getattr(self.value, name)
        if type(found) is ndarray:
            return result(found, self, attrgetter(name), (), {})
        return _method(self, name) if callable(found) else found

    def __setattr__(self, name: str, x: Any) -> None:
        if name in SLOTS:
            object.__setattr__(self, name, x)
        elif name in ("shape", "strides"):
            relaid(name)
        elif newest((x,)) is not None:
            become_traced(self, x)
            setattr(self, name, x)
        else:
            setattr(self.value, name, bare(x))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return numpy.array(self.value, dtype, copy=copy)

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kw: Any) -> Any:
        top = newest((*args, *kw.values()))
        if top is not None:
            if method == "at":
                become_traced(args[0], args[2:])
                return args[0].__array_ufunc__(ufunc, method, *args, **kw)
            for out in kw.get("out") or ():  # before anything refers to its memory
                if type(out) is Buffer:
                    become_traced(out, top)
            given = bare(args) if type(top) is Mapped else args
            return top.__array_ufunc__(ufunc, method, *given, **kw)
        y = getattr(ufunc, method)(*bare(args), **bare(kw))
        outs = kw.get("out") or ()
        if any(out is not None for out in outs):
            return outs[0] if len(outs) == 1 else outs
        return result(y, self, ufunc, (), {})

    def __array_function__(self, func: Any, types: Any, args: Any, kw: Any) -> Any:
        top = newest((*args, *kw.values()))
        if top is not None:
            return top.__array_function__(func, types, args, kw)
        args, kw = out_by_name(func, args, kw)
        y = func(*bare(args), **bare(kw))
        if kw.get("out") is not None:
            return kw["out"]
        place = next((i for i, a in enumerate(args) if type(a) is Buffer), None)
        if place is None:
            return result(y, self, lambda x: x, (), {})
        before, after = args[:place], args[place + 1 :]
        return result(y, args[place], lambda x, **k: func(*before, x, *after, **k), (), kw)

    def __getitem__(self, index: Any) -> Any:
        index = bare(index)
        return result(self.value[index], self, getitem, (index,), {})

    def __setitem__(self, index: Any, v: Any) -> None:
        if isinstance(v, (list, tuple)):
            v = gathered(v) if newest(v) is not None else v
        become_traced(self, v)
        if type(self) is Buffer:
            self.value[bare(index)] = bare(v)
        else:
            self[index] = v

    def __iter__(self) -> Any:
        return iter([self[i] for i in range(len(self))])

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.value.__reduce_ex__(protocol)

    # fmt: off
    def __len__(self) -> int: return len(self.value)
    def __float__(self) -> float: return float(self.value)
    def __int__(self) -> int: return int(self.value)
    def __complex__(self) -> complex: return complex(self.value)
    def __bool__(self) -> bool: return bool(self.value)
    def __contains__(self, x: Any) -> bool: return x in self.value
    def __repr__(self) -> str: return repr(self.value)
    def __format__(self, spec: str) -> str: return format(self.value, spec)
    def __round__(self, digits: int = 0) -> Any: return np.round(self, digits)
    @property
    def shape(self) -> Any: return self.value.shape
    @property
    def dtype(self) -> Any: return self.value.dtype
    # fmt: on
