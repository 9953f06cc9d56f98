"""The forms of entries in the table of examples, the numbers they are called with, and helpers of
their calls.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

import isomorph as iso
from oracles import name_of

NOTHING = MappingProxyType({})


class Function(NamedTuple):
    """A function of isomorph, called with arrays of some shapes."""

    call: Callable[..., Any]  # takes isomorph (a name of the namespace: it) and the arrays
    shapes: tuple[tuple[int, ...], ...]
    wanted: Callable[..., Any]  # takes float64 NumPy arrays; as simple as possible
    within: Any = None  # per argument (low, high), an array to add, or None; default: X
    order: int = 2  # how often it can be differentiated
    each: bool = False  # elementwise: takes arrays of any shape
    slope: Callable | None = None  # the derivative where it is not that of `wanted`, elementwise
    but: Mapping[str, str] = NOTHING  # what it may not do, and why: words of `MAY_NOT`


class Layer(NamedTuple):
    """A module, called with an array of some shape."""

    make: Callable[[Any], Any]  # takes isomorph
    shape: tuple[int, ...]
    wanted: Callable[[dict, np.ndarray], np.ndarray]  # takes the variables and the array
    but: Mapping[str, str] = NOTHING


class Pair(NamedTuple):
    """An optimizer."""

    make: Callable[[Any], Any]  # takes isomorph.optimizers
    wanted: Callable[[np.ndarray, list[np.ndarray]], np.ndarray]  # takes a parameter and gradients


# What an entry may not do. A word with a backend before it is about that backend alone.
MAY_NOT = {
    "compiled": "be compiled",
    "xla": "be compiled by XLA on TensorFlow, and whatever is in the same program",
    "gradient": "be differentiated on that backend",
    "compiled gradient": "be differentiated in a compiled program",
    "float32": "be called with float32",
    "half": "be called with float16 and bfloat16",
    "zeros": "be called with zeros",
    "empty": "be called without examples",
    "large": "be called with larger arrays",
    "mapped": "be mapped for all examples at once on NumPy",
    "borders": "be called under the frameworks' own transforms",
    "device": "be called with arrays that are not on the default device",
    "edges": "be in the table of edges: it has cases there, or a reason to have none",
}
BACKENDS = ("numpy", "jax", "tensorflow", "torch")


def may(entry, word, backend=None):
    """Whether an entry may do something."""
    return word not in entry.but and f"{backend} {word}" not in entry.but


# The shapes of most arguments: frameworks compile anew for each shape.
V, R, T, M = (24,), (4, 6), (2, 3, 4), (4, 4)
# A compiler computes many elements at a time and divides the work among threads, but not for few
# elements. Sizes that are no multiples leave a remainder.
LARGER = {24: 1037, 12: 517, 6: 67, 4: 37, 3: 19, 2: 5}
X = np.cos(1.7 * np.arange(24)) * 0.8 + 0.05  # all different, from -0.75 to 0.85; none at a kink


def parts(xp, x, shapes):
    """Arrays of the given shapes from the numbers of `x`, one after the other. At its end, start
    again with scaled values.
    """
    flat, place, scale, found = xp.reshape(x, (-1,)), 0, 1.0, []
    for shape in shapes:
        pieces, n = [], int(np.prod(shape))
        while n:
            m = min(n, flat.shape[0] - place)
            pieces.append(flat[place : place + m] * scale)
            place, n = place + m, n - m
            if place == flat.shape[0]:
                place, scale = 0, scale * 0.7
        found.append(xp.reshape(xp.concat(pieces), shape) if pieces else xp.zeros(shape))
    return found


def moved(x, within):
    """Numbers like those of X, moved to a range, or half of them added to an array."""
    if within is None:
        return x
    if isinstance(within, np.ndarray):
        return x / 2 + within
    low, high = within
    return low + (x + 0.75) * (high - low) / 1.6


def arrays_of(entry, shapes=None):
    """The NumPy arrays that an entry is called with."""
    shapes = entry.shapes if shapes is None else shapes
    numbers = X if max(map(np.prod, shapes), default=0) <= 200 else np.cos(1.7 * np.arange(9973))
    numbers = numbers if numbers is X else numbers * 0.8 + 0.05
    ranges = entry.within or (None,) * len(shapes)
    return [moved(x, w) for x, w in zip(parts(np, numbers, shapes), ranges, strict=True)]


def larger(entry):
    """The arrays of an example with more elements: each size has its larger one."""
    return arrays_of(entry, [tuple(LARGER.get(n, n) for n in shape) for shape in entry.shapes])


def of_vector(entry, call):
    """An entry as a function of 24 numbers: at X, its arguments are `arrays_of`."""
    base = [a - p for a, p in zip(arrays_of(entry), parts(np, X, entry.shapes))]

    def run(x):
        pieces = parts(iso.namespace(x), x, entry.shapes)
        return call(*(p + const(x, b) for p, b in zip(pieces, base)))

    return run


def of_number(entry, call):
    """An elementwise entry as a function of one number: at 0.7, the first of each array."""
    base = [a[0] - 0.7 for a in arrays_of(entry)]
    return lambda x: call(*(x + const(x, b) for b in base))


# For calls: constants of the framework and dtype of an array.


def const(x, values):
    xp = iso.namespace(x)
    return xp.asarray(np.asarray(values, np.float64), dtype=x.dtype)


def ints(x, values):
    return iso.namespace(x).asarray(np.asarray(values, np.int64))


def key_of(x):
    """A random key of the framework of `x`."""
    return iso.random.key(5, backend=name_of(iso.namespace(x)))


def named(path):
    """The call of a function by its name, with arrays alone."""

    def call(iso, *arrays):
        for word in path.split("."):
            iso = getattr(iso, word)
        return iso(*arrays)

    return call


def each(call, wanted, *within, n=1, **facts):
    """An elementwise function of n arrays."""
    within = within if len(within) == n else within * n or None
    return Function(call, (V,) * n, wanted, within, each=True, **facts)
