"""Layers whose TensorFlow kernel covers only part of the definition, compared with sums in float64
NumPy; and which programs are compiled with XLA.
"""

import importlib

import numpy as np
import pytest
from frameworks import tf

import isomorph as iso
from isomorph.core import tree
from isomorph.core.dispatch import load
from isomorph.training.stepping import as_one
from oracles import central_gradient

pytestmark = pytest.mark.parametrize("backend", ["tensorflow"], indirect=True)
EPSILON = 1e-3


def values(*shapes):
    rng = np.random.default_rng(5)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def normal(x, w, b):
    """Batch norm over the last axis by its formula, with the mean and the unbiased variance."""
    over = tuple(range(x.ndim - 1))
    mean, variance = x.mean(over), x.var(over)
    y = (x - mean) / np.sqrt(variance + EPSILON)
    return y * w + b, mean, x.var(over, ddof=1)


def norm(x, mean, variance, w, b):
    kw = {"training": True, "momentum": 0.25, "epsilon": EPSILON}
    return iso.batch_norm(x, mean, variance, weight=w, bias=b, **kw)


@pytest.mark.parametrize("compiled", [False, True])
def test_batch_norm_far_from_zero(backend, compiled):
    """Data far from zero, where E[x²] − E[x]² has no accurate digits left."""
    x, w, b = values((64, 3), 3, 3)
    x += 1000
    func = lambda x: norm(x, tf.zeros(3), tf.zeros(3), tf.constant(w), tf.constant(b))
    y, _, variance = (iso.jit(func) if compiled else func)(tf.constant(x))
    exact = normal(x.astype(np.float64), w, b)
    np.testing.assert_allclose(y, exact[0], atol=3e-4)  # float32 holds a mean of 1000 to 6e-5
    np.testing.assert_allclose(variance, 0.25 * exact[2], rtol=1e-5)


def test_epsilon_as_an_array(backend):
    (x,) = values((6, 3))
    func = lambda x, e: iso.batch_norm(x, tf.zeros(3), tf.ones(3), training=True, epsilon=e)[0]
    exact = normal(x.astype(np.float64), 1, 0)[0]
    for f in (func, iso.jit(func)):
        np.testing.assert_allclose(f(tf.constant(x), tf.constant(EPSILON)), exact, atol=1e-5)


@pytest.mark.parametrize("shape", [(6, 3), (5, 4, 3), (3, 4, 5, 2), (2, 3, 2, 3, 4)])
@pytest.mark.parametrize("parts", ["both", "weight", "bias", "none"])
def test_batch_norm(backend, shape, parts):
    n = shape[-1]
    x, w, b, mean, variance = values(shape, n, n, n, n)
    variance = variance**2
    x += 3
    y, new_mean, new_variance = normal(
        x.astype(np.float64),
        w if parts in ("both", "weight") else 1,
        b if parts in ("both", "bias") else 0,
    )
    given = [tf.constant(a) for a in (x, mean, variance)]
    w = tf.constant(w) if parts in ("both", "weight") else None
    b = tf.constant(b) if parts in ("both", "bias") else None
    found = norm(*given, w, b)
    np.testing.assert_allclose(found[0], y, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found[1], 0.75 * mean + 0.25 * new_mean, rtol=1e-5)
    np.testing.assert_allclose(found[2], 0.75 * variance + 0.25 * new_variance, rtol=1e-5)


def score(x, w, b, mean, variance):
    """One number that depends on all outputs of batch norm."""
    y, mean, variance = norm(x, mean, variance, w, b)
    xp = iso.namespace(x)
    return xp.sum(xp.sin(y) * y) + xp.sum(mean * mean) + xp.sum(variance * mean)


