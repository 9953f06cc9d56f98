"""Special functions at the borders: numbers, integers, half precision, errors, the frameworks' own
transforms over ours, and what compiled programs consist of.
"""

import numpy as np
import pytest
import scipy.special
from frameworks import BACKENDS, enable_x64, jax, jnp, proxy_tensor, tf, torch

import isomorph as iso
from oracles import numpy_of

special = iso.special
X = np.array([0.3, 1.2, 2.5])
# One function of each kind of kernel: formulas, a series with regions, a loop.
KINDS = {
    "erfcx": (lambda x: special.erfcx(x), scipy.special.erfcx),
    "digamma": (lambda x: special.digamma(x), scipy.special.digamma),
    "gammainc": (lambda x: special.gammainc(1.5, x), lambda x: scipy.special.gammainc(1.5, x)),
}


def slope(function):
    """The derivative, by central differences of SciPy's function."""
    return (function(X + 1e-6) - function(X - 1e-6)) / 2e-6


def test_numbers_integers_and_shapes(backend, xp):
    x = iso.convert(np.float32([[0.5], [2.0]]), backend)
    y = iso.convert(np.float32([1.0, 2.0, 3.0]), backend)
    found = special.betainc(x, y, 0.25)
    assert tuple(found.shape) == (2, 3)
    assert found.dtype == xp.float32
    wanted = scipy.special.betainc([[0.5], [2.0]], [1.0, 2.0, 3.0], 0.25)
    np.testing.assert_allclose(numpy_of(found), wanted, rtol=2e-6)  # float32
    whole = special.gammaln(iso.convert(np.array([1, 5]), backend))
    assert xp.isdtype(whole.dtype, "real floating")
    np.testing.assert_allclose(numpy_of(whole), np.log([1.0, 24.0]), rtol=1e-6)
    assert tuple(special.erfc(xp.zeros((0, 2))).shape) == (0, 2)
    assert tuple(special.jv(1, xp.asarray(0.5)).shape) == ()


HALVES = [
    (backend, kind)
    for backend in BACKENDS
    for kind in ("float16", "bfloat16")
    if (backend, kind) != ("numpy", "bfloat16")  # NumPy has none
]


@pytest.mark.parametrize(("backend", "kind"), HALVES, indirect=["backend"])
def test_half_precision_is_computed_in_float32(backend, kind):
    with iso.use_backend(backend):
        x = iso.asarray([0.5, 3.0], dtype=kind)
    found = special.gammaln(x)
    assert found.dtype == x.dtype
    wanted = np.float32(scipy.special.gammaln([0.5, 3.0]))
    # half a unit in the last place: the result is rounded once
    near = 2**-11 if kind == "float16" else 2**-8
    np.testing.assert_allclose(np.asarray(iso.to_numpy(found), np.float32), wanted, rtol=near)


def test_complex_numbers_and_orders_are_refused(backend, xp):
    with pytest.raises(TypeError, match="erfc: needed real arrays, got complex64"):
        special.erfc(xp.asarray([1j], dtype=xp.complex64))
    x = xp.asarray([0.5, 1.5])
    with pytest.raises(NotImplementedError, match=r"jv: needed no derivative in argument 1.*order"):
        iso.grad(lambda v: xp.sum(special.jv(v, x)))(x)
    found = iso.grad(lambda x: xp.sum(special.jv(iso.stop_gradient(x), x)))(x)
    wanted = scipy.special.jvp([0.5, 1.5], [0.5, 1.5])
    np.testing.assert_allclose(numpy_of(found), wanted, rtol=1e-5)


@pytest.mark.parametrize("name", KINDS)
def test_mapped_and_forward(backend, name):
    ours, theirs = KINDS[name]
    with enable_x64(True):
        x = iso.convert(X, backend)
        rows = iso.convert(np.stack([X, X + 1]), backend)
        np.testing.assert_allclose(
            numpy_of(iso.vmap(ours)(rows)), theirs(np.stack([X, X + 1])), rtol=1e-12
        )
        found = iso.vmap(iso.grad(lambda x: ours(x)))(x)
        np.testing.assert_allclose(numpy_of(found), slope(theirs), rtol=1e-7)
        _, tangent = iso.jvp(ours, (x,), (x,))
        np.testing.assert_allclose(numpy_of(tangent), slope(theirs) * X, rtol=1e-7)


