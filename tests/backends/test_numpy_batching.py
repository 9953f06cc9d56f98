"""Every rule of the NumPy tape under `vmap`: all examples at once give what each gives alone.

The oracle is a Python loop over the examples, without `vmap`. Each case runs mapped in all
arguments and in one of them, with its pullback inside of the map and around it, and in a map of
maps. The sums of a batch are added in another order, so 1e-9 of the largest number is allowed. The
ledgers say what runs row by row: a lost rule changes them.
"""

from functools import partial

import numpy as np
import numpy_linalg_cases
import numpy_rule_cases
import numpy_special_cases
import pytest

from isomorph.backends.numpy import backend as verbs
from isomorph.backends.numpy import mapped, mapping
from isomorph.backends.numpy.levels import BATCHED, TRACED
from isomorph.backends.numpy.tape import vjp

on_numpy = pytest.mark.parametrize("backend", ["numpy"], indirect=True)
CASES = {
    case[0]: case[1:]
    for module in (numpy_rule_cases, numpy_linalg_cases, numpy_special_cases)
    for topic in vars(module).values()
    if isinstance(topic, list) and isinstance(topic[0][0], str)
    for case in topic
}
SIZES = (1.0, 0.9, 1.05)  # of the examples
TEST = "a Python if, while, and, or of a mapped value, or iso.cond"
DATA = "a mapped value where NumPy needs plain data, as np.asarray does"
INDEX = "int(x), or a mapped value as an index of a plain array"
MASK = "x[mask] with a mapped mask, whose result differs in shape"

# What the cases run row by row: functions, or a reason why the whole function does.
LEAST_SQUARES = """polyfit|polyfit weights|lstsq real|lstsq vector real|lstsq complex
    |lstsq vector complex|lstsq rank one"""
ROW_BY_ROW = {
    "reshape A of a transpose": {"numpy.reshape"},
    "ravel K": {"numpy.ravel"},
    **{name: {"numpy.searchsorted"} for name in ("interp", "interp period")},
    **{name.strip(): {"numpy.lstsq", "solution"} for name in LEAST_SQUARES.split("|")},
    "pad by dict": {"numpy.pad"},
    "trim_zeros": {"numpy.trim_zeros", "numpy.argwhere", INDEX},
    "compress": {"numpy.compress"},
    "extract": {"numpy.extract"},
    "piecewise": {"numpy.piecewise", DATA},
    "bincount": {"numpy.bincount"},
    "quantile q": {"numpy.quantile"},
    "unique": {"numpy.unique", "numpy.unique_all", "numpy.unique_values"},
    "sets": {
        "numpy.intersect1d", "numpy.setdiff1d", "numpy.setxor1d", "numpy.union1d", "numpy.unique",
        MASK,
    },
    "diff": {"numpy.diff"},
    "real_if_close": {"numpy.real_if_close"},
    "roots": {"numpy.roots", "numpy.flatnonzero", TEST},
}  # fmt: skip

# The functions of the tape's table that no example shares with the others.
WITHOUT_RULE = """allclose argwhere array_equal array_equiv bincount compress extract
    flatnonzero histogram intersect1d ix_ lexsort lstsq may_share_memory min_scalar_type nonzero
    piecewise ravel_multi_index real_if_close roots save savetxt savez savez_compressed setdiff1d
    setxor1d shares_memory solution trim_zeros union1d unique unique_all unique_counts
    unique_inverse unique_values unravel_index"""


def outputs(func, arrays):
    y = func(*arrays)
    return tuple(y) if isinstance(y, (tuple, list)) else (y,)


def noise(y, key):
    """A cotangent like `y`, the same for every example."""
    rng = np.random.default_rng(key)
    v = rng.standard_normal(y.shape)
    v = v + 1j * rng.standard_normal(y.shape) if y.dtype.kind == "c" else v
    return np.asarray(v).astype(y.dtype)


def with_pullback(func, arrays):
    outs, pullback, _ = vjp(lambda *xs: (outputs(func, xs), ()), arrays)
    return (*outs, *pullback([noise(y, i) for i, y in enumerate(outs)]))


def compare(found, rows):
    for got, *each in zip(found, *rows, strict=True):
        wanted = np.stack(each)
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
        sizes = np.abs(wanted[np.isfinite(wanted)])
        scale = max(sizes.max(initial=0), 1e-2) if wanted.dtype.kind in "fc" else 0
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-9 * scale)


def check(run, batch, reasons):
    """Compare all examples at once with a loop; note what runs row by row."""
    mapped.NOTED.clear()
    try:
        found = mapping.batch(run, tuple(batch))
    except mapped.Unbatchable as stop:
        reasons.add(stop.what)
    else:
        compare(found, [run(*row) for row in zip(*batch, strict=True)])
    reasons |= mapped.NOTED


