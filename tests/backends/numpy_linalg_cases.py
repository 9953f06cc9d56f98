"""More of what is differentiated in test_numpy_rules.py: products, polynomials, linear algebra, Fourier transforms."""

# ruff: noqa: E501, B008  (a case is one line)

import numpy as np
from numpy_rule_cases import P, R, Z

STACKS = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3,)), ((3,), (5, 3, 2)),
    ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((5, 2, 3), (5, 3, 4)), ((5, 1, 2, 3), (4, 3, 2)),
    ((1, 2, 3), (5, 3, 4)), ((6, 5, 2, 3), (1, 3, 4)),
]  # fmt: skip

PRODUCTS = [
    *[(f"matmul {a} @ {b}", lambda x, y: x @ y, make(*a), make(*b)) for a, b in STACKS for make in (R, Z)],
    ("matmul with a list", lambda x: (x @ [1.0, 2.0, 3.0], [[1.0, 2.0]] @ x), R(2, 3)),
    ("linalg.matmul", lambda x, y: np.linalg.matmul(x, y), R(2, 3), Z(3, 2)),
    *[
        (f"dot {a} {b}", lambda x, y: np.dot(x, y), R(*a), Z(*b))
        for a, b in [((), (3,)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (4, 3, 2)), ((5, 2, 3), (4, 3, 2)), ((2, 3), (3, 2))]
    ],
    ("inner", lambda x, y: (np.inner(x, y), np.inner(x[0], y[0]), np.inner(x, 2.0)), Z(2, 3), R(4, 3)),
    ("outer", lambda x, y: (np.outer(x, y), np.linalg.outer(x, x), np.multiply.outer(x, y)), Z(2), R(2, 3)),
    ("vdot", lambda x, y: np.vdot(x, y), Z(2, 3), Z(3, 2)),
    ("vecdot", lambda x, y: (np.vecdot(x, y), np.linalg.vecdot(x, x, axis=0)), Z(4, 3), Z(2, 1, 3)),
    ("vecdot axis", lambda x, y: np.vecdot(x, y, axis=0), Z(4, 3), Z(4, 3, key=1)),
    ("matvec", lambda x, y: (np.matvec(x, y), np.vecmat(y, x)), Z(4, 3, 3), Z(2, 1, 3)),
    ("tensordot", lambda x, y: (np.tensordot(x, y, 1), np.linalg.tensordot(x, y, axes=0)), Z(2, 3), R(3, 4)),
    ("tensordot axes", lambda x, y: np.tensordot(x, y, ([2, 0], [1, -1])), R(2, 3, 4), Z(5, 4, 2)),
    ("tensordot all", lambda x, y: (np.tensordot(x, y), np.tensordot(x, y, axes=((0, 1), (0, 1)))), Z(2, 3), R(2, 3)),
    ("einsum matmul", lambda x, y: np.einsum("ij,jk->ik", x, y), Z(2, 3), R(3, 4)),
    ("einsum implicit", lambda x, y: (np.einsum("ij,jk", x, y), np.einsum("ba", x)), R(2, 3), R(3, 4)),
    ("einsum ellipsis", lambda x, y: np.einsum("...ij,j...->i...", x, y), R(5, 2, 3), R(3, 5)),
    ("einsum ellipsis broadcast", lambda x, y: np.einsum("...ij,...jk", x, y), R(4, 1, 2, 3), R(5, 3, 2)),
    ("einsum trace", lambda x: (np.einsum("ii", x[0]), np.einsum("bii->b", x), np.einsum("bii->bi", x)), Z(2, 3, 3)),
    ("einsum repeated", lambda x, y: (np.einsum("iji,jj->ij", x, y), np.einsum("iii->i", y[None, :1, :1])), R(3, 2, 3), R(2, 2)),
    ("einsum sums inside", lambda x, y: (np.einsum("ij,k->k", x, y), np.einsum("ij->", x), np.einsum("ij->j", x)), R(2, 3), R(4)),
    ("einsum three", lambda x, y, z: np.einsum("bij,bjk,k->bi", x, y, z, optimize=True), Z(2, 3, 4), R(2, 4, 3), R(3)),
    ("einsum outer", lambda x, y: np.einsum("i,j", x, y), R(2), Z(3)),
    ("einsum of ones", lambda x, y: np.einsum("ij,jk->ik", x, y), R(2, 1), R(3, 4)),
    ("einsum sublists", lambda x, y: (np.einsum(x, [0, 1], y, [1, 2], [2, 0]), np.einsum(x, [Ellipsis, 0])), R(2, 3), R(3, 4)),
    ("kron", lambda x, y: (np.kron(x, y), np.kron(y, x[0])), R(2, 3), Z(4)),
    ("cross", lambda x, y: (np.cross(x, y), np.linalg.cross(x, x[::-1], axis=0)), R(3, 3), Z(3)),
    ("cross axes", lambda x, y: np.cross(x, y, axisa=0, axisb=-1, axisc=0), R(3, 4), R(4, 3)),
    *[
        (f"convolve {mode} {n} {m}", lambda x, y, mode=mode: (np.convolve(x, y, mode), np.correlate(x, y, mode)), Z(n), Z(m, key=1))
        for mode in ("full", "same", "valid")
        for n, m in [(5, 3), (3, 6), (6, 2), (4, 4)]
    ],
]  # fmt: skip

