"""Example calls of every other function of the standard, with results worked out by hand.

A call takes the namespace and `a`, which makes an array of the dtype under test. Letters name the
dtypes to run it with (`DTYPES`, beside the elementwise functions).
"""

import cmath
import math

M = [[4, 2], [2, 3]]  # symmetric, positive definite, determinant 8
T = [[1, 2, 3], [4, 5, 6]]
ROOT = math.sqrt(2)


def ints(xp, values):
    return xp.asarray(values, dtype=xp.int64)


def bools(xp, values):
    return xp.asarray(values, dtype=xp.bool)


def dft(values, sign=-1):
    """The discrete Fourier transform by its definition."""
    n = len(values)
    turn = lambda j, k: cmath.exp(sign * 2j * cmath.pi * j * k / n)
    return [sum(v * turn(j, k) for j, v in enumerate(values)) for k in range(n)]


W = [1, 5, 2, 7]
Z = [1 + 2j, 3 - 1j, -2j, 4]
HERMITIAN = [1, 2 + 1j, 3]  # half a spectrum of a real signal
SPECTRUM = [1, 2 + 1j, 3, 2 - 1j]

CREATION = (
    ("arange", "if", lambda xp, a: xp.arange(1, 8, 3, dtype=a(0).dtype), [1, 4, 7]),
    ("arange", "if", lambda xp, a: xp.arange(3, dtype=a(0).dtype), [0, 1, 2]),
    ("asarray", "biufc", lambda xp, a: xp.asarray(a([0, 1]), copy=True), [0, 1]),
    ("empty", "f", lambda xp, a: xp.zeros_like(xp.empty((1, 2), dtype=a(0).dtype)), [[0, 0]]),
    ("empty_like", "f", lambda xp, a: xp.zeros_like(xp.empty_like(a([1, 2]))), [0, 0]),
    ("eye", "ifc", lambda xp, a: xp.eye(2, 3, k=1, dtype=a(0).dtype), [[0, 1, 0], [0, 0, 1]]),
    ("eye", "if", lambda xp, a: xp.eye(2, dtype=a(0).dtype), [[1, 0], [0, 1]]),
    ("from_dlpack", "if", lambda xp, a: xp.from_dlpack(a(T)), T),
    ("full", "iufc", lambda xp, a: xp.full((2,), 1, dtype=a(0).dtype), [1, 1]),
    ("full_like", "iufc", lambda xp, a: xp.full_like(a([1, 2]), 7), [7, 7]),
    (
        "linspace",
        "f",
        lambda xp, a: xp.linspace(0, 1, 5, dtype=a(0).dtype),
        [0, 0.25, 0.5, 0.75, 1],
    ),
    (
        "linspace",
        "f",
        lambda xp, a: xp.linspace(0, 1, 2, dtype=a(0).dtype, endpoint=False),
        [0, 0.5],
    ),
    (
        "meshgrid",
        "if",
        lambda xp, a: xp.meshgrid(a([1, 2]), a([3, 4])),
        [[[1, 2], [1, 2]], [[3, 3], [4, 4]]],
    ),
    (
        "meshgrid",
        "if",
        lambda xp, a: xp.meshgrid(a([1, 2]), a([3, 4]), indexing="ij"),
        [[[1, 1], [2, 2]], [[3, 4], [3, 4]]],
    ),
    ("ones", "biufc", lambda xp, a: xp.ones((1, 2), dtype=a(0).dtype), [[1, 1]]),
    ("ones_like", "biufc", lambda xp, a: xp.ones_like(a([0, 1])), [1, 1]),
    ("tril", "ifc", lambda xp, a: xp.tril(a(T), k=-1), [[0, 0, 0], [4, 0, 0]]),
    ("triu", "ifc", lambda xp, a: xp.triu(a(T)), [[1, 2, 3], [0, 5, 6]]),
    ("zeros", "biufc", lambda xp, a: xp.zeros(3, dtype=a(0).dtype), [0, 0, 0]),
    ("zeros_like", "biufc", lambda xp, a: xp.zeros_like(a(T)), [[0] * 3] * 2),
)

