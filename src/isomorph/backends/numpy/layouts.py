"""How the results of composed functions lie in memory: as those of NumPy's own do, since that
decides what is a view, and whether `ravel` and `reshape` of it are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy

from .levels import LIFTED
from .mapped import Mapped
from .storage import bottom, shares, storage

np: Any = numpy  # its type stubs do not know traced values
ndarray = numpy.ndarray


def laid_out(func: Callable, body: Callable, always: bool = False) -> Callable:
    """`body`, which replaces `func` for traced values, with results that lie in memory as those of
    `func` do. NumPy's own `func` is called to see how: if a result may be a view, if it or an
    argument is not in C order, or `always`.
    """

    @wraps(body)
    def call(*args: Any, **kw: Any) -> Any:
        y = body(*args, **kw)
        parts = y if type(y) in (list, tuple) else (y,)
        turned = any(map(_is_turned, (*args, *kw.values(), *parts)))
        unsure = always or turned or "order" in kw or any(map(_may_be_view, parts))
        if not unsure or any(map(_calls_back, args)):
            return y
        given = [example(a) for a in args]
        model = func(*given, **{k: example(v) for k, v in kw.items()})
        if type(y) not in (list, tuple):
            return _laid_out(y, model, given)
        return type(y)([_laid_out(a, b, given) for a, b in zip(y, model)])

    return call


def _may_be_view(y: Any) -> bool:
    kind = type(y)
    if kind is Mapped:
        return y.ndim > 0 and _may_be_view(y.value)
    return y.base is not None if kind is ndarray else kind in LIFTED and storage(y) is not y


def _is_turned(x: Any) -> bool:
    if type(x) in (list, tuple):
        return any(map(_is_turned, x))
    x = bottom(x)
    return type(x) is ndarray and x.ndim > 1 and not x.flags.c_contiguous


def _calls_back(x: Any) -> bool:
    return callable(x) and not isinstance(x, type)


def example(x: Any) -> Any:
    """The plain array of an argument; of a mapped one, that of its first example. Instead of a
    function it is a number, since only the layout is of interest.
    """
    if type(x) in LIFTED:
        value = example(x.value)
        return value[0] if type(x) is Mapped else value
    if type(x) in (list, tuple):
        return type(x)(map(example, x))
    return 0 if _calls_back(x) else x


def _laid_out(y: Any, model: Any, given: list[Any]) -> Any:
    if type(y) not in LIFTED or type(model) is not ndarray:
        return y
    if any(shares(model, a) for a in given if type(a) is ndarray):  # a view, as ours is
        return y
    return in_layout_of(model, np.copy(y, order="K") if _may_be_view(y) else y)


def in_layout_of(model: ndarray, y: Any) -> Any:
    """`y`, or a copy of it that lies in memory as `model` does."""
    x = example(y)
    steps = lambda x: [step for step, n in zip(x.strides, x.shape) if n > 1]
    if type(x) is not ndarray or steps(x) == steps(model):
        return y
    axes = sorted(range(model.ndim), key=lambda i: -model.strides[i])
    if axes == sorted(axes):
        return np.copy(y, order="C")
    back = sorted(range(model.ndim), key=axes.__getitem__)
    return np.transpose(np.copy(np.transpose(y, axes), order="C"), back)
