# ruff: noqa: E501
"""Functions of `isomorph.arrays` in half precision: what is counted, summed or has a place is not
rounded to it on the way. The results are those of NumPy in float64, rounded once.
"""

import numpy as np
import pytest
from frameworks import BACKENDS, ml_dtypes
from scipy.spatial import distance

import isomorph as iso
from isomorph.core.dispatch import load
from oracles import numpy_of

MANY = 5001  # float16 has no odd numbers above 2048, bfloat16 none above 256
MORE = 70_000  # more than the largest float16
DIGITS = {"float16": 11, "bfloat16": 8}

STEPS = np.arange(MANY) / 64
HOLES = np.where(np.arange(MANY) % 9 == 4, np.nan, STEPS)
FRACTIONS = np.array([0.25, 0.75, 0.5])
ONES, LONG = np.ones(MANY), np.ones(MORE)
RISING = np.repeat([1.0, 0.0, -1.0], [4000, 1000, 1])
METHODS = ("linear", "lower", "higher", "nearest", "midpoint")


def zeros_of(xp, n):
    return xp.zeros(n, dtype=xp.int32)


# a call with half precision, and the same in float64
CASES = {
    "median": (lambda xp, x: iso.median(x), np.median, (STEPS,)),
    "quantiles": (lambda xp, x: iso.quantile(x, [0.3, 0.9]), lambda x: np.quantile(x, [0.3, 0.9]), (STEPS,)),
    **{f"quantile of an array, {m}": (lambda xp, x, q, m=m: iso.quantile(x, q, method=m), lambda x, q, m=m: np.quantile(x, q, method=m), (STEPS, FRACTIONS)) for m in METHODS},
    **{f"nanquantile, {m}": (lambda xp, x, m=m: iso.nanquantile(x, [0.3, 0.9], method=m), lambda x, m=m: np.nanquantile(x, [0.3, 0.9], method=m), (HOLES,)) for m in METHODS},
    "nanmedian": (lambda xp, x: iso.nanmedian(x), np.nanmedian, (HOLES,)),
    "median of opposites": (lambda xp, x: iso.median(x), np.median, (np.array([-60000.0, 60000.0]),)),
    "nanmean": (lambda xp, x: iso.nanmean(x), np.nanmean, (LONG,)),
    "nanvar": (lambda xp, x: iso.nanvar(x, correction=1), lambda x: np.nanvar(x, ddof=1), (HOLES,)),
    "nanstd": (lambda xp, x: iso.nanstd(x), np.nanstd, (np.array([0.0, 800.0, np.nan]),)),
    "segment_sum": (lambda xp, x: iso.segment_sum(x, zeros_of(xp, MANY), 1), lambda x: x.sum()[None], (ONES,)),
    "segment_mean": (lambda xp, x: iso.segment_mean(x, zeros_of(xp, MORE), 1), lambda x: x.mean()[None], (LONG,)),
    "segment_softmax": (lambda xp, x: iso.segment_softmax(x, zeros_of(xp, MORE), 1)[:2], lambda x: x[:2] / len(x), (LONG,)),
    "segment_max": (lambda xp, x: iso.grad(lambda x: xp.sum(iso.segment_max(x, zeros_of(xp, MANY), 1)))(x), lambda x: (x == 1) / 4000, (RISING,)),
    "segment_min": (lambda xp, x: iso.grad(lambda x: xp.sum(iso.segment_min(-x, zeros_of(xp, MANY), 1)))(x), lambda x: -1.0 * (x == 1) / 4000, (RISING,)),
    "bincount": (lambda xp, w: iso.bincount(zeros_of(xp, MANY), w, length=1), lambda w: w.sum()[None], (ONES,)),
    "histogram": (lambda xp, x, w: iso.histogram(x, 2, weights=w)[0], lambda x, w: np.histogram(x, 2, weights=w)[0], (np.arange(MANY) % 3.0, ONES)),
    "histogram, density": (lambda xp, x: iso.histogram(x, 2, density=True)[0], lambda x: np.histogram(x, 2, density=True)[0], (np.arange(MORE) % 3.0,)),
    "histogram, weights and density": (lambda xp, x, w: iso.histogram(x, 2, weights=w, density=True)[0], lambda x, w: np.histogram(x, 2, weights=w, density=True)[0], (np.arange(MORE) % 3.0, LONG)),
    "histogram, edges": (lambda xp, x: iso.histogram(x, 3)[1], lambda x: np.histogram(x, 3)[1], (np.array([-60000.0, 60000.0]),)),
    "trapezoid": (lambda xp, y: iso.trapezoid(y, dx=0.25), lambda y: np.trapezoid(y, dx=0.25), (np.full(3, 50000.0),)),
    "cdist": (lambda xp, x, y: iso.cdist(x, y), distance.cdist, (np.array([[300.0, 400.0]]), np.zeros((2, 2)))),
    "cdist, minkowski": (lambda xp, x, y: iso.cdist(x, y, metric="minkowski", p=3.0), lambda x, y: distance.cdist(x, y, "minkowski", p=3.0), (np.array([[300.0, 400.0]]), np.zeros((2, 2)))),
    "interp": (lambda xp, x, xs, ys: iso.interp(x, xs, ys), np.interp, (np.array([0.25, 1.0]), np.array([0.0, 1.0, 2.0]), np.array([-60000.0, 60000.0, 0.0]))),
    "isclose": (lambda xp, x, y: iso.isclose(x, y, rtol=0.0, atol=1e-8), lambda x, y: np.isclose(x, y, rtol=0.0, atol=1e-8), (np.array([0.0, 1.0]), np.array([2.0**-20, 1.0]))),
}  # fmt: skip


def halves(backend, dtype):
    """An array of half precision, and its values in float64, which are those of NumPy's dtype."""
    xp = load(backend)
    own = np.float16 if dtype == "float16" else ml_dtypes.bfloat16

    def make(x):
        exact = np.asarray(x).astype(own)
        return xp.astype(xp.asarray(exact.astype(np.float32)), xp.narrow(dtype)), exact.astype(
            float
        )

    return make


@pytest.mark.parametrize(
    ("backend", "dtype"),
    [
        (name, dtype)
        for name in BACKENDS
        for dtype in DIGITS
        if (name, dtype) != ("numpy", "bfloat16")
    ],
    indirect=["backend"],
)
def test_counts_and_places_are_not_rounded(backend, xp, dtype):
    make = halves(backend, dtype)
    given = {name: [make(x) for x in case[2]] for name, case in CASES.items()}
    arrays = {name: [x for x, _ in pairs] for name, pairs in given.items()}

    def every(arrays):
        return {name: call(xp, *arrays[name]) for name, (call, _, _) in CASES.items()}

    # eager, JAX compiles every operation by itself
    results = (iso.jit(every) if backend == "jax" else every)(arrays)
    for name, (_, wanted, _) in CASES.items():
        found, sure = results[name], np.asarray(wanted(*(exact for _, exact in given[name])))
        if name != "isclose":
            assert found.dtype == arrays[name][0].dtype, name
            found = xp.astype(found, xp.float32)
        assert tuple(found.shape) == sure.shape, name
        # float32 on the way, then half a unit; in float16 1/4000 is not a normal number
        close = {"rtol": 2.0 ** -DIGITS[dtype] * 1.01, "atol": 2.0**-25}
        np.testing.assert_allclose(numpy_of(found).astype(float), sure, **close, err_msg=name)