def wanted(which, arrays):
    """The expected gradient for one array; batch statistics in the running ones are constants."""
    x, w, b, mean, variance = (a.astype(np.float64) for a in arrays)
    fixed = normal(x, w, b)[1:]

    def func(a):
        parts = [x, w, b, mean, variance]
        parts[which] = a
        x_, w_, b_, mean_, variance_ = parts
        y = normal(x_, w_, b_)[0]
        mean_, variance_ = 0.75 * mean_ + 0.25 * fixed[0], 0.75 * variance_ + 0.25 * fixed[1]
        return np.sum(np.sin(y) * y) + np.sum(mean_ * mean_) + np.sum(variance_ * mean_)

    return central_gradient(func, [x, w, b, mean, variance][which])


@pytest.mark.parametrize("compiled", [False, True])
def test_derivatives_of_batch_norm(backend, compiled):
    arrays = values((4, 3, 2), 2, 2, 2, 2)
    given = [tf.constant(a) for a in arrays]
    grad = iso.grad(score, argnums=(0, 1, 2, 3, 4))
    for i, g in enumerate((iso.jit(grad) if compiled else grad)(*given)):
        np.testing.assert_allclose(g, wanted(i, arrays), rtol=1e-4, atol=1e-4)


def test_second_derivatives_of_batch_norm(backend):
    arrays = values((4, 3, 2), 2, 2, 2, 2)
    x, *rest = [tf.constant(a) for a in arrays]
    # central differences of central differences, in float64
    step = np.zeros((4, 3, 2))
    step[1, 2, 0] = 1e-3
    row = lambda a: wanted(0, [a, *arrays[1:]])
    column = (row(arrays[0] + step) - row(arrays[0] - step)) / 2e-3
    hessian = iso.hessian(score)(x, *rest)
    np.testing.assert_allclose(hessian[:, :, :, 1, 2, 0], column, rtol=1e-4, atol=5e-6)
    _, along = iso.jvp(
        iso.grad(lambda x: score(x, *rest)), (x,), (tf.constant(step * 1e3, x.dtype),)
    )
    np.testing.assert_allclose(along, column, rtol=1e-4, atol=5e-6)


def test_batch_norm_mapped_over(backend):
    x, w, b = values((5, 4, 3, 2), 2, 2)
    zero = tf.zeros(2)
    each = lambda x: norm(x, zero, zero, tf.constant(w), tf.constant(b))[0]
    found = iso.vmap(each)(tf.constant(x))
    for y, part in zip(found, x.astype(np.float64)):
        np.testing.assert_allclose(y, normal(part, w, b)[0], rtol=1e-5, atol=1e-5)
    slopes = iso.vmap(iso.grad(lambda x: tf.reduce_sum(tf.sin(each(x)))))(tf.constant(x))
    func = lambda a: np.sum(np.sin(normal(a, w, b)[0]))
    for g, part in zip(slopes, x.astype(np.float64)):
        np.testing.assert_allclose(g, central_gradient(func, part), rtol=1e-4, atol=1e-4)


def test_batch_norm_of_other_forms(backend):
    (x,) = values((3, 2, 4))
    first = iso.batch_norm(
        tf.constant(x), tf.zeros(2), tf.ones(2), training=True, data_format="channel_first"
    )[0]
    moved = np.moveaxis(x, 1, -1).astype(np.float64)
    exact = (moved - moved.mean((0, 1))) / np.sqrt(moved.var((0, 1)) + 1e-5)
    np.testing.assert_allclose(first, np.moveaxis(exact, -1, 1), rtol=1e-5, atol=1e-5)
    half = tf.constant(x, tf.bfloat16)
    y, mean, _ = iso.batch_norm(half, tf.zeros(4), tf.ones(4), training=True, epsilon=EPSILON)
    assert (y.dtype, mean.dtype) == (tf.bfloat16, tf.float32)
    exact = normal(x.astype(np.float64), 1, 0)
    # two units in the last place
    np.testing.assert_allclose(tf.cast(y, tf.float64), exact[0], atol=2**-6)
    wide = tf.constant(x, tf.float64)
    given = tf.constant(np.zeros(4)), tf.constant(np.zeros(4))
    found = iso.batch_norm(wide, *given, training=True, momentum=1.0, epsilon=EPSILON)
    for ours, theirs in zip(found, exact):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def program(func, *arrays):
    iso.namespace(arrays[0])  # imports the backend
    compiling = importlib.import_module("isomorph.backends.tensorflow.compiling")
    made = compiling.program(lambda *arrays: (func(*arrays),), arrays, [])
    return getattr(made, "run", made)  # a program for XLA may still be rebuilt without it


