"""grad, value_and_grad and vjp: the same meaning on four backends."""

import threading

import numpy as np
import pytest

import isomorph as iso
from oracles import central_gradient, kind_of, numpy_of, verbs_of

rng = np.random.default_rng(0)
X = rng.uniform(0.5, 1.5, (3, 4))


def network(x):
    """A composed function with products, reductions, broadcasting, slicing and selection."""
    xp = iso.namespace(x)
    h = xp.tanh(xp.matmul(x, xp.permute_dims(x, (1, 0))))
    h = xp.concat([h, xp.exp(-h[:, :1])], axis=1)
    h = xp.where(h > 0.5, h * h, xp.sin(h))
    return xp.sum(xp.max(h, axis=1) * xp.mean(h, axis=1)) + xp.linalg.vector_norm(x)


def test_grad_equals_central_differences(backend, xp):
    got = iso.grad(network)(xp.asarray(X))
    assert kind_of(got) == backend
    # central differences with step 1e-6 are good to about 1e-9 here
    np.testing.assert_allclose(numpy_of(got), central_gradient(network, X), rtol=1e-7, atol=1e-8)


def test_value_and_grad_runs_the_function_once(backend, xp):
    calls = []

    def f(x):
        calls.append(1)
        return xp.sum(x * x)

    value, grad = iso.value_and_grad(f)(xp.asarray([3.0, 4.0]))
    assert calls == [1]
    assert float(value) == 25.0
    np.testing.assert_array_equal(numpy_of(grad), [6.0, 8.0])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_dtype_is_kept(backend, xp, dtype):
    x = xp.asarray([0.5, 1.5], dtype=verbs_of(xp).dtype(dtype))
    value, grad = iso.value_and_grad(lambda x: xp.sum(xp.tanh(x) * 2.0 + x**2 / 3))(x)
    assert value.dtype == x.dtype
    assert grad.dtype == x.dtype
    t = np.tanh([0.5, 1.5])
    expected = 2 * (1 - t * t) + 2 * np.array([0.5, 1.5]) / 3
    # two or three roundings in that dtype
    np.testing.assert_allclose(numpy_of(grad), expected, rtol=4 * np.finfo(dtype).eps)


def test_orders_one_to_four_by_nesting(backend, xp):
    def power(x):
        return x**5 + xp.sin(x)

    x = xp.asarray(0.7, dtype=xp.float64)
    expected = [5 * 0.7**4 + np.cos(0.7), 20 * 0.7**3 - np.sin(0.7), 60 * 0.7**2 - np.cos(0.7)]
    expected.append(120 * 0.7 + np.sin(0.7))
    f = power
    for order in expected:
        f = iso.grad(f)
        np.testing.assert_allclose(float(f(x)), order, rtol=1e-12)


def test_inner_gradient_sees_outer_variable(backend, xp):
    # d/dx [ x * d/dy (x + y) ] = 1; confusing the two levels would give 2 (Siskind and Pearlmutter)
    def outer(x):
        return x * iso.grad(lambda y: x + y)(xp.asarray(1.0))

    assert float(iso.grad(outer)(xp.asarray(1.0))) == 1.0
    # d/dx [ d/dy (x*y*y) at y = x ] = d/dx 2x² = 4x
    inner = lambda x: iso.grad(lambda y: x * y * y)(x)
    np.testing.assert_allclose(float(iso.grad(inner)(xp.asarray(3.0))), 12.0)


def test_nests_in_nests_out(backend, xp):
    params = {"w": xp.asarray([1.0, 2.0]), "b": [xp.asarray(3.0), None, (xp.asarray([4.0]),)]}
    grads = iso.grad(lambda p: xp.sum(p["w"] ** 2) * p["b"][0] + xp.sum(p["b"][2][0]))(params)
    assert list(grads) == ["w", "b"]
    np.testing.assert_allclose(numpy_of(grads["w"]), [6.0, 12.0])
    assert float(grads["b"][0]) == 5.0
    assert grads["b"][1] is None
    np.testing.assert_allclose(numpy_of(grads["b"][2][0]), [1.0])


