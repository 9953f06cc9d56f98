# ruff: noqa: E501
"""Edges of the functions of `isomorph.arrays`: ties, NaN and infinity, empty arrays, dtypes, and
errors. Expected values are stated, or NumPy's.
"""

import numpy as np
import pytest

import isomorph as iso
from oracles import central_gradient, numpy_of

NAN, INF = np.nan, np.inf

# call, argument, gradient of the sum of the result
GRADIENTS = {
    "nanmax shares": (lambda x: iso.nanmax(x), [1.0, NAN, 3.0, 3.0], [0, 0, 0.5, 0.5]),
    "nanmin of nothing": (lambda x: iso.nanmin(x), [NAN, NAN], [0, 0]),
    "nanmean of nothing": (lambda x: iso.nanmean(x), [NAN, NAN], [0, 0]),
    "nanvar of one": (lambda x: iso.nanvar(x, correction=1), [2.0, NAN], [0, 0]),
    "nanstd of equals": (lambda x: iso.nanstd(x), [2.0, NAN, 2.0], [0, 0, 0]),
    "nanprod": (lambda x: iso.nanprod(x), [2.0, NAN, 5.0], [5, 0, 2]),
    "nanmedian of nothing": (lambda x: iso.nanmedian(x), [NAN, NAN], [0, 0]),
    "median with NaN": (lambda x: iso.median(x), [1.0, NAN], [NAN, NAN]),
    "nan_to_num": (lambda x: iso.nan_to_num(x), [1.0, NAN, INF, -INF], [1, 0, 0, 0]),
    "cumulative_max, the first": (lambda x: iso.cumulative_max(x), [1.0, 3.0, 3.0, 2.0], [1, 3, 0, 0]),
    "cumulative_min, the first": (lambda x: iso.cumulative_min(x), [2.0, 2.0, 1.0], [2, 0, 1]),
    "top_k, the first": (lambda x: iso.top_k(x, 1).values, [1.0, 3.0, 3.0], [0, 1, 0]),
    "cdist at 0": (lambda x: iso.cdist(x[None, :], x[None, :]), [1.0, 3.0], [0, 0]),
    "cdist minkowski at 0": (lambda x: iso.cdist(x[None, :], x[None, :], metric="minkowski", p=1.5), [1.0, 3.0], [0, 0]),
    "cdist chebyshev at 0": (lambda x: iso.cdist(x[None, :], x[None, :], metric="chebyshev"), [1.0, 3.0], [0, 0]),
    "interp at the ends": (lambda x: iso.interp(x, iso.namespace(x).asarray(np.array([0.0, 1.0, 3.0])), iso.namespace(x).asarray(np.array([0.0, 2.0, 4.0]))), [-1.0, 0.0, 1.0, 3.0, 9.0], [0, 2, 1, 0, 0]),
}  # fmt: skip


@pytest.mark.takes("JAX compiles each operation")
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_at_edges(backend, xp, name):
    call, x, wanted = GRADIENTS[name]
    found = iso.grad(lambda x: xp.sum(call(x)))(xp.asarray(np.array(x)))
    np.testing.assert_allclose(numpy_of(found), wanted, rtol=1e-12)


def test_equal_elements_of_a_segment_share(backend, xp):
    ids = xp.asarray(np.array([0, 0, 0, 1, 1, 3]))
    x = xp.asarray(np.array([0.1, 0.1, 0.1, INF, 2.0, -1.0]))
    for func, sure in ((iso.segment_max, [1, 0]), (iso.segment_min, [0, 1])):
        values = numpy_of(func(x, ids, 3))
        assert values[0] == 0.1  # not a rounded mean of the three
        found = iso.grad(lambda x, func=func: xp.sum(func(x, ids, 3)[:2]))(x)
        np.testing.assert_allclose(numpy_of(found), [*[1 / 3] * 3, *sure, 0], rtol=1e-15)


