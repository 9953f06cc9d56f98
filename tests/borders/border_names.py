"""One call of every differentiable function of the namespace, as a function of 24 numbers.

`x` is the vector, `m` a well-conditioned matrix made from it, and `u` are numbers within (0.1,
0.9). `parts` turns complex results into real ones.
"""

import numpy as np
from border_functions import const, cut, ints

import isomorph as iso
from isomorph.backends import vocabulary


def m(x):
    return cut(x)(4, 4) * 0.5 + const(x, 2 * np.diag([1.0, 2.0, 3.0, 4.0]))


def spd(x):
    xp, a = iso.namespace(x), cut(x)(4, 4) * 0.5
    return xp.matmul(a, xp.matrix_transpose(a)) + const(x, np.diag([1.0, 2.0, 3.5, 5.0]))


def u(x):
    return x * 0.45 + 0.5


def z(x):
    """Twelve complex numbers."""
    xp = iso.namespace(x)
    return xp.astype(x[:12], xp.complex128) + 1j * xp.astype(x[12:], xp.complex128)


def t(x):
    return cut(x)(4, 6)


def pair(x):
    return x[:12], x[12:]


UNARY = [
    *("abs", "asin", "asinh", "atan", "cos", "cosh", "exp", "expm1", "negative", "positive"),
    *("real", "reciprocal", "sin", "sinh", "square", "tan", "tanh", "erf"),
]
INSIDE = ["acos", "atanh", "log", "log10", "log1p", "log2", "sqrt"]  # need 0 < x < 1
BINARY = [
    *("add", "atan2", "copysign", "divide", "hypot", "logaddexp", "maximum", "minimum"),
    *("multiply", "remainder", "subtract"),
]
REDUCTIONS = ["max", "mean", "min", "prod", "std", "sum", "var"]

