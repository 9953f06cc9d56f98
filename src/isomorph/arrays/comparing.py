"""Whether numbers are close to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.dispatch import backend_of
from ..core.dtypes import promoted, widened
from .arguments import array, floats

if TYPE_CHECKING:
    from ..types.array_types import A


def isclose(
    x: A, y: Any, /, rtol: float = 1e-5, atol: float = 1e-8, *, equal_nan: bool = False
) -> A:
    """Where |x - y| <= atol + rtol·|y|, element by element; equal infinities are close, NaN is
    only with `equal_nan`. One of the two may be a Python number.

    >>> iso.isclose(np.array([1.0, np.inf, 2.0]), np.array([1.0 + 1e-9, np.inf, 2.1]))
    array([ True,  True, False])
    """
    xp: Any = backend_of(x, y)
    one, two = (widened(xp, floats(xp, array(xp, a, b))) for a, b in ((x, y), (y, x)))
    one, two = promoted(xp, one, two)
    one, two = xp.stop_gradient(one, False), xp.stop_gradient(two, False)
    finite = xp.logical_and(xp.isfinite(one), xp.isfinite(two))
    none = xp.zeros_like(one - two) if one.shape != two.shape else xp.zeros_like(one)
    left, right = xp.where(finite, one, none), xp.where(finite, two, none)
    near = xp.abs(left - right) <= atol + rtol * xp.abs(right)
    close = xp.where(finite, near, one == two)
    if equal_nan:
        close = xp.logical_or(close, xp.logical_and(xp.isnan(one), xp.isnan(two)))
    return close


def allclose(
    x: A, y: Any, /, rtol: float = 1e-5, atol: float = 1e-8, *, equal_nan: bool = False
) -> A:
    """Whether all elements are close, see `isclose`: a boolean array without axes, so that it can
    be compiled; outside of compiled programs `if` takes it.

    >>> bool(iso.allclose(np.array([1.0, 2.0]), np.array([1.0, 2.0 + 1e-9])))
    True
    """
    xp: Any = backend_of(x, y)
    return xp.all(isclose(x, y, rtol, atol, equal_nan=equal_nan))
