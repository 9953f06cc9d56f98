"""How random numbers are made: a key and a counter are hashed to 32-bit words, which are turned
into numbers.

The hash is threefry2x32 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"). Number `i`
of a draw depends only on the key and the counter `i`, so a draw can be computed in blocks and on
any device. The words are integers and therefore the same everywhere. So are uniform numbers, which
are words scaled by a power of two. Libraries disagree on the last digit of a logarithm, so
functions that need one are computed in float64 and rounded to float32. Then all digits agree,
except for about one number in 10⁸, which lies in the middle between two float32.

Most functions here take `(xp, key, start, count, …)` and return `count` numbers of a draw, from
number `start` on.
"""

from __future__ import annotations

import math
import struct
from typing import Any

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
MASK = 0xFFFFFFFF


def words(xp: Any, key: Any, counts: Any) -> tuple[Any, Any]:
    """The two 32-bit words for each counter, hashed with `key`, in the dtype `xp.word`."""
    xor, left, right = xp.bitwise_xor, xp.bitwise_left_shift, xp.bitwise_right_shift
    first, second = xp.astype(key[0:1], counts.dtype), xp.astype(key[1:2], counts.dtype)
    keys = first, second, xor(xor(first, second), xp.full_like(first, PARITY))
    x, y = first, counts + second
    for i in range(5):
        for by in ROTATIONS[i % 2]:
            x = x + y
            turned = xp.bitwise_or(left(y, xp.full_like(y, by)), right(y, xp.full_like(y, 32 - by)))
            y = xor(turned, x)
        x = x + keys[(i + 1) % 3]
        y = y + keys[(i + 2) % 3] + xp.full_like(first, i + 1)
    return x, y


def hashed(first: int, second: int, count: int) -> tuple[int, int]:
    """`words` for one counter, with Python integers: the fastest way for a few counters."""
    keys = first, second, first ^ second ^ PARITY
    x, y = first, (count + second) & MASK
    for i in range(5):
        for by in ROTATIONS[i % 2]:
            x = (x + y) & MASK
            y = ((y << by) & MASK | y >> (32 - by)) ^ x
        x = (x + keys[(i + 1) % 3]) & MASK
        y = (y + keys[(i + 2) % 3] + i + 1) & MASK
    return x, y


def _drawn(xp: Any, key: Any, start: int, count: int) -> tuple[Any, Any]:
    word, device = getattr(xp, xp.word), xp.device_of(key)
    return xp.words(key, xp.arange(start, start + count, dtype=word, device=device))


def _word(xp: Any, key: Any, start: int, count: int) -> Any:
    return xp.bitwise_xor(*_drawn(xp, key, start, count))


def _shifted(xp: Any, word: Any, by: int) -> Any:
    return xp.bitwise_right_shift(word, xp.full_like(word, by))


def keys(xp: Any, key: Any, start: int, count: int) -> Any:
    """New keys, [count, 2]."""
    return xp.astype(xp.stack(_drawn(xp, key, start, count), axis=-1), xp.uint32)


def fold_in(xp: Any, key: Any, data: Any) -> Any:
    """A new key from a key and the integer `data`, an array without axes."""
    values, number = xp.at_hand(key), xp.at_hand(data)
    if values is not None and number is not None:
        return xp.draw(keys, key, int(number) & MASK, (1,))[0, ...]
    counts = xp.reshape(xp.astype(data, getattr(xp, xp.word)), (1,))
    return xp.astype(xp.concat(xp.words(key, counts)), xp.uint32)


def bits(xp: Any, key: Any, start: int, count: int, dtype: str) -> Any:
    """Unsigned integers, each bit of which is 0 or 1 with equal probability."""
    if dtype == "uint64":
        wide = xp.uint64 if xp.word == "uint32" else getattr(xp, xp.word)
        high, low = (xp.astype(x, wide) for x in _drawn(xp, key, start, count))
        high = xp.bitwise_left_shift(high, xp.full_like(high, 32))
        return xp.astype(xp.bitwise_or(high, low), xp.uint64)
    word = _word(xp, key, start, count)
    if dtype != "uint32":
        word = xp.bitwise_and(word, xp.full_like(word, 2 ** int(dtype[4:]) - 1))
    return xp.astype(word, getattr(xp, dtype))


