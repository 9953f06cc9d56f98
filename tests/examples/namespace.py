"""The names of the namespace. A call takes a namespace; called with NumPy itself it gives what is
wanted, where NumPy has that name with these arguments.
"""

import numpy as np
import scipy.special

from isomorph.backends import vocabulary

from .entries import Function, M, R, T, V, const, ints, named

PLUS = np.diag([2.0, 3.0, 4.5, 6.0])
INSIDE, OUTSIDE = (0.1, 0.9), (1.2, 3.0)
LAPACK = {"half": "LAPACK has no narrow matrices", "large": "its matrix has one size",
          "empty": "a square matrix"}  # fmt: skip
FFT = {"half": "Fourier transforms have no narrow numbers",
       "empty": "a transform of no points"}  # fmt: skip
NARROW = {"half": "a narrow number has no complex numbers"}


def symmetric(xp, x):
    """A positive definite matrix whose eigenvalues differ, by a namespace or `isomorph`."""
    at = xp.linalg
    plus = np.diag(1.0 + 1.5 * np.arange(x.shape[-1]))
    return at.matmul(x, at.matrix_transpose(x)) + const(x, plus)


def z(xp, x):
    """Complex numbers from real ones."""
    wide = xp.astype(x, xp.complex128 if x.dtype == xp.float64 else xp.complex64)
    return wide * (1 + 0.5j) + 0.2j


def by_numpy(call, *shapes, within=None, **facts):
    return Function(call, shapes, lambda *a: call(np, *a), within, **facts)


def name(word, *shapes, **facts):
    return by_numpy(named(word), *shapes, **facts)


def elementwise(word, *within, n=1, **facts):
    return name(word, *(V,) * n, within=within if len(within) == n else within * n or None,
                each=True, **facts)  # fmt: skip


def over_rows(word, **facts):
    return by_numpy(lambda xp, x: getattr(xp, word)(x, axis=1), R, **facts)


UNARY = ("abs", "asin", "asinh", "atan", "cos", "cosh", "exp", "expm1", "negative", "positive",
         "reciprocal", "sin", "sinh", "square", "tan", "tanh")  # fmt: skip
UNIT = ("acos", "atanh", "log", "log10", "log1p", "log2", "sqrt")
BINARY = ("add", "copysign", "divide", "hypot", "logaddexp", "maximum", "minimum", "multiply",
          "subtract")  # fmt: skip
# Their derivative is 0, or there is none.
FLAT = ("sign", "ceil", "floor", "round", "trunc")
TRUTHS = ("isfinite", "isinf", "isnan", "signbit")
COMPARED = ("equal", "greater", "greater_equal", "less", "less_equal", "not_equal")
LOGICAL = ("logical_and", "logical_or", "logical_xor")
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift")
ONES = [1, 5, 2, 7, 0, 3]


def of_bits(word):
    return by_numpy(lambda xp, x: getattr(xp, word)(ints(x, [9, 4, 6, 1, 3, 8]), ints(x, ONES)), R,
                    order=0)  # fmt: skip


UNKNOWN = {"compiled": "its size depends on values", "mapped": "its size depends on values"}


def unique(word):
    """The unique values, as sums: their number is not fixed."""

    def call(xp, x):
        found = getattr(xp, word)(x)
        found = found if word == "unique_values" else found.values
        return xp.sum(found**3)

    return by_numpy(call, V, but=UNKNOWN)


