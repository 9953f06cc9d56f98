"""Where derivatives need a convention or do not exist; matrices that are empty or not finite; and
errors.
"""

import numpy as np
import pytest
from linalg_cases import (
    CASES,
    GENERAL,
    TALL,
    A,
    B,
    L,
    differences,
    numpy_namespace,
    quick,
    total,
    values,
    weighed,
)

import isomorph as iso
from isomorph.backends.composed import Backend

W = np.arange(9.0).reshape(3, 3)
EYE = np.eye(3)


def slope(backend, xp, func, at):
    """The gradient of a function of one matrix, weighed by W."""
    grad = iso.grad(lambda a: xp.sum(func(a) * xp.asarray(W)))
    return values(quick(backend, grad)(xp.asarray(at)))


def test_equal_eigenvalues_need_no_care(backend, xp):
    """At the identity f(A + E) is f(1) I + f'(1) E to first order."""
    close = {"rtol": 1e-13, "atol": 1e-13}
    np.testing.assert_allclose(slope(backend, xp, L.expm, EYE), np.e * W, **close)
    np.testing.assert_allclose(slope(backend, xp, L.sqrtm, EYE), W / 2, **close)
    np.testing.assert_allclose(slope(backend, xp, L.logm, EYE), W, **close)
    np.testing.assert_allclose(
        slope(backend, xp, lambda a: L.polar(a)[0], EYE), (W - W.T) / 2, **close
    )
    np.testing.assert_allclose(
        slope(backend, xp, lambda a: L.polar(a)[1], EYE), (W + W.T) / 2, **close
    )
    np.testing.assert_allclose(slope(backend, xp, L.pinv, EYE), -W, **close)
    # through eigenvalues alone: the sum of squares is the trace of the square
    squares = lambda a: xp.sum(xp.real(L.eig(a)[0] ** 2))
    found = quick(backend, iso.grad(squares))(xp.asarray(EYE))
    np.testing.assert_allclose(values(found), 2 * EYE, **close)


def test_vectors_of_equal_eigenvalues_have_no_derivative(backend, xp):
    """Here the eigenvectors, the axes, would turn by any angle for the least change."""
    projector = lambda a: xp.real(L.eig(a)[1][:, :1] * xp.conj(L.eig(a)[1][:, 0]))
    with np.errstate(all="ignore"):
        found = slope(backend, xp, projector, EYE)
    assert not np.isfinite(found).all()


def test_a_defective_matrix_has_no_gradient(backend, xp):
    block = xp.asarray(np.array([[1.0, 1.0], [0.0, 1.0]]))
    for part in (0, 1):
        size = lambda a, part=part: weighed(xp, xp.abs(L.eig(a)[part]) ** 2)
        assert np.isnan(values(quick(backend, iso.grad(size))(block))).all()
    squares = lambda a: xp.sum(xp.real(L.eigvals(a) ** 2))
    assert np.isnan(values(quick(backend, iso.grad(squares))(block))).all()


CONSTANT_RANK = {
    "pinv": lambda xp, a: L.pinv(a),
    "lstsq": lambda xp, a: L.lstsq(a, xp.asarray(np.cos(W))).x,
    "residuals": lambda xp, a: L.lstsq(a, xp.asarray(np.cos(W))).residuals,
}


@pytest.mark.parametrize("name", CONSTANT_RANK)
def test_gradients_at_constant_rank(backend, xp, name):
    """A matrix of rank 1 that stays so: u vᵀ with a moving u and v."""
    u, v = np.array([[1.0], [2.0], [3.0]]), np.array([[1.0, 0.0, 1.0]])

    def moved(u, v):
        xp = iso.namespace(u)
        return weighed(xp, CONSTANT_RANK[name](xp, u @ v))

    grad = quick(backend, iso.grad(moved, argnums=(0, 1)))
    found = grad(xp.asarray(u), xp.asarray(v))
    for got, want in zip(found, differences(moved, [u, v])):  # their error is about 1e-9
        np.testing.assert_allclose(values(got), want, rtol=1e-6, atol=1e-7)


def test_a_root_of_zero_has_no_gradient(backend, xp):
    assert np.isnan(slope(backend, xp, L.sqrtm, np.diag([4.0, 1.0, 0.0]))).any()


def test_real_matrices_without_a_real_result(backend, xp):
    for a in (np.diag([1.0, -4.0]), np.array([[-1.0, 1.0], [0.0, 2.0]])):
        assert np.isnan(values(L.sqrtm(xp.asarray(a)))).any()
        assert np.isnan(values(L.logm(xp.asarray(a)))).any()


NAN = ("expm", "sqrtm", "logm", "lu", "eig", "polar", "lstsq, tall", "solve_sylvester",
       "solve_triangular")  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", NAN)