def test_argnums_and_keywords(backend, xp):
    f = lambda x, y, *, scale: scale * x * y**2
    x, y = xp.asarray(2.0), xp.asarray(3.0)
    assert float(iso.grad(f, argnums=1)(x, y, scale=2.0)) == 24.0
    gx, gy = iso.grad(f, argnums=(0, -1))(x, y, scale=xp.asarray(1.0))
    assert (float(gx), float(gy)) == (9.0, 12.0)


def test_aux_comes_back_untraced(backend, xp):
    def f(x):
        return xp.sum(x**2), {"twice": 2 * x, "note": "kept", "n": 3}

    x = xp.asarray([1.0, 2.0])
    (value, aux), grad = iso.value_and_grad(f, has_aux=True)(x)
    assert float(value) == 5.0
    assert (aux["note"], aux["n"], type(aux["twice"])) == ("kept", 3, type(x))
    np.testing.assert_array_equal(numpy_of(aux["twice"]), [2.0, 4.0])
    np.testing.assert_array_equal(numpy_of(grad), [2.0, 4.0])
    again, aux = iso.grad(f, has_aux=True)(x)
    np.testing.assert_array_equal(numpy_of(again), numpy_of(grad))
    assert type(aux["twice"]) is type(x)


def test_unused_inputs_get_zeros(backend, xp):
    gx, gy = iso.grad(lambda x, y: xp.sum(x), argnums=(0, 1))(xp.ones(2), xp.ones((2, 3)))
    np.testing.assert_array_equal(numpy_of(gx), [1.0, 1.0])
    np.testing.assert_array_equal(numpy_of(gy), np.zeros((2, 3)))


def test_the_same_array_twice_is_two_variables(backend, xp):
    x = xp.asarray(2.0)
    grads = iso.grad(lambda p: 3 * p[0] + 5 * p[1])([x, x])
    assert [float(g) for g in grads] == [3.0, 5.0]


def test_python_floats_are_differentiated(backend, xp):
    got = iso.grad(lambda a, x: a * a * xp.sum(x))(3.0, xp.asarray([1.0, 1.0]))
    assert kind_of(got) == backend
    assert float(got) == 12.0


def test_empty_and_zero_dimensional_arrays(backend, xp):
    assert tuple(iso.grad(lambda x: xp.sum(x**2))(xp.zeros((0, 3))).shape) == (0, 3)
    g = iso.grad(lambda x: x**3)(xp.asarray(2.0))
    assert tuple(g.shape) == ()
    assert type(g) is type(xp.asarray(2.0))
    assert float(g) == 12.0


def test_complex_gradient_is_dfdx_plus_i_dfdy(backend, xp):
    z = xp.asarray([1.0 + 2.0j, -0.5 + 0.25j], dtype=xp.complex128)
    got = numpy_of(iso.grad(lambda z: xp.sum(xp.abs(z) ** 2 + xp.real(z * z)))(z))
    # f = x² + y² + x² − y² = 2x²
    np.testing.assert_allclose(got, 4 * numpy_of(z).real, atol=1e-12)
    got = numpy_of(iso.grad(lambda z: xp.sum(xp.imag(xp.exp(z))))(z))
    # d/dx = e^x sin y, d/dy = e^x cos y
    x, y = numpy_of(z).real, numpy_of(z).imag
    np.testing.assert_allclose(got, np.exp(x) * (np.sin(y) + 1j * np.cos(y)), rtol=1e-12)


def test_vjp_of_vectors_and_nests(backend, xp):
    m = rng.standard_normal((2, 3))
    out, pullback = iso.vjp(
        lambda x: {"y": xp.matmul(xp.asarray(m), x), "s": xp.sum(x)}, xp.asarray(np.ones(3))
    )
    np.testing.assert_allclose(numpy_of(out["y"]), m.sum(1))
    for u in np.eye(2):  # the pullback can be called again
        (got,) = pullback({"y": xp.asarray(u), "s": 1.0})
        np.testing.assert_allclose(numpy_of(got), u @ m + 1)