POLYNOMIALS = [
    ("polyval", lambda p, x: np.polyval(p, x), R(4), R(2, 3)),
    ("vander", lambda x: (np.vander(x), np.vander(x, 4, increasing=True)), R(3)),
    ("polymul", lambda p, q: (np.polymul(p, q), np.polyadd(p, q), np.polysub(p, q)), R(4), R(3)),
    ("polyder", lambda p: (np.polyder(p), np.polyder(p, 2), np.polyint(p), np.polyint(p, 2, 3.0)), R(5)),
    ("polyfit", lambda x, y: np.polyfit(x, y, 2), np.cumsum(P(6)), R(6)),
    ("polyfit weights", lambda x, y, w: np.polyfit(x, y, 1, w=w), np.cumsum(P(6)), R(6, 2), P(6)),
    ("poly", lambda x: np.poly(x), R(4)),
    ("roots", lambda p: np.sum(np.exp(np.roots(p))), R(5)),
]  # fmt: skip


def positive(x):
    """A Hermitian positive definite matrix made from any square matrix."""
    return x @ np.conjugate(np.swapaxes(x, -1, -2)) + 0.5 * np.eye(x.shape[-1], dtype=x.dtype)


def herm(x):
    return x + np.conjugate(np.swapaxes(x, -1, -2))


def adjoint(x):
    return np.conjugate(np.swapaxes(x, -1, -2))


def eigh_seen(x, uplo="L"):
    """eigh seen through what does not depend on phases: the eigenvalues, and a function of the
    matrix.
    """
    w, v = np.linalg.eigh(herm(x), uplo)
    return w, (v * np.sin(w)[..., None, :]) @ adjoint(v), np.abs(v)


def eig_seen(x):
    w, v = np.linalg.eig(x)
    return np.sum(np.exp(w), -1), np.sum(np.abs(v), -1).sum(-1), np.linalg.eigvals(x).prod(-1)


def svd_seen(x, full):
    u, s, vh = np.linalg.svd(x, full_matrices=full)
    k = s.shape[-1]
    middle = u[..., :k] @ (np.exp(s)[..., None] * vh[..., :k, :])
    return s, middle, np.abs(u[..., :k]), np.abs(vh[..., :k, :])


def null_space(x):
    u, _, vh = np.linalg.svd(x)
    k = min(x.shape)
    return u[:, k:] @ adjoint(u[:, k:]), adjoint(vh[k:]) @ vh[k:]


def qr_complete(x):
    q, r = np.linalg.qr(x, "complete")
    k = min(x.shape)
    return q[:, :k], r, q[:, k:] @ adjoint(q[:, k:])


