"""Where TensorFlow's own behaviour is wrong, silent or crashes: what this backend does instead.

Gradients are compared with central differences in complex128, values with NumPy or by hand.
"""

import logging

import numpy as np
import pytest
from frameworks import ours, tf

import isomorph as iso

pytestmark = pytest.mark.parametrize("backend", ["tensorflow"], indirect=True)

xp = ours("tensorflow")
rng = np.random.default_rng(3)


def normal(*shape):
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def outputs(y):
    return tuple(y) if isinstance(y, tuple) else (y,)


def central_pullback(func, arrays, upstream, step=1e-6):
    """df/dx + i df/dy of Re<upstream, func> for every array, by central differences (error about
    1e-9).
    """

    def loss(arrays):
        outs = outputs(func(*map(tf.constant, arrays)))
        return sum(np.sum((np.conj(u) * np.asarray(y)).real) for u, y in zip(upstream, outs))

    grads = [np.zeros(x.shape, x.dtype) for x in arrays]
    for k, x in enumerate(arrays):
        for i in np.ndindex(x.shape):
            for way in (1, 1j) if np.iscomplexobj(x) else (1,):
                high, low = ([a.copy() for a in arrays] for _ in range(2))
                high[k][i] += step * way
                low[k][i] -= step * way
                grads[k][i] += way * (loss(high) - loss(low)) / (2 * step)
    return grads


def assert_pullback(func, *arrays, compiled=False):
    upstream = []
    for y in outputs(func(*map(tf.constant, arrays))):
        u = normal(*y.shape)
        upstream.append(u if y.dtype.is_complex else u.real)

    def run(*xs):
        _, pullback = iso.vjp(lambda *xs: outputs(func(*xs)), *xs)
        return pullback(tuple(map(tf.constant, upstream)))

    if compiled:
        run = tf.function(run, jit_compile=True, autograph=False)
    expected = central_pullback(func, arrays, upstream)
    for got, grad in zip(run(*map(tf.constant, arrays)), expected, strict=True):
        np.testing.assert_allclose(np.asarray(got), grad, rtol=1e-6, atol=1e-7)


@pytest.fixture
def logged():
    """The messages of TensorFlow's own logger, which it uses instead of Python warnings. That it
    traces much is no matter: it counts over all tests.
    """
    lines = []
    handler = logging.Handler()
    handler.addFilter(lambda record: "triggered tf.function retracing" not in record.getMessage())
    handler.emit = lambda record: lines.append(record.getMessage())
    tf.get_logger().addHandler(handler)
    yield lines
    tf.get_logger().removeHandler(handler)


# Gradients of complex functions.

SQUARE, TALL, WIDE, VECTOR = normal(3, 3), normal(4, 3), normal(3, 4), normal(5)
POSITIVE = SQUARE @ SQUARE.conj().T + 3 * np.eye(3)
SIGNAL = normal(4, 6)


def adjoint(x):
    return xp.conj(xp.matrix_transpose(x))


def hermitian(x):
    return (x + adjoint(x)) / 2


def of_values(vectors, values, others):
    """vectors @ diag(values) @ others, which does not depend on the phases of the vectors."""
    return xp.matmul(vectors * xp.astype(values, xp.complex128), others)


def through_eigh(x):
    values, vectors = xp.linalg.eigh(hermitian(x))
    return of_values(vectors, xp.exp(values / 5), adjoint(vectors)), values


def through_svd(x):
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    return of_values(u, xp.sin(s), vh), s