def test_vjp_of_complex_functions_is_the_adjoint(backend, xp):
    a = rng.standard_normal((2, 2)) + 1j * rng.standard_normal((2, 2))
    u = np.array([1.0 - 1.0j, 2.0j])
    _, pullback = iso.vjp(
        lambda z: xp.matmul(xp.asarray(a), z), xp.asarray([1.0 + 0j, 1.0j], dtype=xp.complex128)
    )
    np.testing.assert_allclose(numpy_of(pullback(xp.asarray(u))[0]), a.conj().T @ u, rtol=1e-12)


def test_vjp_with_aux(backend, xp):
    out, pullback, aux = iso.vjp(lambda x: (x**2, "aux"), xp.asarray([3.0]), has_aux=True)
    assert aux == "aux"
    np.testing.assert_array_equal(numpy_of(out), [9.0])
    np.testing.assert_array_equal(numpy_of(pullback(xp.asarray([1.0], dtype=out.dtype))[0]), [6.0])


def test_gradient_of_a_pullback(backend, xp):
    def f(x, u):
        return xp.sum(iso.vjp(xp.exp, x)[1](u)[0])

    x, u = xp.asarray([0.5, 1.0], dtype=xp.float64), xp.asarray([2.0, 3.0], dtype=xp.float64)
    gx, gu = iso.grad(f, argnums=(0, 1))(x, u)
    np.testing.assert_allclose(numpy_of(gx), numpy_of(u) * np.exp(numpy_of(x)), rtol=1e-12)
    np.testing.assert_allclose(numpy_of(gu), np.exp(numpy_of(x)), rtol=1e-12)


def test_stop_gradient(backend, xp):
    f = lambda x: xp.sum(iso.stop_gradient({"x": xp.sin(x), "n": 3})["x"] * x)
    x = xp.asarray([0.5, 1.0])
    np.testing.assert_allclose(numpy_of(iso.grad(f)(x)), np.sin(numpy_of(x)), rtol=1e-6)


def test_infinite_and_nan_gradients_are_reported_as_they_are(backend, xp):
    g = numpy_of(iso.grad(lambda x: xp.sum(xp.sqrt(x)))(xp.asarray([0.0, 4.0])))
    np.testing.assert_array_equal(g, [np.inf, 0.25])
    g = numpy_of(iso.grad(lambda x: xp.sum(x * xp.nan))(xp.asarray([1.0])))
    assert np.isnan(g).all()


def test_ties_share_the_gradient_of_a_maximum(backend, xp):
    g = iso.grad(lambda x: xp.max(x))(xp.asarray([1.0, 3.0, 3.0, 2.0]))
    np.testing.assert_array_equal(numpy_of(g), [0.0, 0.5, 0.5, 0.0])


def test_an_exception_inside_leaves_nothing_behind(backend, xp):
    def broken(x):
        raise RuntimeError("inside")

    x = xp.asarray([1.0, 2.0])
    for f in (broken, lambda x: iso.grad(broken)(x)):
        with pytest.raises(RuntimeError, match="inside"):
            iso.grad(f)(x)
        np.testing.assert_array_equal(numpy_of(iso.grad(lambda x: xp.sum(x * x))(x)), [2.0, 4.0])


def test_eight_threads_at_once(backend, xp):
    results: dict[int, object] = {}
    start = threading.Barrier(8)

    def work(i):
        start.wait()
        for _ in range(10):
            f = lambda x: xp.sum(iso.grad(lambda y: xp.sum(y**3) * (i + 1))(x))
            results[i] = numpy_of(iso.grad(f)(xp.asarray([1.0, 2.0])))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    for i in range(8):
        np.testing.assert_allclose(results[i], 6 * np.array([1.0, 2.0]) * (i + 1), rtol=1e-6)


# Bad input: each error names the function, what was needed and what came.


