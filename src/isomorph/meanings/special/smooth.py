"""Functions of arrays, element by element, with derivatives that are formulas.

A kernel computes the values only: it may have loops, and branches that meet with different
formulas, so differentiating it would be wrong or slow. Its partial derivatives are given beside it,
written with functions of the same kind, so that derivatives of any order follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any, NoReturn

Partial = Callable[..., Any] | str


class Smooth:
    """A kernel with its partial derivatives. It is called with arrays of one shape and one real
    floating dtype. `is_long` says that the kernel has hundreds of steps, or loops.
    """

    def __init__(
        self, kernel: Callable[..., Any], partials: Sequence[Partial], is_long: bool = False
    ):
        self.kernel, self.partials, self.is_long = kernel, partials, is_long
        self.name = kernel.__name__
        self.__doc__ = kernel.__doc__
        # whether each partial derivative uses the value: its second parameter is not called _
        self.reads = [callable(p) and list(signature(p).parameters)[1] != "_" for p in partials]

    def __call__(self, xp: Any, *arrays: Any) -> Any:
        return xp.smooth(self, arrays)

    def slope(self, xp: Any, place: int, y: Any, arrays: Sequence[Any]) -> Any:
        """The partial derivative in the argument number `place`. If `y` is None, the value is
        computed again where it is needed.
        """
        partial = self.partials[place]
        if isinstance(partial, str):
            self.refuse(place)
        if y is None and self.reads[place]:
            y = self(xp, *arrays)
        return partial(xp, y, *arrays)

    def refuse(self, place: int) -> NoReturn:
        """Raise, because there is no derivative in this argument."""
        raise NotImplementedError(
            f"{self.name}: has no derivative in argument {place + 1}, "
            f"{self.partials[place]}; pass it through iso.stop_gradient"
        )

    def __repr__(self) -> str:
        return f"<the special function {self.name}>"


def smooth(*partials: Partial) -> Callable[[Callable[..., Any]], Smooth]:
    """Decorates a kernel `(xp, *arrays)`. There is one partial derivative per argument: a function
    `(xp, y, *arrays)`, with `y` the value of the kernel (call it `_` if it is not used), or a text
    that says why there is none.
    """
    return lambda kernel: Smooth(kernel, partials)


def long_smooth(*partials: Partial) -> Callable[[Callable[..., Any]], Smooth]:
    """`smooth` for a kernel with hundreds of steps, or with loops."""
    return lambda kernel: Smooth(kernel, partials, is_long=True)


class Pointwise:
    """A call of a `Smooth` function as a rule for `custom_call`; see `Contract.custom_call`."""

    def __init__(self, xp: Any, function: Smooth, wanted: Sequence[bool]):
        self.xp, self.function, self.wanted = xp, function, wanted

    def func(self, *arrays: Any) -> tuple:
        return (self.xp.special(self.function, *arrays),)

    def fwd(self, *arrays: Any) -> tuple:
        return self.func(*arrays), ()

    def bwd(self, residuals: tuple, upstream: tuple, arrays: tuple) -> tuple:
        xp, partials = self.xp, self.function.partials
        y = None
        if any(w and r for w, r in zip(self.wanted, self.function.reads)):
            y = self.function(xp, *arrays)  # for second derivatives, its own rule is needed
        return tuple(
            upstream[0] * self.function.slope(xp, i, y, arrays)
            if self.wanted[i] and not isinstance(partials[i], str)
            else xp.zeros_like(x)
            for i, x in enumerate(arrays)
        )


class Refusal:
    """The identity, as a rule for `custom_call` that raises if it is differentiated."""

    def __init__(self, function: Smooth, place: int):
        self.function, self.place = function, place

    def func(self, x: Any) -> tuple:
        return (x,)

    def fwd(self, x: Any) -> tuple:
        return (x,), ()

    def bwd(self, residuals: tuple, upstream: tuple, arrays: tuple) -> NoReturn:
        self.function.refuse(self.place)


def called(xp: Any, function: Smooth, arrays: tuple, wanted: Sequence[bool] = ()) -> Any:
    """A `Smooth` function of arrays; `wanted` says which of them may be differentiated."""
    wanted = wanted or [xp.is_watched(x) for x in arrays]
    if not any(wanted):
        return xp.special(function, *arrays)
    given = [
        xp.custom_call(Refusal(function, i), (x,))[0]
        if wanted[i] and isinstance(function.partials[i], str)
        else x
        for i, x in enumerate(arrays)
    ]
    return xp.custom_call(Pointwise(xp, function, wanted), tuple(given))[0]
