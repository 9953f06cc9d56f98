"""Values of `iso.linalg` against SciPy, dtypes, and native functions against the composed ones."""

import mpmath
import numpy as np
import pytest
import scipy.linalg
from frameworks import BACKENDS, enable_x64
from linalg_cases import (
    BC,
    COMPLEX,
    GENERAL,
    POSITIVE,
    TALL,
    WIDE,
    A,
    B,
    C,
    L,
    adjoint,
    quick,
    values,
)

import isomorph as iso
from isomorph.backends.composed import Backend
from isomorph.core.dispatch import load
from oracles import kind_of

S = scipy.linalg
CLOSE = {"rtol": 1e-12, "atol": 1e-13}  # conditions below 100, a few dozen roundings


def each(func, *arrays):
    """A function of SciPy, matrix by matrix."""
    found = [func(*row) for row in zip(*arrays)]
    if not isinstance(found[0], tuple):
        return np.stack(found)
    return tuple(map(np.stack, zip(*found)))


def checked(backend, got, want, **close):
    assert kind_of(got) == backend
    np.testing.assert_allclose(values(got), want, **(close or CLOSE))


@pytest.mark.parametrize("trans", [0, "T", 2])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_solve_triangular(backend, xp, lower, trans, unit):
    how = {"lower": lower, "trans": trans, "unit_diagonal": unit}
    for a, b in ((GENERAL, B), (COMPLEX, BC)):
        want = each(lambda a, b: S.solve_triangular(a, b, **how), a, b)
        checked(backend, L.solve_triangular(xp.asarray(a), xp.asarray(b), **how), want)
    vector = L.solve_triangular(xp.asarray(GENERAL), xp.asarray(B[0, :, 0]), **how)
    want = [S.solve_triangular(a, B[0, :, 0], **how) for a in GENERAL]
    checked(backend, vector, np.stack(want))


def test_large_triangles(backend, xp):
    """Several blocks. Substitution does not feel that rows differ in size, though the condition of
    this matrix is 1e20.
    """
    n = 150
    a = np.triu(np.random.default_rng(8).uniform(0.1, 1, (n, n))) / n + np.eye(n)
    a = a * np.logspace(0, -20, n)[:, None]
    b = a @ np.ones((n, 1))
    found = L.solve_triangular(xp.asarray(a), xp.asarray(b))
    checked(backend, found, np.ones((n, 1)), rtol=1e-13)
    turned = xp.asarray(a.T), xp.asarray(b)
    composed = Backend.solve_triangular(load(backend), *turned, True, "T", False)
    checked(backend, composed, np.ones((n, 1)), rtol=1e-13)


def test_cholesky_solutions(backend, xp):
    for a, b in ((POSITIVE, B), (C @ adjoint(C) + np.eye(3), BC)):
        want = np.linalg.solve(a, b)
        for lower in (False, True):
            one_triangle = np.tril(a) if lower else np.triu(a)
            factor = L.cho_factor(xp.asarray(one_triangle), lower=lower)
            assert factor[1] is lower
            full = each(lambda a: np.linalg.cholesky(a), a)
            checked(backend, factor[0], full if lower else adjoint(full))
            checked(backend, L.cho_solve(factor, xp.asarray(b)), want)
    want = np.linalg.solve(a, BC[0, :, 0])
    checked(backend, L.cho_solve(factor, xp.asarray(BC[0, :, 0])), want)


DEFICIENT = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0], [3.0, 4.0, 7.0]])