LINEAR = {
    "det": (lambda x: xp.linalg.det(x), SQUARE),
    "det_batch": (lambda x: xp.linalg.det(x), normal(2, 3, 3)),
    "slogdet": (lambda x: xp.linalg.slogdet(x), SQUARE),
    "inv": (lambda x: xp.linalg.inv(x), SQUARE),
    "solve": (lambda a, b: xp.linalg.solve(a, b), SQUARE, normal(3, 2)),
    "solve_vector": (lambda a, b: xp.linalg.solve(a, b), SQUARE, normal(3)),
    "solve_batch": (lambda a, b: xp.linalg.solve(a, b), normal(2, 3, 3), normal(3, 2)),
    "cholesky": (lambda x: xp.linalg.cholesky(hermitian(x)), POSITIVE),
    "cholesky_upper": (lambda x: xp.linalg.cholesky(hermitian(x), upper=True), POSITIVE),
    "eigh": (through_eigh, POSITIVE),
    "eigh_vectors": (lambda x: xp.abs(xp.linalg.eigh(hermitian(x))[1]), POSITIVE),
    "eigvalsh": (lambda x: xp.linalg.eigvalsh(hermitian(x)), POSITIVE),
    "svd": (through_svd, SQUARE),
    "svd_tall": (through_svd, TALL),
    "svd_wide": (through_svd, WIDE),
    "svd_vectors": (lambda x: xp.abs(xp.linalg.svd(x, full_matrices=False)[0]), TALL),
    "svdvals": (lambda x: xp.linalg.svdvals(x), TALL),
    "qr": (lambda x: xp.linalg.qr(x), SQUARE),
    "qr_tall": (lambda x: xp.linalg.qr(x), TALL),
    "qr_wide": (lambda x: xp.linalg.qr(x), WIDE),
    "pinv_tall": (lambda x: xp.linalg.pinv(x), TALL),
    "pinv_wide": (lambda x: xp.linalg.pinv(x), WIDE),
    "matrix_power": (lambda x: xp.linalg.matrix_power(x, 3), SQUARE),
    "matrix_power_inverse": (lambda x: xp.linalg.matrix_power(x, -2), SQUARE),
    "vecdot": (lambda a, b: xp.vecdot(a, b), VECTOR, normal(5)),
    "einsum": (lambda a, b: xp.einsum("...ij,...jk", a, b), normal(2, 2, 3), SQUARE),
}
LINEAR |= {
    f"vector_norm_{ord}": (lambda x, ord=ord: xp.linalg.vector_norm(x, ord=ord), VECTOR)
    for ord in (2, 1, 3, 0.5, np.inf, -np.inf)
}
LINEAR |= {
    f"matrix_norm_{ord}": (lambda x, ord=ord: xp.linalg.matrix_norm(x, ord=ord), TALL)
    for ord in ("fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf)
}
COMPILED = (
    *("cholesky", "cholesky_upper", "eigh", "eigh_vectors", "eigvalsh", "qr", "qr_tall"),
    *("matrix_power", "vecdot", "einsum", "vector_norm_2", "vector_norm_3", "matrix_norm_fro"),
)


@pytest.mark.parametrize("name", LINEAR)
def test_complex_linear_algebra_pulls_back_by_the_adjoint(backend, name, logged):
    func, *arrays = LINEAR[name]
    assert_pullback(func, *arrays)
    assert logged == []


@pytest.mark.parametrize("name", COMPILED)
def test_complex_linear_algebra_pulls_back_alike_when_compiled(backend, name):
    func, *arrays = LINEAR[name]
    assert_pullback(func, *arrays, compiled=True)


def test_determinants_differentiate_twice(backend):
    def det(x):
        return xp.real((0.3 - 0.7j) * xp.linalg.det(x))

    def slogdet(x):
        sign, log = xp.linalg.slogdet(x)
        return xp.real((0.3 - 0.7j) * sign) * log

    for func in (det, slogdet):
        assert_pullback(iso.grad(func), SQUARE)


TRANSFORMS = {
    "fft": ({}, {"n": 3}, {"n": 8, "axis": 0}, {"norm": "ortho"}, {"norm": "forward"}),
    "ifft": ({}, {"n": 3}, {"n": 8, "axis": 0}, {"norm": "ortho"}, {"norm": "forward"}),
    "fftn": ({}, {"s": (3, 8)}, {"axes": (0,), "norm": "ortho"}),
    "ifftn": ({}, {"s": (3, 8)}, {"axes": (0,), "norm": "ortho"}),
    "rfft": ({}, {"n": 3}, {"n": 9, "axis": 0}, {"norm": "ortho"}),
    "irfft": ({}, {"n": 4}, {"n": 7, "axis": 0}, {"norm": "ortho"}),
    "rfftn": ({}, {"s": (3, 9)}, {"axes": (0,), "norm": "ortho"}),
    "irfftn": ({}, {"s": (3, 7)}, {"axes": (0,), "norm": "ortho"}),
    "hfft": ({}, {"n": 4}, {"n": 7, "axis": 0}, {"norm": "ortho"}),
    "ihfft": ({}, {"n": 3}, {"n": 9, "axis": 0}, {"norm": "ortho"}),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_fourier_transforms_pull_back_by_the_adjoint(backend, name, compiled, logged):
    signal = SIGNAL.real.copy() if name in ("rfft", "rfftn", "ihfft") else SIGNAL
    for options in TRANSFORMS[name]:
        func = lambda x, options=options: getattr(xp.fft, name)(x, **options)
        assert_pullback(func, signal, compiled=compiled)
    assert logged == []


@pytest.mark.parametrize("name", ["sqrt", "reciprocal", "asin", "acos", "atan", "tan", "log"])
def test_complex_functions_pull_back_alike_when_compiled(backend, name):
    assert_pullback(lambda x: getattr(xp, name)(x), 0.7 * VECTOR, compiled=True)


def test_a_cast_to_complex_passes_the_real_part_back_without_a_warning(backend, logged):
    kernel = normal(6)

    def filtered(x):
        spectrum = xp.fft.fft(xp.astype(x, xp.complex128)) * tf.constant(kernel)
        return xp.fft.ifft(spectrum)

    assert_pullback(filtered, SIGNAL.real.copy())
    for dtype in ("int32", "bool", "float16", "float32"):
        got = xp.astype(xp.astype(tf.constant([0, 1]), xp.dtype(dtype)), xp.complex64)
        np.testing.assert_array_equal(np.asarray(got), np.array([0, 1], np.complex64))
    assert logged == []


# Conversion.


@pytest.mark.parametrize("target", ["to_pt", "to_jx"])
def test_what_no_other_framework_holds_is_refused(backend, target):
    name = {"to_pt": "torch", "to_jx": "jax"}[target]
    handle = tf.Variable(1.0).handle
    for x in (tf.constant("a"), tf.constant(["a", "bc"]), handle):
        assert xp.lend(x) is None
        with pytest.raises(TypeError):
            iso.convert(x, name)
    with pytest.raises(TypeError, match="to_numpy: .*got resource"):
        iso.to_numpy(handle)


def test_strings_are_objects_to_numpy(backend):
    got = iso.to_numpy([tf.constant("a"), tf.constant(["b", "cd"])])
    assert [x.dtype.kind for x in got] == ["O", "O"]
    assert got[0].shape == ()
    assert got[0].item() == b"a"
    assert got[1].tolist() == [b"b", b"cd"]


@pytest.mark.parametrize("target", ["to_pt", "to_jx", "to_np"])
def test_variables_and_slices_are_read_before_they_move(backend, target):
    name = {"to_pt": "torch", "to_jx": "jax", "to_np": "numpy"}[target]
    assert np.asarray(iso.convert(tf.Variable([1.0, 2.0]), name)).tolist() == [1.0, 2.0]
    moved = iso.convert(slices(), name)
    assert np.asarray(moved).tolist() == [[1.0, 2.0], [0.0, 0.0], [8.0, 10.0]]


def test_to_numpy_refuses_to_lose_a_gradient(backend):
    seen = []

    def loses(x):
        return xp.sum(x * tf.constant(iso.to_numpy(2 * x)))

    def keeps(x):
        seen.append(iso.to_numpy(iso.stop_gradient(2 * x)))
        assert iso.to_numpy(x > 1).tolist() == [False, True]  # bool has no gradient
        return xp.sum(x * tf.constant(seen[0]))

    x = tf.constant([1.0, 2.0])
    for move in (loses, lambda x: xp.sum(x) + iso.convert(x, "torch").sum().item()):
        with pytest.raises(TypeError, match=r"gradient would be lost; use iso.stop_gradient\(x\)"):
            iso.grad(move)(x)
    np.testing.assert_array_equal(iso.to_numpy(iso.grad(keeps)(x)), [2.0, 4.0])
    assert seen[0].tolist() == [2.0, 4.0]
    assert iso.to_numpy(x).tolist() == [1.0, 2.0]


def test_to_numpy_of_a_watched_variable_says_how(backend):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape():
        with pytest.raises(TypeError, match="preserve_type=False"):
            iso.to_numpy(x)
        got = iso.to_numpy(iso.stop_gradient(x, preserve_type=False))
    assert got.tolist() == [1.0, 2.0]
    assert iso.to_numpy(x).tolist() == [1.0, 2.0]


def test_to_numpy_of_a_symbolic_tensor_raises(backend):
    for move in (iso.to_numpy, lambda x: iso.convert(x, "torch")):
        with pytest.raises(TypeError, match="symbolic.*outside of tf.function"):
            tf.function(move, autograph=False)(tf.ones(2))


# Indexed slices.


def slices():
    """Row 0 once and row 2 twice: rows of the same index add up."""
    values = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    return tf.IndexedSlices(values, tf.constant([0, 2, 2]), tf.constant([3, 2]))


def test_indexed_slices_are_differentiated_as_dense_arrays(backend, logged):
    got = iso.grad(lambda x: xp.sum(x * x))(slices())
    np.testing.assert_array_equal(np.asarray(got), [[2.0, 4.0], [0.0, 0.0], [16.0, 20.0]])
    traced = tf.function(iso.grad(lambda x: xp.sum(x * x)), autograph=False)
    np.testing.assert_array_equal(np.asarray(traced(slices())), np.asarray(got))
    unknown = tf.IndexedSlices(tf.ones((1, 2)), tf.constant([0]))
    with pytest.raises(ValueError, match="indexed slices .*dense shape"):
        iso.grad(lambda x: xp.sum(x))(unknown)
    assert logged == []


# Values inside sequences.


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([np.ones(2), np.ones(2)], "float64"),
        ([np.float64(1)], "float64"),
        ([[np.float64(0.1), 2], [3, 4.5]], "float64"),
        ([np.float32(1), 2.0], "float32"),
        ((np.float16(1), (2.0)), "float16"),
        ([np.int8(1), 2], "int8"),
        ([np.int64(1), 2.5], "float64"),
        ([np.array([1, 2], np.int32), np.array([0.5, 1.5])], "float64"),
        ([np.complex128(1j), 1.0], "complex128"),
        ([1.0, 2], "float32"),
        ([1, 2], "int64"),
        ([True, False], "bool"),
        ([1j, 2.0], "complex64"),
        ([], "float32"),
    ],
    ids=lambda v: None if isinstance(v, str) else "",
)
def test_arrays_in_a_sequence_decide_its_dtype(backend, values, dtype):
    got = xp.asarray(values)
    assert got.dtype.name == dtype
    np.testing.assert_array_equal(np.asarray(got), np.asarray(values).astype(dtype))


