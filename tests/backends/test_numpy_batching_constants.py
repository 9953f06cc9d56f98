"""Functions without a derivative, options of others, and methods of ufuncs under `vmap` on NumPy.
The oracle is a loop over the examples; results are equal to the last bits, 1e-13.
"""

# ruff: noqa: E501  (a case is one line)

import numpy as np
import pytest
import scipy.special

from isomorph.backends.numpy import mapped, mapping

RNG = np.random.default_rng(5)
X = RNG.standard_normal((3, 2, 4))
N = RNG.integers(-9, 9, (3, 2, 4))
V = np.sort(RNG.standard_normal(5))
M = np.array([[True, False, True, True], [False, True, True, False]])

# Of the examples of X, floating-point, and N, integers.
AT_ONCE = {
    "rounding": lambda x, n: (np.round(x, 1), np.floor(x), np.rint(x), np.fix(x), np.trunc(n / 2)),
    "comparisons": lambda x, n: (x == n, x != n, x < n, n >= x, np.isclose(x, n, 0.5)),
    "truths": lambda x, n: (np.logical_and(x > 0, n > 0), ~(x > 0) | (n > 2), (x > 0) ^ (n > 0)),
    "bits": lambda x, n: (n & 3, n | 4, n ^ 5, ~n, n << 1, n >> 1, 1 << abs(n)),
    "integers": lambda x, n: (n // 3, n % 3, -n, abs(n), n**2, divmod(n, 4), np.gcd(n, 6)),
    "kinds": lambda x, n: (np.isnan(x), np.isinf(x), np.signbit(x), np.isreal(x), np.isfinite(n)),
    "reflected": lambda x, n: (2 - x, 2 / x, 2**n.astype(float), 7 // abs(x), 7 % abs(x), 3 & n),
    "positions": lambda x, n: (np.argmax(x), np.argmin(x, 0), np.argmax(n, -1, keepdims=True)),
    "positions of all": lambda x, n: np.argmax(x, keepdims=True),
    "orders": lambda x, n: (np.argsort(x), np.argsort(n, 0, stable=True), np.argsort(x, None)),
    "parted": lambda x, n: (np.argpartition(x, 1)[..., :1], np.partition(n, 2, None)[2]),
    "counts": lambda x, n: (np.count_nonzero(n), np.count_nonzero(x > 0, axis=0), np.all(n, 1)),
    "any": lambda x, n: (np.any(n > 5), np.any(x > 0, axis=-1, keepdims=True), (x > 9).any()),
    "where in sums": lambda x, n: (np.sum(x, where=M), np.mean(x, 0, where=x > -9), np.max(
        x, 1, initial=0.0, where=n > 0)),
    "sums of truths": lambda x, n: (np.sum(x > 0), np.sum(n > 0, 0, dtype=np.int8), np.prod(n, 1)),
    "variances": lambda x, n: (np.var(n, ddof=1), np.std(x, 1, correction=1), np.var(x, 0, mean=0.0)),
    "quantiles": lambda x, n: (np.quantile(x, 0.3, 1), np.percentile(n, [10, 50]), np.median(n, 0)),
    "running": lambda x, n: (np.cumsum(n), np.cumprod(x, 1), np.cumulative_sum(n, axis=1)),
    "differences": lambda x, n: (np.diff(n), np.diff(x, 2, 1), np.ediff1d(n), np.gradient(x, 0.5, axis=1)),
    "search": lambda x, n: (np.searchsorted(V, x), np.searchsorted(V, x, "right")),
    "bins": lambda x, n: (np.digitize(x, V), np.isin(n, [1, 2, 3]), np.isin(n, [1], invert=True)),
    "casts": lambda x, n: (x.astype(int), n.astype(np.float32), np.astype(x, np.complex64), n.real),
    "shapes": lambda x, n: (np.size(x), np.ndim(n), np.shape(x)[0], len(x), x.nbytes, x.itemsize),
    "alike": lambda x, n: (np.zeros_like(x), np.ones_like(n), np.full_like(x, 2.0), x * 0 + 1),
    "types": lambda x, n: (np.result_type(x, n).kind == "f", np.can_cast(n.dtype, int), np.iscomplexobj(x)),
    "moved": lambda x, n: (x.T, np.flip(n), n[::-1, 1:], np.roll(n, 2), np.roll(x, (1, 2), (0, 1))),
    "turned": lambda x, n: (np.rot90(x), np.swapaxes(n, 0, 1), x.transpose(1, 0), n.swapaxes(0, 1)),
    "tiled": lambda x, n: (np.tile(n, 2), np.tile(x, (2, 1, 3)), np.repeat(n, 2), np.repeat(x, 3, 1)),
    "padded": lambda x, n: (np.pad(n, 1), np.pad(x, ((0, 1), (2, 0)), "edge"), np.pad(n, 1, "wrap")),
    "joined": lambda x, n: (np.concatenate([x, n]), np.stack([n, M], 2), np.hstack([x, n]), np.append(n, 3)),
    "split": lambda x, n: (*np.split(x, 2, 1), *np.array_split(n, 3, 1), *np.unstack(x)),
    "diagonals": lambda x, n: (np.diagonal(x), np.trace(n), np.tril(n), np.triu(x, 1), np.diag(n, 1)),
    "products": lambda x, n: (n @ n.T, np.dot(n, n[0]), np.inner(x, x), np.outer(n, n), np.vdot(n, n)),
    "contracted": lambda x, n: (np.tensordot(n, n, (1, 1)), np.einsum("ij,kj->ik", x, n), np.kron(n, n)),
    "numbers": lambda x, n: (np.vecdot(n, n), np.linalg.norm(x), np.linalg.norm(n, axis=1), np.cross(
        x[:, :3], n[:, :3])),
    "matrices": lambda x, n: (np.linalg.det(x @ x.T), np.linalg.matrix_rank(x), np.linalg.pinv(x)),
    "transforms": lambda x, n: (np.fft.fft(n), np.fft.rfft(x, 3, 0), np.fft.fft2(x), np.fft.fftshift(n)),
    "selected": lambda x, n: (np.select([n > 5, n > 0], [x, -x], 9.0), np.choose(n % 2, [x, n])),
    "taken": lambda x, n: (np.take(x, [0, 5]), np.take(n, 1, 1), n.take([0], 0), np.delete(x, 1, 1)),
    "taken along": lambda x, n: (np.take_along_axis(x, np.abs(n) % 2, 0), np.take_along_axis(
        n, np.argsort(n, 1), 1)),
    "clipped": lambda x, n: (np.clip(n, 0, 3), x.clip(-1, 1), np.clip(x, None, n), np.clip(x, max=0.5)),
    "parts": lambda x, n: (np.modf(x), np.frexp(x), np.divmod(n, 3), np.ldexp(x, n), np.heaviside(x, 0)),
    "special": lambda x, n: (scipy.special.gamma(x), scipy.special.jv(n, x), scipy.special.expit(n)),
    "reduced": lambda x, n: (np.add.reduce(n), np.multiply.reduce(x, 1), np.bitwise_or.reduce(n, None)),
    "reduced more": lambda x, n: (np.logical_xor.reduce(n > 0, -1), np.hypot.reduce(x, 0, keepdims=True)),
    "accumulated": lambda x, n: (np.add.accumulate(n, 1), np.maximum.accumulate(x)),
    "outer": lambda x, n: (np.subtract.outer(x, n[0]), np.multiply.outer(np.arange(2), n)),
    "reduced at": lambda x, n: np.add.reduceat(n, [0, 2], 1),
    "of keywords": lambda x, n: (np.add(n, n, dtype=float), np.add(x, n, where=True), np.sum(a=x, axis=0)),
    "strides": lambda x, n: np.lib.stride_tricks.sliding_window_view(n, 2, 1),
    "complex": lambda x, n: (np.angle(x + 1j * n), (x + 1j * n).conj(), np.abs(1j * n), (1j * x).imag),
    "meshed": lambda x, n: np.meshgrid(x[0], n[0], indexing="ij"),
    "spaced": lambda x, n: (np.linspace(x[0], n[0], 3), np.interp(x[0], V, np.arange(5.0))),
    "convolved": lambda x, n: (np.convolve(n[0], n[1]), np.correlate(x[0], x[1, :2], "same")),
    "copied": lambda x, n: (x.copy(), np.copy(n), x.ravel(), n.flatten(), x.reshape(-1, 2), n.squeeze()),
    "of Fortran's order": lambda x, n: (np.reshape(x, (4, 2), "F"), np.reshape(n[0], (2, -1), "F"), x.ravel("F")),
    "covered": lambda x, n: (np.average(x, 1, weights=[1, 2, 3, 4]), np.cov(n), np.ptp(n), np.nanmax(x)),
}  # fmt: skip
ROWS = {
    "norm of integers": lambda x, n: np.linalg.norm(n[0], 1),
    "convolved with infinity": lambda x, n: np.convolve(x[0], x[1] / (n[1] * 0.0)),
    "nonzero": lambda x, n: np.nonzero(n < 99)[0], "allclose": lambda x, n: np.allclose(x, n),
    "lexsort": lambda x, n: np.lexsort((x[0], n[0])), "histogram": lambda x, n: np.histogram(x)[0],
    "mapped bins": lambda x, n: np.searchsorted(np.sort(x[0]), x[1]),
    "mapped quantile": lambda x, n: np.quantile(x, np.abs(n[0, 0]) / 10),
    "mapped shift": lambda x, n: np.roll(x, n[0, 0], 1),
}  # fmt: skip


def parts(y):
    return [z for part in y for z in parts(part)] if isinstance(y, (tuple, list)) else [y]


def loop(func):
    each = [parts(func(x, n)) for x, n in zip(X, N, strict=True)]
    return [np.stack(part) for part in zip(*each, strict=True)]


def check(func):
    mapped.NOTED.clear()
    found = mapping.batch(lambda x, n: tuple(parts(func(x, n))), (X, N))
    for got, wanted in zip(found, loop(func), strict=True):
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(got, wanted, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
@pytest.mark.parametrize("name", AT_ONCE)
def test_at_once(backend, name):
    with np.errstate(all="ignore"):
        check(AT_ONCE[name])
    assert set() == mapped.NOTED


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
@pytest.mark.parametrize("name", ROWS)
def test_row_by_row(backend, name):
    with np.errstate(all="ignore"):
        check(ROWS[name])
    assert len(mapped.NOTED) == 1
