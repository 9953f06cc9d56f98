"""Details of the functions in test_gradients.py: what they return, refuse and sum up."""

from importlib import import_module

import numpy as np
import pytest
from frameworks import jax, tf, torch

import isomorph as iso
from oracles import numpy_of

rng = np.random.default_rng(1)
M = rng.standard_normal((4, 3))
X = rng.uniform(0.5, 1.5, 3)


def test_stop_gradient_gives_variables_back_as_fresh_ones(backend, xp):
    variable = {
        "numpy": lambda: np.array([1.0, 2.0]),
        "jax": lambda: jax.numpy.asarray([1.0, 2.0]),
        "tensorflow": lambda: tf.Variable([1.0, 2.0]),
        "torch": lambda: torch.nn.Parameter(torch.tensor([1.0, 2.0])),
    }[backend]()
    kept, plain = iso.stop_gradient(variable), iso.stop_gradient(variable, preserve_type=False)
    assert type(kept) is type(variable)
    np.testing.assert_array_equal(numpy_of(kept), [1.0, 2.0])
    np.testing.assert_array_equal(numpy_of(plain), [1.0, 2.0])
    if backend == "tensorflow":
        kept.assign([5.0, 5.0])
        assert not isinstance(plain, tf.Variable)
    elif backend == "torch":
        assert kept.requires_grad
        assert not plain.requires_grad
        with torch.no_grad():
            kept += 4
        leaf = torch.ones(2, requires_grad=True)
        assert iso.stop_gradient(leaf).requires_grad
        assert not iso.stop_gradient(leaf * 2).requires_grad
    np.testing.assert_array_equal(numpy_of(variable), [1.0, 2.0])


def test_execute_with_gradients_chooses_by_paths(backend, xp):
    xs = [xp.asarray(X), {"a": (xp.asarray(X + 1), xp.asarray(X + 2))}]
    f = lambda xs: {"u": xp.sum(xs[0] * xs[1]["a"][0]), "v": [xp.sum(xs[1]["a"][1] ** 2), xs[0]]}
    ret, grads = iso.execute_with_gradients(
        f, xs, xs_grad_idxs=[[0], [1, "a", 1]], ret_grad_idxs=[["u"], ["v", 0]]
    )
    np.testing.assert_array_equal(numpy_of(ret["v"][1]), X)
    assert sorted(grads) == ["u", "v/0"]
    np.testing.assert_allclose(numpy_of(grads["u"][0]), X + 1, rtol=1e-12)
    np.testing.assert_array_equal(numpy_of(grads["u"][1]), np.zeros(3))
    np.testing.assert_array_equal(numpy_of(grads["v/0"][0]), np.zeros(3))
    np.testing.assert_allclose(numpy_of(grads["v/0"][1]), 2 * (X + 2), rtol=1e-12)
    _, one = iso.execute_with_gradients(f, xs, xs_grad_idxs=[[1, "a"]], ret_grad_idxs=[["u"]])
    np.testing.assert_allclose(numpy_of(one[0]), X, rtol=1e-12)


def test_execute_with_gradients_sums_over_an_array_used_twice(backend, xp):
    x = xp.asarray(X)
    _, grads = iso.execute_with_gradients(lambda xs: xp.sum(3 * xs[0] + 5 * xs[1]), [x, x])
    for g in grads:
        np.testing.assert_allclose(numpy_of(g), 8 * np.ones(3), rtol=1e-12)


def test_execute_with_gradients_stays_differentiable_when_asked(backend, xp):
    def outer(x, retain):
        ret, g = iso.execute_with_gradients(lambda x: xp.sum(x**3), x, retain_grads=retain)
        return ret + xp.sum(g)

    x = xp.asarray(X)
    kept = iso.grad(lambda x: outer(x, True))(x)
    np.testing.assert_allclose(numpy_of(kept), 3 * X**2 + 6 * X, rtol=1e-12)
    cut = iso.grad(lambda x: outer(x, False))(x)
    np.testing.assert_array_equal(numpy_of(cut), np.zeros(3))
    value, g = iso.execute_with_gradients(lambda x: xp.sum(xp.sqrt(x)), xp.asarray([0.0, 1.0]))
    np.testing.assert_array_equal(numpy_of(g), [np.inf, 0.5])
    assert float(value) == 1.0


