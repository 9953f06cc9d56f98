"""Matrix products and contractions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy
from numpy.lib.stride_tricks import sliding_window_view

from ....core.dispatch import load
from ..levels import LIFTED, TRACED
from ..mapped import Map, Mapped, call, is_mapped, rowwise, rule, spread, value_of
from ..rules.polynomials import convolved
from ..rules.products import LETTERS, _spell, contracted, summed
from ..traced import plain

np: Any = numpy  # its type stubs do not know mapped values
ndarray = numpy.ndarray


def cores(over: Map, args: Sequence[Any], core: Sequence[int]) -> list[Any]:
    """Arguments whose last `core` axes belong to a matrix or a vector, so that the axes before
    these broadcast.
    """
    ranks = [np.ndim(a) - n for a, n in zip(args, core)]
    rank = max(ranks)
    return [spread(a.value, rank + n) if is_mapped(over, a) else a for a, n in zip(args, core)]


@rule(np.matmul, np.linalg.matmul)
def matmul(over: Map, func: Callable, a: Any, b: Any, **kw: Any) -> Any:
    if kw:
        return rowwise(over, func, a, b, **kw)
    na, nb = getattr(a, "ndim", None), getattr(b, "ndim", None)
    if na is None or nb is None:  # a list
        a, b = (x if hasattr(x, "ndim") else load("numpy").asarray(x) for x in (a, b))
        na, nb = a.ndim, b.ndim
    if not na or not nb:
        raise ValueError("matmul: needed operands with axes")
    if not is_mapped(over, b):
        y = _left(a.value, b, na, nb)
    elif not is_mapped(over, a):
        y = _right(a, b.value, na, nb)
    else:
        y = _both(a.value, b.value, na, nb)
    return Mapped(y, over)


def times(a: Any, b: Any) -> Any:
    """The product of values that may belong to older transforms."""
    lifted = type(a) in LIFTED or type(b) in LIFTED
    return call(np.matmul, a, b) if lifted else np.matmul(a, b)


def _left(x: Any, b: Any, na: int, nb: int) -> Any:
    """Of all examples of the first operand."""
    if nb == 2 and na > 1 and type(x) is ndarray and type(b) is ndarray:  # one large product
        return times(x.reshape(-1, x.shape[-1]), b).reshape(*x.shape[:-1], b.shape[-1])
    if nb <= 2:
        return times(x, b)
    if na == 1:
        return times(spread(x[:, None], nb), b)[..., 0, :]
    return times(spread(x, nb), b)


def _right(a: Any, x: Any, na: int, nb: int) -> Any:
    if nb == 1:
        if na == 1:
            return times(x, a)
        if na == 2:
            return times(x, np.swapaxes(a, 0, 1))
        return times(a, spread(x[..., None], na))[..., 0]
    if na == nb == 2 and type(x) is ndarray and type(a) is ndarray:  # one large product
        turned = np.swapaxes(x, 1, 2)
        y = times(turned.reshape(-1, x.shape[1]), a.T)
        return np.swapaxes(y.reshape(*turned.shape[:2], len(a)), 1, 2)
    return times(a, spread(x, na) if na > 1 else x)


def _both(x: Any, y: Any, na: int, nb: int) -> Any:
    if na == nb == 1:
        return np.sum(x * y, -1)
    if na == 1:
        return times(spread(x[:, None], nb), y)[..., 0, :]
    if nb == 1:
        return times(x, spread(y[..., None], na))[..., 0]
    return times(spread(x, nb), spread(y, na))


@rule(np.vecdot, np.linalg.vecdot)
def vecdot(over: Map, func: Callable, x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    if axis != -1:
        rank = max(np.ndim(x1), np.ndim(x2))
        axis = axis - rank if axis >= 0 and np.ndim(x1) == np.ndim(x2) else axis
        if axis >= 0 or -axis > min(np.ndim(x1), np.ndim(x2)):
            return rowwise(over, func, x1, x2, axis=axis)
        x1, x2 = spread_each(over, (x1, x2), rank)
        return Mapped(np.vecdot(x1, x2, axis=axis), over)
    return Mapped(np.vecdot(*cores(over, (x1, x2), (1, 1))), over)


def spread_each(over: Map, args: Sequence[Any], rank: int) -> list[Any]:
    return [spread(a.value, rank) if is_mapped(over, a) else a for a in args]


if hasattr(np, "matvec"):  # from NumPy 2.2 on

    @rule(np.matvec)
    def matvec(over: Map, func: Callable, x1: Any, x2: Any, /) -> Any:
        return Mapped(np.matvec(*cores(over, (x1, x2), (2, 1))), over)

    @rule(np.vecmat)
    def vecmat(over: Map, func: Callable, x1: Any, x2: Any, /) -> Any:
        return Mapped(np.vecmat(*cores(over, (x1, x2), (1, 2))), over)


@rule(contracted)
def contract(over: Map, func: Callable, a: Any, b: Any, axes: Any) -> Any:
    over_a, over_b = axes
    if not is_mapped(over, b):
        return Mapped(np.tensordot(a.value, b, ([i + 1 for i in over_a], over_b)), over)
    if not is_mapped(over, a):
        y = np.tensordot(a, b.value, (over_a, [i + 1 for i in over_b]))
        return Mapped(np.moveaxis(y, a.ndim - len(over_a), 0), over)
    one, two = list(LETTERS[: a.ndim]), list(LETTERS[a.ndim : a.ndim + b.ndim])
    for i, j in zip(over_a, over_b):
        two[j] = one[i]
    left = [c for i, c in enumerate(one) if i not in over_a]
    right = [c for j, c in enumerate(two) if j not in over_b]
    return Mapped(_einsum(("".join(one), "".join(two)), "".join(left + right), (a, b), over), over)


def _einsum(
    terms: Sequence[str], result: str, operands: Sequence[Any], over: Map, **kw: Any
) -> Any:
    """einsum with one more letter, for the examples."""
    letter = next(c for c in LETTERS[::-1] if c not in "".join((*terms, result)))
    mapped = [is_mapped(over, x) for x in operands]
    words = [letter + t if each else t for t, each in zip(terms, mapped)]
    values = [x.value if each else x for x, each in zip(operands, mapped)]
    return np.einsum(",".join(words) + "->" + letter + result, *values, **kw)


@rule(summed)
def sum_of_products(
    over: Map, func: Callable, *operands: Any, terms: Any, result: str, optimize: Any = False
) -> Any:
    kw = {"optimize": True} if optimize else {}
    return Mapped(_einsum(terms, result, operands, over, **kw), over)


@rule(np.einsum)
def einsum(
    over: Map, func: Callable, *operands: Any, out: Any = None, optimize: Any = False, **kw: Any
) -> Any:
    given = type(operands[0]) is str
    spec, arrays = (operands[0], operands[1:]) if given else _spell(operands)
    left, arrow, result = spec.replace(" ", "").partition("->")
    if not arrow:
        letters = left.replace(",", "").replace("...", "")
        result = "..." if "..." in left else ""
        result += "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    terms = left.split(",")
    if len(terms) != len(arrays):
        raise ValueError(f"numpy.einsum: needed {len(terms)} operands, got {len(arrays)}")
    if optimize:
        kw["optimize"] = True
    return Mapped(_einsum(terms, result, arrays, over, **kw), over)


@rule(np.cross, np.linalg.cross)
def cross(over: Map, func: Callable, a: Any, b: Any, *axes: Any, **kw: Any) -> Any:
    if axes or any(k != "axis" for k in kw) or kw.get("axis", -1) != -1:
        return TRACED[func](a, b, *axes, **kw)
    return Mapped(func(*cores(over, (a, b), (1, 1))), over)


@rule(convolved)
def convolve(over: Map, func: Callable, a: Any, v: Any) -> Any:
    """The full convolution, as products of windows of `a` with `v` turned around."""
    if len(v) > len(a):
        a, v = v, a
    if not np.isfinite(plain(v)).all():  # zeros beyond the edge of `a` would make NaN of them
        return rowwise(over, func, a, v)
    edge = len(v) - 1
    windows = sliding_window_view(np.pad(a, [(edge, edge)]), len(v), 0)
    return np.matmul(windows, np.flip(v, 0))


@rule(np.kron)
def kron(over: Map, func: Callable, a: Any, b: Any) -> Any:
    rank = max(np.ndim(a), np.ndim(b))
    x, y = (spread(value_of(over, z), rank) for z in (a, b))
    wide = x.reshape(over.size, *(n for size in x.shape[1:] for n in (size, 1)))
    tall = y.reshape(over.size, *(n for size in y.shape[1:] for n in (1, size)))
    shape = [i * j for i, j in zip(x.shape[1:], y.shape[1:])]
    return Mapped((wide * tall).reshape(over.size, *shape), over)