VALUES = {
    "nansum of nothing": (lambda x: iso.nansum(x), [NAN, NAN], 0.0),
    "nanmax of nothing": (lambda x: iso.nanmax(x), [NAN, NAN], NAN),
    "nanmean of nothing": (lambda x: iso.nanmean(x), [NAN], NAN),
    "nanargmax of nothing": (lambda x: iso.nanargmax(x), [NAN, NAN], -1),
    "nanargmax of -inf": (lambda x: iso.nanargmax(x), [NAN, -INF], 1),
    "nanargmin of inf": (lambda x: iso.nanargmin(x), [NAN, INF, NAN], 1),
    "median with NaN": (lambda x: iso.median(x), [1.0, NAN, 2.0], NAN),
    "median of infinities": (lambda x: iso.median(x), [INF, INF, 1.0, 0.0, INF, INF], INF),
    "quantile to infinity": (lambda x: iso.quantile(x, [0.0, 0.25, 0.5, 0.75]), [-INF, 1.0, 2.0], [-INF, -INF, 1.0, 1.5]),
    "quantile out of range": (lambda x: iso.quantile(x, x), [0.5, 1.0, 1.5], [0.75 + 0.25, 1.5, NAN]),
    "top_k with NaN": (lambda x: iso.top_k(x, 2).indices, [1.0, NAN, 3.0], [1, 2]),
    "interp of NaN": (lambda x: iso.interp(x, x[:1], x[:1]), [1.0, NAN], [1.0, NAN]),
    "bincount of nothing": (lambda x: iso.bincount(iso.namespace(x).astype(x, iso.namespace(x).int32), minlength=2), [], [0, 0]),
    "histogram of nothing": (lambda x: iso.histogram(x, 2)[1], [], [0.0, 0.5, 1.0]),
    "histogram with NaN": (lambda x: iso.histogram(x, 2)[0], [1.0, NAN], [0, 0]),
    "cumulative_max of nothing": (lambda x: iso.cumulative_max(x), [], []),
    "diag of nothing": (lambda x: iso.diag(x), [], np.zeros((0, 0))),
    "trapezoid of one": (lambda x: iso.trapezoid(x), [5.0], 0.0),
    "cdist with NaN": (lambda x: iso.cdist(x[:, None], x[:1, None]), [1.0, NAN], [[0.0], [NAN]]),
    "cdist without features": (lambda x: iso.namespace(x).stack([iso.cdist(x[:, None][:, :0], x[:, None][:, :0], metric=m) for m in ("euclidean", "chebyshev")]), [1.0], [[[0.0]], [[0.0]]]),
    "segment_sum of nothing": (lambda x: iso.segment_sum(x, iso.namespace(x).astype(x, iso.namespace(x).int64), 2), [], [0.0, 0.0]),
    "segment_softmax of nothing": (lambda x: iso.segment_softmax(x, iso.namespace(x).astype(x, iso.namespace(x).int64), 2), [], []),
    "nanvar of opposite infinities": (lambda x: iso.nanvar(x), [INF, -INF, 0.0], NAN),
    "quantile of a huge range": (lambda x: iso.quantile(x, 0.75), [-1.6e308, 1.6e308], 0.8e308),
    "histogram on edges": (lambda x: iso.histogram(x, 10, range=(0.0, 1.0))[0], np.arange(11) / 10, np.histogram(np.arange(11) / 10, 10, (0.0, 1.0))[0]),
    "searchsorted nothing": (lambda x: iso.searchsorted(x, x[:0]), [1.0], np.zeros(0, int)),
}  # fmt: skip


EMPTY = ("segment_softmax of nothing", "cumulative_max of nothing", "diag of nothing")
ALONE = pytest.mark.host_only("empty arrays need no memory", "torch")


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # inf - inf
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=ALONE) if n in EMPTY else n for n in VALUES]
)
def test_values_at_edges(backend, xp, name):
    call, x, wanted = VALUES[name]
    found = numpy_of(call(xp.asarray(np.array(x, float))))
    wanted = np.array(wanted)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-15)


