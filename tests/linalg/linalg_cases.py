"""Functions of `iso.linalg`, with matrices of float64 or complex128."""

from typing import Any, NamedTuple

import numpy as np

import isomorph as iso
from isomorph.core.dispatch import load
from oracles import numpy_of

L = iso.linalg
RNG = np.random.default_rng(7)


def normal(*shape):
    return RNG.normal(size=shape)


def complex_normal(*shape):
    return normal(*shape) + 1j * normal(*shape)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


N = 3
A, C = normal(2, N, N), complex_normal(2, N, N)
# no eigenvalue near the negative axis, and a condition below 20
GENERAL, COMPLEX = A + 4 * np.eye(N), C + 4 * np.eye(N)
POSITIVE = A @ adjoint(A) + np.eye(N)
B, BC = normal(2, N, 2), complex_normal(2, N, 2)
TALL, WIDE = normal(2, 4, 2), normal(2, 2, 4)


class Case(NamedTuple):
    """A function of a namespace and arrays, and the arrays."""

    call: Any
    arrays: tuple


def symmetric(xp, a):
    return (a + xp.matrix_transpose(a)) / 2


def both(xp, parts, axis):
    return xp.concat(list(parts), axis=axis)


def lengths(xp, a):
    """What does not change with the phases and the order of eigenvectors."""
    w, v = L.eig(a)
    return xp.sum(w[..., None, :] * xp.astype(xp.abs(v) ** 2, w.dtype), axis=-1)


CASES = {
    "solve_triangular": Case(
        lambda xp, a, b: L.solve_triangular(a, b, lower=True, trans="T"), (GENERAL, B)
    ),
    "solve_triangular, unit": Case(
        lambda xp, a, b: L.solve_triangular(a, b, unit_diagonal=True), (GENERAL, B)
    ),
    "solve_triangular, C": Case(
        lambda xp, a, b: L.solve_triangular(a, b, trans="C"), (COMPLEX, BC)
    ),
    "solve_triangular, T": Case(
        lambda xp, a, b: L.solve_triangular(a, b, trans=1, lower=True), (COMPLEX, BC)
    ),
    "cho_solve": Case(
        lambda xp, a, b: L.cho_solve(L.cho_factor(symmetric(xp, a)), b), (POSITIVE, B)
    ),
    "lstsq, tall": Case(lambda xp, a, b: L.lstsq(a, b).x, (TALL, normal(2, 4, 2))),
    "lstsq, wide": Case(lambda xp, a, b: L.lstsq(a, b).x, (WIDE, normal(2, 2, 2))),
    "lstsq, residuals": Case(lambda xp, a, b: L.lstsq(a, b).residuals, (TALL, normal(2, 4, 2))),
    "lstsq, values": Case(lambda xp, a: L.lstsq(a, a).singular_values, (TALL,)),
    "lu": Case(lambda xp, a: both(xp, L.lu(a)[1:], -1), (GENERAL,)),
    "lu, complex": Case(lambda xp, a: both(xp, L.lu(a, permute_l=True), -1), (COMPLEX,)),
    "lu, tall": Case(lambda xp, a: both(xp, L.lu(a)[1:], -2), (TALL,)),
    "lu, wide": Case(lambda xp, a: both(xp, L.lu(a)[1:], -1), (WIDE,)),
    "expm": Case(lambda xp, a: L.expm(a), (A,)),
    "expm, complex": Case(lambda xp, a: L.expm(a), (C,)),
    "sqrtm": Case(lambda xp, a: L.sqrtm(a), (GENERAL,)),
    "sqrtm, complex": Case(lambda xp, a: L.sqrtm(a), (COMPLEX,)),
    "sqrtm, symmetric": Case(lambda xp, a: L.sqrtm(symmetric(xp, a)), (POSITIVE,)),
    "logm": Case(lambda xp, a: L.logm(a), (GENERAL,)),
    "logm, complex": Case(lambda xp, a: L.logm(a), (COMPLEX,)),
    "polar": Case(lambda xp, a: both(xp, L.polar(a), -1), (GENERAL,)),
    "polar, tall": Case(lambda xp, a: both(xp, L.polar(a, side="left"), -1), (TALL,)),
    "polar, wide": Case(lambda xp, a: L.polar(a)[0], (WIDE,)),
    "polar, complex": Case(lambda xp, a: L.polar(a)[0], (COMPLEX,)),
    "solve_sylvester": Case(
        lambda xp, a, b, q: L.solve_sylvester(a, b, q), (GENERAL, TALL[:, 2:] + 3, B)
    ),
    "solve_sylvester, complex": Case(
        lambda xp, a, b, q: L.solve_sylvester(a, b, q), (COMPLEX, COMPLEX[:, :2, :2], BC)
    ),
    "eigvals": Case(lambda xp, a: xp.sum(L.eigvals(a) ** 3, axis=-1), (A,)),
    "eigvals, complex": Case(lambda xp, a: xp.sum(xp.exp(L.eigvals(a)), axis=-1), (C,)),
    "eig": Case(lengths, (A,)),
    "eig, complex": Case(lengths, (C,)),
    "logdet": Case(lambda xp, a: L.logdet(a), (A,)),
    "logdet, complex": Case(lambda xp, a: L.logdet(a), (C,)),
    "slogdet": Case(lambda xp, a: L.slogdet(a)[0], (C,)),
    "pinv": Case(lambda xp, a: L.pinv(a), (TALL,)),
    "pinv, complex": Case(lambda xp, a: L.pinv(a), (C[:, :2],)),
    "kron": Case(lambda xp, a, b: L.kron(a, b), (TALL, B)),
    "block_diag": Case(lambda xp, a, b: L.block_diag(a, b, a), (TALL, B)),
    "toeplitz": Case(lambda xp, c, r: L.toeplitz(c, r), (BC[..., 0], B[..., 1])),
    "toeplitz, Hermitian": Case(lambda xp, c: L.toeplitz(c), (BC[..., 0],)),
}


