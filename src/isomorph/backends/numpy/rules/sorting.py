"""Sorting and related functions: the order itself is constant, so a result is a selection of
elements."""

from typing import Any

import numpy as np

from ..tape import composed
from ..traced import TRACED, concrete, no_rule, plain
from .reductions import axes_of
from .shaping import arrayed


@composed(np.sort)
def sort(a, axis=-1, kind=None, order=None, *, stable=None, **later):
    """`later` holds arguments of newer NumPy versions: `descending`."""
    if axis is None:
        a, axis = np.ravel(a), -1
    places = np.argsort(concrete(a), axis, kind, stable=stable, **later)
    return np.take_along_axis(a, places, axis)


@composed(np.sort_complex)
def sort_complex(a):
    return np.sort(a).astype(np.result_type(a.dtype, np.complex64))


@composed(np.partition)
def partition(a, kth, axis=-1, kind: Any = "introselect", order=None):
    if axis is None:
        a, axis = np.ravel(a), -1
    return np.take_along_axis(a, np.argpartition(concrete(a), kth, axis, kind), axis)


def ranked(func, a, q, axis, method, keepdims, skip):
    """The value at the fraction `q` of the sorted elements; `skip` ignores NaN."""
    axes = axes_of(axis, a.ndim)
    rest = [i for i in range(a.ndim) if i not in axes]
    lanes = np.reshape(np.transpose(a, [*axes, *rest]), (-1, *[a.shape[i] for i in rest]))
    ordered = np.sort(lanes, 0)
    missing = np.isnan(concrete(ordered))
    n: Any = np.sum(~missing, 0) if skip else lanes.shape[0]
    place = np.reshape(q, q.shape + (1,) * len(rest)) * arrayed(n - 1).astype(q.dtype)  # pyright: ignore
    at = arrayed(concrete(place))
    low, high = np.floor(at).astype(int), np.ceil(at).astype(int)
    if method == "linear":
        part = place - np.floor(at)
    elif method == "midpoint":
        part = np.where(low == high, 0.0, 0.5)
    elif method in ("lower", "higher", "nearest"):
        low = high = {"lower": low, "higher": high, "nearest": np.rint(at).astype(int)}[method]
        part = None
    else:
        no_rule(func, f" with method={method!r}")

    def pick(i):
        i = np.broadcast_to(np.maximum(i, 0), (*np.shape(q), *lanes.shape[1:]))
        flat = np.reshape(i, (-1, *lanes.shape[1:]))
        return np.reshape(np.take_along_axis(ordered, flat, 0), i.shape)

    out = pick(low)
    if part is not None:
        out = out + (pick(high) - out) * part.astype(np.result_type(ordered.dtype, q.dtype))
    unknown = missing[0] if skip else missing[-1]
    if plain(unknown).any():  # there the value and the gradient are NaN
        lost = np.where(unknown, lanes, 0.0)
        out = out + np.sum(lost, 0) * np.where(unknown, np.nan, 0.0).astype(a.dtype)
    if not keepdims:
        return out
    ones = tuple(1 if i in axes else n for i, n in enumerate(a.shape))
    return np.reshape(out, np.shape(q) + ones)


def _fraction(q, a):
    """`q` as an array; a plain number takes the precision of the data, as in NumPy."""
    if hasattr(q, "dtype"):
        return q
    precision = a.dtype.type(0).real.dtype
    return np.asarray(q, precision if isinstance(q, (int, float)) else float)


def _quantile(func, percent, skip):
    def quantile(
        a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *,
        weights=None,
    ):  # fmt: skip
        if weights is not None:
            no_rule(func, " with weights=")
        a = arrayed(a)
        q = _fraction(q, a)
        return ranked(func, a, q / 100 if percent else q, axis, method, keepdims, skip)

    return quantile


def _median(func, skip):
    def median(a, axis=None, out=None, overwrite_input=False, keepdims=False):
        return ranked(func, a, _fraction(0.5, a), axis, "linear", keepdims, skip)

    return median


for _func, _body in {
    np.quantile: _quantile(np.quantile, percent=False, skip=False),
    np.percentile: _quantile(np.percentile, percent=True, skip=False),
    np.nanquantile: _quantile(np.nanquantile, percent=False, skip=True),
    np.nanpercentile: _quantile(np.nanpercentile, percent=True, skip=True),
    np.median: _median(np.median, skip=False),
    np.nanmedian: _median(np.nanmedian, skip=True),
}.items():
    # NumPy computes those without NaN row by row, and turns the rows
    composed(_func, always=_func.__name__.startswith("nan"))(_body)


@composed(np.unique)
def unique(ar, return_index=False, return_inverse=False, return_counts=False, axis=None, **kw):
    _, index, inverse, counts = np.unique(concrete(ar), True, True, True, axis, **kw)
    values = np.ravel(ar)[index] if axis is None else np.take(ar, index, axis)
    asked = zip(
        (True, return_index, return_inverse, return_counts), (values, index, inverse, counts)
    )
    out = tuple(part for wanted, part in asked if wanted)
    return out if len(out) > 1 else values


def _unique(func, *rest):
    def unique_some(x, /):
        plain = func(concrete(x))
        values = np.ravel(x)[np.unique(concrete(x), return_index=True, equal_nan=False)[1]]
        return plain._replace(values=values) if rest else values

    return unique_some


TRACED |= {
    np.unique_values: _unique(np.unique_values),
    np.unique_all: _unique(np.unique_all, "indices", "inverse_indices", "counts"),
    np.unique_counts: _unique(np.unique_counts, "counts"),
    np.unique_inverse: _unique(np.unique_inverse, "inverse_indices"),
}


@composed(np.union1d)
def union1d(ar1, ar2):
    return np.unique(np.concatenate([np.ravel(ar1), np.ravel(ar2)]))


@composed(np.setdiff1d)
def setdiff1d(ar1, ar2, assume_unique=False):
    kept = np.ravel(ar1) if assume_unique else np.unique(ar1)
    return kept[~np.isin(concrete(kept), concrete(ar2))]


@composed(np.setxor1d)
def setxor1d(ar1, ar2, assume_unique=False):
    parts = np.setdiff1d(ar1, ar2, assume_unique), np.setdiff1d(ar2, ar1, assume_unique)
    return np.sort(np.concatenate(parts))


@composed(np.intersect1d)
def intersect1d(ar1, ar2, assume_unique=False, return_indices=False):
    _, first, second = np.intersect1d(
        concrete(ar1), concrete(ar2), assume_unique, return_indices=True
    )
    values = np.ravel(ar1)[first]
    return (values, first, second) if return_indices else values
