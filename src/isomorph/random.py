"""Random numbers drawn with explicit keys: the same key gives the same numbers on every backend.

A key is two words of 32 bits, a uint32 array of shape (2,). Nothing is remembered between calls:
the same key draws the same numbers, so each draw takes a key of its own, from `split` or `fold_in`.
Draws are arrays of the key's backend, on its device. They are constants to differentiation, and
they can be compiled, with the key as an argument.

>>> first, second = iso.random.split(iso.random.key(0))
>>> iso.random.uniform(first, (2,)).dtype
dtype('float32')

Keys, bits, uniform and boolean draws equal those of `jax.random` (threefry2x32) to the last bit;
draws that need a logarithm are computed in float64 and rounded, see `normal`. With `exact=False`,
where a function has it, the framework's own generator is used, seeded with the key: faster, but the
numbers differ between backends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from operator import index
from typing import TYPE_CHECKING, Any, overload

from .creation import asarray
from .default_backend import home
from .dispatch import backend_of, dtype_of, find_backend
from .meanings import random as draws

if TYPE_CHECKING:
    from .array_types import A, Shaped
    from .backends.contract import Contract
    from .typing import BackendName, DType

__all__ = [
    "bernoulli",
    "bits",
    "categorical",
    "fold_in",
    "key",
    "normal",
    "permutation",
    "split",
    "truncated_normal",
    "uniform",
]


def __dir__() -> list[str]:
    """What is public."""
    return [*__all__, *(name for name in globals() if name.startswith("__"))]


Shape = int | Sequence[int]
DIGITS = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}  # bits after the leading 1
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")


def key(seed: int, /, *, device: Any = None, backend: BackendName | None = None) -> Any:
    """A key from an integer of at most 64 bits, made on `backend`, else on that of the enclosing
    `use_backend`, else in NumPy.

    >>> iso.random.key(7)
    array([0, 7], dtype=uint32)
    """
    if not isinstance(seed, Integral) or isinstance(seed, bool):
        raise TypeError(
            f"random.key: needed an integer, got {_kind(seed)}; for an integer that is only known "
            "in compiled code, use random.fold_in"
        )
    seed = index(seed)
    if not -(2**63) <= seed < 2**64:
        raise ValueError(f"random.key: needed an integer of 64 bits, got {seed}")
    return asarray(
        [seed >> 32 & draws.MASK, seed & draws.MASK], dtype="uint32", device=device, backend=backend
    )


def split(key: A, /, n: int = 2) -> A:
    """`n` new keys, [n, 2]: `first, second = iso.random.split(key)`.

    >>> iso.random.split(iso.random.key(0), 3).shape
    (3, 2)
    """
    xp = _backend("split", key)
    if not isinstance(n, Integral) or n < 1:
        raise ValueError(f"random.split: needed the number of keys, at least 1, got {n!r}")
    return xp.unpackable(xp.draw(draws.keys, key, 0, (index(n),)))


def fold_in(key: A, data: Any, /) -> A:
    """A new key from a key and a 32-bit number, or an integer array without axes, of which the
    lowest 32 bits are used.

    >>> key = iso.random.key(0)
    >>> bool(np.all(iso.random.fold_in(key, 1) == iso.random.split(key)[1]))
    True
    """
    xp = _backend("fold_in", key)
    if isinstance(data, Integral) and not isinstance(data, bool):
        number = index(data)
        if not 0 <= number < 2**32:
            raise ValueError(f"random.fold_in: needed an integer from 0 to 2**32 - 1, got {number}")
        return xp.draw(draws.keys, key, number, (1,))[0, ...]
    if find_backend(data) is None or tuple(data.shape) or not xp.isdtype(data.dtype, "integral"):
        raise TypeError(
            "random.fold_in: needed an integer, or an integer array without axes, got "
            f"{_kind(data)}"
        )
    backend_of(key, data)
    return xp.fold_in(key, data)


def bits(key: A, shape: Shape = (), /, *, dtype: DType = "uint32") -> A:
    """Unsigned integers with random bits, in uint8, uint16, uint32 or uint64.

    >>> iso.random.bits(iso.random.key(0), 2)
    array([4070199207, 4202968722], dtype=uint32)
    """
    xp = _backend("bits", key)
    kind = xp.dtype(dtype)
    word = next((w for w in UNSIGNED if kind == getattr(xp, w)), None)
    if word is None:
        raise TypeError(f"random.bits: needed one of {', '.join(UNSIGNED)}, got {dtype!r}")
    return xp.draw(draws.bits, key, 0, _shape("bits", shape), word)


def uniform(
    key: A, shape: Shape = (), /, *, minval: float = 0.0, maxval: float = 1.0,
    dtype: DType | None = None, exact: bool = True,
) -> A:  # fmt: skip
    """Numbers from `minval` up to `maxval`, which is left out (float16 and bfloat16 may be rounded
    to `maxval`). The dtype is that of the enclosing `use_backend`, or float32.

    >>> iso.random.uniform(iso.random.key(0), 2)
    array([0.947667 , 0.9785799], dtype=float32)
    """
    xp = _backend("uniform", key)
    shape, word = _shape("uniform", shape), _dtype(xp, "uniform", dtype)
    low, high = (_number("uniform", n, x) for n, x in (("minval", minval), ("maxval", maxval)))
    if not low < high or math.isinf(high - low):
        raise ValueError(f"random.uniform: needed minval < maxval, got {low} and {high}")
    inner = _inner(word)
    if not exact:
        numbers = xp.quick(key, shape, getattr(xp, inner), False)
        if (low, high) != (0.0, 1.0):
            numbers = numbers * (high - low) + low
    else:
        numbers = xp.draw(draws.uniform, key, 0, shape, inner, DIGITS[word], low, high)
    return _cast(xp, numbers, word)


def normal(key: A, shape: Shape = (), /, *, dtype: DType | None = None, exact: bool = True) -> A:
    """Normally distributed numbers with mean 0 and variance 1.

    Each is the inverse of the distribution function at one uniform number, with relative error
    about 10⁻¹⁵ in float64, rounded to float32. So all backends give the same float32, except that
    about one in 10⁸ differs in its last bit; float64 numbers agree to about 10⁻¹⁵.
    `jax.random.normal` is the same function with less precision.

    >>> iso.random.normal(iso.random.key(0), 2)
    array([1.6226422, 2.0252647], dtype=float32)
    """
    xp = _backend("normal", key)
    shape, word = _shape("normal", shape), _dtype(xp, "normal", dtype)
    inner = _inner(word)
    if not exact:
        return _cast(xp, xp.quick(key, shape, getattr(xp, inner), True), word)
    return _cast(xp, xp.draw(draws.normal, key, 0, shape, inner), word)


def truncated_normal(
    key: A,
    shape: Shape = (),
    /,
    *,
    lower: float = -2.0,
    upper: float = 2.0,
    dtype: DType | None = None,
) -> A:
    """Normally distributed numbers, conditioned to lie between `lower` and `upper`; see `normal`.

    >>> x = iso.random.truncated_normal(iso.random.key(0), 100, lower=3.0, upper=4.0)
    >>> bool(np.all((x >= 3) & (x <= 4)))
    True
    """
    xp = _backend("truncated_normal", key)
    shape, word = _shape("truncated_normal", shape), _dtype(xp, "truncated_normal", dtype)
    bounds = ("lower", lower), ("upper", upper)
    low, high = (_number("truncated_normal", name, x, True) for name, x in bounds)
    if not low < high:
        raise ValueError(f"random.truncated_normal: needed lower < upper, got {low} and {high}")
    if max(low, -high) > 35:
        raise ValueError(
            f"random.truncated_normal: needed lower <= 35 and upper >= -35, got {low} and {high}"
        )
    return _cast(xp, xp.draw(draws.truncated, key, 0, shape, _inner(word), low, high), word)


def bernoulli(key: A, p: Any = 0.5, shape: Shape | None = None, /, *, exact: bool = True) -> A:
    """True with probability `p`: where `uniform` is less than `p`. `p` is a number, or an array
    whose values are not checked; its shape is the shape of the draw unless one is given.

    >>> iso.random.bernoulli(iso.random.key(0), 0.9, 3)
    array([False, False,  True])
    """
    xp = _backend("bernoulli", key)
    if find_backend(p) is not None and not isinstance(p, Real):
        backend_of(key, p)
        sizes = _shape("bernoulli", tuple(p.shape) if shape is None else shape)
        if not xp.isdtype(p.dtype, "real floating"):
            raise TypeError(f"random.bernoulli: needed p as floats, got {dtype_of(p)}")
        return uniform(key, sizes, dtype=p.dtype, exact=exact) < xp.stop_gradient(p, False)
    p = _number("bernoulli", "p", p)
    if not 0 <= p <= 1:
        raise ValueError(f"random.bernoulli: needed p from 0 to 1, got {p}")
    sizes = _shape("bernoulli", () if shape is None else shape)
    if not exact:
        return xp.quick(key, sizes, xp.float32, False) < p
    return xp.draw(draws.chosen, key, 0, sizes, p)


@overload
def permutation(key: A, x: int, /, *, axis: int = 0) -> A: ...
@overload
def permutation(key: Shaped, x: A, /, *, axis: int = 0) -> A: ...
def permutation(key: Any, x: Any, /, *, axis: int = 0) -> Any:
    """The numbers 0 … `x` - 1 in random order, or the slices of an array along an axis reordered.

    >>> iso.random.permutation(iso.random.key(0), 4)
    array([0, 1, 3, 2])
    """
    xp = _backend("permutation", key)
    if isinstance(x, Integral) and not isinstance(x, bool):
        if x < 0:
            raise ValueError(f"random.permutation: needed a number of items, got {x}")
        return _order(xp, key, index(x))
    if find_backend(x) is None or not x.shape:
        raise TypeError(
            f"random.permutation: needed an integer or an array with axes, got {_kind(x)}"
        )
    backend_of(key, x)
    if not -len(x.shape) <= axis < len(x.shape):
        raise ValueError(
            f"random.permutation: needed an axis of shape {tuple(x.shape)}, got {axis}"
        )
    return xp.take(x, _order(xp, key, x.shape[axis]), axis=axis)


def categorical(key: A, logits: Shaped, /, *, axis: int = -1, shape: Shape | None = None) -> A:
    """Indices along `axis` of `logits`, drawn with probabilities softmax(logits). `shape` must end
    with the shape of `logits` without that axis.

    >>> int(iso.random.categorical(iso.random.key(0), np.array([0.0, 100.0])))
    1
    """
    xp = _backend("categorical", key)
    if find_backend(logits) is None or not xp.is_float(logits.dtype) or not logits.shape:
        raise TypeError(
            f"random.categorical: needed logits as floats with an axis, got {_kind(logits)}"
        )
    backend_of(key, logits)
    sizes = list(logits.shape)
    if not -len(sizes) <= axis < len(sizes):
        raise ValueError(f"random.categorical: needed an axis of shape {tuple(sizes)}, got {axis}")
    along = sizes.pop(axis)
    if along == 0:
        raise ValueError(
            f"random.categorical: needed at least one logit along axis {axis}, got none"
        )
    wanted = tuple(sizes) if shape is None else _shape("categorical", shape)
    rest = len(wanted) - len(sizes)
    if rest < 0 or wanted[rest:] != tuple(sizes):
        raise ValueError(
            f"random.categorical: needed a shape that ends with {tuple(sizes)}, got {wanted}"
        )
    axis = axis % len(logits.shape) + rest
    word = _dtype(xp, "categorical", logits.dtype)
    full = (*wanted[:axis], along, *wanted[axis:])
    noise = _cast(xp, xp.draw(draws.gumbel, key, 0, full, _inner(word)), word)
    return xp.argmax(xp.stop_gradient(logits, False) + noise, axis=axis)


def _order(xp: Contract, key: Any, n: int) -> Any:
    """A random order of `n` items. Random words may be equal: sorting by them is repeated until
    ties almost certainly make no difference, as often as JAX does it.
    """
    rounds = math.ceil(3 * math.log(max(1, n)) / math.log(draws.MASK))
    places = xp.arange(n, device=xp.device_of(key))
    for _ in range(rounds):
        keys = split(key)
        key = keys[0, ...]
        places = xp.take(places, xp.order(keys[1, ...], n))
    return places


def _backend(name: str, key: Any) -> Contract:
    return check_key(f"random.{name}", key)


def check_key(name: str, key: Any) -> Contract:
    """The backend of a key."""
    xp = find_backend(key)
    if xp is None or not is_key(key):
        raise TypeError(
            f"{name}: needed a key, uint32 of shape (2,) as random.key makes it, got {_kind(key)}"
        )
    return xp


def is_key(x: Any) -> bool:
    """Whether `x` has the dtype and shape of a key; nothing else marks one."""
    xp: Any = find_backend(x)
    return xp is not None and tuple(x.shape) == (2,) and x.dtype == xp.uint32


def _kind(x: Any) -> str:
    if find_backend(x) is None or not hasattr(x, "shape"):
        return f"{x!r}, a {type(x).__name__}"
    return f"{dtype_of(x)} of shape {tuple(x.shape)}"


def _shape(name: str, shape: Any) -> tuple[int, ...]:
    sizes = (shape,) if isinstance(shape, Integral) else shape
    try:
        whole = tuple(index(n) for n in sizes if not isinstance(n, bool))
    except TypeError:
        whole = (-1,)
    if len(whole) != len(sizes) or min(whole, default=0) < 0:
        raise ValueError(f"random.{name}: needed a shape of integers >= 0, got {shape!r}")
    if math.prod(whole) > 2**32:
        raise ValueError(f"random.{name}: needed at most 2**32 numbers, got shape {whole}")
    return whole


def _number(name: str, what: str, x: Any, infinite: bool = False) -> float:
    if not isinstance(x, Real) or math.isnan(x) or (math.isinf(x) and not infinite):
        raise TypeError(f"random.{name}: needed {what} as a number, got {_kind(x)}")
    return float(x)


def _dtype(xp: Contract, name: str, dtype: Any) -> str:
    """The name of the dtype of a draw."""
    if dtype is None:
        dtype = home(xp.name).dtype or "float32"
    kind = xp.dtype(dtype)
    for word in DIGITS:
        own = getattr(xp, word) if word in ("float32", "float64") else xp.narrow(word)
        if own is not None and kind == own:
            return word
    raise TypeError(f"random.{name}: needed a real floating dtype, got {dtype!r}")


def _inner(word: str) -> str:
    """The dtype in which a draw is computed."""
    return "float64" if word == "float64" else "float32"


def _cast(xp: Contract, x: Any, word: str) -> Any:
    return x if word == _inner(word) else xp.astype(x, xp.narrow(word))