def by_xla(func, *arrays):
    return bool(program(func, *arrays).function_def.attr["_XlaMustCompile"].b)


@pytest.mark.skipif(bool(tf.config.list_physical_devices("GPU")), reason="only applies to CPUs")
def test_convolutions_are_left_to_the_kernels_of_a_cpu(backend):
    x, w = map(tf.constant, values((1, 5, 5, 2), (3, 3, 2, 3)))
    assert by_xla(lambda x, w: tf.reduce_sum(x) + tf.reduce_sum(w), x, w)
    total = lambda x, w: tf.reduce_sum(iso.conv2d(x, w, 1, "VALID") ** 2)
    assert not by_xla(total, x, w)
    assert not by_xla(iso.grad(total), x, w)
    loop = lambda x, w: iso.fori_loop(0, 3, lambda i, a: a + total(x, w), tf.zeros(()))
    assert not by_xla(loop, x, w)  # also inside another function
    np.testing.assert_allclose(iso.jit(loop)(x, w), 3 * total(x, w), rtol=1e-5)
    beside = lambda x, w: iso.fori_loop(0, 3, lambda i, a: a * 0.5, total(x, w))
    assert by_xla(beside, x, w)  # a loop gains more from XLA
    np.testing.assert_allclose(iso.jit(beside)(x, w), total(x, w) / 8, rtol=1e-5)


# What `make test-all` runs beside one dtype of each kind and width.
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("float64", "complex64")]
REAL = ("float32", "float64")
# Functions of a matrix, and the dtypes that are left to XLA: it has no determinants and no complex
# solve, and only half of float64's digits.
OF_MATRICES = {
    "det": (lambda linalg, x: linalg.det(x), ()),
    "slogdet": (lambda linalg, x: linalg.slogdet(x).logabsdet, ()),
    "svdvals": (lambda linalg, x: linalg.svdvals(x), ("float32",)),
    "eigvalsh": (lambda linalg, x: linalg.eigvalsh(x), ("float32",)),
    "pinv": (lambda linalg, x: linalg.pinv(x), ("float32",)),
    "solve": (lambda linalg, x: linalg.solve(x, tf.ones_like(x)), REAL),
    "inv": (lambda linalg, x: linalg.inv(x), REAL),
    "qr": (lambda linalg, x: linalg.qr(x).R, (*REAL, "complex64", "complex128")),
}


@pytest.mark.parametrize("name", OF_MATRICES)
@pytest.mark.parametrize("dtype", ["float32", "complex128", *SLOW])
def test_what_xla_lacks_is_left_to_the_kernels(backend, dtype, name):
    x = np.array([[2.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 4.0]]).astype(dtype)
    x = tf.constant(x * (1 + 0.3j) if "complex" in dtype else x)
    linalg = iso.namespace(x).linalg
    call, by_the_compiler = OF_MATRICES[name]
    func = lambda x: call(linalg, x)
    assert by_xla(func, x) is (dtype in by_the_compiler)
    total = lambda x: tf.reduce_sum(tf.abs(func(x)) ** 2)
    found, sure = (f(total)(x) for f in (lambda t: iso.jit(iso.grad(t)), iso.grad))
    close = {"float32": 2e-5, "complex64": 2e-5}.get(dtype, 1e-12)
    np.testing.assert_allclose(found, sure, rtol=0, atol=close * np.abs(sure).max())