def test_tensors_in_a_sequence_decide_its_dtype(backend):
    one = lambda name: tf.ones((), name)
    for values, expected, dtype in [
        ([one("float64"), 0.1], [1, 0.1], "float64"),
        ([[one("float64"), 0.1], [0.1, 2]], [[1, 0.1], [0.1, 2]], "float64"),
        ([one("float16"), 1], [1, 1], "float16"),
        ([one("float32"), np.float64(0.1)], [1, 0.1], "float64"),
        ([one("int8"), 3], [1, 3], "int8"),
        ([tf.Variable(1.0), 0.5], [1, 0.5], "float32"),
        ([one("complex64"), np.float64(0.5)], [1, 0.5], "complex128"),
    ]:
        got = xp.asarray(values)
        assert got.dtype.name == dtype
        np.testing.assert_array_equal(np.asarray(got), np.array(expected, dtype))
    with pytest.raises(TypeError, match="asarray: .*int8, got float"):
        xp.asarray([one("int8"), 2.5])
    assert xp.asarray([one("float32"), 2.5], dtype=xp.int32).dtype is tf.int32
    grad = iso.grad(lambda x: xp.sum(xp.asarray([[x, 2.0], [3.0, x * x]]) ** 2))(tf.constant(3.0))
    assert float(grad) == 2 * 3 + 4 * 27  # d/dx (x² + x⁴)