def unit(xp: Any, key: Any, start: int, count: int, dtype: str, digits: int = 23) -> Any:
    """Uniform numbers in [0, 1): multiples of 2⁻ᵈⁱᵍⁱᵗˢ, in float64 of 2⁻⁵²."""
    if dtype == "float64":
        high, low = _drawn(xp, key, start, count)
        low = xp.astype(_shifted(xp, low, 12), xp.float64)
        return xp.astype(high, xp.float64) * 2.0**-32 + low * 2.0**-52
    word = _shifted(xp, _word(xp, key, start, count), 32 - int(digits))
    return xp.astype(xp.astype(word, xp.int32), xp.float32) * 2.0**-digits


def uniform(
    xp: Any, key: Any, start: int, count: int, dtype: str, digits: int, low: float, high: float
) -> Any:
    """Uniform numbers in [low, high)."""
    numbers = unit(xp, key, start, count, dtype, digits)
    if (low, high) == (0.0, 1.0):
        return numbers
    return stretched(xp, numbers, low, high)


def stretched(xp: Any, numbers: Any, low: float, high: float) -> Any:
    """Numbers in [0, 1), stretched to [low, high)."""
    kind = numbers.dtype
    if kind == xp.float32:  # in float64 the product is exact, with or without fused multiply-add
        low, high = single(low), single(high)
        span = single(high - low)
        numbers = xp.astype(xp.astype(numbers, xp.float64) * span + low, kind)
    else:
        numbers = numbers * (high - low) + low
    last = xp.nextafter(xp.full_like(numbers, high), xp.full_like(numbers, low))
    return xp.minimum(xp.maximum(numbers, xp.full_like(numbers, low)), last)


def single(x: float) -> float:
    """The float32 nearest to a float."""
    return struct.unpack("f", struct.pack("f", x))[0]


def chosen(xp: Any, key: Any, start: int, count: int, p: float) -> Any:
    """True with probability `p`: where a uniform float32 is less than `p`."""
    word = _word(xp, key, start, count)
    below = math.ceil(single(p) * 2**23)
    if below == 2**23:
        return xp.full_like(word, True, dtype=xp.bool)
    return word < xp.full_like(word, below * 2**9)


def normal(xp: Any, key: Any, start: int, count: int, dtype: str) -> Any:
    """Normally distributed numbers, by the inverse of the distribution function."""
    numbers = xp.astype(unit(xp, key, start, count, dtype), xp.float64)
    # shifted by a quarter of the spacing, so that q + ½ is never 0; this is exact
    quarter = 2.0**-54 if dtype == "float64" else 2.0**-25
    q = (numbers - 0.5) + quarter
    return xp.astype(xp.probit(q, 0.5 - xp.abs(q)), getattr(xp, dtype))


def truncated(
    xp: Any, key: Any, start: int, count: int, dtype: str, low: float, high: float
) -> Any:
    """Normally distributed numbers between `low` and `high`."""
    numbers = xp.astype(unit(xp, key, start, count, dtype), xp.float64)
    numbers = numbers + (2.0**-54 if dtype == "float64" else 2.0**-25)
    turned = low + high > 0  # use the side on which small probabilities keep all their digits
    if turned:
        low, high, numbers = -high, -low, 1.0 - numbers
    below, above = (0.5 * math.erfc(-x / math.sqrt(2.0)) for x in (low, high))
    p = numbers * (above - below) + below
    y = xp.probit(p - 0.5, xp.minimum(p, 1.0 - p))
    y = xp.minimum(xp.maximum(y, xp.full_like(y, low)), xp.full_like(y, high))
    return xp.astype(-y if turned else y, getattr(xp, dtype))


def gumbel(xp: Any, key: Any, start: int, count: int, dtype: str) -> Any:
    """−log(−log u) for uniform u."""
    numbers = xp.astype(unit(xp, key, start, count, dtype), xp.float64)
    least = 2.0**-1022 if dtype == "float64" else 2.0**-126
    u = xp.maximum(numbers, xp.full_like(numbers, least))
    return xp.astype(-xp.log(-xp.log(u)), getattr(xp, dtype))


def exponential(xp: Any, key: Any, start: int, count: int, dtype: str) -> Any:
    """−log(1 − u) for uniform u."""
    numbers = xp.astype(unit(xp, key, start, count, dtype), xp.float64)
    return xp.astype(-xp.log1p(-numbers), getattr(xp, dtype))


