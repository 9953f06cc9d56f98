"""Functions of one array, or of a few, which may be given as lists that hold traced values:
`np.sum([x, y])`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy

from ..backends.numpy.levels import OPEN, RUNNING
from ..backends.numpy.nested import gathered, holds_traced

NAMES = """
    amax amin argmax argmin argsort average cross cumprod cumsum diff dot einsum
    expand_dims flip inner interp kron linspace max mean median min moveaxis nanmax nanmean nanmin
    nansum nanstd nanvar outer percentile polyval prod ptp quantile ravel repeat reshape roll sort
    squeeze std sum swapaxes tensordot tile trace transpose trapezoid vdot var where
"""
LINALG = """
    cholesky cond det eig eigh eigvals eigvalsh inv lstsq matrix_norm matrix_power norm
    pinv qr slogdet solve svd svdvals vector_norm
"""


def takes_lists(func: Callable[..., Any]) -> Callable[..., Any]:
    """`func`; an argument that is a list or tuple with traced values in it becomes an array."""

    @wraps(func)
    def call(*args: Any, **kw: Any) -> Any:
        return func(*map(as_array, args), **{word: as_array(x) for word, x in kw.items()})

    return call


def as_array(x: Any, kinds: Any = (list, tuple)) -> Any:
    """`x`, but an array if it is a list or tuple that holds traced values."""
    return gathered(x) if isinstance(x, kinds) and holds_traced(x) else x


def quick(theirs: Any, ours: Any) -> Any:
    """`ours` while something is differentiated or mapped, in any thread; else NumPy's function."""
    if theirs is None or not callable(ours):
        return ours

    @wraps(theirs)
    def call(*args: Any, **kw: Any) -> Any:
        return ours(*args, **kw) if OPEN or RUNNING else theirs(*args, **kw)

    return call


LISTED = {name: takes_lists(getattr(numpy, name)) for name in NAMES.split()}
LISTED_LINALG = {name: takes_lists(getattr(numpy.linalg, name)) for name in LINALG.split()}
