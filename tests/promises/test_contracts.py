"""Guarantees that a small slip would break silently, each checked by values on every backend."""

import numpy as np
import pytest
from frameworks import enable_x64, jax, torch

import isomorph as iso
from isomorph.core.dispatch import load
from oracles import central_gradient, kind_of, numpy_of

OTHERS = {"numpy": "torch", "jax": "numpy", "tensorflow": "numpy", "torch": "jax"}
X = np.array([0.5, 1.5, -0.7])


def test_the_array_decides_whatever_the_home_is(backend, xp):
    mine = xp.asarray(X)
    with iso.use_backend(OTHERS[backend], dtype="float32"):
        assert iso.namespace(mine) is xp
        assert iso.namespace(mine, mine, 1.0) is xp
        value, gradient = iso.value_and_grad(lambda x: iso.namespace(x).sum(x**3))(mine)
        out, pullback = iso.vjp(lambda x: x**2, mine)
        updated = iso.at(mine)[0].set(9.0)
    for got in (value, gradient, out, updated):
        assert kind_of(got) == backend
        assert got.dtype == mine.dtype
    np.testing.assert_allclose(numpy_of(gradient), 3 * X**2, rtol=1e-12)
    np.testing.assert_allclose(numpy_of(pullback(mine)[0]), 2 * X * X, rtol=1e-12)


def test_creation_makes_the_right_values(backend, xp):
    make = {"backend": backend}
    same = np.testing.assert_array_equal
    same(numpy_of(iso.arange(1, 8, 3, **make)), [1, 4, 7])
    same(numpy_of(iso.linspace(0.0, 1.0, 4, endpoint=False, **make)), [0, 0.25, 0.5, 0.75])
    same(numpy_of(iso.eye(2, 3, **make)), [[1, 0, 0], [0, 1, 0]])
    same(numpy_of(iso.full((2, 1), 7.5, **make)), [[7.5], [7.5]])
    same(numpy_of(iso.zeros((1, 2), **make)), [[0, 0]])
    same(numpy_of(iso.ones(2, dtype="int32", **make)), [1, 1])
    same(numpy_of(iso.asarray([[1, 2], [3, 4]], **make)), [[1, 2], [3, 4]])
    narrow = iso.asarray(xp.asarray(X), dtype="float32")
    assert narrow.dtype == xp.float32
    np.testing.assert_allclose(numpy_of(narrow), X.astype(np.float32))


def test_levels_of_every_kind_of_operation(backend, xp):
    """An inner gradient that uses an outer variable, on either side of a binary operation."""
    m = np.array([[1.0, 0.5], [-0.3, 2.0]])
    operations = {
        "matmul": xp.matmul,
        "einsum": lambda a, b: xp.einsum("ij,jk->ik", a, b),
        "where": lambda a, b: xp.where(xp.asarray(m) > 0, a * a, b * b),
        "concat": lambda a, b: xp.concat([a * b, b * b]),
        "stack": lambda a, b: xp.stack([a * a, b]) * b,
        "maximum": lambda a, b: xp.maximum(a * 2, b),
    }
    for name, op in operations.items():
        for flip in (False, True):

            def inner(x, op=op, flip=flip):
                f = lambda y: xp_of(x).sum((op(y, x) if flip else op(x, y)) ** 2)
                return xp_of(x).sum(iso.grad(f)(x + 0.1))

            got = numpy_of(iso.grad(inner)(xp.asarray(m)))
            # central differences of the inner gradient, itself tested against them elsewhere
            expected = central_gradient(lambda x: inner(xp.asarray(x)), m)
            np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-7, err_msg=name)


def xp_of(x):
    return iso.namespace(x)


def test_a_traced_value_does_not_leave_as_data(backend, xp):
    x = xp.asarray(X)
    with pytest.raises(Exception, match="gradient|Tracer|data pointer|storage|requires grad"):
        iso.grad(lambda x: xp.sum(x * xp.asarray(iso.to_numpy(x))))(x)
    kept = iso.grad(lambda x: xp.sum(x * 2))(x)
    np.testing.assert_array_equal(numpy_of(kept), [2.0, 2.0, 2.0])


