"""Bessel functions of real order and real argument. The order has no derivative here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..meanings.special import bessel as meaning
from ..meanings.special import bessel_modified as modified
from .calls import elementwise

if TYPE_CHECKING:
    from ..types.array_types import A


def i0(x: A, /) -> A:
    """The modified Bessel function of the first kind of order 0.

    >>> iso.special.i0(np.array([0.0, 1.0])).round(6)
    array([1.      , 1.266066])
    """
    return elementwise("i0", modified.i0, x)


def i0e(x: A, /) -> A:
    """e^(−|x|)·i0(x), which does not overflow.

    >>> iso.special.i0e(np.array([0.0, 1e3])).round(6)
    array([1.      , 0.012617])
    """
    return elementwise("i0e", modified.i0e, x)


def i1(x: A, /) -> A:
    """The modified Bessel function of the first kind of order 1.

    >>> iso.special.i1(np.array([0.0, 1.0])).round(6)
    array([0.      , 0.565159])
    """
    return elementwise("i1", modified.i1, x)


def i1e(x: A, /) -> A:
    """e^(−|x|)·i1(x), which does not overflow.

    >>> iso.special.i1e(np.array([0.0, 1e3])).round(6)
    array([0.      , 0.012611])
    """
    return elementwise("i1e", modified.i1e, x)


def iv(v: Any, x: A, /) -> A:
    """The modified Bessel function of the first kind of real order v.

    >>> iso.special.iv(0.5, np.array([1.0])).round(6)
    array([0.937675])
    """
    return elementwise("iv", modified.iv, v, x)


def ive(v: Any, x: A, /) -> A:
    """e^(−|x|)·iv(v, x), which does not overflow.

    >>> iso.special.ive(0.5, np.array([1e3])).round(6)
    array([0.012616])
    """
    return elementwise("ive", modified.ive, v, x)


def jv(v: Any, x: A, /) -> A:
    """The Bessel function of the first kind of real order v.

    >>> iso.special.jv(0, np.array([0.0, 1.0])).round(6)
    array([1.      , 0.765198])
    """
    return elementwise("jv", meaning.jv, v, x)


def yv(v: Any, x: A, /) -> A:
    """The Bessel function of the second kind of real order v.

    >>> iso.special.yv(0, np.array([1.0])).round(6)
    array([0.088257])
    """
    return elementwise("yv", meaning.yv, v, x)
