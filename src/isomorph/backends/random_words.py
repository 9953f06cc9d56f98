"""The words of random draws in NumPy, for every backend whose arrays can be read directly."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..meanings.random import FAR, MASK, MIDDLE, NEAR, PARITY, ROTATIONS, hashed, shuffled

FEW = 3  # up to this many, Python integers are faster
BLOCK = 2**14  # numbers at a time, small enough for a processor's cache


def words(keys: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`meanings.random.words` with as little memory as possible; keys [*outer, 2] and counters
    [*outer, n] may broadcast.
    """
    if keys.ndim == counts.ndim == 1 and counts.size <= FEW:
        first, second = keys.tolist()
        pairs = np.array([hashed(first, second, n) for n in counts.tolist()], np.uint32)
        x, y = pairs.reshape(-1, 2).T
        return x, y
    first, second = keys[..., :1], keys[..., 1:]
    schedule = first, second, first ^ second ^ np.uint32(PARITY)
    y = counts.astype(np.uint32, copy=False) + second
    x = np.empty_like(y)
    x[...] = first
    spare = np.empty_like(y)
    for i in range(5):
        for up, down in TURNS[i % 2]:
            np.add(x, y, out=x)
            np.left_shift(y, up, out=spare)
            np.right_shift(y, down, out=y)
            np.bitwise_or(y, spare, out=y)
            np.bitwise_xor(y, x, out=y)
        np.add(x, schedule[(i + 1) % 3], out=x)
        np.add(y, schedule[(i + 2) % 3] + np.uint32(i + 1), out=y)
    return x, y


# 0-d arrays, which ufuncs take faster than numbers
TURNS = [
    [(np.array(by, np.uint32), np.array(32 - by, np.uint32)) for by in turns] for turns in ROTATIONS
]


def modulo(first: np.ndarray, second: np.ndarray, span: int) -> np.ndarray:
    """`meanings.random.modulo`; division by one number is faster than `np.remainder`."""
    whole = first.astype(np.uint64)
    whole <<= np.uint64(32)
    whole |= second
    whole -= whole // np.uint64(span) * np.uint64(span)
    return whole.view(np.int64)


def order(words: np.ndarray) -> np.ndarray:
    """`np.argsort(words, stable=True)`. Each word is joined with its place, so that the order of
    equal ones is decided, and sorting values is several times faster.
    """
    both = words.astype(np.uint64)
    both <<= np.uint64(32)
    both |= np.arange(words.size, dtype=np.uint64)
    both.sort()
    both &= np.uint64(MASK)
    return both.view(np.int64)


def middle(q: np.ndarray) -> np.ndarray:
    """`meanings.random.middle` with as little memory as possible."""
    r = 0.180625 - q * q
    above, below = (_polynomial(powers, r) for powers in MIDDLE)
    above /= below
    above *= q
    return above


def outer(q: np.ndarray, tail: np.ndarray) -> np.ndarray:
    """`meanings.random.outer`; the far tails, one number in two million, are computed only where
    there are any.
    """
    r = np.sqrt(-np.log(tail))
    above, below = (_polynomial(powers, r - 1.6) for powers in NEAR)
    above /= below
    if (far := r > 5.0).any():
        high, low = (_polynomial(powers, r[far] - 5.0) for powers in FAR)
        above[far] = high / low
    return np.copysign(above, q, out=above)


def _polynomial(powers: tuple, x: np.ndarray) -> np.ndarray:
    y = x * powers[0]
    for p in powers[1:-1]:
        y += p
        y *= x
    y += powers[-1]
    return y


def blocks(meaning: Any, xp: Any, key: Any, start: int, count: int, args: tuple) -> np.ndarray:
    """A draw, block by block."""
    if count <= BLOCK or meaning is shuffled:
        return meaning(xp, key, start, count, *args)
    first = meaning(xp, key, start, BLOCK, *args)
    drawn = np.empty((count, *first.shape[1:]), first.dtype)
    drawn[:BLOCK] = first
    for n in range(BLOCK, count, BLOCK):
        drawn[n : n + BLOCK] = meaning(xp, key, start + n, min(BLOCK, count - n), *args)
    return drawn