def integers(xp: Any, key: Any, start: int, count: int, dtype: str, low: float, high: float) -> Any:
    """Integers from `low` up to `high`: 64 random bits modulo the size of the range."""
    first, second = _drawn(xp, key, start, count)
    rest = xp.modulo(first, second, int(high) - int(low))
    return xp.astype(rest + int(low), getattr(xp, dtype))


def modulo(xp: Any, first: Any, second: Any, span: int) -> Any:
    """The remainders of 64-bit numbers, given as two words each, as int64: 16 bits at a time, so
    that nothing overflows.
    """
    first, second = xp.astype(first, xp.int64), xp.astype(second, xp.int64)
    size = xp.full_like(first, span)
    rest = xp.remainder(first, size)
    for part in (_shifted(xp, second, 16), xp.bitwise_and(second, xp.full_like(second, 0xFFFF))):
        rest = xp.remainder(rest * 2**16 + part, size)
    return rest


def shuffled(xp: Any, key: Any, start: int, count: int) -> Any:
    """A random order of `count` items, which is drawn as a whole. Random words may be equal:
    sorting by them is repeated until ties almost certainly make no difference, as often as JAX
    does it.
    """
    places = xp.arange(count, device=xp.device_of(key))
    for _ in range(math.ceil(3 * math.log(max(1, count)) / math.log(MASK))):
        both = xp.draw(keys, key, 0, (2,))
        key = both[0, ...]
        word = xp.draw(bits, both[1, ...], 0, (count,), "uint32")
        places = xp.take(places, xp.order(word), axis=0)
    return places


def order(xp: Any, word: Any) -> Any:
    """The indices that sort random words."""
    return xp.argsort(xp.astype(word, getattr(xp, xp.word)), stable=True)


# Coefficients of Wichura's algorithm AS 241, the highest power first: quotients of polynomials with
# a relative error of about 10⁻¹⁶. One is for the middle, two are for the tails.
MIDDLE = (
    (
        2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
        13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608,
    ),
    (
        5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
        5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0,
    ),
)  # fmt: skip
NEAR = (
    (
        7.7454501427834140764e-4, 2.27238449892691845833e-2, 2.4178072517745061177e-1,
        1.27045825245236838258, 3.64784832476320460504, 5.7694972214606914055,
        4.6303378461565452959, 1.42343711074968357734,
    ),
    (
        1.05075007164441684324e-9, 5.475938084995344946e-4, 1.51986665636164571966e-2,
        1.4810397642748007459e-1, 6.8976733498510000455e-1, 1.6763848301838038494,
        2.05319162663775882187, 1.0,
    ),
)  # fmt: skip
FAR = (
    (
        2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.2426609473880784386e-3,
        2.65321895265761230930e-2, 2.9656057182850489123e-1, 1.7848265399172913358,
        5.4637849111641143699, 6.6579046435011037772,
    ),
    (
        2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5,
        7.868691311456132591e-4, 1.48753612908506148525e-2, 1.3692988092273580531e-1,
        5.9983220655588793769e-1, 1.0,
    ),
)  # fmt: skip
EDGE = 0.425  # the middle is |q| <= EDGE


def probit(xp: Any, q: Any, tail: Any) -> Any:
    """The inverse normal distribution function at q + ½; `tail` is ½ − |q|, with all its digits."""
    return xp.where(xp.abs(q) <= EDGE, middle(q), outer(xp, q, tail))


def middle(q: Any) -> Any:
    """`probit` for |q| <= `EDGE`."""
    return q * _ratio(MIDDLE, 0.180625 - q * q)


def outer(xp: Any, q: Any, tail: Any) -> Any:
    """`probit` for |q| > `EDGE`."""
    r = xp.sqrt(-xp.log(tail))
    y = xp.where(r <= 5.0, _ratio(NEAR, r - 1.6), _ratio(FAR, r - 5.0))
    return xp.where(q < 0, -y, y)


def _ratio(powers: tuple, x: Any) -> Any:
    above, below = (_polynomial(p, x) for p in powers)
    return above / below


def _polynomial(powers: tuple, x: Any) -> Any:
    y = x * powers[0] + powers[1]
    for p in powers[2:]:
        y = y * x + p
    return y