SINGULAR = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [5.0, 7.0, 9.0]])
RANK_ONE = np.outer([1.0, 2.0, 3.0], [1.0, -1.0, 2.0])
VECTOR_ORDERS = (None, 0, 1, 2, 3, 2.5, -1, np.inf, -np.inf)
MATRIX_ORDERS = (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)

LINALG = [
    case
    for kind, make in (("real", R), ("complex", Z))
    for case in [
        (f"solve {kind}", lambda a, b: (np.linalg.solve(a, b), np.linalg.solve(a, b[0, :, 0])), make(2, 3, 3), make(2, 3, 4)),
        (f"solve broadcast {kind}", lambda a, b: np.linalg.solve(a, b), make(3, 3), make(2, 3, 1)),
        (f"inv {kind}", lambda a: np.linalg.inv(a), make(2, 3, 3)),
        (f"det {kind}", lambda a: (np.linalg.det(a), np.linalg.det(a[0])), make(2, 4, 4)),
        (f"slogdet {kind}", lambda a: np.linalg.slogdet(a), make(2, 3, 3)),
        (f"slogdet, one part {kind}", lambda a: (np.linalg.slogdet(a)[1], np.linalg.slogdet(a[0]).sign), make(2, 3, 3)),
        (f"cholesky {kind}", lambda a: (np.linalg.cholesky(positive(a)), np.linalg.cholesky(positive(a), upper=True)), make(2, 3, 3)),
        (f"eigh {kind}", lambda a: (*eigh_seen(a), *eigh_seen(a, "U")), make(2, 3, 3)),
        (f"eigvalsh {kind}", lambda a: np.linalg.eigvalsh(herm(a)), make(2, 3, 3)),
        (f"eig {kind}", lambda a: eig_seen(a), make(2, 3, 3)),
        *[(f"svd {shape} full={full} {kind}", lambda a, full=full: svd_seen(a, full), make(*shape)) for shape in ((2, 3, 3), (4, 2), (2, 4)) for full in (True, False)],
        *[(f"svd null space {shape} {kind}", lambda a: null_space(a), make(*shape)) for shape in ((4, 2), (2, 4))],
        (f"svdvals {kind}", lambda a: (np.linalg.svdvals(a), np.linalg.svd(a, compute_uv=False)), make(2, 4, 3)),
        *[(f"qr {shape} {kind}", lambda a: (*np.linalg.qr(a), np.linalg.qr(a, "r")), make(*shape)) for shape in ((2, 3, 3), (2, 5, 3), (3, 5))],
        *[(f"qr complete {shape} {kind}", lambda a: qr_complete(a), make(*shape)) for shape in ((5, 3), (3, 3), (3, 5))],
        *[(f"pinv {shape} {kind}", lambda a: np.linalg.pinv(a), make(*shape)) for shape in ((2, 4, 3), (2, 3, 4), (3, 3))],
        (f"lstsq {kind}", lambda a, b: (np.linalg.lstsq(a, b)[0], np.linalg.lstsq(a, b)[1], np.linalg.lstsq(a.T, b[:3, 0])[0]), make(5, 3), make(5, 2)),
        (f"lstsq vector {kind}", lambda a, b: np.linalg.lstsq(a, b)[0], make(5, 3), make(5)),
        (f"matrix_power {kind}", lambda a: tuple(np.linalg.matrix_power(a, n) for n in (-2, 1, 2, 5)), make(2, 3, 3)),
        (f"multi_dot {kind}", lambda a, b, c: (np.linalg.multi_dot([a, b, c]), np.linalg.multi_dot([a[0], b, c, c[:, 0][:4]])), make(2, 3), make(3, 4), make(4, 4)),
        (f"tensorinv {kind}", lambda a: np.linalg.tensorinv(a, 2), make(2, 3, 6)),
        (f"tensorsolve {kind}", lambda a, b: np.linalg.tensorsolve(a, b), make(2, 3, 6), make(2, 3)),
        (f"tensorsolve axes {kind}", lambda a, b: np.linalg.tensorsolve(a, b, (0,)), make(6, 2, 3), make(2, 3)),
        *[(f"vector norm {p} {kind}", lambda x, p=p: (np.linalg.norm(x, p, 1), np.linalg.norm(x[0], p, keepdims=True), np.linalg.vector_norm(x, ord=2 if p is None else p, axis=0)), make(3, 4)) for p in VECTOR_ORDERS],
        *[(f"matrix norm {p} {kind}", lambda x, p=p: (np.linalg.norm(x, p, (2, 0), keepdims=True), np.linalg.norm(x[0], p), np.linalg.matrix_norm(x, ord=p or "fro")), make(2, 3, 4)) for p in MATRIX_ORDERS],
        (f"norm of everything {kind}", lambda x: (np.linalg.norm(x), np.linalg.vector_norm(x), np.linalg.vector_norm(x, ord=3)), make(2, 3, 4)),
        (f"cond {kind}", lambda x: tuple(np.linalg.cond(x, p) for p in (None, -2, 1, "fro")), make(2, 3, 3)),
    ]
] + [
    ("det singular", lambda a: np.linalg.det(a), SINGULAR),
    ("det rank one", lambda a: np.linalg.det(a), RANK_ONE),
    ("det in a stack", lambda a: np.linalg.det(a), np.stack([SINGULAR, R(3, 3), RANK_ONE, np.zeros((3, 3))])),
    ("det singular complex", lambda a: np.linalg.det(a), RANK_ONE * (1 + 2j) + np.outer([1j, 1, 2], [0, 1, 1j])),
    ("det of the identity", lambda a: np.linalg.det(a), np.eye(3)),
    ("pinv rank one", lambda u, v: np.linalg.pinv(np.outer(u, v), 1e-9), Z(4), R(3)),
    ("pinv rank one wide", lambda u, v: np.linalg.pinv(np.outer(u, v), rtol=1e-9), R(2), R(3)),
    ("lstsq rank one", lambda u, v: np.linalg.lstsq(np.outer(u, v), np.ones(4), 1e-9)[0], R(4), R(3)),
    ("norm of a number", lambda x: (np.linalg.norm(x), np.linalg.norm(np.sum(x))), R()),
    ("svd of a Hermitian", lambda a: np.linalg.svd(herm(a), hermitian=True)[1], R(3, 3)),
]  # fmt: skip