@on_numpy
@pytest.mark.parametrize("name", CASES)
def test_all_examples_at_once_are_each_alone(backend, name):
    func, *arrays = CASES[name]
    batch = [np.stack([x * size for size in SIZES]) for x in arrays]
    both = lambda *xs: with_pullback(func, xs)
    reasons = set()
    check(lambda *xs: outputs(func, xs), batch, reasons)
    check(both, batch, reasons)
    for i in range(len(arrays) if len(arrays) > 1 else 0):
        beside = lambda x, i=i: both(*arrays[:i], x, *arrays[i + 1 :])
        check(beside, [batch[i]], reasons)
    check_second(both, batch, reasons)
    check_twice(both, batch, reasons)
    assert reasons == ROW_BY_ROW.get(name, set())


def check_second(both, batch, reasons):
    """The pullback of the map of a pullback."""
    around = lambda run: with_pullback(run, tuple(batch))
    mapped.NOTED.clear()
    try:
        found = around(lambda *xs: mapping.batch(both, xs))
    except mapped.Unbatchable as stop:
        reasons.add(stop.what)
    else:
        compare([y[None] for y in found], [around(lambda *xs: looped(both, xs))])
    reasons |= mapped.NOTED


def looped(func, rows):
    """The same as a map, by a loop."""
    each = [func(*(x[i] for x in rows)) for i in range(len(rows[0]))]
    return tuple(np.stack(part) for part in zip(*each, strict=True))


def check_twice(both, batch, reasons):
    """A map of maps."""
    twice = tuple(np.stack([b, b[::-1]]) for b in batch)
    mapped.NOTED.clear()
    try:
        found = mapping.batch(lambda *xs: mapping.batch(both, xs), twice)
    except mapped.Unbatchable as stop:
        reasons.add(stop.what)
    else:
        compare(found, [looped(both, [t[i] for t in twice]) for i in range(2)])
    reasons |= mapped.NOTED


def test_the_ledger_names_cases():
    assert set(ROW_BY_ROW) <= set(CASES)


def test_functions_without_a_rule_are_known():
    """Those of NumPy. Most of isomorph.scipy, which may be imported already, runs row by row."""
    alone = set()
    for func, body in TRACED.items():
        if str(getattr(func, "__module__", "")).startswith("isomorph.scipy"):
            continue
        rule = BATCHED.get(func)
        shared = isinstance(func, np.ufunc) or not isinstance(body, partial)
        if rule is mapped.rowwise or (rule is None and not shared):
            alone.add(func.__name__)
    assert sorted(alone) == sorted(WITHOUT_RULE.split())


KINDS = {
    "sum": lambda x: np.sum(x, axis=-1), "mean": lambda x: np.mean(x), "max": lambda x: np.max(x),
    "argmax": lambda x: np.argmax(x), "sort": lambda x: np.sort(x), "square": lambda x: x * x + 1,
    "halves": lambda x: x / 2, "power": lambda x: x**2, "compared": lambda x: x > x[..., :1],
    "joined": lambda x: np.concatenate([x, np.ones_like(x)]), "cumsum": lambda x: np.cumsum(x),
    "matmul": lambda x: x @ x.T, "where": lambda x: np.where(x > 0, x, 0), "index": lambda x: x[0],
    "clip": lambda x: np.clip(x, 0, 1), "any": lambda x: np.any(x), "number": lambda x: np.size(x),
    "floor": lambda x: x // 2, "mod": lambda x: x % 3, "count": lambda x: np.count_nonzero(x),
}  # fmt: skip


@on_numpy
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8"])
@pytest.mark.parametrize("name", KINDS)
def test_dtypes_are_those_of_one_example(backend, name, dtype):
    x = (np.arange(24).reshape(3, 2, 4) * 7 % 11).astype(dtype)
    func = lambda x: (verbs.asarray(KINDS[name](x)),)
    found, wanted = mapping.batch(func, (x,)), looped(func, (x,))
    assert found[0].dtype == wanted[0].dtype
    np.testing.assert_allclose(*found, *wanted, rtol=1e-6)


@on_numpy
@pytest.mark.parametrize("name", ["compared", "where", "any", "count", "joined", "index", "sum"])
def test_truths_and_complex_numbers(backend, name):
    x = np.arange(24).reshape(3, 2, 4) % 3
    func = lambda x: (verbs.asarray(KINDS[name](x)),)
    for values in (x > 0, x - 1j * x[:, ::-1] if name not in ("compared", "where") else x > 1):
        found, wanted = mapping.batch(func, (values,)), looped(func, (values,))
        assert found[0].dtype == wanted[0].dtype
        np.testing.assert_allclose(*found, *wanted, rtol=1e-14)
