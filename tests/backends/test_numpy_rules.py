"""Every derivative rule of the NumPy tape against central differences, first and second order, and
its dtype.

The oracle is L(x) = Re <c, f(x)> for a random c, along a random direction v, by the five-point
formula with step 1e-4. Its own error is about 1e-12 of the size of L (rounding over step). So 1e-6
leaves room for badly conditioned cases and still catches any wrong factor. For complex x the
direction is complex, and <g, v> = Re sum(conj(g) v), the convention here: the gradient of a real
function of x + iy is df/dx + i df/dy.
"""

import numpy as np
import numpy_linalg_cases
import numpy_rule_cases
import numpy_special_cases
import pytest

from isomorph.backends.numpy.tape import vjp

on_numpy = pytest.mark.parametrize("backend", ["numpy"], indirect=True)
CASES = [
    case
    for module in (numpy_rule_cases, numpy_linalg_cases, numpy_special_cases)
    for topic in vars(module).values()
    if isinstance(topic, list) and isinstance(topic[0][0], str)
    for case in topic
]
every_case = pytest.mark.parametrize(
    ("func", "arrays"), [pytest.param(f, xs, id=name.replace("-", "−")) for name, f, *xs in CASES]
)
RTOL = 1e-6


def outputs(func, arrays):
    y = func(*arrays)
    return tuple(y) if isinstance(y, (tuple, list)) else (y,)


def noise(x, key):
    rng = np.random.default_rng(key)
    v = rng.standard_normal(x.shape)
    return v + 1j * rng.standard_normal(x.shape) if x.dtype.kind == "c" else v


def along(gs, vs):
    """Re <g, v> over several arrays; NaN in the data counts as 0."""
    return sum(np.sum(np.real(np.conjugate(g) * v)) for g, v in zip(gs, vs))


def directional(func, arrays, vs, step=1e-4):
    """The derivative of each output of `func` along `vs`, by the five-point formula."""
    at = [func([x + k * step * v for x, v in zip(arrays, vs)]) for k in (-2, -1, 1, 2)]
    return [(a - 8 * b + 8 * c - d) / (12 * step) for a, b, c, d in zip(*at)]


def gradients(func, arrays, cs):
    outs, pullback, _ = vjp(lambda *xs: (outputs(func, xs), ()), arrays)
    return outs, pullback(cs)


def close(got, wanted, scale):
    assert abs(got - wanted) <= RTOL * max(abs(wanted), scale, 1e-3), (got, wanted)


def size(xs):
    return max((float(np.nanmax(np.abs(x), initial=0)) for x in xs), default=0)


@on_numpy
@every_case
def test_gradient_is_the_slope(backend, func, arrays):
    ys = outputs(func, arrays)
    cs = [noise(np.asarray(y), i) for i, y in enumerate(ys)]
    vs = [noise(x, 7 + i) for i, x in enumerate(arrays)]
    outs, gs = gradients(func, arrays, cs)
    for y, out in zip(ys, outs):
        # composed functions add in another order than NumPy
        np.testing.assert_allclose(out, y, rtol=1e-9, atol=1e-12)
        assert out.dtype == y.dtype
        assert out.shape == y.shape
    for g, x in zip(gs, arrays):
        assert g.shape == x.shape
        assert g.dtype == x.dtype
    slopes = directional(lambda xs: outputs(func, xs), arrays, vs)
    close(along(gs, vs), along(cs, slopes), size(gs))


@on_numpy
@every_case
def test_second_gradient_is_the_slope_of_the_first(backend, func, arrays):
    cs = [noise(np.asarray(y), i) for i, y in enumerate(outputs(func, arrays))]
    vs = [noise(x, 7 + i) for i, x in enumerate(arrays)]
    ws = [noise(x, 17 + i) for i, x in enumerate(arrays)]

    def first(xs):
        return gradients(func, xs, cs)[1]

    def slope(*xs):
        return [sum(np.sum(np.real(np.conjugate(v) * g)) for g, v in zip(first(xs), vs))], ()

    _, pullback, _ = vjp(slope, arrays)
    hessian_v = pullback([np.float64(1)])
    wanted = along(directional(first, arrays, ws), vs)
    assert all(g.dtype == x.dtype for g, x in zip(hessian_v, arrays))
    close(along(hessian_v, ws), wanted, size(hessian_v))


@on_numpy
@every_case
def test_single_precision_stays(backend, func, arrays):
    single = [x.astype(np.complex64 if x.dtype.kind == "c" else np.float32) for x in arrays]
    plain = outputs(func, single)
    outs, gs = gradients(
        func, single, [noise(np.asarray(y), i).astype(y.dtype) for i, y in enumerate(plain)]
    )
    assert [g.dtype for g in gs] == [x.dtype for x in single]
    assert [y.dtype for y in outs] == [y.dtype for y in plain]