# Values that no kernel gives.


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_the_constant_of_a_border_has_a_gradient(backend, compiled):
    func = lambda x, c: xp.pad(x, ((1, 2), (0, 1)), constant_values=c)
    x, c = np.array([[2.0, 3.0]]), np.array(5.0)
    expected = np.pad(x, ((1, 2), (0, 1)), constant_values=5.0)
    np.testing.assert_array_equal(np.asarray(func(tf.constant(x), tf.constant(c))), expected)
    assert_pullback(func, x, c, compiled=compiled)
    assert_pullback(lambda x: xp.pad(x, ((1, 1),), constant_values=x[0]), x[0], compiled=compiled)
    with pytest.raises(ValueError, match="pad: needed a 0-d constant_values, got \\(2,\\)"):
        xp.pad(tf.ones(2), 1, constant_values=tf.ones(2))


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("...ij,...jk", [(4, 2, 3), (4, 3, 5)]),
        ("...ij,jk", [(4, 2, 3), (3, 5)]),
        ("ij...,jk", [(2, 3, 4), (3, 5)]),
        ("...ii", [(4, 3, 3)]),
        ("ba", [(2, 3)]),
        ("bA,Ac", [(2, 3), (3, 4)]),
        ("i,i", [(3,), (3,)]),
        ("i,j", [(3,), (2,)]),
        (" ij , jk ", [(2, 3), (3, 4)]),
        ("ij,jk,kl", [(2, 3), (3, 4), (4, 5)]),
    ],
    ids=lambda v: None if isinstance(v, str) else "",
)
def test_einsum_finds_its_output_as_numpy_does(backend, equation, shapes):
    arrays = [rng.standard_normal(shape) for shape in shapes]
    expected = np.einsum(equation, *arrays)
    got = xp.einsum(equation, *map(tf.constant, arrays))
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-12, atol=1e-12)
    mixed = [tf.constant(x, "float32" if i else "float64") for i, x in enumerate(arrays)]
    got = xp.einsum(equation, *mixed)
    assert got.dtype is tf.float64
    # one operand was rounded to float32
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_nothing_is_chosen_from_nothing(backend, name):
    func, empty = getattr(xp, name), tf.zeros((0, 3))
    for axis in (None, 0, -2):
        with pytest.raises(ValueError, match=f"^{name}: needed at least one element"):
            func(empty, axis=axis)
    assert tuple(func(empty, axis=1).shape) == (0,)
    with pytest.raises(ValueError, match=f"^{name}: needed at least one element"):
        tf.function(func, autograph=False)(tf.zeros(0, tf.int64))


