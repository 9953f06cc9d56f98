"""Functions of arrays that the namespace lacks, each by NumPy, SciPy or a loop."""

import numpy as np
from scipy.spatial import distance

import isomorph as iso

from .activations import softmax
from .entries import Function, R, V, const, each, ints, named

IDS = [0, 2, 0, 7]
SOME = {"large": "its indices are some", "empty": "its indices are some"}
PLACES = [3, 1, 3]
NONE = {"empty": "there must be a number"}
HOLES = np.isin(np.arange(24).reshape(R), (3, 17))
HOLED = {"large": "holes at two places", "empty": "holes at two places"}


def holed(x):
    """`x` with NaN at two places, from which nothing may come."""
    xp = iso.namespace(x)
    return xp.where(xp.asarray(HOLES), xp.full_like(x, float("nan")), x)


def segments(reduce, x):
    found = [x[np.equal(IDS, i)] for i in (0, 2)]
    return np.stack([reduce(part, axis=0) for part in found])


def in_segments(name):
    """The segments 0 and 2; there is nothing in segment 1, and the id 7 is dropped."""

    def call(iso, x):
        y = getattr(iso, name)(x, ints(x, IDS), 3)
        return iso.namespace(x).stack([y[0, ...], y[2, ...]])

    return call


def softmax_in_segments(x):
    one = softmax(x[[0, 2]], axis=0)
    return np.stack([one[0], np.ones(6), one[1], np.zeros(6)])


def updated(x, where, values, how):
    y = x.copy()
    getattr(np, how).at(y, where, values)
    return y


def kept(x, v):
    y = x.copy()
    y[1:4] = v
    return y


def nan_function(name, ours=None, **kw):
    wanted = lambda x: getattr(np, name)(np.where(HOLES, np.nan, x), **kw)
    return Function(lambda iso, x: getattr(iso, name)(holed(x), **(ours or kw)), (R,), wanted,
                    but=HOLED)  # fmt: skip


def arg_function(name):
    wanted = lambda x: getattr(np, name)(np.where(HOLES, np.nan, x), axis=1)
    return Function(lambda iso, x: getattr(iso, name)(holed(x), axis=1), (R,), wanted, order=0,
                    but=HOLED)  # fmt: skip


