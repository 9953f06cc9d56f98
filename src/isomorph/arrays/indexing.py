"""Reading and updating parts of an array without changing it, with NumPy's indexing rules on every
backend.

An index may contain integers whose values are not known while a program is traced. One such integer
is then a window of length one, and a slice of known length a window of that length; the rest of
the index applies to the window.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar, cast

from ..core.default_backend import host
from ..core.dispatch import backend_of, dtype_of, find_backend
from ..core.dtypes import index_dtype

if TYPE_CHECKING:
    from ..core.contract import Contract
    from ..types.array_types import Shaped

BASIC = {int, slice, type(None), type(Ellipsis)}
KNOWN = {int, type(None)}
A = TypeVar("A", bound="Shaped")
Mode: TypeAlias = Literal["drop"]


class span:
    """`length` places from `start` on, as part of an index of `iso.at`: like the slice
    `start:start + length`, but with a known length even if `start` is unknown, as in a compiled
    program.

    A span outside the axis raises IndexError. Where `start` cannot be read, for example in a
    compiled program, such a span reads NaN (for integers the nearest elements) and writes nothing.

    >>> iso.at(np.zeros(4))[iso.span(1, 2)].set(5.0)
    array([0., 5., 5., 0.])
    """

    __slots__ = ("length", "start")

    def __init__(self, start: Any, length: int):
        self.start, self.length = start, operator.index(length)
        if self.length < 0:
            raise ValueError(f"span: needed a length of at least 0, got {length}")


class at(Generic[A]):
    """`iso.at(x)[index].set(v)`: a copy of `x` in which `x[index]` is `v`; `x` itself is untouched.

    Also `.add`, `.multiply`, `.min`, `.max` with `v`, and `.get()`, which is `x[index]`. The index
    may hold ints, slices, None, Ellipsis, one boolean mask, or integer arrays. A position that
    occurs twice is added twice by `.add`, and must not occur twice in `.set`. In a compiled program
    an integer that is an argument or is computed may be used as an int, and as the start of a slice
    of known length: `p : p + 3`, or `iso.span(p, 3)`. Such a slice is not shortened at the end of
    the axis, as in NumPy; outside the axis it behaves like a span.

    Integers that are out of range raise where they can be read; in a compiled program they do what
    the framework does. With `.set(v, mode="drop")`, and so on for the others, what is out of range
    is left out, everywhere, and gets no gradient. Negative integers still count from the end.

    >>> iso.at(np.zeros(3))[1:].set(5.0)
    array([0., 5., 5.])
    """

    __slots__ = ("x",)

    def __init__(self, x: A):
        self.x = x

    def __getitem__(self, index: Any) -> Place[A]:
        return Place(self.x, index)


class Place(Generic[A]):
    """An array and an index into it."""

    __slots__ = ("index", "x")

    def __init__(self, x: A, index: Any):
        self.x, self.index = x, index

    def get(self) -> A:
        """`x[index]`."""
        backend = backend_of(self.x)
        return _got(backend, self.x, _known(backend, self.x, self.index))

    def set(self, value: Any, *, mode: Mode | None = None) -> A:
        """`x` with `x[index] = value`."""
        return self._update(value, "set", mode)

    def add(self, value: Any, *, mode: Mode | None = None) -> A:
        """`x` with `x[index] += value`, repeated positions added repeatedly."""
        return self._update(value, "add", mode)

    def multiply(self, value: Any, *, mode: Mode | None = None) -> A:
        """`x` with `x[index] *= value`."""
        return self._update(value, "multiply", mode)

    def min(self, value: Any, *, mode: Mode | None = None) -> A:
        """`x` with the smaller of `x[index]` and `value`."""
        return self._update(value, "min", mode)

    def max(self, value: Any, *, mode: Mode | None = None) -> A:
        """`x` with the larger of `x[index]` and `value`."""
        return self._update(value, "max", mode)

    def _update(self, value: Any, how: str, mode: Mode | None) -> Any:
        backend = backend_of(self.x)
        if mode not in (None, "drop"):
            raise ValueError(f"at(x)[index].{how}: needed mode None or 'drop', got {mode!r}")
        if value is None:
            raise TypeError(f"at(x)[index].{how}: needed a number or an array, got None")
        literal = value if find_backend(value) is None else None  # a number, or lists of numbers
        if literal is not None:
            value = backend.asarray(literal, device=backend.device_of(self.x))
        backend = backend_of(self.x, value)
        if _rank(backend, value.dtype) > _rank(backend, self.x.dtype):
            raise TypeError(
                f"at(x)[index].{how}: needed a value that fits into {dtype_of(self.x)}, "
                f"got {dtype_of(value)}; convert one of the two"
            )
        if literal is not None and value.dtype != self.x.dtype:  # keep all of its digits
            device = backend.device_of(self.x)
            value = backend.asarray(literal, dtype=self.x.dtype, device=device)
        index = _known(backend, self.x, self.index)
        if mode is None:
            return _updated(backend, self.x, index, value, how)
        return _dropping(backend, self.x, index, value, how)


def _rank(backend: Contract, dtype: Any) -> int:
    """The order of dtype kinds: a value of a higher kind does not fit into an array of a lower."""
    kinds = ("bool", "integral", "real floating", "complex floating")
    if backend.is_float(dtype):
        return 3 if backend.is_complex(dtype) else 2
    return next((i for i, kind in enumerate(kinds) if backend.isdtype(dtype, kind)), 0)


# Integers whose values are not known.


class Window(NamedTuple):
    """`length` places of an axis from an unknown start; with length None, one place, and the axis
    is removed.
    """

    start: Any
    length: int | None


def _got(xp: Contract, x: Any, index: Any) -> Any:
    spot = _first_window(index)
    if spot is None:
        return xp.index_get(x, index)
    start, length = index[spot]
    part = xp.window(x, start, 1 if length is None else length, _axis(x, index, spot))
    return _got(xp, part, _inside(index, spot))


def _updated(xp: Contract, x: Any, index: Any, value: Any, how: str) -> Any:
    spot = _first_window(index)
    if spot is None:
        mask = _mask_for_all(xp, x, index, value)
        if mask is None or (how != "set" and _rank(xp, x.dtype) == 0):
            return xp.index_update(x, index, value, how)
        return _where(xp, mask, x, xp.astype(value, x.dtype), how)
    start, length = index[spot]
    if length == 0:
        return x
    axis = _axis(x, index, spot)
    part = xp.window(x, start, 1 if length is None else length, axis)
    return xp.put_window(x, _updated(xp, part, _inside(index, spot), value, how), start, axis)


def _dropping(xp: Contract, x: Any, index: Any, value: Any, how: str) -> Any:
    """`_updated`, with a place more at the end of each axis that integers index: it takes what is
    out of range, and is cut off.
    """
    parts = list(index) if type(index) is tuple else [index]
    grown = x
    for spot, item in enumerate(parts):
        if type(item) is int:
            size = x.shape[_axis(x, tuple(parts), spot)]
            if not -size <= item < size:
                return x
        elif _is_integers(item):
            axis = _axis(x, tuple(parts), spot)
            parts[spot] = _redirected(xp, x, item, x.shape[axis])
            more = [n if i != axis else 1 for i, n in enumerate(grown.shape)]
            spare = xp.zeros(tuple(more), dtype=x.dtype, device=xp.device_of(x))
            grown = xp.concat([grown, spare], axis=axis)
    if grown is x:
        return _updated(xp, x, index, value, how)
    whole = _updated(xp, grown, tuple(parts), value, how)
    return xp.index_get(whole, tuple(slice(0, n) for n in x.shape))


def _is_integers(item: Any) -> bool:
    """Whether an item of an index is an array, or nested lists, of integers."""
    if isinstance(item, (list, tuple, range)):
        return len(item) > 0
    dtype = getattr(item, "dtype", None)
    return dtype is not None and "int" in str(dtype)


def _redirected(xp: Contract, x: Any, item: Any, size: int) -> Any:
    """Positions from 0 on, in which `size` stands for what is out of range."""
    if find_backend(item) is not xp:
        item = xp.asarray(item, device=xp.device_of(x))
        if not xp.isdtype(item.dtype, "integral"):
            raise IndexError(
                f"at(x)[index]: needed integers or booleans in a list, got {dtype_of(item)}"
            )
    item = xp.astype(item, index_dtype(xp))
    item = xp.where(item < 0, item + size, item)
    return xp.where(xp.logical_and(item >= 0, item < size), item, xp.full_like(item, size))


def _mask_for_all(xp: Contract, x: Any, index: Any, value: Any) -> Any:
    """A mask over the first axes of `x`, if every place where it is true gets the same value: then
    no shape depends on values, and a compiled program may compute the mask.
    """
    mask, *rest = index if type(index) is tuple else (index,)
    if find_backend(mask) is not xp or "bool" not in str(mask.dtype) or not mask.shape:
        return None
    axes, behind = len(mask.shape), tuple(x.shape[len(mask.shape) :])
    if axes > len(x.shape) or tuple(mask.shape) != tuple(x.shape[:axes]):
        return None
    whole = [type(i) is slice and i == slice(None) for i in rest]
    gaps = sum(i is Ellipsis for i in rest)
    if sum(whole) + gaps < len(rest) or sum(whole) > len(behind) or gaps > 1:
        return None
    pairs = zip(reversed(value.shape), reversed(behind))
    if len(value.shape) > len(behind) or any(n not in (1, m) for n, m in pairs):
        return None
    return xp.reshape(mask, (*mask.shape, *(1,) * len(behind))) if behind else mask


def _where(xp: Any, mask: Any, x: Any, value: Any, how: str) -> Any:
    if how != "set":  # values elsewhere that are not finite must not reach the gradient
        combine = {"add": xp.add, "multiply": xp.multiply, "min": xp.minimum, "max": xp.maximum}
        value = combine[how](xp.where(mask, x, xp.ones_like(x)), value)
    return xp.where(mask, value, x)


def _first_window(index: Any) -> int | None:
    if type(index) is tuple:
        for spot, item in enumerate(index):
            if type(item) is Window:
                return spot
    return None


def _inside(index: tuple, spot: int) -> tuple:
    """The index that applies to the part under a window."""
    return (*index[:spot], 0 if index[spot].length is None else slice(None), *index[spot + 1 :])


def _axis(x: Any, index: tuple, spot: int) -> int:
    """The axis that an item of the index belongs to."""
    before = index[:spot]
    axis = sum(map(_width, before))
    if any(item is Ellipsis for item in before):
        axis += len(x.shape) - sum(map(_width, index))
    return axis


def _width(item: Any) -> int:
    """How many axes an item of an index consumes."""
    if item is None or item is Ellipsis:
        return 0
    dtype = getattr(item, "dtype", None)
    return len(item.shape) if dtype is not None and "bool" in str(dtype) else 1


def _known(xp: Contract, x: Any, index: Any) -> Any:
    """The index with ints for values that can be read, windows for the others, and masks for lists
    of booleans.
    """
    parts = index if type(index) is tuple else (index,)
    if all(_is_basic(item) for item in parts):
        return index
    arrays = any(_is_array(item) for item in parts)
    for item in parts:
        if find_backend(item) not in (None, xp, host()):  # NumPy integers work everywhere
            backend_of(x, item)
    out = []
    parts = tuple(
        xp.asarray(item, device=xp.device_of(x)) if _is_mask(item) else item for item in parts
    )
    for spot, item in enumerate(parts):
        if type(item) is span:
            item = _spanned(xp, x, parts, spot)
        elif type(item) is slice:
            item = _sliced(xp, x, parts, spot)
        elif not arrays and getattr(item, "shape", None) == () and "int" in str(item.dtype):
            number = _read(xp, item)
            item = Window(item, None) if number is None else number
        out.append(item)
    return tuple(out)


def _is_basic(item: Any) -> bool:
    kind = type(item)
    if kind is not slice:
        return kind in BASIC
    return type(item.start) in KNOWN and type(item.stop) in KNOWN and type(item.step) in KNOWN


def _is_array(item: Any) -> bool:
    """Whether NumPy would treat a number next to this item as an array."""
    if isinstance(item, (list, tuple, range, bool)):
        return True
    shape = getattr(item, "shape", None)
    return shape is not None and (len(shape) > 0 or "bool" in str(item.dtype))


def _is_mask(item: Any) -> bool:
    """Whether an item of an index is nested lists of booleans."""
    if not isinstance(item, (list, tuple)):
        return False
    while isinstance(item, (list, tuple)) and item:
        item = item[0]
    return isinstance(item, bool) or "bool" in str(getattr(item, "dtype", ""))


def _read(xp: Contract, number: Any) -> int | None:
    """An integer, if its value can be read; else None."""
    if number is None:
        return None
    return xp.integer(number) if find_backend(number) is xp else operator.index(number)


def _sliced(xp: Contract, x: Any, parts: tuple, spot: int) -> Any:
    """A slice with known bounds, or a window. NumPy's slice with a negative start that ends at or
    beyond the front is empty: the window is then placed outside the axis.
    """
    item = parts[spot]
    bounds = [item.start, item.stop, item.step]
    read = [_read(xp, bound) for bound in bounds]
    if all(bound is None or number is not None for bound, number in zip(bounds, read)):
        return slice(*read)
    length = None
    if item.start is not None and item.stop is not None and read[2] in (None, 1):
        length = xp.distance(item.start, item.stop)
    if length is None:
        raise TypeError(
            "at(x)[start:stop]: needed a slice whose length is known while the program is traced, "
            "got bounds that depend on its inputs; write iso.at(x)[iso.span(start, length)]"
        )
    length, start = max(length, 0), cast(Any, item.start)
    size = x.shape[_axis(x, parts, spot)]
    crosses = (start < 0) & (start + length >= 0)
    return Window(xp.where(crosses, xp.full_like(start, size), start), length)


def _spanned(xp: Contract, x: Any, parts: tuple, spot: int) -> Any:
    """A span as a slice if its start can be read, else as a window."""
    item = parts[spot]
    start = _read(xp, item.start)
    if start is None:
        return Window(item.start, item.length)
    size = x.shape[_axis(x, parts, spot)]
    first = start + size if start < 0 else start
    if not 0 <= first <= first + item.length <= size:
        raise IndexError(
            f"at(x)[span]: needed a span within {size} places, got {item.length} from {start} on"
        )
    return slice(first, first + item.length)