def test_an_empty_matrix_has_rank_zero_and_an_empty_inverse(backend):
    assert tuple(xp.linalg.pinv(tf.zeros((0, 3))).shape) == (3, 0)
    assert int(xp.linalg.matrix_rank(tf.zeros((0, 3)))) == 0


@pytest.mark.parametrize("graph", [False, True], ids=["eager", "graph"])
def test_maximum_and_minimum_keep_nan_and_promote(backend, graph):
    run = (lambda f: tf.function(f, autograph=False, jit_compile=True)) if graph else lambda f: f
    a, b = np.array([1.0, np.nan, 3.0], np.float32), np.array([2.0, 2.0, np.nan])
    for name in ("maximum", "minimum"):
        func = getattr(xp, name)
        got = run(func)(tf.constant(a), tf.constant(b))
        assert got.dtype is tf.float64
        np.testing.assert_array_equal(np.asarray(got), getattr(np, name)(a, b))
        got = run(lambda x, func=func: func(x, 2.0))(tf.constant(a))
        np.testing.assert_array_equal(np.asarray(got), getattr(np, name)(a, np.float32(2)))
        with pytest.raises(TypeError, match=f"{name}: needed a real dtype, got complex64"):
            func(tf.constant([1j], tf.complex64), tf.constant([1j], tf.complex64))


def test_where_keeps_the_sign_of_zero(backend):
    x, no = tf.constant([1.0]), tf.constant([False])
    assert not np.signbit(np.asarray(xp.where(no, x, 0.0)))[0]
    assert np.signbit(np.asarray(xp.where(no, x, -0.0)))[0]


def test_messages_name_dtypes_plainly(backend):
    for call, message in [
        (lambda: xp.add(tf.ones(1), tf.ones(1, tf.int32)), "got float32 and int32"),
        (lambda: xp.less(tf.constant([1j]), tf.constant([1j])), "needed a real dtype, got complex"),
        (lambda: xp.add(tf.constant("a"), tf.constant("b")), "numeric dtype, got string"),
        (lambda: xp.astype(tf.constant([1j]), tf.float32), "got complex128"),
        (lambda: xp.linalg.det(tf.ones((2, 2), tf.int32)), "det: needed a floating dtype, got int"),
    ]:
        with pytest.raises(TypeError, match=message) as caught:
            call()
        assert "<dtype" not in str(caught.value)