def test_matrices_that_are_not_finite(backend, xp, name):
    """They give NaN (LU may keep an infinity), soon, and leave the others of the batch alone."""
    call, arrays = CASES[name]
    first, *rest = arrays
    run = quick(backend, lambda *arrays: call(xp, *arrays))
    whole = values(run(*map(xp.asarray, arrays)))
    for wrong in (np.nan, np.inf):
        if name == "solve_triangular" and wrong == np.inf:
            continue  # dividing by infinity is zero
        broken = first.copy()
        broken[1, 0, 0] = wrong
        found = values(run(xp.asarray(broken), *map(xp.asarray, rest)))
        np.testing.assert_allclose(found[0], whole[0], rtol=1e-13, atol=1e-14)
        if name == "lu":
            assert not np.isfinite(found[1]).all()
        elif name == "solve_triangular":  # the row of the NaN, and those that need it
            assert np.isnan(found[1]).any(axis=-2).all()
        else:
            assert np.isnan(found[1]).all()


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("lower", [False, True])
def test_a_triangle_with_a_nan_where_lapack_raises(backend, monkeypatch, lower, unit):
    """Some builds of LAPACK take a NaN for a zero. A matrix that is singular still raises."""
    composed = Backend.solve_triangular

    def strict(xp, a, b, lower, trans, unit):
        if bool(xp.any(xp.isnan(xp.tril(a) if lower else xp.triu(a)))):
            raise np.linalg.LinAlgError("Singular matrix")
        return composed(xp, a, b, lower, trans, unit)

    monkeypatch.setattr(Backend, "solve_triangular", strict)
    ours = lambda a: L.solve_triangular(a, B, lower=lower, unit_diagonal=unit)
    place = (2, 0) if lower else (0, 2)
    broken = GENERAL.copy()
    broken[1][place] = np.nan
    found, whole = ours(broken), ours(GENERAL)
    np.testing.assert_array_equal(found[0], whole[0])
    assert np.isnan(found[1]).all()
    slopes = iso.grad(lambda a: np.sum(ours(a)))(broken)
    np.testing.assert_array_equal(slopes[0], iso.grad(lambda a: np.sum(ours(a)))(GENERAL)[0])
    other = GENERAL.copy()
    other[1][place[::-1]] = np.nan  # in the triangle that is not read
    np.testing.assert_array_equal(ours(other), whole)
    broken[0, 1, 1] = 0.0
    if unit:
        assert np.isfinite(ours(broken)[0]).all()
    else:
        with pytest.raises(np.linalg.LinAlgError):
            ours(broken)


SINGULAR, INDEFINITE = np.array([[1.0, 2.0], [2.0, 4.0]]), np.array([[1.0, 2.0], [2.0, 1.0]])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_singular_matrices_raise_where_it_is_said(backend, xp):
    """NumPy, TensorFlow and PyTorch raise; JAX has inf or NaN. A triangle raises on NumPy only."""
    calls = {
        "solve": lambda: L.solve(xp.asarray(SINGULAR), xp.asarray(np.ones(2))),
        "inv": lambda: L.inv(xp.asarray(SINGULAR)),
        "solve_sylvester": lambda: L.solve_sylvester(
            xp.asarray(SINGULAR), xp.asarray(-SINGULAR), xp.asarray(np.ones((2, 2)))
        ),
        "cho_factor": lambda: L.cho_factor(xp.asarray(INDEFINITE))[0],
        "cholesky": lambda: L.cholesky(xp.asarray(INDEFINITE)),
        "solve_triangular": lambda: L.solve_triangular(
            xp.asarray(np.diag([1.0, 0.0])), xp.asarray(np.ones(2))
        ),
    }
    for name, call in calls.items():
        if backend == "jax" or (name == "solve_triangular" and backend != "numpy"):
            assert not np.isfinite(values(call())).all(), name
        else:  # each framework has an error of its own
            with pytest.raises(Exception, match="(?i)singular|positive|invertible"):
                call()


@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
def test_singular_matrices_in_compiled_loops(backend, xp):
    """Nothing raises there, and what cannot be found is not finite, or as large as 1 over the
    rounding error. The other matrices of a batch are right.
    """
    regular = np.array([[4.0, 2.0], [2.0, 5.0]])

    def both(singular, indefinite):
        def step(i, state):
            return L.inv(singular + 0 * state[0]), L.cholesky(indefinite)

        return iso.fori_loop(0, 1, step, (0 * singular, 0 * indefinite))

    given = [xp.asarray(np.stack([a, regular])) for a in (SINGULAR, INDEFINITE)]
    inverse, factor = map(values, iso.jit(both)(*given))
    assert not np.abs(inverse[0]).max() < 1e15
    assert np.isnan(factor[0]).any()
    np.testing.assert_allclose(inverse[1], np.linalg.inv(regular), rtol=1e-14)
    np.testing.assert_allclose(factor[1], [[2, 0], [1, 2]], rtol=1e-14)


@pytest.mark.host_only("empty arrays need no memory")
def test_empty_batches(backend, xp):
    for name in ("solve_triangular", "cho_solve", "lstsq, tall", "lu", "expm", "sqrtm", "logm",
                 "polar", "solve_sylvester", "eig", "logdet", "kron", "block_diag", "toeplitz",
                 "pinv"):  # fmt: skip
        call, arrays = CASES[name]
        run = quick(backend, lambda *arrays, call=call: call(xp, *arrays))
        full = call(numpy_namespace(), *arrays)
        given = [xp.asarray(x[:0]) for x in arrays]
        found = run(*given)
        assert tuple(found.shape) == (0, *full.shape[1:])
        assert values(found).dtype == full.dtype
        grad = quick(backend, iso.grad(total(xp, name)))
        assert tuple(grad(*given).shape) == tuple(given[0].shape)


