"""Logistic functions, products with logarithms, entropies, sinc, and sums of exponentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from ..core.dispatch import backend_of
from ..layers.activation import log_softmax as log_softmax
from ..layers.activation import softmax as softmax
from ..meanings.special import logarithms as meaning
from .calls import alike, elementwise

if TYPE_CHECKING:
    from ..types.array_types import A, Axes


def expit(x: A, /) -> A:
    """1 / (1 + e^(−x)), the logistic function.

    >>> iso.special.expit(np.array([0.0, 1000.0]))
    array([0.5, 1. ])
    """
    return elementwise("expit", meaning.expit, x)


def log_expit(x: A, /) -> A:
    """log(expit(x)), also where expit underflows.

    >>> iso.special.log_expit(np.array([-1000.0, 1000.0]))
    array([-1000.,    -0.])
    """
    return elementwise("log_expit", meaning.log_expit, x)


def logit(p: A, /) -> A:
    """log(p / (1 − p)), the inverse of expit.

    >>> iso.special.logit(np.array([0.0, 0.5]))
    array([-inf,   0.])
    """
    return elementwise("logit", meaning.logit, p)


def xlogy(x: A, y: Any, /) -> A:
    """x·log(y), and 0 where x is 0.

    >>> iso.special.xlogy(np.array([0.0, 2.0]), np.array([0.0, 1.0]))
    array([0., 0.])
    """
    return elementwise("xlogy", meaning.xlogy, x, y)


def xlog1py(x: A, y: Any, /) -> A:
    """x·log(1 + y), and 0 where x is 0.

    >>> iso.special.xlog1py(np.array([0.0, 2.0]), np.array([-1.0, 0.0]))
    array([0., 0.])
    """
    return elementwise("xlog1py", meaning.xlog1py, x, y)


def entr(x: A, /) -> A:
    """−x·log(x); 0 at 0, −∞ below.

    >>> iso.special.entr(np.array([-1.0, 0.0, 1.0]))
    array([-inf,   0.,  -0.])
    """
    return elementwise("entr", meaning.entr, x)


def rel_entr(x: A, y: Any, /) -> A:
    """x·log(x / y) for positive x and y; 0 where x is 0 and y is not negative; else ∞.

    >>> iso.special.rel_entr(np.array([0.0, 2.0]), np.array([1.0, 2.0]))
    array([0., 0.])
    """
    return elementwise("rel_entr", meaning.rel_entr, x, y)


def kl_div(x: A, y: Any, /) -> A:
    """x·log(x / y) − x + y for positive x and y; y where x is 0 and y is not negative; else ∞.

    >>> iso.special.kl_div(np.array([0.0, 2.0]), np.array([1.0, 2.0]))
    array([1., 0.])
    """
    return elementwise("kl_div", meaning.kl_div, x, y)


def sinc(x: A, /) -> A:
    """sin(πx) / (πx), and 1 at 0.

    >>> iso.special.sinc(np.array([0.0, 0.5])).round(6)
    array([1.     , 0.63662])
    """
    return elementwise("sinc", meaning.sinc, x)


@overload
def logsumexp(
    x: A, /, *, axis: Axes = None, b: Any = None, keepdims: bool = False,
    return_sign: Literal[False] = False,
) -> A: ...  # fmt: skip
@overload
def logsumexp(
    x: A, /, *, axis: Axes = None, b: Any = None, keepdims: bool = False,
    return_sign: Literal[True],
) -> tuple[A, A]: ...  # fmt: skip
def logsumexp(
    x: A, /, *, axis: Axes = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> A | tuple[A, A]:
    """log(Σ b·eˣ) over some axes, without overflow; all axes by default.

    `b` broadcasts with `x`; where it is 0, x does not count, even if infinite. If the sum is
    negative, the result is NaN; with `return_sign`, it is the logarithm of its size, and the sign
    is returned as well.

    >>> iso.special.logsumexp(np.array([1000.0, 1000.0]), b=np.array([0.75, 0.25]))
    array(1000.)
    """
    xp: Any = backend_of(x, b)
    if b is None and not return_sign:
        (given,), dtype = alike("logsumexp", xp, x)
        return xp.logsumexp(x if x.dtype == dtype else given, axis, keepdims)
    (given, weights), dtype = alike("logsumexp", xp, x, 1.0 if b is None else b)
    found = meaning.signed_logsumexp(xp, given, weights, axis, keepdims, return_sign)
    if given.dtype == dtype:
        return found
    return tuple(xp.astype(y, dtype) for y in found) if return_sign else xp.astype(found, dtype)
