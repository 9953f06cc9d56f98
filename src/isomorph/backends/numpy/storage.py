"""Values that are written in place, as NumPy writes arrays: every alias and every view sees it.

* An alias is the same object: it is given the new value and the new node. Nodes that were recorded
  before keep the old ones.
* A view knows what it was taken from, and how. A write empties the views of the same storage; one
  is taken again when it is read (`Stored.__getattr__`).
* What is written through a view is written into its storage. NumPy itself decides to which
  elements a view belongs: it is asked for the same view of an array of element numbers.
* The memory of a storage is overwritten only if nothing else refers to it, no rule and no array
  of the caller; otherwise it is copied first. So a loop that fills an array costs as much as
  in NumPy.

A `Buffer` is an array that was made while a function is differentiated and that nothing traced was
written to yet: plain memory. With the first traced number, it becomes a traced value.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, NoReturn
from weakref import ref

import numpy

from .holding import memory, snapshot
from .levels import LIFTED, newest
from .mapped import Mapped, Unbatchable

np: Any = numpy  # its type stubs do not know traced values
ndarray = numpy.ndarray
ACTIVE: ContextVar[Any] = ContextVar("isomorph.differentiated", default=None)  # the newest tape

HELP = (
    "; make the array with isomorph.numpy inside the differentiated function (np.zeros, or "
    "np.array(a) for a copy), or build it by np.stack"
)


WRITTEN = "an array that is written in place"


class Finished(RuntimeError):
    """A traced value was used after its function had returned."""


def settled(x: Any) -> Any:
    """`x` with the numbers of values whose functions have returned, also in lists and tuples."""
    while type(x) in LIFTED and type(x) is not Mapped and not x.tape.running:
        x = x.value
    kind: Any = type(x)
    return kind(map(settled, x)) if kind in (list, tuple) else x


class Rest:
    """The gradient of what an array held before `index` was written: that of all other elements."""

    __slots__ = ("index",)

    def __init__(self, index: Any):
        self.index = index


AT: dict[Any, Callable] = {}  # a ufunc -> a copy of x with ufunc.at(x, index, y) done


class Stored:
    """A value that can be written, or a view of one."""

    __slots__ = ("__weakref__", "hot", "node", "numbers", "taken", "tape", "value", "views")

    value: Any
    node: Any
    tape: Any
    taken: Any  # of a view: (what it was taken from, function, arguments, keywords)
    views: Any  # of a storage: weak references to its views that are not stale
    numbers: Any  # of a storage: its elements, numbered
    hot: Any  # of a storage: whether a part of it was written

    def __getattr__(self, name: str) -> Any:
        if name in ("value", "node"):
            take_again(self)
            return object.__getattribute__(self, name)
        if name == "numbers":
            return None
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def storage(x: Any) -> Any:
    """What a view belongs to in the end; any other value itself."""
    while x.taken is not None:
        x = x.taken[0]
    return x


def watch(view: Any, of: Any, func: Callable, args: tuple, kw: dict) -> None:
    """`view` is func(of, *args, **kw), and a view of it."""
    view.taken = (of, func, args, kw)
    _listed(storage(of), view)


def _listed(home: Any, view: Any) -> None:
    views = home.views
    if views is None:
        home.views = [ref(view)]
        return
    if len(views) & (len(views) - 1) == 0 and len(views) > 8:  # a power of two: drop the dead
        views[:] = [each for each in views if each() is not None]
    views.append(ref(view))


def take_again(view: Any) -> None:
    of, func, args, kw = view.taken
    new = func(of, *args, **kw)
    if type(new) is type(view) and new.tape is view.tape:
        view.value, view.node = new.value, new.node
        _listed(storage(of), view)
    else:  # its function has returned: it is the number that it was
        view.value, view.node = new, None


def emptied(home: Any) -> list[Any]:
    """Empty the views of a storage, which is written: they are taken again when they are read."""
    given = home.tape.given
    if given and type(home.node) is tuple and home.node[0] in given:
        x = given.pop(home.node[0])
        if any(numpy.may_share_memory(x, y) for y in given.values()):
            refuse(
                "x[i] = v",
                "needed an argument with memory of its own, got two that share it",
                "; pass a copy of one of them",
            )
        home.tape.changed.append(x)
    views = [view for each in home.views or () if (view := each()) is not None]
    home.views = None
    for view in views:
        for slot in ("value", "node"):
            try:
                delattr(view, slot)
            except AttributeError:  # taken of an empty view
                continue
    return views


def seen(y: Any, x: Any, func: Callable, place: int, args: Sequence[Any], kw: dict) -> None:
    """The traced result `y` of func(*args, **kw) shares memory with args[place], which is `x`: it
    is a view. What is read of a storage that is written again and again is copied, so that the
    storage can be overwritten while a rule keeps its part; then NumPy is asked whether it is a
    view.
    """
    if place:
        before, after = args[:place], args[place + 1 :]
        take: Callable = lambda of, *_, **kw: func(*before, of, *after, **kw)
        rest: Any = ()
    else:
        take, rest = func, tuple(args[1:])
    if storage(x).hot:
        numbers = positions(x)
        imaginary = func is np.imag and x.dtype.kind == "c"  # numbers have no imaginary parts
        if not imaginary and not shares(take(numbers, *rest, **kw), numbers):
            return
        if type(y.value) is ndarray:
            y.value = numpy.array(y.value, order="K")
    watch(y, x, take, rest, kw)


def shares(y: Any, x: Any) -> bool:
    """Whether the result `y` of a function of `x` is the same memory, or a part of it."""
    if y is x:
        return True
    kind = type(y)
    if kind is not type(x):
        return False
    if kind is ndarray:
        return y.base is not None and memory(y) is memory(x)
    if kind is Mapped:
        return y.ndim > 0 and y.tape is x.tape and shares(y.value, x.value)
    return kind in LIFTED and y.tape is x.tape and storage(y) is storage(x)


def positions(x: Any) -> Any:
    """The numbers of the elements of a storage that a view has. NumPy decides with them as it does
    for the array itself, since they lie in memory in the same order.
    """
    if x.taken is None:
        if x.numbers is None:
            like = bottom(x)
            x.numbers = numpy.empty_like(like, int, order="K", subok=False)
            x.numbers[...] = numpy.arange(like.size).reshape(like.shape)
        return x.numbers
    of, func, args, kw = x.taken
    return func(positions(of), *args, **kw)


def layout(x: Any) -> Any:
    """The array that lies in memory as NumPy's would: of a view, the numbers of its elements."""
    x = x.value if type(x) is Mapped else x
    return bottom(x) if getattr(x, "taken", None) is None else positions(x)