NAMES = {name: lambda xp, x, name=name: getattr(xp, name)(x) for name in UNARY}
NAMES |= {name: lambda xp, x, name=name: getattr(xp, name)(u(x)) for name in INSIDE}
NAMES |= {name: lambda xp, x, name=name: getattr(xp, name)(*pair(x)) for name in BINARY}
NAMES |= {name: lambda xp, x, name=name: getattr(xp, name)(t(x), axis=1) for name in REDUCTIONS}
NAMES |= {
    "acosh": lambda xp, x: xp.acosh(u(x) + 1),
    "acosh_complex": lambda xp, x: xp.acosh(z(x)),
    "sign": lambda xp, x: xp.sign(z(x)),
    "conj": lambda xp, x: xp.conj(z(x)),
    "imag": lambda xp, x: xp.imag(z(x) ** 2),
    "clip": lambda xp, x: xp.clip(x, -0.3, 0.4),
    "pow": lambda xp, x: xp.pow(u(x[:12]), x[12:]),
    "pow_number": lambda xp, x: xp.pow(u(x), 2.5),
    "pow_zero": lambda xp, x: xp.pow(x, 0.0),
    "astype": lambda xp, x: xp.astype(xp.astype(x, xp.complex128), xp.complex128),
    "asarray": lambda xp, x: xp.asarray(x, copy=True),
    "meshgrid": lambda xp, x: xp.meshgrid(x[:3], x[3:5]),
    "tril": lambda xp, x: xp.tril(t(x)),
    "triu": lambda xp, x: xp.triu(t(x), k=1),
    "take": lambda xp, x: xp.take(t(x), ints(x, [2, 0, 2]), axis=1),
    "take_along_axis": lambda xp, x: xp.take_along_axis(
        t(x), ints(x, [[2], [0], [1], [5]]), axis=1
    ),
    "broadcast_arrays": lambda xp, x: xp.broadcast_arrays(x[:4], t(x)[:, :1]),
    "broadcast_to": lambda xp, x: xp.broadcast_to(x, (3, 24)),
    "concat": lambda xp, x: xp.concat([x[:3], x, x[5:]]),
    "expand_dims": lambda xp, x: xp.expand_dims(x, axis=1),
    "flip": lambda xp, x: xp.flip(t(x), axis=1),
    "moveaxis": lambda xp, x: xp.moveaxis(cut(x)(2, 3, 4), 0, -1),
    "permute_dims": lambda xp, x: xp.permute_dims(cut(x)(2, 3, 4), (2, 0, 1)),
    "repeat": lambda xp, x: xp.repeat(t(x), 2, axis=0),
    "reshape": lambda xp, x: xp.reshape(x, (2, -1)),
    "roll": lambda xp, x: xp.roll(t(x), (1, -2), axis=(0, 1)),
    "squeeze": lambda xp, x: xp.squeeze(cut(x)(1, 24, 1), axis=(0, 2)),
    "stack": lambda xp, x: xp.stack([x, x * x], axis=-1),
    "tile": lambda xp, x: xp.tile(t(x), (2, 1, 2)),
    "unstack": lambda xp, x: xp.unstack(t(x), axis=1),
    "where": lambda xp, x: xp.where(x > 0.2, x * x, 0.5),
    "sort": lambda xp, x: xp.sort(t(x), axis=0),
    "unique_all": lambda xp, x: xp.sum(xp.unique_all(x).values ** 3),
    "unique_counts": lambda xp, x: xp.sum(xp.unique_counts(x).values ** 3),
    "unique_inverse": lambda xp, x: xp.sum(xp.unique_inverse(x).values ** 3),
    "unique_values": lambda xp, x: xp.sum(xp.unique_values(x) ** 3),
    "cumulative_sum": lambda xp, x: xp.cumulative_sum(t(x), axis=1),
    "cumulative_prod": lambda xp, x: xp.cumulative_prod(t(x), axis=1, include_initial=True),
    "diff": lambda xp, x: xp.diff(t(x), axis=1, n=2),
    "matmul": lambda xp, x: xp.matmul(t(x), xp.matrix_transpose(t(x))),
    "matrix_transpose": lambda xp, x: xp.matrix_transpose(t(x)),
    "tensordot": lambda xp, x: xp.tensordot(t(x), t(x), axes=((1,), (1,))),
    "vecdot": lambda xp, x: xp.vecdot(*pair(x)),
    "einsum": lambda xp, x: xp.einsum("ij,kj->ik", t(x), t(x)),
    "pad": lambda xp, x: xp.pad(t(x), ((1, 0), (0, 2))),
    "linalg.cholesky": lambda xp, x: xp.linalg.cholesky(spd(x)),
    "linalg.cross": lambda xp, x: xp.linalg.cross(x[:3], x[3:6]),
    "linalg.det": lambda xp, x: xp.linalg.det(m(x)),
    "linalg.diagonal": lambda xp, x: xp.linalg.diagonal(t(x), offset=1),
    "linalg.eigh": lambda xp, x: xp.linalg.eigh(spd(x)).eigenvectors ** 2,
    "linalg.eigvalsh": lambda xp, x: xp.linalg.eigvalsh(spd(x)),
    "linalg.inv": lambda xp, x: xp.linalg.inv(m(x)),
    "linalg.matmul": lambda xp, x: xp.linalg.matmul(t(x), x[:6]),
    "linalg.matrix_norm": lambda xp, x: xp.linalg.matrix_norm(t(x)),
    "linalg.matrix_norm_nuclear": lambda xp, x: xp.linalg.matrix_norm(m(x), ord="nuc"),
    "linalg.matrix_power": lambda xp, x: xp.linalg.matrix_power(m(x), -2),
    "linalg.matrix_transpose": lambda xp, x: xp.linalg.matrix_transpose(t(x)),
    "linalg.outer": lambda xp, x: xp.linalg.outer(*pair(x)),
    "linalg.pinv": lambda xp, x: xp.linalg.pinv(m(x)[:, :3]),
    "linalg.qr": lambda xp, x: abs(xp.linalg.qr(m(x)).R),
    "linalg.slogdet": lambda xp, x: xp.linalg.slogdet(m(x)).logabsdet,
    "linalg.solve": lambda xp, x: xp.linalg.solve(m(x), x[16:20]),
    "linalg.svd": lambda xp, x: xp.linalg.svd(m(x), full_matrices=False).S,
    "linalg.svdvals": lambda xp, x: xp.linalg.svdvals(m(x)),
    "linalg.tensordot": lambda xp, x: xp.linalg.tensordot(t(x), t(x)),
    "linalg.trace": lambda xp, x: xp.linalg.trace(m(x)),
    "linalg.vecdot": lambda xp, x: xp.linalg.vecdot(*pair(x)),
    "linalg.vector_norm": lambda xp, x: xp.linalg.vector_norm(t(x), axis=1),
    "linalg.vector_norm_3": lambda xp, x: xp.linalg.vector_norm(t(x), axis=1, ord=3),
    "fft.fft": lambda xp, x: xp.fft.fft(z(x)),
    "fft.ifft": lambda xp, x: xp.fft.ifft(z(x), n=10),
    "fft.fftn": lambda xp, x: xp.fft.fftn(xp.reshape(z(x), (3, 4))),
    "fft.ifftn": lambda xp, x: xp.fft.ifftn(xp.reshape(z(x), (3, 4))),
    "fft.rfft": lambda xp, x: xp.fft.rfft(x, norm="ortho"),
    "fft.irfft": lambda xp, x: xp.fft.irfft(z(x), n=20),
    "fft.rfftn": lambda xp, x: xp.fft.rfftn(t(x)),
    "fft.irfftn": lambda xp, x: xp.fft.irfftn(xp.reshape(z(x), (3, 4))),
    "fft.hfft": lambda xp, x: xp.fft.hfft(z(x)),
    "fft.ihfft": lambda xp, x: xp.fft.ihfft(x),
    "fft.fftshift": lambda xp, x: xp.fft.fftshift(t(x)),
    "fft.ifftshift": lambda xp, x: xp.fft.ifftshift(t(x), axes=1),
}

