"""The error function and the normal distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..meanings.special import errors as meaning
from .calls import elementwise

if TYPE_CHECKING:
    from ..types.array_types import A


def erf(x: A, /) -> A:
    """2/√π ∫₀ˣ e^(−t²) dt.

    >>> iso.special.erf(np.array([0.0, 6.0]))
    array([0., 1.])
    """
    return elementwise("erf", _erf, x)


def _erf(xp: Any, x: Any) -> Any:
    return xp.erf(x)


def erfc(x: A, /) -> A:
    """1 − erf(x), without cancellation.

    >>> iso.special.erfc(np.array([0.0, 5.0])).round(15)
    array([1.000e+00, 1.537e-12])
    """
    return elementwise("erfc", meaning.erfc, x)


def erfcx(x: A, /) -> A:
    """e^(x²)·erfc(x), which does not underflow.

    >>> iso.special.erfcx(np.array([0.0, 1e3])).round(9)
    array([1.00000e+00, 5.64189e-04])
    """
    return elementwise("erfcx", meaning.erfcx, x)


def erfinv(x: A, /) -> A:
    """The inverse of erf, from −1 … 1.

    >>> iso.special.erfinv(np.array([0.0, 0.5])).round(6)
    array([0.      , 0.476936])
    """
    return elementwise("erfinv", meaning.erfinv, x)


def ndtr(x: A, /) -> A:
    """The distribution function of the standard normal distribution.

    >>> iso.special.ndtr(np.array([0.0, -5.0])).round(12)
    array([5.00000e-01, 2.86652e-07])
    """
    return elementwise("ndtr", meaning.ndtr, x)


def log_ndtr(x: A, /) -> A:
    """log(ndtr(x)), also far in the tail.

    >>> iso.special.log_ndtr(np.array([0.0, -100.0])).round(4)
    array([-6.9310000e-01, -5.0055242e+03])
    """
    return elementwise("log_ndtr", meaning.log_ndtr, x)


def ndtri(p: A, /) -> A:
    """The inverse of ndtr: the quantiles of the standard normal distribution.

    >>> iso.special.ndtri(np.array([0.5, 0.975])).round(6)
    array([0.      , 1.959964])
    """
    return elementwise("ndtri", meaning.ndtri, p)