def bottom(x: Any) -> Any:
    """The plain array below all transforms."""
    while type(x) in LIFTED:
        x = x.value
    return x


def is_number(x: Any) -> bool:
    """Whether a value is one of NumPy's scalars, which are rebound and never written. What has no
    axes for each example of a map is taken for one.
    """
    while type(x) in LIFTED:
        if type(x) is Mapped:
            return x.ndim == 0
        x = x.value
    return not isinstance(x, ndarray)


def _counted(x: Any) -> int:
    """How many references there are to the memory of a storage."""
    return sys.getrefcount(x.value)


def _sample() -> Any:
    x = Stored()
    x.value = numpy.zeros(1)
    return x


SINGLE = _counted(_sample())  # if there is no other


def is_alone(x: Any) -> bool:
    return _counted(x) == SINGLE


def separate(home: Any) -> None:
    """Copy the memory of a storage if something else refers to it."""
    alone = is_alone(home)
    value = home.value
    kind = type(value)
    if kind is ndarray:
        if not (alone and value.base is None and value.flags.writeable):
            home.value = numpy.array(value, order="K")
    elif kind is Mapped:
        raise Unbatchable(value.tape, WRITTEN)
    elif not (alone and value.taken is None):
        home.value = np.copy(value, order="K")


def lent(x: Any, tape: Any) -> Any:
    """`x` for a function that may write into its argument: that does not change `x`. A plain array
    is read-only until the function of the tape returns.
    """
    kind = type(x)
    if kind is ndarray and x.flags.writeable:
        x = x.view()
        x.flags.writeable = False
        tape.held.append(x)
        return x
    return Mapped(lent(x.value, tape), x.tape) if kind is Mapped else snapshot(x)