@pytest.mark.parametrize("a", [TALL, WIDE, C[:, :, :2], DEFICIENT[None], adjoint(DEFICIENT)[None]])
def test_least_squares(backend, xp, a):
    rng = np.random.default_rng(10)
    normal = lambda: rng.normal(size=(*a.shape[:-1], 2))
    b = normal() + (1j * normal() if np.iscomplexobj(a) else 0)
    found = quick(backend, L.lstsq)(xp.asarray(a), xp.asarray(b))
    for i in range(len(a)):
        x, _, rank, s = S.lstsq(a[i], b[i], cond=1e-12)
        checked(backend, found.x[i], x, rtol=1e-12, atol=1e-12)
        assert int(values(found.rank)[i]) == rank
        np.testing.assert_allclose(values(found.singular_values)[i], s, rtol=1e-12, atol=1e-14)
        rest = np.sum(np.abs(b[i] - a[i] @ x) ** 2, 0)
        np.testing.assert_allclose(values(found.residuals)[i], rest, rtol=1e-11, atol=1e-13)
    vector = quick(backend, L.lstsq)(xp.asarray(a[0]), xp.asarray(b[0, :, 0]))
    np.testing.assert_allclose(values(vector.x), values(found.x)[0, :, 0], **CLOSE)
    assert tuple(vector.residuals.shape) == ()


def test_the_cut_of_small_singular_values(backend, xp):
    a = np.diag([1.0, 1e-3])
    found = L.lstsq(xp.asarray(a), xp.asarray(np.ones(2)), rcond=1e-2)
    np.testing.assert_allclose(values(found.x), [1, 0], **CLOSE)
    assert int(found.rank) == 1
    assert int(L.lstsq(xp.asarray(a), xp.asarray(np.ones(2))).rank) == 2


@pytest.mark.parametrize("a", [GENERAL, TALL, WIDE, COMPLEX, np.ones((1, 3, 3))])
def test_lu(backend, xp, a):
    want = each(S.lu, a)
    for got, part in zip(L.lu(xp.asarray(a)), want):
        checked(backend, got, part)
    low, high = L.lu(xp.asarray(a), permute_l=True)
    checked(backend, low, want[0] @ want[1])
    checked(backend, high, want[2])