MANIPULATION = (
    (
        "broadcast_arrays",
        "if",
        lambda xp, a: xp.broadcast_arrays(a([1, 2]), a([[3]])),
        [[[1, 2]], [[3, 3]]],
    ),
    ("broadcast_to", "bifc", lambda xp, a: xp.broadcast_to(a([0, 1]), (2, 2)), [[0, 1], [0, 1]]),
    (
        "concat",
        "iufc",
        lambda xp, a: xp.concat([a([[1], [2]]), a([[3], [4]])], axis=-1),
        [[1, 3], [2, 4]],
    ),
    ("concat", "if", lambda xp, a: xp.concat([a([[1, 2]]), a([3])], axis=None), [1, 2, 3]),
    ("expand_dims", "bif", lambda xp, a: xp.expand_dims(a([0, 1]), axis=-1), [[0], [1]]),
    ("flip", "iufc", lambda xp, a: xp.flip(a(T), axis=-1), [[3, 2, 1], [6, 5, 4]]),
    ("flip", "if", lambda xp, a: xp.flip(a(T)), [[6, 5, 4], [3, 2, 1]]),
    (
        "moveaxis",
        "if",
        lambda xp, a: xp.moveaxis(a([T]), 0, -1),
        [[[1], [2], [3]], [[4], [5], [6]]],
    ),
    ("permute_dims", "ifc", lambda xp, a: xp.permute_dims(a(T), (1, 0)), [[1, 4], [2, 5], [3, 6]]),
    ("repeat", "if", lambda xp, a: xp.repeat(a([1, 2]), 2), [1, 1, 2, 2]),
    ("repeat", "if", lambda xp, a: xp.repeat(a([[1, 2]]), ints(xp, [2, 1]), axis=1), [[1, 1, 2]]),
    ("reshape", "bifc", lambda xp, a: xp.reshape(a([[0, 1], [1, 1]]), (-1,)), [0, 1, 1, 1]),
    ("roll", "if", lambda xp, a: xp.roll(a([1, 2, 3]), 1), [3, 1, 2]),
    ("roll", "if", lambda xp, a: xp.roll(a(T), (1, -1), axis=(0, 1)), [[5, 6, 4], [2, 3, 1]]),
    ("squeeze", "if", lambda xp, a: xp.squeeze(a([[[1], [2]]]), axis=(0, 2)), [1, 2]),
    ("stack", "ifc", lambda xp, a: xp.stack([a([1, 2]), a([3, 4])], axis=-1), [[1, 3], [2, 4]]),
    ("tile", "if", lambda xp, a: xp.tile(a([1, 2]), (2, 2)), [[1, 2, 1, 2], [1, 2, 1, 2]]),
    ("unstack", "if", lambda xp, a: xp.unstack(a(T), axis=1), [[1, 4], [2, 5], [3, 6]]),
    ("pad", "if", lambda xp, a: xp.pad(a([1, 2]), ((1, 2),)), [0, 1, 2, 0, 0]),
    (
        "pad",
        "f",
        lambda xp, a: xp.pad(a([[1]]), ((0, 1), (1, 0)), constant_values=7),
        [[7, 1], [7, 7]],
    ),
)