def apart(x: Any, seen: set[int]) -> Any:
    """A result of a transform for the function around it: a write into it changes no other value.
    `seen` are the memories that were handed out.
    """
    if type(x) is Mapped:
        return Mapped(apart(x.value, seen), x.tape)
    if type(x) is not ndarray:
        return snapshot(x)
    if not x.flags.writeable or id(memory(x)) in seen:
        x = x.copy(order="K")
    seen.add(id(memory(x)))
    return x


def refuse(what: str, why: str, fix: str = HELP) -> NoReturn:
    raise TypeError(f"isomorph: {what}: {why}{fix}")


def check_levels(home: Any, v: Any, what: str) -> None:
    """Raise if a value of a newer transform is written into an array of an older one."""
    top = newest((v,))
    if type(top) is Mapped:
        raise Unbatchable(top.tape, what)
    if top is not None and top.tape.level > home.tape.level:
        outside(what, home)


def outside(what: str, home: Any) -> NoReturn:
    refuse(
        what,
        f"needed an array made inside the innermost differentiated function, got one of shape "
        f"{home.value.shape} made outside of it, which cannot take its traced values",
    )


def check_dtype(old: Any, new: Any, what: str) -> None:
    if old.kind != "c" and new.kind == "c":
        refuse(what, f"needed a complex array for {new} numbers, got one of {old}",
               "; make it with dtype=complex, or write np.real of the numbers")  # fmt: skip


def once(index: Any) -> bool:
    """Whether an index certainly has each position at most once."""
    parts = index if type(index) is tuple else (index,)
    dull = lambda i: i is None or i is Ellipsis or isinstance(i, (int, slice, numpy.integer))
    if all(dull(i) or (getattr(i, "ndim", 1) == 0 and i.dtype.kind in "iu") for i in parts):
        return True
    return len(parts) == 1 and getattr(parts[0], "dtype", None) == np.bool


def write(x: Any, index: Any, v: Any) -> None:
    """x[index] = v, where x, v or both are traced."""
    what = "x[i] = v"
    if is_number(x):
        raise TypeError(f"{type(bottom(x)).__name__!r} object does not support item assignment")
    home = storage(x)
    if not home.tape.running:
        raise Finished(GONE)
    check_levels(home, v, what)
    if not hasattr(v, "dtype"):
        v = numpy.asarray(v)
    check_dtype(x.dtype, v.dtype, what)
    single, shape = once(index), None
    if home is not x:
        index, shape = _in_storage(x, home, index)
    fits(home.value, index, v, shape)
    if home.value.ndim == 0 and shape:  # one element: the last number stays
        if 0 in shape:
            return
        v = np.ravel(v)[-1]
    value = v.value if type(v) in LIFTED and v.tape is home.tape else v
    node = v.node if value is not v else None
    emptied(home)
    separate(home)
    home.hot = True
    assign(home, index, value)
    del value
    grow(home, index, node, single)


def _in_storage(x: Any, home: Any, index: Any) -> tuple[Any, tuple]:
    """The index of x[index], of a view, in its storage; and the shape of x[index]."""
    if x.dtype.kind != home.dtype.kind:
        refuse("x[i] = v", "needed an array, got the real or imaginary part of one",
               "; write the complex numbers, x[i] = re + 1j * im")  # fmt: skip
    places = positions(x)
    if not places.flags.writeable:
        raise ValueError("assignment destination is read-only")
    places = places[index]
    if home.value.ndim == 0:
        return (), numpy.shape(places)
    flat = home.value.ndim == 1
    return places if flat else numpy.unravel_index(places, home.value.shape), numpy.shape(places)