def test_interpolation_at_infinity(backend, xp):
    """Outside of all knots the function is constant: its derivative there is 0, and those at other
    places are as without.
    """
    given = [np.array([INF, -INF, 0.5, 1.3]), np.array([0.0, 1.0, 3.0]), np.array([2.0, 4.0, -1.0])]
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    for sides in ({}, {"left": -7.0, "right": 8.0}):
        values = iso.interp(*map(xp.asarray, given), **sides)
        np.testing.assert_array_equal(numpy_of(values), np.interp(*given, **sides))
        total = lambda *args, sides=sides: xp.sum(iso.interp(*args, **sides) * xp.asarray(weights))
        found = iso.grad(total, (0, 1, 2))(*map(xp.asarray, given))
        assert numpy_of(found[0])[:2].tolist() == [0.0, 0.0]
        for place in range(3):

            def by(x, place=place, sides=sides):
                args = [*given[:place], x, *given[place + 1 :]]
                return float(np.sum(np.interp(*args, **sides) * weights))

            # infinity stays where it is in a central difference: 0
            wanted = central_gradient(by, given[place])
            np.testing.assert_allclose(numpy_of(found[place]), wanted, rtol=1e-7, atol=1e-8)


def test_interpolation_of_infinite_heights(backend, xp):
    given = (
        np.array([0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]),
        np.arange(4.0),
        np.array([2.0, 4.0, INF, INF]),
    )
    found = iso.interp(*map(xp.asarray, given))
    np.testing.assert_array_equal(numpy_of(found), np.interp(*given))
    assert numpy_of(found).tolist() == [2.0, 3.0, 4.0, INF, INF, INF, INF]
    nowhere = iso.interp(xp.asarray(np.array([NAN])), *map(xp.asarray, given[1:]))
    assert np.isnan(numpy_of(nowhere)).all()


def test_a_number_may_come_first(backend, xp):
    shifts = xp.asarray(np.array([1, 2, 31, 40, -1], np.int32))
    found = [iso.logical_right_shift(x, shifts) for x in (8, -8)]
    wanted = [[4, 2, 0, 0, 0], [2**31 - 4, 2**30 - 2, 1, 0, 0]]
    assert [numpy_of(x).tolist() for x in found] == wanted
    assert all(x.dtype == xp.int32 for x in found)
    assert numpy_of(iso.isclose(2.0, xp.asarray(np.array([2.0, 3.0])))).tolist() == [True, False]
    assert bool(iso.allclose(2, xp.asarray(np.array([2, 2]))))
    xs, ys = np.array([0.0, 1.0, 2.0]), np.array([2.0, 4.0, 8.0])
    for x in (0.25, 1, -3):
        found = iso.interp(x, xp.asarray(xs), xp.asarray(ys))
        assert found.dtype == xp.float64
        np.testing.assert_allclose(numpy_of(found), np.interp(x, xs, ys), rtol=1e-15)
    with pytest.raises(TypeError, match=r"logical_right_shift: needed integers, got 8\.5"):
        iso.logical_right_shift(8.5, shifts)
    with pytest.raises(ValueError, match="logical_right_shift: needed an integer of int8, got 300"):
        iso.logical_right_shift(300, xp.asarray(np.array([1], np.int8)))
    x, ids = xp.asarray(np.ones(2)), xp.asarray(np.array([0, 1]))
    for call, name in {
        lambda: iso.searchsorted(1.0, x): "searchsorted",
        lambda: iso.convolve(1.0, x): "convolve",
        lambda: iso.correlate(1.0, x): "correlate",
        lambda: iso.cdist(1.0, x[None, :]): "cdist",
        lambda: iso.trapezoid(1.0, x): "trapezoid",
        lambda: iso.segment_sum(1.0, ids, 1): "segment_sum",
        lambda: iso.histogram(1.0, x): "histogram",
        lambda: iso.quantile(1.0, x): "quantile",
        lambda: iso.interp(x, 1.0, x): "interp",
    }.items():
        with pytest.raises(TypeError, match=f"{name}: needed an array as .*, got float"):
            call()


def test_integrals_of_two_dtypes(backend, xp):
    """The dtype is that of both together, as of their product."""
    y, x = np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 3.0])
    for one, other in ((np.float64, np.float32), (np.float32, np.float64), (np.int32, np.float32)):
        values, places = xp.asarray(y.astype(one)), xp.asarray(x.astype(other))
        found = iso.trapezoid(values, places)
        floats = (
            values
            if one != np.int32
            else xp.astype(values, xp.__array_namespace_info__().default_dtypes()["real floating"])
        )
        assert found.dtype == xp.result_type(floats, places)
        assert float(found) == np.trapezoid(y, x)
    for dx in (2, 2.0, xp.asarray(np.array(2.0, np.float32))):
        found = iso.trapezoid(xp.asarray(y.astype(np.float32)), dx=dx)
        assert (found.dtype, float(found)) == (xp.float32, 8.0)


