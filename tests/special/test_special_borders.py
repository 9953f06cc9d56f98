"""Special functions at the borders: numbers, integers, half precision, errors, the frameworks' own
transforms over ours, and what compiled programs consist of.
"""

import numpy as np
import pytest
import scipy.special
from frameworks import BACKENDS, enable_x64, jax, jnp, proxy_tensor, tf, torch

import isomorph as iso
from isomorph.core.dispatch import load
from isomorph.meanings.special import bessel, incomplete, incomplete_beta
from isomorph.meanings.special import errors as meaning_errors
from isomorph.meanings.special import gamma as meaning_gamma
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


@pytest.mark.takes("JAX compiles each operation")
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
    with pytest.raises(NotImplementedError, match="jv: has no derivative in argument 1, the order"):
        iso.grad(lambda v: xp.sum(special.jv(v, x)))(x)
    found = iso.grad(lambda x: xp.sum(special.jv(iso.stop_gradient(x), x)))(x)
    wanted = scipy.special.jvp([0.5, 1.5], [0.5, 1.5])
    np.testing.assert_allclose(numpy_of(found), wanted, rtol=1e-5)


def test_multigammaln(backend, xp):
    """Its derivative is a sum of digamma functions."""
    x = np.float32([3.0, 7.5])
    given = iso.convert(x, backend)
    function = lambda x: xp.sum(special.multigammaln(x, 5))
    value, grad = iso.value_and_grad(function)(given)
    wanted = scipy.special.multigammaln(x.astype(np.float64), 5)
    np.testing.assert_allclose(numpy_of(value), wanted.sum(), rtol=1e-6)
    slopes = sum(scipy.special.digamma(x.astype(np.float64) - j / 2) for j in range(5))
    np.testing.assert_allclose(numpy_of(grad), slopes, rtol=1e-5)
    with pytest.raises(ValueError, match="multigammaln: needed a dimension d of at least 1, got 0"):
        special.multigammaln(given, 0)


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
@pytest.mark.takes("XLA compiles it")
def test_transforms_of_jax(backend, name):
    ours, theirs = KINDS[name]
    with enable_x64(True):
        x = jnp.asarray(X)
        found = jax.jit(jax.vmap(jax.grad(ours)))(x)
        np.testing.assert_allclose(found, slope(theirs), rtol=1e-7)
        forward = jax.jacfwd(ours)(x)
        np.testing.assert_allclose(forward, np.diag(slope(theirs)), rtol=1e-7, atol=1e-12)
        both = jax.hessian(lambda x: jnp.sum(ours(x)))(x)
        slopes = jax.grad(lambda x: jnp.sum(ours(x)))  # compared with SciPy above
        wanted = (slopes(x + 1e-6) - slopes(x - 1e-6)) / 2e-6
        np.testing.assert_allclose(jnp.diagonal(both), wanted, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # torch's jacfwd
@pytest.mark.parametrize("backend", ["torch"], indirect=True)
@pytest.mark.parametrize("name", KINDS)
def test_transforms_of_torch(backend, name):
    ours, theirs = KINDS[name]
    x = torch.as_tensor(X)
    forward = torch.func.jacfwd(ours)(x)
    np.testing.assert_allclose(numpy_of(forward), np.diag(slope(theirs)), rtol=1e-7, atol=1e-12)
    found = torch.func.vmap(torch.func.grad(ours))(x)
    np.testing.assert_allclose(numpy_of(found), slope(theirs), rtol=1e-7)
    leaf = x.clone().requires_grad_()
    ours(leaf).sum().backward()
    np.testing.assert_allclose(numpy_of(leaf.grad), slope(theirs), rtol=1e-7)
    slopes = torch.func.grad(lambda x: ours(x).sum())
    bends = torch.func.grad(lambda x: slopes(x).sum())(x)
    wanted = (slopes(x + 1e-6) - slopes(x - 1e-6)) / 2e-6
    np.testing.assert_allclose(numpy_of(bends), numpy_of(wanted), rtol=1e-6)


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


HOST = ("callback", "PyFunc", "numpy_function", "isomorph.host", "isomorph::host")
PROGRAMS = {
    "erfcx": (meaning_errors.erfcx, 1),
    "digamma": (meaning_gamma.digamma, 1),
    "gammainc": (incomplete.gammainc, 2),
    "betainc": (incomplete_beta.betainc, 3),
    "jv": (bessel.jv, 2),
}


def steps_of(backend, function, args):
    """The operations of a program, as the framework traces it."""
    if backend == "jax":
        return str(jax.make_jaxpr(function)(*args))
    if backend == "torch":
        return str(proxy_tensor.make_fx(function, tracing_mode="fake")(*args).print_readable(False))
    graph = tf.function(function, autograph=False).get_concrete_function(*args).graph
    return str(graph.as_graph_def())  # with the functions of its loops


@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.takes("TensorFlow traces it")
def test_programs_do_not_call_the_host(backend, name):
    """Neither the program nor, on torch, the kernel that a long function is one operator for."""
    function, count = PROGRAMS[name]
    xp = load(backend)
    args = [iso.convert(X.astype(np.float32) / 3, backend)] * count
    found = steps_of(backend, lambda *args: function(xp, *args), args)
    assert len(found) > 200
    assert not any(word in found for word in HOST)


@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
def test_a_call_of_the_host_would_be_seen(backend):
    halved = iso.host_function(lambda x: x / 2, lambda x, y, g: (g / 2,))
    x = iso.convert(X.astype(np.float32), backend)
    assert any(word in steps_of(backend, halved, [x]) for word in HOST)