NORMS = (None, "backward", "ortho", "forward")
FFT = [
    *[
        (f"{name} n={n} axis={axis} {norm}", lambda x, f=getattr(np.fft, name), n=n, axis=axis, norm=norm: f(x, n, axis, norm), make(4, 5))
        for name, make in (("fft", Z), ("ifft", Z), ("rfft", R), ("irfft", Z), ("hfft", Z), ("ihfft", R))
        for norm in NORMS
        for n, axis in ((None, -1), (None, 0), (3, 1), (8, 0), (7, 1))
    ],
    *[
        (f"{name} s={s} axes={axes} {norm}", lambda x, f=getattr(np.fft, name), s=s, axes=axes, norm=norm: f(x, s, axes, norm), make(3, 4, 5))
        for name, make in (("fftn", Z), ("ifftn", Z), ("rfftn", R), ("irfftn", Z), ("fft2", Z), ("ifft2", Z), ("rfft2", R), ("irfft2", Z))
        for norm, s, axes in ((None, None, (-2, -1)), ("ortho", (2, 6), (0, 1)), ("forward", (5, -1), (2, 1)))
    ],
    *[(f"{name} of all axes", lambda x, f=getattr(np.fft, name): f(x), Z(3, 4, 5) if name != "rfftn" else R(3, 4, 5)) for name in ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "irfft2")],
    ("fft of real numbers", lambda x: (np.fft.fft(x), np.fft.irfft(x)), R(6)),
    ("fftshift", lambda x: (np.fft.fftshift(x), np.fft.ifftshift(x), np.fft.fftshift(x, 1)), R(3, 4)),
]  # fmt: skip