def test_complex_custom_rules_follow_the_one_convention(backend, xp):
    f = iso.custom_vjp(
        lambda z: z * z,
        lambda z: (z * z, z),
        lambda z, g: (10 * g * xp.conj(2 * z),),
    )
    z = np.array([1.0 + 2.0j, -0.5 + 0.25j])
    u = np.array([1.0 - 1.0j, 2.0j])
    _, pullback = iso.vjp(f, xp.asarray(z))
    got = numpy_of(pullback(xp.asarray(u))[0])
    np.testing.assert_allclose(got, 10 * u * np.conj(2 * z), rtol=1e-12)


def test_custom_rules_with_several_inputs(backend, xp):
    f = iso.bind_custom_gradient_function(
        lambda x, y: x * y,
        lambda saved, g: (10 * g * saved[0][1], 100 * g * saved[0][0] + 0 * saved[1]),
    )
    x, y = xp.asarray(X), xp.asarray(X + 1)
    gx, gy = iso.grad(lambda x, y: xp.sum(f(x, y)), argnums=(0, 1))(x, y)
    np.testing.assert_allclose(numpy_of(gx), 10 * (X + 1), rtol=1e-12)
    np.testing.assert_allclose(numpy_of(gy), 100 * X, rtol=1e-12)
    silent = iso.custom_vjp(xp.sin, lambda x: (xp.sin(x), None), lambda s, g: (None,))
    got = iso.grad(lambda x: xp.sum(silent(x)))(x)
    np.testing.assert_array_equal(numpy_of(got), np.zeros(3))


def test_second_derivatives_by_several_arguments(backend, xp):
    x, y = xp.asarray([1.0, 2.0]), xp.asarray([3.0, -1.0])
    f = lambda x, y, power: xp.sum(x**power * y)
    blocks = iso.hessian(lambda x, y: f(x, y, 3), argnums=(0, 1))(x, y)
    np.testing.assert_allclose(numpy_of(blocks[0][0]), np.diag([18.0, -12.0]))
    np.testing.assert_allclose(numpy_of(blocks[0][1]), np.diag([3.0, 12.0]))
    np.testing.assert_allclose(numpy_of(blocks[1][0]), np.diag([3.0, 12.0]))
    np.testing.assert_allclose(numpy_of(blocks[1][1]), np.zeros((2, 2)))
    along = (xp.asarray([1.0, 0.0]), xp.asarray([0.0, 1.0]))
    hx, hy = iso.hvp(lambda x, y: f(x, y, 3), (x, y), along)
    np.testing.assert_allclose(numpy_of(hx), [18.0, 12.0])
    np.testing.assert_allclose(numpy_of(hy), [3.0, 0.0])
    by_y = iso.jac(lambda x, y, power: x**power * y, argnums=1)(x, y, power=2)
    np.testing.assert_allclose(numpy_of(by_y), np.diag([1.0, 4.0]))


@pytest.mark.parametrize("how", ["min", "max"])
def test_at_extremes_differentiate(backend, xp, how):
    x, v = xp.asarray([1.0, 5.0, 2.0]), xp.asarray([3.0, 4.0])
    f = lambda x, v: xp.sum(getattr(iso.at(x)[:2], how)(v) * xp.asarray([1.0, 10.0, 100.0]))
    gx, gv = iso.grad(f, argnums=(0, 1))(x, v)
    # the gradient goes to x or to v
    taken = np.array([1.0, 0.0]) if how == "min" else np.array([0.0, 1.0])
    np.testing.assert_array_equal(numpy_of(gx), [*(taken * [1.0, 10.0]), 100.0])
    np.testing.assert_array_equal(numpy_of(gv), (1 - taken) * [1.0, 10.0])


def test_python_floats_take_the_dtype_beside_them(backend, xp):
    for dtype in (xp.float32, xp.float64):
        got = iso.grad(lambda a, x: a * xp.sum(x))(2.0, xp.asarray(X, dtype=dtype))
        assert got.dtype == dtype
        np.testing.assert_allclose(float(got), X.sum(), rtol=1e-6)