SEARCHING = (
    ("argsort", "iuf", lambda xp, a: xp.argsort(a([3, 1, 2])), [1, 2, 0]),
    ("sort", "iuf", lambda xp, a: xp.sort(a([[3, 1], [0, 2]]), axis=0), [[0, 1], [3, 2]]),
    ("nonzero", "bifc", lambda xp, a: xp.nonzero(a([[0, 1], [1, 0]])), [[0, 1], [1, 0]]),
    ("searchsorted", "if", lambda xp, a: xp.searchsorted(a([1, 2, 2, 3]), a([2, 0])), [1, 0]),
    (
        "searchsorted",
        "if",
        lambda xp, a: xp.searchsorted(a([1, 2, 2, 3]), a([2, 4]), side="right"),
        [3, 4],
    ),
    (
        "where",
        "ifc",
        lambda xp, a: xp.where(bools(xp, [True, False]), a([1, 2]), a([3, 4])),
        [1, 4],
    ),
    ("where", "f", lambda xp, a: xp.where(bools(xp, [True, False]), a([1, 2]), 0.5), [1, 0.5]),
    ("unique_values", "iuf", lambda xp, a: xp.sort(xp.unique_values(a([3, 1, 3]))), [1, 3]),
    ("unique_counts", "if", lambda xp, a: xp.unique_counts(a([3, 1, 3])), [[1, 3], [1, 2]]),
    ("unique_inverse", "if", lambda xp, a: xp.unique_inverse(a([3, 1, 3])), [[1, 3], [1, 0, 1]]),
    (
        "unique_all",
        "if",
        lambda xp, a: xp.unique_all(a([3, 1, 3])),
        [[1, 3], [1, 0], [1, 0, 1], [1, 2]],
    ),
    ("take", "ifc", lambda xp, a: xp.take(a(T), ints(xp, [2, 0]), axis=1), [[3, 1], [6, 4]]),
    ("take", "if", lambda xp, a: xp.take(a([5, 6, 7]), ints(xp, [-1])), [7]),
    (
        "take_along_axis",
        "if",
        lambda xp, a: xp.take_along_axis(a(T), ints(xp, [[2], [0]]), axis=1),
        [[3], [4]],
    ),
)

COMPUTING = (
    ("clip", "if", lambda xp, a: xp.clip(a([-2, 0, 5]), -1, 3), [-1, 0, 3]),
    ("clip", "f", lambda xp, a: xp.clip(a([-2, 0, 5]), a([0, 1, 2]), None), [0, 1, 5]),
    (
        "cumulative_sum",
        "ifc",
        lambda xp, a: xp.cumulative_sum(a(T), axis=1),
        [[1, 3, 6], [4, 9, 15]],
    ),
    (
        "cumulative_sum",
        "if",
        lambda xp, a: xp.cumulative_sum(a([1, 2]), include_initial=True),
        [0, 1, 3],
    ),
    (
        "cumulative_prod",
        "ifc",
        lambda xp, a: xp.cumulative_prod(a(T), axis=-2),
        [[1, 2, 3], [4, 10, 18]],
    ),
    (
        "cumulative_prod",
        "if",
        lambda xp, a: xp.cumulative_prod(a([2, 3]), include_initial=True),
        [1, 2, 6],
    ),
    ("diff", "if", lambda xp, a: xp.diff(a([1, 4, 9])), [3, 5]),
    ("diff", "if", lambda xp, a: xp.diff(a([1, 4, 9]), n=2, prepend=a([0])), [2, 2]),
    ("einsum", "fc", lambda xp, a: xp.einsum("ij,kj->ik", a(T), a(T)), [[14, 32], [32, 77]]),
    ("einsum", "f", lambda xp, a: xp.einsum("ii", a(M)), 7),
    ("matmul", "ifc", lambda xp, a: xp.matmul(a(M), a(T)), [[12, 18, 24], [14, 19, 24]]),
    ("matmul", "if", lambda xp, a: xp.matmul(a([M, M]), a([1, 2])), [[8, 8], [8, 8]]),
    (
        "matrix_transpose",
        "ifc",
        lambda xp, a: xp.matrix_transpose(a([T])),
        [[[1, 4], [2, 5], [3, 6]]],
    ),
    (
        "tensordot",
        "if",
        lambda xp, a: xp.tensordot(a(M), a(T), axes=1),
        [[12, 18, 24], [14, 19, 24]],
    ),
    (
        "tensordot",
        "f",
        lambda xp, a: xp.tensordot(a(M), a(T), axes=((0,), (0,))),
        [[12, 18, 24], [14, 19, 24]],
    ),
    ("vecdot", "if", lambda xp, a: xp.vecdot(a(T), a([1, 0, 1])), [4, 10]),
    ("vecdot", "c", lambda xp, a: xp.vecdot(a([1j, 2]), a([1, 1])), 2 - 1j),
)

EXAMPLES = CREATION + MANIPULATION + SEARCHING + COMPUTING

