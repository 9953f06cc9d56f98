# ruff: noqa: E501
"""Calls of the functions of `isomorph.arrays`, each with the same by NumPy, SciPy or a plain loop.

Numbers are different from each other and away from kinks, unless a case is about ties; then it is
not differentiated here, and `test_array_edges.py` states its gradient.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.special
from scipy.spatial import distance

RNG = np.random.default_rng(20)


class Case(NamedTuple):
    call: Callable[..., Any]  # takes isomorph and the arrays
    wanted: Callable[..., Any]  # takes NumPy arrays
    arrays: tuple
    places: tuple[int, ...] = (0,)  # the arguments that are differentiated


def numbers(*shape):
    """Numbers that are at least 0.02 apart, in random order."""
    n = int(np.prod(shape))
    return (RNG.permutation(n) * 0.05 - n * 0.02 + RNG.uniform(0, 0.03, n)).reshape(shape)


def with_nan(*shape):
    x = numbers(*shape)
    x.reshape(-1)[1::4] = np.nan
    return x


V, W, M, B = numbers(7), numbers(7), numbers(4, 5), numbers(2, 3, 4)
N = with_nan(4, 5)
IDS = np.array([2, 0, 5, 2, -1, 0, 3])
INTS = RNG.permutation(12)
KNOTS = np.array([-0.2, -0.05, 0.0, 0.1, 0.35])
AT = np.array([[-0.9, -0.13, 0.03], [0.07, 0.21, 0.5]])


def looped_segments(reduce, empty):
    def run(x, ids, n):
        found = [x[ids == i] for i in range(n)]
        nothing = np.full(x.shape[1:], empty, x.dtype)
        return np.stack([reduce(part, axis=0) if len(part) else nothing for part in found])

    return run


def segment_softmax(x, ids, n):
    out = np.zeros_like(x)
    for i in range(n):
        if (ids == i).any():
            out[ids == i] = scipy.special.softmax(x[ids == i], axis=0)
    return out


def rows_searched(x, values, side):
    outer = x.shape[:-1]
    rows = [np.searchsorted(x[i], values[i], side) for i in np.ndindex(outer)]
    return np.stack(rows).reshape(values.shape)


def dropped(x, where, value, how):
    y = x.copy()
    for i, v in zip(where, np.broadcast_to(value, (len(where), *x.shape[1:]))):
        if -len(x) <= i < len(x):
            y[i] = {"add": y[i] + v, "set": v, "multiply": y[i] * v}.get(
                how, np.minimum(y[i], v) if how == "min" else np.maximum(y[i], v)
            )
    return y


def dropped_pairs(x, rows, columns, value):
    y = x.copy()
    for i, j, v in zip(rows, columns, value):
        if -x.shape[0] <= i < x.shape[0] and -x.shape[1] <= j < x.shape[1]:
            y[i, j] += v
    return y


METHODS = ("linear", "lower", "higher", "nearest", "midpoint")
METRICS = {"euclidean": {}, "sqeuclidean": {}, "cityblock": {}, "chebyshev": {},
           "minkowski": {"p": 3.0}}  # fmt: skip
ROWS = np.array([3, 0, 9, -1, -7])
C = numbers(3) + 1j * numbers(3)
D = numbers(2) - 1j * numbers(2)

# fmt: off
CASES = {
    "diag": Case(lambda iso, x: iso.diag(x), np.diag, (V,)),
    "diag_above": Case(lambda iso, x: iso.diag(x, k=2), lambda x: np.diag(x, 2), (V,)),
    "diag_below": Case(lambda iso, x: iso.diag(x, k=-1), lambda x: np.diag(x, -1), (V,)),
    "diag_of": Case(lambda iso, x: iso.diag(x), np.diag, (M,)),
    "diag_of_above": Case(lambda iso, x: iso.diag(x, 1), lambda x: np.diag(x, 1), (M,)),
    "diag_beyond": Case(lambda iso, x: iso.diag(x, 9), lambda x: np.diag(x, 9), (M,), ()),
    "diag_ints": Case(lambda iso, x: iso.diag(x, -1), lambda x: np.diag(x, -1), (INTS,), ()),
    "median": Case(lambda iso, x: iso.median(x), np.median, (M,)),
    "median_odd": Case(lambda iso, x: iso.median(x, axis=1, keepdims=True), lambda x: np.median(x, axis=1, keepdims=True), (M,)),
    "median_axes": Case(lambda iso, x: iso.median(x, axis=(0, 2)), lambda x: np.median(x, axis=(0, 2)), (B,)),
    "median_one": Case(lambda iso, x: iso.median(x), np.median, (np.array(2.5),)),
    "quantiles": Case(lambda iso, x: iso.quantile(x, [0.0, 0.3, 1.0], axis=1), lambda x: np.quantile(x, [0.0, 0.3, 1.0], axis=1), (M,)),
    "quantile_keeps": Case(lambda iso, x: iso.quantile(x, [0.2, 0.7], axis=(0, 2), keepdims=True), lambda x: np.quantile(x, [0.2, 0.7], axis=(0, 2), keepdims=True), (B,)),
    "quantile_of_array": Case(lambda iso, x, q: iso.quantile(x, q, axis=0), lambda x, q: np.quantile(x, q, axis=0), (M, np.array([[0.1, 0.45], [0.77, 0.9]])), (0, 1)),
    **{f"quantile_{m}": Case(lambda iso, x, m=m: iso.quantile(x, 0.37, axis=0, method=m), lambda x, m=m: np.quantile(x, 0.37, axis=0, method=m), (M,)) for m in METHODS},
    **{f"quantile_of_array_{m}": Case(lambda iso, x, q, m=m: iso.quantile(x, q, axis=0, method=m), lambda x, q, m=m: np.quantile(x, q, axis=0, method=m), (M, np.array([0.5, 0.9]))) for m in METHODS},
    "quantile_half": Case(lambda iso, x: iso.quantile(x, [0.5, 0.25], axis=1, method="nearest"), lambda x: np.quantile(x, [0.5, 0.25], axis=1, method="nearest"), (numbers(3, 7),)),
    "quantile_ints": Case(lambda iso, x: iso.quantile(x, 0.3, method="lower"), lambda x: np.quantile(x, 0.3, method="lower"), (INTS,), ()),
    "nansum": Case(lambda iso, x: iso.nansum(x, axis=1), lambda x: np.nansum(x, axis=1), (N,)),
    "nanprod": Case(lambda iso, x: iso.nanprod(x, axis=0), lambda x: np.nanprod(x, axis=0), (N,)),
    "nanmean": Case(lambda iso, x: iso.nanmean(x, axis=1, keepdims=True), lambda x: np.nanmean(x, axis=1, keepdims=True), (N,)),
    "nanvar": Case(lambda iso, x: iso.nanvar(x, axis=1, correction=1), lambda x: np.nanvar(x, axis=1, ddof=1), (N,)),
    "nanstd": Case(lambda iso, x: iso.nanstd(x), np.nanstd, (N,)),
    "nanmin": Case(lambda iso, x: iso.nanmin(x, axis=0), lambda x: np.nanmin(x, axis=0), (N,)),
    "nanmax": Case(lambda iso, x: iso.nanmax(x), np.nanmax, (N,)),
    "nanmedian": Case(lambda iso, x: iso.nanmedian(x, axis=1), lambda x: np.nanmedian(x, axis=1), (N,)),
    **{f"nanquantile_{m}": Case(lambda iso, x, m=m: iso.nanquantile(x, [0.3, 0.8], axis=0, method=m), lambda x, m=m: np.nanquantile(x, [0.3, 0.8], axis=0, method=m), (N,)) for m in METHODS},
    "nanargmin": Case(lambda iso, x: iso.nanargmin(x, axis=1), lambda x: np.nanargmin(x, axis=1), (N,), ()),
    "nanargmax": Case(lambda iso, x: iso.nanargmax(x), np.nanargmax, (N,), ()),
    "nan_ints": Case(lambda iso, x: [iso.nansum(x), iso.nanmax(x), iso.nanargmin(x), iso.nan_to_num(x)], lambda x: [np.nansum(x), np.nanmax(x), np.nanargmin(x), np.nan_to_num(x)], (INTS,), ()),
    "isclose": Case(lambda iso, x, y: [iso.isclose(x, y), iso.isclose(x, y, equal_nan=True), iso.isclose(x, y, rtol=0.1, atol=0.0)], lambda x, y: [np.isclose(x, y), np.isclose(x, y, equal_nan=True), np.isclose(x, y, rtol=0.1, atol=0.0)], (np.array([1.0, 1.0, np.nan, np.inf, np.inf, np.inf, 0.0]), np.array([1.0 + 1e-6, 1.05, np.nan, np.inf, -np.inf, 1.0, 1e-9])), ()),
    "isclose_number": Case(lambda iso, x: [iso.isclose(x, 4), iso.allclose(x, x), iso.allclose(x, 2.0)], lambda x: [np.isclose(x, 4), np.allclose(x, x), np.allclose(x, 2.0)], (INTS,), ()),
    "nan_to_num": Case(lambda iso, x: iso.nan_to_num(x, nan=7.0), lambda x: np.nan_to_num(x, nan=7.0), (N,)),
    "nan_to_num_all": Case(lambda iso, x: [iso.nan_to_num(x), iso.nan_to_num(x, 1.0, 2.0, 3.0)], lambda x: [np.nan_to_num(x), np.nan_to_num(x, nan=1.0, posinf=2.0, neginf=3.0)], (np.array([1.0, np.nan, np.inf, -np.inf]),), ()),
    "interp": Case(lambda iso, x, xs, ys: iso.interp(x, xs, ys), np.interp, (AT, KNOTS, V[:5]), (0, 1, 2)),
    "interp_sides": Case(lambda iso, x, xs, ys: iso.interp(x, xs, ys, left=-3.0, right=4.0), lambda x, xs, ys: np.interp(x, xs, ys, -3.0, 4.0), (AT, KNOTS, V[:5]), (0, 1, 2)),
    "interp_exact": Case(lambda iso, x, xs, ys: iso.interp(x, xs, ys, right=9.0), lambda x, xs, ys: np.interp(x, xs, ys, right=9.0), (KNOTS, KNOTS, V[:5]), ()),
    "interp_one": Case(lambda iso, x, xs, ys: iso.interp(x, xs, ys, left=1.0), lambda x, xs, ys: np.interp(x, xs, ys, left=1.0), (np.array([0.0, 0.5, 1.0]), np.array([0.5]), np.array([3.0])), ()),
    "bincount": Case(lambda iso, x: iso.bincount(x, length=5), lambda x: np.bincount(x[(x >= 0) & (x < 5)], minlength=5), (IDS,), ()),
    "bincount_weights": Case(lambda iso, x, w: iso.bincount(x, w, length=5), lambda x, w: np.bincount(x[(x >= 0) & (x < 5)], w[(x >= 0) & (x < 5)], minlength=5), (IDS, V), (1,)),
    "histogram": Case(lambda iso, x: list(iso.histogram(x, 4)), lambda x: list(np.histogram(x, 4)), (M,), ()),
    "histogram_range": Case(lambda iso, x: list(iso.histogram(x, 3, range=(-0.1, 0.2))), lambda x: list(np.histogram(x, 3, range=(-0.1, 0.2))), (M,), ()),
    "histogram_edges": Case(lambda iso, x, e: list(iso.histogram(x, e)), lambda x, e: list(np.histogram(x, e)), (np.array([-0.2, 0.0, 0.35, 0.36, np.nan, 0.05]), KNOTS), ()),
    "histogram_weights": Case(lambda iso, x, w: iso.histogram(x, 3, weights=w)[0], lambda x, w: np.histogram(x, 3, weights=w)[0], (V, W), (1,)),
    "histogram_density": Case(lambda iso, x, w: iso.histogram(x, 3, weights=w * w, density=True)[0], lambda x, w: np.histogram(x, 3, weights=w * w, density=True)[0], (V, W), (1,)),
    "histogram_same": Case(lambda iso, x: list(iso.histogram(x, 2)), lambda x: list(np.histogram(x, 2)), (np.ones(3),), ()),
    **{f"convolve_{m}": Case(lambda iso, x, y, m=m: iso.convolve(x, y, m), lambda x, y, m=m: np.convolve(x, y, m), (V, W[:4]), (0, 1)) for m in ("full", "same", "valid")},
    **{f"convolve_short_{m}": Case(lambda iso, x, y, m=m: iso.convolve(x, y, m), lambda x, y, m=m: np.convolve(x, y, m), (V[:3], W[:6]), (0, 1)) for m in ("full", "same", "valid")},
    **{f"correlate_{m}": Case(lambda iso, x, y, m=m: iso.correlate(x, y, m), lambda x, y, m=m: np.correlate(x, y, m), (V, W[:4]), (0, 1)) for m in ("full", "same", "valid")},
    **{f"correlate_short_{m}": Case(lambda iso, x, y, m=m: iso.correlate(x, y, m), lambda x, y, m=m: np.correlate(x, y, m), (V[:3], W[:6]), (0, 1)) for m in ("full", "same", "valid")},
    **{f"correlate_odd_{m}": Case(lambda iso, x, y, m=m: iso.correlate(x, y, m), lambda x, y, m=m: np.correlate(x, y, m), (V[:6], W[:3]), ()) for m in ("full", "same", "valid")},
    "convolve_ints": Case(lambda iso, x, y: [iso.convolve(x, y), iso.correlate(x, y, "same")], lambda x, y: [np.convolve(x, y), np.correlate(x, y, "same")], (INTS, INTS[:4]), ()),
    "convolve_complex": Case(lambda iso, x, y: [iso.convolve(x, y), iso.correlate(x, y, "full")], lambda x, y: [np.convolve(x, y), np.correlate(x, y, "full")], (C, D), ()),
    "trapezoid": Case(lambda iso, y: iso.trapezoid(y, dx=0.3, axis=0), lambda y: np.trapezoid(y, dx=0.3, axis=0), (M,)),
    "trapezoid_places": Case(lambda iso, y, x: iso.trapezoid(y, x), np.trapezoid, (M, KNOTS), (0, 1)),
    "trapezoid_all_places": Case(lambda iso, y, x: iso.trapezoid(y, x, axis=1), lambda y, x: np.trapezoid(y, x, axis=1), (M, numbers(4, 5)), (0, 1)),
    "trapezoid_ints": Case(lambda iso, y: iso.trapezoid(y), np.trapezoid, (INTS,), ()),
    "cumulative_max": Case(lambda iso, x: iso.cumulative_max(x, axis=1), lambda x: np.maximum.accumulate(x, axis=1), (M,)),
    "cumulative_min": Case(lambda iso, x: iso.cumulative_min(x), np.minimum.accumulate, (V,)),
    "cumulative_nan": Case(lambda iso, x: [iso.cumulative_max(x, axis=0), iso.cumulative_min(x, axis=0)], lambda x: [np.maximum.accumulate(x), np.minimum.accumulate(x)], (N,), ()),
    "cumulative_ints": Case(lambda iso, x: [iso.cumulative_max(x), iso.cumulative_min(x)], lambda x: [np.maximum.accumulate(x), np.minimum.accumulate(x)], (INTS,), ()),
    "top_k": Case(lambda iso, x: iso.top_k(x, 2, axis=0).values, lambda x: -np.sort(-x, axis=0)[:2], (M,)),
    "top_k_indices": Case(lambda iso, x: list(iso.top_k(x, 3)), lambda x: [-np.sort(-x)[:, :3], np.argsort(-x, axis=1, kind="stable")[:, :3]], (np.array([[1.0, 4.0, 4.0, -np.inf, 3.0]]),), ()),
    "top_k_ints": Case(lambda iso, x: list(iso.top_k(x, 5)), lambda x: [np.sort(x)[::-1][:5], np.argsort(-x)[:5]], (INTS,), ()),
    "one_hot": Case(lambda iso, x: iso.one_hot(x, 4, dtype="float64"), lambda x: (x[:, None] == np.arange(4)).astype(float), (IDS,), ()),
    **{f"cdist_{m}": Case(lambda iso, x, y, m=m, p=p: iso.cdist(x, y, metric=m, **p), lambda x, y, m=m, p=p: distance.cdist(x, y, m, **p), (M, numbers(3, 5)), (0, 1)) for m, p in METRICS.items()},
    "cdist_batch": Case(lambda iso, x, y: iso.cdist(x, y), lambda x, y: np.linalg.norm(x[..., :, None, :] - y[..., None, :, :], axis=-1), (B, numbers(2, 2, 4)), (0, 1)),
    "segment_sum": Case(lambda iso, x, i: iso.segment_sum(x, i, 4), lambda x, i: looped_segments(np.sum, 0.0)(x, i, 4), (numbers(7, 2), IDS)),
    "segment_mean": Case(lambda iso, x, i: iso.segment_mean(x, i, 4), lambda x, i: looped_segments(np.mean, 0.0)(x, i, 4), (numbers(7, 2), IDS)),
    "segment_max": Case(lambda iso, x, i: iso.segment_max(x, i, 6)[2:4], lambda x, i: looped_segments(np.max, -np.inf)(x, i, 6)[2:4], (numbers(7, 2), IDS)),
    "segment_min": Case(lambda iso, x, i: iso.segment_min(x, i, 6)[2:4], lambda x, i: looped_segments(np.min, np.inf)(x, i, 6)[2:4], (numbers(7, 2), IDS)),
    "segment_empty": Case(lambda iso, x, i: [iso.segment_max(x, i, 5), iso.segment_min(x, i, 5)], lambda x, i: [looped_segments(np.max, -np.inf)(x, i, 5), looped_segments(np.min, np.inf)(x, i, 5)], (np.array([1.0, 1.0, 1.0, np.inf, 0.1, 0.1, np.nan]), np.array([0, 0, 0, 1, 3, 3, 4])), ()),
    "segment_ints": Case(lambda iso, x, i: [iso.segment_sum(x, i, 3), iso.segment_max(x, i, 3)], lambda x, i: [looped_segments(np.sum, 0)(x, i, 3), looped_segments(np.max, np.iinfo(np.int64).min)(x, i, 3)], (INTS[:7], IDS), ()),
    "segment_softmax": Case(lambda iso, x, i: iso.segment_softmax(x, i, 4), lambda x, i: segment_softmax(x, i, 4), (numbers(7, 2), IDS)),
    **{f"at_drop_{h}": Case(lambda iso, x, i, v, h=h: getattr(iso.at(x)[i], h)(v, mode="drop"), lambda x, i, v, h=h: dropped(x, i, v, h), (M, ROWS, numbers(5, 5)), (0, 2)) for h in ("set", "add", "multiply", "min", "max")},
    "at_drop_number": Case(lambda iso, x: [iso.at(x)[7].add(1.0, mode="drop"), iso.at(x)[-1].add(1.0, mode="drop"), iso.at(x)[..., -6].set(1.0, mode="drop")], lambda x: [x, dropped(x, [-1], 1.0, "add"), x], (M,), ()),
    "at_drop_pairs": Case(lambda iso, x, i, j, v: iso.at(x)[i, j].add(v, mode="drop"), dropped_pairs, (M, ROWS, np.array([1, -5, 2, 7, 0]), V[:5]), (0, 3)),
    "at_drop_columns": Case(lambda iso, x, i, v: iso.at(x)[1:3, i].set(v, mode="drop"), lambda x, i, v: np.concatenate([x[:1], dropped(x[1:3].T, i, v, "set").T, x[3:]]), (M, np.array([1, 8, -2]), np.array(0.7)), (0, 2)),
    "searchsorted": Case(lambda iso, x, v: [iso.searchsorted(x, v), iso.searchsorted(x, v, side="right")], lambda x, v: [np.searchsorted(x, v), np.searchsorted(x, v, "right")], (np.array([0.0, 1.0, 1.0, 2.0, np.nan]), np.array([[1.0, -1.0], [np.nan, 3.0]])), ()),
    "searchsorted_rows": Case(lambda iso, x, v: [iso.searchsorted(x, v, s) for s in ("left", "right")], lambda x, v: [rows_searched(x, v, s) for s in ("left", "right")], (np.sort(INTS.reshape(3, 4)), np.array([[0, 5], [11, 4], [7, 12]])), ()),
    "searchsorted_empty": Case(lambda iso, x, v: iso.searchsorted(x, v), lambda x, v: np.searchsorted(x, v), (np.zeros(0), V), ()),
    "logical_right_shift": Case(lambda iso, x, n: [iso.logical_right_shift(x, 3), iso.logical_right_shift(x, n), iso.logical_right_shift(x, 40)], lambda x, n: [(x.view(np.uint32) >> 3).view(np.int32), (x.view(np.uint32) >> n.view(np.uint32)).view(np.int32), 0 * x], (np.array([-1, 5, -(2**31), 2**31 - 1, 0], np.int32), np.array([0, 1, 31, 30, 7], np.int32)), ()),
}
# fmt: on