def test_integer_input_raises(backend, xp):
    with pytest.raises(
        TypeError, match=r"^grad: needed floating-point.*int.*argument 0, leaf a/1.*leave it out"
    ):
        iso.grad(lambda p: p["a"][1])({"a": [xp.asarray(1.0), xp.asarray(2)]})
    with pytest.raises(TypeError, match="^value_and_grad: needed floating-point arrays.*got a int"):
        iso.value_and_grad(lambda x: x)(3)
    with pytest.raises(TypeError, match="got a str"):
        iso.grad(lambda x: x)("x")
    with pytest.raises(TypeError, match="empty nest"):
        iso.grad(lambda x: xp.ones(()))([])


def test_output_that_is_no_real_scalar_raises(backend, xp):
    x = xp.asarray([1.0, 2.0])
    with pytest.raises(TypeError, match=r"^grad: .*scalar output, got shape \(2,\).*vjp"):
        iso.grad(lambda x: x * 2)(x)
    with pytest.raises(TypeError, match="real output, got .*complex"):
        iso.grad(lambda x: xp.sum(x) * 1j)(xp.asarray([1.0 + 0j]))
    with pytest.raises(TypeError, match="needed a floating-point output, got .*int"):
        iso.grad(lambda x: xp.argmax(x))(x)
    with pytest.raises(TypeError, match="needed an array as output, got NoneType"):
        iso.grad(lambda x: None)(x)
    with pytest.raises(TypeError, match=r"has_aux=True needed func to return \(output, aux\)"):
        iso.grad(lambda x: xp.sum(x), has_aux=True)(x)


def test_python_numbers_and_nothing_are_no_outputs(backend, xp):
    x = xp.asarray([1.0, 2.0])
    with pytest.raises(TypeError, match="array as output, got float; .*Python number"):
        iso.grad(lambda x: 3.0)(x)
    with pytest.raises(TypeError, match="vjp: needed an array as output, got NoneType"):
        iso.vjp(lambda x: None, x)


def test_bad_argnums_and_functions_raise(backend, xp):
    x = xp.asarray(1.0)
    for twice in ((0, 0), (0, -1)):
        with pytest.raises(ValueError, match="argnums needed each argument once"):
            iso.grad(lambda x: x, argnums=twice)(x)
    with pytest.raises(ValueError, match="argnums chose argument 2, .* 1 positional"):
        iso.grad(lambda x: x, argnums=2)(x)
    with pytest.raises(TypeError, match="argnums needed an int"):
        iso.grad(lambda x: x, argnums="0")
    with pytest.raises(TypeError, match="grad: needed a function, got int"):
        iso.grad(3)
    with pytest.raises(TypeError, match="vjp: needed at least one argument"):
        iso.vjp(lambda: 1.0)


def test_bad_cotangents_raise(backend, xp):
    _, pullback = iso.vjp(lambda x: (x, x), xp.asarray([1.0, 2.0], dtype=xp.float32))
    u = xp.asarray([1.0, 1.0], dtype=xp.float32)
    with pytest.raises(ValueError, match="needed a nest like the output"):
        pullback(u)
    with pytest.raises(
        ValueError, match=r"needed an array like the output.*shape \(2,\).*got.*shape \(1,\)"
    ):
        pullback((u, u[:1]))
    with pytest.raises(ValueError, match="float32.*got.*float64"):
        pullback((u, xp.asarray([1.0, 1.0], dtype=xp.float64)))


def test_two_frameworks_in_one_call_raise(backend, xp):
    other = "torch" if backend != "torch" else "numpy"
    with iso.use_backend(other):
        foreign = iso.ones(2)
    mine = xp.ones(2)
    with pytest.raises(TypeError, match=f"(?=.*{backend})(?=.*{other})arrays of 2 backends"):
        iso.grad(lambda x, y: xp.sum(x))(mine, foreign)
    with pytest.raises(TypeError, match=f"(?=.*{backend})(?=.*{other})"):
        iso.grad(lambda x: foreign.sum())(mine)
