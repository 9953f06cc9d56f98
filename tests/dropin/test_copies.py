"""Objects of `isomorph.scipy` are copied and pickled like SciPy's; what NumPy makes of traced
values keeps the gradient or is refused.
"""

import copy
import itertools
import pickle

import numpy as np
import pytest
import scipy.interpolate
import scipy.stats

import isomorph as iso
import isomorph.numpy as inp
import isomorph.scipy as isp

pytestmark = pytest.mark.parametrize("backend", ["numpy"], indirect=True)

KNOTS, VALUES, PLACES = np.arange(5.0), np.cos(np.arange(5.0)), np.array([0.2, 1.9, 3.3])
COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
}
OBJECTS = {
    "CubicSpline": (lambda: isp.interpolate.CubicSpline(KNOTS, VALUES), lambda s, x: s(x)),
    "PchipInterpolator": (
        lambda: isp.interpolate.PchipInterpolator(KNOTS, VALUES), lambda s, x: s(x)),
    "interp1d": (lambda: isp.interpolate.interp1d(KNOTS, VALUES), lambda s, x: s(x)),
    "interp1d, cubic": (
        lambda: isp.interpolate.interp1d(KNOTS, VALUES, "cubic"), lambda s, x: s(x)),
    "norm": (lambda: isp.stats.norm, lambda d, x: d.logcdf(x, 0.3, 1.2)),
    "poisson": (lambda: isp.stats.poisson, lambda d, x: d.logpmf([1, 2, 3], x)),
    "frozen gamma": (lambda: isp.stats.gamma(1.7, scale=1.2), lambda d, x: d.logsf(x)),
    "multivariate_normal": (
        lambda: isp.stats.multivariate_normal, lambda d, x: d.logpdf(x, np.ones(3), np.eye(3))),
    "frozen multivariate_normal": (
        lambda: isp.stats.multivariate_normal(np.ones(3), np.eye(3)), lambda d, x: d.logpdf(x)),
}  # fmt: skip


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("name", OBJECTS)
def test_a_copy_computes_the_same(backend, name, how):
    make, call = OBJECTS[name]
    made = make()
    copied = COPIES[how](made)
    assert type(copied) is type(made)
    np.testing.assert_array_equal(call(copied, PLACES), call(made, PLACES))
    slope = lambda of: iso.grad(lambda x: np.sum(call(of, x)))(PLACES)
    np.testing.assert_array_equal(slope(copied), slope(made))
    assert np.all(np.isfinite(slope(made)))
    assert np.any(slope(made) != 0)


def test_other_attributes_are_scipys(backend):
    spline = copy.deepcopy(isp.interpolate.CubicSpline(KNOTS, VALUES))
    np.testing.assert_array_equal(spline.c, scipy.interpolate.CubicSpline(KNOTS, VALUES).c)
    assert copy.copy(isp.stats.norm) is isp.stats.norm
    assert copy.copy(isp.stats.gamma(1.7)).mean() == scipy.stats.gamma(1.7).mean()
    for made in (spline, isp.stats.norm, isp.stats.norm(), isp.stats.multivariate_normal):
        with pytest.raises(AttributeError, match="no_such_name"):
            _ = made.no_such_name


X = np.array([1.5, 2.5, 3.7])
MADE = {
    "array": lambda x, dtype: inp.array(x, dtype=dtype),
    "array of a list": lambda x, dtype: inp.array([[x[0], 1], [2, x[1]]], dtype=dtype),
    "asarray": lambda x, dtype: inp.asarray([x[0], 1], dtype),
    "asanyarray": lambda x, dtype: inp.asanyarray(x, dtype),
    "ascontiguousarray": lambda x, dtype: inp.ascontiguousarray(x, dtype),
    "asfortranarray": lambda x, dtype: inp.asfortranarray(x, dtype),
    "asarray_chkfinite": lambda x, dtype: inp.asarray_chkfinite(x, dtype),
    "require": lambda x, dtype: inp.require(x, dtype),
    "full": lambda x, dtype: inp.full(3, x, dtype),
    "full_like": lambda x, dtype: inp.full_like(np.zeros(3, dtype), x[0]),
    "full_like of a traced value": lambda x, dtype: np.full_like(x, x[0], dtype),
    "fromiter": lambda x, dtype: inp.fromiter((v for v in x), dtype),
    "arange": lambda x, dtype: inp.arange(x[0], 9.0, 1.0, dtype=dtype),
    "concatenate": lambda x, dtype: np.concatenate([x, x], dtype=dtype, casting="unsafe"),
    "stack": lambda x, dtype: np.stack([x, x], dtype=dtype, casting="unsafe"),
    "hstack": lambda x, dtype: np.hstack([x, x], dtype=dtype, casting="unsafe"),
    "vstack": lambda x, dtype: np.vstack([x, x], dtype=dtype, casting="unsafe"),
    "linspace": lambda x, dtype: np.linspace(x[0], 9.0, 4, dtype=dtype),
    "logspace": lambda x, dtype: np.logspace(x[0], 2.0, 4, dtype=dtype),
    "geomspace": lambda x, dtype: np.geomspace(x[0], 9.0, 4, dtype=dtype),
    "cov": lambda x, dtype: np.cov(x, dtype=dtype),
    "einsum": lambda x, dtype: np.einsum("i,i", x, x, dtype=dtype),
    "add": lambda x, dtype: np.add(x, 1, dtype=dtype),
    "insert": lambda x, dtype: np.insert(np.zeros(2, dtype), 1, x[0]),
}


@pytest.mark.parametrize("name", MADE)
def test_a_dtype_without_a_gradient_is_refused(backend, name):
    make = MADE[name]
    for dtype in (int, bool, np.uint8):
        with pytest.raises(TypeError, match=r"floating-point dtype .* pass dtype=float, or"):
            iso.grad(lambda x, dtype=dtype: np.sum(make(x, dtype) * 1.0))(X)
    # and it has a gradient in one of floats
    assert np.any(iso.grad(lambda x: np.sum(make(x, float)))(X) != 0)


def test_a_cast_on_purpose_is_a_step(backend):
    """`astype` says so itself; its derivative is 0 wherever it has one, as on other frameworks."""
    found = iso.grad(lambda x: np.sum(x * x.astype(int)))(X)
    np.testing.assert_array_equal(found, [1, 2, 3])
    found = iso.grad(lambda x: np.sum(x * inp.array(iso.stop_gradient(x), dtype=int)))(X)
    np.testing.assert_array_equal(found, [1, 2, 3])


def test_fromiter_takes_as_many_as_it_needs(backend):
    assert inp.fromiter(itertools.count(), float, 3).tolist() == [0, 1, 2]
    found = iso.grad(lambda x: np.sum(inp.fromiter(itertools.repeat(x), float, 4)))(np.float64(2))
    assert found == 4
    with pytest.raises(ValueError, match="too short"):
        iso.grad(lambda x: np.sum(inp.fromiter(iter(x), float, 4)))(X)
