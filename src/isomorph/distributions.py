"""Draws from more distributions, public in `iso.random`: integers, choices, and those that are made
of uniform and normal numbers.
"""

from __future__ import annotations

import math
from numbers import Integral, Real
from operator import index
from typing import TYPE_CHECKING, Any

from .dispatch import backend_of, dtype_of, find_backend
from .gradients.custom import custom_vjp
from .meanings import random as draws
from .meanings import rejection
from .random_arguments import Shape, backend, cast, dtype_name, inner, kind, number, shape_of

if TYPE_CHECKING:
    from .array_types import A
    from .backends.contract import Contract
    from .typing import DType

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
            raise TypeError(f"random.randint: needed low and high as integers, got {kind(end)}")
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

    `p` is not checked; if it does not sum to 1, it is divided by its sum. Without `p` all
    backends choose the same. With `p`, sums are rounded: about one choice in 10⁶ may differ.
    Gradients flow to the chosen elements of `a`, none to `p`.

    >>> iso.random.choice(iso.random.key(0), np.array([10, 20, 30]), 2)
    array([10, 20])
    """
    xp: Any = backend("choice", key)
    sizes = shape_of("choice", shape)
    n = _number_of(key, a)
    count = math.prod(sizes)
    if not replace and count > n:
        raise ValueError(f"random.choice: needed at most {n} elements without replace, got {count}")
    if p is not None:
        backend_of(key, p)
        if tuple(p.shape) != (n,) or not xp.isdtype(p.dtype, "real floating"):
            raise ValueError(
                f"random.choice: needed p as floats of shape ({n},), got {dtype_of(p)} of shape "
                f"{tuple(p.shape)}"
            )
    places = xp.reshape(_places(xp, key, n, count, replace, p), sizes)
    if isinstance(a, Integral):
        return places
    chosen = xp.take(a, xp.reshape(places, (-1,)), axis=0)
    return xp.reshape(chosen, (*sizes, *a.shape[1:]))


def gamma(key: A, a: Any, shape: Shape | None = None, /, *, dtype: DType | None = None) -> A:
    """Numbers of the gamma distribution with shape parameter `a`, a positive number or array, and
    scale 1, by the method of Marsaglia and Tsang. The shape is that of `a` unless one is given.

    Backends agree to rounding, but where a proposal is at the edge of being accepted, about once
    in 10⁶ in float32, they may draw another number. Where `a` is not positive, the result is NaN.
    There is no derivative with respect to `a`: asking for it raises; use iso.stop_gradient(a).

    >>> iso.random.gamma(iso.random.key(0), 3.0, 2).shape
    (2,)
    """
    xp: Any = backend("gamma", key)
    if find_backend(a) is None or isinstance(a, Real):
        if not number("gamma", "a", a) > 0:
            raise ValueError(f"random.gamma: needed a positive a, got {a!r}")
        word = dtype_name(xp, "gamma", dtype)
        own = getattr(xp, inner(word))
        a = xp.asarray(float(a), dtype=own, device=xp.device_of(key))
    else:
        _check_floats("gamma", "a", xp, key, a)
        word = dtype_name(xp, "gamma", a.dtype if dtype is None else dtype)
        a = xp.astype(a, getattr(xp, inner(word)))
    sizes = _sizes("gamma", "a", a, shape)

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
    decides, about once in 10⁶ in float32. -1 where `lam` is not at least 0.

    >>> iso.random.poisson(iso.random.key(0), 3.0, 2).shape
    (2,)
    """
    xp: Any = backend("poisson", key)
    wanted = xp.dtype(dtype)
    if not xp.isdtype(wanted, "integral"):
        raise TypeError(f"random.poisson: needed an integer dtype, got {dtype!r}")
    if find_backend(lam) is None or isinstance(lam, Real):
        mean = number("poisson", "lam", lam)
        if not mean >= 0:
            raise ValueError(f"random.poisson: needed lam of at least 0, got {lam!r}")
        small, large = mean < rejection.MANY, mean >= rejection.MANY
        lam = xp.asarray(mean, dtype=xp.float32, device=xp.device_of(key))
    else:
        _check_floats("poisson", "lam", xp, key, lam)
        lam = xp.stop_gradient(lam, False)
        lam = lam if lam.dtype in (xp.float32, xp.float64) else xp.astype(lam, xp.float32)
        # the numbers are the same, whether the other case is computed or not
        few = xp.at_hand(xp.any(lam < rejection.MANY))
        many = xp.at_hand(xp.any(lam >= rejection.MANY))
        small, large = (True if found is None else bool(found) for found in (few, many))
    sizes = _sizes("poisson", "lam", lam, shape)
    word = "float64" if lam.dtype == xp.float64 else "float32"
    return xp.astype(rejection.poisson(xp, key, lam, sizes, word, small, large), wanted)


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
        _check_floats("multivariate_normal", word, xp, key, x)
    d = mean.shape[-1] if len(mean.shape) else -1
    if tuple(cov.shape)[-2:] != (d, d):
        raise ValueError(
            "random.multivariate_normal: needed mean [..., d] and cov [..., d, d], got shapes "
            f"{tuple(mean.shape)} and {tuple(cov.shape)}"
        )
    outer = tuple(mean.shape)[:-1], tuple(cov.shape)[:-2]
    both = _broadcast("multivariate_normal", *outer)
    sizes = both if shape is None else shape_of("multivariate_normal", shape)
    if _broadcast("multivariate_normal", sizes, both) != sizes:
        raise ValueError(
            f"random.multivariate_normal: needed a shape to which {both} broadcasts, got {sizes}"
        )
    dtype = xp.result_type(mean.dtype, cov.dtype)
    word = dtype_name(xp, "multivariate_normal", dtype)
    z = cast(xp, xp.draw(draws.normal, key, 0, (*sizes, d), inner(word)), word)
    factor = xp.linalg.cholesky(xp.astype(cov, dtype))
    return xp.astype(mean, dtype) + xp.matmul(factor, z[..., None])[..., 0]


