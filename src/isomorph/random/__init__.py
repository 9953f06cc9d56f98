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
from numbers import Integral, Real
from operator import index
from typing import TYPE_CHECKING, Any, overload

from ..arrays.creation import asarray
from ..core.dispatch import backend_of, find_backend
from ..core.dtypes import widened
from ..meanings import random as draws
from .arguments import (
    DIGITS,
    Shape,
    backend,
    cast,
    check_floats,
    dtype_name,
    fits,
    inner,
    number,
    shape_of,
    shown,
    sizes_of,
)
from .arguments import check_key as check_key
from .arguments import is_key as is_key
from .distributions import (
    choice,
    exponential,
    gamma,
    gumbel,
    multivariate_normal,
    poisson,
    randint,
    shuffled,
)

if TYPE_CHECKING:
    from ..types.array_types import A, Shaped
    from ..typing import BackendName, DType

__all__ = [
    "bernoulli",
    "bits",
    "categorical",
    "choice",
    "exponential",
    "fold_in",
    "gamma",
    "gumbel",
    "key",
    "multivariate_normal",
    "normal",
    "permutation",
    "poisson",
    "randint",
    "split",
    "truncated_normal",
    "uniform",
]


def __dir__() -> list[str]:
    """What is public."""
    return [*__all__, *(name for name in globals() if name.startswith("__"))]


UNSIGNED = ("uint8", "uint16", "uint32", "uint64")