def test_execute_with_gradients_refuses_bad_input(backend, xp):
    xs = {"w": xp.asarray(X), "n": xp.asarray(3)}
    run = iso.execute_with_gradients
    with pytest.raises(TypeError, match=r"scalar output"):
        run(lambda xs: xs["w"], xs)
    with pytest.raises(KeyError, match=r"the path \['v'\].*its keys are \['n', 'w'\]"):
        run(lambda xs: xp.sum(xs["w"]), xs, xs_grad_idxs=[["v"]])
    with pytest.raises(KeyError, match=r"ret_grad_idxs has the path \[0, 1\].*no 1.*leaf"):
        run(lambda xs: [xp.sum(xs["w"])], xs, ret_grad_idxs=[[0, 1]])
    with pytest.raises(TypeError, match="xs_grad_idxs needed a list of paths"):
        run(lambda xs: xp.sum(xs["w"]), xs, xs_grad_idxs=["w"])
    with pytest.raises(TypeError, match="needed floating-point arrays.*int.* at xs/n"):
        run(lambda xs: xp.sum(xs["w"]), xs, xs_grad_idxs=[["n"]])
    with pytest.raises(TypeError, match="needed an array to differentiate"):
        run(lambda xs: xp.sum(xs["n"]), {"n": xp.asarray(3)})
    with pytest.raises(TypeError, match="execute_with_gradients: needed a function"):
        run(3, xs)


def test_jac_edges(backend, xp):
    x = xp.asarray(X)
    assert tuple(iso.jac(lambda x: x[:0] * 2)(x).shape) == (0, 3)
    assert tuple(iso.jac(lambda x: x * 2)(xp.zeros((0,))).shape) == (0, 0)
    with pytest.raises(TypeError, match="jac: needed real outputs, got .*complex"):
        iso.jac(lambda x: x * 1j)(xp.asarray([1.0 + 0j]))
    with pytest.raises(TypeError, match="jac: needed a function"):
        iso.jac(None)


def test_jvp_and_hvp(backend, xp):
    v = np.array([1.0, -2.0, 0.5])
    x, t, m = xp.asarray(X), xp.asarray(v), xp.asarray(M)
    out, tangent = iso.jvp(lambda x: {"y": xp.matmul(m, xp.sin(x))}, (x,), (t,))
    np.testing.assert_allclose(numpy_of(out["y"]), M @ np.sin(X), rtol=1e-12)
    np.testing.assert_allclose(numpy_of(tangent["y"]), M @ (np.cos(X) * v), rtol=1e-12)
    (product,) = iso.hvp(lambda x: xp.sum(x**4), (x,), (t,))
    np.testing.assert_allclose(numpy_of(product), 12 * X**2 * v, rtol=1e-12)
    a = rng.standard_normal((2, 2)) + 1j * rng.standard_normal((2, 2))
    z = np.array([1.0 + 1.0j, -0.5j])
    _, tangent = iso.jvp(
        lambda z: xp.matmul(xp.asarray(a), z), (xp.asarray(z),), (xp.asarray(1j * z),)
    )
    np.testing.assert_allclose(numpy_of(tangent), a @ (1j * z), rtol=1e-12)
    with pytest.raises(ValueError, match="jvp: needed tangents like the primals"):
        iso.jvp(xp.sin, (x,), ([t],))
    with pytest.raises(ValueError, match=r"jvp: needed an array like the primal.*got.*\(2,\)"):
        iso.jvp(xp.sin, (x,), (t[:2],))


# only TensorFlow has such a fast path
@pytest.mark.parametrize("backend", ["tensorflow"], indirect=True)
def test_gradients_do_not_depend_on_internal_names(backend, xp, monkeypatch):
    def both():
        f = lambda p: xp.sum(xp.take(p["a"], xp.asarray([0, 0, 2])) * p["b"])
        value, grads = iso.value_and_grad(f)({"a": xp.asarray(X), "b": xp.asarray(X + 1)})
        return value, grads, iso.jac(lambda x: xp.matmul(xp.asarray(M), x))(xp.asarray(X))

    quick = both()
    room = import_module("isomorph.backends.tensorflow")
    monkeypatch.setattr(room, "IMPERATIVE", None)
    for got in (quick, both()):
        value, grads, jacobian = got
        np.testing.assert_allclose(float(value), np.sum(X[[0, 0, 2]] * (X + 1)), rtol=1e-12)
        a = [X[0] + X[1] + 2, 0, X[2] + 1]
        np.testing.assert_allclose(numpy_of(grads["a"]), a, rtol=1e-12)
        np.testing.assert_allclose(numpy_of(grads["b"]), X[[0, 0, 2]], rtol=1e-12)
        np.testing.assert_allclose(numpy_of(jacobian), M, rtol=1e-12)