LEFT_OUT = {
    "a dtype, a constant, or a question about them": [
        *vocabulary.DTYPES, *vocabulary.CONSTANTS, "can_cast", "finfo", "iinfo", "isdtype",
        "result_type", "__array_namespace_info__",
    ],
    "makes an array of no array's values": [
        "arange", "empty", "empty_like", "eye", "full", "full_like", "linspace", "ones",
        "ones_like", "zeros", "zeros_like", "fft.fftfreq", "fft.rfftfreq",
    ],
    "moves an array between frameworks": ["from_dlpack"],
    "integers or truth values come out, or go in": [
        "bitwise_and", "bitwise_left_shift", "bitwise_invert", "bitwise_or", "bitwise_right_shift",
        "bitwise_xor", "equal", "greater", "greater_equal", "isfinite", "isinf", "isnan", "less",
        "less_equal", "logical_and", "logical_not", "logical_or", "logical_xor", "not_equal",
        "signbit", "argmax", "argmin", "count_nonzero", "nonzero", "searchsorted", "argsort",
        "all", "any", "linalg.matrix_rank",
    ],
    "flat between jumps: its derivative is 0 on some frameworks, none on others": [
        "ceil", "floor", "floor_divide", "nextafter", "round", "trunc",
    ],
}  # fmt: skip


def all_names():
    return [
        *vocabulary.VOCABULARY,
        *(f"linalg.{name}" for name in vocabulary.LINALG),
        *(f"fft.{name}" for name in vocabulary.FFT),
    ]


def found(xp, name):
    """The function of that name in a namespace, ours or a framework's own."""
    for part in name.split("."):
        xp = getattr(xp, part, None)
    return xp


def called(name):
    return lambda x: NAMES[name](iso.namespace(x), x)
