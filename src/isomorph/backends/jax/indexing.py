"""NumPy's indexing: JAX moves indices that are out of bounds to the edge or drops them, and takes
no sequences.

Indices that are known at the call are checked by NumPy itself, on an array of one byte; traced
indices keep JAX's rule.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .. import affine
from ..repeating import multiplied
from ..windows import placed, written
from . import private
from .literals import native

BASIC = {int, slice, type(None), type(Ellipsis)}
COMBINE = {"multiply": jnp.multiply, "min": jnp.minimum, "max": jnp.maximum}


def get(x: Any, index: Any) -> Any:
    """`x[index]`."""
    x, index = _ready(native(x), index)
    return x[index]


def update(x: Any, index: Any, value: Any, how: str) -> Any:
    """A copy of `x` with `x[index]` set or combined."""
    x = native(x)
    target, index = _ready(x, index)
    try:
        y = _updated(target, index, value, how)
    except ValueError:
        y = _updated(target, index, _fitted(target[index].shape, value, how), how)
    return y if target is x else y.reshape(x.shape)


def window(xp: Any, x: Any, start: Any, length: int, axis: int) -> Any:
    """`Backend.window`, which XLA compiles to one slice."""
    start, fits = placed(xp, start, length, x.shape[axis])
    part = jax.lax.dynamic_slice_in_dim(x, start, length, axis)
    return jnp.where(fits, part, jnp.nan) if jnp.issubdtype(x.dtype, jnp.inexact) else part


def put_window(xp: Any, x: Any, part: Any, start: Any, axis: int) -> Any:
    """`Backend.put_window`. XLA writes one place in place if nothing else reads the array. Several
    it might compute while it writes, see `_reads_what_it_writes`.
    """
    if part.shape[axis] > 1 and isinstance(x, Tracer) and isinstance(part, Tracer):
        return written(xp, x, part, start, axis)
    start, fits = placed(xp, start, part.shape[axis], x.shape[axis])
    there = jax.lax.dynamic_slice_in_dim(x, start, part.shape[axis], axis)
    return jax.lax.dynamic_update_slice_in_dim(x, jnp.where(fits, part, there), start, axis)


def distance(start: Any, stop: Any) -> int | None:
    """`Backend.distance`. JAX has no public way to ask a tracer how it was computed: if the private
    way fails, the difference is unknown.
    """
    apart = affine.constant_difference(_mapped(start), _mapped(stop))
    if apart is not None:
        return apart
    of = private.inner
    same = lambda x, y: x is y or (of(x) is not None and of(x) is of(y))
    return affine.distance(start, stop, _step, same)


def _mapped(x: Any) -> tuple[tuple, Any]:
    """The numbers of all examples, if vmap knows them, and the maps that apply to them."""
    maps: tuple = ()
    while isinstance(x, Tracer):
        maps += private.map_of(x)
        x = private.inner(x)
    return maps, x if isinstance(x, jax.Array) else None


def _step(x: Any) -> tuple[Any, int] | None:
    name, inputs = private.made_of(x)
    if name is None or not jnp.issubdtype(x.dtype, jnp.integer):
        return None
    if name == "convert_element_type" and len(inputs) == 1:
        return inputs[0], 0
    if name not in ("add", "sub") or len(inputs) != 2:
        return None
    left, right = inputs
    number = _constant(right)
    if number is None and name == "add":
        left, number = right, _constant(left)
    return None if number is None else (left, -number if name == "sub" else number)


def _constant(x: Any) -> int | None:
    for _ in range(3):  # a literal may contain its number again, or an array of it
        inner = private.inner(x)
        x = x if inner is None else inner
    return int(x) if isinstance(x, (int, np.generic, np.ndarray)) else None


def _updated(x: Any, index: tuple, value: Any, how: str) -> Any:
    if how in COMBINE and not _repeats(x, index):  # JAX does not differentiate all of these
        value, how = COMBINE[how](x[index], value), "set"
    if how == "multiply" and jnp.issubdtype(x.dtype, jnp.inexact):
        return _multiplied(x, *_flat(x, index, value))
    if how == "set" and not writes_in_order() and _repeats(x, index):
        return _last(x, index, value)
    if how == "add" and _reads_what_it_writes(x, index, value):  # JAX 0.11
        value, how = x[index] + value, "set"
    if how == "set" and _reads_what_it_writes(x, index, value):
        apart = jnp.zeros(x.shape, x.dtype).at[index].set(value)
        return jnp.where(jnp.zeros(x.shape, bool).at[index].set(True), apart, x)
    return getattr(x.at[index], how)(value)


def _reads_what_it_writes(x: Any, index: tuple, value: Any) -> bool:
    """Whether XLA might compute `value` while it writes, from elements of `x` that it has
    overwritten. On a CPU it does so for slices (JAX 0.10, `lax.dynamic_update_slice` too).
    """
    if not (isinstance(x, Tracer) and isinstance(value, Tracer)):
        return False
    basic = all(i is None or i is Ellipsis or isinstance(i, (int, slice)) for i in index)
    return basic and value.size > 1


def writes_in_order() -> bool:
    """Whether of two values for one position the last one counts, as in NumPy. On a GPU it is
    either of them, and the gradient can belong to the other.
    """
    return jax.default_backend() == "cpu"


def _last(x: Any, index: tuple, value: Any) -> Any:
    """`x` with `x[index]` set; if positions repeat, the last value counts."""
    value, where = _flat(x, index, value)
    if not value.size:
        return x
    none = jnp.full(x.size, -1)
    last = none.at[where].max(jnp.arange(value.size), mode="drop")
    found = jnp.where(last < 0, x.reshape(-1), value[jnp.maximum(last, 0)])
    return found.reshape(x.shape)


def _flat(x: Any, index: tuple, value: Any) -> tuple[Any, Any]:
    """The values for `x[index]` and their positions in the flattened `x`; a position out of bounds
    is `x.size`.
    """
    places = jnp.arange(x.size).reshape(x.shape)
    where = places.at[index].get(mode="fill", fill_value=x.size)
    value = jnp.broadcast_to(jnp.asarray(value, x.dtype), where.shape)
    return value.reshape(-1), where.reshape(-1)


@jax.custom_jvp
def _multiplied(x: Any, value: Any, where: Any) -> Any:
    """A product over flat positions, which may repeat; positions out of bounds are dropped."""
    return x.reshape(-1).at[where].multiply(value, mode="drop").reshape(x.shape)


@_multiplied.defjvp
def _multiplied_jvp(primals: tuple, tangents: tuple) -> tuple:
    """JAX has no derivative for it."""
    x, value, where = primals
    rows = jnp.arange(x.size)

    def product(x: Any, value: Any) -> Any:
        return multiplied(jnp, x.reshape(-1), value, where, rows).reshape(x.shape)

    return jax.jvp(product, (x, value), tuple(tangents[:2]))


def _fitted(place: tuple[int, ...], value: Any, how: str) -> Any:
    """The value without leading axes of size 1, which NumPy ignores."""
    value = jnp.asarray(value)
    extra = max(value.ndim - len(place), 0)
    rest = value.shape[extra:]
    pairs = zip(reversed(rest), reversed(place))
    if any(n != 1 for n in value.shape[:extra]) or any(n not in (1, m) for n, m in pairs):
        raise ValueError(
            f"at(x)[index].{how}: needed a value that broadcasts to the selected shape {place}, "
            f"got shape {value.shape}"
        )
    return value.reshape(rest)


def _ready(x: Any, index: Any) -> tuple[Any, tuple]:
    """An array and a checked index for JAX: the given ones, or `x` flattened and its positions."""
    parts = index if isinstance(index, tuple) else (index,)
    if not BASIC.issuperset(map(type, parts)):
        parts = tuple(_part(i) for i in parts)
        if any(isinstance(i, np.ndarray) and i.ndim == 0 for i in parts):  # a single boolean
            return x.reshape(-1), (_positions(x, parts),)
    _check(x.shape, parts)
    return x, parts


def _part(i: Any) -> Any:
    """One entry of an index: a sequence or boolean as an array, a NumPy number as an int."""
    if isinstance(i, (list, tuple, range)):
        held = any(isinstance(x, jax.Array) for x in jax.tree.leaves(i))
        i = jnp.asarray(i) if held else np.asarray(i)
        return i if i.size else i.astype(int)  # empty: NumPy accepts [] as integers
    if isinstance(i, (bool, np.bool_)):
        return np.asarray(i)
    if isinstance(i, (np.ndarray, np.generic)) and i.dtype.kind in "iu":
        # JAX wraps a negative index in its own dtype, which may be too narrow
        return i.astype(int) if i.ndim else i.item()
    if isinstance(i, jax.Array):
        if i.dtype == bool:
            return np.asarray(i) if i.ndim == 0 and not isinstance(i, Tracer) else i
        return i.astype(int) if i.dtype.kind in "iu" and i.dtype.itemsize < 4 else i
    if hasattr(i, "shape") and not isinstance(i, (np.ndarray, np.generic)):
        raise TypeError(
            f"at(x)[index]: needed an index of ints, slices, and arrays of JAX or NumPy, got "
            f"{type(i).__module__}.{type(i).__qualname__}; move it with iso.convert first"
        )
    return i  # the check raises if it is not an index


def _check(shape: tuple[int, ...], parts: tuple) -> None:
    """NumPy's IndexError if the index does not fit an array of this shape."""
    if any(isinstance(i, Tracer) and i.dtype == bool for i in parts):
        return  # JAX raises its own error for these
    # Axes that are sliced or left out fit any size: with size 1 there the test array stays small.
    sizes, host, axis = [1] * len(shape), [], 0
    free = max(len(shape) - sum(_width(i) for i in parts), 0)
    for i in parts:
        here = slice(axis, axis + (free if i is Ellipsis else _width(i)))
        axis = here.stop
        if isinstance(i, Tracer):
            i = np.zeros(i.shape, int)
        elif i is not Ellipsis and not isinstance(i, slice):
            sizes[here] = shape[here]
        host.append(np.asarray(i) if isinstance(i, jax.Array) else i)
    np.ndarray(sizes, bool, b"\0", strides=[0] * len(sizes))[tuple(host)]


def _width(i: Any) -> int:
    """How many axes an entry of an index consumes."""
    if i is None or i is Ellipsis:
        return 0
    is_mask = isinstance(i, (np.ndarray, jax.Array)) and i.dtype == bool
    return i.ndim if is_mask else 1


def _positions(x: Any, parts: tuple) -> np.ndarray:
    """The positions in the flattened `x` that a known index selects."""
    if any(isinstance(i, Tracer) for i in parts):
        raise TypeError("at(x)[index]: a boolean cannot be combined with a traced array")
    return np.arange(x.size).reshape(x.shape)[
        tuple(np.asarray(i) if isinstance(i, jax.Array) else i for i in parts)
    ]


def _repeats(x: Any, index: tuple) -> bool:
    """Whether an index may select a position twice: its integer arrays do, or are traced."""
    arrays = [i for i in index if isinstance(i, (np.ndarray, jax.Array))]
    if any(isinstance(i, Tracer) for i in arrays):
        return True
    if all(i.dtype == bool for i in arrays):
        return False
    where = _positions(x, index)
    return np.unique(where).size != where.size
