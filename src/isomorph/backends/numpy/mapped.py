"""The value that replaces a NumPy array while a function of one example is mapped over many.

A mapped value holds all examples, with their axis in front, and looks like one example: its shape,
its operators and its methods do not show that axis. NumPy passes every function called on it to us.
The table `BATCHED` says how a function works with one more axis. A function that is not there, but
whose version for traced values is made of other functions, uses that version. All others run row by
row.

What needs the values of one example, such as `if x > 0` or `float(x)`, stops the function
(`Unbatchable`), which is then called for one row after the other (`vmap`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NoReturn

import numpy

from ...core.dispatch import load
from .levels import BATCHED, LEVELS, LIFTED, RUNNING, TRACED, newest
from .methods import Methods
from .outputs import out_by_name

np: Any = numpy  # its type stubs do not know mapped values
ndarray = numpy.ndarray
LOG = logging.getLogger("isomorph")
NOTED: set[str] = set()
METHODS: dict[str, Callable] = {}  # a method of ufuncs -> its version for mapped values


class Map:
    """One call of `vmap`: its level, and the number of examples."""

    __slots__ = ("level", "size")

    def __init__(self, size: int) -> None:
        self.level = next(LEVELS)
        self.size = size


class Unbatchable(BaseException):
    """Something that cannot be computed for all examples of a map at once. No error: it must pass
    through `except Exception` in the mapped function.
    """

    def __init__(self, over: Map, what: str):
        super().__init__(
            f"{what}: a mapped NumPy value was used after its vmap had returned; return it as an "
            "output instead of keeping it"
        )
        self.over, self.what = over, what


def note(what: str, said: str) -> None:
    """Say once that something runs row by row."""
    if what not in NOTED:
        NOTED.add(what)
        LOG.warning("isomorph: vmap on NumPy runs %s", said)


def note_whole(what: str, detail: str = "") -> None:
    """Say that a whole function runs row by row, and why."""
    note(what, f"the whole function row by row, because of {what}{detail}")


def _name(func: Any) -> str:
    module = (getattr(func, "__module__", "") or "").partition(".")[0]
    name = getattr(func, "__name__", repr(func))
    return f"{module}.{name}" if module in ("numpy", "scipy") else name


def call(func: Callable, *args: Any, **kw: Any) -> Any:
    """`func` by the rule of the newest transform among its arguments."""
    top = newest(args) if not kw else newest((*args, *kw.values()))
    if type(top) is Mapped:
        return batched(top.tape, func, args, kw)
    if isinstance(func, numpy.ufunc):
        return top.__array_ufunc__(func, "__call__", *args, **kw)
    return TRACED[func](*args, **kw)


def batched(over: Map, func: Callable, args: Sequence[Any], kw: dict[str, Any]) -> Any:
    """`func` for all examples of a map."""
    rule = BATCHED.get(func)
    if rule is not None:
        return rule(over, func, *args, **kw)
    if isinstance(func, numpy.ufunc) and func.signature is None:
        return elementwise(over, func, *args, **kw)
    body = TRACED.get(func)
    if body is not None and not isinstance(body, partial):
        y = body(*args, **kw)
        if func in CALLERS or _is_like_one(over, func, args, kw, y):
            return y
    return rowwise(over, func, *args, **kw)


CALLERS = {np.apply_along_axis, np.apply_over_axes}  # they call a function of the user


def _is_like_one(over: Map, func: Callable, args: Sequence[Any], kw: dict, y: Any) -> bool:
    """Whether what a version for traced values returned has the dtype and shape that NumPy returns
    for the first example: for integers they may differ.
    """
    if _is_differentiated(args) or _is_differentiated(kw.values()):
        return True
    # a copy: some functions fail on a view of an array that the tape protects
    first_of = lambda x: np.copy(row(over, x, 0)) if is_mapped(over, x) else row(over, x, 0)
    first = func(*map(first_of, args), **{k: first_of(v) for k, v in kw.items()})
    return _kinds(first) == _kinds(y)


def _is_differentiated(args: Iterable[Any]) -> bool:
    for x in args:
        while type(x) is Mapped:
            x = x.value
        nested = type(x) in (list, tuple) and _is_differentiated(x)
        if type(x) in LIFTED or nested:
            return True
    return False


def _kinds(y: Any) -> Any:
    if isinstance(y, (list, tuple)):
        return [_kinds(part) for part in y]
    return (y.shape, y.dtype) if hasattr(y, "dtype") else None


def rowwise(over: Map, func: Callable, *args: Any, **kw: Any) -> Any:
    """`func` for one example after the other."""
    note(_name(func), f"{_name(func)} row by row, because it has no rule for all examples at once")
    rows = [
        func(*(row(over, a, i) for a in args), **{k: row(over, v, i) for k, v in kw.items()})
        for i in range(over.size)
    ]
    return _stacked(over, _name(func), rows)


def row(over: Map, x: Any, i: int) -> Any:
    """Example `i` of an argument; arguments that are not mapped are the same for all."""
    kind: Any = type(x)
    if kind is Mapped and x.tape is over:
        return x.value[i]
    return kind(row(over, part, i) for part in x) if kind in (list, tuple) else x


def _stacked(over: Map, name: str, rows: list[Any]) -> Any:
    first = rows[0]
    if isinstance(first, (list, tuple)):
        parts = [_stacked(over, name, list(part)) for part in zip(*rows, strict=True)]
        return getattr(type(first), "_make", type(first))(parts)
    kinds = {(np.shape(y), getattr(y, "dtype", type(y))) for y in rows}
    if len(kinds) > 1 or not (hasattr(first, "dtype") or type(first) in (bool, int, float)):
        raise Unbatchable(over, f"{name}, whose results differ in shape or dtype")
    return Mapped(np.stack(rows), over)


def value_of(over: Map, x: Any) -> Any:
    """The array of all examples of an argument: repeated, if it is not mapped."""
    if type(x) is Mapped and x.tape is over:
        return x.value
    x = x if hasattr(x, "dtype") else np.asarray(x)
    return np.broadcast_to(x, (over.size, *x.shape))


def only_input(count: int, arrays: Sequence[Any]) -> Map | None:
    """The newest map, if it maps one of the first `count` arrays, and none after these."""
    if not RUNNING:
        return None
    top = newest(arrays)
    if type(top) is not Mapped or any(is_mapped(top.tape, x) for x in arrays[count:]):
        return None
    return top.tape


def all_examples(over: Map, count: int, arrays: Sequence[Any]) -> tuple:
    """The arrays, with an axis of examples in each of the first `count` of them."""
    return (*(value_of(over, x) for x in arrays[:count]), *arrays[count:])


def is_mapped(over: Map, x: Any) -> bool:
    return type(x) is Mapped and x.tape is over


def spread(value: Any, rank: int) -> Any:
    """An array of all examples, with axes of size 1 after the first, so that one example has `rank`
    axes.
    """
    missing = rank + 1 - value.ndim
    if missing <= 0:
        return value
    return value.reshape(value.shape[:1] + (1,) * missing + value.shape[1:])


def aligned(over: Map, args: Sequence[Any]) -> list[Any]:
    """The arguments of an elementwise function, so that the axes of examples broadcast."""
    values, ranks, rank = [], [], 0
    for a in args:
        if type(a) is Mapped and a.tape is over:
            a = a.value
            n = a.ndim - 1
            ranks.append(n)
        else:
            if type(a) is list or type(a) is tuple:
                a = load("numpy").asarray(a)
            n = getattr(a, "ndim", 0)
            ranks.append(-1)
        if n > rank:
            rank = n
        values.append(a)
    for i, n in enumerate(ranks):
        if 0 <= n < rank:
            values[i] = spread(values[i], rank)
    return values


def wrapped(over: Map, y: Any) -> Any:
    """The result of a function of all examples, as mapped values."""
    if isinstance(y, (tuple, list)):
        return getattr(type(y), "_make", type(y))([wrapped(over, part) for part in y])
    return Mapped(y, over)


def elementwise(over: Map, func: Callable, *args: Any, **kw: Any) -> Any:
    """The rule of every elementwise function."""
    if kw:
        words = [k for k in kw if k in ("where", "a_min", "a_max", "min", "max")]
        values = aligned(over, (*args, *(kw[k] for k in words)))
        kw = kw | dict(zip(words, values[len(args) :]))
        return wrapped(over, func(*values[: len(args)], **kw))
    y = func(*aligned(over, args))
    return Mapped(y, over) if type(y) is not tuple else wrapped(over, y)


def rule(*funcs: Callable) -> Callable[[Callable], Callable]:
    """Decorates the rule of `funcs` for mapped values: `body(over, func, *args, **kw)`."""

    def register(body: Callable) -> Callable:
        for func in funcs:
            BATCHED[func] = body
        return body

    return register


def _needs(word: str) -> Callable[..., NoReturn]:
    def stop(self: Any, *args: Any, **kw: Any) -> NoReturn:
        raise Unbatchable(self.tape, word)

    return stop


def _unary(func: Any) -> Callable[[Any], Any]:
    return lambda self: one(func, self)


def one(func: Any, x: Any) -> Any:
    """An elementwise function of one value, by its rule, without a detour through NumPy."""
    if type(x) is Mapped:
        return Mapped(one(func, x.value), x.tape)
    return TRACED[func](x) if type(x) in LIFTED and func in TRACED else func(x)


def two(func: Any, a: Any, b: Any) -> Any:
    """An elementwise function of two values, by its rule, without a detour through NumPy."""
    if type(a) is Mapped or type(b) is Mapped:
        return pair(func, a, b)
    if (type(a) in LIFTED or type(b) in LIFTED) and func in TRACED:
        return TRACED[func](a, b)
    return func(a, b)


def pair(func: Any, a: Any, b: Any) -> Any:
    """An elementwise function of two values, one of which is mapped; the other may be anything."""
    if type(b) in LIFTED and (type(a) not in LIFTED or b.tape.level > a.tape.level):
        top, other = b, a
    else:
        top, other = a, b
    if type(top) is not Mapped:
        return call(func, a, b)
    over, x, kind = top.tape, top.value, type(other)
    if kind is Mapped and other.tape is over:  # then `top` is `a`
        y = other.value
        if x.ndim != y.ndim:
            x, y = aligned(over, (a, b))
        return Mapped(two(func, x, y), over)
    if kind is list or kind is tuple:
        return elementwise(over, func, a, b)
    n = getattr(other, "ndim", 0)
    if n >= x.ndim:
        x = spread(x, n)
    return Mapped(two(func, x, other) if top is a else two(func, other, x), over)


def _binary(func: Any) -> Callable[[Any, Any], Any]:
    return lambda self, other: pair(func, self, other)


def _reflected(func: Any) -> Callable[[Any, Any], Any]:
    return lambda self, other: pair(func, other, self)


CHANGED = "an array that is changed in place, as by x += y"


def _in_place(func: Any) -> Callable[[Any, Any], Any]:
    """`x += y` and the like. An array of the function's own is changed in place, so that its views
    change too, as those of one example would; one that the caller may own is not.
    """

    def operator(self: Any, other: Any) -> Any:
        value, over = self.value, self.tape
        if not self.ndim:
            return call(func, self, other)  # a number is replaced
        top = newest((self, other))
        traced = type(value) in LIFTED and type(value) is not Mapped
        own = (
            getattr(value, "taken", 0) is None
            if traced
            else type(value) is ndarray and value.flags.owndata
        )
        if top.tape is not over or not own:
            raise Unbatchable(over, CHANGED)
        func(*aligned(over, (self, other)), out=value)
        return self

    return operator


class Mapped(Methods):
    """The NumPy arrays of all examples of a map, that look like one."""

    __slots__ = ("tape", "value")
    __array_priority__ = 1001.0
    __hash__ = object.__hash__

    def __init__(self, value: Any, tape: Map):
        self.value = value
        self.tape = tape

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kw: Any) -> Any:
        if not kw and ufunc.nout == 1 and ufunc.signature is None and method == "__call__":
            if ufunc.nin == 1:
                return one(ufunc, self)
            if ufunc.nin == 2:
                return pair(ufunc, *args)
        top = newest(args) if not kw else newest((*args, *kw.values()))
        if type(top) is not Mapped:
            return top.__array_ufunc__(ufunc, method, *args, **kw)
        over = top.tape
        if any(x is not None for x in kw.pop("out", ())):
            raise Unbatchable(over, f"{_name(ufunc)} with out=, or a += x for a plain array a")
        if method != "__call__":
            how = METHODS.get(method)
            if how is None:
                raise Unbatchable(over, f"{_name(ufunc)}.{method}")
            return how(over, ufunc, *args, **kw)
        if ufunc.signature is None:
            return elementwise(over, ufunc, *args, **kw)
        return batched(over, ufunc, args, kw)

    def __array_function__(self, func: Any, types: Any, args: Any, kw: Any) -> Any:
        top = newest(args) if not kw else newest((*args, *kw.values()))
        if top is None:  # in a nest that is not a list or a tuple
            top = self
        if type(top) is not Mapped:
            return top.__array_function__(func, types, args, kw)
        if len(args) > 1:
            args, kw = out_by_name(func, args, kw)
        if kw and kw.get("out") is not None:
            raise Unbatchable(top.tape, f"{_name(func)} with out=")
        return batched(top.tape, func, args, kw)

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return load("numpy").namespace

    def __getitem__(self, index: Any) -> Any:
        return call(getitem, self, index)

    def __len__(self) -> int:
        if self.value.ndim < 2:
            raise TypeError("len() of unsized object")
        return self.value.shape[1]

    def __iter__(self) -> Any:
        return iter([self[i] for i in range(len(self))])

    def __repr__(self) -> str:
        return f"Mapped({self.value!r})"

    def __format__(self, spec: str) -> str:
        if spec:
            raise Unbatchable(self.tape, "format(x)")
        return repr(self)

    def __round__(self, digits: int = 0) -> Any:
        return np.round(self, digits)

    __bool__ = _needs("a Python if, while, and, or of a mapped value, or iso.cond")
    __float__ = __complex__ = _needs("float(x)")
    __int__ = __index__ = _needs("int(x), or a mapped value as an index of a plain array")
    item = _needs("x.item()")
    tolist = _needs("x.tolist()")
    __array__ = _needs("a mapped value where NumPy needs plain data, as np.asarray does")
    __setitem__ = _needs("x[i] = v")
    __contains__ = _needs("v in x")

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape[1:]

    @property
    def dtype(self) -> numpy.dtype:
        return self.value.dtype

    @property
    def ndim(self) -> int:
        return self.value.ndim - 1

    @property
    def size(self) -> int:
        return self.value.size // self.tape.size

    @property
    def strides(self) -> Any:
        return self.value.strides[1:]

    @property
    def flags(self) -> Any:
        return self.value[0].flags

    def __pos__(self) -> Any:
        return self

    def copy(self, order: Any = "C") -> Any:
        return np.copy(self, order) if self.ndim else self

    def __invert__(self) -> Any:
        return np.invert(self)

    __add__, __radd__, __iadd__ = _binary(np.add), _reflected(np.add), _in_place(np.add)
    __sub__, __rsub__ = _binary(np.subtract), _reflected(np.subtract)
    __isub__ = _in_place(np.subtract)
    __mul__, __rmul__ = _binary(np.multiply), _reflected(np.multiply)
    __imul__ = _in_place(np.multiply)
    __truediv__, __rtruediv__ = _binary(np.divide), _reflected(np.divide)
    __itruediv__ = _in_place(np.divide)
    __pow__, __rpow__, __ipow__ = _binary(pow), _reflected(pow), _in_place(np.power)
    __imod__, __ifloordiv__ = _in_place(np.remainder), _in_place(np.floor_divide)
    __iand__, __ior__ = _in_place(np.bitwise_and), _in_place(np.bitwise_or)
    __ixor__, __ilshift__ = _in_place(np.bitwise_xor), _in_place(np.left_shift)
    __irshift__ = _in_place(np.right_shift)
    __mod__, __rmod__ = _binary(np.remainder), _reflected(np.remainder)
    __floordiv__, __rfloordiv__ = _binary(np.floor_divide), _reflected(np.floor_divide)
    __and__, __rand__ = _binary(np.bitwise_and), _reflected(np.bitwise_and)  # pyright: ignore[reportAssignmentType]
    __or__, __ror__ = _binary(np.bitwise_or), _reflected(np.bitwise_or)  # pyright: ignore[reportAssignmentType]
    __xor__, __rxor__ = _binary(np.bitwise_xor), _reflected(np.bitwise_xor)  # pyright: ignore[reportAssignmentType]
    __lshift__, __rlshift__ = _binary(np.left_shift), _reflected(np.left_shift)
    __rshift__, __rrshift__ = _binary(np.right_shift), _reflected(np.right_shift)
    __eq__, __ne__ = _binary(np.equal), _binary(np.not_equal)
    __lt__, __le__ = _binary(np.less), _binary(np.less_equal)
    __gt__, __ge__ = _binary(np.greater), _binary(np.greater_equal)
    __neg__, __abs__ = _unary(np.negative), _unary(np.absolute)

    def __matmul__(self, other: Any) -> Any:
        if type(other) in LIFTED and other.tape is not self.tape:
            return call(np.matmul, self, other)
        return BATCHED[np.matmul](self.tape, np.matmul, self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return call(np.matmul, other, self)

    def __imatmul__(self, other: Any) -> Any:
        raise Unbatchable(self.tape, CHANGED)


LIFTED.add(Mapped)


def getitem(x: Any, index: Any) -> Any:
    """`x[index]` as a function."""
    if RUNNING and type(x) not in LIFTED:
        top = newest((index,))
        if type(top) is Mapped:
            return BATCHED[getitem](top.tape, getitem, x, index)
    return x[index]


@contextmanager
def running(over: Map) -> Iterator[None]:
    """While a map runs, functions of traced values ask whether a mapped one is newer."""
    RUNNING.append(over)
    try:
        yield
    finally:
        RUNNING.remove(over)