def test_matrices_without_rows(backend, xp):
    none = xp.asarray(np.zeros((2, 0, 0)))
    for func in (L.expm, L.sqrtm, L.logm, lambda a: L.lu(a)[1], lambda a: L.polar(a)[0]):
        assert tuple(func(none).shape) == (2, 0, 0)
    assert tuple(L.eigvals(none).shape) == (2, 0)
    np.testing.assert_array_equal(values(L.logdet(none)), [0, 0])
    assert tuple(L.solve_triangular(none, xp.asarray(np.zeros((2, 0, 3)))).shape) == (2, 0, 3)
    assert tuple(
        L.lstsq(xp.asarray(np.zeros((2, 0, 3))), xp.asarray(np.zeros((2, 0, 1)))).x.shape
    ) == (2, 3, 1)
    assert tuple(L.toeplitz(xp.asarray(np.zeros(0))).shape) == (0, 0)


ERRORS = {
    r"expm: needed a as square matrices, got 4 rows and 2 columns": lambda xp, a, t, b: L.expm(t),
    r"sqrtm: needed a with at least 2 axes, got shape \(3,\)": lambda xp, a, t, b: L.sqrtm(a[0, 0]),
    r"logm: needed a of real or complex floating dtype, got int": (
        lambda xp, a, t, b: L.logm(xp.astype(a, xp.int32))
    ),
    r"eig: needed a as square matrices": lambda xp, a, t, b: L.eig(t),
    r"logdet: needed a as square matrices": lambda xp, a, t, b: L.logdet(t),
    r"cho_factor: needed a as square matrices": lambda xp, a, t, b: L.cho_factor(t),
    r"cho_solve: needed \(factor, lower\), as cho_factor returns them, got a": (
        lambda xp, a, t, b: L.cho_solve(a, b)
    ),
    r'solve_triangular: needed trans as 0, 1, 2, "N", "T" or "C", got 3': (
        lambda xp, a, t, b: L.solve_triangular(a, b, trans=3)
    ),
    r"solve_triangular: needed b with 3 rows, like the matrices, got 4": (
        lambda xp, a, t, b: L.solve_triangular(a, t)
    ),
    r"got 2 \(shape \(2, 3\)\); for a batch of vectors write b\[..., None\]": (
        lambda xp, a, t, b: L.solve_triangular(a, b[..., 0])
    ),
    r"lstsq: needed b as a vector or matrices, got shape \(\)": (
        lambda xp, a, t, b: L.lstsq(a, b[0, 0, 0])
    ),
    r"solve_sylvester: needed q with 3 rows and 3 columns, like a and b, got shape \(2, 3, 2\)": (
        lambda xp, a, t, b: L.solve_sylvester(a, a, b)
    ),
    r"solve_triangular: needed batches that broadcast": (
        lambda xp, a, t, b: L.solve_triangular(a, xp.concat([b, b[:1]], axis=0))
    ),
    r'polar: needed side "right" or "left", got \'up\'': lambda xp, a, t, b: L.polar(a, side="up"),
    r"kron: needed b with at least 2 axes, got shape \(2,\)": (
        lambda xp, a, t, b: L.kron(a, b[0, 0])
    ),
    r"kron: needed batches that broadcast": (
        lambda xp, a, t, b: L.kron(xp.concat([a, a[:1]], axis=0), b)
    ),
    r"block_diag: needed at least one array, got none": lambda xp, a, t, b: L.block_diag(),
    r"block_diag: needed array 1 with at least 2 axes": (
        lambda xp, a, t, b: L.block_diag(a, b[0, 0])
    ),
    r"toeplitz: needed c with at least 1 axis, got shape \(\)": (
        lambda xp, a, t, b: L.toeplitz(a[0, 0, 0])
    ),
    r"expm: needed an array as a, got list": lambda xp, a, t, b: L.expm([[1.0]]),
}


@pytest.mark.parametrize("words", ERRORS)
def test_errors(backend, xp, words):
    with pytest.raises((ValueError, TypeError), match=words):
        ERRORS[words](xp, *map(xp.asarray, (GENERAL, TALL, B)))


def test_broadcasting(backend, xp):
    one, many = xp.asarray(GENERAL[0]), xp.asarray(np.stack([B, 2 * B]))
    found = L.solve_triangular(one, many)
    assert tuple(found.shape) == (2, 2, 3, 2)
    want = np.linalg.solve(np.triu(GENERAL[0]), np.stack([B, 2 * B]))
    np.testing.assert_allclose(values(found), want, rtol=1e-13, atol=1e-14)
    rows = L.toeplitz(xp.asarray(A[:, 0]), xp.asarray(A[0, 1]))
    assert tuple(rows.shape) == (2, 3, 3)
    np.testing.assert_array_equal(values(rows)[1, 0, 1:], A[0, 1, 1:])