def test_what_xla_refuses_is_made_without_it(backend):
    """An operation that the backend does not know: XLA refuses when it compiles."""
    x = tf.constant([[2.0, 1.0], [1.0, 3.0]])
    traced = []

    @iso.jit
    def run(x):
        traced.append(1)
        return tf.linalg.lu(x)[0] * 2.0

    for scale in (1.0, 2.0):
        np.testing.assert_allclose(run(x * scale), tf.linalg.lu(x * scale)[0] * 2.0, rtol=1e-6)
    assert len(traced) == 2  # once for XLA, once without


def test_a_mistake_is_not_taken_for_a_refusal(backend):
    iso.namespace(tf.zeros(1))
    compiling = importlib.import_module("isomorph.backends.tensorflow.compiling")

    def wrong(x):
        raise tf.errors.InvalidArgumentError(None, None, "shapes do not match")

    run = compiling.Compiled(wrong, lambda: lambda x: x)
    with pytest.raises(tf.errors.InvalidArgumentError, match="shapes do not match"):
        run(tf.zeros(1))


@pytest.mark.skipif(bool(tf.config.list_physical_devices("GPU")), reason="only applies to CPUs")
def test_what_stands_beside_convolutions(backend):
    x, w = map(tf.constant, values((1, 5, 5, 2), (3, 3, 2, 3)))
    xp = load(backend)
    seen = []

    def func(x, w):
        y = norm(iso.conv2d(x, w, 1, "VALID"), tf.zeros(3), tf.zeros(3), None, None)[0]
        seen.append(xp.compiles_parts())
        return as_one(xp, lambda y: [tf.reduce_sum(y * y)], y)[0]

    graph = program(func, x, w).graph.as_graph_def()
    assert seen == [False, True]  # once for XLA, once for the kernels
    assert "FusedBatchNormV3" in {n.op for n in graph.node}
    parts = [f for f in graph.library.function if f.attr["_XlaMustCompile"].b]
    assert [n.op for n in parts[0].node_def if n.op in ("Mul", "Sum")] == ["Mul", "Sum"]
    alone = program(lambda x: norm(x, tf.zeros(2), tf.zeros(2), None, None)[0], x)
    assert "FusedBatchNormV3" not in {n.op for n in alone.graph.as_graph_def().node}


@pytest.mark.parametrize("guard", [False, True])
def test_a_step_of_a_network_with_convolutions(backend, guard):
    """Convolutions and optimizer run under different compilers. The result equals NumPy's, which
    compiles nothing.
    """
    with iso.use_key(3):
        net = iso.Sequential(
            iso.Conv2D(2, 3, 3, bias=False), iso.BatchNorm(3), iso.Activation("relu"),
            iso.Conv2D(3, 4, 2).freeze("w"), iso.Conv2D(4, 1, 1),
        )  # fmt: skip
    x, y = values((4, 5, 5, 2), (4, 5, 5, 1))
    loss = lambda model, x, y: iso.mse(model(x), y)
    found = {}
    for name in ("numpy", backend):
        step = iso.train_step(loss, iso.optimizers.adamw(0.05), guard=guard)
        state, batch = step.init(iso.convert(net, name)), iso.convert((x, y), name)
        losses = []
        for _ in range(4):
            state, value = step(state, *batch)
            losses.append(float(value))
        if guard:  # a step that is not finite changes nothing
            before = state.model
            state, value = step(state, batch[0] * np.nan, batch[1])
            assert np.isnan(float(value))
            for old, new in zip(arrays_of(before), arrays_of(state.model)):
                np.testing.assert_array_equal(old, new)
        found[name] = losses, arrays_of(state.model)
    np.testing.assert_allclose(found[backend][0], found["numpy"][0], rtol=1e-5)
    assert found[backend][0][3] < 0.9 * found[backend][0][0]
    for ours, theirs in zip(found[backend][1], found["numpy"][1]):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def arrays_of(model):
    return [np.array(x) for x in tree.flatten((model.v, model.state))[0]]