def test_float32_stays_float32(backend, xp):
    x = xp.asarray(np.array([[1.0, 2.0, 4.0], [3.0, 0.5, 9.0]], np.float32))
    ids = xp.asarray(np.array([0, 1]))
    found = {
        "median": iso.median(x), "quantile": iso.quantile(x, [0.5, 0.1], axis=1),
        "nanquantile": iso.nanquantile(x, 0.5), "nanmean": iso.nanmean(x), "nanstd": iso.nanstd(x),
        "nansum": iso.nansum(x), "interp": iso.interp(x, x[0], x[1]), "diag": iso.diag(x[0]),
        "trapezoid": iso.trapezoid(x, dx=0.5), "convolve": iso.convolve(x[0], x[1]),
        "cdist": iso.cdist(x, x), "segment_mean": iso.segment_mean(x, ids, 2),
        "segment_softmax": iso.segment_softmax(x, ids, 2), "segment_max": iso.segment_max(x, ids, 3),
        "bincount": iso.bincount(ids, x[:, 0], length=2), "edges": iso.histogram(x, 2)[1],
        "density": iso.histogram(x, 2, density=True)[0], "cumulative_max": iso.cumulative_max(x, axis=1),
        "top_k": iso.top_k(x, 1).values, "at": iso.at(x)[ids].add(1.0, mode="drop"),
        "nan_to_num": iso.nan_to_num(x), "one_hot": iso.one_hot(ids, 2),
    }  # fmt: skip
    assert {name: y.dtype for name, y in found.items() if y.dtype != xp.float32} == {}
    wide = {"rtol": 1e-6}
    np.testing.assert_allclose(
        numpy_of(found["quantile"]), np.quantile(numpy_of(x), [0.5, 0.1], axis=1), **wide
    )
    np.testing.assert_allclose(numpy_of(found["convolve"]), np.convolve(*numpy_of(x)), **wide)


def test_the_length_of_a_count(backend, xp):
    x = xp.asarray(np.array([1, 4, 1]))
    assert numpy_of(iso.bincount(x)).tolist() == [0, 2, 0, 0, 1]
    assert numpy_of(iso.bincount(x, minlength=7)).tolist() == [0, 2, 0, 0, 1, 0, 0]
    assert numpy_of(iso.bincount(x, length=2)).tolist() == [0, 2]
    with pytest.raises(ValueError, match="bincount: needed integers of at least 0, got -3"):
        iso.bincount(xp.asarray(np.array([-3, 1])))
    if backend != "numpy":
        with pytest.raises(TypeError, match="bincount: needed length="):
            iso.jit(lambda x: iso.bincount(x))(x)


def test_narrow_integers_as_indices_and_bits(backend, xp):
    x, where = xp.asarray(np.zeros(300)), xp.asarray(np.array([255, 7], np.uint8))
    found = numpy_of(iso.at(x)[where].set(1.0, mode="drop"))
    assert found.nonzero()[0].tolist() == [7, 255]
    for dtype in (np.int8, np.int16, np.int64):
        bits = np.iinfo(dtype).bits
        values = np.array([-1, np.iinfo(dtype).min, 5], dtype)
        own = np.dtype(f"uint{bits}")
        found = numpy_of(iso.logical_right_shift(xp.asarray(values), 2))
        np.testing.assert_array_equal(found, (values.view(own) >> own.type(2)).view(dtype))
        assert found.dtype == dtype


