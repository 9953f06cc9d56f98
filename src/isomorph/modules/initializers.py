"""Initialisers: the functions that fill the arrays of new layers.

An initialiser is a function of a key, a shape, and `fans`, the numbers of inputs and outputs of a
unit. It draws an array on the default backend (`iso.use_backend`), with the same numbers on every
backend. The functions here make initialisers; a `scale` is used as given, without `fans`.

>>> draw = iso.initializers.glorot()
>>> draw(iso.random.key(0), (2, 3), fans=(3, 2)).shape
(2, 3)

A layer made without a key takes the next key from the enclosing `use_key`; outside of it the key
comes from the operating system, so the weights differ each time.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from math import prod, sqrt
from typing import TYPE_CHECKING, Any

from .. import random
from ..arrays.conversion import to_numpy
from ..arrays.creation import asarray, full
from ..core.default_backend import home
from ..core.dispatch import backend_of, find_backend

if TYPE_CHECKING:
    from ..typing import Distribution, Key

__all__ = [
    "constant",
    "glorot",
    "he",
    "lecun",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "zeros",
]


def __dir__() -> list[str]:
    """What is public."""
    return [*__all__, *(name for name in globals() if name.startswith("__"))]


Initializer = Callable[..., Any]
KEYS: ContextVar[Iterator[Any] | None] = ContextVar("isomorph.keys", default=None)

# The standard deviation of a normal distribution cut off at two standard deviations.
CUT = 0.87962566103423978


@contextmanager
def use_key(key: Key, /) -> Iterator[None]:
    """Within the block, layers made without a key take theirs from this one, an integer or a key of
    `iso.random`, in the order in which they are made: the same program makes the same model.

    >>> with iso.use_key(0):
    ...     first, second = iso.Linear(2, 1), iso.Linear(2, 1)
    >>> with iso.use_key(0):
    ...     again = iso.Linear(2, 1)
    >>> bool(np.all(first.w == again.w)), bool(np.all(first.w == second.w))
    (True, False)
    """
    root = random.key(key) if isinstance(key, int) else key
    random.check_key("use_key", root)
    token = KEYS.set(random.fold_in(root, i) for i in count())
    try:
        yield
    finally:
        KEYS.reset(token)


def new_key(key: Any = None) -> Any:
    """A key on the default backend: the given one, an integer or a key, or else the next one."""
    if key is None:
        keys = KEYS.get()
        key = secrets.randbits(63) if keys is None else next(keys)
    if isinstance(key, int):
        return random.key(key)
    random.check_key("key", key)
    place = home()
    if find_backend(key) is place.backend:  # also a traced key, whose values are not known yet
        return key if place.device is None else place.backend.asarray(key, device=place.device)
    near: Any = place.backend.name
    return asarray(to_numpy(key), backend=near, device=place.device)


def zeros() -> Initializer:
    """Zeros.

    >>> iso.initializers.zeros()(iso.random.key(0), (2,))
    array([0., 0.], dtype=float32)
    """
    return constant(0.0)


def ones() -> Initializer:
    """Ones.

    >>> iso.initializers.ones()(iso.random.key(0), (2,))
    array([1., 1.], dtype=float32)
    """
    return constant(1.0)


def constant(value: float) -> Initializer:
    """The same number everywhere.

    >>> iso.initializers.constant(0.5)(iso.random.key(0), (2,))
    array([0.5, 0.5], dtype=float32)
    """

    def draw(key: Any, shape: tuple, *, fans: tuple = ()) -> Any:
        return full(shape, float(value), dtype=home().dtype or "float32")

    return draw


def uniform(scale: float = 0.05) -> Initializer:
    """Numbers from -scale to scale.

    >>> drawn = iso.initializers.uniform(0.1)(iso.random.key(0), (1000,))
    >>> bool(np.all(np.abs(drawn) <= 0.1)), round(float(np.std(drawn)), 2)
    (True, 0.06)
    """
    _positive("uniform", scale)
    return lambda key, shape, *, fans=(): random.uniform(key, shape, minval=-scale, maxval=scale)


def normal(scale: float = 0.05) -> Initializer:
    """Normally distributed numbers, times scale.

    >>> drawn = iso.initializers.normal(0.1)(iso.random.key(0), (1000,))
    >>> round(float(np.std(drawn)), 2)
    0.1
    """
    _positive("normal", scale)
    return lambda key, shape, *, fans=(): random.normal(key, shape) * scale


def truncated_normal(scale: float = 0.05) -> Initializer:
    """Normally distributed numbers, cut off at two standard deviations, times scale.

    >>> drawn = iso.initializers.truncated_normal(0.1)(iso.random.key(0), (1000,))
    >>> bool(np.all(np.abs(drawn) <= 0.2))
    True
    """
    _positive("truncated_normal", scale)
    return lambda key, shape, *, fans=(): random.truncated_normal(key, shape) * scale


def glorot(distribution: Distribution = "uniform", gain: float = 1.0) -> Initializer:
    """Variance gain² · 2 / (in + out): Glorot and Bengio, 2010.

    >>> drawn = iso.initializers.glorot()(iso.random.key(0), (50, 150), fans=(50, 150))
    >>> round(float(np.std(drawn)), 2)
    0.1
    """
    return _scaled("glorot", distribution, lambda fans: gain**2 * 2 / sum(fans))


def he(distribution: Distribution = "normal", gain: float = 1.0) -> Initializer:
    """Variance gain² · 2 / in, for relu: He et al., 2015.

    >>> drawn = iso.initializers.he()(iso.random.key(0), (200, 50), fans=(200, 50))
    >>> round(float(np.std(drawn)), 2)
    0.1
    """
    return _scaled("he", distribution, lambda fans: gain**2 * 2 / fans[0])


def lecun(distribution: Distribution = "normal", gain: float = 1.0) -> Initializer:
    """Variance gain² / in: LeCun et al., 1998.

    >>> drawn = iso.initializers.lecun()(iso.random.key(0), (100, 50), fans=(100, 50))
    >>> round(float(np.std(drawn)), 2)
    0.1
    """
    return _scaled("lecun", distribution, lambda fans: gain**2 / fans[0])


def orthogonal(gain: float = 1.0) -> Initializer:
    """A matrix (last axis by all others) with orthonormal rows or columns, whichever are fewer,
    times gain: Saxe et al., 2014. Computed in float64 and rounded.

    >>> q = iso.initializers.orthogonal()(iso.random.key(0), (4, 2))
    >>> bool(np.allclose(q.T @ q, np.eye(2), atol=1e-6))
    True
    """

    def draw(key: Any, shape: tuple, *, fans: tuple = ()) -> Any:
        if len(shape) < 2:
            raise ValueError(f"orthogonal: needed at least two axes, got shape {tuple(shape)}")
        rows, columns = prod(shape[:-1]), shape[-1]
        size = (max(rows, columns), min(rows, columns))
        # NumPy's factorisation on every backend: the same signs, the same bits
        host = random.normal(to_numpy(key), size, dtype="float64")
        xp = backend_of(host)
        q, r = xp.linalg.qr(host)
        q = q * xp.sign(xp.linalg.diagonal(r))
        q = gain * xp.reshape(q if rows >= columns else xp.matrix_transpose(q), shape)
        place = home()
        return asarray(
            q,
            dtype=place.dtype or "float32",
            backend=place.backend.name,  # pyright: ignore[reportArgumentType]
            device=place.device,
        )

    return draw


def _scaled(name: str, distribution: str, variance: Callable[[tuple], float]) -> Initializer:
    def draw(key: Any, shape: tuple, *, fans: tuple) -> Any:
        scale = sqrt(variance(fans))
        if distribution == "uniform":
            edge = sqrt(3) * scale
            return random.uniform(key, shape, minval=-edge, maxval=edge)
        if distribution == "truncated_normal":
            return random.truncated_normal(key, shape) * (scale / CUT)
        return random.normal(key, shape) * scale

    if distribution not in ("uniform", "normal", "truncated_normal"):
        raise ValueError(
            f"{name}: needed uniform, normal or truncated_normal, got {distribution!r}"
        )
    return draw


def _positive(name: str, scale: Any) -> None:
    if not isinstance(scale, (int, float)) or not scale > 0:
        raise ValueError(f"{name}: needed a scale above 0, got {scale!r}")