NAMES = {
    **{word: elementwise(word) for word in UNARY},
    **{word: elementwise(word, INSIDE) for word in UNIT},
    **{word: elementwise(word, n=2) for word in BINARY},
    **{word: elementwise(word, (-3.0, 3.2), order=0) for word in FLAT},
    **{word: elementwise(word, order=0) for word in TRUTHS},
    **{word: elementwise(word, n=2, order=0) for word in COMPARED},
    **{word: by_numpy(lambda xp, x, y, word=word: getattr(xp, word)(x > 0, y > 0), V, V, order=0)
       for word in LOGICAL},
    **{word: of_bits(word) for word in BITS},
    **{word: unique(word) for word in
       ("unique_all", "unique_counts", "unique_inverse", "unique_values")},
    **{word: over_rows(word) for word in ("max", "mean", "min", "prod", "std", "sum", "var")},
    **{word: over_rows(word, order=0) for word in ("argmax", "argmin", "argsort")},
    "sort": by_numpy(lambda xp, x: xp.sort(x, axis=0), R),
    "acosh": elementwise("acosh", OUTSIDE),
    "erf": Function(named("erf"), (V,), scipy.special.erf, each=True),
    "atan2": elementwise("atan2", None, INSIDE, n=2),
    "remainder": elementwise("remainder", None, INSIDE, n=2),
    "floor_divide": elementwise("floor_divide", None, INSIDE, n=2, order=0),
    "nextafter": elementwise("nextafter", n=2, order=0,
                             but={"float32": "the next number of another dtype",
                                  "half": "the next number of another dtype",
                                  "jax zeros": "the next number after 0 is denormal"}),
    "pow": elementwise("pow", INSIDE, None, n=2),
    "pow, number": by_numpy(lambda xp, x: xp.pow(x, 2.5), V, within=(INSIDE,), each=True),
    "pow, zero": by_numpy(lambda xp, x: xp.pow(x, 0.0), V, each=True),
    "clip": by_numpy(lambda xp, x: xp.clip(x, -0.3, 0.4), V, each=True),
    "real": by_numpy(lambda xp, x: xp.real(z(xp, x) ** 2), V, but=NARROW),
    "imag": by_numpy(lambda xp, x: xp.imag(z(xp, x) ** 2), V, but=NARROW),
    "conj": by_numpy(lambda xp, x: xp.conj(z(xp, x)), V, but=NARROW),
    "acosh, complex": by_numpy(lambda xp, x: xp.acosh(z(xp, x)), V, but=NARROW),
    "sign, complex": by_numpy(lambda xp, x: xp.sign(z(xp, x)), V, but=NARROW),
    "logical_not": by_numpy(lambda xp, x: xp.logical_not(x > 0), V, order=0),
    "bitwise_invert": by_numpy(lambda xp, x: xp.bitwise_invert(ints(x, ONES)), R, order=0),
    "all": by_numpy(lambda xp, x: xp.all(x > -0.7, axis=1), R, order=0),
    "any": by_numpy(lambda xp, x: xp.any(x > 0.7, axis=1), R, order=0),
    "count_nonzero": by_numpy(lambda xp, x: xp.count_nonzero(x > 0, axis=1), R, order=0),
    "nonzero": by_numpy(lambda xp, x: list(xp.nonzero(x > 0)), V, order=0, but=UNKNOWN),
    "searchsorted": by_numpy(lambda xp, x, y: xp.searchsorted(xp.sort(x), y), V, V, order=0,
                             but={"mapped": "numpy.searchsorted"}),
    "astype": by_numpy(lambda xp, x: xp.astype(xp.astype(x, xp.complex128), xp.complex128), V,
                       but={"float32": "it asks for a wide dtype", "half": "as float32"}),
    "asarray": by_numpy(lambda xp, x: xp.asarray(x, copy=True), V),
    "from_dlpack": by_numpy(lambda xp, x: xp.from_dlpack(x), V, order=0,
                            but={"compiled": "a traced array has no memory",
                                 "mapped": "a traced array has no memory"}),
    "meshgrid": by_numpy(lambda xp, x, y: list(xp.meshgrid(x, y)), (6,), (4,)),
    "tril": by_numpy(lambda xp, x: xp.tril(x), R),
    "triu": by_numpy(lambda xp, x: xp.triu(x, k=1), R),
    "take": by_numpy(lambda xp, x: xp.take(x, ints(x, [2, 0, 2]), axis=1), R),
    "take_along_axis": by_numpy(
        lambda xp, x: xp.take_along_axis(x, ints(x, [[2, 0, 5, 1, 0, 3]]), axis=0), (6, 6)),
    "broadcast_arrays": by_numpy(lambda xp, x, y: list(xp.broadcast_arrays(x, y)), (6,), (4, 1)),
    "broadcast_to": by_numpy(lambda xp, x: xp.broadcast_to(x, (3, *x.shape)), V),
    "concat": by_numpy(lambda xp, x: xp.concat([x[:3], x, x[1:]]), R),
    "expand_dims": by_numpy(lambda xp, x: xp.expand_dims(x, axis=1), R),
    "flip": by_numpy(lambda xp, x: xp.flip(x, axis=1), R),
    "moveaxis": by_numpy(lambda xp, x: xp.moveaxis(x, 0, -1), T),
    "permute_dims": by_numpy(lambda xp, x: xp.permute_dims(x, (2, 0, 1)), T),
    "repeat": by_numpy(lambda xp, x: xp.repeat(x, 2, axis=0), R),
    "reshape": by_numpy(lambda xp, x: xp.reshape(x, (-1, 3)), R, but={"large": "rows of three"}),
    "roll": by_numpy(lambda xp, x: xp.roll(x, (1, -2), axis=(0, 1)), R),
    "squeeze": by_numpy(lambda xp, x: xp.squeeze(x[:, None, :, None], axis=(1, 3)), R),
    "stack": by_numpy(lambda xp, x, y: xp.stack([x, y], axis=-1), R, R),
    "tile": by_numpy(lambda xp, x: xp.tile(x, (2, 1, 2)), R),
    "unstack": by_numpy(lambda xp, x: list(xp.unstack(x, axis=1)), R),
    "where": by_numpy(lambda xp, x, y: xp.where(x > 0.2, x, y), R, R),
    "cumulative_sum": by_numpy(lambda xp, x: xp.cumulative_sum(x, axis=1), R),
    "cumulative_prod": by_numpy(
        lambda xp, x: xp.cumulative_prod(x, axis=1, include_initial=True), R),
    "diff": by_numpy(lambda xp, x: xp.diff(x, axis=1, n=2), R),
    "matmul": name("matmul", R, (6, 4)),
    "matrix_transpose": name("matrix_transpose", T),
    "tensordot": by_numpy(lambda xp, x, y: xp.tensordot(x, y, axes=((1,), (1,))), R, R),
    "vecdot": name("vecdot", R, R),
    "einsum": by_numpy(lambda xp, x, y: xp.einsum("ij,kj->ik", x, y), R, R),
    "pad": by_numpy(lambda xp, x: xp.pad(x, ((1, 0), (0, 2))), R),
    # creation, of a size or like another array
    "arange": by_numpy(lambda xp, x: xp.arange(1.0, 3.0, 0.5, dtype=x.dtype) * x, (4,)),
    "linspace": by_numpy(lambda xp, x: xp.linspace(0.0, 1.0, 4, dtype=x.dtype) * x, (4,)),
    "eye": by_numpy(lambda xp, x: xp.eye(4, 6, k=1, dtype=x.dtype) * x, R),
    "zeros": by_numpy(lambda xp, x: xp.zeros((4, 6), dtype=x.dtype) + x, R),
    "ones": by_numpy(lambda xp, x: xp.ones((4, 6), dtype=x.dtype) + x, R),
    "full": by_numpy(lambda xp, x: xp.full((4, 6), 2.0, dtype=x.dtype) * x, R),
    "empty": by_numpy(lambda xp, x: xp.empty((4, 6), dtype=x.dtype).shape[0] * x, R),
    "zeros_like": by_numpy(lambda xp, x: xp.zeros_like(x) + x, R),
    "ones_like": by_numpy(lambda xp, x: xp.ones_like(x) + x, R),
    "full_like": by_numpy(lambda xp, x: xp.full_like(x, 3.0) * x, R),
    "empty_like": by_numpy(lambda xp, x: xp.empty_like(x).shape[0] * x, R),
}  # fmt: skip
MATRICES = {
    "cholesky": by_numpy(lambda xp, x: xp.linalg.cholesky(symmetric(xp, x)), M),
    "cross": name("linalg.cross", (4, 3), (4, 3)),
    "det": name("linalg.det", M, within=(PLUS,)),
    "diagonal": by_numpy(lambda xp, x: xp.linalg.diagonal(x, offset=1), R),
    "eigh": by_numpy(lambda xp, x: xp.linalg.eigh(symmetric(xp, x)).eigenvectors ** 2, M),
    "eigvalsh": by_numpy(lambda xp, x: xp.linalg.eigvalsh(symmetric(xp, x)), M),
    "inv": name("linalg.inv", M, within=(PLUS,)),
    "matmul": name("linalg.matmul", R, (6,)),
    "matrix_norm": name("linalg.matrix_norm", T),
    "matrix_norm, nuclear": by_numpy(lambda xp, x: xp.linalg.matrix_norm(x, ord="nuc"), M,
                                     within=(PLUS,)),
    "matrix_power": by_numpy(lambda xp, x: xp.linalg.matrix_power(x, -2), M, within=(PLUS,)),
    "matrix_rank": by_numpy(lambda xp, x: xp.linalg.matrix_rank(x), M, within=(PLUS,), order=0),
    "matrix_transpose": name("linalg.matrix_transpose", R),
    "outer": name("linalg.outer", (6,), (4,)),
    "pinv": name("linalg.pinv", (6, 4), within=(np.eye(6, 4) * 3,)),
    "qr": by_numpy(lambda xp, x: abs(xp.linalg.qr(x).R), M, within=(PLUS,)),
    "slogdet": by_numpy(lambda xp, x: xp.linalg.slogdet(x).logabsdet, M, within=(PLUS,)),
    "solve": name("linalg.solve", M, (4, 6), within=(PLUS, None)),
    "svd": by_numpy(lambda xp, x: (lambda u, s, v: abs((u * s) @ v))(
        *xp.linalg.svd(x, full_matrices=False)), M, within=(PLUS,)),
    "svdvals": name("linalg.svdvals", M, within=(PLUS,)),
    "tensordot": by_numpy(lambda xp, x, y: xp.linalg.tensordot(x, y), R, R),
    "trace": name("linalg.trace", M),
    "vecdot": name("linalg.vecdot", R, R),
    "vector_norm": by_numpy(lambda xp, x: xp.linalg.vector_norm(x, axis=1), R),
    "vector_norm, cubes": by_numpy(lambda xp, x: xp.linalg.vector_norm(x, axis=1, ord=3), R),
}  # fmt: skip
# What XLA on TensorFlow lacks, and what LAPACK computes in one size here.
NO_XLA = {"det", "slogdet", "eigh", "eigvalsh", "matrix_rank", "pinv", "svdvals", "svd",
          "matrix_norm, nuclear"}  # fmt: skip