@pytest.mark.takes("JAX compiles each operation")
def test_lists_and_numbers_of_places_are_dropped_too(backend, xp):
    x = xp.asarray(np.arange(3.0))
    assert numpy_of(iso.at(x)[[0, 5]].set(9.0, mode="drop")).tolist() == [9.0, 1.0, 2.0]
    assert numpy_of(iso.at(x)[xp.asarray(np.array(5))].add(9.0, mode="drop")).tolist() == [0, 1, 2]
    assert numpy_of(iso.at(x)[1:].add(1.0, mode="drop")).tolist() == [0, 2, 3]
    mask = xp.asarray(np.array([True, False, True]))
    for chosen in (mask, [True, False, True], [np.True_, np.False_, np.True_]):
        for mode in (None, "drop"):
            assert numpy_of(iso.at(x)[chosen].set(7.0, mode=mode)).tolist() == [7, 1, 7]
            assert numpy_of(iso.at(x)[chosen].add(1.0, mode=mode)).tolist() == [1, 1, 3]
        assert numpy_of(iso.at(x)[chosen].get()).tolist() == [0, 2]
    both, rows = (
        xp.asarray(np.arange(6.0).reshape(2, 3)),
        [[True, False, False], [False, True, True]],
    )
    for mode in (None, "drop"):
        assert numpy_of(iso.at(both)[rows].set(9.0, mode=mode)).tolist() == [[9, 1, 2], [3, 9, 9]]
        assert numpy_of(iso.at(both)[[False, True], 1:].add(1.0, mode=mode)).tolist() == [
            [0, 1, 2],
            [3, 5, 6],
        ]
    with pytest.raises(IndexError, match="needed integers or booleans in a list, got float"):
        iso.at(x)[[0.5]].set(7.0, mode="drop")
    with pytest.raises(ValueError, match="needed mode None or 'drop', got 'clip'"):
        iso.at(x)[0].add(1.0, mode="clip")


def test_messages(backend, xp):
    x, ids = xp.asarray(np.ones((2, 3))), xp.asarray(np.array([0, 1]))
    for call, words in {
        lambda: iso.quantile(x, 1.5): "quantile: needed q from 0 to 1, got 1.5",
        lambda: iso.quantile(x, 0.5, method="mean"): "quantile: needed method as one of linear",
        lambda: iso.median(x, axis=5): r"median: needed an axis of shape \(2, 3\), got 5",
        lambda: iso.median(x[:0, :]): "median: needed at least one element",
        lambda: iso.nanmax(x[:0, :]): "nanmax: needed at least one element",
        lambda: iso.diag(x[None, ...]): "diag: needed a vector or a matrix",
        lambda: iso.top_k(x, 4): "top_k: needed at most 3 elements of axis -1, got k = 4",
        lambda: iso.cumulative_max(x): "cumulative_max: needed an axis for shape",
        lambda: iso.interp(x, x[0], x[1][:2]): "interp: needed vectors xp and fp",
        lambda: iso.convolve(x, x): "convolve: needed vectors of at least 1",
        lambda: iso.convolve(x[0], x[1], "all"): "convolve: needed mode as one of full",
        lambda: iso.cdist(x, x[:, :2]): "cdist: needed rows of the same length",
        lambda: iso.cdist(x, x, metric="cosine"): "cdist: needed metric as one of euclidean",
        lambda: iso.cdist(x, x, metric="minkowski", p=0.5): "cdist: needed p as a number",
        lambda: iso.segment_sum(x, ids[:1], 2): "segment_sum: needed a number for each row",
        lambda: iso.segment_sum(x, ids, -1): "segment_sum: needed n as an integer of at least 0",
        lambda: iso.searchsorted(x, x[0]): "searchsorted: needed sorted rows",
        lambda: iso.trapezoid(x, ids): "trapezoid: needed a place for each value",
        lambda: iso.histogram(x, 2, weights=ids): "histogram: needed one weight for each element",
        lambda: iso.histogram(x, 0): "histogram: needed bins as an integer of at least 1, got 0",
    }.items():
        with pytest.raises(ValueError, match=words):
            call()
    for call, words in {
        lambda: iso.quantile(x, "half"): "quantile: needed q as a number",
        lambda: iso.segment_sum(x, x[:, 0], 2): "segment_sum: needed ids as an integer array, got",
        lambda: iso.one_hot(x, 2): "one_hot: needed x as an integer array, got float64",
        lambda: iso.logical_right_shift(x, 1): "logical_right_shift: needed integers, got float64",
        lambda: iso.median(x > 0): "median: needed real numbers, got bool; convert them",
        lambda: iso.diag(x, 1.5): "diag: needed k as an int, got 1.5",
    }.items():
        with pytest.raises(TypeError, match=words):
            call()