rebuilt = lambda xp, u, s, vh: xp.matmul(u * s, vh)
norm = lambda xp, a, **options: xp.linalg.vector_norm(a([[3, -4], [0, 1]]), **options)

LINALG_EXAMPLES = (
    ("cholesky", "fc", lambda xp, a: xp.linalg.cholesky(a(M)), [[2, 0], [1, ROOT]]),
    ("cholesky", "fc", lambda xp, a: xp.linalg.cholesky(a(M), upper=True), [[2, 1], [0, ROOT]]),
    ("cross", "if", lambda xp, a: xp.linalg.cross(a([1, 2, 3]), a([4, 5, 6])), [-3, 6, -3]),
    ("det", "fc", lambda xp, a: xp.linalg.det(a([M, [[1, 2], [3, 4]]])), [8, -2]),
    ("diagonal", "ifc", lambda xp, a: xp.linalg.diagonal(a(T), offset=1), [2, 6]),
    ("eigh", "fc", lambda xp, a: xp.linalg.eigh(a([[2, 1], [1, 2]])).eigenvalues, [1, 3]),
    (
        "eigh",
        "fc",
        lambda xp, a: abs(xp.linalg.eigh(a([[2, 1], [1, 2]])).eigenvectors),
        [[1 / ROOT] * 2] * 2,
    ),
    ("eigvalsh", "fc", lambda xp, a: xp.linalg.eigvalsh(a([[2, 1], [1, 2]])), [1, 3]),
    ("inv", "fc", lambda xp, a: xp.linalg.inv(a(M)), [[0.375, -0.25], [-0.25, 0.5]]),
    ("matmul", "if", lambda xp, a: xp.linalg.matmul(a(M), a([1, 2])), [8, 8]),
    ("matrix_norm", "fc", lambda xp, a: xp.linalg.matrix_norm(a([M])), [math.sqrt(33)]),
    (
        "matrix_norm",
        "f",
        lambda xp, a: xp.linalg.matrix_norm(a(T), ord=math.inf, keepdims=True),
        [[15]],
    ),
    ("matrix_norm", "f", lambda xp, a: xp.linalg.matrix_norm(a(T), ord=1), 9),
    ("matrix_norm", "f", lambda xp, a: xp.linalg.matrix_norm(a([[2, 1], [1, 2]]), ord="nuc"), 4),
    (
        "matrix_power",
        "fc",
        lambda xp, a: xp.linalg.matrix_power(a([[1, 1], [0, 1]]), 5),
        [[1, 5], [0, 1]],
    ),
    (
        "matrix_power",
        "f",
        lambda xp, a: xp.linalg.matrix_power(a([[1, 1], [0, 1]]), -2),
        [[1, -2], [0, 1]],
    ),
    ("matrix_rank", "f", lambda xp, a: xp.linalg.matrix_rank(a([[[1, 2], [2, 4]], M])), [1, 2]),
    (
        "matrix_transpose",
        "if",
        lambda xp, a: xp.linalg.matrix_transpose(a(T)),
        [[1, 4], [2, 5], [3, 6]],
    ),
    ("outer", "ifc", lambda xp, a: xp.linalg.outer(a([1, 2]), a([3, 4])), [[3, 4], [6, 8]]),
    (
        "pinv",
        "fc",
        lambda xp, a: xp.linalg.pinv(a([[1, 0], [0, 2], [0, 0]])),
        [[1, 0, 0], [0, 0.5, 0]],
    ),
    ("qr", "fc", lambda xp, a: xp.matmul(*xp.linalg.qr(a(T))), T),
    ("qr", "f", lambda xp, a: abs(xp.linalg.qr(a([[3], [4]])).R), [[5]]),
    (
        "qr",
        "f",
        lambda xp, a: abs(xp.linalg.qr(a([[3], [4]]), mode="complete").Q),
        [[0.6, 0.8], [0.8, 0.6]],
    ),
    ("slogdet", "f", lambda xp, a: xp.linalg.slogdet(a([[1, 2], [3, 4]])), [-1, math.log(2)]),
    ("solve", "fc", lambda xp, a: xp.linalg.solve(a(M), a([8, 8])), [1, 2]),
    ("solve", "f", lambda xp, a: xp.linalg.solve(a(M), a([[8, 4], [8, 2]])), [[1, 1], [2, 0]]),
    ("svd", "fc", lambda xp, a: xp.linalg.svd(a([[0, 2], [3, 0]])).S, [3, 2]),
    ("svd", "f", lambda xp, a: rebuilt(xp, *xp.linalg.svd(a(T), full_matrices=False)), T),
    ("svdvals", "fc", lambda xp, a: xp.linalg.svdvals(a([[0, 2], [3, 0]])), [3, 2]),
    ("tensordot", "if", lambda xp, a: xp.linalg.tensordot(a(M), a(M)), 33),
    ("trace", "fc", lambda xp, a: xp.linalg.trace(a([M]), offset=1), [2]),
    ("vecdot", "if", lambda xp, a: xp.linalg.vecdot(a([1, 2]), a([3, 4])), 11),
    ("vector_norm", "f", lambda xp, a: norm(xp, a), math.sqrt(26)),
    ("vector_norm", "f", lambda xp, a: norm(xp, a, axis=1, keepdims=True), [[5], [1]]),
    ("vector_norm", "f", lambda xp, a: norm(xp, a, axis=0, ord=1), [3, 5]),
    ("vector_norm", "f", lambda xp, a: norm(xp, a, axis=-1, ord=math.inf), [4, 1]),
    ("vector_norm", "f", lambda xp, a: norm(xp, a, axis=1, ord=0), [2, 1]),
    ("vector_norm", "c", lambda xp, a: xp.linalg.vector_norm(a([3j, 4])), 5),
)