PLAIN = {"cross", "diagonal", "matmul", "matrix_norm", "matrix_transpose", "outer", "tensordot",
         "trace", "vecdot", "vector_norm", "vector_norm, cubes"}  # fmt: skip
for word, entry in MATRICES.items():
    facts = {} if word in PLAIN else dict(LAPACK)
    facts |= {"xla": "XLA on TensorFlow lacks it"} if word in NO_XLA else {}
    NAMES[f"linalg.{word}"] = entry._replace(but=facts)

NAMES |= {
    "fft.fft": by_numpy(lambda xp, x: xp.fft.fft(z(xp, x)), V, but=FFT),
    "fft.ifft": by_numpy(lambda xp, x: xp.fft.ifft(z(xp, x), n=10), V, but=FFT),
    "fft.fftn": by_numpy(lambda xp, x: xp.fft.fftn(z(xp, x)), R, but=FFT),
    "fft.ifftn": by_numpy(lambda xp, x: xp.fft.ifftn(z(xp, x)), R, but=FFT),
    "fft.rfft": by_numpy(lambda xp, x: xp.fft.rfft(x, norm="ortho"), V, but=FFT),
    "fft.irfft": by_numpy(lambda xp, x: xp.fft.irfft(z(xp, x), n=20), V, but=FFT),
    "fft.rfftn": by_numpy(lambda xp, x: xp.fft.rfftn(x), R, but=FFT),
    "fft.irfftn": by_numpy(lambda xp, x: xp.fft.irfftn(z(xp, x), axes=(0, 1)), R, but=FFT),
    "fft.hfft": by_numpy(lambda xp, x: xp.fft.hfft(z(xp, x)), V, but=FFT),
    "fft.ihfft": by_numpy(lambda xp, x: xp.fft.ihfft(x), V, but=FFT),
    "fft.fftshift": by_numpy(lambda xp, x: xp.fft.fftshift(x), R, but=FFT),
    "fft.ifftshift": by_numpy(lambda xp, x: xp.fft.ifftshift(x, axes=1), R, but=FFT),
    # quarters are the same numbers in the default dtype of every framework
    "fft.fftfreq": by_numpy(lambda xp, x: xp.astype(xp.fft.fftfreq(4), x.dtype) * x, M, but=FFT),
    "fft.rfftfreq": by_numpy(lambda xp, x: xp.astype(xp.fft.rfftfreq(4), x.dtype) * x[:, :3], M,
                             but=FFT),
}  # fmt: skip

SIZED = {"large": "arrays of one size", "empty": "arrays of one size"}
for word in ("arange", "linspace", "eye", "zeros", "ones", "full", "empty", "bitwise_invert", *BITS,
             "take_along_axis", "fft.fftfreq", "fft.rfftfreq"):  # fmt: skip
    NAMES[word] = NAMES[word]._replace(but=NAMES[word].but | SIZED)

LEFT_OUT = {
    "a dtype or a constant": [*vocabulary.DTYPES, *vocabulary.CONSTANTS],
    "about dtypes, computes nothing": [
        "__array_namespace_info__", "can_cast", "finfo", "iinfo", "isdtype", "result_type",
    ],
}  # fmt: skip
