"""Draws from more distributions, public in `iso.random`: integers, choices, and those that are made
of uniform and normal numbers.
"""

from __future__ import annotations

import math
import sys
from numbers import Integral, Real
from operator import index
from typing import TYPE_CHECKING, Any

from ..core.dispatch import backend_of, dtype_of, find_backend
from ..core.dtypes import index_dtype, widened
from ..gradients.custom import custom_vjp
from ..meanings import random as draws
from ..meanings import rejection
from ..meanings.shapes import broadcast
from .arguments import (
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

if TYPE_CHECKING:
    from ..core.contract import Contract
    from ..types.array_types import A
    from ..typing import DType

WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def randint(key: A, shape: Shape, low: int, high: int, /, *, dtype: DType = "int32") -> A:
    """Integers from `low` up to `high`, which is left out; the same on every backend.

    `high - low` is at most 2**47. Every integer has the same probability, up to a factor of
    1 + (high - low) / 2**64. The numbers differ from those of `jax.random.randint`.

    >>> iso.random.randint(iso.random.key(0), 3, 0, 10)
    array([0, 7, 9], dtype=int32)
    """
    xp: Any = backend("randint", key)
    for end in (low, high):
        if not isinstance(end, Integral) or isinstance(end, bool):
            raise TypeError(f"random.randint: needed low and high as integers, got {shown(end)}")
    low, high, wanted = index(low), index(high), xp.dtype(dtype)
    word = next((w for w in WHOLE if wanted == getattr(xp, w)), None)
    if word is None:
        raise TypeError(f"random.randint: needed an integer dtype, got {dtype!r}")
    least, most = (0, 2 ** int(word[4:])) if word[0] == "u" else (-(2 ** (int(word[3:]) - 1)),) * 2
    most = most if word[0] == "u" else -most
    if not max(least, -(2**53)) <= low < high <= min(most, 2**53) or high - low > 2**47:
        raise ValueError(
            f"random.randint: needed low < high within {word}, at most 2**53 and 2**47 apart, got "
            f"{low} and {high}"
        )
    return xp.draw(draws.integers, key, 0, shape_of("randint", shape), word, low, high)


def exponential(key: A, shape: Shape = (), /, *, dtype: DType | None = None) -> A:
    """Exponentially distributed numbers with mean 1: -log(1 - u) of uniform u, computed in float64
    and rounded, so that all backends agree as in `normal`.

    >>> iso.random.exponential(iso.random.key(0), 2)
    array([2.950128 , 3.8434246], dtype=float32)
    """
    xp = backend("exponential", key)
    sizes, word = shape_of("exponential", shape), dtype_name(xp, "exponential", dtype)
    return cast(xp, xp.draw(draws.exponential, key, 0, sizes, inner(word)), word)


def gumbel(key: A, shape: Shape = (), /, *, dtype: DType | None = None) -> A:
    """Numbers of the Gumbel distribution: -log(-log u) of uniform u, computed in float64 and
    rounded, so that all backends agree as in `normal`.

    >>> iso.random.gumbel(iso.random.key(0), 2)
    array([2.9233725, 3.8326178], dtype=float32)
    """
    xp = backend("gumbel", key)
    sizes, word = shape_of("gumbel", shape), dtype_name(xp, "gumbel", dtype)
    return cast(xp, xp.draw(draws.gumbel, key, 0, sizes, inner(word)), word)


def choice(key: A, a: Any, shape: Shape = (), /, *, replace: bool = True, p: Any = None) -> A:
    """Elements of an array along its first axis, or numbers below the integer `a`, chosen with the
    probabilities `p` [n], or all with the same; without `replace`, no element twice.

    If `p` does not sum to 1, it is divided by its sum. It must be finite, not negative, and above 0
    somewhere, without `replace` for at least as many elements as are drawn: otherwise it raises
    where it can be read; in a compiled program elements without a chance are taken. Without `p` all
    backends choose the same. With `p`, sums are rounded: about one choice in 10⁶ may differ.
    Gradients flow to the chosen elements of `a`, none to `p`.

    >>> iso.random.choice(iso.random.key(0), np.array([10, 20, 30]), 2)
    array([10, 20])
    """
    xp: Any = backend("choice", key)
    sizes = shape_of("choice", shape)
    n = _number_of(xp, key, a)
    count = math.prod(sizes)
    if not replace and count > n:
        raise ValueError(f"random.choice: needed at most {n} elements without replace, got {count}")
    if p is not None:
        if find_backend(p) is None:
            raise TypeError(f"random.choice: needed p as an array, got a {type(p).__name__}")
        backend_of(key, p)
        if tuple(p.shape) != (n,) or not xp.isdtype(p.dtype, "real floating"):
            raise ValueError(
                f"random.choice: needed p as floats of shape ({n},), got {dtype_of(p)} of shape "
                f"{tuple(p.shape)}"
            )
        _check_chances(xp, p, count if not replace else min(count, 1))
    places = xp.reshape(_places(xp, key, n, count, replace, p), sizes)
    if isinstance(a, Integral):
        return places
    chosen = xp.take(a, xp.reshape(places, (-1,)), axis=0)
    return xp.reshape(chosen, (*sizes, *a.shape[1:]))


def gamma(key: A, a: Any, shape: Shape | None = None, /, *, dtype: DType | None = None) -> A:
    """Numbers of the gamma distribution with shape parameter `a`, a positive number or array, and
    scale 1, by the method of Marsaglia and Tsang. The shape is that of `a` unless one is given.

    Backends agree to rounding, but where a proposal is at the edge of being accepted, about once
    in 10⁶ in float32, they may draw another number. Where `a` is not positive, the result is NaN;
    where it is infinite, so is the result. Numbers too small for the dtype are 0.
    There is no derivative with respect to `a`: asking for it raises; use iso.stop_gradient(a).

    >>> iso.random.gamma(iso.random.key(0), 3.0, 2).shape
    (2,)
    """
    xp: Any = backend("gamma", key)
    if find_backend(a) is None or isinstance(a, Real):
        word = dtype_name(xp, "gamma", dtype)
        if not fits("gamma", "a", number("gamma", "a", a), inner(word)) > 0:
            raise ValueError(f"random.gamma: needed a positive a, got {a!r}")
        a = max(float(a), sys.float_info.min if word == "float64" else 2.0**-126)
        own = getattr(xp, inner(word))
        a = xp.asarray(float(a), dtype=own, device=xp.device_of(key))
    else:
        check_floats("gamma", "a", xp, key, a)
        word = dtype_name(xp, "gamma", a.dtype if dtype is None else dtype)
        a = xp.astype(a, getattr(xp, inner(word)))
    sizes = sizes_of("gamma", "a", a, shape)

    def refuse(kept: Any, upstream: Any) -> Any:
        raise NotImplementedError(
            "random.gamma: no derivative with respect to a; use iso.stop_gradient(a) where no "
            "gradient should flow"
        )

    # the key is an argument, since it may belong to a transform, as `a` does
    draw = lambda a, key: rejection.gamma(xp, key, a, sizes, inner(word))
    return cast(xp, custom_vjp(draw, lambda a, key: (draw(a, key), ()), refuse)(a, key), word)


def poisson(key: A, lam: Any, shape: Shape | None = None, /, *, dtype: DType = "int32") -> A:
    """Integers of the Poisson distribution with mean `lam`, a number or array of at least 0. The
    shape is that of `lam` unless one is given.

    Below 10 by inversion, above by Hörmann's transformed rejection, in float32 unless `lam` is a
    float64 array; so above 2**24 not all integers occur. Backends may differ where rounding
    decides, about once in 10⁶ in float32. A number `lam` must leave room in `dtype` for what is
    drawn; with an array, what is too large for the dtype becomes the greatest integer that both
    it and the dtype of `lam` have. Where an array is negative, infinite or NaN, the result is -1,
    in an unsigned dtype that greatest integer.

    >>> iso.random.poisson(iso.random.key(0), 3.0, 2).shape
    (2,)
    """
    xp: Any = backend("poisson", key)
    wanted = xp.dtype(dtype)
    if not xp.isdtype(wanted, "integral"):
        raise TypeError(f"random.poisson: needed an integer dtype, got {dtype!r}")
    if wanted in (xp.int64, xp.uint64) and index_dtype(xp) != xp.int64:
        raise TypeError(
            f"random.poisson: needed a dtype of at most 32 bits, got {dtype!r}; turn on 64 bits"
        )
    most, signed = int(xp.iinfo(wanted).max), int(xp.iinfo(wanted).min) < 0
    if find_backend(lam) is None or isinstance(lam, Real):
        mean = number("poisson", "lam", lam)
        if not mean >= 0:
            raise ValueError(f"random.poisson: needed lam of at least 0, got {lam!r}")
        if mean + 10 * math.sqrt(mean) > most:  # ten standard deviations
            raise ValueError(
                f"random.poisson: needed lam so that draws fit into {dtype!r}, at most {most}, got "
                f"{lam!r}; give a wider dtype"
            )
        small, large = mean < rejection.MANY, mean >= rejection.MANY
        lam = xp.asarray(mean, dtype=xp.float32, device=xp.device_of(key))
    else:
        check_floats("poisson", "lam", xp, key, lam)
        lam = xp.stop_gradient(lam, False)
        lam = lam if lam.dtype in (xp.float32, xp.float64) else xp.astype(lam, xp.float32)
        # the numbers are the same, whether the other case is computed or not
        few = xp.at_hand(xp.any(lam < rejection.MANY))
        many = xp.at_hand(xp.any(lam >= rejection.MANY))
        small, large = (True if found is None else bool(found) for found in (few, many))
    sizes = sizes_of("poisson", "lam", lam, shape)
    word = "float64" if lam.dtype == xp.float64 else "float32"
    drawn = rejection.poisson(xp, key, lam, sizes, word, small, large)
    digits = 53 if word == "float64" else 24
    top = most if most < 2**digits else most + 1 - (most + 1) // 2**digits
    top = xp.full_like(drawn, float(top))
    drawn = xp.minimum(drawn, top)
    return xp.astype(drawn if signed else xp.where(drawn < 0, top, drawn), wanted)


def multivariate_normal(key: A, mean: Any, cov: Any, shape: Shape | None = None, /) -> A:
    """Normally distributed vectors with mean [..., d] and covariance [..., d, d]: mean + L·z, where
    L is the Cholesky factor of `cov`, which must be positive definite, and z are of `normal`.
    Gradients flow to both. The result is [*shape, d]; the shape is that of the batch axes of
    `mean` and `cov` unless one is given.

    >>> mean, cov = np.zeros(2), np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> iso.random.multivariate_normal(iso.random.key(0), mean, cov, 5).shape
    (5, 2)
    """
    xp: Any = backend("multivariate_normal", key)
    for word, x in (("mean", mean), ("cov", cov)):
        check_floats("multivariate_normal", word, xp, key, x)
    d = mean.shape[-1] if len(mean.shape) else -1
    if tuple(cov.shape)[-2:] != (d, d):
        raise ValueError(
            "random.multivariate_normal: needed mean [..., d] and cov [..., d, d], got shapes "
            f"{tuple(mean.shape)} and {tuple(cov.shape)}"
        )
    outer = tuple(mean.shape)[:-1], tuple(cov.shape)[:-2]
    both = broadcast(*outer)
    if both is None:
        raise ValueError(
            f"random.multivariate_normal: needed batches that broadcast, got {outer[0]} and "
            f"{outer[1]}"
        )
    sizes = both if shape is None else shape_of("multivariate_normal", shape)
    if broadcast(sizes, both) != sizes:
        raise ValueError(
            f"random.multivariate_normal: needed a shape to which {both} broadcasts, got {sizes}"
        )
    dtype = xp.result_type(mean.dtype, cov.dtype)
    word = dtype_name(xp, "multivariate_normal", dtype)
    z = xp.draw(draws.normal, key, 0, (*sizes, d), inner(word))
    # half precision has no Cholesky factor
    factor = xp.linalg.cholesky(xp.astype(cov, z.dtype))
    return cast(xp, xp.astype(mean, z.dtype) + xp.matmul(factor, z[..., None])[..., 0], word)


def shuffled(xp: Contract, key: Any, n: int) -> Any:
    """A random order of `n` items."""
    return xp.astype(xp.draw(draws.shuffled, key, 0, (n,)), xp.arange(0).dtype)


def _number_of(xp: Any, key: Any, a: Any) -> int:
    """How many elements there are to choose from."""
    if isinstance(a, Integral) and not isinstance(a, bool):
        n = index(a)
    elif find_backend(a) is not None and getattr(a, "shape", ()):
        backend_of(key, a)
        n = a.shape[0]
    else:
        n = 0
    if n > min(2**47, int(xp.iinfo(index_dtype(xp)).max) + 1):
        raise ValueError(
            f"random.choice: needed at most 2**47 elements, and no more than indices of "
            f"{index_dtype(xp)} can count, got {n}"
        )
    if n < 1:
        raise TypeError(
            "random.choice: needed an integer of at least 1, or an array with elements, got "
            f"{shown(a)}"
        )
    return n


def _places(xp: Any, key: Any, n: int, count: int, replace: bool, p: Any) -> Any:
    """`count` numbers below `n`."""
    whole = index_dtype(xp)
    if p is None and not replace:
        return shuffled(xp, key, n)[:count]
    if p is None:
        word = "int32" if n <= 2**31 else "int64"
        return xp.astype(xp.draw(draws.integers, key, 0, (count,), word, 0, n), whole)
    p = widened(xp, xp.stop_gradient(p, False))
    word = dtype_name(xp, "choice", p.dtype)
    if not replace:  # the order of log p + Gumbel noise is that of drawing one after the other
        noise = xp.draw(draws.gumbel, key, 0, (n,), word)
        never = p <= 0
        scores = xp.log(xp.where(never, xp.ones_like(p), p)) + noise
        scores = xp.where(never, xp.full_like(scores, -float("inf")), scores)
        return xp.astype(xp.argsort(scores, descending=True, stable=True)[:count], whole)
    sums = xp.cumulative_sum(p)
    numbers = xp.draw(draws.unit, key, 0, (count,), word) * sums[-1]
    numbers = xp.minimum(numbers, xp.nextafter(sums[-1], xp.zeros_like(sums[-1])))
    found = xp.astype(xp.searchsorted(sums, numbers, side="right"), whole)
    return xp.minimum(found, xp.full_like(found, n - 1))  # if there is no chance at all


def _check_chances(xp: Any, p: Any, least: int) -> None:
    """Raise if chances that can be read do not suffice for so many different elements."""
    p = xp.stop_gradient(p, False)
    fine = xp.logical_and(p >= 0, xp.isfinite(p))
    counts = [xp.sum(xp.astype(mask, index_dtype(xp))) for mask in (fine, p > 0)]
    found = xp.at_hand(xp.stack(counts))
    if found is None:
        return
    if int(found[0]) < p.shape[0]:
        raise ValueError("random.choice: needed p finite and at least 0, got a number that is not")
    if int(found[1]) < least:
        raise ValueError(
            f"random.choice: needed at least {least} elements with a chance above 0, got "
            f"{int(found[1])}"
        )