def weighed(xp, y, seed=1.3):
    """A real number that depends on all parts of `y`."""
    at = np.arange(int(np.prod(y.shape))).reshape(tuple(y.shape))
    wave = xp.asarray(np.cos(seed * at))
    if not xp.isdtype(y.dtype, "complex floating"):
        return xp.sum(y * wave)
    return xp.sum(xp.real(y) * wave) + xp.sum(xp.imag(y) * xp.asarray(np.sin(seed * at)))


def total(xp, name):
    """The function of a case, weighed."""
    return lambda *arrays: weighed(xp, CASES[name].call(xp, *arrays))


def differences(func, arrays, step=1e-6):
    """The gradients of a real function of NumPy arrays, by central differences; of a complex array,
    the derivative by its real part plus i times that by its imaginary part.
    """
    grads = []
    for k, x in enumerate(arrays):
        grad = np.zeros(x.shape, x.dtype)
        for at in np.ndindex(x.shape):
            for unit in (1, 1j) if np.iscomplexobj(x) else (1,):
                ends = []
                for sign in (1, -1):
                    moved = x.copy()
                    moved[at] += sign * step * unit
                    ends.append(float(func(*arrays[:k], moved, *arrays[k + 1 :])))
                grad[at] += unit * (ends[0] - ends[1]) / (2 * step)
        grads.append(grad)
    return grads


def quick(backend, func):
    """On JAX a program: there, each new operation is compiled by itself when nothing else is."""
    return iso.jit(func) if backend == "jax" else func


def values(y):
    """The values of an array; torch may have conjugated it only in name."""
    return numpy_of(y.resolve_conj() if hasattr(y, "resolve_conj") else y)


def numpy_namespace():
    return load("numpy").namespace