@pytest.mark.parametrize("backend", ["jax"], indirect=True)
@pytest.mark.parametrize("name", KINDS)
def test_transforms_of_jax(backend, name):
    ours, theirs = KINDS[name]
    with enable_x64(True):
        x = jnp.asarray(X)
        found = jax.jit(jax.vmap(jax.grad(ours)))(x)
        np.testing.assert_allclose(found, slope(theirs), rtol=1e-7)
        forward = jax.jacfwd(ours)(x)
        np.testing.assert_allclose(forward, np.diag(slope(theirs)), rtol=1e-7, atol=1e-12)
        both = jax.hessian(lambda x: jnp.sum(ours(x)))(x)
        twice = jax.grad(lambda x: jnp.sum(jax.grad(lambda x: jnp.sum(ours(x)))(x)))(x)
        np.testing.assert_allclose(jnp.diagonal(both), twice, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # torch's jacfwd
@pytest.mark.parametrize("backend", ["torch"], indirect=True)
@pytest.mark.parametrize("name", KINDS)
def test_transforms_of_torch(backend, name):
    ours, theirs = KINDS[name]
    x = torch.as_tensor(X)
    forward = torch.func.jacfwd(ours)(x)
    np.testing.assert_allclose(forward, np.diag(slope(theirs)), rtol=1e-7, atol=1e-12)
    found = torch.func.vmap(torch.func.grad(ours))(x)
    np.testing.assert_allclose(found, slope(theirs), rtol=1e-7)
    leaf = x.clone().requires_grad_()
    ours(leaf).sum().backward()
    np.testing.assert_allclose(leaf.grad, slope(theirs), rtol=1e-7)
    slopes = torch.func.grad(lambda x: ours(x).sum())
    bends = torch.func.grad(lambda x: slopes(x).sum())(x)
    wanted = (slopes(x + 1e-6) - slopes(x - 1e-6)) / 2e-6
    np.testing.assert_allclose(bends, wanted, rtol=1e-6)


@pytest.mark.parametrize("backend", ["tensorflow"], indirect=True)
@pytest.mark.parametrize("name", KINDS)
def test_transforms_of_tensorflow(backend, name):
    """A tape around a graph differentiates the graph as a whole."""
    ours, theirs = KINDS[name]
    graph = tf.function(ours, autograph=False)
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = graph(x)
    np.testing.assert_allclose(tape.gradient(y, x), slope(theirs), rtol=1e-7)


HOST = ("callback", "PyFunc", "numpy_function")


@pytest.mark.parametrize("name", [*KINDS, "jv", "betainc"])
def test_programs_do_not_call_the_host(backend, name):
    """Programs as JAX, TensorFlow and torch trace them: no step leaves the framework."""
    function = KINDS[name][0] if name in KINDS else getattr(special, name)
    x = iso.convert(X.astype(np.float32) / 3, backend)
    args = {"jv": (x, x), "betainc": (x, x, x)}.get(name, (x,))
    if backend == "jax":
        steps = str(jax.make_jaxpr(function)(*args))
    elif backend == "tensorflow":
        graph = tf.function(function, autograph=False).get_concrete_function(*args).graph
        functions = [f.graph for f in graph._functions.values() if hasattr(f, "graph")]
        steps = str([op.type for g in (graph, *functions) for op in g.get_operations()])
    elif backend == "torch":
        steps = str(proxy_tensor.make_fx(function)(*args).graph)
    else:
        steps = repr(function(*args))  # NumPy has no programs: its values are NumPy's
    assert len(steps) > 20
    assert not any(word in steps for word in HOST)