FFT_EXAMPLES = (
    ("fft", "c", lambda xp, a: xp.fft.fft(a(Z)), dft(Z)),
    ("fft", "c", lambda xp, a: xp.fft.fft(a(Z), norm="ortho"), [z / 2 for z in dft(Z)]),
    ("fft", "c", lambda xp, a: xp.fft.fft(a(Z), n=3), dft(Z[:3])),
    ("ifft", "c", lambda xp, a: xp.fft.ifft(a(Z)), [z / 4 for z in dft(Z, +1)]),
    ("fftn", "c", lambda xp, a: xp.fft.fftn(a([Z, Z])), [[2 * z for z in dft(Z)], [0] * 4]),
    ("ifftn", "c", lambda xp, a: xp.fft.ifftn(a([Z, Z])), [[z / 4 for z in dft(Z, +1)], [0] * 4]),
    ("rfft", "f", lambda xp, a: xp.fft.rfft(a(W)), dft(W)[:3]),
    ("rfft", "f", lambda xp, a: xp.fft.rfft(a(W), norm="forward"), [z / 4 for z in dft(W)[:3]]),
    ("irfft", "c", lambda xp, a: xp.fft.irfft(a(dft(W)[:3])), W),
    ("irfft", "c", lambda xp, a: xp.fft.irfft(a(dft([1, 5, 2])[:2]), n=3), [1, 5, 2]),
    ("rfftn", "f", lambda xp, a: xp.fft.rfftn(a([W, W])), [[2 * z for z in dft(W)[:3]], [0] * 3]),
    ("irfftn", "c", lambda xp, a: xp.fft.irfftn(a([dft(W)[:3]]), axes=(0, 1)), [W]),
    ("hfft", "c", lambda xp, a: xp.fft.hfft(a(HERMITIAN)), [z.real for z in dft(SPECTRUM)]),
    ("ihfft", "f", lambda xp, a: xp.fft.ihfft(a(W)), [z.conjugate() / 4 for z in dft(W)[:3]]),
    ("fftshift", "fc", lambda xp, a: xp.fft.fftshift(a([0, 1, 2, -2, -1])), [-2, -1, 0, 1, 2]),
    ("ifftshift", "fc", lambda xp, a: xp.fft.ifftshift(a([-2, -1, 0, 1, 2])), [0, 1, 2, -2, -1]),
)