def key(seed: int, /, *, device: Any = None, backend: BackendName | None = None) -> Any:
    """A key from an integer of at most 64 bits, made on `backend`, else on that of the enclosing
    `use_backend`, else in NumPy.

    >>> iso.random.key(7)
    array([0, 7], dtype=uint32)
    """
    if not isinstance(seed, Integral) or isinstance(seed, bool):
        raise TypeError(
            f"random.key: needed an integer, got {shown(seed)}; for an integer that is only known "
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
    xp = backend("split", key)
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
    xp = backend("fold_in", key)
    if isinstance(data, Integral) and not isinstance(data, bool):
        number = index(data)
        if not 0 <= number < 2**32:
            raise ValueError(f"random.fold_in: needed an integer from 0 to 2**32 - 1, got {number}")
        return xp.draw(draws.keys, key, number, (1,))[0, ...]
    if find_backend(data) is None or tuple(data.shape) or not xp.isdtype(data.dtype, "integral"):
        raise TypeError(
            "random.fold_in: needed an integer, or an integer array without axes, got "
            f"{shown(data)}"
        )
    backend_of(key, data)
    return draws.fold_in(xp, key, data)


def bits(key: A, shape: Shape = (), /, *, dtype: DType = "uint32") -> A:
    """Unsigned integers with random bits, in uint8, uint16, uint32 or uint64.

    >>> iso.random.bits(iso.random.key(0), 2)
    array([4070199207, 4202968722], dtype=uint32)
    """
    xp = backend("bits", key)
    wanted = xp.dtype(dtype)
    word = next((w for w in UNSIGNED if wanted == getattr(xp, w)), None)
    if word is None:
        raise TypeError(f"random.bits: needed one of {', '.join(UNSIGNED)}, got {dtype!r}")
    return xp.draw(draws.bits, key, 0, shape_of("bits", shape), word)


def uniform(
    key: A, shape: Shape = (), /, *, minval: float = 0.0, maxval: float = 1.0,
    dtype: DType | None = None, exact: bool = True,
) -> A:  # fmt: skip
    """Numbers from `minval` up to `maxval`, which is left out (float16 and bfloat16 may be rounded
    to `maxval`). The dtype is that of the enclosing `use_backend`, or float32.

    >>> iso.random.uniform(iso.random.key(0), 2)
    array([0.947667 , 0.9785799], dtype=float32)
    """
    xp = backend("uniform", key)
    shape, word = shape_of("uniform", shape), dtype_name(xp, "uniform", dtype)
    low, high = (number("uniform", n, x) for n, x in (("minval", minval), ("maxval", maxval)))
    if not low < high or math.isinf(high - low):
        raise ValueError(f"random.uniform: needed minval < maxval, got {low} and {high}")
    for what, end in (("minval", low), ("maxval", high)):
        fits("uniform", what, end, word)
    wide = inner(word)
    if wide == "float32" and draws.single(low) == draws.single(high):
        raise ValueError(
            f"random.uniform: needed minval and maxval that differ in {word}, got {low} and {high}"
        )
    if not exact:
        numbers = xp.quick(key, shape, getattr(xp, wide), False)
        if (low, high) != (0.0, 1.0):
            numbers = numbers * (high - low) + low
    else:
        numbers = xp.draw(draws.uniform, key, 0, shape, wide, DIGITS[word], low, high)
    return cast(xp, numbers, word)


def normal(key: A, shape: Shape = (), /, *, dtype: DType | None = None, exact: bool = True) -> A:
    """Normally distributed numbers with mean 0 and variance 1.

    Each is the inverse of the distribution function at one uniform number, with relative error
    about 10⁻¹⁵ in float64, rounded to float32. So all backends give the same float32, except that
    about one in 10⁸ differs in its last bit; float64 numbers agree to about 10⁻¹⁵.
    `jax.random.normal` is the same function with less precision.

    >>> iso.random.normal(iso.random.key(0), 2)
    array([1.6226422, 2.0252647], dtype=float32)
    """
    xp = backend("normal", key)
    shape, word = shape_of("normal", shape), dtype_name(xp, "normal", dtype)
    wide = inner(word)
    if not exact:
        return cast(xp, xp.quick(key, shape, getattr(xp, wide), True), word)
    return cast(xp, xp.draw(draws.normal, key, 0, shape, wide), word)


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
    xp = backend("truncated_normal", key)
    shape, word = shape_of("truncated_normal", shape), dtype_name(xp, "truncated_normal", dtype)
    bounds = ("lower", lower), ("upper", upper)
    low, high = (number("truncated_normal", name, x, True) for name, x in bounds)
    if not low < high:
        raise ValueError(f"random.truncated_normal: needed lower < upper, got {low} and {high}")
    if max(low, -high) > 35:
        raise ValueError(
            f"random.truncated_normal: needed lower <= 35 and upper >= -35, got {low} and {high}"
        )
    return cast(xp, xp.draw(draws.truncated, key, 0, shape, inner(word), low, high), word)


def bernoulli(key: A, p: Any = 0.5, shape: Shape | None = None, /, *, exact: bool = True) -> A:
    """True with probability `p`: where `uniform` is less than `p`. `p` is a number, or an array
    whose values are not checked; its shape is the shape of the draw unless one is given.

    >>> iso.random.bernoulli(iso.random.key(0), 0.9, 3)
    array([False, False,  True])
    """
    xp = backend("bernoulli", key)
    if find_backend(p) is not None and not isinstance(p, Real):
        check_floats("bernoulli", "p", xp, key, p)
        sizes = sizes_of("bernoulli", "p", p, shape)
        # in half precision a small chance would be that of the number 0, 1 in 1024
        p = widened(xp, xp.stop_gradient(p, False))
        return uniform(key, sizes, dtype=p.dtype, exact=exact) < p
    p = number("bernoulli", "p", p)
    if not 0 <= p <= 1:
        raise ValueError(f"random.bernoulli: needed p from 0 to 1, got {p}")
    sizes = shape_of("bernoulli", () if shape is None else shape)
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
    xp = backend("permutation", key)
    if isinstance(x, Integral) and not isinstance(x, bool):
        if x < 0:
            raise ValueError(f"random.permutation: needed a number of items, got {x}")
        return shuffled(xp, key, index(x))
    if find_backend(x) is None or not x.shape:
        raise TypeError(
            f"random.permutation: needed an integer or an array with axes, got {shown(x)}"
        )
    backend_of(key, x)
    if not -len(x.shape) <= axis < len(x.shape):
        raise ValueError(
            f"random.permutation: needed an axis of shape {tuple(x.shape)}, got {axis}"
        )
    return xp.take(x, shuffled(xp, key, x.shape[axis]), axis=axis)


def categorical(key: A, logits: Shaped, /, *, axis: int = -1, shape: Shape | None = None) -> A:
    """Indices along `axis` of `logits`, drawn with probabilities softmax(logits). `shape` must end
    with the shape of `logits` without that axis. Logits are not checked: the first NaN is drawn,
    and the first index if all are -inf.

    >>> int(iso.random.categorical(iso.random.key(0), np.array([0.0, 100.0])))
    1
    """
    xp = backend("categorical", key)
    if find_backend(logits) is None or not xp.is_float(logits.dtype) or not logits.shape:
        raise TypeError(
            f"random.categorical: needed logits as floats with an axis, got {shown(logits)}"
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
    wanted = tuple(sizes) if shape is None else shape_of("categorical", shape)
    rest = len(wanted) - len(sizes)
    if rest < 0 or wanted[rest:] != tuple(sizes):
        raise ValueError(
            f"random.categorical: needed a shape that ends with {tuple(sizes)}, got {wanted}"
        )
    axis = axis % len(logits.shape) + rest
    word = dtype_name(xp, "categorical", logits.dtype)
    full = (*wanted[:axis], along, *wanted[axis:])
    noise = xp.draw(draws.gumbel, key, 0, full, inner(word))
    # in half precision many sums would be equal, and the first of them would be taken
    return xp.argmax(widened(xp, xp.stop_gradient(logits, False)) + noise, axis=axis)