def shuffled(xp: Contract, key: Any, n: int) -> Any:
    """A random order of `n` items. Random words may be equal: sorting by them is repeated until
    ties almost certainly make no difference, as often as JAX does it.
    """
    rounds = math.ceil(3 * math.log(max(1, n)) / math.log(draws.MASK))
    places = xp.arange(n, device=xp.device_of(key))
    for _ in range(rounds):
        keys = xp.draw(draws.keys, key, 0, (2,))
        key = keys[0, ...]
        places = xp.take(places, xp.order(keys[1, ...], n))
    return places


def _number_of(key: Any, a: Any) -> int:
    """How many elements there are to choose from."""
    if isinstance(a, Integral) and not isinstance(a, bool):
        n = index(a)
    elif find_backend(a) is not None and getattr(a, "shape", ()):
        backend_of(key, a)
        n = a.shape[0]
    else:
        n = 0
    if n < 1:
        raise TypeError(
            "random.choice: needed an integer of at least 1, or an array with elements, got "
            f"{kind(a)}"
        )
    return n


def _places(xp: Any, key: Any, n: int, count: int, replace: bool, p: Any) -> Any:
    """`count` numbers below `n`."""
    whole = xp.__array_namespace_info__().default_dtypes()["indexing"]
    if p is None and not replace:
        return shuffled(xp, key, n)[:count]
    if p is None:
        return xp.astype(xp.draw(draws.integers, key, 0, (count,), "int32", 0, n), whole)
    p = xp.stop_gradient(p, False)
    word = dtype_name(xp, "choice", p.dtype)
    if not replace:  # the order of log p + Gumbel noise is that of drawing one after the other
        noise = cast(xp, xp.draw(draws.gumbel, key, 0, (n,), inner(word)), word)
        never = p <= 0
        scores = xp.log(xp.where(never, xp.ones_like(p), p)) + noise
        scores = xp.where(never, xp.full_like(scores, -float("inf")), scores)
        return xp.astype(xp.argsort(scores, descending=True, stable=True)[:count], whole)
    sums = xp.cumulative_sum(p)
    numbers = cast(xp, xp.draw(draws.unit, key, 0, (count,), inner(word)), word) * sums[-1]
    numbers = xp.minimum(numbers, xp.nextafter(sums[-1], xp.zeros_like(sums[-1])))
    return xp.astype(xp.searchsorted(sums, numbers, side="right"), whole)


def _check_floats(name: str, what: str, xp: Any, key: Any, x: Any) -> None:
    if find_backend(x) is None or not xp.isdtype(x.dtype, "real floating"):
        raise TypeError(f"random.{name}: needed {what} as floats, got {kind(x)}")
    backend_of(key, x)


def _sizes(name: str, what: str, x: Any, shape: Any) -> tuple[int, ...]:
    own = tuple(x.shape)
    sizes = own if shape is None else shape_of(name, shape)
    if _broadcast(name, sizes, own) != sizes:
        raise ValueError(
            f"random.{name}: needed a shape to which that of {what}, {own}, broadcasts, got {sizes}"
        )
    return sizes


def _broadcast(name: str, one: tuple[int, ...], two: tuple[int, ...]) -> tuple[int, ...]:
    n = max(len(one), len(two))
    pairs = list(zip((1,) * (n - len(one)) + one, (1,) * (n - len(two)) + two))
    if any(a != b and 1 not in (a, b) for a, b in pairs):
        raise ValueError(f"random.{name}: needed shapes that broadcast, got {one} and {two}")
    return tuple(b if a == 1 else a for a, b in pairs)
