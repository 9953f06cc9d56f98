"""Compiled programs compared with the uncompiled function: `jit(func, verify=True)`.

A compiler may be wrong without an error. The first call of each program is computed twice, by the
program and by the function itself, and a difference larger than rounding raises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core import tree
from ..core.dispatch import NUMBERS, backend_of, dtype_of
from .slow_compilation import name_of

if TYPE_CHECKING:
    from ..core.contract import Contract

# Whether functions given to `jit` run uncompiled, including those called inside others.
AS_IT_IS: ContextVar[bool] = ContextVar("isomorph.as_it_is", default=False)

# The distance from 1 to the next number, by dtype.
EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
PARTS = {"complex64": "float32", "complex128": "float64"}


class Arguments(NamedTuple):
    """The arguments of a call, with copies of those that its program may overwrite."""

    leaves: list[Any]
    form: Any


def arguments(backend: Contract, args: tuple, kw: dict[str, Any], given: list) -> Arguments | None:
    """The arguments to compare with; None in a part of another program. `given` marks what is
    donated.
    """
    leaves, form = tree.flatten_whole((args, kw))
    if backend.is_tracing([x for x in leaves if type(x) not in NUMBERS]):
        return None
    copy = lambda x: x if type(x) in NUMBERS else backend.asarray(x, copy=True)
    return Arguments([copy(x) if yes else x for x, yes in zip(leaves, given)] or leaves, form)


def check(backend: Contract, func: Callable[..., Any], given: Arguments, out: Any) -> None:
    """Raise if a program did not return what the function itself does."""
    args, kw = tree.unflatten(given.form, given.leaves)
    with as_it_is():
        expected = func(*args, **kw)
    values = lambda nest: [
        backend.to_numpy(backend.asarray(x) if type(x) in NUMBERS else x)
        for x in tree.flatten_whole(nest)[0]
    ]
    found, wanted = values(out), values(expected)
    scale = max(map(largest, [*values(given.leaves), *wanted]), default=0.0)
    pairs = zip(found, wanted, tree.paths(expected, whole=True))
    worst = max((difference(x, y, scale, path) for x, y, path in pairs), default=None)
    if worst is not None and worst.off > worst.allowed:
        raise ArithmeticError(
            f"jit: verify: {name_of(func)} compiled for {backend.name} does not give "
            f"the results of the function itself: {worst}; call the "
            "function without jit, and report the compiler's error"
        )


@contextmanager
def as_it_is() -> Iterator[None]:
    """A block in which `jit` compiles nothing."""
    token = AS_IT_IS.set(True)
    try:
        yield
    finally:
        AS_IT_IS.reset(token)


class Difference(NamedTuple):
    """The largest difference between two outputs; the first field compares it with rounding."""

    excess: float
    off: float
    allowed: float
    path: str
    words: str

    def __str__(self) -> str:
        at = f" at {self.path}" if self.path else ""
        return (
            f"the output{at} is off by {self.off:.3g}, while rounding explains "
            f"{self.allowed:.3g} ({self.words})"
        )


def difference(x: Any, y: Any, scale: float, path: str) -> Difference:
    """Between two NumPy arrays, of a call whose largest value is `scale`. Infinities, NaNs and
    integers must be equal; for other numbers, rounding may be √ε of the largest expected value plus
    ε^¾ of `scale`.
    """
    xp: Any = backend_of(x, y)
    if x.shape != y.shape:
        words = f"compiled of shape {x.shape}, uncompiled of shape {y.shape}"
        return Difference(math.inf, math.inf, 0.0, path, words)
    names = [dtype_of(x), dtype_of(y)]
    if names[0] != names[1]:
        words = "compiled {}, uncompiled {}".format(*names)
        return Difference(math.inf, math.inf, 0.0, path, words)
    eps = max(EPS.get(PARTS.get(name, name), 0.0) for name in names)
    allowed = eps**0.5 * largest(y) + eps**0.75 * scale
    if eps:  # integers are not cast: float64 cannot hold all of them
        wide = xp.complex128 if set(names) & set(PARTS) else xp.float64
        x, y = xp.astype(x, wide), xp.astype(y, wide)
        same = (x == y) | (xp.isnan(x) & xp.isnan(y))
        x, y = (xp.where(same, xp.zeros_like(y), z) for z in (x, y))
        off = xp.abs(x - y)
        off = xp.where(xp.isnan(off), xp.full_like(off, xp.inf), off)
    else:
        off = xp.where(x == y, 0.0, 1.0)
    off = xp.reshape(off, (-1,))
    if not off.size:
        return Difference(0.0, 0.0, allowed, path, "nothing to compare")
    place = int(xp.argmax(off))
    numbers = [xp.reshape(z, (-1,))[place].item() for z in (x, y)]
    most = float(off[place])
    excess = most / allowed if allowed else most * math.inf if most else 0.0
    words = f"compiled {numbers[0]:.6g}, uncompiled {numbers[1]:.6g}"
    return Difference(excess, most, allowed, path, words)


def largest(x: Any) -> float:
    """The largest absolute value among the finite values of a NumPy array."""
    xp: Any = backend_of(x)
    if dtype_of(x) not in EPS and dtype_of(x) not in PARTS:
        return 0.0
    sizes = xp.abs(xp.astype(x, xp.complex128 if dtype_of(x) in PARTS else xp.float64))
    sizes = xp.where(xp.isfinite(sizes), sizes, xp.zeros_like(sizes))
    return float(xp.max(sizes)) if sizes.size else 0.0