def fits(x: Any, index: Any, value: Any, shape: Any) -> None:
    """Raise as NumPy does if numbers of that shape cannot be written there."""
    if numpy.ndim(value) == 0:
        return
    if shape is None:
        blank = numpy.broadcast_to(numpy.False_, x.shape)
        shape = blank[index].shape
    given = tuple(value.shape)
    extra = max(len(given) - len(shape), 0)
    core = given[extra:]
    pairs = zip(reversed(core), reversed(shape))
    if any(n != 1 for n in given[:extra]) or any(n not in (1, m) for n, m in pairs):
        raise ValueError(f"could not broadcast input array from shape {given} into shape {shape}")


def assign(home: Any, index: Any, value: Any) -> None:
    """Overwrite a part of the memory of a storage."""
    top, under = newest((value,)), newest((home.value,))
    if top is not None and (under is None or top.tape.level > under.tape.level):
        if type(top) is Mapped:
            raise Unbatchable(top.tape, WRITTEN)
        home.value = type(home)(home.value, top.tape, leaf(top.tape, home.value))
    home.value[index] = value


def leaf(tape: Any, x: Any) -> tuple:
    """A node of a constant."""
    return (next(tape.order), (), (), (), x.shape, x.dtype)


def grow(home: Any, index: Any, node: Any, single: bool) -> None:
    """The new node of a storage after a write, of a value with that node or of a constant."""
    old = home.value
    rest = lambda g: Rest(index)
    partials, parents = (rest,), ((0, home.node),)
    if node is not None:
        partials, parents = (_part(index, old.shape, single), rest), ((0, node), (1, home.node))
    home.node = (next(home.tape.order), partials, (), parents, old.shape, old.dtype)


def _part(index: Any, shape: tuple, single: bool) -> Callable[[Any], Any]:
    """The gradient of what was written. If a place is written twice, the last number counts."""
    if single:  # a copy, because `g` is overwritten next
        return lambda g: np.copy(g[index])
    numbers = numpy.arange(int(numpy.prod(shape))).reshape(shape)[index]
    last = numpy.zeros(int(numpy.prod(shape)), int)
    turns = numpy.arange(numbers.size).reshape(numbers.shape)
    last[numbers] = turns
    stays = last[numbers] == turns
    return lambda g: np.where(stays, g[index], 0.0)


def overwrite(x: Any, new: Any, what: str, *, wide: bool = False) -> Any:
    """Write a whole result into `x`, as `x += y` and `out=x` do, and return `x`; `wide`: it may be
    broadcast.
    """
    if not numpy.can_cast(new.dtype, x.dtype, "same_kind"):
        check_dtype(x.dtype, new.dtype, what)
        raise TypeError(
            f"{what}: cannot cast from {new.dtype} to {x.dtype} with casting rule 'same_kind'"
        )
    if wide and new.shape != x.shape and numpy.broadcast_shapes(new.shape, x.shape) == x.shape:
        new = np.broadcast_to(new, x.shape)
    if new.shape != x.shape:
        raise ValueError(
            f"{what}: non-broadcastable output operand with shape {x.shape} doesn't match the "
            f"broadcast shape {new.shape}"
        )
    if not x.tape.running:
        raise Finished(GONE)
    check_levels(x, new, what)
    if new.dtype != x.dtype and type(new) in LIFTED:
        new = new.astype(x.dtype)
    fresh = type(new) is type(x) and new.tape is x.tape and new.taken is None
    if x.taken is None and fresh and new is not x and _lies_alike(bottom(new), bottom(x)):
        emptied(x)
        x.value, x.node = new.value, new.node
    else:
        write(x, Ellipsis, new)
    return x


def _lies_alike(x: Any, y: Any) -> bool:
    return isinstance(x, ndarray) and x.strides == y.strides


GONE = (
    "a traced NumPy value was written after the differentiated function had returned; return it "
    "as an output or as aux instead of keeping it"
)