def test_jac_without_rows_keeps_the_dtype(backend, xp):
    x = xp.asarray(X, dtype=xp.float32)
    assert iso.jac(lambda x: x[:0])(x).dtype == xp.float32


def test_convert_shares_memory_where_it_says_so(backend, xp):
    if backend == "numpy":
        values = np.arange(4.0)
        iso.convert(values, "torch").add_(1.0)
        np.testing.assert_array_equal(values, [1.0, 2.0, 3.0, 4.0])
    elif backend == "torch":
        tensor = torch.arange(4.0, device="cpu")
        iso.to_numpy(tensor)[0] = 7.0
        assert tensor.tolist() == [7.0, 1.0, 2.0, 3.0]
        shared = torch.zeros(1024)
        there = iso.convert(shared, "jax")
        assert there.unsafe_buffer_pointer() == shared.data_ptr()
    else:  # immutable arrays are lent to torch without a copy
        x = xp.asarray(np.zeros(1024, np.float32))
        first, second = iso.convert([x, x], "torch")
        assert first.data_ptr() == second.data_ptr()  # two copies would have different addresses


def test_a_device_has_a_name(backend):
    here = load(backend).device_of(iso.zeros(2, device="cpu", backend=backend))
    for name in ("cpu", "CPU", *(n for n in load(backend).devices() if n.startswith("cpu"))):
        x = iso.zeros(2, device=name, backend=backend)
        assert (kind_of(x), load(backend).device_of(x)) == (backend, here)
    for name in load(backend).devices() if backend in ("jax", "torch") else ():
        x = iso.zeros(2, device=name, backend=backend)
        assert str(load(backend).device(name)) == str(load(backend).device_of(x))
    with pytest.raises(ValueError, match="moon"):
        iso.zeros(2, device="moon", backend=backend)


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_devices_are_kept(backend):
    """torch's meta device stands in for one that is not the CPU."""
    x = torch.ones(3, device="meta")
    value, g = iso.value_and_grad(lambda x: iso.namespace(x).sum(x**2))(x)
    assert (value.device.type, g.device.type) == ("meta", "meta")
    assert iso.zeros(2, device=torch.device("meta"), backend="torch").device.type == "meta"
    with iso.use_backend("torch", device=torch.device("meta")):
        assert iso.ones(2).device.type == "meta"
    assert iso.convert(np.ones(2), "torch", device=torch.device("meta")).device.type == "meta"


@pytest.mark.parametrize("backend", ["jax"], indirect=True)
def test_jax_with_32_bit_types(backend):
    """The user's default, which the fixture turns off."""
    with enable_x64(False):
        there = iso.convert(np.array([1.5, 2.5]), "jax")
        assert there.dtype == np.float32
        np.testing.assert_array_equal(np.asarray(there), [1.5, 2.5])
        with pytest.raises(OverflowError, match="jax_enable_x64"):
            iso.convert(np.array([2**40]), "jax")
        g = iso.grad(lambda x: jax.numpy.sum(x**3))(there)
        assert g.dtype == np.float32
        np.testing.assert_allclose(np.asarray(g), [6.75, 18.75])


def test_a_backend_that_is_not_there_is_named(backend, monkeypatch, capfd):
    from isomorph.cli import command, installed
    from isomorph.core import dispatch

    monkeypatch.setattr(dispatch, "find_spec", lambda name: None)
    monkeypatch.delitem(dispatch.LOADED, backend, raising=False)
    with pytest.raises(ImportError, match=rf"backend '{backend}' is not installed: pip install"):
        dispatch.load(backend)
    monkeypatch.undo()
    monkeypatch.setattr(installed, "find_spec", lambda name: None if name == backend else object())
    assert not iso.backends()[backend].installed
    command.main(["doctor"])
    assert f"{backend:<12}-" in capfd.readouterr().out
    monkeypatch.undo()

    def broken(name):
        raise OSError("lib.so is missing")

    monkeypatch.setattr(installed, "load", broken)
    assert command.main(["doctor"]) == 1
    assert "does not load: OSError: lib.so is missing" in capfd.readouterr().out