FUNCTIONS = {
    "expm": (L.expm, S.expm, [A, C, 30 * A, -1e6 * POSITIVE, 1e-9 * A]),
    "sqrtm": (L.sqrtm, S.sqrtm, [GENERAL, COMPLEX, POSITIVE, C, 1e-12 * GENERAL]),
    "logm": (L.logm, S.logm, [GENERAL, COMPLEX, POSITIVE, C]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_matrices(backend, xp, name):
    ours, theirs, given = FUNCTIONS[name]
    for a in given:
        want = each(theirs, a)
        # SciPy is no more exact: thirty squarings, or an eigenvalue near the cut, cost two digits
        scale = np.abs(want).max()
        checked(backend, ours(xp.asarray(a)), want, rtol=1e-11, atol=1e-13 * scale)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exponentials_far_from_normal(backend, xp, dtype):
    """Large numbers beside a small diagonal: halving by the norm would lose all digits."""
    eps = float(np.finfo(dtype).eps)
    for c in (1e2, 1e4, 1e7) if dtype == "float32" else (1e2, 1e4, 1e7, 1e10):
        for a in (
            [[1, c], [0, 1]],
            [[1, c], [0, -1]],
            [[0, c], [-1 / c, 0]],
            [[1, c, c], [0, 0.5, c], [0, 0, -1]],
        ):
            a = np.array(a, dtype)
            with mpmath.workdps(120):
                want = mpmath.expm(mpmath.matrix(a.astype(np.float64)))
            want = np.array(want.tolist(), dtype=np.float64)
            found = values(L.expm(xp.asarray(a)))
            assert found.dtype == dtype
            error = np.abs(found - want)
            assert error.max() <= 64 * eps * np.abs(want).max(), (a, found, want)
            # also entry by entry: thirty squarings cost three digits beside numbers of 1e20
            small = np.where(want == 0, 1, np.abs(want))
            assert (error / small).max() <= 2000 * eps, (a, found, want)


def test_the_logarithm_near_the_identity(backend, xp):
    """Small numbers keep their digits, which SciPy loses."""
    a = np.eye(3) + 1e-9 * A
    small = a - np.eye(3)  # exact
    checked(backend, L.logm(xp.asarray(a)), small - small @ small / 2, rtol=1e-13, atol=1e-24)


def test_a_jordan_block(backend, xp):
    """No full set of eigenvectors: known in closed form."""
    block = 4 * np.eye(3) + np.eye(3, k=1)
    root = 2 * np.eye(3) + np.eye(3, k=1) / 4 - np.eye(3, k=2) / 64
    checked(backend, L.sqrtm(xp.asarray(block)), root)
    log = np.log(4) * np.eye(3) + np.eye(3, k=1) / 4 - np.eye(3, k=2) / 32
    checked(backend, L.logm(xp.asarray(block)), log)
    power = np.exp(4) * (np.eye(3) + np.eye(3, k=1) + np.eye(3, k=2) / 2)
    checked(backend, L.expm(xp.asarray(block)), power)


def test_roots_beside_the_cut(backend, xp):
    """Hermitian matrices may have eigenvalues on the negative axis, others only near it."""
    negative = np.diag([-4.0, 9.0]) + 0j
    checked(backend, L.sqrtm(xp.asarray(negative)), np.diag([2j, 3]))
    checked(backend, L.logm(xp.asarray(negative)), np.diag([np.log(4) + np.pi * 1j, np.log(9)]))
    near = np.array([[np.exp(3.14159j), 1.0], [0.0, 2.0]])
    # an angle of 3e-6 beside the cut costs six digits
    checked(backend, L.sqrtm(xp.asarray(near)), S.sqrtm(near), rtol=1e-9, atol=1e-9)
    singular = np.diag([4.0, 0.0])
    checked(backend, L.sqrtm(xp.asarray(singular)), np.diag([2.0, 0.0]))


def test_general_eigenvalues(backend, xp):
    for a in (A, C):
        w, v = L.eig(xp.asarray(a))
        assert w.dtype == v.dtype == xp.complex128
        order = lambda w: np.sort_complex(np.round(w, 9))
        np.testing.assert_allclose(order(values(w)), order(np.linalg.eigvals(a)), **CLOSE)
        np.testing.assert_allclose(
            order(values(L.eigvals(xp.asarray(a)))), order(values(w)), **CLOSE
        )
        w, v = values(w), values(v)
        np.testing.assert_allclose(a @ v, v * w[:, None, :], **CLOSE)
        np.testing.assert_allclose(np.linalg.norm(v, axis=-2), np.ones((2, 3)), **CLOSE)
        at = np.argmax(np.round(np.abs(v), 9), axis=-2)[:, None]
        np.testing.assert_allclose(np.take_along_axis(v, at, -2).imag, 0, atol=1e-15)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("a", [GENERAL, TALL, WIDE, COMPLEX])
def test_polar(backend, xp, a, side):
    want = each(lambda a: S.polar(a, side=side), a)
    for got, part in zip(L.polar(xp.asarray(a), side=side), want):
        checked(backend, got, part)


def test_sylvester(backend, xp):
    for a, b, q in ((GENERAL, GENERAL[:, :2, :2], B), (COMPLEX, COMPLEX[:, :2, :2], BC)):
        want = each(S.solve_sylvester, a, b, q)
        checked(backend, quick(backend, L.solve_sylvester)(*map(xp.asarray, (a, b, q))), want)


def test_large_sylvester(backend, xp):
    """By the eigenvectors of b, and two corrections."""
    normal = np.random.default_rng(9).normal
    a, b, q = normal(size=(24, 24)) + 12 * np.eye(24), normal(size=(20, 20)), normal(size=(24, 20))
    found = quick(backend, L.solve_sylvester)(*map(xp.asarray, (a, b, q)))
    checked(backend, found, S.solve_sylvester(a, b, q), rtol=1e-11, atol=1e-13)


def test_built_matrices(backend, xp):
    checked(backend, L.kron(xp.asarray(TALL), xp.asarray(B)), each(np.kron, TALL, B), rtol=1e-15)
    found = L.block_diag(*map(xp.asarray, (TALL, B, TALL)))
    checked(backend, found, each(S.block_diag, TALL, B, TALL), rtol=0)
    checked(backend, L.block_diag(xp.asarray(TALL[0]), xp.asarray(B)),
            np.stack([S.block_diag(TALL[0], b) for b in B]), rtol=0)  # fmt: skip
    c, r = BC[..., 0], C.reshape(2, 9)[:, :4]
    checked(backend, L.toeplitz(xp.asarray(c), xp.asarray(r)), each(S.toeplitz, c, r), rtol=0)
    checked(backend, L.toeplitz(xp.asarray(c)), each(S.toeplitz, c), rtol=0)


def test_logdet(backend, xp):
    for a in (A, C):
        sign, log = np.linalg.slogdet(a)
        checked(backend, L.logdet(xp.asarray(a)), log)
        checked(backend, L.slogdet(xp.asarray(a))[0], sign)
    assert {-1.0, 1.0} == set(np.linalg.slogdet(A)[0])
    checked(backend, L.logdet(xp.asarray(-np.eye(3) * 2)), 3 * np.log(2))
    assert values(L.logdet(xp.asarray(np.ones((2, 2))))) == -np.inf


def test_float32_stays(backend, xp):
    """Against the same in float64: conditions below 20, so that a hundred roundings of 6e-8, and a
    power of two for each argument, stay below 1e-5 of the largest element.
    """
    a, b = GENERAL.astype(np.float32), B.astype(np.float32)

    def every(a, b):
        xp = iso.namespace(a)
        positive = xp.matmul(a, xp.matrix_transpose(a))
        return {
            "sqrtm": L.sqrtm(a), "expm": L.expm(a), "logm": L.logm(a), "lu": L.lu(a)[1],
            "lu, u": L.lu(a)[2], "permuted": L.lu(a, permute_l=True)[0], "polar": L.polar(a)[0],
            "polar, p": L.polar(a, side="left")[1], "lstsq": L.lstsq(a, b).x,
            "residuals": L.lstsq(a[..., :2], b).residuals,
            "singular_values": L.lstsq(a, b).singular_values, "kron": L.kron(a, b),
            "block_diag": L.block_diag(a, b), "toeplitz": L.toeplitz(a[..., 0], b[..., 0]),
            "solve_triangular": L.solve_triangular(a, b), "logdet": L.logdet(a),
            "cho_factor": L.cho_factor(positive)[0],
            "cho_solve": L.cho_solve(L.cho_factor(positive), b),
            "solve_sylvester": L.solve_sylvester(a, a[:, :2, :2], b),
            "eigvals": xp.abs(xp.sum(L.eigvals(a) ** 2, axis=-1)),
            "eig": xp.sum(xp.abs(L.eig(a)[1]) ** 2, axis=-2),
        }  # fmt: skip

    found = quick(backend, every)(xp.asarray(a), xp.asarray(b))
    assert {name: y.dtype for name, y in found.items()} == dict.fromkeys(found, xp.float32)
    assert L.eig(xp.asarray(a))[0].dtype == L.eigvals(xp.asarray(a)).dtype == xp.complex64
    wide = every(a.astype(float), b.astype(float))  # NumPy, which other tests compare with SciPy
    for name, want in wide.items():
        checked(backend, found[name], want, rtol=1e-5, atol=1e-5 * np.abs(want).max())
    for name, theirs in (("sqrtm", S.sqrtm), ("expm", S.expm), ("logm", S.logm)):
        want = each(theirs, a.astype(float))
        checked(backend, found[name], want, rtol=1e-5, atol=1e-5 * np.abs(want).max())
    mixed = L.solve_triangular(xp.asarray(a), xp.asarray(B))
    assert mixed.dtype == xp.float64


@pytest.mark.takes("TensorFlow traces and compiles it")
def test_the_dtype_of_a_rank(backend, xp):
    """That of indices: int64, or int32 where 64 bits are off."""
    rank = L.lstsq(xp.asarray(TALL), xp.asarray(TALL)).rank
    assert rank.dtype == xp.int64
    assert values(rank).tolist() == [2, 2]
    with enable_x64(backend != "jax"):
        given = xp.asarray(TALL.astype(np.float32))
        rank = L.lstsq(given, given).rank
        assert rank.dtype == (xp.int32 if backend == "jax" else xp.int64)


def test_large_factors(backend, xp):
    """Rows exchanged often, in one matrix and in a batch; against SciPy's LAPACK."""
    a = np.random.default_rng(11).normal(size=(3, 40, 30))
    a[2, :, 3] = 0  # a pivot that is 0
    small = np.tile(a[:, :2, :2], (9, 1, 1))
    for given in (a, a[0], np.swapaxes(a, -1, -2), a + 1j * a[::-1], small):
        p, low, high = map(values, L.lu(xp.asarray(given)))
        stacked = given if given.ndim > 2 else given[None]
        want = each(S.lu, stacked)
        # where a whole column is 0, any row may be the pivot
        plain = np.array([not (x == 0).all(axis=-2).any() for x in stacked])
        plain &= np.array([not (x == 0).all(axis=-1).any() for x in stacked])
        assert plain.sum() >= min(2, len(plain))
        for got, sure in zip((p, low, high), want):
            np.testing.assert_allclose(got.reshape(sure.shape)[plain], sure[plain], **CLOSE)
        np.testing.assert_allclose(p @ low @ high, given, **CLOSE)


NATIVE = {
    "expm": lambda xp, a, b: (xp.expm(a),),
    "lu": lambda xp, a, b: xp.lu(a),
    "pivoted": lambda xp, a, b: xp.pivoted(a),
    "solve_triangular": lambda xp, a, b: (
        xp.solve_triangular(a, b, True, "C", True), xp.solve_triangular(a, b, False, "T", False),
    ),
}  # fmt: skip


class Composed:
    """A backend whose methods of linear algebra are the composed ones."""

    def __init__(self, own):
        self.own = own

    def __getattr__(self, name):
        if name in NATIVE:
            return lambda *args: getattr(Backend, name)(self, *args)
        return getattr(self.own, name)


OWN = {
    "numpy": ["pivoted", "solve_triangular"],
    "jax": ["expm", "lu", "solve_triangular"],
    "tensorflow": ["solve_triangular"],
    "torch": ["lu", "solve_triangular"],
}


@pytest.mark.host_only("it computes nothing")
def test_which_functions_are_native(backend):
    kind = type(load(backend))
    assert [n for n in NATIVE if getattr(kind, n) is not getattr(Backend, n)] == OWN[backend]


@pytest.mark.parametrize(
    ("backend", "name"),
    [(backend, name) for backend in BACKENDS for name in OWN[backend]],
    indirect=["backend"],
)
def test_native_functions_mean_what_is_composed(backend, xp, name):
    own = load(backend)
    for a, b in ((GENERAL, B), (COMPLEX, BC)):
        given = xp.asarray(a), xp.asarray(b)
        both = quick(
            backend, lambda a, b: (NATIVE[name](own, a, b), NATIVE[name](Composed(own), a, b))
        )
        for native, composed in zip(*both(*given), strict=True):
            np.testing.assert_allclose(values(native), values(composed), **CLOSE)


def test_the_names_of_the_standard_are_the_framework_s_own(backend, xp):
    a, b = xp.asarray(POSITIVE), xp.asarray(B)
    vectors = xp.asarray(A[0]), xp.asarray(A[1])
    calls = {
        "cholesky": (a,), "cross": vectors, "det": (a,), "diagonal": (a,), "eigh": (a,),
        "eigvalsh": (a,), "inv": (a,), "matmul": (a, b), "matrix_norm": (a,),
        "matrix_power": (a, 3), "matrix_rank": (a,), "matrix_transpose": (b,),
        "outer": (vectors[0][0], vectors[1][0]), "pinv": (b,), "qr": (b,), "slogdet": (a,),
        "solve": (a, b), "svd": (b,), "svdvals": (b,), "tensordot": vectors, "trace": (a,),
        "vecdot": vectors, "vector_norm": (a,),
    }  # fmt: skip
    from isomorph.backends.vocabulary import LINALG

    assert set(calls) == set(LINALG) <= set(L.__all__)
    for name, args in calls.items():
        got, want = getattr(L, name)(*args), getattr(xp.linalg, name)(*args)
        pairs = zip(got, want) if isinstance(want, tuple) else [(got, want)]
        for one, other in pairs:
            np.testing.assert_array_equal(values(one), values(other))