FUNCTIONS = {
    "diag": Function(lambda iso, x: iso.diag(x, 1), ((6,),), lambda x: np.diag(x, 1)),
    "diag, of a matrix": Function(named("diag"), (R,), np.diag),
    "median": Function(lambda iso, x: iso.median(x, axis=1), (R,), lambda x: np.median(x, axis=1)),
    "quantile": Function(lambda iso, x: iso.quantile(x, [0.3, 0.8], axis=0), (R,),
                         lambda x: np.quantile(x, [0.3, 0.8], axis=0), but=NONE),
    "nanquantile": Function(lambda iso, x: iso.nanquantile(holed(x), 0.3, axis=0), (R,),
                            lambda x: np.nanquantile(np.where(HOLES, np.nan, x), 0.3, axis=0),
                            but=HOLED),
    "nanmax": nan_function("nanmax", axis=0),
    "nanmean": nan_function("nanmean", axis=1),
    "nanmedian": nan_function("nanmedian"),
    "nanmin": nan_function("nanmin", axis=1),
    "nanprod": nan_function("nanprod", axis=1),
    "nanstd": nan_function("nanstd", axis=1),
    "nansum": nan_function("nansum", axis=0),
    "nanvar": nan_function("nanvar", {"axis": 1, "correction": 1}, axis=1, ddof=1),
    "nanargmax": arg_function("nanargmax"),
    "nanargmin": arg_function("nanargmin"),
    "nan_to_num": Function(lambda iso, x: iso.nan_to_num(holed(x), nan=7.0), (R,),
                           lambda x: np.where(HOLES, 7.0, x), but=HOLED),
    "isclose": each(lambda iso, x: iso.isclose(x, x * 1.00002, atol=1e-5),
                    lambda x: np.isclose(x, x * 1.00002, atol=1e-5), order=0,
                    but={"float32": "close to the limit", "half": "close to the limit"}),
    "allclose": each(lambda iso, x: iso.allclose(x, x * 1.1), lambda x: np.allclose(x, x * 1.1),
                     order=0),
    "interp": Function(lambda iso, x, y: iso.interp(x, const(x, [-1.0, 0.02, 0.31, 1.5]), y),
                       (V, (4,)), lambda x, y: np.interp(x, [-1.0, 0.02, 0.31, 1.5], y),
                       but={"large": "four knots", "empty": "four knots"}),
    "bincount": Function(lambda iso, w: iso.bincount(ints(w, IDS), w, length=3), ((4,),),
                         lambda w: np.array([w[0] + w[2], 0, w[1]]), but=SOME),
    "histogram": Function(
        lambda iso, w: list(iso.histogram(const(w, [0.1, 0.7, 0.2, 0.9]), 3, weights=w)), ((4,),),
        lambda w: list(np.histogram([0.1, 0.7, 0.2, 0.9], 3, weights=w)), but=SOME),
    "one_hot": Function(lambda iso, x: iso.one_hot(ints(x, IDS), 6, dtype=x.dtype) * x, (R,),
                        lambda x: np.equal.outer(IDS, np.arange(6)) * x, but=SOME),
    "logical_right_shift": Function(
        lambda iso, x: iso.logical_right_shift(ints(x, [-1, 5, 1 << 40]), 3), (R,),
        lambda x: np.array([(2**64 - 1) >> 3, 0, 1 << 37]), order=0,
        but={"float32": "the width of the integers decides"}),
    "searchsorted": Function(lambda iso, x, y: iso.searchsorted(iso.namespace(x).sort(x), y),
                             (V, V), lambda x, y: np.searchsorted(np.sort(x), y), order=0),
    "top_k": Function(lambda iso, x: list(iso.top_k(x, 2)), (R,),
                      lambda x: [-np.sort(-x)[:, :2], np.argsort(-x)[:, :2]]),
    "cumulative_max": Function(lambda iso, x: iso.cumulative_max(x, axis=1), (R,),
                               lambda x: np.maximum.accumulate(x, axis=1)),
    "cumulative_min": Function(lambda iso, x: iso.cumulative_min(x, axis=1), (R,),
                               lambda x: np.minimum.accumulate(x, axis=1)),
    "convolve": Function(named("convolve"), (V, (6,)), np.convolve, but=NONE),
    "convolve, same": Function(lambda iso, x, y: iso.convolve(x, y, "same"), (V, (6,)),
                               lambda x, y: np.convolve(x, y, "same"), but=NONE),
    "correlate": Function(named("correlate"), (V, (6,)), np.correlate, but=NONE),
    "trapezoid": Function(named("trapezoid"), (R, (6,)), np.trapezoid),
    "cdist": Function(named("cdist"), (R, (2, 6)), distance.cdist, (None, (-3.0, -1.0))),
    "segment_max": Function(in_segments("segment_max"), (R,), lambda x: segments(np.max, x),
                            but=SOME),
    "segment_mean": Function(in_segments("segment_mean"), (R,), lambda x: segments(np.mean, x),
                             but=SOME),
    "segment_min": Function(in_segments("segment_min"), (R,), lambda x: segments(np.min, x),
                            but=SOME),
    "segment_softmax": Function(lambda iso, x: iso.segment_softmax(x, ints(x, IDS), 3), (R,),
                                softmax_in_segments, but=SOME),
    "segment_sum": Function(in_segments("segment_sum"), (R,), lambda x: segments(np.sum, x),
                            but=SOME),
    "at": Function(lambda iso, x: iso.at(x)[ints(x, PLACES)].get(), (R,), lambda x: x[PLACES],
                   but=SOME),
    "at, set": Function(lambda iso, x, v: iso.at(x)[1:4].set(v), (R, (3, 6)), kept, but=SOME),
    "at, add": Function(lambda iso, x, v: iso.at(x)[ints(x, PLACES)].add(v), (R, (3, 6)),
                        lambda x, v: updated(x, PLACES, v, "add"), but=SOME),
    "at, multiply": Function(lambda iso, x, v: iso.at(x)[ints(x, [3, 1, 2])].multiply(v),
                             (R, (3, 6)), lambda x, v: updated(x, [3, 1, 2], v, "multiply"),
                             but=SOME),
    "at, min": Function(lambda iso, x, v: iso.at(x)[:3].min(v), (R, (3, 6)),
                        lambda x, v: updated(x, [0, 1, 2], v, "minimum"), but=SOME),
    "at, max": Function(lambda iso, x, v: iso.at(x)[:3].max(v), (R, (3, 6)),
                        lambda x, v: updated(x, [0, 1, 2], v, "maximum"), but=SOME),
    "at, drop": Function(lambda iso, x, v: iso.at(x)[ints(x, [3, 99, 3])].add(v, mode="drop"),
                         (R, (3, 6)), lambda x, v: updated(x, [3, 3], v[[0, 2]], "add"), but=SOME),
    "span": Function(
        lambda iso, x, v: iso.at(x)[iso.span(ints(x, [1, 2])[0], 3)].multiply(v), (R, (3, 6)),
        lambda x, v: updated(x, [1, 2, 3], v, "multiply"), but=SOME),
}  # fmt: skip
