"""Each example of `examples.py` against plain NumPy: values, gradients and dtypes."""

import numpy as np
import pytest

import isomorph as iso
from examples import FUNCTIONS, LAYERS, PAIRS, parts
from oracles import central_gradient, compiled, kind_of, numpy_of

X = np.cos(1.7 * np.arange(24)) * 0.8 + 0.05  # all different


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function(backend, xp, name):
    call, shapes, wanted = FUNCTIONS[name]
    arrays = parts(np, X, shapes)
    given = [xp.asarray(x) for x in arrays]
    run = lambda *arrays: call(iso, *arrays)
    for way in (run, compiled(backend, run), iso.jit(run)):
        got = way(*given)
        assert kind_of(got) == backend
        np.testing.assert_allclose(numpy_of(got), wanted(*arrays), rtol=1e-12, atol=1e-12)
    weights = np.sin(np.arange(wanted(*arrays).size)).reshape(wanted(*arrays).shape)
    total = lambda *arrays: xp.sum(run(*arrays) * xp.asarray(weights))
    places = tuple(range(len(arrays)))
    gradients = iso.grad(total, argnums=places)(*given)
    for i in places:
        fixed = lambda x, i=i: np.sum(wanted(*arrays[:i], x, *arrays[i + 1 :]) * weights)
        close = {"rtol": 1e-6, "atol": 1e-8}
        np.testing.assert_allclose(
            numpy_of(gradients[i]), central_gradient(fixed, arrays[i]), **close
        )
    narrow = [xp.asarray(x.astype(np.float32)) for x in arrays]
    assert run(*narrow).dtype == xp.float32
    np.testing.assert_allclose(numpy_of(run(*narrow)), wanted(*arrays), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer(backend, xp, name):
    make, shape, wanted = LAYERS[name]
    with iso.use_backend(backend, dtype="float64"), iso.use_key(3):
        layer = make(iso)
    (x,) = parts(np, X, [shape])
    v = iso.to_numpy(layer.v)
    np.testing.assert_allclose(numpy_of(layer(xp.asarray(x))), wanted(v, x), rtol=1e-12, atol=1e-12)
    gradient = iso.grad(lambda x: xp.sum(xp.sin(layer(x))))(xp.asarray(x))
    by_differences = central_gradient(lambda x: np.sum(np.sin(wanted(v, x))), x)
    np.testing.assert_allclose(numpy_of(gradient), by_differences, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", PAIRS)
def test_an_optimizer(backend, xp, name):
    make, wanted = PAIRS[name]
    opt = make(iso.optimizers)
    w, *gradients = parts(np, X, [(2, 3)] * 6)
    v = {"w": xp.asarray(w)}
    state = opt.init(v)
    for g in gradients:
        updates, state = opt.update({"w": xp.asarray(g)}, state, v)
        v = iso.apply_updates(v, updates)
    np.testing.assert_allclose(numpy_of(v["w"]), wanted(w, gradients), rtol=1e-12, atol=1e-12)
